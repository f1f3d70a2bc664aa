//! Lists without duplicates.

/// Each item once, in the order of its first occurrence.
pub(crate) fn distinct<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    add_distinct(&mut distinct, items);
    distinct
}

/// Adds those items to a list that it does not have, each once.
pub(crate) fn add_distinct<T: PartialEq>(list: &mut Vec<T>, items: impl IntoIterator<Item = T>) {
    for item in items {
        if list.last() != Some(&item) && !list.contains(&item) {
            list.push(item);
        }
    }
}
