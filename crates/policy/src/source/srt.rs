//! Settings files of srt (the Anthropic sandbox runtime, 0.0.83).
//!
//! Entries keep srt's meaning: no port is any port, names may resolve to private addresses, deny
//! wins. On purpose different: Unicode entries are normalised instead of never matching, entries
//! with spaces are refused, and globs that cannot be honoured are errors instead of silence.

mod credentials;
mod error;
mod notes;
pub mod settings;
mod translate;
mod validate;

use crate::layer::Layer;
use crate::origin::Origin;
use crate::path::PathContext;

pub use error::{SrtError, SrtFault};
use settings::SrtSettings;

/// A settings file, as written and as a layer.
#[derive(Debug, Clone, PartialEq)]
pub struct SrtSource {
    /// Every field, also those that have no effect here.
    pub settings: SrtSettings,
    /// What they mean; what cannot be honoured is a note that [`resolve`](crate::resolve) refuses.
    pub layer: Layer,
}

/// Reads a settings file. Relative paths start from the folder the command runs in.
pub fn read_srt(text: &str, origin: &Origin, context: &PathContext) -> Result<SrtSource, SrtError> {
    let fail = |fault: SrtFault| SrtError::new(origin, fault);
    let settings = validate::parse(text).map_err(fail)?;
    validate::check(&settings).map_err(fail)?;
    let mut layer = translate::translate(&settings, origin, context).map_err(fail)?;
    layer.notes = notes::notes(&settings, origin);
    Ok(SrtSource { settings, layer })
}

#[cfg(test)]
mod tests;
