//! Decides whether a trial of an external agent can be judged: a refused request got no answer, and an agent that sent
//! no request was not observed.

use crate::flow::external::{AGENT_ERROR, ended_as};
use crate::trace::text::plural;
use crate::trace::{Event, TrialEnd, TrialError, TrialErrorKind, TurnOutcome, What};
use crate::trial::outcome::error;
use crate::trial::proxy::{Asked, MODEL_MOUNT, Refused, unsent_key};
use std::net::SocketAddr;

/// Requests that reached the proxy in one trial.
pub(super) struct Heard<'t> {
    /// Listening address of the proxy.
    pub(super) proxy: SocketAddr,
    /// Forwarded requests.
    pub(super) asked: Asked,
    /// Refused requests that may not be refused, each listed once.
    pub(super) refused: &'t [Refused],
    /// A request of no trial, while trials ran side by side.
    pub(super) stray: Option<&'t Refused>,
    /// Requests in the recording; `None` outside replay.
    pub(super) recorded: Option<Asked>,
    /// Whether the case declares that the agent sends no request.
    pub(super) asks_nothing: bool,
    /// Refused requests that carried the id of a trial that had ended.
    pub(super) of_ended: usize,
    /// Whether a test runner asks the agent.
    pub(super) by_runner: bool,
    /// Whether ragcheck started the agent, or its test runner, with the base URLs in its environment.
    pub(super) started: bool,
}

