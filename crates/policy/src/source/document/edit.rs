//! Changing scalars of the tree before it is read.

use super::{Node, Position, Value};

/// What a scalar becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rewritten {
    /// A text, whatever it looks like.
    Text(String),
    /// A word that was written without quotes: a number or a boolean where it is one.
    Plain(String),
}

/// Looks at keys and replaces texts.
pub(crate) trait Rewriter {
    /// Why it stops.
    type Error;

    /// Checks a key, which stays as it is.
    fn key(&mut self, at: Position, key: &str) -> Result<(), Self::Error>;

    /// What a text becomes; `None` leaves it.
    fn text(&mut self, at: Position, text: &str) -> Result<Option<Rewritten>, Self::Error>;
}

impl Node {
    /// Takes the value of `key` out of a map.
    pub(crate) fn take(&mut self, key: &str) -> Option<Self> {
        let Value::Map(entries) = &mut self.value else {
            return None;
        };
        let at = entries.iter().position(|(own, _)| own.text == key)?;
        Some(entries.remove(at).1)
    }

    /// The word at `key` of a map and its place; a number counts as a word.
    pub(crate) fn word(&self, key: &str) -> Option<(Position, String)> {
        let Value::Map(entries) = &self.value else {
            return None;
        };
        let (_, node) = entries.iter().find(|(own, _)| own.text == key)?;
        match &node.value {
            Value::Text(text) => Some((node.at, text.clone())),
            Value::Int(number) => Some((node.at, number.to_string())),
            _ => None,
        }
    }

    /// The keys of a map.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        let entries = match &self.value {
            Value::Map(entries) => entries.as_slice(),
            _ => &[],
        };
        entries.iter().map(|(key, _)| key.text.as_str())
    }

    /// Where the tree begins.
    pub(crate) fn place(&self) -> Position {
        self.at
    }

    /// Hands every key and every text of the tree to `rewriter`.
    pub(crate) fn rewrite<R: Rewriter>(&mut self, rewriter: &mut R) -> Result<(), R::Error> {
        match &mut self.value {
            Value::Text(text) => {
                if let Some(new) = rewriter.text(self.at, text)? {
                    self.value = new.into();
                }
            }
            Value::List(items) => {
                for item in items {
                    item.rewrite(rewriter)?;
                }
            }
            Value::Map(entries) => {
                for (key, node) in entries {
                    rewriter.key(key.at, &key.text)?;
                    node.rewrite(rewriter)?;
                }
            }
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => {}
        }
        Ok(())
    }
}

impl From<Rewritten> for Value {
    fn from(new: Rewritten) -> Self {
        match new {
            Rewritten::Text(text) => Self::Text(text),
            Rewritten::Plain(word) => plain(word),
        }
    }
}

/// The scalar that a word without quotes is in YAML 1.2.
fn plain(word: String) -> Value {
    let is_number = word.starts_with(|c: char| c.is_ascii_digit() || "-+.".contains(c));
    match word.as_str() {
        "" | "~" | "null" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        number if is_number => match (number.parse(), number.parse()) {
            (Ok(number), _) => Value::Int(number),
            (_, Ok(number)) => Value::Float(number),
            _ => Value::Text(word),
        },
        _ => Value::Text(word),
    }
}
