//! What the searches of a trial found, without secrets: by name for its trace, and whole.

use crate::knowledge::FoundPassages;
use crate::secrets::{self, Redactor};
use crate::trace::{PassageText, Searched, Trace};
use std::collections::BTreeMap;

/// Names in `trace` what was found, and gives it whole. What a service may have echoed is looked for where there is a
/// `redactor`: in a replay there was no service.
pub(super) fn named(trace: &mut Trace, found: &FoundPassages, redactor: Option<&Redactor>) -> Vec<PassageText> {
    let clean = |text: &str| match redactor {
        Some(redactor) => secrets::clean(&redactor.redact(text)).into_owned(),
        None => secrets::clean(text).into_owned(),
    };
    let mut texts = Vec::new();
    for (base, passages) in found.take() {
        let mut names = BTreeMap::new();
        for passage in passages {
            let (id, title, text) = (clean(&passage.id), clean(&passage.title), clean(&passage.text));
            let passage = PassageText { base: base.clone(), id, title, text };
            names.insert(passage.id.clone(), passage.name());
            texts.push(passage);
        }
        trace.passages.push(Searched { base, passages: names });
    }
    texts
}
