//! Recordings: what parses is written, and parses again to the text that was written.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use ragcheck::internals::cassette::Cassette;
use std::path::Path;

fn parsed(text: &str) -> Result<Cassette, String> {
    Cassette::parse(text.into(), Path::new("lane.yaml"), Path::new("blobs")).map_err(|error| error.to_string())
}

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let Ok(text) = std::str::from_utf8(bytes) else { return Corpus::Reject };
    if let Ok(cassette) = parsed(text) {
        let (written, _) = cassette.to_text();
        let again = parsed(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
        assert_eq!(again.to_text().0, written);
    }
    Corpus::Keep
});
