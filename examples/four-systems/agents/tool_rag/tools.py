"""The tools: what the model may pass to each, and what each gives back. A call that is refused says why."""

import os
import re
import unicodedata
from typing import Annotated, Literal

import telemetry
from knowledge import terms
from openai import APIConnectionError, APIStatusError, OpenAI
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

HOSTILE = [
    ("SQL", r"\bunion\b.+\bselect\b|['\";]\s*(--|or\b|drop\b|delete\b|insert\b)|\bdrop\s+table\b"),
    ("a script", r"<\s*/?\s*(script|iframe|img|svg)\b|javascript:|on(error|load)\s*="),
    ("a path", r"(\.\.[\\/]){2,}|/etc/(passwd|shadow)|file://"),
    ("a template", r"\{\{.*\}\}|\$\{|<%"),
    ("a shell command", r"\$\(|`[^`]+`|;\s*(rm|curl|wget|cat)\b|\|\s*(sh|bash)\b"),
    ("orders to the model", r"\b(ignore|disregard|forget)\b.{0,40}\b(instructions|prompts?|rules)\b|system prompt"),
]
GENERIC = set("answer article case data detail details document fact general guide help info information item latest news number"
              " overview page part point question recent report result search site source summary text thing topic update use"
              " user way web word year".split())

Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


class Refused(Exception):
    """A call that cannot be run as it is."""

    def __init__(self, cause, message, guidance="Correct the parameters and call again."):
        super().__init__(message)
        self.cause, self.guidance = cause, guidance


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class KnowledgeBaseSearch(Arguments):
    """Searches our documents and what was learned from outside. Always first, with words made for the documents."""

    query: Line
    kb_id: str = Field("default_kb", max_length=64)
    top_k: int = Field(5, ge=1, le=20)


class PerplexitySearch(Arguments):
    """Asks the web. Only if the documents do not hold the fact. Another query than the one for the documents."""

    query: Line
    context: str = Field("", max_length=4000)


class IndexKeywords(Arguments):
    """Keeps keywords for an answer of perplexity_search, so that later searches find it. After each such answer.

    Three to ten terms of 2 to 50 characters: names, products, rules, places with their subject. Nothing that fits any text."""

    keywords: list[str] = Field(min_length=3, max_length=10)
    query: Line
    perplexity_result_id: str = Field(max_length=64)


class Source(Arguments):
    kind: Literal["internal", "external"]
    id: str = Field(max_length=2000)
    title: str = Field("", max_length=500)


class GenerateResponse(Arguments):
    """Gives the answer to the user. The only way to do so, alone and last."""

    answer: str = Field(min_length=1, max_length=20_000)
    sources: list[Source] = Field(max_length=40)
    confidence_score: float | None = Field(None, ge=0, le=1)
    used_internal_kb: bool
    used_external_kb: bool


TOOLS = {
    "knowledge_base_search": KnowledgeBaseSearch,
    "perplexity_search": PerplexitySearch,
    "index_keywords": IndexKeywords,
    "generate_response": GenerateResponse,
}
OFFERED = [
    {"type": "function", "function": {"name": name, "description": " ".join(shape.__doc__.split()),
                                      "parameters": shape.model_json_schema()}}
    for name, shape in TOOLS.items()
]


def plain(text):
    """Text on one line, without characters that hide something."""
    kept = "".join(letter for letter in unicodedata.normalize("NFKC", text) if unicodedata.category(letter)[0] != "C" or letter in "\n\t")
    return " ".join(kept.split())


def guarded(name, text):
    text = plain(text)
    for kind, pattern in HOSTILE:
        if re.search(pattern, text, re.IGNORECASE):
            raise Refused("hostile", f"`{name}` holds what looks like {kind}", "Search with plain words.")
    return text


