//! Server-sent events: however a stream is cut into pieces, its events are those of the whole.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ragcheck::internals::transport::sse;

fuzz_target!(|bytes: &[u8]| {
    // The first bytes are the lengths of the pieces, in turn.
    let (cuts, stream) = bytes.split_at(bytes.len().min(4));
    let whole = sse::read_all(stream).expect("short");
    let mut reader = sse::Reader::new();
    let mut events = Vec::new();
    let mut rest = stream;
    for cut in cuts.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, left) = rest.split_at(rest.len().min(usize::from(*cut).max(1)));
        events.extend(reader.push(piece).expect("short"));
        rest = left;
    }
    events.extend(reader.finish());
    assert_eq!(events, whole);
    let mut end = 0;
    for event in &whole {
        assert!(end <= event.bytes.start && event.bytes.start < event.bytes.end, "{event:?}");
        end = event.bytes.end;
    }
    assert!(end <= stream.len());
    let _ = sse::is_stream(&[], stream);
});
