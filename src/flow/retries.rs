//! Books retries: the account, the episode, and whether each one recovered.
//!
//! A retry is booked when its outcome is known. Each call is booked once: a call made after a reminder is a model
//! retry, even if an earlier call of that tool was refused. Responses are booked only on the model account.

use crate::trace::{Account, Retried};
use std::collections::BTreeMap;

#[derive(Debug, Clone)]
struct Episode {
    number: u32,
    attempts: u32,
    cause: String,
    pending: bool,
    /// Whether the model has been called since the reminder.
    made: bool,
    /// The completion that asked for the first call that failed; `None` for a call of the provider's own.
    began: Option<u32>,
}

/// The retries of one turn.
#[derive(Debug, Clone, Default)]
pub(in crate::flow) struct Retries {
    episodes: u32,
    reminded: BTreeMap<String, Episode>,
    failing: BTreeMap<String, Episode>,
    failures: BTreeMap<String, u32>,
}

impl Retries {
    fn episode(&mut self, cause: &str) -> Episode {
        let number = self.episodes;
        self.episodes += 1;
        Episode { number, attempts: 0, cause: cause.to_owned(), pending: false, made: false, began: None }
    }

    /// Records a reminder to call `tool`: the model's next attempt is a retry.
    pub(in crate::flow) fn reminded(&mut self, tool: &str, cause: &str) {
        let mut episode = self.reminded.remove(tool).unwrap_or_else(|| self.episode(cause));
        episode.attempts += 1;
        (episode.pending, episode.made) = (true, false);
        cause.clone_into(&mut episode.cause);
        self.reminded.insert(tool.to_owned(), episode);
    }

    /// Ends the pending retry of `tool`, if there is one. A call that the model asked for before the reminder is none; if it
    /// worked, none is due.
    pub(in crate::flow) fn settle(&mut self, tool: &str, recovered: bool) -> Option<Retried> {
        let episode = self.reminded.get_mut(tool).filter(|episode| episode.pending)?;
        episode.pending = !episode.made && !recovered;
        episode.made.then(|| retried(Account::Model, tool, episode, recovered))
    }

    /// Marks pending reminders as retried, because the model is called again.
    pub(in crate::flow) fn asked(&mut self) {
        self.reminded.values_mut().for_each(|episode| episode.made |= episode.pending);
    }

    /// Ends all pending retries at the end of a turn as not recovered. If the turn ended before the model was called
    /// again, no retry was made.
    pub(in crate::flow) fn settle_all(&mut self) -> Vec<Retried> {
        let made = self.reminded.iter().filter(|(_, episode)| episode.made);
        let tools: Vec<String> = made.map(|(tool, _)| tool.clone()).collect();
        tools.iter().filter_map(|tool| self.settle(tool, false)).collect()
    }

    /// Books a call of `tool` that returned a result, or that failed or was refused for `cause`. Calls that one completion
    /// asked for together are no retries of each other; those that a provider made itself, one after the other, have none.
    pub(in crate::flow) fn called(
        &mut self,
        tool: &str,
        completion: Option<u32>,
        cause: Option<&str>,
    ) -> Option<Retried> {
        let recovered = cause.is_none();
        let mut booked = self.settle(tool, recovered);
        let is_earlier = |episode: &Episode| completion.is_none() || episode.began < completion;
        if let Some(episode) = self.failing.get_mut(tool).filter(|episode| booked.is_none() && is_earlier(episode)) {
            episode.attempts += 1;
            booked = Some(retried(Account::Tool, tool, episode, recovered));
        }
        if let Some(cause) = cause {
            *self.failures.entry(tool.to_owned()).or_default() += 1;
            let failing = self.failing.remove(tool);
            let mut episode = failing.unwrap_or_else(|| Episode { began: completion, ..self.episode(cause) });
            cause.clone_into(&mut episode.cause);
            self.failing.insert(tool.to_owned(), episode);
        } else if self.failing.get(tool).is_some_and(is_earlier) {
            self.failing.remove(tool);
        }
        booked
    }

    /// Books a call of `tool` without a visible result: if it is a retry, it is neither recovered nor failed.
    pub(in crate::flow) fn unseen(&mut self, tool: &str) {
        if let Some(episode) = self.reminded.get_mut(tool) {
            episode.pending = false;
        }
    }

    /// Number of calls of `tool` that failed or were refused in this turn.
    pub(in crate::flow) fn failures(&self, tool: &str) -> u32 {
        self.failures.get(tool).copied().unwrap_or_default()
    }

    /// Marks `tool` as exhausted: it does not run again in this turn.
    pub(in crate::flow) fn exhaust(&mut self, tool: &str) {
        self.failures.insert(tool.to_owned(), u32::MAX / 2);
    }

