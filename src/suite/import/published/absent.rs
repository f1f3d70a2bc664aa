//! Which members a published trace lacks. A member is there if every place that can have it has it.

use super::{Call, GivenAnswer, GivenCompletion, GivenSearch, Origin, PublishedTrace, Turn};
use crate::trace::Member;
use crate::trace::answer::{is_blank, without_reasoning};

/// Whether a turn that was answered has a time.
pub(in crate::suite::import) fn are_timed<'t>(traces: impl IntoIterator<Item = &'t PublishedTrace>) -> bool {
    let conversations = traces.into_iter().flat_map(|trace| &trace.conversations);
    let mut turns = conversations.flat_map(|conversation| &conversation.turns);
    turns.any(|turn| is_answered(turn) && turn.took_ms.is_some())
}

/// The members that it lacks, in the order of the document. Where answers `are_timed`, a turn without an answer needs no
/// time: it took longer than any limit. In a file without times, failures would count alone.
pub(in crate::suite::import) fn absent(trace: &PublishedTrace, are_timed: bool) -> Vec<Member> {
    let turns = || trace.conversations.iter().flat_map(|conversation| &conversation.turns);
    let ends = |turn: &Turn| turn.answer.is_some() || turn.error.is_some();
    let has = |member: &Member| match member {
        Member::Tenant => trace.conversations.iter().all(|conversation| conversation.tenant.is_some()),
        Member::Machine => trace.machine.is_some(),
        Member::Took => turns().all(|turn| turn.took_ms.is_some() || are_timed && ends(turn) && !is_answered(turn)),
        member => turns().all(|turn| turn_has(turn, *member)),
    };
    Member::ALL.iter().filter(|member| !has(member)).copied().collect()
}

fn turn_has(turn: &Turn, member: Member) -> bool {
    let completions =
        |has: fn(&GivenCompletion) -> bool| turn.completions.as_ref().is_some_and(|all| all.iter().all(has));
    let calls = |has: fn(&Call) -> bool| turn.calls.as_ref().is_some_and(|all| all.iter().all(has));
    let searches = |has: fn(&GivenSearch) -> bool| turn.searches.as_ref().is_some_and(|all| all.iter().all(has));
    let ends = turn.answer.is_some() || turn.error.is_some();
    let answer =
        |has: fn(&GivenAnswer) -> bool| ends && turn.answer.as_ref().is_none_or(|one| one.as_ref().is_none_or(has));
    match member {
        Member::Completions => completions(|_| true),
        Member::Shown => completions(|one| one.shown.is_some()),
        Member::ToolChoice => completions(|one| one.tool_choice.is_some()),
        Member::TookParts => {
            let untimed = turn.completions.iter().flatten().any(|one| one.took_ms.is_none())
                || turn.calls.iter().flatten().any(|one| one.took_ms.is_none())
                || turn.searches.iter().flatten().any(|one| one.took_ms.is_none());
            !untimed
        }
        Member::Calls => calls(|_| true),
        Member::CallsOfCompletions => calls(|call| call.completion.is_some()),
        // A call without parameters has none.
        Member::Arguments => {
            let mut all = turn.calls.iter().flatten().peekable();
            all.peek().is_none() || all.any(|call| call.arguments.is_some())
        }
        Member::Outcomes => calls(|call| call.outcome.is_some()),
        Member::Passages => searches(|one| {
            one.failed.is_some()
                || match one.kind {
                    Origin::Internal => one.passages.is_some(),
                    Origin::External => one.pages.is_some(),
                }
        }),
        Member::WithoutLearned => searches(|one| knows(one, one.without_learned.is_some())),
        Member::Bases => searches(|one| knows(one, one.base.is_some())),
        Member::Managed => searches(|one| knows(one, one.managed.is_some())),
        Member::IndexWrites => {
            turn.index_writes.as_ref().is_some_and(|all| all.iter().all(|write| write.read_back.is_some()))
        }
        Member::Feedback => turn.feedback.is_some(),
        Member::Retries => turn.retries.is_some(),
        Member::Moves => turn.moves.is_some(),
        Member::Log => turn.log.is_some(),
        Member::Sequence => {
            let lists = turn.feedback.as_ref().is_some_and(|all| !all.is_empty())
                || turn.log.as_ref().is_some_and(|all| !all.is_empty());
            turn.sequence.is_some() || !lists
        }
        Member::Answers => ends,
        Member::Sources => answer(|answer| answer.sources.is_some()),
        Member::Claims => answer(|answer| answer.used_internal_kb.is_some() && answer.used_external_kb.is_some()),
        Member::Refusals => answer(|answer| answer.refused.is_some()),
        Member::History => turn.history.is_some(),
        Member::Replies => turn.reply.is_some(),
        Member::Tenant | Member::Machine | Member::Took => true,
    }
}

/// Whether the user got an answer.
fn is_answered(turn: &Turn) -> bool {
    turn.answer.iter().flatten().any(|answer| !is_blank(without_reasoning(&answer.text)))
}

/// Whether a search shows something that only successful searches of the knowledge can show.
fn knows(search: &GivenSearch, shown: bool) -> bool {
    shown || search.kind == Origin::External || search.failed.is_some()
}
