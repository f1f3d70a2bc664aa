"""The managed retrieval service: its configuration, one question, and an answer with numbered citations."""

import os
import unicodedata
from dataclasses import dataclass, field
from urllib.parse import quote

import httpx


class Misconfigured(Exception):
    pass


class Unavailable(Exception):
    def __init__(self, why, transient):
        super().__init__(why)
        self.transient = transient


def failed(result, why, transient=False):
    """The result of a call that gave nothing."""
    error = {"message": why, "retryable": transient}
    return {**result, "status": "error", "error": error, "message_to_llm": f"The documents could not be asked: {why}."}, None


@dataclass
class Config:
    """What one knowledge box is asked with. The secrets are read from the environment and go to the service alone."""

    base_url: str
    kb_id: str
    token: str
    api_key: str
    top_k: int = 5
    output_filename_base: str = "nuclia_answer"
    artifact_description_query_max_length: int = 150
    inline_citation_links: bool = True
    template_parameters: list = field(default_factory=list)
    prompt_rephrasing: dict | None = None
    filter_expression_template: dict | None = None
    audit_metadata: dict = field(default_factory=lambda: {"enabled": False, "fields": {}})

    def __post_init__(self):
        wrong = [name for name in ("base_url", "kb_id", "token", "api_key") if not getattr(self, name)]
        if not 1 <= self.top_k <= 100:
            wrong.append("top_k")
        if self.prompt_rephrasing and "{query}" not in self.prompt_rephrasing.get("template", ""):
            wrong.append("prompt_rephrasing")
        if wrong:
            raise Misconfigured(f"missing or wrong: {', '.join(wrong)}")

    @classmethod
    def of_environment(cls, **more):
        url = os.environ.get("NUCLIA_URL", "https://europe-1.nuclia.cloud/api/v1")
        token, key = os.environ.get("NUCLIA_TOKEN", "none"), os.environ.get("NUCLIA_ACCOUNT", "none")
        return cls(url.rstrip("/"), os.environ.get("NUCLIA_KB", ""), token, key, **more)


def filled(template, values):
    """A template with its placeholders filled in; the names of those without a value."""
    if isinstance(template, dict):
        parts = {key: filled(value, values) for key, value in template.items()}
        return {key: part for key, (part, _) in parts.items()}, [name for _, missing in parts.values() for name in missing]
    if isinstance(template, list):
        parts = [filled(value, values) for value in template]
        return [part for part, _ in parts], [name for _, missing in parts for name in missing]
    if not isinstance(template, str):
        return template, []
    missing, only = [], template[1:-1] if template.startswith("{") and template.endswith("}") else None
    if only in values:
        return values[only], []
    for name in {part.split("}")[0] for part in template.split("{")[1:]}:
        if name in values:
            template = template.replace("{" + name + "}", str(values[name]))
        else:
            missing.append(name)
    return template, missing


def parameters(config, context):
    """The template parameters that a conversation gives, and the required ones that it lacks."""
    values, lacking = {}, []
    for declared in config.template_parameters:
        value = context
        for step in declared.get("from", declared["name"]).split("."):
            value = value.get(step) if isinstance(value, dict) else None
        value = declared.get("default") if value is None else value
        if value is not None:
            values[declared["name"]] = value
        elif declared.get("required"):
            lacking.append(declared["name"])
    return values, lacking


