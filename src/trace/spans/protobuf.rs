//! Spans in protobuf: `TracesData` of OTLP, which is also the body of an export, read field by field.
//!
//! Field numbers: <https://github.com/open-telemetry/opentelemetry-proto/blob/main/opentelemetry/proto/trace/v1/trace.proto>.
//! A collector's file exporter writes the length of each message before it, as 4 bytes; this is read too.

use super::{Attributes, Batch, Span, SpanError, id_of};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Greatest depth of values in values.
const DEEPEST: u8 = 32;

/// The value of one field.
#[derive(Debug, Clone, Copy)]
enum Field<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

impl<'b> Field<'b> {
    fn bytes(self) -> Option<&'b [u8]> {
        if let Self::Bytes(bytes) = self { Some(bytes) } else { None }
    }

    fn number(self) -> Option<u64> {
        if let Self::Number(number) = self { Some(number) } else { None }
    }

    fn text(self) -> String {
        String::from_utf8_lossy(self.bytes().unwrap_or_default()).into_owned()
    }
}

/// The fields of a message, in order: number and value; `None` if its bytes are not a message.
fn fields(mut bytes: &[u8]) -> Option<Vec<(u64, Field<'_>)>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let field = match key & 7 {
            0 => Field::Number(varint(&mut bytes)?),
            1 => Field::Number(u64::from_le_bytes(taken(&mut bytes, 8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                Field::Bytes(taken(&mut bytes, length)?)
            }
            5 => Field::Number(u64::from(u32::from_le_bytes(taken(&mut bytes, 4)?.try_into().ok()?))),
            _ => return None,
        };
        found.push((key >> 3, field));
    }
    Some(found)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for place in 0..10 {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << (7 * place).min(63);
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn taken<'b>(bytes: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

/// The resources of a message; `None` if it is another one.
fn resources(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let found = fields(bytes).filter(|found| !found.is_empty())?;
    found.into_iter().map(|(number, field)| field.bytes().filter(|_| number == 1)).collect()
}

/// Whether bytes are such a message.
pub(super) fn fits(bytes: &[u8]) -> bool {
    resources(bytes).is_some()
}

/// Adds the spans of one message, or of several with their length before them; `false` if it is neither.
pub(super) fn read(bytes: &[u8], batch: &mut Batch) -> bool {
    if let Some(found) = resources(bytes) {
        for resource in found {
            of_resource(resource, batch);
        }
        return true;
    }
    let (mut rest, mut read) = (bytes, false);
    while !rest.is_empty() {
        let length = taken(&mut rest, 4).and_then(|four| Some(u32::from_be_bytes(four.try_into().ok()?) as usize));
        match length.and_then(|length| resources(taken(&mut rest, length)?)) {
            Some(found) => found.into_iter().for_each(|resource| of_resource(resource, batch)),
            None if read => {
                batch.unread.push(format!("the last {} bytes are no message", rest.len()));
                return true;
            }
            None => return false,
        }
        read = true;
    }
    read
}

fn of_resource(bytes: &[u8], batch: &mut Batch) {
    let Some(resource) = fields(bytes) else { return batch.unread.push("a list of spans is broken".to_owned()) };
    for scope in resource.into_iter().filter(|(number, _)| *number == 2).filter_map(|(_, field)| field.bytes()) {
        let Some(scope) = fields(scope) else {
            batch.unread.push("a list of spans is broken".to_owned());
            continue;
        };
        for bytes in scope.into_iter().filter(|(number, _)| *number == 2).filter_map(|(_, field)| field.bytes()) {
            match span(bytes) {
                Ok(span) => batch.spans.push(span),
                Err(why) => batch.unread.push(format!("a span of {} bytes: {why}", bytes.len())),
            }
        }
    }
}

fn span(bytes: &[u8]) -> Result<Span, SpanError> {
    let mut span = Span::default();
    for (number, field) in fields(bytes).ok_or("its bytes break off or are no message")? {
        match number {
            1 => span.trace = id_of(field.bytes().unwrap_or_default(), 16).ok_or("its trace id is not 16 bytes")?,
            2 => span.id = id_of(field.bytes().unwrap_or_default(), 8).ok_or("its span id is not 8 bytes")?,
            4 => {
                let bytes = field.bytes().unwrap_or_default();
                span.parent = id_of(bytes, 8);
                if span.parent.is_none() && bytes.iter().any(|byte| *byte != 0) {
                    return Err(SpanError(format!("its parent id is {} bytes", bytes.len())));
                }
            }
            5 => span.name = field.text(),
            6 => span.is_server = field.number() == Some(2),
            7 => span.start_ns = field.number().unwrap_or_default(),
            8 => span.end_ns = field.number().unwrap_or_default(),
            9 => pair(field, &mut span.attributes).ok_or("one of its attributes is broken")?,
            10 => span.dropped = field.number().unwrap_or_default(),
            12 => span.dropped_events = field.number().unwrap_or_default(),
            11 => span.events.push(event(field).ok_or("one of its events is broken")?),
            15 => status(field, &mut span.failed).ok_or("its status is broken")?,
            _ => {}
        }
    }
    if span.trace.is_empty() || span.id.is_empty() {
        return Err("it has no trace id or no span id".into());
    }
    Ok(span)
}

fn status(field: Field<'_>, failed: &mut Option<String>) -> Option<()> {
    let (mut message, mut is_error) = (String::new(), false);
    for (number, field) in fields(field.bytes()?)? {
        match number {
            2 => message = field.text(),
            3 => is_error = field.number() == Some(2),
            _ => {}
        }
    }
    *failed = is_error.then_some(message);
    Some(())
}

fn event(field: Field<'_>) -> Option<(u64, String, Attributes)> {
    let (mut at, mut name, mut attributes) = (0, String::new(), Attributes::new());
    for (number, field) in fields(field.bytes()?)? {
        match number {
            1 => at = field.number().unwrap_or_default(),
            2 => name = field.text(),
            3 => pair(field, &mut attributes)?,
            _ => {}
        }
    }
    Some((at, name, attributes))
}

fn pair(field: Field<'_>, into: &mut Attributes) -> Option<()> {
    let (name, value) = key_value(field, 0)?;
    into.insert(name, value);
    Some(())
}

fn key_value(field: Field<'_>, depth: u8) -> Option<(String, Value)> {
    let (mut name, mut value) = (String::new(), Value::Null);
    for (number, field) in fields(field.bytes()?)? {
        match number {
            1 => name = field.text(),
            2 => value = any(field, depth)?,
            _ => {}
        }
    }
    Some((name, value))
}

fn any(field: Field<'_>, depth: u8) -> Option<Value> {
    if depth > DEEPEST {
        return None;
    }
    let Some((kind, held)) = fields(field.bytes()?)?.pop() else { return Some(Value::Null) };
    Some(match kind {
        1 => Value::String(held.text()),
        2 => Value::Bool(held.number()? != 0),
        3 => Value::from(i64::from_le_bytes(held.number()?.to_le_bytes())),
        4 => Value::from(f64::from_bits(held.number()?)),
        5 => fields(held.bytes()?)?.into_iter().map(|(_, one)| any(one, depth + 1)).collect::<Option<_>>()?,
        6 => {
            let pairs = fields(held.bytes()?)?.into_iter().map(|(_, one)| key_value(one, depth + 1));
            Value::Object(pairs.collect::<Option<_>>()?)
        }
        7 => Value::String(STANDARD.encode(held.bytes()?)),
        _ => Value::Null,
    })
}
