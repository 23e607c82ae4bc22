//! Things a reader of a policy should know that are not rules.

use serde::Serialize;

use crate::origin::Origin;

/// What a note means for the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoteKind {
    /// Accepted; changes nothing on Linux or here.
    NoEffect,
    /// Cannot be honoured: resolving a layer with such a note is an error.
    Unsupported,
    /// A key the format tolerates without knowing it.
    UnknownKey,
    /// Asked for by a request layer, not granted by the operator.
    Pending,
    /// Taken away by the ceiling.
    Ceiling,
}

/// One remark, with a stable code.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Note {
    /// What it means for the run.
    pub kind: NoteKind,
    /// Stable code for machines.
    pub code: &'static str,
    /// One sentence.
    pub message: String,
    /// Where the cause was written.
    pub origin: Origin,
}

impl Note {
    /// Builds a note.
    pub fn new(
        kind: NoteKind,
        code: &'static str,
        message: impl Into<String>,
        origin: &Origin,
    ) -> Self {
        Self {
            kind,
            code,
            message: message.into(),
            origin: origin.clone(),
        }
    }
}
