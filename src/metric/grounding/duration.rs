//! Amounts in two units, such as `1 h 45 min`.

use super::quantity::{Quantity, equal};
use super::units::{are_one_unit, is_of_time};

/// An amount in two units, such as `1 h 45 min` and `five dollars and fifty cents`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Duration {
    pub whole: Quantity,
    pub parts: [Quantity; 2],
}

/// What joins the parts of a duration.
const JOINED: [&str; 12] = ["", " ", ", ", " and ", " und ", " et ", " y ", " e ", " i ", " en ", " och ", " og "];

/// The amounts of a text that it gives in two units, of which `numbers` are the parts. They may be two amounts all the same:
/// `2 weeks, 5 days`.
pub(super) fn durations(text: &str, numbers: &[Quantity]) -> Vec<Duration> {
    let joined = |pair: &[Quantity]| {
        let [long, short] = pair else { return None };
        let ([more], [less]) = (long.values.as_slice(), short.values.as_slice()) else { return None };
        let unit = long.unit?;
        // `1h 45m` has no metres.
        let is_minutes = short.unit == Some("m") && equal(long.scale, 3600.0) && text[..short.end].ends_with('m');
        let is_money = short.unit == Some("cent") && are_one_unit("cent", unit);
        let scale = if is_minutes { 60.0 } else { short.scale };
        let less = less / short.scale * scale;
        let fits = is_minutes || is_money || is_of_time(unit) && short.unit == long.unit;
        let is_one = fits
            && less > 0.0
            && less < long.scale
            && short.per.is_empty()
            && JOINED.contains(&text.get(long.end..short.start)?);
        let mut whole = short.clone();
        (whole.start, whole.values, whole.unit, whole.scale) = (long.start, vec![more + less], Some(unit), scale);
        // Its digits are all significant.
        whole.significant = 9;
        is_one.then(|| Duration { whole, parts: [long.clone(), short.clone()] })
    };
    numbers.windows(2).filter_map(joined).collect()
}
