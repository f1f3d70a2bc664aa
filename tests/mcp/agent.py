"""Calls the tools that the user names, through the official client: `SERVER TOOL ARGUMENTS` a line."""

import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack

from mcp import Client, StdioServerParameters


def parameters(name, command):
    words = ["mcp-record", "--name", name, "--", *command]
    return StdioServerParameters(command=os.environ["RAGCHECK_PROGRAM"], args=words)


async def main():
    async with AsyncExitStack() as stack:
        clients = {}
        for name, command in json.loads(os.environ["SERVERS"]).items():
            mode = os.environ.get("MCP_VERSION", "auto")
            clients[name] = await stack.enter_async_context(Client(parameters(name, command), mode=mode))
            assert (await clients[name].list_tools()).tools, name
        while line := await asyncio.to_thread(sys.stdin.readline):
            server, tool, arguments = json.loads(line)["message"].split(" ", 2)
            try:
                result = await clients[server].call_tool(tool, json.loads(arguments))
                answer = " ".join(part.text for part in result.content if part.type == "text")
            except Exception as why:
                answer = f"failed: {why}"
            print(json.dumps({"answer": answer}), flush=True)


asyncio.run(main())
