//! Policies of ringfence: names and addresses, rules and limits, every input format, merging,
//! and the one decision about egress.
//!
//! No I/O, no async, no clock: sources take text, and everything else is a function of values.
//! Data flows one way: text → [`Layer`] → [`resolve`] → [`Resolved<Policy>`] → [`decide`].
#![forbid(unsafe_code)]

mod address;
mod audit;
mod credential;
mod decide;
mod environment;
mod filesystem;
mod home;
mod host;
mod http;
mod index;
mod layer;
mod limits;
mod note;
mod origin;
mod path;
mod policy;
mod port;
mod resolve;
mod rows;
mod rule;
pub mod schema;
mod shell;
mod source;

pub use address::{AddressClass, Cidr, CidrError, embedded_v4, judged, special_range};
pub use audit::AuditLevel;
pub use credential::{
    Attach, Binding, Credential, CredentialError, Extract, ExtractError, HeaderFormat, Scheme,
    SecretSource, Unmatched,
};
pub use decide::{
    Attachment, Considered, CredentialView, Decision, Effect, Explanation, ListName, Outcome,
    Reason, Request, RequestView, Suggestion, SuggestionFormat, Verdict, approval, attachments,
    binds, binds_host, decide, explain, judges_paths, may_be_approved,
};
pub use environment::{EnvError, Environment};
pub use filesystem::{Filesystem, GuardMode, MaskedFile, ProtectedName, ReadScope};
pub use home::{
    CACHE_DIRECTORIES, HomeError, HomeName, HomeRule, is_tool_state, leads_to_tool_state,
};
pub use host::{
    Dialect, HOST_ALIAS, HostName, HostNameError, HostPattern, HostPort, HostPortError, HttpUrl,
    HttpUrlError, PatternError, Target, TargetError, check_path,
};
pub use http::{
    HttpPath, HttpPathError, Method, MethodError, PathPattern, PathPatternError, is_misspelt,
};
pub use layer::{EnvironmentLayer, FilesystemLayer, Kept, Layer, NetworkLayer, RequestRule};
pub use limits::{
    ByteSize, Cores, CoresError, Count, CountError, Limits, SizeError, SpanError, TimeSpan,
};
pub use note::{Note, NoteKind};
pub use origin::{Authority, LayerKind, Origin, Sourced};
pub use path::{PathContext, PathPatterns, PathRule, PathRuleError};
pub use policy::{Network, Policy, Resolved};
pub use port::{Port, PortError, PortSet};
pub use resolve::{PolicyError, resolve};
pub use rows::{Row, each_row, rows};
pub use rule::{
    AllowRule, DenyRule, DenyScope, Destination, Endpoint, EntryError, NetworkMode, Reach, Side,
};
pub use shell::shell_word;
pub use source::{
    Arguments, Change, CompatibilityMode, CredentialSurface, Difference, Existing, Fault,
    FlagLayer, FlagLimits, InstallStep, Kit, KitEntryOf, KitFault, KitFile, KitKind, KitPath,
    KitRoot, KitSchema, Preset, PresetError, PresetHost, PresetKind, Profile, ProjectMark,
    SETTINGS_FILES, SourceError, SrtError, SrtFault, SrtSettings, SrtSource, StartupStep, Surface,
    UnknownName, base_layer, builtin_layers, declared_arguments, home_layer, mode_layer,
    profile_layer, project_kinds, read_kit, read_srt, read_toml, read_variables, read_yaml,
    srt_settings, suggest as suggest_preset, variables,
};
