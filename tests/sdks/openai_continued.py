"""openai: responses.create; each request continues the one before by its id, and results are those of a web search."""
import json

from desk import DOCUMENT, MODEL, SCHEMA, SYSTEM, serve
from openai import OpenAI

client = OpenAI()
TOOL = {"type": "function", "name": "search_docs", "description": "Searches the documents.", "parameters": SCHEMA, "strict": True}
FOUND = json.dumps({"results": [{"title": "Helmet", "url": "https://example.org/helmet", "snippet": DOCUMENT}]})


def answer(question):
    asked = {"input": question}
    while True:
        response = client.responses.create(model=MODEL, instructions=SYSTEM, tools=[TOOL], **asked)
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return response.output_text
        results = [{"type": "function_call_output", "call_id": call.call_id, "output": FOUND} for call in calls]
        asked = {"input": results, "previous_response_id": response.id}


serve(answer)
