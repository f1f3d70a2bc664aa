"""Reads the telemetry of three SDKs, and of any-agent, without ragcheck: one JSON line for each trace, in the order of their beginnings.

usage: telemetry.py FILE. Needs the standard library alone. A line holds the question and the answer, what was asked before, the
completions (model, input and output tokens) and the runs of tools (name, arguments, result or null, passages).
"""

import email
import json
import sys


def fields(data):
    """The fields of a protobuf message: number and value."""
    at = 0

    def varint():
        nonlocal at
        shift = value = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        elif key & 7 == 2:
            size = varint()
            yield key >> 3, data[at:at + size]
            at += size
        else:
            size = 8 if key & 7 == 1 else 4
            yield key >> 3, int.from_bytes(data[at:at + size], "little")
            at += size


def protobuf_spans(data):
    for _, resource in fields(data):
        for number, scope in fields(resource):
            for inner, span in fields(scope) if number == 2 else []:
                if inner != 2:
                    continue
                one = {"attributes": {}, "parent": "", "failed": False}
                for number, value in fields(span):
                    if number == 9:
                        pair = dict(fields(value))
                        one["attributes"][pair[1].decode()] = next(
                            (v.decode() if n == 1 else v for n, v in fields(pair[2])), None)
                    elif number == 15:
                        one["failed"] = dict(fields(value)).get(3) == 2
                    elif number in (1, 2, 4, 5, 7):
                        name = {1: "trace", 2: "id", 4: "parent", 5: "name", 7: "start"}[number]
                        one[name] = value.hex() if number < 5 else value.decode() if number == 5 else value
                yield one


def json_spans(document):
    for resource in document["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                attributes = {a["key"]: next(iter(a["value"].values())) for a in span["attributes"]}
                yield {"trace": span["traceId"], "id": span["spanId"], "parent": span.get("parentSpanId", ""),
                       "name": span["name"], "start": int(span["startTimeUnixNano"]), "attributes": attributes,
                       "failed": span["status"].get("code") == 2}


def langfuse(span):
    a = span["attributes"]
    given = {key: json.loads(value) if value and value[0] in "[{" else value for key, value in (
        (name, a.get("langfuse.observation." + name, "")) for name in ("input", "output", "usage_details"))}
    kind = a["langfuse.observation.type"]
    if kind == "generation":
        usage = given["usage_details"]
        asked = [m["content"] for m in given["input"]["messages"] if m["role"] == "user"]
        said = given["output"]["content"]
        return "model", (a["langfuse.observation.model.name"], usage["prompt_tokens"], usage["completion_tokens"], asked, said)
    if kind == "tool":
        return "tool", (span["name"], given["input"]["kwargs"], None if span["failed"] else given["output"])
    if kind == "retriever":
        return "search", [(d["id"], d["text"]) for d in given["output"]]


def ai_sdk(span):
    a = span["attributes"]
    kind = a["ai.operationId"]
    if kind == "ai.generateText.doGenerate":
        asked = ["".join(p["text"] for p in m["content"]) for m in json.loads(a["ai.prompt.messages"]) if m["role"] == "user"]
        return "model", (a["ai.response.model"], int(a["ai.usage.inputTokens"]), int(a["ai.usage.outputTokens"]), asked, a.get("ai.response.text"))
    if kind == "ai.toolCall":
        result = None if span["failed"] else json.loads(a["ai.toolCall.result"])
        return "tool", (a["ai.toolCall.name"], json.loads(a["ai.toolCall.args"]), result)


def langsmith(run):
    inputs, outputs = run.get("inputs") or {}, run.get("outputs") or {}
    if run["run_type"] == "llm":
        if "generations" in outputs:
            message = outputs["generations"][0][0]["message"]["kwargs"]
            usage, model = message["usage_metadata"], message["response_metadata"]["model_name"]
            asked = [m["kwargs"]["content"] for m in inputs["messages"][0] if m["kwargs"]["type"] == "human"]
        else:
            message, usage, model = outputs["choices"][0]["message"], outputs["usage_metadata"], outputs["model"]
            asked = [m["content"] for m in inputs["messages"] if m["role"] == "user"]
        return "model", (model, usage["input_tokens"], usage["output_tokens"], asked, message["content"])
    if run["run_type"] == "tool":
        result = outputs.get("output", outputs)
        if isinstance(result, dict) and result.get("type") == "tool":
            result = json.loads(result["content"])
        return "tool", (run["name"], inputs, None if run.get("error") else result)
    if run["run_type"] == "retriever":
        return "search", [(d["metadata"]["id"], d["page_content"]) for d in outputs["output"]]


def any_agent(span):
    a = span["attributes"]

    def parsed(text):
        try:
            return json.loads(text)
        except ValueError:
            return text

    if a.get("gen_ai.operation.name") == "call_llm":
        messages = json.loads(a.get("gen_ai.input.messages", "[]"))
        asked = [m["content"] for m in messages if m["role"] == "user"]
        tokens = [a.get("gen_ai.usage." + name) for name in ("input_tokens", "output_tokens")]
        return "model", (a["gen_ai.request.model"], *tokens, asked or [None], None)
    if a.get("gen_ai.operation.name") == "execute_tool":
        return "tool", (a["gen_ai.tool.name"], parsed(a.get("gen_ai.tool.args", "{}")), parsed(a.get("gen_ai.output", "null")))


def runs(lines):
    whole = {}
    for line in lines:
        for run in [run for posted in json.loads(line).values() for run in posted]:
            whole.setdefault(run["id"], {}).update({k: v for k, v in run.items() if v})
    for run in whole.values():
        yield {"trace": run["trace_id"].replace("-", ""), "start": run["start_time"], "run": run}


def multipart_runs(data):
    """Runs whose members are parts of their own."""
    head = b"Content-Type: multipart/form-data; boundary=" + data[2:data.index(b"\r\n")] + b"\r\n\r\n"
    posted = {}
    for part in email.message_from_bytes(head + data).get_payload():
        _, run, *member = part.get_param("name", header="content-disposition").split(".")
        told = json.loads(part.get_payload(decode=True))
        posted.setdefault(run, {}).update({member[0]: told} if member else told)
    return [json.dumps({"post": list(posted.values())})]


def main():
    data = open(sys.argv[1], "rb").read()
    final = None
    if data[:2] == b"--":
        data = "\n".join(multipart_runs(data)).encode()
    if data[:1] != b"{":
        spans, reader = protobuf_spans(data), langfuse
    elif b'"resourceSpans"' in data:
        spans, reader = json_spans(json.loads(data)), ai_sdk
    elif b'"final_output"' in data:
        document = json.loads(data)
        final, reader = document["final_output"], any_agent
        spans = [{"trace": "%032x" % s["context"]["trace_id"], "start": s["start_time"], "attributes": s["attributes"]}
                 for s in document["spans"]]
    else:
        spans, reader = runs(data.decode().splitlines()), lambda span: langsmith(span["run"])
    traces = {}
    for span in sorted(spans, key=lambda span: span["start"]):
        told = traces.setdefault(span["trace"], {"models": [], "tools": [], "passages": []})
        kind, found = reader(span) or ("", None)
        if kind == "model":
            told["models"].append(found[:3])
            told.setdefault("question", found[3][-1])
            told.setdefault("earlier", found[3][:-1])
            told["answer"] = found[4]
        elif kind == "tool":
            told["tools"].append(found)
        elif kind == "search":
            told["passages"] += found
    for trace, told in traces.items():
        if final is not None:
            told["answer"] = final
        print(json.dumps({"trace": trace, **told}))


main()