class Toolbox:
    """The tools of one session. They know what the model was shown."""

    def __init__(self, documents, index):
        self.documents, self.index = documents, index
        self.shown = {"internal": set(), "external": set()}
        self.results = {}
        self.web = OpenAI(
            base_url=os.environ.get("PERPLEXITY_BASE_URL", "https://api.perplexity.ai/v1"),
            api_key=os.environ.get("PERPLEXITY_API_KEY", "none"),
        )

    def knowledge_base_search(self, call):
        query = guarded("query", call.query)
        if guarded("kb_id", call.kb_id) != "default_kb":
            raise Refused("unknown_kb", "there is no knowledge base of that name", "Leave `kb_id` out.")
        with telemetry.search("default_kb", query) as span:
            entries = self.index.find(query)[: (call.top_k + 1) // 2]
            learned = [
                {"id": entry.id, "title": entry.query, "text": entry.answer, "kind": "learned",
                 "citations": [page["url"] for page in entry.citations]}
                for entry in entries
            ]
            found = [dict(passage, kind="document") for passage in self.documents.search(query, call.top_k)]
            chunks = (learned + found)[: call.top_k]
            for rank, chunk in enumerate(chunks, 1):
                chunk["score"] = round(1 / rank, 2)
                self.shown["internal"].add(chunk["id"])
                self.shown["external"].update(chunk.get("citations", []))
            telemetry.found(span, chunks, [passage["id"] for passage in found], entries)
        return {"chunks": chunks, "metadata": {"kb_id": "default_kb", "query": query, "found": len(chunks)}}

    def perplexity_search(self, call):
        query, context = guarded("query", call.query), guarded("context", call.context)
        asked = f"{query}\n\nKnown already:\n{context}" if context else query
        try:
            answer = self.web.responses.create(model="perplexity/sonar", input=asked, tools=[{"type": "web_search"}])
        except (APIConnectionError, APIStatusError) as why:
            # The client has retried already.
            status = getattr(why, "status_code", None)
            return {"error": {"cause": "outage", "message": f"the search service cannot be reached ({status})",
                              "guidance": "Answer from the knowledge base and say what is missing.", "retryable": False}}
        pages = [page for item in answer.model_dump()["output"] for page in item.get("results") or []]
        citations = [{"title": page["title"], "url": page["url"]} for page in pages]
        result_id = f"result-{len(self.results) + 1}"
        self.results[result_id] = {"query": query, "answer": answer.output_text, "citations": citations}
        self.shown["external"].update(page["url"] for page in citations)
        return {"result_id": result_id, "answer": answer.output_text, "citations": citations,
                "metadata": {"model": answer.model}}

    def index_keywords(self, call):
        result = self.results.get(call.perplexity_result_id)
        if result is None:
            raise Refused("unknown_result", f"there is no result {call.perplexity_result_id}", "Copy the `result_id`.")
        keywords = []
        for given in call.keywords:
            keyword = guarded("keywords", given).lower()
            if not 2 <= len(keyword) <= 50:
                raise Refused("length", f"the keyword {keyword!r} has {len(keyword)} characters", "Use 2 to 50.")
            if set(terms(keyword)) <= GENERIC:
                raise Refused("generic_keyword", f"the keyword {keyword!r} fits any text", "Name the subject itself.")
            if keyword not in keywords:
                keywords.append(keyword)
        if len(keywords) < 3:
            raise Refused("length", "some keywords are the same", "Give at least three that differ.")
        merged = self.index.add(result, guarded("query", call.query), keywords)
        return {"indexed": True, "merged": merged, "keyword_count": len(keywords)}

    def generate_response(self, call):
        for source in call.sources:
            if source.id not in self.shown[source.kind]:
                raise Refused("unknown_source", f"the {source.kind} source {source.id[:80]!r} was never shown", "Cite what the tools gave.")
        for number in re.findall(r"\[(\d+)\]", call.answer):
            if not 1 <= int(number) <= len(call.sources):
                raise Refused("citation_number", f"[{number}] stands for no source", "Number the sources from 1.")
        for flag, kind in [("used_internal_kb", "internal"), ("used_external_kb", "external")]:
            if getattr(call, flag) != any(source.kind == kind for source in call.sources):
                raise Refused("flags", f"`{flag}` does not agree with `sources`", f"Correct `{flag}` or `sources`.")
        return {"accepted": True}
