//! One text out of a JSON document, without the rest of it in memory.

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;
use zeroize::Zeroizing;

/// Why there is no text. Holds nothing of the document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum JsonError {
    #[error("it is not a JSON document")]
    Syntax,
    #[error("it has no text at {0}")]
    NotThere(String),
}

/// The text that the dotted path `key` leads to; a number counts in a list.
pub(super) fn text_at(document: &[u8], key: &str) -> Result<Zeroizing<String>, JsonError> {
    let mut deserializer = serde_json::Deserializer::from_slice(document);
    let parts: Vec<&str> = key.split('.').collect();
    let found = At(&parts).deserialize(&mut deserializer);
    // What the parser says may quote the document.
    let found = found.map_err(|_| JsonError::Syntax)?;
    deserializer.end().map_err(|_| JsonError::Syntax)?;
    found.ok_or_else(|| JsonError::NotThere(key.to_owned()))
}

/// What is left of the path.
struct At<'p>(&'p [&'p str]);

type Found = Option<Zeroizing<String>>;

impl<'de> DeserializeSeed<'de> for At<'_> {
    type Value = Found;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Found, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for At<'_> {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Found, E> {
        Ok(self.0.is_empty().then(|| Zeroizing::new(text.to_owned())))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Found, A::Error> {
        let mut found = None;
        while let Some(name) = map.next_key::<String>()? {
            match self.0.split_first() {
                Some((wanted, rest)) if name == *wanted => found = map.next_value_seed(At(rest))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Found, A::Error> {
        let part = self.0.split_first();
        let wanted = part.and_then(|(number, rest)| Some((number.parse::<usize>().ok()?, rest)));
        let mut found = None;
        for at in 0.. {
            let more = match wanted {
                Some((number, rest)) if number == at => {
                    let next = list.next_element_seed(At(rest))?;
                    let more = next.is_some();
                    found = next.flatten();
                    more
                }
                _ => list.next_element::<IgnoredAny>()?.is_some(),
            };
            if !more {
                break;
            }
        }
        Ok(found)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Found, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Found, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Found, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Found, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Found, E> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = r#"{
        "token": "top", "n": 7, "z": null, "f": 1.5, "t": true, "m": -1,
        "deep": {"er": {"token": "in\u0073ide"}, "list": [1, {"x": "y"}, ["q"]]},
        "a.b": "dotted"
    }"#;

    #[test]
    fn paths_lead_to_texts_only() {
        let at = |key: &str| text_at(DOCUMENT.as_bytes(), key);
        for (key, text) in [
            ("token", "top"),
            ("deep.er.token", "inside"),
            ("deep.list.1.x", "y"),
            ("deep.list.2.0", "q"),
        ] {
            assert_eq!(at(key).unwrap().as_str(), text);
        }
        for key in [
            "n",
            "z",
            "f",
            "t",
            "m",
            "deep",
            "deep.list",
            "deep.list.0",
            "deep.list.9",
            "deep.list.x",
            "none",
            "token.x",
            "a.b",
            "",
        ] {
            assert_eq!(at(key), Err(JsonError::NotThere(key.to_owned())), "{key}");
        }
    }

    #[test]
    fn what_is_no_document_is_refused() {
        for text in ["", "{", "{\"a\": \"b\"", "{\"a\": \"b\"} x", "nonsense"] {
            assert_eq!(
                text_at(text.as_bytes(), "a"),
                Err(JsonError::Syntax),
                "{text}"
            );
        }
        let nested = "[".repeat(100_000);
        assert_eq!(text_at(nested.as_bytes(), "a"), Err(JsonError::Syntax));
    }
}
