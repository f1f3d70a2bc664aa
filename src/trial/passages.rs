//! What the searches of a trial found, without secrets: by name for its trace, and whole.

use crate::knowledge::FoundPassages;
use crate::secrets::{self, Redactor};
use crate::trace::{PassageText, Searched, Trace};
use std::collections::BTreeMap;

/// Names in `trace` what was found, and gives it whole, and whether none of it held a key: `redactor` knows those in use,
/// and a document may hold others.
pub(super) fn named(trace: &mut Trace, found: &FoundPassages, redactor: &Redactor) -> (Vec<PassageText>, bool) {
    let mut all_clean = true;
    let mut clean = |text: &str| {
        if redactor.is_surely_clean(text) {
            return secrets::clean(text).into_owned();
        }
        all_clean = false;
        secrets::clean(&redactor.redact(text)).into_owned()
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
    (texts, all_clean)
}
