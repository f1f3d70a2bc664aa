"""openai: responses.create with a tool."""
import json

from desk import MODEL, SCHEMA, SYSTEM, search_docs, serve
from openai import OpenAI

client = OpenAI()
TOOL = {"type": "function", "name": "search_docs", "description": "Searches the documents.", "parameters": SCHEMA, "strict": True}


def answer(question):
    items = [{"role": "user", "content": question}]
    while True:
        response = client.responses.create(model=MODEL, instructions=SYSTEM, input=items, tools=[TOOL])
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return response.output_text
        items += response.output
        for call in calls:
            found = search_docs(**json.loads(call.arguments))
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": found})


serve(answer)
