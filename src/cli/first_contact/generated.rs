//! Values that the agent generates per conversation.

use super::meet::{FIRST, SECOND};
use crate::cassette::{Minted, Now, Redactor, holding, minted, of_now, stored_body};
use crate::platform::clock::{Clock, RealClock};
use crate::platform::distinct;
use crate::platform::secrets;
use crate::transport::{HttpRequest, Passed};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde_json::Value;
use similar::TextDiff;

/// Values that differ between two conversations about one question, and today's date.
pub(super) fn generated(first: &[Passed], second: &[Passed], question: &str) -> Vec<Minted> {
    let mut left = first.to_vec();
    let ours: Vec<Value> = first.iter().map(|one| compared(&one.request)).collect();
    let pairs = second.iter().filter_map(|one| {
        let asked = left.remove(repeated(&left, &one.request)?);
        Some((compared(&asked.request), compared(&one.request)))
    });
    let pairs: Vec<(Value, Value)> = pairs.collect();
    let mut today = told(&ours);
    today.extend(dates());
    let today = distinct(today);
    let today: Vec<&str> = today.iter().map(String::as_str).collect();
    let mut found = minted(pairs.iter().map(|(before, now)| (before, now)), &[], &[question], &today);
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

/// The present dates and times, as bodies contain them.
fn told(bodies: &[Value]) -> Vec<String> {
    let at = |zone: TimeZone| RealClock::start().wall().to_zoned(zone);
    let times = [TimeZone::UTC, TimeZone::system()].map(|zone| at(zone).time());
    let now = Now { days: days(), times: times.into() };
    of_now(bodies, &now)
}

/// A request as it is compared: with the id of the first conversation.
fn compared(request: &HttpRequest) -> Value {
    let body = stored_body(request.profile, &request.body, &Redactor::default());
    let text = body.to_string().replace(SECOND, FIRST);
    secrets::clean_value(serde_json::from_str(&text).unwrap_or(body))
}

/// Place of the first request that is the same, if any.
pub(super) fn equal(asked: &[Passed], request: &HttpRequest) -> Option<usize> {
    let body = compared(request);
    asked.iter().position(|one| is_at_path(one, request) && compared(&one.request) == body)
}

fn is_at_path(one: &Passed, request: &HttpRequest) -> bool {
    one.request.service == request.service && one.request.path == request.path
}

/// Place of the request of a first conversation that a request of the second repeats: of those to the same path the one
/// with the most words in common, as requests sent side by side arrive in any order.
pub(super) fn repeated(left: &[Passed], request: &HttpRequest) -> Option<usize> {
    equal(left, request).or_else(|| nearest(left, request))
}

/// Place of the request to the same path with the most words in common; the first of several.
pub(super) fn nearest(left: &[Passed], request: &HttpRequest) -> Option<usize> {
    let text = compared(request).to_string();
    let alike = |one: &Passed| TextDiff::from_words(compared(&one.request).to_string().as_str(), text.as_str()).ratio();
    let candidates = (0..).zip(left).filter(|(_, one)| is_at_path(one, request));
    let ratios: Vec<(usize, f32)> = candidates.map(|(place, one)| (place, alike(one))).collect();
    ratios.into_iter().rev().max_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(place, _)| place)
}

/// Today's date in the usual spellings, in every time zone, the longest first.
pub(super) fn dates() -> Vec<String> {
    const SPELLINGS: [&str; 19] = [
        "%A, %B %-d, %Y", "%A, %B %d, %Y", "%A, %-d %B %Y", "%A, %d %B %Y", "%A %-d %B %Y", "%A, %F", "%A %F",
        "%a, %d %b %Y", "%a %b %d", "%a %b %-d", "%B %-d, %Y", "%B %d, %Y", "%-d %B %Y", "%d %B %Y", "%b %-d, %Y",
        "%F", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y",
    ];
    distinct(days().into_iter().flat_map(|date| SPELLINGS.map(|spelling| date.strftime(spelling).to_string())))
}

/// Today, in every time zone.
fn days() -> Vec<Date> {
    let now = RealClock::start().wall();
    let there =
        [0, 12, -12].into_iter().filter_map(|hours| now.checked_add(jiff::SignedDuration::from_hours(hours)).ok());
    distinct(there.map(|there| there.to_zoned(TimeZone::UTC).date()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::{HttpResponse, Service, TransportError};
    use serde_json::json;

    fn passed(question: &str, id: &str) -> Passed {
        let body = json!({"messages": [{"role": "system", "content": id}, {"role": "user", "content": question}]});
        let profile = &crate::provider::EXACT;
        let request = HttpRequest::new(Service::Model, profile, "POST", "/chat/completions", body);
        let result: Result<HttpResponse, _> = Err(TransportError::Invalid { message: String::new() });
        Passed { request, result, at: None }
    }

    #[test]
    fn requests_sent_side_by_side_are_compared_with_their_own_kind_in_whatever_order_they_arrive() {
        let questions = ["the price of room 1000", "breakfast at 0730", "the address of house 2042"];
        let first = questions.map(|question| passed(question, "session 48121"));
        let mut second = questions.map(|question| passed(question, "session 90377"));
        second.rotate_left(1);
        let found = generated(&first, &second, "What do you know?");
        let places: Vec<&str> = found.iter().map(|one| one.at.as_str()).collect();
        assert_eq!(places, ["/messages/0/content"], "{found:?}");
        let mut same = first.to_vec();
        same.rotate_left(1);
        assert_eq!(generated(&first, &same, "What do you know?"), []);
    }
}
