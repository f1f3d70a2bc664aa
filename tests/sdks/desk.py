"""What the agents in Python share: their documents, and one line of JSON in and out for each turn."""
import json
import os
import sys

MODEL = os.environ.get("MODEL", "gpt-4o-mini")
SYSTEM = "You answer questions about bicycles. Always search the documents first."
SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"], "additionalProperties": False}
DOCUMENT = "The helmet is free with every bicycle."


def search_docs(query: str) -> str:
    """Searches the documents."""
    return json.dumps({"chunks": [{"id": "helmet.md#1", "text": DOCUMENT}]})


def serve(answer):
    for line in sys.stdin:
        print(json.dumps({"answer": answer(json.loads(line)["message"])}), flush=True)
