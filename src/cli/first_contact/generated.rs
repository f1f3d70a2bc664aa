//! Values that the agent generates per conversation.

use super::meet::{FIRST, SECOND};
use crate::cassette::{Minted, Redactor, holding, minted, stored_body};
use crate::platform::clock::{Clock, RealClock};
use crate::platform::secrets;
use crate::transport::Passed;
use serde_json::Value;

/// Values that differ between two conversations about one question, and today's date.
pub(super) fn generated(first: &[Passed], second: &[Passed], question: &str) -> Vec<Minted> {
    let compared = |one: &Passed| {
        let body = stored_body(one.request.profile, &one.request.body, &Redactor::default());
        let text = body.to_string().replace(SECOND, FIRST);
        secrets::clean_value(serde_json::from_str(&text).unwrap_or(body))
    };
    let (ours, theirs): (Vec<Value>, Vec<Value>) =
        (first.iter().map(compared).collect(), second.iter().map(compared).collect());
    let today = dates();
    let today: Vec<&str> = today.iter().map(String::as_str).collect();
    let mut found = minted(ours.iter().zip(&theirs), &[question], &today);
    for date in &today {
        for one in holding(&ours, date, &[question], &today) {
            let known = found
                .iter()
                .any(|known| known.at == one.at && known.expression == one.expression || known.name == one.name);
            if !known {
                found.push(one);
            }
        }
    }
    found
}

/// Today's date in the usual spellings, in every time zone, the longest first.
pub(super) fn dates() -> Vec<String> {
    const SPELLINGS: [&str; 19] = [
        "%A, %B %-d, %Y", "%A, %B %d, %Y", "%A, %-d %B %Y", "%A, %d %B %Y", "%A %-d %B %Y", "%A, %F", "%A %F",
        "%a, %d %b %Y", "%a %b %d", "%a %b %-d", "%B %-d, %Y", "%B %d, %Y", "%-d %B %Y", "%d %B %Y", "%b %-d, %Y",
        "%F", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y",
    ];
    let now = RealClock::start().wall();
    let mut dates = Vec::new();
    for hours in [0, 12, -12] {
        let Ok(there) = now.checked_add(jiff::SignedDuration::from_hours(hours)) else { continue };
        let date = there.to_zoned(jiff::tz::TimeZone::UTC).date();
        for text in SPELLINGS.map(|spelling| date.strftime(spelling).to_string()) {
            if !dates.contains(&text) {
                dates.push(text);
            }
        }
    }
    dates
}
