//! The deserializer over the tree.

use std::fmt::{self, Display};

use serde::de::value::{StrDeserializer, U32Deserializer};
use serde::de::{
    self, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::located::MARKER;
use super::{Key, Node, Position, Value};

/// What is wrong with a document, at the innermost place that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DocumentError {
    pub(crate) at: Option<Position>,
    pub(crate) message: String,
}

impl DocumentError {
    pub(super) fn at(at: Position, message: String) -> Self {
        Self {
            at: Some(at),
            message,
        }
    }

    fn or_at(self, at: Position) -> Self {
        Self {
            at: self.at.or(Some(at)),
            ..self
        }
    }
}

impl Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for DocumentError {}

impl de::Error for DocumentError {
    fn custom<T: Display>(message: T) -> Self {
        Self {
            at: None,
            message: message.to_string(),
        }
    }
}

impl<'de> Deserializer<'de> for Node {
    type Error = DocumentError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DocumentError> {
        let at = self.at;
        let result = match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::Int(value) => match u64::try_from(value) {
                Ok(value) => visitor.visit_u64(value),
                Err(_) => visitor.visit_i64(value),
            },
            Value::Float(value) => visitor.visit_f64(value),
            Value::Text(value) => visitor.visit_string(value),
            Value::List(items) => visitor.visit_seq(Items(items.into_iter())),
            Value::Map(entries) => visitor.visit_map(Entries {
                left: entries.into_iter(),
                value: None,
            }),
        };
        result.map_err(|error: DocumentError| error.or_at(at))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DocumentError> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, DocumentError> {
        let at = self.at;
        let result = match name {
            MARKER => visitor.visit_seq(Parts {
                at,
                step: 0,
                node: Some(self),
            }),
            _ => visitor.visit_newtype_struct(self),
        };
        result.map_err(|error: DocumentError| error.or_at(at))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DocumentError> {
        let at = self.at;
        let result = match self.value {
            Value::Text(text) => visitor.visit_enum(text.into_deserializer()),
            _ => Err(de::Error::custom("expected a word")),
        };
        result.map_err(|error: DocumentError| error.or_at(at))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Items(std::vec::IntoIter<Node>);

impl<'de> SeqAccess<'de> for Items {
    type Error = DocumentError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, DocumentError> {
        self.0.next().map(|node| seed.deserialize(node)).transpose()
    }
}

struct Entries {
    left: std::vec::IntoIter<(Key, Node)>,
    value: Option<Node>,
}

impl<'de> MapAccess<'de> for Entries {
    type Error = DocumentError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, DocumentError> {
        let Some((key, value)) = self.left.next() else {
            return Ok(None);
        };
        self.value = Some(value);
        let text: StrDeserializer<'_, DocumentError> = key.text.as_str().into_deserializer();
        seed.deserialize(text)
            .map(Some)
            .map_err(|error| error.or_at(key.at))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, DocumentError> {
        let value = self.value.take();
        let value = value.ok_or_else(|| de::Error::custom("a value without its key"))?;
        seed.deserialize(value)
    }
}

/// Line, column and value, as [`Located`](super::Located) asks for them.
struct Parts {
    at: Position,
    step: u8,
    node: Option<Node>,
}

impl<'de> SeqAccess<'de> for Parts {
    type Error = DocumentError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, DocumentError> {
        self.step += 1;
        let number = |value: u32| -> U32Deserializer<DocumentError> { value.into_deserializer() };
        match self.step {
            1 => seed.deserialize(number(self.at.line)).map(Some),
            2 => seed.deserialize(number(self.at.column)).map(Some),
            _ => self
                .node
                .take()
                .map(|node| seed.deserialize(node))
                .transpose(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::super::Located;
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Doc {
        list: Vec<Located<String>>,
        #[serde(default)]
        number: Option<u8>,
    }

    #[test]
    fn both_formats_know_their_places() {
        let yaml: Doc = Node::from_yaml("list:\n  - a\n  - b\n")
            .unwrap()
            .into()
            .unwrap();
        let toml: Doc = Node::from_toml("list = [\n  \"a\",\n  \"b\",\n]\n")
            .unwrap()
            .into()
            .unwrap();
        assert_eq!(yaml.list[1].at, Position { line: 3, column: 5 });
        assert_eq!(toml.list[1].at, Position { line: 3, column: 3 });
        assert_eq!(yaml.list[1].value, "b");
        assert_eq!(yaml.number, None);
    }

    #[test]
    fn errors_point_at_the_innermost_place() {
        for (text, line, column) in [
            ("list: []\nnumber: x\n", 2, 9),
            ("list: []\nother: 1\n", 2, 1),
            ("list: [1]\n", 1, 8),
            ("number: 1\n", 1, 1),
        ] {
            let error = Node::from_yaml(text).unwrap().into::<Doc>().unwrap_err();
            assert_eq!(error.at, Some(Position { line, column }), "{text}: {error}");
        }
        assert!(Node::from_yaml("a: [").unwrap_err().at.is_some());
        assert!(Node::from_toml("a = ").unwrap_err().at.is_some());
        assert!(Node::from_yaml("a: 1\na: 2\n").is_err());
    }

    #[test]
    fn hostile_documents_are_refused_and_not_expanded() {
        for depth in [60, 1_000, 100_000] {
            assert!(Node::from_yaml(&"[".repeat(depth)).is_err());
            let closed = format!("a: {}{}", "[".repeat(depth), "]".repeat(depth));
            assert!(depth < 100 || Node::from_yaml(&closed).is_err(), "{depth}");
            let toml = format!("a = {}{}", "[".repeat(depth), "]".repeat(depth));
            assert!(depth < 100 || Node::from_toml(&toml).is_err(), "{depth}");
        }
        let level = |n: usize| match n {
            0 => "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned(),
            _ => format!(
                "a{n}: &a{n} [{}]\n",
                vec![format!("*a{}", n - 1); 9].join(", ")
            ),
        };
        let bomb: String = (0..9).map(level).collect();
        assert!(Node::from_yaml(&bomb).is_err());
    }
}
