//! Shows a run's progress on stderr: a line redrawn on a terminal, or a new line from time to time in a CI log, so that
//! a long run is never silent.

use super::output;
use crate::platform::clock::{Clock, RealClock};
use crate::settings::price::dollars;
use crate::suite::{Mode, Progress, Reached};
use crate::trace::text::plural;
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Redraw interval on a terminal.
const DRAWN: Duration = Duration::from_millis(250);
/// Log interval of a live or recording run.
const HEARTBEAT: Duration = Duration::from_secs(30);
/// Log interval of a replay, which usually ends within seconds.
const SLOW_HEARTBEAT: Duration = Duration::from_mins(2);

/// A thread that reports progress until it is dropped.
pub(super) struct ProgressLine {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ProgressLine {
    /// Starts reporting.
    pub(super) fn begin(progress: &Arc<Progress>, mode: Mode) -> Self {
        let every = match mode {
            Mode::Replay => SLOW_HEARTBEAT,
            Mode::Record | Mode::Live => HEARTBEAT,
        };
        Self::saying(progress, every, line)
    }

    /// Starts reporting how many runs of a matrix ended.
    pub(super) fn of_matrix(progress: &Arc<Progress>) -> Self {
        Self::saying(progress, HEARTBEAT, |reached, elapsed| {
            let Reached { planned, done, .. } = reached;
            format!("{done} of {} so far, elapsed {}", plural(*planned, "run"), about(elapsed))
        })
    }

    fn saying(progress: &Arc<Progress>, every: Duration, line: fn(&Reached, Duration) -> String) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let every = if terminal { DRAWN } else { every };
        let width =
            terminal_size::terminal_size().map_or(80, |(terminal_size::Width(columns), _)| usize::from(columns));
        let tell = move |words: Option<&str>| match words {
            Some(words) if terminal => {
                let words: String = words.chars().take(width.saturating_sub(1)).collect();
                let _ = write!(std::io::stderr(), "\r\u{1b}[2K{words}");
            }
            Some(words) => output::remark(words),
            None if terminal => {
                let _ = write!(std::io::stderr(), "\r\u{1b}[2K");
            }
            None => {}
        };
        Self::telling(progress, every, line, tell)
    }

    /// Calls `tell` at this interval, and with `None` at the end.
    fn telling(
        progress: &Arc<Progress>,
        every: Duration,
        line: fn(&Reached, Duration) -> String,
        mut tell: impl FnMut(Option<&str>) + Send + 'static,
    ) -> Self {
        let progress = Arc::clone(progress);
        let (end, ended) = channel::<()>();
        let clock = RealClock::start();
        let thread = std::thread::spawn(move || {
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                tell(Some(&line(&progress.reached(), clock.now())));
            }
            tell(None);
        });
        Self { end: Some(end), thread: Some(thread) }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A panicked thread has nothing left to report.
            let _ = thread.join();
        }
    }
}

/// `12 of 540 trials: 10 PASS, 1 FAIL, 1 ERROR; about 8 min left, 4 running, 1.2 trials/s, 96 requests, $0.0312, elapsed 10 s`:
/// a narrow terminal cuts the end.
fn line(reached: &Reached, elapsed: Duration) -> String {
    let Reached { planned, done, failed, errors, running, requests, dollars: spent } = *reached;
    if planned == 0 {
        return format!("reading, elapsed {}", about(elapsed));
    }
    let verdicts = [(done.saturating_sub(failed), "PASS"), (failed.saturating_sub(errors), "FAIL"), (errors, "ERROR")];
    let verdicts: Vec<String> =
        verdicts.into_iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
    let verdicts = if done == 0 { String::new() } else { format!(": {}", verdicts.join(", ")) };
    let rate = done as f64 / elapsed.as_secs_f64().max(1e-3);
    let mut said = vec![];
    if done > 0 && done < planned {
        said.push(format!("about {} left", about(Duration::from_secs_f64((planned - done) as f64 / rate))));
    }
    if running > 0 {
        said.push(format!("{running} running"));
    }
    if done > 0 {
        said.push(if rate < 1.0 { format!("{:.1} trials/min", rate * 60.0) } else { format!("{rate:.1} trials/s") });
    }
    if requests > 0 {
        said.push(plural(usize::try_from(requests).unwrap_or(usize::MAX), "request"));
        said.extend(spent.map(dollars));
    }
    said.push(format!("elapsed {}", about(elapsed)));
    format!("{done} of {}{verdicts}; {}", plural(planned, "trial"), said.join(", "))
}

/// A duration in one or two units.
fn about(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..=99 => format!("{seconds} s"),
        seconds @ 100..=5_999 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_line_says_what_runs_failed_was_spent_and_is_left() {
        let reached =
            Reached { planned: 540, done: 60, failed: 3, errors: 2, running: 4, requests: 96, dollars: Some(0.5) };
        let told = line(&reached, Duration::from_mins(1));
        for words in [
            "60 of 540 trials: 57 PASS, 1 FAIL, 2 ERROR; ",
            "4 running",
            "1.0 trials/s",
            "96 requests",
            "$0.5",
            "elapsed 60 s",
            "8 min left",
        ] {
            assert!(told.contains(words), "{words} in {told}");
        }
        let left = told.find("about 8 min left").map(|at| at + "about 8 min left".len());
        assert!(left.is_some_and(|end| end < 80), "at 80 columns the remaining time is not cut: {told}");
    }

    #[test]
    fn before_the_first_trial_ended_it_speaks_too_and_promises_no_time() {
        assert_eq!(line(&Reached::default(), Duration::ZERO), "reading, elapsed 0 s");
        let begun = Reached { planned: 2, running: 2, ..Reached::default() };
        assert_eq!(line(&begun, Duration::from_secs(3)), "0 of 2 trials; 2 running, elapsed 3 s");
    }

    #[test]
    fn a_long_run_is_heard_of_again_and_again_until_it_ends() {
        let (heard, hears) = mpsc::channel();
        let progress = Arc::new(Progress::default());
        let telling = ProgressLine::telling(&progress, Duration::from_millis(1), line, move |words| {
            let _ = heard.send(words.map(str::to_owned));
        });
        for _ in 0..3 {
            let told = hears.recv_timeout(Duration::from_mins(1)).expect("it speaks");
            assert!(told.is_some_and(|words| words.starts_with("reading")));
        }
        drop(telling);
        assert_eq!(hears.into_iter().last(), Some(None), "the line is cleared at the end");
    }
}
