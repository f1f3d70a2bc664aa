"""The anthropic client, streaming; results as documents of LangChain."""

import json

from anthropic import Anthropic
from desk import DOCUMENT, PROMPT, serve

client = Anthropic()
SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
TOOLS = [{"name": "search_docs", "description": "Searches.", "input_schema": SCHEMA}]
FOUND = json.dumps([{"page_content": DOCUMENT, "metadata": {"source": "shipping.md"}}])


def answer(message):
    messages = [{"role": "user", "content": message}]
    while True:
        asked = {"model": "claude-sonnet-4-5", "max_tokens": 500, "system": PROMPT, "messages": messages, "tools": TOOLS}
        with client.messages.stream(**asked) as stream:
            said = stream.get_final_message().content
        calls = [block for block in said if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in said)
        messages.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in said]})
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": FOUND} for call in calls]
        messages.append({"role": "user", "content": results})


serve(answer)
