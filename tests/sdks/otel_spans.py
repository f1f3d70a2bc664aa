"""The same with the SDK of OpenTelemetry: it reads where and how to export from the variables that ragcheck sets."""

import json
import os
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry import propagate, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
tracer = trace.get_tracer("agent", tracer_provider=provider)


def ask(question):
    body = json.dumps({"model": "greenhouse-1", "messages": [{"role": "user", "content": question}]}).encode()
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["message"]
        context = propagate.extract(dict(self.headers))
        with tracer.start_as_current_span("invoke_agent", context, attributes={"gen_ai.operation.name": "invoke_agent"}):
            with tracer.start_as_current_span("execute_tool search_docs", attributes={
                    "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search_docs",
                    "gen_ai.tool.call.arguments": json.dumps({"query": question})}):
                with tracer.start_as_current_span("retrieval shelf", attributes={
                        "gen_ai.operation.name": "retrieval", "gen_ai.retrieval.query.text": question,
                        "gen_ai.retrieval.documents": json.dumps([{"id": "warranty#1", "content": "60 months"}])}):
                    pass
            with tracer.start_as_current_span("execute_tool remember", attributes={
                    "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "remember",
                    "gen_ai.tool.call.arguments": json.dumps({"keywords": ["warranty"], "result_id": "r-1"}),
                    "gen_ai.tool.call.result": json.dumps({"ok": True})}):
                pass
            with tracer.start_as_current_span("chat", attributes={"gen_ai.operation.name": "chat"}):
                said = ask(question)
        reply = json.dumps({"answer": said}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(reply)))
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
