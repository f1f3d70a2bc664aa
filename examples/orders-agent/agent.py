"""A help desk for parcels: two tools, and nothing but Python's standard library.

Nothing here knows ragcheck. One base URL from the environment decides whether the model is the real one or a proxy:

    OPENAI_BASE_URL   https://api.openai.com/v1 unless given
    OPENAI_API_KEY    sent as it is
    MODEL             the model's name
    PORT              where the agent listens, 8110 unless given

The last message of the model, which calls nothing, is the answer: there is no tool for it, and no knowledge base.
"""

import json
import os
import sys
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

BASE_URL = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1")
MODEL = os.environ.get("MODEL", "gpt-4o-mini")
MOST_STEPS = 8
PROMPT = """You answer questions about parcels. Look an order up with lookup_order before you say anything about it.
Open a ticket with create_ticket only when a parcel is late, and never for an order that you have not looked up."""

ORDERS = {
    "A-1042": {"status": "on its way", "promised": "2026-11-24", "late": False},
    "A-1077": {"status": "lost between two depots", "promised": "2026-11-12", "late": True},
}


def tool(name, about, properties):
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": about, "parameters": parameters}}


TEXT = {"type": "string"}
OFFERED = [
    tool("lookup_order", "Looks an order up by its number.", {"order_id": TEXT}),
    tool("create_ticket", "Opens a ticket for a parcel that is late.", {"order_id": TEXT, "reason": TEXT}),
]
conversations = {}
tickets = []


def lookup_order(order_id):
    if order_id not in ORDERS:
        return {"error": {"message": f"there is no order {order_id}", "retryable": False}}
    return {"order_id": order_id, **ORDERS[order_id]}


def create_ticket(order_id, reason):
    tickets.append((order_id, reason))
    return {"ticket": f"T-{len(tickets)}", "order_id": order_id}


RUN = {"lookup_order": lookup_order, "create_ticket": create_ticket}


def complete(messages):
    body = json.dumps({"model": MODEL, "messages": messages, "tools": OFFERED, "temperature": 0})
    headers = {"content-type": "application/json", "authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', 'none')}"}
    request = urllib.request.Request(f"{BASE_URL}/chat/completions", body.encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)["choices"][0]["message"]


def chat(message, conversation_id):
    talk = conversations.setdefault(conversation_id, [])
    messages = [{"role": "system", "content": PROMPT}, *talk, {"role": "user", "content": message}]
    for _ in range(MOST_STEPS):
        said = complete(messages)
        messages.append({key: value for key, value in said.items() if value is not None})
        calls = said.get("tool_calls") or []
        if not calls:
            talk += [{"role": "user", "content": message}, {"role": "assistant", "content": said["content"]}]
            return said["content"]
        for call in calls:
            try:
                result = RUN[call["function"]["name"]](**json.loads(call["function"]["arguments"]))
            except (KeyError, TypeError, ValueError) as why:
                result = {"error": {"message": f"the call was not understood: {why!r}", "retryable": True}}
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)})
    raise RuntimeError("no answer was found in time")


class Desk(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        try:
            if self.path == "/reset":
                conversations.clear()
                tickets.clear()
                status, reply = 200, {"ok": True}
            else:
                status, reply = 200, {"answer": chat(asked["message"], asked["conversation_id"])}
        except (urllib.error.URLError, RuntimeError) as why:
            status, reply = 502, {"error": str(why)}
        body = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = HTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8110"))), Desk)
    print(f"listening at {server.server_address[1]}", file=sys.stderr, flush=True)
    server.serve_forever()
