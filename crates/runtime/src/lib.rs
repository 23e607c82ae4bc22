//! The life of a sandbox: which policy holds, running a command under it,
//! and what this machine can enforce.
#![forbid(unsafe_code)]

mod asking;
mod covers;
mod directories;
mod doctor;
mod egress;
mod end;
mod evidence;
mod explain;
mod homes;
mod host_env;
mod host_program;
mod intent;
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
pub use directories::Directories;
pub use doctor::{Check, Finding, Health, examine, examine_hidden};
pub use egress::{Changes, EgressError, EgressRequest};
pub use evidence::{AuditRequest, EvidenceError};
pub use explain::{FileQuestion, explain_file};
pub use homes::{Entry, EntryKind, HeldHome, Homes, HomesError, KeptHome, Size};
pub use host_env::{HostEnv, Variables};
pub use intent::{Here, Intent, IntentError, Remark, Scope, withheld};
pub use kits::{
    Freshness, KitApproval, KitError, KitInputs, KitReference, KitSetup, KitStore, LoadedKit,
    ReferenceError, RunKits, load_kits,
};
pub use nesting::{is_inside_sandbox, is_marked_inside, nesting_advice};
pub use parents::NamedProxies;
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
    VaultError, WORKING_FOLDER_FILE, WorkingFolderError, read_secret, working_folder_layer,
};
pub use stand_in::StandInError;
pub use sweeping::SweepError;
