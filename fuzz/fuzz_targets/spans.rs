//! Exported spans, as JSON, protobuf and LangSmith's runs: refused or judged, and every trace that is written reads back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ragcheck::internals::suite::import::Format;
use ragcheck_fuzz::judged;

fuzz_target!(|bytes: &[u8]| {
    let _ = judged(Format::Otlp, bytes);
});
