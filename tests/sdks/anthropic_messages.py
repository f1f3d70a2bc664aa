"""anthropic: messages.create with a tool."""
from anthropic import Anthropic
from desk import MODEL, SCHEMA, SYSTEM, search_docs, serve

client = Anthropic()
TOOL = {"name": "search_docs", "description": "Searches the documents.", "input_schema": SCHEMA}


def answer(question):
    messages = [{"role": "user", "content": question}]
    while True:
        said = client.messages.create(model=MODEL, max_tokens=500, system=SYSTEM, messages=messages, tools=[TOOL])
        calls = [block for block in said.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in said.content if block.type == "text")
        messages.append({"role": "assistant", "content": said.content})
        messages.append({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": call.id, "content": search_docs(**call.input)} for call in calls]})


serve(answer)
