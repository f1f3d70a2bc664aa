"""A help desk for parcels whose tools come from the MCP server in mcp.json; nothing but Python's standard library.

Nothing here knows ragcheck: `mcp.json` names the command of the server, and OPENAI_BASE_URL the model.
"""

import json
import os
import subprocess
import sys
import urllib.request
from itertools import count
from pathlib import Path

BASE_URL = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1")
MOST_STEPS = 8
PROMPT = """You answer questions about parcels. Look an order up with lookup_order before you say anything about it.
Open a ticket with create_ticket only when a parcel is late, and never for an order that you have not looked up."""


class Server:
    def __init__(self, command, args):
        self.process = subprocess.Popen([command, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ids = count()
        client = {"name": "help-desk", "version": "1"}
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
        self.send({"method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def ask(self, method, params):
        self.send({"id": next(self.ids), "method": method, "params": params})
        while line := self.process.stdout.readline():
            answer = json.loads(line)
            if "result" in answer:
                return answer["result"]
            if "error" in answer:
                raise RuntimeError(answer["error"]["message"])
        raise RuntimeError("the server is gone")


def complete(messages, tools):
    body = json.dumps({"model": os.environ.get("MODEL", "gpt-4o-mini"), "messages": messages, "tools": tools})
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    request = urllib.request.Request(f"{BASE_URL}/chat/completions", body.encode(), headers)
    with urllib.request.urlopen(request) as response:
        return json.load(response)["choices"][0]["message"]


def answer(server, tools, question):
    messages = [{"role": "system", "content": PROMPT}, {"role": "user", "content": question}]
    for _ in range(MOST_STEPS):
        said = complete(messages, tools)
        messages.append(said)
        if not said.get("tool_calls"):
            return said["content"]
        for wanted in said["tool_calls"]:
            function = wanted["function"]
            arguments = json.loads(function["arguments"])
            found = server.ask("tools/call", {"name": function["name"], "arguments": arguments})
            text = found["content"][0]["text"]
            messages.append({"role": "tool", "tool_call_id": wanted["id"], "content": text})
    return "I could not find that out."


settings = json.loads(Path(__file__).with_name("mcp.json").read_text())
server = Server(**settings["mcpServers"]["orders"])
offered = [
    {"type": "function", "function": {"name": tool["name"], "description": tool["description"], "parameters": tool["inputSchema"]}}
    for tool in server.ask("tools/list", {})["tools"]
]
for line in sys.stdin:
    print(json.dumps({"answer": answer(server, offered, json.loads(line)["message"])}), flush=True)
