//! The order of the exchanges of a turn: that of sending, except where chance decided it.
//!
//! Requests that are sent at once arrive in varying order, and conversations side by side go on at another pace in a replay
//! than in the recording. Both get the order of the recording. What an agent asks one after another keeps the order in
//! which it asks now, so that a trace shows when an agent does things in another order than it did.

use super::{Passed, RecordedPlace};
use serde_json::Value;
use std::collections::BTreeMap;

/// An exchange, and the period in which it was in flight.
#[derive(Debug)]
pub(super) struct Observed {
    pub began: u64,
    pub ended: u64,
    pub place: Option<RecordedPlace>,
    pub passed: Passed,
}

/// Exchanges that were sent at once, with those that continue their conversations.
struct Phase {
    /// Ordinals of those that began conversations.
    members: Vec<u32>,
    /// Ordinals of the first and the last.
    from: u32,
    to: u32,
    /// Whether several of the conversations go on, so that requests outside conversations may be of any.
    several: bool,
}

/// Whether the recording places `one` after `next` although it arrived first by chance.
fn changes(one: &Observed, next: &Observed, phases: &[Phase], roots: &BTreeMap<u32, u32>) -> bool {
    let places = one.place.as_ref().zip(next.place.as_ref()).filter(|(one, next)| one.ordinal > next.ordinal);
    places.is_some_and(|(first, second)| {
        let ordinals = [first.ordinal, second.ordinal];
        let beside = phases.iter().any(|phase| {
            let of_phase = |ordinal: &u32| roots.get(ordinal).is_none_or(|root| phase.members.contains(root));
            let talk = ordinals.iter().all(|ordinal| roots.contains_key(ordinal));
            let within = ordinals.iter().all(|ordinal| (phase.from..=phase.to).contains(ordinal));
            within && ordinals.iter().all(of_phase) && (talk || phase.several)
        });
        first.burst == second.burst || next.began < one.ended || beside
    })
}

/// Exchanges of a turn in their order.
pub(super) fn in_recorded_order(mut passed: Vec<Observed>) -> Vec<Observed> {
    passed.sort_by_key(|one| one.began);
    let roots = roots(&passed);
    let phases = phases(&passed, &roots);
    // Swaps neighbours until none is out of order: otherwise a request sent after an answer stays behind it.
    let mut settled = false;
    while !settled {
        settled = true;
        for place in 1..passed.len() {
            if changes(&passed[place - 1], &passed[place], &phases, &roots) {
                passed.swap(place - 1, place);
                settled = false;
            }
        }
    }
    passed
}

/// The phases of a turn, by the requests that were sent at once in the recording.
fn phases(passed: &[Observed], roots: &BTreeMap<u32, u32>) -> Vec<Phase> {
    let mut bursts: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for place in passed.iter().filter_map(|one| one.place.as_ref()) {
        bursts.entry(place.burst).or_default().push(place.ordinal);
    }
    let phase = |members: Vec<u32>| {
        let continued = roots.iter().filter(|(ordinal, root)| ordinal != root && members.contains(root));
        let going_on: Vec<(u32, u32)> = continued.map(|(ordinal, root)| (*root, *ordinal)).collect();
        let from = *members.iter().min()?;
        let to = going_on.iter().map(|(_, ordinal)| *ordinal).chain(members.iter().copied()).max()?;
        let several = going_on.iter().any(|(root, _)| *root != going_on[0].0);
        Some(Phase { members, from, to, several })
    };
    let at_once = bursts.into_values().filter(|members| members.len() > 1).filter_map(phase);
    at_once.chain(crossing(roots)).collect()
}