impl Heard<'_> {
    /// Why the trial cannot be judged. A refused request comes first, because other failures may follow from it.
    pub(super) fn problem(&self, events: &[Event], end: &TrialEnd) -> Option<Box<TrialError>> {
        let (kind, message, mut detail) = if let Some(stray) = self.stray.filter(|_| self.by_runner) {
            let detail = "tests run side by side, and this request may belong to any of them: build the client with the \
                          `base_urls` or the `headers` that POST /cases replied with, or run one test at a time";
            (TrialErrorKind::ProxyRefused, stray.to_string(), vec![detail.to_owned()])
        } else if let Some(stray) = self.stray {
            let detail = "trials run side by side while the agent sends the `traceparent` of its turn with every request; this \
                          one may belong to any of them, and the others of this run run one after another: forward the header \
                          always, or run with `--jobs 1`";
            (TrialErrorKind::ProxyRefused, stray.to_string(), vec![detail.to_owned()])
        } else if let [first, others @ ..] = self.refused {
            let mut detail: Vec<String> = others.iter().map(ToString::to_string).collect();
            detail.push(format!(
                "nobody answered that request, so the trial says nothing about the agent{}",
                first.remedy()
            ));
            (TrialErrorKind::ProxyRefused, first.to_string(), detail)
        } else if *end == TrialEnd::Completed && self.asked.completions == 0 && !self.asks_nothing {
            let (message, detail) = if self.of_ended > 0 && self.by_runner {
                Some(self.asked_as_another())
            } else if self.asked.requests == 0 {
                self.nothing_asked()
            } else {
                self.model_not_asked()
            }?;
            // An agent that failed before it asked is the cause, and the silence what follows.
            return Some(match failure(events) {
                Some(_) if self.fails_itself(events) => return None,
                Some(cause) => {
                    let mut lines = cause.lines().map(str::to_owned);
                    let first = lines.next().unwrap_or_default();
                    let followed = match unsent_key(cause) {
                        Some(why) => vec![why.to_owned()],
                        None => vec![message, detail],
                    };
                    error(TrialErrorKind::NothingAsked, &first, lines.chain(followed).collect())
                }
                None => error(TrialErrorKind::NothingAsked, &message, vec![detail]),
            });
        } else {
            return None;
        };
        if let TrialEnd::Error(other) = end {
            detail.push(format!("the trial ended with: {}", other.message));
        }
        detail.extend(failure(events).map(|message| format!("the turn ended with: {message}")));
        Some(error(kind, &message, detail))
    }

    /// Whether an agent replied with an error of its own before it asked what its recording holds: its turn has failed.
    fn fails_itself(&self, events: &[Event]) -> bool {
        let is_own = failure(events).is_some_and(|cause| unsent_key(cause).is_none());
        self.recorded.is_some() && is_own && events.iter().any(|event| ended_as(event, &[AGENT_ERROR]))
    }

    /// Message and remedy for an agent whose client was made for another case.
    fn asked_as_another(&self) -> (String, String) {
        let requests = plural(self.of_ended, "request");
        let message = format!("{requests} came with the base URL of a case that has ended, and went unanswered");
        let detail = "the client was made in the test of that case: make one in each test, or one before the first case that \
                      sends the `headers` of the case";
        (message, detail.to_owned())
    }

    /// Message and remedy for an agent that sent no request; `None` if its recording is empty too.
    fn nothing_asked(&self) -> Option<(String, String)> {
        let Some(recorded) = self.recorded else {
            let question = if self.started {
                "does its client read the base URL in its environment?".to_owned()
            } else {
                format!("is its base URL {}?", self.base())
            };
            let message = format!("no request came: the agent asked nothing here; {question}");
            let detail = "an agent that answers from a cache has to clear it in `reset`, or at its start; a case that is meant to be \
                          answered without a request says `asks_nothing: true`";
            return Some((message, detail.to_owned()));
        };
        let missing = not_asked_for(recorded.requests, "exchange")?;
        let message =
            format!("no request came to the proxy; {missing}: does the agent still go to the provider itself?");
        Some((message, self.remedy("", "record again, or write `asks_nothing: true`,")))
    }

    /// Message and remedy for an agent that asked for anything but the recorded completions: embeddings, or a list of
    /// models. `None` if there are none.
    fn model_not_asked(&self) -> Option<(String, String)> {
        let missing = not_asked_for(self.recorded?.completions, "completion")?;
        let message = format!(
            "no request for a completion came to the proxy; {missing}: does the agent still go to its model itself?"
        );
        Some((message, self.remedy(" for its model too", "record again")))
    }

    /// What to do about an agent that does not ask its model: `whose` names the base URL, and `otherwise` says what to do if
    /// this is intended.
    fn remedy(&self, whose: &str, otherwise: &str) -> String {
        let url = if self.started {
            format!("let its client read the base URL in its environment{whose} (OPENAI_BASE_URL and others)")
        } else {
            format!("start the agent with the base URL {}{whose}", self.base())
        };
        format!("{url}; {otherwise} if it answers this case without its model now")
    }

    fn base(&self) -> String {
        format!("http://{}{MODEL_MOUNT}", self.proxy)
    }

    /// Note for a trial that is judged although no completion passed the proxy.
    pub(super) fn note(&self, events: &[Event], end: &TrialEnd) -> Option<String> {
        if self.asked.completions > 0 || *end != TrialEnd::Completed {
            return None;
        }
        let silent = self.asked.requests > 0;
        if self.fails_itself(events) && !self.asks_nothing {
            let (message, _) = if silent { self.model_not_asked() } else { self.nothing_asked() }?;
            return Some(message);
        }
        silent.then(|| {
            "no request for a completion came: if the agent asks its model elsewhere, a replay does not repeat that"
                .to_owned()
        })
    }
}

/// Message of the first turn that failed.
pub(super) fn failure(events: &[Event]) -> Option<&str> {
    failed_turn(events).map(|(_, message)| message)
}

/// The first turn that failed, from 1, and its message.
pub(super) fn failed_turn(events: &[Event]) -> Option<(u32, &str)> {
    events.iter().find_map(|event| match &event.what {
        What::TurnEnded(ended) => match &ended.outcome {
            TurnOutcome::Failed { message, .. } => Some((event.turn.saturating_add(1), message.as_str())),
            TurnOutcome::Answered(_) => None,
        },
        _ => None,
    })
}

