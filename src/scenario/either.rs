//! Values that are written as a text, or as a list or a map. They are read with a visitor, because `untagged` would lose
//! the place and reason of a mistake.

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error as _, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::marker::PhantomData;

/// What is written: a text, or a list or a map.
pub(super) enum Either<W> {
    Text(String),
    Whole(W),
}

/// Reads a text or a map; `expected` names both in messages.
pub(super) fn text_or_map<'de, W: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
    expected: &'static str,
) -> Result<Either<W>, D::Error> {
    deserializer.deserialize_any(Reading { expected, lists: false, whole: PhantomData })
}

/// Reads a text or a list; `expected` names both in messages.
pub(super) fn text_or_list<'de, W: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
    expected: &'static str,
) -> Result<Either<W>, D::Error> {
    deserializer.deserialize_any(Reading { expected, lists: true, whole: PhantomData })
}

struct Reading<W> {
    expected: &'static str,
    lists: bool,
    whole: PhantomData<W>,
}

impl<'de, W: Deserialize<'de>> Visitor<'de> for Reading<W> {
    type Value = Either<W>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.expected)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Either<W>, E> {
        Ok(Either::Text(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Either<W>, A::Error> {
        if self.lists {
            return Err(A::Error::invalid_type(Unexpected::Map, &self));
        }
        W::deserialize(MapAccessDeserializer::new(map)).map(Either::Whole)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Either<W>, A::Error> {
        if !self.lists {
            return Err(A::Error::invalid_type(Unexpected::Seq, &self));
        }
        W::deserialize(SeqAccessDeserializer::new(list)).map(Either::Whole)
    }
}