    /// The repeated HTTP attempts of one request: for each repeat, the cause of the attempt before it, and whether it
    /// succeeded.
    pub(in crate::flow) fn transport(
        &mut self,
        target: &str,
        attempts: &[(Option<&'static str>, bool)],
    ) -> Vec<Retried> {
        let (mut booked, mut episode) = (Vec::new(), None);
        // What follows a success is another request of the same call.
        for pair in attempts.windows(2).filter(|pair| !pair[0].1) {
            let episode = episode.get_or_insert_with(|| self.episode(""));
            pair[0].0.unwrap_or("unknown").clone_into(&mut episode.cause);
            episode.attempts += 1;
            booked.push(retried(Account::Transport, target, episode, pair[1].1));
        }
        booked
    }
}

fn retried(account: Account, target: &str, episode: &Episode, recovered: bool) -> Retried {
    Retried {
        account,
        episode: episode.number,
        attempt: episode.attempts,
        target: target.to_owned(),
        cause: episode.cause.clone(),
        recovered,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_after_one_that_succeeded_is_no_repeat_of_it() {
        let mut retries = Retries::default();
        let (failed, done) = ((Some("timeout"), false), (None, true));
        assert!(retries.transport("embeddings", &[done, done]).is_empty());
        let booked = retries.transport("embeddings", &[done, failed, done]);
        assert_eq!(
            booked.iter().map(|one| (one.cause.as_str(), one.recovered)).collect::<Vec<_>>(),
            [("timeout", true)]
        );
    }

    #[test]
    fn a_refused_tool_that_is_called_again_is_a_tool_retry_in_one_episode() {
        let mut retries = Retries::default();
        assert!(retries.called("look_up", Some(0), Some("generic_keyword")).is_none());
        let first = retries.called("look_up", Some(1), Some("length")).expect("is a retry");
        assert_eq!((first.attempt, first.cause.as_str(), first.recovered), (1, "generic_keyword", false));
        let second = retries.called("look_up", Some(2), None).expect("is a retry");
        assert_eq!((second.attempt, second.cause.as_str(), second.recovered), (2, "length", true));
        assert_eq!((first.episode, second.episode), (0, 0));
        assert!(retries.called("look_up", Some(3), None).is_none());
        assert_eq!(retries.failures("look_up"), 2);
    }

    #[test]
    fn calls_that_one_completion_asked_for_are_no_retries_of_each_other() {
        let mut retries = Retries::default();
        for (completion, cause, booked) in [
            (Some(0), Some("tool_failed"), None),
            (Some(0), None, None),
            (Some(0), Some("tool_failed"), None),
            (Some(1), Some("tool_failed"), Some((1, false))),
            (Some(1), None, Some((2, true))),
            (Some(1), None, None),
            (Some(2), None, None),
            (None, Some("tool_failed"), None),
            (None, None, Some((1, true))),
        ] {
            let seen = retries.called("look_up", completion, cause).map(|one| (one.attempt, one.recovered));
            assert_eq!(seen, booked, "{completion:?} {cause:?}");
        }
        retries.reminded("respond", "invalid_arguments");
        assert!(retries.settle("respond", true).is_none(), "asked for beside the one that failed");
        retries.asked();
        assert!(retries.settle_all().is_empty());
    }

    #[test]
    fn a_call_that_follows_a_reminder_is_booked_on_the_model_alone() {
        let mut retries = Retries::default();
        retries.called("look_up", Some(0), Some("length"));
        retries.reminded("look_up", "missing_call");
        retries.asked();
        let booked = retries.called("look_up", Some(1), None).expect("is a retry");
        assert_eq!((booked.account, booked.recovered), (Account::Model, true));
        assert!(retries.settle_all().is_empty());
    }

    #[test]
    fn reminders_that_nothing_came_of_did_not_recover() {
        let mut retries = Retries::default();
        retries.reminded("respond", "free_text");
        assert!(retries.settle_all().is_empty(), "the model was not asked again");
        retries.asked();
        let left = retries.settle_all();
        assert_eq!(left.len(), 1);
        assert!(!left[0].recovered);
    }

    #[test]
    fn every_repeated_http_attempt_is_one_transport_retry() {
        let mut retries = Retries::default();
        assert!(retries.transport("model", &[(None, true)]).is_empty());
        let attempts = [(Some("rate_limit"), false), (Some("server_error"), false), (None, true)];
        let booked = retries.transport("model", &attempts);
        let seen: Vec<_> = booked.iter().map(|one| (one.attempt, one.cause.as_str(), one.recovered)).collect();
        assert_eq!(seen, [(1, "rate_limit", false), (2, "server_error", true)]);
    }
}
