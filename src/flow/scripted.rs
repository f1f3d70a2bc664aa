//! What the tests of every flow share: a trace of events that a script gave, and stages that take no time.

use super::{Flow, Stages, roles};
use crate::clock::BoxFuture;
use crate::trace::{Arm, Event, Evidence, Lane, Mode, Trace, TrialEnd, version_of};
use std::time::Duration;

/// Stages that take no time.
pub(in crate::flow) struct NoTime;

impl Stages for NoTime {
    fn spent<'a>(&'a self, _: &'static str, _: Duration) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// A completed trial of a flow that did these things.
pub(in crate::flow) fn trace(flow: &dyn Flow, events: Vec<Event>) -> Trace {
    let lane = Lane { flow: flow.name().into(), variant: "base".into(), repetition: 1, arm: Arm::Main };
    let evidence = Evidence {
        mode: Mode::Replay,
        recorded_from: "script".into(),
        recorded_at: None,
        model: "scripted".into(),
        knowledge: String::new(),
        earlier_takes: Vec::new(),
        noted_verdict: None,
    };
    Trace {
        version: version_of(&[]),
        plan: String::new(),
        trial: "t".into(),
        scenario: "s".into(),
        case: "c".into(),
        lane,
        seed: 0,
        evidence,
        roles: roles(flow),
        offered: None,
        notes: Vec::new(),
        passages: Vec::new(),
        end: TrialEnd::Completed,
        took_us: 0,
        events,
    }
}