/// Conversations of which each goes on after the other has begun: they were side by side, even if no two of their requests
/// were under way at once. One that is within another is that of a tool.
fn crossing(roots: &BTreeMap<u32, u32>) -> Vec<Phase> {
    let spans: BTreeMap<u32, u32> = roots.iter().map(|(ordinal, root)| (*root, *ordinal)).collect();
    let later = |from: u32, to: u32| spans.range(from + 1..to.max(from + 1)).filter(move |(_, other)| **other > to);
    let both = spans.iter().flat_map(|(from, to)| later(*from, *to).map(|(next, other)| (*from, *next, *other)));
    both.map(|(from, next, to)| Phase { members: vec![from, next], from, to, several: false }).collect()
}

/// The exchange that a conversation began with, for each exchange of a conversation, by ordinal.
fn roots(passed: &[Observed]) -> BTreeMap<u32, u32> {
    let mut recorded: Vec<(u32, &Observed)> = passed
        .iter()
        .filter_map(|one| Some((one.place.as_ref()?.ordinal, one)))
        .filter(|(_, one)| !one.messages().is_empty())
        .collect();
    recorded.sort_by_key(|(ordinal, _)| *ordinal);
    let mut roots = BTreeMap::new();
    for (place, (ordinal, one)) in recorded.iter().enumerate() {
        let before = recorded[..place].iter().filter(|(_, before)| one.continues(before));
        let nearest = before.max_by_key(|(_, before)| before.messages().len());
        let root = nearest.and_then(|(before, _)| roots.get(before).copied());
        roots.insert(*ordinal, root.unwrap_or(*ordinal));
    }
    roots
}

impl Observed {
    fn messages(&self) -> &[Value] {
        let request = &self.passed.request;
        request.profile.layout.messages(&request.body)
    }

    /// Whether a request continues the conversation of another one: it has its messages and more, or names its answer.
    fn continues(&self, before: &Self) -> bool {
        let (messages, earlier) = (self.messages(), before.messages());
        let named = self.passed.request.profile.layout.continues.iter();
        let mut named = named.filter_map(|at| self.passed.request.body.pointer(at)?.as_str());
        let answer = before.passed.result.as_ref().map_or(&[][..], |answer| &answer.body);
        messages.len() > earlier.len() && messages.starts_with(earlier)
            || named.any(|id| !id.is_empty() && memchr::memmem::find(answer, id.as_bytes()).is_some())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::{HttpRequest, Profile, Service, TransportError};
    use super::*;
    use crate::cassette::Layout;
    use serde_json::json;
    use std::time::Duration;

    pub(in crate::transport) fn observed(began: u64, ended: u64, (ordinal, burst): (u32, u32)) -> Observed {
        let request = HttpRequest::new(Service::Model, &const { Profile::plain("plain") }, "POST", "", json!(ordinal));
        let result = Err(TransportError::Timeout { after: Duration::ZERO });
        Observed {
            began,
            ended,
            place: Some(RecordedPlace { ordinal, burst, at: None, body: None }),
            passed: Passed { request, result, at: None },
        }
    }

    fn ordered(passed: Vec<Observed>) -> Vec<u32> {
        in_recorded_order(passed).iter().filter_map(|one| Some(one.place.as_ref()?.ordinal)).collect()
    }

    #[test]
    fn what_ran_side_by_side_has_the_order_of_the_recording_whichever_arrived_first() {
        let burst = |order: [u32; 3]| {
            let sent = order.into_iter().zip([(2, 3), (4, 5), (6, 7)]);
            let burst = sent.map(|(ordinal, (began, ended))| observed(began, ended, (ordinal, 2)));
            [observed(0, 1, (0, 1))].into_iter().chain(burst).chain([observed(8, 9, (4, 3))]).collect()
        };
        for order in [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]] {
            assert_eq!(ordered(burst(order)), [0, 1, 2, 3, 4], "{order:?}");
        }
        let now = vec![observed(1, 4, (1, 2)), observed(2, 3, (0, 1))];
        assert_eq!(ordered(now), [0, 1], "they overlap now, although the recording has them one after another");
    }

