//! Imported conversations, in every format: refused or judged, and every trace that is written reads back.
//!
//! The first byte names the format.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use ragcheck::internals::suite::import::Format;
use ragcheck_fuzz::judged;

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let [which, text @ ..] = bytes else { return Corpus::Reject };
    let _ = Format::of(text);
    let _ = judged(Format::ALL[usize::from(*which) % Format::ALL.len()], text);
    Corpus::Keep
});
