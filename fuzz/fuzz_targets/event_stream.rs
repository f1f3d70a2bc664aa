//! Server-sent events: however a stream is cut into pieces, its events are those that the standard finds in the whole,
//! and each is found again in its own bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ragcheck::internals::transport::sse;

/// Name, data and last id of each event, by the words of the standard; a last one without its blank line too.
fn by_the_standard(stream: &[u8]) -> Vec<(Option<String>, String, Option<String>)> {
    let text = String::from_utf8_lossy(stream.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(stream));
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let (mut events, mut name, mut data, mut id) = (Vec::new(), String::new(), None::<Vec<&str>>, None);
    for line in text.split('\n').chain([""]) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => data.get_or_insert_default().push(value),
            "event" => value.clone_into(&mut name),
            "id" if !value.contains('\0') => id = Some(value.to_owned()),
            "" if line.is_empty() => {
                let name = Some(std::mem::take(&mut name)).filter(|name| !name.is_empty());
                events.extend(data.take().map(|data| (name, data.join("\n"), id.clone())));
            }
            _ => {}
        }
    }
    events
}

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
    let read: Vec<_> = whole.iter().map(|event| (event.name.clone(), event.data.clone(), event.id.clone())).collect();
    assert_eq!(read, by_the_standard(stream));
    let mut end = 0;
    for event in &whole {
        assert!(end <= event.bytes.start && event.bytes.start < event.bytes.end, "{event:?}");
        end = event.bytes.end;
        // The blank line keeps a mark at the beginning of the event from being one of the stream.
        let own = [if event.bytes.start == 0 { "" } else { "\n" }.as_bytes(), &stream[event.bytes.clone()]].concat();
        let own = sse::read_all(&own).expect("short");
        let own: Vec<_> = own.into_iter().map(|event| (event.name, event.data)).collect();
        assert_eq!(own, [(event.name.clone(), event.data.clone())], "{event:?}");
    }
    assert!(end <= stream.len());
    let _ = sse::is_stream(&[], stream);
});
