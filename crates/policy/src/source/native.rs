//! Our own policy format, in YAML and TOML.

mod document;
mod translate;

use super::document::Node;
use super::error::{Fault, SourceError};
use crate::layer::Layer;
use crate::origin::Origin;
use crate::path::PathContext;

pub(crate) use document::PolicyDocument;

/// Reads a YAML policy. The layer has the operator's authority; see
/// [`Layer::as_request`](crate::Layer::as_request) for files of a working folder.
pub fn read_yaml(text: &str, origin: &Origin, context: &PathContext) -> Result<Layer, SourceError> {
    if text.trim().is_empty() {
        let message = "the file is empty; a policy starts with `version: 1`".to_owned();
        return Err(SourceError::new(origin, Fault::Document(message)));
    }
    read(Node::from_yaml(text), origin, context)
}

/// Reads a TOML policy, with the same keys as the YAML form.
pub fn read_toml(text: &str, origin: &Origin, context: &PathContext) -> Result<Layer, SourceError> {
    read(Node::from_toml(text), origin, context)
}

fn read(
    node: Result<Node, super::document::DocumentError>,
    origin: &Origin,
    context: &PathContext,
) -> Result<Layer, SourceError> {
    let document = node
        .and_then(Node::into::<PolicyDocument>)
        .map_err(|error| {
            let at = error.at.unwrap_or_default();
            SourceError::at(origin, at, Fault::Document(error.message))
        })?;
    translate::translate(document, origin, context)
}
