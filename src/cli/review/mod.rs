//! `ragcheck review`: people rate conversations of a run on a page of this machine.

mod arguments;
mod server;

pub(super) use arguments::Review;

use super::exit::Exit;
use super::output::{self, Problem};
use super::runs;
use super::select::project;
use super::serve::{started, stopped};
use crate::grader::Scope;
use crate::platform::files;
use crate::suite::review::{self, ReviewOptions};
use crate::trace::text::{line, plural};
use server::Session;
use tokio::runtime::Builder;

/// Serves the review of a run until it is stopped.
///
/// # Errors
/// If the folder does not hold a readable run, no answer qualifies, or the ratings file cannot be used.
pub(super) fn run(given: &Review) -> Result<Exit, Problem> {
    let folder = runs::typed_or_newest(given.run.as_deref())?;
    let scope = if given.all { Scope::All } else { Scope::BothSources };
    let options = ReviewOptions { sample: given.sample, disagreements: given.disagreements, seed: given.seed, scope };
    let drawn = review::draw(&folder, options)?;
    if drawn.items.is_empty() {
        let hint = if given.all { "" } else { "; --all shows every answer, not only those from both sources" };
        return Err(format!("nothing to review: no answer of {} qualifies{hint}", folder.display()).into());
    }
    let (root, project) = project()?;
    let named = project.ratings.as_ref().map(|file| root.join(file));
    let file = given
        .ratings
        .as_deref()
        .map(files::absolute)
        .or_else(|| named.clone())
        .unwrap_or_else(|| root.join("ratings.csv"));
    let name = if named.as_ref() == Some(&file) {
        String::new()
    } else {
        let shown = file.strip_prefix(&root).unwrap_or(&file).display().to_string();
        format!("name the file in ragcheck.yaml (ratings: {}), then ", line(&shown))
    };
    let then = format!(
        "To count the ratings, {name}replay the recordings: ragcheck run. Ctrl-C in the terminal stops this page."
    );
    let sampled = drawn.items.iter().filter(|item| item.sampled).count();
    let (number, candidates) = (drawn.items.len(), drawn.candidates);
    if drawn.live {
        output::remark(
            "warning: the answers are of a live run, and ratings belong to answers: they count in no other run. Review a recorded run",
        );
    }
    let session = Session::open(drawn.items, file.clone(), then.clone())?;
    started(&mut Builder::new_multi_thread())?.block_on(async {
        let (address, server) = server::open(session, given.port)
            .await
            .map_err(|why| format!("127.0.0.1:{} cannot be listened on: {why}; try another --port", given.port))?;
        output::remark(&format!(
            "{number} of {} to rate, {sampled} of them a random sample; ratings go to {}\nreview: {address}\nCtrl-C stops it, and the same command goes on",
            plural(candidates, "conversation"),
            file.display()
        ));
        tokio::select! {
            ended = server => ended.map_err(|why| format!("the review stopped: {why}"))?,
            () = stopped() => {}
        }
        output::remark(&then);
        Ok(Exit::Passed)
    })
}
