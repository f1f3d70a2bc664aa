//! Lists without duplicates.

/// Each item once, in the order of its first occurrence.
pub(crate) fn distinct<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for item in items {
        if distinct.last() != Some(&item) && !distinct.contains(&item) {
            distinct.push(item);
        }
    }
    distinct
}
