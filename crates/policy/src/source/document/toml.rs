//! TOML into the tree.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{DocumentError, Key, Node, Position, Value};

pub(super) fn parse(text: &str) -> Result<Node, DocumentError> {
    let lines = Lines::new(text);
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map(|span| lines.position(span.start));
        DocumentError::at(at.unwrap_or_default(), error.message().to_owned())
    })?;
    let value = lines.map(table.into_inner())?;
    let at = Position { line: 1, column: 1 };
    Ok(Node { at, value })
}

/// A text and where its lines start, so that a position costs a search and not a scan.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        let after = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            text,
            starts: std::iter::once(0).chain(after).collect(),
        }
    }

    fn position(&self, offset: usize) -> Position {
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts[line.saturating_sub(1)];
        let before = self.text.get(start..offset).unwrap_or_default();
        Position {
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: u32::try_from(before.chars().count() + 1).unwrap_or(u32::MAX),
        }
    }

    fn map(&self, table: DeTable<'_>) -> Result<Value, DocumentError> {
        let entries = table.into_iter().map(|(key, value)| {
            let at = self.position(key.span().start);
            let text = key.into_inner().into_owned();
            Ok((Key { at, text }, self.node(value)?))
        });
        entries.collect::<Result<_, _>>().map(Value::Map)
    }

    fn node(&self, value: Spanned<DeValue<'_>>) -> Result<Node, DocumentError> {
        let at = self.position(value.span().start);
        let unreadable = || DocumentError::at(at, "the number is too large".to_owned());
        let value = match value.into_inner() {
            DeValue::String(value) => Value::Text(value.into_owned()),
            DeValue::Boolean(value) => Value::Bool(value),
            DeValue::Integer(value) => {
                let number = i64::from_str_radix(value.as_str(), value.radix());
                Value::Int(number.map_err(|_| unreadable())?)
            }
            DeValue::Float(value) => {
                Value::Float(value.as_str().parse().map_err(|_| unreadable())?)
            }
            DeValue::Datetime(value) => Value::Text(value.to_string()),
            DeValue::Array(items) => {
                let items = items.into_iter().map(|item| self.node(item));
                Value::List(items.collect::<Result<_, _>>()?)
            }
            DeValue::Table(table) => self.map(table)?,
        };
        Ok(Node { at, value })
    }
}