/// The error of a trial whose `miss` follows a turn that failed: its answer is missing in the next request. `None` if none
/// failed in that conversation.
pub(super) fn failed_before(miss: &TrialError, events: &[Event]) -> Option<Box<TrialError>> {
    let conversation = events.last().filter(|_| miss.kind == TrialErrorKind::CassetteMiss)?.conversation;
    let first = events.iter().position(|event| event.conversation == conversation)?;
    let (turn, cause) = failed_turn(&events[first..])?;
    let mut lines = cause.lines().map(str::to_owned);
    let message = format!("turn {turn} failed: {}", lines.next().unwrap_or_default());
    Some(Box::new(miss.after(message, lines)))
}

/// Part of a message; `None` if there are none.
pub(super) fn not_asked_for(count: usize, what: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("1 recorded {what} was not asked for")),
        more => Some(format!("{more} recorded {what}s were not asked for")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::TurnEnded;

    fn completions(count: usize) -> Asked {
        Asked { requests: count, completions: count }
    }

    fn told(asked: usize, recorded: Option<usize>, asks_nothing: bool) -> Option<String> {
        problem(completions(asked), recorded.map(completions), asks_nothing)
    }

    fn problem(asked: Asked, recorded: Option<Asked>, asks_nothing: bool) -> Option<String> {
        let heard = Heard { recorded, asks_nothing, ..heard(asked) };
        heard.problem(&[], &TrialEnd::Completed).map(|problem| problem.message)
    }

    /// What was heard of an agent that runs elsewhere.
    fn heard(asked: Asked) -> Heard<'static> {
        let proxy = SocketAddr::from(([127, 0, 0, 1], 8101));
        let (recorded, stray, asks_nothing) = (None, None, false);
        let (by_runner, started, of_ended) = (false, false, 0);
        Heard { proxy, asked, refused: &[], stray, recorded, asks_nothing, of_ended, by_runner, started }
    }

    #[test]
    fn an_agent_that_asked_nothing_is_told_by_what_its_recording_holds() {
        let live = told(0, None, false).expect("a problem");
        assert_eq!(
            live,
            "no request came: the agent asked nothing here; is its base URL http://127.0.0.1:8101/model/v1?"
        );
        let one = told(0, Some(1), false).expect("a problem");
        assert!(one.contains("1 recorded exchange was not asked for"), "{one}");
        let many = told(0, Some(13), false).expect("a problem");
        assert!(many.contains("13 recorded exchanges were not asked for: does the agent still go"), "{many}");
        assert_eq!(told(0, Some(0), false), None, "nothing was recorded, and nothing is asked");
        assert_eq!((told(1, None, false), told(1, Some(13), false)), (None, None));
        assert_eq!((told(0, None, true), told(0, Some(0), true)), (None, None), "the case declares it");
    }

    #[test]
    fn an_agent_that_fails_by_itself_before_it_asks_is_judged_in_a_replay_with_the_silence_as_a_note() {
        let ended = |kind: &str| {
            let outcome =
                TurnOutcome::Failed { kind: kind.into(), message: "The agent answered with HTTP 500.".into() };
            let what = What::TurnEnded(TurnEnded { took_us: 1, outcome, history: Vec::new(), reply: None });
            [Event { at_us: 0, conversation: 0, turn: 0, what }]
        };
        let told = |recorded, kind| {
            let heard = Heard { recorded, ..heard(Asked::default()) };
            let problem = heard.problem(&ended(kind), &TrialEnd::Completed).map(|problem| problem.message);
            (problem, heard.note(&ended(kind), &TrialEnd::Completed))
        };
        let (problem, note) = told(Some(completions(2)), AGENT_ERROR);
        assert_eq!(problem, None);
        assert!(note.is_some_and(|note| note.contains("2 recorded exchanges were not asked for: does the agent")));
        // A process that ends may have gone around the proxy, and a live one may have the wrong base URL.
        for (recorded, kind) in [(Some(completions(2)), "agent_crashed"), (None, AGENT_ERROR)] {
            let (problem, note) = told(recorded, kind);
            assert_eq!((problem.as_deref(), note), (Some("The agent answered with HTTP 500."), None), "{kind}");
        }
    }

    #[test]
    fn an_agent_whose_client_sends_its_key_to_https_alone_is_told_what_to_set_and_of_no_base_url() {
        let message = "HTTP 500: {\"error\": \"Invalid endpoint configuration: Bearer authorization requires an HTTPS endpoint.\"}";
        let outcome = TurnOutcome::Failed { kind: "agent_error".into(), message: message.into() };
        let ended = TurnEnded { took_us: 1, outcome, history: Vec::new(), reply: None };
        let failed = [Event { at_us: 0, conversation: 0, turn: 0, what: What::TurnEnded(ended) }];
        let told = heard(Asked::default()).problem(&failed, &TrialEnd::Completed).expect("a problem");
        let text = told.detail.join(" ");
        assert!(text.contains("signature_version=botocore.UNSIGNED") && !text.contains("base URL"), "{text}");
    }

    #[test]
    fn a_replay_without_the_recorded_completions_is_told_whatever_else_was_asked() {
        let list = Asked { requests: 1, completions: 0 };
        let both = Asked { requests: 2, completions: 1 };
        let message = problem(list, Some(both), false).expect("a problem");
        assert!(
            message.contains("no request for a completion came to the proxy; 1 recorded completion was"),
            "{message}"
        );
        assert_eq!(problem(list, Some(list), false), None, "nothing more was recorded");
        assert_eq!((problem(list, None, false), problem(both, Some(both), false)), (None, None));
        let note = |asked| heard(asked).note(&[], &TrialEnd::Completed);
        assert!(note(list).is_some_and(|note| note.starts_with("no request for a completion came")));
        assert_eq!((note(both), note(Asked::default())), (None, None));
    }

    #[test]
    fn an_agent_that_ragcheck_started_is_told_of_no_address_that_the_next_run_changes() {
        for (recorded, words) in [(None, "asks_nothing: true"), (Some(completions(1)), "OPENAI_BASE_URL and others")] {
            let heard = Heard { recorded, started: true, ..heard(Asked::default()) };
            let told = heard.problem(&[], &TrialEnd::Completed).expect("a problem");
            let text = format!("{} {}", told.message, told.detail.join(" "));
            assert!(!text.contains("8101") && text.contains(words), "{text}");
        }
    }

    #[test]
    fn a_miss_after_a_turn_that_failed_is_told_by_that_failure_and_proposes_no_recording() {
        let outcome = TurnOutcome::Failed { kind: "agent_error".into(), message: "HTTP 500.\ncrm down".into() };
        let ended = TurnEnded { took_us: 1, outcome, history: Vec::new(), reply: None };
        let failed = [Event { at_us: 0, conversation: 0, turn: 0, what: What::TurnEnded(ended) }];
        let detail = vec!["+ message 2 (user)".to_owned(), "re-record: ragcheck run".to_owned()];
        let miss = error(TrialErrorKind::CassetteMiss, "the conversation is longer", detail);
        let told = failed_before(&miss, &failed).expect("another problem");
        assert_eq!((told.kind, told.message.as_str()), (TrialErrorKind::TurnFailed, "turn 1 failed: HTTP 500."));
        let after = "so a later request is not recorded: the conversation is longer";
        assert_eq!(told.detail, ["crm down", after, "+ message 2 (user)"]);
        assert_eq!(failed_before(&miss, &[]), None);
        assert_eq!(failed_before(&error(TrialErrorKind::AsksLess, "less", Vec::new()), &failed), None);
    }

    #[test]
    fn another_end_of_the_trial_stands_where_nothing_was_refused() {
        let heard = heard(Asked::default());
        let unreached = TrialEnd::Error(*error(TrialErrorKind::Provider, "the agent was not reached", Vec::new()));
        assert_eq!(heard.problem(&[], &unreached), None);
    }
}
