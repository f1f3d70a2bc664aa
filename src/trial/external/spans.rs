//! Spans of an agent that sends them (`target.spans`): awaited after each turn, and compared with those of the recording.

use crate::flow::external::{Telemetry, Told, TurnSpans};
use crate::platform::clock::{BoxFuture, Clock};
use crate::platform::distinct::add_distinct;
use crate::platform::secrets::Redactor;
use crate::trace::text::{plural, quote};
use crate::trace::{Member, Trace, not_in_traffic_but};
use crate::trial::proxy::Reports;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// How long the spans of a turn are awaited.
const AWAITED: Duration = Duration::from_secs(10);
/// How long no further span may come after the one of the whole turn.
const QUIET: Duration = Duration::from_millis(50);
const LOOK: Duration = Duration::from_millis(10);
/// How long after a trial no further span may come: the delay that processes get, and some more.
const LATE: Duration = Duration::from_millis(150);

/// Variables for a process that sends spans to the proxy: at once, and with contents.
pub(super) fn variables(proxy: SocketAddr) -> Vec<(String, String)> {
    let base = format!("http://{proxy}");
    [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", base.as_str()),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &format!("{base}/v1/traces")),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf"),
        ("OTEL_TRACES_EXPORTER", "otlp"),
        ("OTEL_TRACES_SAMPLER", "parentbased_always_on"),
        ("OTEL_PROPAGATORS", "tracecontext,baggage"),
        ("OTEL_BSP_SCHEDULE_DELAY", "100"),
        ("OTEL_SEMCONV_STABILITY_OPT_IN", "gen_ai_latest_experimental"),
        ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_ONLY"),
        ("TRACELOOP_TRACE_CONTENT", "true"),
        ("OPENINFERENCE_HIDE_INPUTS", "false"),
        ("OPENINFERENCE_HIDE_OUTPUTS", "false"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec()
}

/// The spans that a proxy receives for one trial.
pub(super) struct Received {
    pub(super) reports: Reports,
    pub(super) clock: Arc<dyn Clock>,
}

impl Telemetry for Received {
    fn of_turn<'t>(&'t self, parent: &'t str) -> BoxFuture<'t, TurnSpans> {
        Box::pin(async move {
            let until = self.clock.now() + AWAITED;
            let mut known = 0;
            let mut since = self.clock.now();
            loop {
                let (count, whole) = self.reports.reported(parent);
                if count != known {
                    (known, since) = (count, self.clock.now());
                }
                if whole && self.clock.now() >= since + QUIET || self.clock.now() >= until {
                    return self.reports.take_spans();
                }
                self.clock.sleep(LOOK).await;
            }
        })
    }

    fn rest(&self) -> BoxFuture<'_, TurnSpans> {
        Box::pin(async move {
            let (mut known, mut since) = (self.reports.reported("").0, self.clock.now());
            while self.clock.now() < since + LATE {
                self.clock.sleep(LOOK).await;
                let (count, _) = self.reports.reported("");
                if count != known {
                    (known, since) = (count, self.clock.now());
                }
            }
            self.reports.take_spans()
        })
    }
}

/// Says in a trace what its spans show and lack.
pub(super) fn evidence(trace: &mut Trace, told: Told) {
    let mut absent = not_in_traffic_but(&told.shows);
    // Tools that the agent runs by itself are offered to no model.
    trace.offered = trace.offered.take().filter(|offered| !offered.is_empty());
    let lacks = if told.turns_without > 0 {
        Some(format!(
            "no spans came within {} s after {}: does the agent continue the `traceparent` of its turns, and export to \
             /v1/traces of the proxy?",
            AWAITED.as_secs(),
            plural(told.turns_without, "turn")
        ))
    } else if told.unread > 0 {
        Some(format!(
            "{} of its spans could not be read, so the others do not show that no other tool ran",
            plural(told.unread, "part")
        ))
    } else if told.turns_of_clients > 0 && trace.offered.is_none() {
        Some(format!(
            "the spans of {} are none of an agent, a tool or a search, so they do not show which tools ran",
            plural(told.turns_of_clients, "turn")
        ))
    } else {
        None
    };
    if lacks.is_some() {
        absent.extend([Member::Calls, Member::Passages]);
        absent.sort_unstable();
    }
    trace.absent = Some(absent);
    add_distinct(&mut trace.notes, lacks.into_iter().chain(told.notes));
}

/// A note on the first difference between the spans of a recording and today's, which count.
pub(super) fn difference(recorded: &[String], today: &[String], redactor: &Redactor) -> Option<String> {
    let today: Vec<String> = today.iter().map(|line| redactor.redact(line).into_owned()).collect();
    if recorded == today {
        return None;
    }
    let place = recorded.iter().zip(&today).take_while(|(one, other)| one == other).count();
    let line = |lines: &[String]| lines.get(place).map_or_else(|| "nothing".to_owned(), |line| quote(line, 200));
    let (recorded, today) = (line(recorded), line(&today));
    Some(format!(
        "its spans differ from the recorded ones, and count as they are now: recorded {recorded}; now {today}"
    ))
}
