// Calls the tools that the user names, through the official client: `SERVER TOOL ARGUMENTS` a line.
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const clients = {};
for (const [name, command] of Object.entries(JSON.parse(process.env.SERVERS))) {
  clients[name] = new Client({ name: "agent", version: "1" }, { capabilities: {} });
  const args = ["mcp-record", "--name", name, "--", ...command];
  await clients[name].connect(new StdioClientTransport({ command: process.env.RAGCHECK_PROGRAM, args }));
  await clients[name].listTools();
}
for await (const line of createInterface({ input: process.stdin })) {
  const [server, tool, ...rest] = JSON.parse(line).message.split(" ");
  let answer;
  try {
    const result = await clients[server].callTool({ name: tool, arguments: JSON.parse(rest.join(" ")) });
    answer = result.content.filter((part) => part.type === "text").map((part) => part.text).join(" ");
  } catch (why) {
    answer = `failed: ${why.message}`;
  }
  console.log(JSON.stringify({ answer }));
}
process.exit(0);
