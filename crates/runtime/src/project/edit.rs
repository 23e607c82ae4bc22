//! The text of a `ringfence.toml`, changed without touching what else is in it.

use std::fmt;

use toml_edit::{Array, DocumentMut, Item, RawString, Table, TableLike, Value, value};

use super::{RuleEntry, RuleList};

/// The version of the format that a new file gets.
const VERSION: i64 = 1;

/// A file while it is changed.
pub(super) struct Document(DocumentMut);

/// What became of entries that were to be added.
pub(super) struct Lists {
    pub(super) added: Vec<RuleEntry>,
    pub(super) known: Vec<RuleEntry>,
    pub(super) removed: Vec<RuleEntry>,
}

impl Document {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let parsed: Result<DocumentMut, _> = text.parse();
        parsed.map(Self).map_err(|error| one_line(&error))
    }

    /// Adds entries; of those that the other list has, it has none after.
    pub(super) fn add(&mut self, list: RuleList, entries: &[RuleEntry]) -> Result<Lists, String> {
        if self.0.get("version").is_none() {
            self.0.insert("version", value(VERSION));
        }
        let network = self.network()?;
        let removed = remove(network, key(other(list)), entries)?;
        let (mut added, mut known) = (Vec::new(), Vec::new());
        let array = array(network, key(list))?;
        for entry in entries {
            if position(array, entry).is_some() {
                known.push(entry.clone());
            } else {
                push(array, entry);
                added.push(entry.clone());
            }
        }
        Ok(Lists {
            added,
            known,
            removed,
        })
    }

    fn network(&mut self) -> Result<&mut dyn TableLike, String> {
        let item = self.0.entry("network");
        let item = item.or_insert_with(|| Item::Table(Table::new()));
        let table = item.as_table_like_mut();
        table.ok_or_else(|| "network is not a table".to_owned())
    }
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn key(list: RuleList) -> &'static str {
    match list {
        RuleList::Allow => "allow",
        RuleList::Deny => "deny",
    }
}

fn other(list: RuleList) -> RuleList {
    match list {
        RuleList::Allow => RuleList::Deny,
        RuleList::Deny => RuleList::Allow,
    }
}

fn array<'a>(network: &'a mut dyn TableLike, key: &str) -> Result<&'a mut Array, String> {
    let item = network.entry(key).or_insert_with(|| value(Array::new()));
    let array = item.as_array_mut();
    array.ok_or_else(|| format!("network.{key} is not a list in brackets"))
}

fn remove(
    network: &mut dyn TableLike,
    key: &str,
    entries: &[RuleEntry],
) -> Result<Vec<RuleEntry>, String> {
    if network.get(key).is_none() {
        return Ok(Vec::new());
    }
    let array = array(network, key)?;
    let mut removed = Vec::new();
    for entry in entries {
        if let Some(at) = position(array, entry) {
            array.remove(at);
            removed.push(entry.clone());
        }
    }
    if array.is_empty() && !removed.is_empty() {
        network.remove(key);
    }
    Ok(removed)
}

fn position(array: &Array, entry: &RuleEntry) -> Option<usize> {
    let is_same = |own: &Value| own.as_str() == Some(entry.as_str());
    array.iter().position(is_same)
}

/// On a line of its own where the others are.
fn push(array: &mut Array, entry: &RuleEntry) {
    let mut value = Value::from(entry.as_str());
    let last = array.len().checked_sub(1).and_then(|at| array.get_mut(at));
    if let Some(last) = last {
        let decor = last.decor_mut();
        let before = text(decor.prefix());
        value
            .decor_mut()
            .set_prefix(match before.rsplit_once('\n') {
                Some((_, indent)) => format!("\n{indent}"),
                None => " ".to_owned(),
            });
        // Without a comma after the last entry, what is before the bracket
        // is its own.
        let after = text(decor.suffix());
        if !after.is_empty() && after.trim().is_empty() {
            value.decor_mut().set_suffix(after);
            decor.set_suffix("");
        }
    }
    array.push_formatted(value);
}

fn text(raw: Option<&RawString>) -> String {
    raw.and_then(RawString::as_str)
        .unwrap_or_default()
        .to_owned()
}

fn one_line(error: &dyn fmt::Display) -> String {
    let text = error.to_string();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}
