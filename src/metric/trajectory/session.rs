//! Units that need what earlier turns of a session logged: what a compaction must keep, tokens, the state stored last;
//! and the savings of compactions.

use super::{Units, hold, logs};
use crate::metric::{Seen, TurnView, quote};
use crate::trace::{Logged, Reply, What};
use std::collections::{BTreeSet, VecDeque};

/// Number of the newest decisions and preferences, and of lessons, that must be kept at the same time.
const KEPT: usize = 16;

/// State that session metrics carry from turn to turn.
#[derive(Debug, Default)]
pub(super) struct Session<'a> {
    notes: VecDeque<&'a str>,
    lessons: VecDeque<&'a str>,
    limit: Option<u64>,
    /// Input and output tokens of the session, as logged last.
    used: Option<(u64, u64)>,
    stored: Option<&'a str>,
}

impl<'a> Session<'a> {
    fn keep(kept: &mut VecDeque<&'a str>, shown: &'a str) {
        if !kept.contains(&shown) {
            kept.push_back(shown);
        }
        if kept.len() > KEPT {
            kept.pop_front();
        }
    }

    /// Units of `compaction_keeps`.
    pub(super) fn keeps(&mut self, turn: &TurnView<'a>) -> Units {
        let (mut number, mut due, mut units) = (0, None, Vec::new());
        for what in &turn.events {
            match what {
                What::Logged(Logged::StartedAfresh { .. }) => *self = Self::default(),
                What::Logged(Logged::Noted { shown, .. }) => Self::keep(&mut self.notes, shown),
                What::Logged(Logged::Reflection { shown, .. }) => Self::keep(&mut self.lessons, shown),
                What::Logged(Logged::Compacted { done: true, keeps, .. }) => {
                    number += 1;
                    let known = self.notes.iter().chain(&self.lessons).copied();
                    due = Some(known.chain(keeps.iter().map(String::as_str)).collect::<BTreeSet<_>>());
                }
                What::ModelCalled(called) => {
                    let Some(due) = due.take() else { continue };
                    let lost = due.iter().filter(|one| !called.shown.iter().any(|shown| shown == *one)).count();
                    let seen = || format!("{lost} of {} decisions, preferences and lessons were not shown", due.len());
                    units.push((format!("compaction {number}"), hold(lost == 0, seen)));
                }
                _ => {}
            }
        }
        units
    }

    /// Units of `session_budget`.
    pub(super) fn budget(&mut self, turn: &TurnView<'a>) -> Units {
        let (mut reported, mut call, mut units) = ((None, None), 0, Vec::new());
        for what in &turn.events {
            match what {
                What::Logged(Logged::StartedAfresh { .. }) => self.used = None,
                What::Logged(Logged::Estimated { limit, .. }) => self.limit = Some(*limit),
                What::ModelCalled(called) => {
                    call = called.call;
                    reported = match &called.reply {
                        Reply::Completion(completion) => (completion.input_tokens, completion.output_tokens),
                        Reply::Failure { .. } => (None, None),
                    };
                }
                What::Logged(Logged::Used { input, output, session_input, session_output }) => {
                    let before = self.used.replace((*session_input, *session_output));
                    let sum = before.map(|(ins, outs)| (ins.saturating_add(*input), outs.saturating_add(*output)));
                    let Some(limit) = self.limit else { continue };
                    let total = session_input.saturating_add(*session_output);
                    let wrong = |said: Option<u64>, logged: u64| said.is_some_and(|said| said != logged);
                    let held = if wrong(reported.0, *input) || wrong(reported.1, *output) {
                        Err(Seen::new(format!("{input} + {output} tokens are logged, and others were reported")))
                    } else if sum.is_some_and(|sum| sum != (*session_input, *session_output)) {
                        Err(Seen::new(format!("{session_input} + {session_output} tokens are not the session's sum")))
                    } else {
                        hold(total <= limit, || format!("{total} tokens of {limit}"))
                    };
                    units.push((format!("completion {call}"), held));
                }
                _ => {}
            }
        }
        units
    }

    /// Units of `state_persistence`.
    pub(super) fn persistence(&mut self, turn: &TurnView<'a>) -> Units {
        let afresh = logs(turn).any(|entry| matches!(entry, Logged::StartedAfresh { .. }));
        let told = logs(turn).any(|entry| matches!(entry, Logged::Notice { about, .. } if about == "session"));
        if told && !afresh {
            return Vec::new();
        }
        // An unstored change: its name, and the state to store.
        let mut due: Option<(String, Option<&str>)> = None;
        let mut units = Vec::new();
        for what in &turn.events {
            let next = match what {
                What::TurnStarted { .. } => Some(("the turn's beginning".to_owned(), None)),
                What::Moved(moved) => Some((format!("{} to {}", moved.from, moved.to), Some(moved.to.as_str()))),
                What::TurnEnded(_) => Some(("the turn's end".to_owned(), Some("ended"))),
                What::Logged(Logged::Persisted { state }) => {
                    self.stored = Some(state);
                    if let Some((unit, of)) = due.take() {
                        let held = of.is_none_or(|of| of == state);
                        units.push((unit, hold(held, || format!("`{}` was stored", quote(state, 40)))));
                    }
                    continue;
                }
                What::Logged(Logged::Restored { state: Some(state) }) => {
                    let stored = self.stored.unwrap_or("nothing");
                    let seen = || format!("goes on in {}, stored was {}", quote(state, 40), quote(stored, 40));
                    units.push(("the restart".to_owned(), hold(stored == state, seen)));
                    continue;
                }
                What::ModelCalled(_) | What::ToolCalled(_) | What::Searched(_) | What::Requested(_) => None,
                _ => continue,
            };
            if let Some((unit, _)) = std::mem::replace(&mut due, next) {
                units.push((unit, Err(Seen::new("was not stored"))));
            }
        }
        if let Some((unit, _)) = due {
            units.push((unit, Err(Seen::new("was not stored"))));
        }
        units
    }
}

/// Compactions that were done.
pub(super) fn savings(turn: &TurnView<'_>) -> Units {
    let done = logs(turn).filter_map(|entry| match entry {
        Logged::Compacted { before, after, done: true, .. } => Some((*before, *after)),
        _ => None,
    });
    let unit = |(number, (before, after)): (u32, (u64, u64))| {
        let held = after.saturating_mul(5) <= before.saturating_mul(4);
        (format!("compaction {number}"), hold(held, || format!("{before} tokens before, {after} after")))
    };
    (1..).zip(done).map(unit).collect()
}
