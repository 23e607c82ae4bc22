//! What an operator wants of a sandbox, whichever front end took it: files,
//! flags, kits and a directory, put together into the policy that holds there.

mod error;
mod here;

use std::fmt;
use std::path::PathBuf;

use ringfence_policy::{Credential, Layer, LayerKind, PathRule, Policy, Resolved, Sourced};

pub use self::error::IntentError;
pub use self::here::Here;
use crate::host_env::HostEnv;
use crate::kits::{KitInputs, KitReference, KitSetup};
use crate::parents::NamedProxies;
use crate::policy::{PolicyInputs, authority_files};
use crate::secrets::{Approvals, WORKING_FOLDER_FILE, working_folder_layer};

/// What was asked for.
#[derive(Debug, Default)]
pub struct Intent {
    /// Where; the current directory if not said.
    pub directory: Option<PathBuf>,
    /// Files and flags.
    pub policy: PolicyInputs,
    /// Kits and their arguments.
    pub kits: KitInputs,
}

/// What came of it: a machine, a directory, and the policy that holds there.
pub struct Scope {
    /// The machine and the directory.
    pub here: Here,
    /// The policy.
    pub policy: Resolved<Policy>,
    /// The host's proxies, as far as settings name them.
    pub parents: Option<NamedProxies>,
    /// The files that the policy was read from, and our own directories: no
    /// command may change them.
    pub files: Vec<PathBuf>,
    /// What kits do before the command.
    pub setup: Option<KitSetup>,
    /// What the operator should know.
    pub remarks: Vec<Remark>,
}

/// Something that the operator should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remark {
    /// One sentence.
    Note(String),
    /// A credential that nobody approved.
    Withheld {
        /// Its service.
        service: String,
        /// Who asks for it.
        origin: String,
    },
    /// A flag shows what is not there.
    NothingToShow(PathBuf),
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Note(text) => f.write_str(text),
            Self::Withheld { service, origin } => write!(
                f,
                "credential {service} of {origin} is not approved, and requests go without it"
            ),
            Self::NothingToShow(path) => write!(f, "--read: nothing is at {}", path.display()),
        }
    }
}

impl Intent {
    /// Finds the directory, reads everything and resolves it.
    pub fn resolve(self, env: &HostEnv) -> Result<Scope, IntentError> {
        let here = Here::look(env, self.directory.as_deref())?;
        let sources = here.sources();
        let brought = Brought::by(&self.kits, &here)?;
        let mut inputs = self.policy;
        let hidden = here.directories_to_hide();
        inputs
            .flags
            .hide
            .extend(hidden.map(|directory| directory.to_string_lossy().into_owned()));
        inputs.further = brought.layers;
        let loaded = inputs.load(&sources)?;
        if let Some(setup) = &brought.setup {
            setup.check(&loaded.policy)?;
        }
        let mut files = inputs.files(&sources);
        files.extend(here.directories.closed().map(PathBuf::from));
        files.extend(brought.files);
        files.extend(authority_files(&loaded.policy));
        let mut remarks: Vec<_> = brought.remarks.into_iter().map(Remark::Note).collect();
        remarks.extend(withheld(&loaded.policy));
        remarks.extend(nothing_to_show(&loaded.policy));
        Ok(Scope {
            remarks,
            policy: loaded.policy,
            parents: loaded.parents,
            setup: brought.setup,
            files,
            here,
        })
    }
}

/// What a run gets besides policies and flags.
#[derive(Default)]
struct Brought {
    layers: Vec<Layer>,
    /// Where it came from, which code under its policy must not change.
    files: Vec<PathBuf>,
    remarks: Vec<String>,
    setup: Option<KitSetup>,
}

impl Brought {
    /// By kits, and by the file of the directory.
    fn by(kits: &KitInputs, here: &Here) -> Result<Self, IntentError> {
        let file = here.directory.join(WORKING_FOLDER_FILE);
        let is_there = file.symlink_metadata().is_ok();
        if kits.kits.is_empty() && !is_there {
            return Ok(Self::default());
        }
        let approvals = Approvals::open(&here.directories.approvals)?;
        let own = working_folder_layer(&here.directory, &approvals, &here.sources().paths)?;
        let mut brought = Self {
            layers: own.layer.into_iter().collect(),
            files: own.file.into_iter().collect(),
            remarks: own.note.into_iter().collect(),
            setup: None,
        };
        if kits.kits.is_empty() {
            return Ok(brought);
        }
        let store = here.kit_store();
        let loaded = kits.load(&here.directory, &store, &approvals)?;
        brought.layers.extend(loaded.layers);
        brought.remarks.extend(loaded.remarks);
        brought.setup = loaded.setup;
        let named = kits.kits.iter().flat_map(KitReference::files);
        brought.files.extend(named);
        brought.files.push(store.directory);
        Ok(brought)
    }
}

/// What is asked for and was not approved.
pub fn withheld(policy: &Resolved<Policy>) -> impl Iterator<Item = Remark> + '_ {
    let remark = |credential: &Sourced<Credential>| Remark::Withheld {
        service: credential.service.clone(),
        origin: credential.origin.to_string(),
    };
    policy.withheld().iter().map(remark)
}

/// What a flag says to show, and is not there.
fn nothing_to_show(policy: &Resolved<Policy>) -> impl Iterator<Item = Remark> + '_ {
    let shown = policy.filesystem().read_allow.iter();
    let by_flag = shown.filter(|rule| rule.origin.layer == LayerKind::Flag);
    by_flag.filter_map(|rule| match &rule.value {
        PathRule::Literal(path) if path.symlink_metadata().is_err() => {
            Some(Remark::NothingToShow(path.clone()))
        }
        _ => None,
    })
}
