//! YAML into the tree.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};

use super::{DocumentError, Key, Node, Position, Value};

pub(super) fn parse(text: &str) -> Result<Node, DocumentError> {
    let mut options = serde_saphyr::Options::default();
    // YAML 1.2 words: `off` is a word, not a boolean.
    options.strict_booleans = true;
    options.with_snippet = false;
    // A policy has no use for aliases that unfold into thousands of entries.
    options.alias_limits.max_total_replayed_events = 10_000;
    let spanned: Spanned<Value> =
        serde_saphyr::from_str_with_options(text, options).map_err(|error| {
            let at = error.location().map(position).unwrap_or_default();
            DocumentError::at(at, error.to_string())
        })?;
    Ok(node(spanned))
}

fn node(spanned: Spanned<Value>) -> Node {
    Node {
        at: position(spanned.referenced),
        value: spanned.value,
    }
}

fn position(location: Location) -> Position {
    Position {
        line: u32::try_from(location.line()).unwrap_or(u32::MAX),
        column: u32::try_from(location.column()).unwrap_or(u32::MAX),
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        Value::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        i64::try_from(value)
            .map(Value::Int)
            .map_err(|_| E::custom("the number is too large"))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element::<Spanned<Value>>()? {
            list.push(node(item));
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Vec::new();
        while let Some(key) = entries.next_key::<Spanned<String>>()? {
            let key = Key {
                at: position(key.referenced),
                text: key.value,
            };
            map.push((key, node(entries.next_value()?)));
        }
        Ok(Value::Map(map))
    }
}
