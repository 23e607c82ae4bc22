//! Where layers come from: what is built in, files, variables and flags.
//!
//! Each source keeps its format's own meaning, translates it to the one model, and says what it
//! cannot express.

mod builtin;
mod document;
mod error;
mod flags;
mod kit;
mod native;
mod preset;
mod srt;
pub mod variables;

pub use builtin::{
    CompatibilityMode, Profile, SETTINGS_FILES, UnknownName, base_layer, builtin_layers,
    home_layer, mode_layer, profile_layer,
};
pub use error::{Fault, SourceError};
pub use flags::{FlagLayer, FlagLimits};
pub use kit::{
    Arguments, Change, CredentialSurface, Difference, Existing, InstallStep, Kit, KitEntryOf,
    KitFault, KitFile, KitKind, KitPath, KitRoot, KitSchema, StartupStep, Surface,
    declared_arguments, read_kit,
};
pub use native::{read_toml, read_yaml};
pub use preset::{
    Preset, PresetError, PresetHost, PresetKind, ProjectMark, project_kinds, suggest,
};
pub use srt::settings::{self as srt_settings, SrtSettings};
pub use srt::{SrtError, SrtFault, SrtSource, read_srt};
pub use variables::read_variables;

pub(crate) use kit::{KitV1, KitV2};
pub(crate) use native::PolicyDocument;
pub(crate) use preset::PresetDocument;
