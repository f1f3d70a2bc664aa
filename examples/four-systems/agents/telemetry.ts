// Spans of OpenTelemetry, exported as its variables say (OTEL_EXPORTER_OTLP_ENDPOINT, …); OTEL_SDK_DISABLED=true switches it off.
// The names are those of the GenAI conventions; `ragcheck.*` says what no convention names.

import { SpanStatusCode, context, propagation, trace } from "@opentelemetry/api";
import type { AttributeValue, Attributes } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";

if (process.env.OTEL_EXPORTER_OTLP_ENDPOINT && process.env.OTEL_SDK_DISABLED !== "true") {
  new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())] }).register();
}
const tracer = trace.getTracer("four-systems");
// The clock of spans; without it, the SDK rounds the begin of each to a millisecond, which loses their order.
const now = () => performance.timeOrigin + performance.now();

/** Runs work in a span; a failure ends it with an error. */
export function within<T>(name: string, attributes: Attributes, work: () => Promise<T>): Promise<T> {
  return tracer.startActiveSpan(name, { attributes, startTime: now() }, async (span) => {
    try {
      return await work();
    } catch (why) {
      span.setStatus({ code: SpanStatusCode.ERROR, message: why instanceof Error ? why.message : String(why) });
      throw why;
    } finally {
      span.end(now());
    }
  });
}

/** Runs one turn in a span that continues the caller's trace. */
export function turn<T>(headers: Record<string, unknown>, work: () => Promise<T>): Promise<T> {
  const caller = propagation.extract(context.active(), headers);
  return context.with(caller, () => within("invoke_agent", { "gen_ai.operation.name": "invoke_agent", "ragcheck.outcome": "ok" }, work));
}

/** A run of a tool, with the documents that it found if it is a search. */
export function ran(
  call: { name: string; id: string; arguments: string },
  result: string,
  outcome: "ok" | "refused",
  found?: { query: string; base: string; documents: object[] },
) {
  const attributes = { "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": call.name, "gen_ai.tool.call.id": call.id };
  const said = { "gen_ai.tool.call.arguments": call.arguments, "gen_ai.tool.call.result": result, "ragcheck.outcome": outcome };
  tracer.startActiveSpan(`execute_tool ${call.name}`, { attributes: { ...attributes, ...said }, startTime: now() }, (span) => {
    if (found) {
      const search = { "gen_ai.operation.name": "retrieval", "gen_ai.data_source.id": found.base, "gen_ai.retrieval.query.text": found.query };
      const documents = { "gen_ai.retrieval.documents": JSON.stringify(found.documents) };
      tracer.startSpan(`retrieval ${found.base}`, { attributes: { ...search, ...documents }, startTime: now() }).end(now());
    }
    span.end(now());
  });
}

/** An entry of the trajectory log: an event of the current span. */
export function logged(kind: string, members: Record<string, AttributeValue>) {
  const named = Object.entries(members).map(([name, value]) => [`ragcheck.${name}`, value]);
  trace.getActiveSpan()?.addEvent(`ragcheck.${kind}`, Object.fromEntries(named), now());
}
