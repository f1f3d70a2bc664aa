//! Which trial a request belongs to.
//!
//! A trial that runs alone gets every request. Trials that run side by side with one agent are told apart by trace id
//! (`trace_ids`). A request is assigned when its head arrives, so a slow body never falls into the next trial.

use super::admission::Refused;
use super::route::Mount;
use super::trace_ids::{Traced, trace_id};
use crate::flow::external::TurnSpans;
use crate::trace::spans::{Batch, Span};
use crate::transport::Transport;
use axum::http::HeaderMap;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// Different requests of a trial that are kept of those that were refused.
const MOST_REFUSED: usize = 20;
/// Trace ids of ended trials that are known.
const MOST_ENDED: usize = 1000;

/// Requests of an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// All of them.
    pub requests: usize,
    /// Those for a completion of the model.
    pub completions: usize,
}

impl Asked {
    /// Counts one more request.
    pub(crate) fn count(&mut self, completion: bool) {
        self.requests += 1;
        self.completions += usize::from(completion);
    }
}

/// One trial that is served.
struct Served {
    number: u64,
    transport: Arc<dyn Transport>,
    /// Host names by which the agent may ask for this server, beside those of this machine.
    hosts: Vec<String>,
    /// Declared services, mounted by their names.
    mounts: Vec<Mount>,
    trace: Option<Traced>,
    /// Requests without its trace id.
    untraced: u32,
    requests: Requests,
    /// Spans with its trace id that were not taken yet.
    spans: Vec<Span>,
    /// What is odd about exports since.
    odd: BTreeSet<String>,
    /// Exports since, or parts of them, that could not be read.
    unread: usize,
}

/// Requests of a trial, at its end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Requests {
    /// Forwarded requests.
    pub asked: Asked,
    /// Requests that came between the trial before and this one, and were refused.
    pub before: usize,
    /// Refused requests, each once, in order.
    pub refused: Vec<Refused>,
    /// A request of no trial that came while trials ran side by side: it may have been this one's.
    pub stray: Option<Refused>,
    /// Refused requests that carried the trace id of a trial that had ended.
    pub of_ended: usize,
}

/// Whom a request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// The trial with that number.
    Trial(u64),
    /// No trial: none runs, or its trial is over.
    Nobody,
    /// One of the trials that run side by side, but it does not say which.
    Stray,
}

/// Assigns requests, refusals and spans to trials.
#[derive(Default)]
pub(super) struct Desk {
    served: Vec<Served>,
    last: u64,
    /// Trace ids of ended trials.
    ended: VecDeque<String>,
    /// Requests since the last trial that no trial was there for.
    unserved: usize,
    /// All requests that no trial was there for, each once.
    of_nobody: Vec<Refused>,
}

impl Desk {
    /// Begins to serve a trial; returns its number.
    pub(super) fn serve(
        &mut self,
        transport: Arc<dyn Transport>,
        hosts: Vec<String>,
        mounts: Vec<Mount>,
        trace: Option<Traced>,
    ) -> u64 {
        self.last += 1;
        self.served.push(Served {
            number: self.last,
            transport,
            hosts,
            mounts,
            trace,
            untraced: 0,
            requests: Requests { before: std::mem::take(&mut self.unserved), ..Requests::default() },
            spans: Vec::new(),
            odd: BTreeSet::new(),
            unread: 0,
        });
        self.last
    }

    /// Whom a request belongs to, by its headers.
    pub(super) fn whose(&mut self, headers: &HeaderMap) -> Whose {
        let id = trace_id(headers);
        if let Some(id) = id {
            let traced = |served: &&Served| served.trace.as_ref().is_some_and(|trace| trace.id() == id);
            if let Some(served) = self.served.iter().find(traced) {
                return Whose::Trial(served.number);
            }
            if self.ended.iter().any(|ended| ended == id) {
                self.served.iter_mut().for_each(|served| served.requests.of_ended += 1);
                return Whose::Nobody;
            }
        }
        let beside = |served: &Served| served.trace.as_ref().is_some_and(|trace| trace.beside);
        if self.served.len() > 1 || self.served.iter().any(beside) {
            return Whose::Stray;
        }
        let Some(served) = self.served.last_mut() else { return Whose::Nobody };
        served.untraced += 1;
        Whose::Trial(served.number)
    }

