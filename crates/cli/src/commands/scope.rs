//! The flags that say which policy holds, shared by every command that needs
//! one.

use std::path::PathBuf;

use ringfence_policy::{FlagLayer, PathContext, Policy, Resolved};
use ringfence_runtime::{PolicyInputs, Sources};
use ringfence_sandbox::Host;

use crate::error::Failure;

/// Which policy holds.
#[derive(Debug, clap::Args)]
pub(crate) struct ScopeArgs {
    /// A policy file, YAML or TOML (may be given several times)
    #[arg(long, value_name = "FILE")]
    policy: Vec<PathBuf>,
    /// A settings file of srt
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// default, permissive, moderate or restrictive
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// A policy that only narrows
    #[arg(long, value_name = "FILE")]
    ceiling: Option<PathBuf>,
    /// Allow a host, such as api.example.org or *.example.org:8443
    #[arg(long, value_name = "HOST")]
    allow: Vec<String>,
    /// Deny a host or a block of addresses, whatever else allows it
    #[arg(long, value_name = "HOST")]
    deny: Vec<String>,
    /// Close the network, whatever else opens it
    #[arg(long)]
    no_network: bool,
    /// Show a place that would be hidden
    #[arg(long, value_name = "PATH")]
    read: Vec<String>,
    /// Make a place writable
    #[arg(long, value_name = "PATH")]
    write: Vec<String>,
    /// Hide a place
    #[arg(long, value_name = "PATH")]
    hide: Vec<String>,
    /// Set a variable inside
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// Take a variable from outside
    #[arg(long, value_name = "NAME")]
    pass_env: Vec<String>,
    /// End the command after this time, such as 90s, 10m or 2h30m
    #[arg(long, value_name = "DURATION")]
    time: Option<String>,
    /// The working folder, which relative paths are below
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
}

/// A machine, a folder, and the policy that holds there.
pub(crate) struct Scope {
    pub(crate) host: Host,
    pub(crate) working_folder: PathBuf,
    pub(crate) policy: Resolved<Policy>,
    /// The files that the policy was read from.
    pub(crate) files: Vec<PathBuf>,
}

impl ScopeArgs {
    /// Finds the folder and resolves the policy.
    pub(crate) fn resolve(self) -> Result<Scope, Failure> {
        let host = Host::look(std::env::var_os("HOME").map(PathBuf::from))?;
        let working_folder = working_folder(self.cwd.clone())?;
        let sources = Sources {
            variable: &|name| std::env::var(name).ok(),
            paths: PathContext {
                home: host.home.clone(),
                base: working_folder.clone(),
            },
            other_home: host.other_home.clone(),
        };
        let inputs = self.inputs();
        let policy = inputs.resolve(&sources)?;
        let files = inputs.files(&sources);
        Ok(Scope {
            host,
            working_folder,
            policy,
            files,
        })
    }

    fn inputs(self) -> PolicyInputs {
        PolicyInputs {
            profile: self.profile,
            policies: self.policy,
            settings: self.settings,
            ceiling: self.ceiling,
            flags: FlagLayer {
                allow: self.allow,
                deny: self.deny,
                no_network: self.no_network,
                read: self.read,
                write: self.write,
                hide: self.hide,
                env: self.env,
                pass_env: self.pass_env,
                time: self.time,
            },
        }
    }
}

/// The named folder or the current one, absolute and with links resolved.
fn working_folder(named: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let hint = "go to an existing folder, or name one: --cwd DIR";
    let folder = match named {
        Some(folder) => folder,
        None => std::env::current_dir().map_err(|error| {
            Failure::new(
                "no-working-folder",
                format!("the current folder is gone: {error}"),
                hint,
            )
        })?,
    };
    std::fs::canonicalize(&folder).map_err(|error| {
        Failure::new(
            "no-working-folder",
            format!("{}: {error}", folder.display()),
            hint,
        )
    })
}
