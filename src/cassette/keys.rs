//! Keys of consecutive requests, each hashed from where it differs from the one before.
//!
//! A conversation grows by appending, so most of a request's canonical form equals that of the previous request. The
//! common beginning has already been redacted and hashed; it is only compared.

use super::canonical::{Form, Request, form};
use super::digest::{digest, hex};
use super::part_hashes::PartHashes;
use crate::platform::secrets::Redactor;
use sha2::{Digest, Sha256};

/// The key of a request: the first 32 hex digits of SHA-256 over its canonical form.
pub fn key(request: Request<'_>, redactor: &Redactor) -> String {
    Keys::default().of(request, redactor)
}

/// Computes the keys of one conversation's requests; they equal the keys computed for each request alone.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// The last form; empty if it held a secret.
    last: Form,
    /// Hash states of the last form at each of its ends.
    states: Vec<Sha256>,
    /// Redactor that was applied to the last form.
    redactor: Redactor,
    /// Buffer of the form before the last.
    spare: Vec<u8>,
    hashes: PartHashes,
}

impl Keys {
    /// The key of a request, see [`key`].
    pub(crate) fn of(&mut self, request: Request<'_>, redactor: &Redactor) -> String {
        if !self.redactor.knows_the_same_as(redactor) {
            *self = Self { redactor: redactor.clone(), ..Self::default() };
        }
        let path = request.path.contains('?').then(|| request.redacted_path(redactor));
        let request = Request { path: path.as_deref().unwrap_or(request.path), ..request };
        let form = form(request, redactor, &mut self.hashes, std::mem::take(&mut self.spare));
        let common = common(&self.last, &form);
        let mut from = common.checked_sub(1).map_or(0, |last| form.ends[last]);
        // No secret spans the end of a message: both sides of it are JSON syntax.
        let clean = std::str::from_utf8(&form.text[from..]).is_ok_and(|text| redactor.is_surely_clean(text));
        if !clean {
            (self.last, self.spare) = (Form::default(), form.text);
            return self.redacted(request, redactor);
        }
        self.states.truncate(common);
        let mut state = self.states.last().cloned().unwrap_or_default();
        for end in &form.ends[common..] {
            state.update(&form.text[from..*end]);
            self.states.push(state.clone());
            from = *end;
        }
        state.update(&form.text[from..]);
        self.spare = std::mem::replace(&mut self.last, form).text;
        hex(&state.finalize(), 32)
    }

    /// The key of a request that may contain secrets.
    fn redacted(&mut self, request: Request<'_>, redactor: &Redactor) -> String {
        let (path, body) = (request.redacted_path(redactor), redactor.redact_value(request.body));
        let request = Request { path: &path, body: &body, ..request };
        digest(form(request, redactor, &mut self.hashes, Vec::new()).text, 32)
    }
}

/// Number of leading elements that two forms have in common.
fn common(before: &Form, form: &Form) -> usize {
    let mut from = 0;
    let same = |(a, b): &(&usize, &usize)| {
        let same = a == b && before.text[from..**a] == form.text[from..**a];
        from = **a;
        same
    };
    before.ends.iter().zip(&form.ends).take_while(same).count()
}

#[cfg(test)]
mod tests {
    use super::super::layout::Profile;
    use super::super::tests::CHAT;
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    static PROFILE: Profile = Profile { drop: &["/user"], layout: &CHAT, ..Profile::plain("test") };

    fn request(body: &Value) -> Request<'_> {
        Request { profile: &PROFILE, method: "POST", path: "/x", body }
    }

    fn message() -> impl Strategy<Value = Value> {
        prop_oneof![
            "[a-c]{0,3}".prop_map(|text| json!({"role": "user", "content": text})),
            "[ab]".prop_map(|id| json!({"role": "tool", "tool_call_id": id, "content": "found"})),
            "[ab]".prop_map(|id| json!({"role": "assistant", "tool_calls": [{"id": id, "function": {"name": "f"}}]})),
            Just(json!({"role": "user", "content": "Bearer 0123456789abcdef0123"})),
            Just(json!({"role": "system", "content": "Be brief."})),
        ]
    }

    proptest! {
        #[test]
        fn keys_in_a_row_are_the_keys_of_each_request_alone(
            bodies in prop::collection::vec((prop::collection::vec(message(), 0..5), 0..2_u8, any::<bool>()), 1..12),
        ) {
            let redactors = [Redactor::default(), Redactor::new([("KEY".to_owned(), "found".to_owned())])];
            let mut keys = Keys::default();
            let mut said: Vec<Value> = Vec::new();
            for (more, which, goes_on) in bodies {
                if !goes_on {
                    said.clear();
                }
                said.extend(more);
                let body = json!({"model": "m", "input": said.iter().take(2).collect::<Vec<_>>(), "messages": said, "user": "u"});
                let redactor = &redactors[usize::from(which)];
                prop_assert_eq!(keys.of(request(&body), redactor), key(request(&body), redactor));
            }
        }
    }

    #[test]
    fn what_a_conversation_adds_is_hashed_and_the_rest_is_compared() {
        let body = |said: &[&str]| {
            let said: Vec<Value> = said.iter().map(|text| json!({"role": "user", "content": text})).collect();
            json!({"messages": said})
        };
        let (first, next, other) = (body(&["a", "b"]), body(&["a", "b", "c"]), body(&["a", "x", "c"]));
        let form = |body: &Value| form(request(body), &Redactor::default(), &mut PartHashes::default(), Vec::new());
        assert_eq!(common(&form(&first), &form(&next)), 2);
        assert_eq!(common(&form(&next), &form(&other)), 1);
        assert_eq!(common(&Form::default(), &form(&first)), 0);
    }
}
