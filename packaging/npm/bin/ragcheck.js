#!/usr/bin/env node
// Starts the binary of this platform, which npm installed as an optional dependency, with the same arguments, hands on signals,
// and ends as it does.
'use strict';
const { spawn } = require('node:child_process');
const { constants } = require('node:os');

const name = `ragcheck-harness-${process.platform}-${process.arch}`;
let binary;
try {
  binary = require.resolve(`${name}/ragcheck${process.platform === 'win32' ? '.exe' : ''}`);
} catch {
  console.error(
    `error: ${name} is not installed: either there is no binary of ragcheck for this platform, or npm ran with ` +
      '--omit=optional; `cargo install --locked` builds one from the sources',
  );
  process.exit(2);
}
const child = spawn(binary, process.argv.slice(2), { stdio: 'inherit' });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  // On Windows, `kill` would end the child without a report; the console tells it about Ctrl-C itself.
  process.on(signal, () => process.platform === 'win32' || child.kill(signal));
}
child.on('error', (error) => {
  console.error(`error: ${binary} cannot be started: ${error.message}`);
  process.exit(2);
});
child.on('exit', (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code));
