//! The flags that say which policy holds, shared by every command that needs
//! one.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use ringfence_policy::{AuditLevel, FlagLayer, GuardMode};
use ringfence_runtime::{HostEnv, Intent, KitInputs, PolicyInputs, Scope};

use super::kit;
use super::limits::LimitArgs;
use super::preset::PresetName;
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
    /// Allow a host or a block of addresses, such as *.example.org:8443 or 10.1.0.0/16:5432
    #[arg(long, value_name = "HOST")]
    allow: Vec<String>,
    /// Allow what a tool or an agent needs: node, python, claude, …; see ringfence preset list (may be given several times)
    #[arg(long, value_name = "NAME", value_parser = PresetName, hide_possible_values = true)]
    preset: Vec<String>,
    /// Deny a host or a block of addresses, whatever else allows it
    #[arg(long, value_name = "HOST")]
    deny: Vec<String>,
    /// Let this port of the host's own loopback be reached, as host.ringfence.internal (may be given several times)
    #[arg(long, value_name = "PORT")]
    host_port: Vec<String>,
    /// Trust the servers of another authority too: a PEM file (may be given several times)
    #[arg(long, value_name = "FILE")]
    authority: Vec<String>,
    /// A sandbox kit: a folder, a .zip, or a folder of a git repository (may be given several times)
    #[arg(long, value_name = "KIT")]
    kit: Vec<String>,
    /// An argument of a kit (may be given several times)
    #[arg(long, value_name = "NAME=VALUE", requires = "kit")]
    kit_arg: Vec<String>,
    /// Let a kit or a file of the working folder use this service's secret in this run
    #[arg(long, value_name = "SERVICE")]
    approve: Vec<String>,
    /// Leave nothing but loopback, whatever else opens the network; what is refused has no names then
    #[arg(long)]
    no_network: bool,
    /// Show a place that would be hidden
    #[arg(long, value_name = "PATH")]
    read: Vec<String>,
    /// Make a place writable
    #[arg(long, value_name = "PATH")]
    write: Vec<String>,
    /// The home directory inside: private (changes are gone with the run), keep, keep=NAME, or none (read-only)
    #[arg(long, value_name = "HOME")]
    home: Option<String>,
    /// Hide a place
    #[arg(long, value_name = "PATH")]
    hide: Vec<String>,
    /// Protect a further name in writable folders; `ci` for definitions of continuous integration
    #[arg(long, value_name = "NAME")]
    protect: Vec<String>,
    /// Let a protected name be written, such as .vscode or .git/hooks
    #[arg(long, value_name = "NAME")]
    unprotect: Vec<String>,
    /// How protected names are guarded [default: live]
    #[arg(long, value_name = "MODE")]
    guard: Option<GuardWord>,
    /// Set a variable inside
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// Take a variable from outside
    #[arg(long, value_name = "NAME")]
    pass_env: Vec<String>,
    #[command(flatten)]
    limits: LimitArgs,
    /// What is recorded: off, network, standard (the default), security or all
    #[arg(long, value_name = "LEVEL")]
    audit: Option<Level>,
    /// The working folder, which relative paths are below
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
}

/// How protected names are guarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GuardWord {
    /// Making one is refused at once
    Live,
    /// Files are made at full speed; what must not be there is moved to quarantine at the end
    Sweep,
}

impl From<GuardWord> for GuardMode {
    fn from(word: GuardWord) -> Self {
        match word {
            GuardWord::Live => Self::Live,
            GuardWord::Sweep => Self::Sweep,
        }
    }
}

/// How much is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Level {
    /// Nothing
    Off,
    /// Decisions about the network, programs started, sockets
    Network,
    /// The same, and files made, changed and refused; costs next to nothing
    Standard,
    /// The same, and attempts: hidden places, every refused call. Slower, and
    /// calls that a signal interrupts may fail, starts of programs among them
    Security,
    /// The same, and every other call, counted. Much slower
    All,
}

impl From<Level> for AuditLevel {
    fn from(level: Level) -> Self {
        match level {
            Level::Off => Self::Off,
            Level::Network => Self::Network,
            Level::Standard => Self::Standard,
            Level::Security => Self::Security,
            Level::All => Self::All,
        }
    }
}

impl ScopeArgs {
    /// The working folder, where it is named.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.cwd.as_deref()
    }

    /// Finds the folder and resolves the policy.
    pub(crate) fn resolve(self, env: &HostEnv) -> Result<Scope, Failure> {
        let kits = KitInputs {
            kits: kit::references(&self.kit)?,
            arguments: self.kit_arg.clone(),
        };
        let intent = Intent {
            directory: self.cwd.clone(),
            kits,
            policy: self.inputs(),
        };
        Ok(intent.resolve(env)?)
    }

    fn inputs(self) -> PolicyInputs {
        PolicyInputs {
            profile: self.profile,
            policies: self.policy,
            settings: self.settings,
            ceiling: self.ceiling,
            further: Vec::new(),
            approve: self.approve,
            flags: FlagLayer {
                allow: self.allow,
                preset: self.preset,
                deny: self.deny,
                host_port: self.host_port,
                authority: self.authority,
                no_network: self.no_network,
                read: self.read,
                write: self.write,
                home: self.home,
                hide: self.hide,
                protect: self.protect,
                unprotect: self.unprotect,
                guard: self.guard.map(GuardMode::from),
                env: self.env,
                pass_env: self.pass_env,
                limits: self.limits.into(),
                audit: self.audit.map(AuditLevel::from),
            },
        }
    }
}
