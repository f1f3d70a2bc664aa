"""The openai client by Responses; each request continues the one before by its id."""

import json

from desk import DOCUMENT, PROMPT, serve
from openai import OpenAI

client = OpenAI()
SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"], "additionalProperties": False}
TOOLS = [{"type": "function", "name": "search_docs", "description": "Searches.", "parameters": SCHEMA, "strict": True}]
FOUND = json.dumps({"results": [{"title": "Shipping", "url": "https://example.org/s", "snippet": DOCUMENT}]})


def answer(message):
    asked = {"input": message}
    while True:
        response = client.responses.create(model="gpt-5-mini", instructions=PROMPT, tools=TOOLS, **asked)
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return response.output_text
        results = [{"type": "function_call_output", "call_id": call.call_id, "output": FOUND} for call in calls]
        asked = {"input": results, "previous_response_id": response.id}


serve(answer)
