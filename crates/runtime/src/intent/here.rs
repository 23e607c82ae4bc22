//! [`Here`]: a machine, as a user sees it, and a directory of it.

use std::path::{Path, PathBuf};

use ringfence_policy::PathContext;
use ringfence_sandbox::Host;

use super::IntentError;
use crate::directories::Directories;
use crate::host_env::HostEnv;
use crate::kits::KitStore;
use crate::policy::Sources;
use crate::project::Project;

/// A machine and a directory of it.
pub struct Here {
    /// The environment that this was found in.
    pub env: HostEnv,
    /// The machine.
    pub host: Host,
    /// Where a command runs: absolute, without links.
    pub directory: PathBuf,
    /// What is our own.
    pub directories: Directories,
}

impl Here {
    /// Looks at the machine; `named` is the directory if not the current one.
    pub fn look(env: &HostEnv, named: Option<&Path>) -> Result<Self, IntentError> {
        let host = env.look_at_host()?;
        let named = named.or(env.directory()).ok_or(IntentError::NoDirectory)?;
        let directory =
            std::fs::canonicalize(named).map_err(|error| IntentError::BadDirectory {
                path: named.to_path_buf(),
                error,
            })?;
        Ok(Self {
            directories: Directories::of(env, &host),
            env: env.clone(),
            host,
            directory,
        })
    }

    /// What policies are read from besides files.
    pub fn sources(&self) -> Sources<'_> {
        Sources {
            env: &self.env,
            paths: PathContext {
                home: self.host.home.clone(),
                base: self.directory.clone(),
            },
            other_home: self.host.other_home.clone(),
            approvals: self.directories.approvals.clone(),
        }
    }

    /// The directory, as one whose rules may be changed.
    pub fn project(&self) -> Project {
        Project {
            folder: self.directory.clone(),
            paths: self.sources().paths,
            approvals: self.directories.approvals.clone(),
        }
    }

    /// Where fetched kits are kept.
    pub fn kit_store(&self) -> KitStore {
        KitStore {
            directory: self.directories.kits.clone(),
            env: self.env.clone(),
        }
    }

    /// Those of our own directories that are not among the places which are
    /// hidden anyway.
    pub fn directories_to_hide(&self) -> impl Iterator<Item = &Path> {
        let usual = [".local/state", ".local/share"].map(|name| self.host.home.join(name));
        let closed = self.directories.closed().into_iter();
        closed.filter(move |own| !usual.iter().any(|usual| own.starts_with(usual)))
    }
}
