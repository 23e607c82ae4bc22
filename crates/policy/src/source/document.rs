//! YAML and TOML as one tree whose nodes know their place, and a serde deserializer over it.
//!
//! Neither format's own span type survives in types shared by both; with this tree a document
//! type is written once and every error and every rule knows its line.

mod de;
mod edit;
mod located;
mod toml;
mod yaml;

use super::error::Position;

pub(super) use de::DocumentError;
pub(crate) use edit::{Rewriter, Rewritten};
pub(crate) use located::Located;

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    at: Position,
    value: Value,
}

#[derive(Debug, Clone, PartialEq)]
enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

#[derive(Debug, Clone, PartialEq)]
struct Key {
    at: Position,
    text: String,
}

impl Node {
    pub(super) fn from_yaml(text: &str) -> Result<Self, DocumentError> {
        yaml::parse(text)
    }

    pub(super) fn from_toml(text: &str) -> Result<Self, DocumentError> {
        toml::parse(text)
    }

    pub(super) fn into<T: serde::de::DeserializeOwned>(self) -> Result<T, DocumentError> {
        T::deserialize(self)
    }
}
