//! Every dialect: no document or stream makes it panic, and a request that decodes is the same after encoding.
//!
//! The first byte names the dialect, the second one what the rest is.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use ragcheck::internals::provider::wire::{Dialect, dialects, error_message};

fn stream(dialect: &dyn Dialect, rest: &[u8]) {
    let Ok(events) = dialect.framing().read(rest) else { return };
    let mut assembler = dialect.assembler();
    for event in &events {
        if let Err(error) = assembler.push(event) {
            assert!(!error.to_string().is_empty());
        }
    }
    let _ = assembler.complete();
    let _ = dialect.decode_response(&assembler.document());
}

fn document(dialect: &dyn Dialect, rest: &[u8]) {
    let Ok(body) = serde_json::from_slice(rest) else { return };
    if let Err(error) = dialect.decode_response(&body) {
        assert!(!error.to_string().is_empty());
    }
    if let Ok(request) = dialect.decode_request("", &body) {
        let written = dialect.encode_request(&request);
        let again = dialect.decode_request("", &written);
        let again = again.unwrap_or_else(|error| panic!("{}: {error}\n{body}\n{written}", dialect.name()));
        assert_eq!(again, request, "{}\n{body}\n{written}", dialect.name());
    }
}

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let [which, kind, rest @ ..] = bytes else { return Corpus::Reject };
    let Some(dialect) = dialects().nth(usize::from(*which) % dialects().count()) else { return Corpus::Reject };
    match kind % 3 {
        0 => document(dialect, rest),
        1 => stream(dialect, rest),
        _ => _ = error_message(&String::from_utf8_lossy(rest)),
    }
    Corpus::Keep
});
