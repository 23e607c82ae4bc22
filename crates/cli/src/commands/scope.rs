//! The flags that say which policy holds, shared by every command that needs
//! one.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use ringfence_policy::{
    AuditLevel, Credential, FlagLayer, GuardMode, Layer, LayerKind, PathContext, PathRule, Policy,
    Resolved, Sourced,
};
use ringfence_runtime::{
    Approvals, KitInputs, KitReference, KitSetup, NamedProxies, PolicyInputs, Project, Sources,
    WORKING_FOLDER_FILE, approvals_folder, audit_folder, authority_files, guard_folder,
    homes_folder, kit_cache_folder, secret_folder, working_folder_layer,
};
use ringfence_sandbox::Host;

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

/// A machine and a folder of it.
pub(crate) struct Here {
    pub(crate) host: Host,
    pub(crate) working_folder: PathBuf,
    /// Where decisions are written down.
    pub(crate) audit_folder: PathBuf,
    /// Where secrets are kept.
    pub(crate) secret_folder: PathBuf,
    /// Where it is written down what was approved.
    pub(crate) approvals_folder: PathBuf,
    /// Where it is written down what is to be swept, and what was swept lies.
    pub(crate) guard_folder: PathBuf,
    /// Where homes are kept.
    pub(crate) homes_folder: PathBuf,
}

impl Here {
    /// Looks at the machine; `named` is the working folder if not the current one.
    pub(crate) fn look(named: Option<PathBuf>) -> Result<Self, Failure> {
        let host = Host::look(std::env::var_os("HOME").map(PathBuf::from))?;
        let variable = |name: &str| std::env::var_os(name);
        Ok(Self {
            working_folder: working_folder(named)?,
            audit_folder: audit_folder(&variable, &host),
            secret_folder: secret_folder(&variable, &host),
            approvals_folder: approvals_folder(&variable, &host),
            guard_folder: guard_folder(&variable, &host),
            homes_folder: homes_folder(&variable, &host),
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
            approvals: self.approvals_folder.clone(),
        }
    }

    /// The working folder, as one whose rules may be changed.
    pub(crate) fn project(&self) -> Project {
        Project {
            folder: self.working_folder.clone(),
            paths: self.sources().paths,
            approvals: self.approvals_folder.clone(),
        }
    }

    /// Our own folders, which no command may read or write, there or not.
    pub(crate) fn own_folders(&self) -> [&Path; 5] {
        [
            &self.audit_folder,
            &self.secret_folder,
            &self.approvals_folder,
            &self.guard_folder,
            &self.homes_folder,
        ]
    }

    /// Those of them that are not among the places that are hidden anyway.
    pub(crate) fn folders_to_hide(&self) -> impl Iterator<Item = &Path> {
        let usual = [".local/state", ".local/share"].map(|name| self.host.home.join(name));
        let folders = self.own_folders().into_iter();
        folders.filter(move |folder| !usual.iter().any(|usual| folder.starts_with(usual)))
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
    pub(crate) parents: Option<NamedProxies>,
    /// The files that the policy was read from, and our own folders.
    pub(crate) files: Vec<PathBuf>,
    /// What kits do before the command.
    pub(crate) setup: Option<KitSetup>,
    /// What the operator should know, one sentence each.
    pub(crate) remarks: Vec<String>,
}

impl ScopeArgs {
    /// The working folder, where it is named.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.cwd.as_deref()
    }

    /// Finds the folder and resolves the policy.
    pub(crate) fn resolve(self) -> Result<Scope, Failure> {
        let here = Here::look(self.cwd.clone())?;
        let sources = here.sources();
        let brought = self.brought(&here)?;
        let mut inputs = self.inputs();
        let hidden = here.folders_to_hide();
        inputs
            .flags
            .hide
            .extend(hidden.map(|folder| folder.to_string_lossy().into_owned()));
        inputs.further = brought.layers;
        let loaded = inputs.load(&sources)?;
        if let Some(setup) = &brought.setup {
            setup.check(&loaded.policy)?;
        }
        let mut files = inputs.files(&sources);
        files.extend(here.own_folders().map(Path::to_path_buf));
        files.extend(brought.files);
        files.extend(authority_files(&loaded.policy));
        Ok(Scope {
            remarks: brought
                .remarks
                .into_iter()
                .chain(withheld(&loaded.policy, |service| {
                    format!("to approve it in this run: --approve {service}")
                }))
                .chain(nothing_to_show(&loaded.policy))
                .collect(),
            policy: loaded.policy,
            parents: loaded.parents,
            setup: brought.setup,
            files,
            here,
        })
    }

    /// What kits and the working folder bring along.
    fn brought(&self, here: &Here) -> Result<Brought, Failure> {
        let file = here.working_folder.join(WORKING_FOLDER_FILE);
        let is_there = file.symlink_metadata().is_ok();
        if self.kit.is_empty() && !is_there {
            return Ok(Brought::default());
        }
        let approvals = Approvals::open(&here.approvals_folder)?;
        let own = working_folder_layer(&here.working_folder, &approvals, &here.sources().paths)?;
        let mut brought = Brought {
            layers: own.layer.into_iter().collect(),
            files: own.file.into_iter().collect(),
            remarks: own.note.into_iter().collect(),
            setup: None,
        };
        if self.kit.is_empty() {
            return Ok(brought);
        }
        let cache = kit_cache_folder(&|name| std::env::var_os(name), &here.host);
        let named = kit::references(&self.kit)?;
        let kits = KitInputs {
            kits: named.clone(),
            arguments: self.kit_arg.clone(),
        };
        let kits = kits.load(&here.working_folder, &cache, &approvals)?;
        brought.layers.extend(kits.layers);
        brought.remarks.extend(kits.remarks);
        brought.setup = kits.setup;
        brought
            .files
            .extend(named.iter().flat_map(KitReference::files));
        brought.files.push(cache);
        Ok(brought)
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

/// What a run gets besides policies and flags.
#[derive(Default)]
struct Brought {
    layers: Vec<Layer>,
    /// Where it came from, which code under its policy must not change.
    files: Vec<PathBuf>,
    remarks: Vec<String>,
    setup: Option<KitSetup>,
}

/// What a flag says to show, and is not there.
fn nothing_to_show(policy: &Resolved<Policy>) -> Vec<String> {
    let shown = policy.filesystem().read_allow.iter();
    let by_flag = shown.filter(|rule| rule.origin.layer == LayerKind::Flag);
    let missing = by_flag.filter_map(|rule| match &rule.value {
        PathRule::Literal(path) if path.symlink_metadata().is_err() => Some(path),
        _ => None,
    });
    missing
        .map(|path| format!("--read: nothing is at {}", path.display()))
        .collect()
}

/// What is asked for and was not approved, and what to do about it.
pub(crate) fn withheld(policy: &Resolved<Policy>, remedy: impl Fn(&str) -> String) -> Vec<String> {
    let credentials = policy.withheld().iter();
    let remark = |credential: &Sourced<Credential>| {
        format!(
            "credential {} of {} is not approved, and requests go without it; {}",
            credential.service,
            credential.origin,
            remedy(&credential.service)
        )
    };
    credentials.map(remark).collect()
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
