#!/usr/bin/env node
// Starts the binary of this platform, which npm installed as an optional dependency, with the same arguments, and ends as it
// does.
'use strict';
const { spawnSync } = require('node:child_process');
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
const ended = spawnSync(binary, process.argv.slice(2), { stdio: 'inherit' });
if (ended.error) {
  console.error(`error: ${binary} cannot be started: ${ended.error.message}`);
  process.exit(2);
}
process.exit(ended.signal ? 128 + constants.signals[ended.signal] : ended.status);