    /// The transport of a request's trial; `None` counts a request that there is none for.
    pub(super) fn transport(&mut self, whose: Whose, completion: bool) -> Option<Arc<dyn Transport>> {
        let Some(served) = self.trial(whose) else {
            self.unserved += usize::from(whose != Whose::Stray);
            return None;
        };
        served.requests.asked.count(completion);
        Some(Arc::clone(&served.transport))
    }

    /// The transport of a request's trial, for what nobody counts.
    pub(super) fn listener(&mut self, whose: Whose) -> Option<Arc<dyn Transport>> {
        self.trial(whose).map(|served| Arc::clone(&served.transport))
    }

    /// Hosts and mounts of a request's trial; of any trial for a request that belongs to none.
    pub(super) fn served_at(&mut self, whose: Whose) -> (Vec<String>, Vec<Mount>) {
        let place = self.served.iter().position(|served| whose == Whose::Trial(served.number)).unwrap_or_default();
        self.served.get(place).map(|served| (served.hosts.clone(), served.mounts.clone())).unwrap_or_default()
    }

    /// Keeps a request that no trial was there for.
    pub(super) fn note_of_nobody(&mut self, refused: Refused) {
        keep(&mut self.of_nobody, refused);
    }

    /// Requests that no trial was there for, each once.
    pub(super) fn of_nobody(&self) -> &[Refused] {
        &self.of_nobody
    }

    /// Keeps a refused request for its trial.
    pub(super) fn note(&mut self, whose: Whose, refused: Refused) {
        let Some(served) = self.trial(whose) else { return };
        keep(&mut served.requests.refused, refused);
    }

    /// Keeps a connection that carried no request.
    pub(super) fn note_connection(&mut self, refused: Refused) {
        match self.whose(&HeaderMap::new()) {
            Whose::Stray => self.strays(&refused),
            Whose::Nobody => self.note_of_nobody(refused),
            whose @ Whose::Trial(_) => self.note(whose, refused),
        }
    }

    /// Keeps a stray request for all trials that it may belong to; trials then run one after another.
    pub(super) fn strays(&mut self, refused: &Refused) {
        for served in &mut self.served {
            served.requests.stray.get_or_insert_with(|| refused.clone());
            if let Some(trace) = &served.trace {
                trace.propagation.lost();
            }
        }
    }

    /// Gives spans to the trials with their trace ids. What could not be read may be of any trial that is served.
    pub(super) fn report(&mut self, batch: Batch) {
        let unread = batch.unread.len();
        let remarks = batch.unread.into_iter().chain(batch.odd);
        let mut odd: BTreeSet<String> = remarks.map(|why| format!("of its spans, {why}")).collect();
        for span in batch.spans {
            let traced = |served: &&mut Served| served.trace.as_ref().is_some_and(|trace| trace.id() == span.trace);
            match self.served.iter_mut().find(traced) {
                Some(served) => served.spans.push(span),
                None if self.ended.contains(&span.trace) => {
                    odd.insert("spans of a trial came after its end, and count nowhere".to_owned());
                }
                None => {
                    odd.insert("spans of other traces came: does the agent continue the `traceparent`?".to_owned());
                }
            }
        }
        for served in &mut self.served {
            served.odd.extend(odd.iter().cloned());
            served.unread += unread;
        }
    }

