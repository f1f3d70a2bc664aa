//! Passages found by the searches of a trial, redacted: referred to by name in its trace, and stored in full.

use crate::knowledge::{FoundPassages, Passage};
use crate::platform::secrets::{self, Redactor};
use crate::trace::{NamedPassage, PassageText, Searched, Trace};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

/// Maximum bytes of cached passages; passages beyond this are redacted again in each trial that finds them.
const MOST_REMEMBERED: usize = 32 << 20;

/// Cache of redacted and named passages, because the trials of a plan find the same passages repeatedly.
#[derive(Default)]
pub(super) struct Named {
    remembered: RwLock<Remembered>,
}

#[derive(Default)]
struct Remembered {
    /// Redactor that was applied.
    redactor: Redactor,
    /// Passages without a secret, by id.
    passages: HashMap<String, Vec<One>>,
    bytes: usize,
}

/// A passage as it was found, and as run folders store it.
struct One {
    base: String,
    found: Passage,
    named: Arc<NamedPassage>,
}

impl Named {
    /// Replaces the found passages in `trace` by names, and returns them in full, and whether none of them held a key.
    /// `redactor` knows the keys in use; documents may hold others.
    pub(super) fn name(
        &self,
        trace: &mut Trace,
        found: &FoundPassages,
        redactor: &Redactor,
    ) -> (Vec<Arc<NamedPassage>>, bool) {
        let mut all_clean = true;
        let mut texts = Vec::new();
        for (base, passages) in found.take() {
            let mut names = BTreeMap::new();
            for passage in passages {
                let named = self.known(&base, &passage, redactor).unwrap_or_else(|| {
                    let (named, clean) = cleaned(&base, &passage, redactor);
                    let named = Arc::new(named);
                    if clean {
                        self.remember(&base, passage, &named, redactor);
                    }
                    all_clean &= clean;
                    named
                });
                names.insert(named.id.clone(), named.name().to_owned());
                texts.push(named);
            }
            trace.passages.push(Searched { base, passages: names });
        }
        (texts, all_clean)
    }

    fn known(&self, base: &str, passage: &Passage, redactor: &Redactor) -> Option<Arc<NamedPassage>> {
        let remembered = self.remembered.read().unwrap_or_else(PoisonError::into_inner);
        let same = |one: &&One| one.base == base && one.found == *passage;
        let one = remembered.passages.get(&passage.id)?.iter().find(same)?;
        remembered.redactor.knows_the_same_as(redactor).then(|| Arc::clone(&one.named))
    }

    fn remember(&self, base: &str, found: Passage, named: &Arc<NamedPassage>, redactor: &Redactor) {
        let mut remembered = self.remembered.write().unwrap_or_else(PoisonError::into_inner);
        if !remembered.redactor.knows_the_same_as(redactor) {
            *remembered = Remembered { redactor: redactor.clone(), ..Remembered::default() };
        }
        let bytes = 2 * (found.id.len() + found.title.len() + found.text.len()) + base.len();
        if remembered.bytes + bytes <= MOST_REMEMBERED {
            remembered.bytes += bytes;
            let one = One { base: base.to_owned(), named: Arc::clone(named), found };
            remembered.passages.entry(one.found.id.clone()).or_default().push(one);
        }
    }
}

/// The redacted passage, and whether it held no secret.
fn cleaned(base: &str, passage: &Passage, redactor: &Redactor) -> (NamedPassage, bool) {
    let mut all_clean = true;
    let mut clean = |text: &str| {
        if redactor.is_surely_clean(text) {
            return secrets::clean(text).into_owned();
        }
        all_clean = false;
        secrets::clean(&redactor.redact(text)).into_owned()
    };
    let (id, title, text) = (clean(&passage.id), clean(&passage.title), clean(&passage.text));
    (NamedPassage::of(PassageText { base: base.to_owned(), id, title, text }), all_clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(text: &str) -> Passage {
        Passage { id: "a#1".into(), title: "Pumps".into(), text: text.into() }
    }

    fn known(named: &Named, text: &str, redactor: &Redactor) -> Option<String> {
        named.known("desk", &passage(text), redactor).map(|one| one.text.clone())
    }

    #[test]
    fn a_passage_is_looked_through_anew_for_another_key_another_base_and_another_text() {
        let (named, none) = (Named::default(), Redactor::default());
        let key = Redactor::new([("KEY".to_owned(), "a1b2c3d4e5".to_owned())]);
        let text = "the key a1b2c3d4e5 opens it";
        let (plain, clean) = cleaned("desk", &passage(text), &none);
        assert!(clean);
        named.remember("desk", passage(text), &Arc::new(plain), &none);
        assert_eq!(known(&named, text, &none).as_deref(), Some(text));
        assert_eq!(known(&named, text, &key), None, "the key is looked for now");
        assert_eq!(known(&named, "another text", &none), None);
        assert_eq!(named.known("other", &passage(text), &none), None);
        let long = "x".repeat(MOST_REMEMBERED / 2);
        named.remember("desk", passage(&long), &Arc::new(cleaned("desk", &passage(&long), &none).0), &none);
        assert_eq!(known(&named, &long, &none), None, "there is no room for it");
        let (redacted, clean) = cleaned("desk", &passage(text), &key);
        assert!(!clean && redacted.text.contains("[redacted:KEY]"), "{}", redacted.text);
    }
}
