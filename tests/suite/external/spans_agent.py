"""An agent that searches by itself before it asks its model, and reports what it did as OTLP/JSON.

SPANS says how: `on`, `off`, `alone` (a trace that does not continue the turn's), `client` (those of its model's client), `late`
(those of the first turn's tools come while the second turn runs), or `cut` (an export without its end comes before the whole one). SHELF is the passage that it finds.
"""

import gzip
import json
import os
import secrets
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SPANS = os.environ.get("SPANS", "on")
SHELF = os.environ.get("SHELF", "warranty#1")


def post(url, body, headers):
    request = urllib.request.Request(url, body, {"Content-Type": "application/json", **headers})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


class Trace:
    def __init__(self, traceparent):
        _, self.id, self.parent, _ = traceparent.split("-")
        self.spans = []
        if SPANS == "alone":
            self.id, self.parent = secrets.token_hex(16), ""

    def span(self, name, parent, attributes):
        span = {"traceId": self.id, "spanId": secrets.token_hex(8), "parentSpanId": parent, "name": name,
                "startTimeUnixNano": str(time.time_ns()), "endTimeUnixNano": str(time.time_ns() + 1000),
                "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]}
        self.spans.append(span)
        return span["spanId"]

    def export(self, spans=None, after=0.05):
        time.sleep(after)
        document = {"resourceSpans": [{"scopeSpans": [{"spans": spans or self.spans}]}]}
        url = os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]
        if SPANS == "cut":
            try:
                post(url, json.dumps(document).encode()[:-3], {})
            except urllib.error.HTTPError:
                pass
        post(url, gzip.compress(json.dumps(document).encode()), {"Content-Encoding": "gzip"})


class Handler(BaseHTTPRequestHandler):
    turns = 0

    def do_POST(self):
        if SPANS == "late" and Handler.turns:
            time.sleep(1)
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["message"]
        trace = Trace(self.headers.get("traceparent", "00-0-0-01"))
        root = trace.span("invoke_agent", trace.parent, {"gen_ai.operation.name": "invoke_agent"})
        tool = trace.span("execute_tool search_docs", root, {
            "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search_docs",
            "gen_ai.tool.call.arguments": json.dumps({"query": question}), "gen_ai.tool.call.result": "one passage"})
        trace.span("retriever", tool, {
            "openinference.span.kind": "RETRIEVER", "input.value": question,
            "retrieval.documents.0.document.id": SHELF, "retrieval.documents.0.document.content": "60 months"})
        trace.span("execute_tool remember", root, {
            "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "remember",
            "gen_ai.tool.call.arguments": json.dumps({"keywords": ["warranty"], "result_id": "r-1"}),
            "gen_ai.tool.call.result": json.dumps({"ok": True})})
        asked = {"model": "greenhouse-1", "messages": [{"role": "user", "content": question}]}
        key = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
        said = post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(asked).encode(), key)
        trace.span("chat", root, {"gen_ai.operation.name": "chat"})
        if SPANS == "late" and not Handler.turns:
            trace.export([span for span in trace.spans if span["spanId"] == root or span["name"] == "chat"])
            late = [span for span in trace.spans if span["spanId"] != root and span["name"] != "chat"]
            threading.Thread(target=trace.export, args=(late, 0.4)).start()
        elif SPANS == "client":
            threading.Thread(target=trace.export, args=([dict(trace.spans[-1], parentSpanId=trace.parent)],)).start()
        elif SPANS != "off":
            threading.Thread(target=trace.export).start()
        Handler.turns += 1
        reply = json.dumps({"answer": said["choices"][0]["message"]["content"]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