class Nuclia:
    def __init__(self, config):
        self.config = config
        self.http = httpx.Client(timeout=30, transport=httpx.HTTPTransport(retries=2))

    def ask(self, query, context):
        """One question; the result of the tool, and the answer in Markdown with its sources."""
        config = self.config
        values, lacking = parameters(config, context)
        if lacking:
            return failed({}, f"{', '.join(lacking)} is not known")
        result = {}
        asked = query
        if config.prompt_rephrasing:
            asked, _ = filled(config.prompt_rephrasing["template"], {**values, "query": query})
        body = {"query": asked, "citations": True, "top_k": config.top_k, "show": ["basic", "values"]}
        if config.filter_expression_template:
            expression, missing = filled(config.filter_expression_template, values)
            result["filter_applied"] = not missing
            if missing:
                result["missing_filter_parameters"] = missing
            else:
                result["applied_filter"] = body["filter_expression"] = expression
        if config.audit_metadata.get("enabled"):
            fields = {key: filled(value, {**values, "query": query}) for key, value in config.audit_metadata["fields"].items()}
            body["audit_metadata"] = {key: str(value) for key, (value, missing) in fields.items() if not missing}
        try:
            answer = self.post(body)
        except Unavailable as why:
            return failed(result, str(why), why.transient)
        result["nuclia_learning_id"] = answer.get("learning_id")
        if answer["status"] == "error":
            return failed(result, "the service failed", transient=True)
        if answer["status"] != "success" or not answer["answer"].strip():
            return {**result, "status": "no_answer_found", "message_to_llm": "The documents hold no answer. Say so."}, None
        return {**result, "status": "success"}, cited(answer, config.inline_citation_links)

    def post(self, body):
        url = f"{self.config.base_url}/kb/{quote(self.config.kb_id, safe='')}/ask"
        headers = {"x-nuclia-serviceaccount": f"Bearer {self.config.token}", "x-synchronous": "true"}
        why = "no answer"
        for _ in range(3):
            try:
                response = self.http.post(url, json=body, headers=headers)
            except httpx.TransportError:
                continue
            if response.status_code == 200:
                return response.json()
            # Neither the address nor the body of the service may reach a reader.
            why = f"HTTP {response.status_code}"
            if response.status_code not in (429, 500, 502, 503, 504):
                raise Unavailable(why, transient=False)
        raise Unavailable(why, transient=True)


def pages(answer):
    """Each passage by its id: the file, the page, its text."""
    found = {}
    for resource_id, resource in answer["retrieval_results"]["resources"].items():
        for field_id, one in resource["fields"].items():
            name = field_id.split("/")[-1]
            file = resource["data"]["files"].get(name, {}).get("value", {}).get("file", {}).get("filename")
            for paragraph_id, paragraph in one["paragraphs"].items():
                page = paragraph["position"].get("page_number")
                if file is not None and page is not None:
                    path = "/".join(quote(part, safe="") for part in (resource_id, *field_id.strip("/").split("/"), file))
                    found[paragraph_id] = {"filename": file, "page": page + 1, "text": paragraph["text"],
                                           "url": f"/gateway/download/{path}#page={page + 1}"}
    return found


def whole(text, position):
    """The position after the character that a reader sees: accents and joined pictures are not split."""
    joined = "\u200d\ufe0f"
    while 0 < position < len(text):
        here, before = text[position], text[position - 1]
        if unicodedata.combining(here) or here in joined or before == "\u200d" or "\U0001f3fb" <= here <= "\U0001f3ff":
            position += 1
        else:
            break
    return position


def cited(answer, links):
    """The text with a marker behind everything that is cited, one number for each page, and a list of the pages."""
    text, known, numbers, marks = answer["answer"], pages(answer), {}, {}
    spans = [
        (end, paragraph) for paragraph, ranges in answer.get("citations", {}).items() for start, end in ranges if paragraph in known
    ]
    for end, paragraph in sorted(spans, key=lambda span: span[0]):
        page = known[paragraph]
        number = numbers.setdefault((page["filename"], page["page"]), len(numbers) + 1)
        page["number"] = number
        marks.setdefault(whole(text, min(end, len(text))), {})[number] = page["url"]
    for position in sorted(marks, reverse=True):
        marker = "".join(f"[[{number}]]({url})" if links else f"[{number}]" for number, url in sorted(marks[position].items()))
        text = text[:position] + marker + text[position:]
    sources = {}
    for page in known.values():
        if "number" in page:
            sources.setdefault(page["number"], page)
    listed = [sources[number] for number in sorted(sources)]
    lines = [f"{page['number']}. [{page['filename']}]({page['url']}), page {page['page']}" for page in listed]
    markdown = "\n\n".join([text, "## Sources", "\n".join(lines)]) if lines else text
    return {"markdown": markdown, "sources": listed}