    /// A request of the conversation whose messages these are, answered before the next one is sent.
    fn asked(messages: &str, (ordinal, burst): (u32, u32), at: u64) -> Observed {
        static LAYOUT: Layout = Layout { conversation: &["/list"], ..Layout::NONE };
        static PROFILE: Profile = Profile { layout: &LAYOUT, ..Profile::plain("talk") };
        let mut one = observed(2 * at, 2 * at + 1, (ordinal, burst));
        let list: Vec<String> = messages.chars().map(String::from).collect();
        one.passed.request.body = json!({"list": list}).into();
        one.passed.request.profile = &PROFILE;
        one
    }

    fn sent(now: &[(&str, (u32, u32))]) -> Vec<u32> {
        ordered((0..).zip(now).map(|(at, (messages, place))| asked(messages, *place, at)).collect())
    }

    #[test]
    fn conversations_that_began_side_by_side_have_the_order_of_the_recording_whichever_is_faster_now() {
        // The second answer took long in the recording, and takes no time now.
        assert_eq!(
            sent(&[("a", (0, 1)), ("b", (1, 1)), ("bb", (3, 2)), ("aa", (2, 1)), ("v", (4, 3))]),
            [0, 1, 2, 3, 4]
        );
        // One began so late now that the other was answered.
        assert_eq!(sent(&[("a", (0, 1)), ("aa", (2, 2)), ("b", (1, 1))]), [0, 1, 2]);
        // Votes ask the same.
        assert_eq!(sent(&[("a", (0, 1)), ("a", (1, 1)), ("ac", (3, 2)), ("ab", (2, 1))]), [0, 1, 2, 3]);
        // A request to a service between them is of one of them.
        let mut service = observed(6, 7, (3, 1));
        service.passed.request.service = Service::Search;
        let mut now = vec![asked("a", (0, 1), 0), asked("b", (1, 1), 1), asked("bb", (4, 2), 2), service];
        now.push(asked("aa", (2, 1), 4));
        assert_eq!(ordered(now), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn conversations_that_cross_were_side_by_side_and_one_within_another_was_not() {
        assert_eq!(sent(&[("b", (1, 2)), ("a", (0, 1)), ("bb", (3, 4)), ("aa", (2, 3))]), [0, 1, 2, 3]);
        assert_eq!(sent(&[("b", (1, 2)), ("bb", (2, 3)), ("a", (0, 1)), ("aa", (3, 4))]), [1, 2, 0, 3]);
    }

    #[test]
    fn what_follows_conversations_side_by_side_keeps_its_own_order() {
        let before = [("a", (0, 1)), ("b", (1, 1)), ("aa", (2, 2)), ("bb", (3, 2))];
        let now: Vec<_> =
            before.into_iter().chain([("r", (6, 4)), ("rr", (7, 5)), ("v", (4, 2)), ("vv", (5, 3))]).collect();
        assert_eq!(sent(&now), [0, 1, 2, 3, 6, 7, 4, 5]);
        // Two agents one after the other, while a conversation goes on that began beside a title.
        let titled = [("a", (0, 1)), ("t", (1, 1)), ("y", (4, 3)), ("x", (3, 2)), ("aa", (5, 4))];
        assert_eq!(sent(&titled), [0, 1, 4, 3, 5]);
        // A service that is asked while one conversation alone goes on.
        let services = [observed(6, 7, (4, 4)), observed(8, 9, (3, 3))];
        let mut now = vec![asked("a", (0, 1), 0), asked("e", (1, 1), 1), asked("aa", (2, 2), 2)];
        now.extend(services);
        now.push(asked("aaa", (5, 5), 5));
        assert_eq!(ordered(now), [0, 1, 2, 4, 3, 5]);
    }

    #[test]
    fn what_was_asked_one_after_another_in_the_recording_and_in_another_order_now_keeps_that_order() {
        let changed = vec![observed(1, 2, (1, 2)), observed(3, 4, (0, 1)), observed(5, 6, (2, 3))];
        assert_eq!(ordered(changed), [1, 0, 2]);
    }
}
