//! The flags that say which policy holds, shared by every command that needs
//! one.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use ringfence_policy::srt_settings::SrtParentProxy;
use ringfence_policy::{AuditLevel, FlagLayer, PathContext, Policy, Resolved};
use ringfence_runtime::{PolicyInputs, Sources, audit_folder};
use ringfence_sandbox::Host;

use super::limits::LimitArgs;
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
    #[command(flatten)]
    limits: LimitArgs,
    /// What is recorded: off, network, security or all
    #[arg(long, value_name = "LEVEL")]
    audit: Option<Level>,
    /// The working folder, which relative paths are below
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
}

/// How much is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Level {
    /// Nothing
    Off,
    /// Decisions about the network, programs started, sockets
    Network,
    /// The same, files written, and every call that matters or was refused
    Security,
    /// The same, and every other call, counted
    All,
}

impl From<Level> for AuditLevel {
    fn from(level: Level) -> Self {
        match level {
            Level::Off => Self::Off,
            Level::Network => Self::Network,
            Level::Security => Self::Security,
            Level::All => Self::All,
        }
    }
}

/// A machine and a folder of it.
pub(crate) struct Here {
    pub(crate) host: Host,
    pub(crate) working_folder: PathBuf,
    /// Where decisions are written down.
    pub(crate) audit_folder: PathBuf,
}

impl Here {
    /// Looks at the machine; `named` is the working folder if not the current one.
    pub(crate) fn look(named: Option<PathBuf>) -> Result<Self, Failure> {
        let host = Host::look(std::env::var_os("HOME").map(PathBuf::from))?;
        Ok(Self {
            working_folder: working_folder(named)?,
            audit_folder: audit_folder(&|name| std::env::var_os(name), &host),
            host,
        })
    }

    /// What policies are read from besides files.
    pub(crate) fn sources(&self) -> Sources<'static> {
        Sources {
            variable: &variable,
            paths: PathContext {
                home: self.host.home.clone(),
                base: self.working_folder.clone(),
            },
            other_home: self.host.other_home.clone(),
        }
    }

    /// The log's folder, where it is not among the places that are hidden anyway.
    pub(crate) fn audit_folder_to_hide(&self) -> Option<&Path> {
        let usual = self.host.home.join(".local/state");
        Some(self.audit_folder.as_path()).filter(|folder| !folder.starts_with(usual))
    }
}

/// A variable of our own environment.
pub(crate) fn variable(name: &str) -> Option<String> {
    // What is no text must not count as missing: it may be a list of denials.
    Some(std::env::var_os(name)?.to_string_lossy().into_owned())
}

/// A machine, a folder, and the policy that holds there.
pub(crate) struct Scope {
    pub(crate) here: Here,
    pub(crate) policy: Resolved<Policy>,
    /// The host's proxies, as far as settings name them.
    pub(crate) parents: Option<SrtParentProxy>,
    /// The files that the policy was read from.
    pub(crate) files: Vec<PathBuf>,
}

impl ScopeArgs {
    /// Finds the folder and resolves the policy.
    pub(crate) fn resolve(self) -> Result<Scope, Failure> {
        let here = Here::look(self.cwd.clone())?;
        let sources = here.sources();
        let mut inputs = self.inputs();
        let hidden = here.audit_folder_to_hide();
        inputs
            .flags
            .hide
            .extend(hidden.map(|folder| folder.to_string_lossy().into_owned()));
        let loaded = inputs.load(&sources)?;
        Ok(Scope {
            policy: loaded.policy,
            parents: loaded.parents,
            files: inputs.files(&sources),
            here,
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
                limits: self.limits.into(),
                audit: self.audit.map(AuditLevel::from),
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
