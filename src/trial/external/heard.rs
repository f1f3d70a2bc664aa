//! Decides whether a trial of an external agent can be judged: a refused request got no answer, and an agent that sent
//! no request was not observed.

use crate::trace::{Event, TrialEnd, TrialError, TrialErrorKind, TurnOutcome, What};
use crate::trial::outcome::error;
use crate::trial::proxy::{MODEL_MOUNT, Refused};
use std::net::SocketAddr;

/// Requests that reached the proxy in one trial.
pub(super) struct Heard<'t> {
    /// Listening address of the proxy.
    pub(super) proxy: SocketAddr,
    /// Number of forwarded requests.
    pub(super) asked: u32,
    /// Refused requests that may not be refused, each listed once.
    pub(super) refused: &'t [Refused],
    /// A request of no trial, while trials ran side by side.
    pub(super) stray: Option<&'t Refused>,
    /// Number of exchanges in the recording; `None` outside replay.
    pub(super) recorded: Option<usize>,
    /// Whether the case declares that the agent sends no request.
    pub(super) asks_nothing: bool,
}

impl Heard<'_> {
    /// Why the trial cannot be judged. A refused request comes first, because other failures may follow from it.
    pub(super) fn problem(&self, events: &[Event], end: &TrialEnd) -> Option<Box<TrialError>> {
        let (kind, message, mut detail) = if let Some(stray) = self.stray {
            let detail = "trials run side by side while the agent sends the `traceparent` of its turn with every request; this \
                          one may belong to any of them, and the others of this run run one after another: forward the header \
                          always, or run with `--jobs 1`";
            (TrialErrorKind::ProxyRefused, stray.to_string(), vec![detail.to_owned()])
        } else if let [first, others @ ..] = self.refused {
            let mut detail: Vec<String> = others.iter().map(ToString::to_string).collect();
            detail.push(
                "nobody answered that request, so the trial says nothing about the agent; where a refusal does not \
                 matter, name the path in `target.may_refuse`"
                    .to_owned(),
            );
            (TrialErrorKind::ProxyRefused, first.to_string(), detail)
        } else if *end == TrialEnd::Completed && self.asked == 0 && !self.asks_nothing {
            let (message, detail) = self.nothing_asked()?;
            (TrialErrorKind::NothingAsked, message, vec![detail])
        } else {
            return None;
        };
        if let TrialEnd::Error(other) = end {
            detail.push(format!("the trial ended with: {}", other.message));
        }
        let failed = events.iter().find_map(|event| match &event.what {
            What::TurnEnded(ended) => match &ended.outcome {
                TurnOutcome::Failed { message, .. } => Some(message),
                TurnOutcome::Answered(_) => None,
            },
            _ => None,
        });
        detail.extend(failed.map(|message| format!("the turn ended with: {message}")));
        Some(error(kind, &message, detail))
    }

    /// Message and remedy for an agent that sent no request; `None` if its recording is empty too.
    fn nothing_asked(&self) -> Option<(String, String)> {
        let base = format!("http://{}{MODEL_MOUNT}", self.proxy);
        let Some(recorded) = self.recorded else {
            let message = format!("no request came: the agent asked nothing here; is its base URL {base}?");
            return Some((message, "a case that is answered without a request says `asks_nothing: true`".to_owned()));
        };
        let exchanges = match recorded {
            0 => return None,
            1 => "1 recorded exchange was".to_owned(),
            more => format!("{more} recorded exchanges were"),
        };
        let message = format!(
            "no request came to the proxy; {exchanges} not asked for: does the agent still go to the provider itself?"
        );
        Some((message, format!("start the agent with the base URL {base}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(asked: u32, recorded: Option<usize>, asks_nothing: bool) -> Option<String> {
        let proxy = SocketAddr::from(([127, 0, 0, 1], 8101));
        let heard = Heard { proxy, asked, refused: &[], stray: None, recorded, asks_nothing };
        heard.problem(&[], &TrialEnd::Completed).map(|problem| problem.message)
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
    fn another_end_of_the_trial_stands_where_nothing_was_refused() {
        let proxy = SocketAddr::from(([127, 0, 0, 1], 8101));
        let heard = Heard { proxy, asked: 0, refused: &[], stray: None, recorded: None, asks_nothing: false };
        let unreached = TrialEnd::Error(*error(TrialErrorKind::Provider, "the agent was not reached", Vec::new()));
        assert_eq!(heard.problem(&[], &unreached), None);
    }
}