    /// Number of spans of a trial that were not taken yet, and whether one of them has that parent.
    pub(super) fn reported(&self, number: u64, parent: &str) -> (usize, bool) {
        let served = self.served.iter().find(|served| served.number == number);
        served.map_or((0, false), |served| {
            (served.spans.len(), served.spans.iter().any(|span| span.parent.as_deref() == Some(parent)))
        })
    }

    /// Takes the spans of a trial, and what is odd about exports.
    pub(super) fn take_spans(&mut self, number: u64) -> TurnSpans {
        let Some(served) = self.trial(Whose::Trial(number)) else { return TurnSpans::default() };
        let notes = std::mem::take(&mut served.odd).into_iter().collect();
        let (spans, unread) = (std::mem::take(&mut served.spans), std::mem::take(&mut served.unread));
        TurnSpans { spans, notes, unread }
    }

    /// Requests of a trial so far.
    pub(super) fn requests(&self, number: u64) -> Requests {
        let served = self.served.iter().find(|served| served.number == number);
        served.map(|served| served.requests.clone()).unwrap_or_default()
    }

    /// Ends a trial.
    pub(super) fn end(&mut self, number: u64) {
        let Some(place) = self.served.iter().position(|served| served.number == number) else { return };
        let ended = self.served.remove(place);
        let Some(trace) = ended.trace else { return };
        match (ended.requests.asked.requests, ended.untraced) {
            (_, 1..) => trace.propagation.lost(),
            (1.., 0) => trace.propagation.kept(),
            (0, 0) => {}
        }
        self.ended.push_back(trace.id().to_owned());
        if self.ended.len() > MOST_ENDED {
            self.ended.pop_front();
        }
    }

    fn trial(&mut self, whose: Whose) -> Option<&mut Served> {
        self.served.iter_mut().find(|served| whose == Whose::Trial(served.number))
    }
}

