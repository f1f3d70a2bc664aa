"""A help desk for a kayak rental: FastAPI, the openai client as it is, and four tools.

Nothing here knows ragcheck. Two base URLs from the environment decide whether the model and the search service are the
real ones or a proxy:

    OPENAI_BASE_URL, OPENAI_API_KEY           read by the openai client itself
    PERPLEXITY_BASE_URL, PERPLEXITY_API_KEY   for the search service, which the same client can call
    MODEL                                     the model's name
"""

import json
import os
import re
from datetime import date
from pathlib import Path

from fastapi import FastAPI, HTTPException
from openai import APIError, OpenAI
from pydantic import BaseModel

MODEL = os.environ.get("MODEL", "gpt-4o-mini")
MOST_STEPS = 10
PROMPT = """You answer questions of the guests of Tideway Kayaks. Today is {today}.
Search the documents with search_docs before anything else. Only when they are not enough, ask web_search, and keep
keywords for what it gave with remember. Give every answer with final_answer, and name its sources there."""
REMINDER = "No answer has reached the guest. Call search_docs if you have not, then final_answer."

TOOLS = {
    "search_docs": ("Searches the rental's documents.", {"query": {"type": "string"}, "top_k": {"type": "integer"}}, ["query"]),
    "web_search": ("Asks the web.", {"query": {"type": "string"}, "context": {"type": "string"}}, ["query"]),
    "remember": (
        "Keeps keywords for an answer of web_search.",
        {"keywords": {"type": "array", "items": {"type": "string"}}, "query": {"type": "string"},
         "perplexity_result_id": {"type": "string"}},
        ["keywords", "perplexity_result_id"],
    ),
    "final_answer": (
        "Gives the answer to the guest.",
        {"answer": {"type": "string"}, "sources": {"type": "array", "items": {"type": "object"}},
         "confidence_score": {"type": "number"}, "used_internal_kb": {"type": "boolean"},
         "used_external_kb": {"type": "boolean"}},
        ["answer", "sources"],
    ),
}
OFFERED = [
    {"type": "function", "function": {"name": name, "description": about, "parameters": {
        "type": "object", "properties": properties, "required": required}}}
    for name, (about, properties, required) in TOOLS.items()
]


class Asked(BaseModel):
    message: str
    conversation_id: str


app = FastAPI()
model = OpenAI()
web = OpenAI(
    base_url=os.environ.get("PERPLEXITY_BASE_URL", "https://api.perplexity.ai/v1"),
    api_key=os.environ.get("PERPLEXITY_API_KEY", "none"),
)
conversations: dict[str, list[dict]] = {}
learned: dict[str, list[str]] = {}


def passages():
    """The documents in paragraphs, each with an id that stays."""
    for file in sorted((Path(__file__).parent / "knowledge").glob("*.md")):
        title, *paragraphs = re.split(r"\n\s*\n", file.read_text("utf-8").strip())
        for number, text in enumerate(paragraphs, 1):
            yield {"id": f"{file.stem}#{number}", "title": title.lstrip("# "), "text": " ".join(text.split())}


def words(text):
    return {word for word in re.findall(r"[a-z0-9]+", text.lower()) if len(word) > 2}


def search_docs(query, top_k=3, **_):
    wanted = words(query)
    scored = [(len(wanted & words(chunk["title"] + " " + chunk["text"])), chunk) for chunk in passages()]
    best = sorted((pair for pair in scored if pair[0]), key=lambda pair: (-pair[0], pair[1]["id"]))
    return {"chunks": [chunk for _, chunk in best[:top_k]]}


def web_search(query, **_):
    answer = web.responses.create(model="perplexity/sonar", input=query, tools=[{"type": "web_search"}])
    document = answer.model_dump()
    found = [result for item in document["output"] for result in item.get("results") or []]
    citations = [{"title": result["title"], "url": result["url"]} for result in found]
    result_id = f"web-{len(learned) + 1}"
    learned[result_id] = []
    return {"result_id": result_id, "answer": answer.output_text, "citations": citations}


def remember(keywords, perplexity_result_id, **_):
    if perplexity_result_id not in learned:
        return {"error": {"message": f"there is no result {perplexity_result_id}", "retryable": True}}
    learned[perplexity_result_id].extend(keywords)
    return {"indexed": True, "keyword_count": len(keywords)}


RUN = {"search_docs": search_docs, "web_search": web_search, "remember": remember}


@app.post("/chat")
def chat(asked: Asked):
    talk = conversations.setdefault(asked.conversation_id, [])
    messages = [{"role": "system", "content": PROMPT.format(today=date.today().isoformat())}, *talk]
    messages.append({"role": "user", "content": asked.message})
    for _ in range(MOST_STEPS):
        try:
            completion = model.chat.completions.create(model=MODEL, messages=messages, tools=OFFERED, temperature=0)
        except APIError as why:
            raise HTTPException(502, f"the model is not available: {why}") from why
        said = completion.choices[0].message
        messages.append(said.model_dump(exclude_none=True))
        for call in said.tool_calls or []:
            try:
                arguments = json.loads(call.function.arguments)
                if call.function.name == "final_answer":
                    talk += [{"role": "user", "content": asked.message},
                             {"role": "assistant", "content": arguments["answer"]}]
                    return {"answer": arguments["answer"]}
                result = RUN[call.function.name](**arguments)
            except APIError as why:
                result = {"error": {"message": f"the web is not available: {why}", "retryable": False}}
            except (KeyError, TypeError, ValueError) as why:
                result = {"error": {"message": f"the call was not understood: {why!r}", "retryable": True}}
            messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)})
        if not said.tool_calls:
            messages.append({"role": "system", "content": REMINDER})
    raise HTTPException(500, "no answer was found in time")


@app.post("/reset")
def reset():
    conversations.clear()
    learned.clear()
    return {"ok": True}
