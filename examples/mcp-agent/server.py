"""An MCP server by standard input and output: two tools for parcels, and nothing but Python's standard library."""

import json
import sys

ORDERS = {
    "A-1042": {"status": "on its way", "promised": "2026-11-24"},
    "A-1077": {"status": "lost between two depots", "promised": "2026-11-12"},
}
TEXT = {"type": "string"}


def tool(name, about, properties):
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": about, "inputSchema": schema}


TOOLS = [
    tool("lookup_order", "Looks an order up by its number.", {"order_id": TEXT}),
    tool("create_ticket", "Opens a ticket for a parcel that is late.", {"order_id": TEXT, "reason": TEXT}),
]
tickets = []


def call(name, arguments):
    if name == "create_ticket":
        tickets.append(arguments)
        return {"ticket": f"T-{len(tickets)}"}
    return ORDERS[arguments["order_id"]]


def result(method, parameters):
    if method == "initialize":
        info = {"name": "orders", "version": "1"}
        return {"protocolVersion": parameters["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        try:
            text = json.dumps(call(parameters["name"], parameters["arguments"]))
        except KeyError as missing:
            return {"content": [{"type": "text", "text": f"there is no order {missing}"}], "isError": True}
        return {"content": [{"type": "text", "text": text}]}
    return {}


for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": result(asked["method"], asked.get("params", {}))}
        print(json.dumps(answer), flush=True)
