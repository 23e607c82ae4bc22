//! The life of a sandbox: which policy holds, running a command under it,
//! and what this machine can enforce.
#![forbid(unsafe_code)]

mod asking;
mod audit_log;
mod covers;
mod doctor;
mod egress;
mod end;
mod evidence;
mod explain;
mod homes;
mod kits;
mod masked;
mod nesting;
mod parents;
mod place;
mod policy;
mod project;
mod project_kinds;
mod relay;
mod report;
mod run;
mod secrets;
mod settings_files;
mod stand_in;
mod supervise;
mod sweeping;
mod trust;

pub use asking::{Asker, Asking, Permission};
pub use audit_log::audit_folder;
pub use doctor::{Check, Finding, Health, examine, examine_hidden};
pub use egress::{Changes, EgressError, EgressRequest, Parents};
pub use evidence::{AuditRequest, EvidenceError};
pub use explain::{FileQuestion, explain_file};
pub use homes::{Entry, EntryKind, HeldHome, Homes, HomesError, KeptHome, Size, homes_folder};
pub use kits::{
    Freshness, KitApproval, KitError, KitInputs, KitReference, KitSetup, LoadedKit, ReferenceError,
    RunKits, kit_cache_folder, load_kits,
};
pub use nesting::{is_inside_sandbox, is_marked_inside, nesting_advice};
pub use parents::{NamedProxies, parent_proxies};
pub use policy::{
    Loaded, MISSING_AUTHORITY, PolicyInputs, PolicyLoadError, Sources, SrtInputs, SrtLoaded,
    SrtRest, authority_files, check_file,
};
pub use project::{Project, ProjectError, RuleChange, RuleEntry, RuleList};
pub use project_kinds::project_kinds;
pub use report::{
    AuditReport, Change, Destination, DroppedChange, DroppedReport, Enforcement, Exit, ExitReason,
    HomeReport, LimitHitReport, LimitReport, Report, report_schema,
};
pub use ringfence_egress::{ParentError, ParentProxies, ProxyToken, RefusalWords, Secret};
pub use run::{RunError, RunRequest, Terminal, run};
pub use secrets::{
    Approval, Approvals, ApprovalsError, AskPassphrase, Asked, Candidate, ContentDigest,
    FolderError, FolderPolicy, PassphraseError, Protection, Purpose, ReadSecretError, SecretName,
    SecretNameError, SecretSettings, SecretStore, StoreError, StoredSecret, Subject, ValueError,
    VaultError, WORKING_FOLDER_FILE, WorkingFolderError, approvals_folder, read_secret,
    secret_folder, working_folder_layer,
};
pub use stand_in::StandInError;
pub use sweeping::{SweepError, guard_folder};
