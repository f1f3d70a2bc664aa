//! Whole texts of the passages that an agent's searches found: its traffic shows them, and its trace keeps their beginnings.

use crate::knowledge::{FoundPassages, Passage};
use crate::platform::secrets;
use crate::trace::{Hit, Trace};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Shortens the passages in a trace to their beginnings, and returns the longer ones in full. Two texts under one id are
/// told apart by nothing, so neither is returned.
pub(super) fn take(trace: &mut Trace) -> FoundPassages {
    let mut found: BTreeMap<(String, String), Option<Passage>> = BTreeMap::new();
    for event in &mut trace.events {
        let Some(search) = event.what.search_mut() else { continue };
        for hit in &mut search.hits {
            let key = (search.kb_id.clone(), hit.id.clone());
            let passage =
                Passage { id: hit.id.clone(), title: hit.title.clone(), text: std::mem::take(&mut hit.excerpt) };
            hit.excerpt = secrets::beginning(&passage.text, Hit::EXCERPT);
            if hit.learned.is_some() {
                continue;
            }
            match found.entry(key) {
                Entry::Vacant(place) => drop(place.insert(Some(passage))),
                Entry::Occupied(mut place) => {
                    place.get_mut().take_if(|known| known.text != passage.text);
                }
            }
        }
    }
    let mut bases: BTreeMap<String, Vec<Passage>> = BTreeMap::new();
    // A text that ends with an ellipsis is a part of a passage.
    let is_whole = |passage: &Passage| passage.text.chars().nth(Hit::EXCERPT).is_some() && !passage.text.ends_with('…');
    for ((base, _), passage) in found {
        bases.entry(base).or_default().extend(passage.filter(is_whole));
    }
    bases.retain(|_, passages| !passages.is_empty());
    FoundPassages::of(bases)
}
