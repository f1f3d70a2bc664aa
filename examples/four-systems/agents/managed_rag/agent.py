"""An assistant that asks a managed retrieval service and answers with the document that its tool makes: FastAPI and the
anthropic client.

    uvicorn agent:app --port 8000
    POST /chat {"message": "...", "session_id": "...", "context": {...}}

ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL and MODEL name the model; NUCLIA_URL, NUCLIA_KB, NUCLIA_TOKEN and NUCLIA_ACCOUNT the
service.
"""

import json
import os
from pathlib import Path

from anthropic import Anthropic, APIError
from fastapi import FastAPI, HTTPException
from nuclia import Config, Nuclia, failed
from pydantic import BaseModel

MODEL = os.environ.get("MODEL", "claude-sonnet-4-5")
MOST_STEPS = 8
MOST_RETRIES = 2
REFUSAL = "I found nothing about this in the knowledge base."
PROMPT = f"""You answer questions from the documents of a company, which you do not know: a retrieval service does.

1. Call nuclia_rag with the question, complete and understandable alone.
2. On success the result names an artifact, which is the finished answer. Write its embed on a line alone and retell nothing.
3. If no answer was found, reply with this sentence alone: {REFUSAL}
4. After an error say that the documents could not be asked, and why. Do not answer from memory."""
TOOL = {
    "name": "nuclia_rag",
    "description": "Asks the retrieval service of the company's documents. `query` is one complete question.",
    "input_schema": {
        "type": "object",
        "properties": {"query": {"type": "string", "minLength": 1, "maxLength": 1000}},
        "required": ["query"],
        "additionalProperties": False,
    },
}


class Session:
    def __init__(self):
        self.history = []
        self.versions = 0


class Asked(BaseModel):
    message: str
    session_id: str
    context: dict = {}


app = FastAPI()
model = Anthropic()
service = Nuclia(Config.of_environment())
sessions: dict[str, Session] = {}


def run_tool(session, made, retries, arguments, context):
    """Asks the service; what the model is told. The answer itself stays in the artifact."""
    query = arguments.get("query")
    if not isinstance(query, str) or not 0 < len(query.strip()) <= 1000:
        result, answer = failed({}, "`query` is no question", transient=True)
    else:
        result, answer = service.ask(" ".join(query.split()), context)
    if answer is None:
        if "error" in result:
            result["error"]["retryable"] &= next(retries, False)
        return result
    session.versions += 1
    base, longest = service.config.output_filename_base, service.config.artifact_description_query_max_length
    artifact = {"filename": f"{base}.md", "version": session.versions, "mime_type": "text/markdown",
                "description": query[:longest], **answer}
    embed = f"«artifact_content:{artifact['filename']}:{artifact['version']}»"
    made[embed] = artifact
    named = {key: artifact[key] for key in ("filename", "version", "mime_type")}
    return {**result, "response_artifact": named, "message_to_llm": f"Put the answer into your reply with this embed: {embed}"}


@app.post("/chat")
def chat(asked: Asked):
    session = sessions.setdefault(asked.session_id, Session())
    messages = [*session.history, {"role": "user", "content": asked.message}]
    made, called, reminded, retries = {}, False, set(), iter([True] * MOST_RETRIES)
    for _ in range(MOST_STEPS):
        try:
            said = model.messages.create(model=MODEL, max_tokens=700, system=PROMPT, messages=messages, tools=[TOOL])
        except APIError as why:
            raise HTTPException(502, "The language model cannot be reached.") from why
        messages.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in said.content]})
        calls = [block for block in said.content if block.type == "tool_use"]
        if calls:
            called = True
            results = [(call.id, run_tool(session, made, retries, call.input, asked.context)) for call in calls]
            messages.append({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": call, "content": json.dumps(result, ensure_ascii=False),
                 "is_error": result["status"] == "error"}
                for call, result in results]})
            continue
        text = "".join(block.text for block in said.content if block.type == "text")
        missing = next((embed for embed in made if embed not in text), None)
        reminder = "nuclia_rag was not called. Call it now with the question." if not called else None
        reminder = reminder or (missing and f"The answer lacks what the documents say. Reply again with {missing} on a line.")
        if not reminder:
            break
        if reminder in reminded:
            raise HTTPException(502, "No answer was given: " + ("no_artifact" if called else "no_tool_call"))
        reminded.add(reminder)
        messages.append({"role": "user", "content": reminder})
    else:
        raise HTTPException(502, "No answer was found in time.")
    answer = text
    for embed, artifact in made.items():
        answer = answer.replace(embed, artifact["markdown"])
    session.history += [{"role": "user", "content": asked.message}, {"role": "assistant", "content": answer}]
    sources = [
        {"id": f"{Path(page['filename']).stem}#page={page['page']}", "filename": page["filename"], "page": page["page"], "url": page["url"]}
        for artifact in made.values() for page in artifact["sources"]
    ]
    artifacts = [{key: artifact[key] for key in ("filename", "version", "mime_type", "description")} for artifact in made.values()]
    return {"answer": answer, "sources": sources, "artifacts": artifacts, "session_id": asked.session_id}


@app.get("/health")
def health():
    return {"ok": True}


@app.post("/reset")
def reset():
    """For tests: forgets every session."""
    sessions.clear()
    return {"ok": True}
