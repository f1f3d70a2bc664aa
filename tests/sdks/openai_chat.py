"""openai: chat.completions.create with a tool."""
import json

from desk import MODEL, SCHEMA, SYSTEM, search_docs, serve
from openai import OpenAI

client = OpenAI()
TOOL = {"type": "function", "function": {"name": "search_docs", "description": "Searches the documents.", "parameters": SCHEMA}}


def answer(question):
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]
    while True:
        said = client.chat.completions.create(model=MODEL, messages=messages, tools=[TOOL]).choices[0].message
        if not said.tool_calls:
            return said.content
        messages.append(said)
        for call in said.tool_calls:
            found = search_docs(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": found})


serve(answer)
