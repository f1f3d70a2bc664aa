//! JSON without repeated member names. Parsers would silently take the first or the last of them.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// A value whose objects name each member once; a repeated name is an error with line and column.
pub(crate) struct Distinct(pub Value);

impl<'de> Deserialize<'de> for Distinct {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any).map(Self)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Distinct(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if object.contains_key(&name) {
                return Err(A::Error::custom(format_args!("`{name}` is written twice")));
            }
            let Distinct(value) = members.next_value()?;
            object.insert(name, value);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_member_that_is_written_twice_is_an_error_at_its_place_at_any_depth() {
        for text in ["{\"reward\": 0,\n \"reward\": 1}", "[{\"a\": [{\"reward\":\n0, \"\\u0072eward\": 0}]}]"] {
            let told = serde_json::from_str::<Distinct>(text).err().expect("twice").to_string();
            assert!(told.contains("`reward` is written twice") && told.contains("line 2"), "{told}");
        }
    }

    proptest! {
        #[test]
        fn all_else_is_what_it_is_to_every_reader(text in "[\\[\\]{}\",:0-9a-c.eE+-]{0,24}|[0-9]{1,30}|-?[0-9]{1,3}e[0-9]{1,2}") {
            let ours = serde_json::from_str::<Distinct>(&text).ok().map(|Distinct(value)| value);
            let theirs = serde_json::from_str::<Value>(&text).ok();
            let repeats = ours.is_none() && text.contains('{');
            prop_assert!(ours == theirs || repeats);
        }
    }
}
