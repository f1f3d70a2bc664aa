"""Spans of OpenTelemetry: the model's by its instrumentation, those of tools and searches by hand.

Exported as the variables of OpenTelemetry say (OTEL_EXPORTER_OTLP_ENDPOINT, …); OTEL_SDK_DISABLED=true switches it off. The
names are those of the GenAI conventions; `ragcheck.*` says what no convention names.
"""

import json
import os

from opentelemetry import propagate, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
if os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
tracer = trace.get_tracer("four-systems.tool-rag", tracer_provider=provider)
OpenAIInstrumentor().instrument(tracer_provider=provider)


def turn(headers):
    """The span of one question; it continues the caller's trace."""
    context = propagate.extract(headers)
    return tracer.start_as_current_span("invoke_agent service-desk", context, attributes={
        "gen_ai.operation.name": "invoke_agent", "ragcheck.outcome": "ok"})


def tool(call):
    """The span of one call."""
    return tracer.start_as_current_span(f"execute_tool {call.function.name}", attributes={
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": call.function.name, "gen_ai.tool.call.id": call.id,
        "gen_ai.tool.call.arguments": call.function.arguments})


def ended(span, result):
    """Adds how a call ended."""
    error = result.get("error")
    outcome = "ok" if not error else error["cause"]
    span.set_attribute("gen_ai.tool.call.result", json.dumps(result))
    if error:
        span.set_attribute("error.type", outcome)
        span.set_status(trace.StatusCode.ERROR, error["message"])
        outcome = {"order": "out_of_order", "outage": "failed"}.get(outcome, "refused")
    span.set_attribute("ragcheck.outcome", outcome)


def search(base, query):
    """The span of a search."""
    return tracer.start_as_current_span(f"retrieval {base}", attributes={
        "gen_ai.operation.name": "retrieval", "gen_ai.data_source.id": base, "gen_ai.retrieval.query.text": query})


def found(span, chunks, without_learned, learned):
    """Adds what a search found, and what it would have found without learned keywords."""
    documents = [{"id": chunk["id"], "content": chunk["text"], "score": chunk["score"]} for chunk in chunks]
    origins = {entry.id: {"keywords": entry.keywords, "urls": [page["url"] for page in entry.citations]} for entry in learned}
    span.set_attribute("gen_ai.retrieval.documents", json.dumps(documents))
    span.set_attribute("ragcheck.without_learned", without_learned)
    span.set_attribute("ragcheck.learned", json.dumps(origins))
