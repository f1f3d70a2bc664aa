//! Defects of what a managed retrieval service answered, and of the artifact made from it.

use super::edits::searches;
use crate::trace::{Artifact, ManagedAnswer, ManagedStatus, Trace};

/// Changes every answer of a managed service.
pub(super) fn managed(trace: &mut Trace, mut change: impl FnMut(&mut ManagedAnswer) -> bool) -> bool {
    searches(trace, |search| search.managed.as_deref_mut().is_some_and(&mut change))
}

/// Changes every artifact.
pub(super) fn artifacts(trace: &mut Trace, mut change: impl FnMut(&mut Artifact)) -> bool {
    managed(trace, |answer| answer.artifact.as_mut().map(&mut change).is_some())
}

/// Moves the first marker of each line in front of the word that it stands behind; the list of sources stays.
pub(super) fn markers_moved(artifact: &mut Artifact) {
    let (text, list) = artifact.content.split_once("\n## ").unwrap_or((&artifact.content, ""));
    let mut out = String::with_capacity(artifact.content.len());
    for line in text.split_inclusive('\n') {
        let Some(marker) = line.find('[') else {
            out.push_str(line);
            continue;
        };
        let (before, behind) = line.split_at(marker);
        let (before, word) = before.split_at(before.rfind(' ').map_or(0, |space| space + 1));
        let (marker, behind) = behind.split_at(behind.rfind([')', ']']).map_or(0, |end| end + 1));
        out.extend([before, marker, word, behind]);
    }
    if !list.is_empty() {
        out.extend(["\n## ", list]);
    }
    artifact.content = out;
}

/// Gives every source the number after its own.
pub(super) fn renumbered(answer: &mut ManagedAnswer) -> bool {
    for source in &mut answer.sources {
        source.number += 1;
    }
    !answer.sources.is_empty()
}

/// Makes links lead to the service itself.
pub(super) fn past_the_gateway(answer: &mut ManagedAnswer) -> bool {
    const OWN: &str = "https://retrieval.example/api/v1/kb/resource/";
    for source in &mut answer.sources {
        source.link = source.link.replace("/gateway/download/", OWN);
    }
    if let Some(artifact) = &mut answer.artifact {
        artifact.content = artifact.content.replace("/gateway/download/", OWN);
    }
    !answer.sources.is_empty()
}

/// Makes an answer none, and none an answer.
pub(super) fn status_turned(answer: &mut ManagedAnswer) -> bool {
    answer.status = match answer.status {
        ManagedStatus::Success => ManagedStatus::NoAnswerFound,
        ManagedStatus::NoAnswerFound => ManagedStatus::Success,
    };
    true
}

/// Takes the words of the template off what was asked, or adds some where there is no template.
pub(super) fn rewording_lost(answer: &mut ManagedAnswer) -> bool {
    answer.asked = match answer.asked.split_once(": ") {
        Some((_, query)) => query.to_owned(),
        None => format!("Somebody asks: {}", answer.asked),
    };
    true
}
