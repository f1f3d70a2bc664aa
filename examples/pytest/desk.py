"""A help desk for parcels: a function that a test can call, with the `openai` client as it is.

Nothing here knows ragcheck. The client reads OPENAI_BASE_URL and OPENAI_API_KEY, as everywhere.
"""

import json

from openai import OpenAI

MODEL = "gpt-4o-mini"
PROMPT = "You answer questions about parcels. Look an order up with lookup_order before you say anything about it."
ORDERS = {"A-1042": "on its way, comes on 24 November", "A-1077": "lost between two depots"}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "lookup_order",
            "description": "Looks an order up by its number.",
            "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]},
        },
    }
]


def answer(question):
    client = OpenAI()
    messages = [{"role": "system", "content": PROMPT}, {"role": "user", "content": question}]
    for _ in range(5):
        said = client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS).choices[0].message
        messages.append(said.model_dump(exclude_none=True))
        if not said.tool_calls:
            return said.content
        for call in said.tool_calls:
            order_id = json.loads(call.function.arguments)["order_id"]
            result = ORDERS.get(order_id, f"there is no order {order_id}")
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    raise RuntimeError("no answer within 5 steps")