/// Keeps a refused request once, within the limit.
fn keep(kept: &mut Vec<Refused>, refused: Refused) {
    if kept.len() < MOST_REFUSED && !kept.contains(&refused) {
        kept.push(refused);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::clock::BoxFuture;
    use crate::transport::{HttpRequest, HttpResponse, TransportError};
    use crate::trial::proxy::trace_ids::{Propagation, TRACEPARENT, base_path, take_base_path};

    struct Nothing;

    impl Transport for Nothing {
        fn send(&self, _request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
            Box::pin(async { Err(TransportError::Invalid { message: String::new() }) })
        }
    }

    fn serve(desk: &mut Desk, trace: Option<&Traced>) -> u64 {
        desk.serve(Arc::new(Nothing), Vec::new(), Vec::new(), trace.cloned())
    }

    fn with(id: &str) -> HeaderMap {
        let value = format!("00-{id}-00f067aa0ba902b7-01").parse().expect("a header");
        HeaderMap::from_iter([(TRACEPARENT.parse().expect("a name"), value)])
    }

    #[test]
    fn a_request_beside_others_is_assigned_by_its_trace_id_and_one_of_an_ended_trial_to_nobody() {
        let propagation = Arc::new(Propagation::default());
        let [one, two] = [0, 1].map(|_| Traced::new(Arc::clone(&propagation), true));
        let mut desk = Desk::default();
        let (first, second) = (serve(&mut desk, Some(&one)), serve(&mut desk, Some(&two)));
        assert_eq!(desk.whose(&with(one.id())), Whose::Trial(first));
        assert_eq!(desk.whose(&with(two.id())), Whose::Trial(second));
        assert_eq!(desk.whose(&HeaderMap::new()), Whose::Stray);
        assert_eq!(desk.whose(&with("4bf92f3577b34da6a3ce929d0e0e4736")), Whose::Stray);
        desk.end(first);
        assert_eq!(desk.whose(&with(one.id())), Whose::Nobody, "its trial is over");
        assert!(desk.transport(Whose::Trial(first), true).is_none(), "assigned before, and read after its end");
        assert_eq!(desk.requests(second).before, 0);
    }

    #[test]
    fn a_request_beside_others_without_an_id_is_stray_and_a_base_url_of_a_trial_names_it() {
        let [one, two] = [0, 1].map(|_| Traced::new(Arc::default(), false));
        let mut desk = Desk::default();
        let first = serve(&mut desk, Some(&one));
        assert_eq!(desk.whose(&HeaderMap::new()), Whose::Trial(first), "alone");
        let second = serve(&mut desk, Some(&two));
        assert_eq!(desk.whose(&HeaderMap::new()), Whose::Stray);
        let head = |path: &str| {
            let request = axum::http::Request::builder().uri(path).body(()).expect("a request");
            let (mut head, ()) = request.into_parts();
            take_base_path(&mut head);
            head
        };
        let asked = head(&format!("{}/model/v1/models?limit=3", base_path(two.id())));
        assert_eq!(asked.uri.to_string(), "/model/v1/models?limit=3");
        assert_eq!(desk.whose(&asked.headers), Whose::Trial(second));
        for other in ["/model/v1/models", "/trace/", "/trace/4bf92f3577b34da6a3ce929d0e0e4736"] {
            assert_eq!(head(other).uri.path(), other);
            assert!(head(other).headers.is_empty(), "{other}");
        }
    }

    #[test]
    fn propagation_is_kept_by_a_trial_alone_whose_requests_all_carry_its_id_and_lost_for_good() {
        for (traced, untraced, kept) in [(2, 0, true), (2, 1, false), (0, 1, false), (0, 0, false)] {
            let propagation = Arc::new(Propagation::default());
            let trace = Traced::new(Arc::clone(&propagation), false);
            let mut desk = Desk::default();
            let number = serve(&mut desk, Some(&trace));
            let headers = (0..traced).map(|_| with(trace.id())).chain((0..untraced).map(|_| HeaderMap::new()));
            for headers in headers {
                let whose = desk.whose(&headers);
                assert_eq!(whose, Whose::Trial(number), "alone, it gets every request");
                assert!(desk.transport(whose, true).is_some());
            }
            desk.end(number);
            assert_eq!(propagation.is_kept(), kept, "{traced} with, {untraced} without");
            propagation.lost();
            propagation.kept();
            assert!(!propagation.is_kept());
        }
    }

    #[test]
    fn spans_belong_to_the_trial_with_their_trace_id_whatever_runs() {
        let [one, two] = [0, 1].map(|_| Traced::alone());
        let mut desk = Desk::default();
        let (first, second) = (serve(&mut desk, Some(&one)), serve(&mut desk, Some(&two)));
        let span = |trace: &str, parent: &str| Span {
            trace: trace.to_owned(),
            parent: Some(parent.to_owned()),
            ..Span::default()
        };
        let other = "4bf92f3577b34da6a3ce929d0e0e4736";
        let spans = vec![span(one.id(), "7"), span(other, "7"), span(two.id(), "8"), span(one.id(), "9")];
        desk.report(Batch { spans, unread: vec!["one is broken".to_owned()], ..Batch::default() });
        assert_eq!((desk.reported(first, "7"), desk.reported(first, "8")), ((2, true), (2, false)));
        let taken = desk.take_spans(first);
        assert_eq!((taken.spans.len(), taken.notes.len(), taken.unread), (2, 2, 1), "{:?}", taken.notes);
        assert_eq!(desk.reported(first, "7"), (0, false), "they are taken once");
        assert_eq!(desk.take_spans(first).unread, 0, "it is counted once");
        let taken = desk.take_spans(second);
        assert_eq!((taken.spans.len(), taken.unread), (1, 1), "what was not read may be of any trial");
        desk.end(second);
        desk.report(Batch { spans: vec![span(two.id(), "8")], ..Batch::default() });
        let late = desk.take_spans(first);
        assert!(late.spans.is_empty() && late.notes[0].contains("after its end"), "{:?}", late.notes);
    }
}
