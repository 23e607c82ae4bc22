//! Merging layers into one policy.
//!
//! Allows add up, a deny from any layer holds, a scalar comes from the strongest layer. Request
//! layers narrow and widen only what the operator lets them; the ceiling narrows last.

mod ceiling;
mod check;
mod credentials;
mod error;
mod merge;
mod narrow;

use crate::layer::{Layer, RequestRule};
use crate::note::NoteKind;
use crate::origin::Authority;
use crate::policy::{Policy, Resolved};

pub use error::PolicyError;

use merge::Draft;

/// Merges `layers` (in any order; among equals the later one is stronger) under `ceiling`.
pub fn resolve(
    mut layers: Vec<Layer>,
    ceiling: Option<Layer>,
) -> Result<Resolved<Policy>, PolicyError> {
    refuse_unsupported(layers.iter().chain(&ceiling))?;
    layers.sort_by_key(|layer| layer.origin.layer);
    let unapproved = layers.iter_mut().flat_map(narrow::unapproved).collect();
    let counted =
        |layer: &Layer, rule| layer.authority == Authority::Operator || rule == RequestRule::Allow;
    let rule = request_rule(&layers);
    let (own, asked): (Vec<_>, Vec<_>) = layers.into_iter().partition(|layer| counted(layer, rule));
    let mut draft = Draft::new();
    for layer in own {
        draft.add(narrow::without_privileges(layer)?);
    }
    for layer in asked {
        draft.narrow(layer)?;
    }
    draft.withhold(unapproved);
    if let Some(ceiling) = ceiling {
        draft.cap(ceiling)?;
    }
    check::finish(draft).map(Resolved::new)
}

/// What the strongest operator layer says about request layers.
fn request_rule(layers: &[Layer]) -> RequestRule {
    let operator = layers
        .iter()
        .rev()
        .filter(|layer| layer.authority == Authority::Operator);
    let mut stated = operator.filter_map(|layer| layer.requests.as_deref().copied());
    stated.next().unwrap_or(RequestRule::Narrow)
}

fn refuse_unsupported<'a>(layers: impl Iterator<Item = &'a Layer>) -> Result<(), PolicyError> {
    let unsupported = layers
        .flat_map(|layer| &layer.notes)
        .find(|note| note.kind == NoteKind::Unsupported);
    match unsupported {
        Some(note) => Err(PolicyError::Unsupported(Box::new(note.clone()))),
        None => Ok(()),
    }
}
