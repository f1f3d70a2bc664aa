"""anthropic: messages.stream with a tool; results as documents of LangChain."""
import json

from anthropic import Anthropic
from desk import DOCUMENT, MODEL, SCHEMA, SYSTEM, serve

client = Anthropic()
TOOL = {"name": "search_docs", "description": "Searches the documents.", "input_schema": SCHEMA}
FOUND = json.dumps([{"page_content": DOCUMENT, "metadata": {"source": "helmet.md"}}])


def answer(question):
    messages = [{"role": "user", "content": question}]
    while True:
        with client.messages.stream(model=MODEL, max_tokens=500, system=SYSTEM, messages=messages, tools=[TOOL]) as stream:
            said = stream.get_final_message().content
        calls = [block for block in said if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in said)
        messages.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in said]})
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": FOUND} for call in calls]
        messages.append({"role": "user", "content": results})


serve(answer)
