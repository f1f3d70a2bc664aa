"""Calls `ragcheck mcp-server` through the official client, and prints what it gets."""

import asyncio
import json
import os

from mcp import Client, StdioServerParameters


async def main():
    server = StdioServerParameters(command=os.environ["RAGCHECK_PROGRAM"], args=["mcp-server"])
    async with Client(server) as client:
        said = {"tools": [tool.name for tool in (await client.list_tools()).tools]}
        run = await client.call_tool("run", {"variant": "strict"})
        said["run"] = run.structured_content
        said["record"] = (await client.call_tool("record", {})).content[0].text
        try:
            await client.call_tool("run", {"mode": "live"})
        except Exception as why:
            said["wrong"] = "no argument `mode`" in str(why)
        print(json.dumps(said))


asyncio.run(main())
