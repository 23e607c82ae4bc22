//! Which policy holds: reads the files that the operator named, and resolves
//! all layers into one.

mod approve;
mod roots_files;
mod srt;
mod stack;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

pub use self::srt::{MISSING_AUTHORITY, SrtInputs, SrtLoaded, SrtRest};
use ringfence_policy::{
    FlagLayer, Layer, LayerKind, Note, Origin, PathContext, PathRule, Policy, PolicyError, Profile,
    Resolved, SecretSource, SourceError, Sourced, SrtError, SrtSettings, builtin_layers,
    home_layer, read_srt, read_toml, read_variables, read_yaml, resolve, variables,
};

use ringfence_sys::Errno;

use self::stack::{FileLayer, LARGEST_FILE, Stack, TextFile};
use crate::host_env::HostEnv;
use crate::parents::NamedProxies;
use crate::secrets::ApprovalsError;

/// The operator's ceiling, used wherever it exists.
const SYSTEM_CEILING: &str = "/etc/ringfence/ceiling.yaml";

/// What the operator gave.
#[derive(Debug, Clone, Default)]
pub struct PolicyInputs {
    /// The named profile.
    pub profile: Option<String>,
    /// Native policy files, YAML or TOML.
    pub policies: Vec<PathBuf>,
    /// A settings file of `srt`; without one, a variable may name it.
    pub settings: Option<PathBuf>,
    /// A further ceiling.
    pub ceiling: Option<PathBuf>,
    /// What the flags say.
    pub flags: FlagLayer,
    /// Layers that were read elsewhere: of kits and of the working folder.
    pub further: Vec<Layer>,
    /// Services whose secrets may be used in this run, whoever asks for them.
    pub approve: Vec<String>,
}

/// Where things outside the inputs come from; a test passes its own.
pub struct Sources<'a> {
    /// The environment outside.
    pub env: &'a HostEnv,
    /// What `~` and relative paths mean.
    pub paths: PathContext,
    /// The user's home folder by the user database, if `~` means another.
    pub other_home: Option<PathBuf>,
    /// The folder of what the operator approved.
    pub approvals: PathBuf,
}

/// A policy, and what its files say beyond it.
#[derive(Debug)]
pub struct Loaded {
    /// The policy.
    pub policy: Resolved<Policy>,
    /// Proxies of the host that a settings file names.
    pub parents: Option<NamedProxies>,
}

/// Why there is no policy. Nothing was run.
#[derive(Debug, thiserror::Error)]
pub enum PolicyLoadError {
    /// A file could not be read.
    #[error("{}: {error}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A file is absurdly large.
    #[error("{}: larger than {LARGEST_FILE} bytes", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The profile does not exist.
    #[error("there is no profile {name:?}")]
    UnknownProfile {
        /// As given.
        name: String,
    },
    /// Nobody asks for it.
    #[error("no kit and no file asks for a credential {service:?}")]
    NothingToApprove {
        /// As given.
        service: String,
    },
    /// It is not clear what was approved.
    #[error("credential {service:?} means different things: {origins}")]
    AmbiguousApproval {
        /// As given.
        service: String,
        /// Who asks for it.
        origins: String,
    },
    /// What was approved is not known.
    #[error(transparent)]
    Approvals(#[from] ApprovalsError),
    /// The machine has a ceiling of its own.
    #[error("this machine has a ceiling already: {SYSTEM_CEILING}")]
    SecondCeiling,
    /// A layer is wrong.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A settings file of `srt` is wrong.
    #[error(transparent)]
    Srt(#[from] SrtError),
    /// The layers do not fit together.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// There is no memory that is ours alone.
    #[error("cannot keep the proxies of settings to this process: {0}")]
    Memory(Errno),
}

impl PolicyLoadError {
    /// A stable name for this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "file-unreadable",
            Self::TooLarge { .. } => "file-too-large",
            Self::UnknownProfile { .. } => "unknown-profile",
            Self::NothingToApprove { .. } => "nothing-to-approve",
            Self::AmbiguousApproval { .. } => "approve-ambiguous",
            Self::Approvals(error) => error.code(),
            Self::SecondCeiling => "second-ceiling",
            Self::Source(error) => error.code(),
            Self::Srt(error) => error.code(),
            Self::Policy(error) => error.code(),
            Self::Memory(_) => "memory-exposed",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "check the path and that you may read it",
            Self::TooLarge { .. } => "a policy is a small text file",
            Self::UnknownProfile { .. } => {
                "the profiles are default, permissive, moderate, restrictive"
            }
            Self::NothingToApprove { .. } => {
                "leave --approve out, or name a service as the policy does: ringfence policy show"
            }
            Self::AmbiguousApproval { .. } => {
                "leave out all but one of them, or approve that one by itself: ringfence trust FILE"
            }
            Self::Approvals(error) => error.hint(),
            Self::SecondCeiling => {
                "leave --ceiling out; deny rules and limits in a --policy file narrow as well"
            }
            Self::Source(error) => error.hint(),
            Self::Srt(error) => error.hint(),
            Self::Policy(error) => error.hint(),
            Self::Memory(_) => "see what this machine can enforce: ringfence doctor",
        }
    }
}

impl PolicyInputs {
    /// Reads everything and resolves it.
    pub fn load(&self, sources: &Sources<'_>) -> Result<Loaded, PolicyLoadError> {
        let settings = srt::settings_path(self.settings.as_deref(), sources)
            .map(|path| read_settings(&path, sources))
            .transpose()?;
        let mut stack = self.stack(sources)?;
        let mut parents = None;
        if let Some((mut settings, layer)) = settings {
            stack.push_file(layer);
            stack.extend(srt::safe_directories(&settings, sources));
            let path = srt::settings_path(self.settings.as_deref(), sources).unwrap_or_default();
            parents = srt::take_proxies(&mut settings, &path, &mut stack)?;
        }
        let mut layers = stack.settle(sources)?;
        approve::approve(&self.approve, &mut layers)?;
        layers.extend(hidden_secrets(&layers, &sources.paths));
        Ok(Loaded {
            policy: resolve(layers, self.ceiling(sources)?)?,
            parents,
        })
    }

    /// Every file that the policy is read from, which code under it must not
    /// change.
    pub fn files(&self, sources: &Sources<'_>) -> Vec<PathBuf> {
        let named = sources.env.text(variables::POLICY).map(PathBuf::from);
        let settings = srt::settings_path(self.settings.as_deref(), sources);
        named
            .iter()
            .chain(&self.policies)
            .chain(&settings)
            .chain(&self.ceiling)
            .flat_map(|path| with_its_end(path))
            .collect()
    }

    /// All but settings of `srt`.
    fn stack(&self, sources: &Sources<'_>) -> Result<Stack, PolicyLoadError> {
        let mut layers = Stack::default();
        layers.extend(builtin_layers(self.profile()?, &sources.paths));
        layers.extend(
            sources
                .other_home
                .as_deref()
                .map(|home| home_layer(home, &sources.paths)),
        );
        let named = sources.env.text(variables::POLICY).map(PathBuf::from);
        for path in named.iter().chain(&self.policies) {
            layers.push_file(read_policy(path, LayerKind::Policy, &sources.paths)?);
        }
        layers.extend(self.further.iter().cloned());
        layers.extend(read_variables(|name| sources.env.text(name))?);
        layers.push(self.flags.to_layer(&sources.paths)?);
        Ok(layers)
    }

    fn profile(&self) -> Result<Profile, PolicyLoadError> {
        match &self.profile {
            None => Ok(Profile::Default),
            Some(name) => name
                .parse()
                .map_err(|_| PolicyLoadError::UnknownProfile { name: name.clone() }),
        }
    }

    /// The machine's ceiling, or the named one where the machine has none: a
    /// second one must not take the place of the first.
    fn ceiling(&self, sources: &Sources<'_>) -> Result<Option<Layer>, PolicyLoadError> {
        let system = Path::new(SYSTEM_CEILING);
        // One that cannot be looked at is not one that is not there.
        let is_there = system
            .try_exists()
            .map_err(|error| PolicyLoadError::Unreadable {
                path: system.to_path_buf(),
                error,
            })?;
        let path = match (&self.ceiling, is_there) {
            (Some(_), true) => return Err(PolicyLoadError::SecondCeiling),
            (Some(named), false) => named.as_path(),
            (None, true) => system,
            (None, false) => return Ok(None),
        };
        let read = read_policy(path, LayerKind::Ceiling, &sources.paths)?;
        Ok(Some(read.anywhere()))
    }
}

/// Every file with certificates that the policy trusts, which code under it
/// must not change either.
pub fn authority_files(policy: &Resolved<Policy>) -> Vec<PathBuf> {
    let files = policy.authorities().iter();
    files.flat_map(|file| with_its_end(&file.value)).collect()
}

/// Every link on the way to a file, by its place, and the file itself: whoever changed one would
/// decide what the next run reads. Nothing of what is not there.
fn with_its_end(path: &Path) -> Vec<PathBuf> {
    const MOST_LINKS: usize = 40;
    let mut found = Vec::new();
    let mut so_far = PathBuf::from("/");
    let mut left: Vec<OsString> =
        std::path::absolute(path).map_or_else(|_| Vec::new(), |path| names(&path));
    while let Some(name) = left.pop() {
        if name == ".." {
            so_far.pop();
            continue;
        }
        let here = so_far.join(&name);
        match std::fs::read_link(&here) {
            Ok(_) if found.len() == MOST_LINKS => return Vec::new(),
            Ok(target) => {
                if target.is_absolute() {
                    so_far = PathBuf::from("/");
                }
                found.push(here);
                left.extend(names(&target));
            }
            Err(_) => so_far = here,
        }
    }
    if so_far.symlink_metadata().is_err() {
        return Vec::new();
    }
    found.push(so_far);
    found
}

/// The names of a path, the first one last.
fn names(path: &Path) -> Vec<OsString> {
    let names = path.components().rev().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    });
    names.collect()
}

/// Hides the files that secrets are read from, also those that are withheld.
/// A masked one is shown without its secret.
fn hidden_secrets(layers: &[Layer], paths: &PathContext) -> Option<Layer> {
    let masked: BTreeSet<&Path> = layers
        .iter()
        .flat_map(|layer| &layer.filesystem.masked)
        .map(|file| file.path.as_path())
        .collect();
    let credentials = layers.iter().flat_map(|layer| &layer.credentials).flatten();
    let files = credentials.flat_map(|credential| {
        let files = credential.sources.iter().filter_map(|source| match source {
            SecretSource::File { path, .. } => Some(PathRule::Literal(whole(path, paths))),
            _ => None,
        });
        files.map(|rule| Sourced::new(rule, credential.origin.clone()))
    });
    let is_masked = |rule: &PathRule| match rule {
        PathRule::Literal(path) => masked.contains(path.as_path()),
        PathRule::Glob(_) => false,
    };
    let files: Vec<_> = files.filter(|rule| !is_masked(&rule.value)).collect();
    let first = files.first()?.origin.clone();
    let mut layer = Layer::empty(first);
    layer.filesystem.read_deny = files;
    Some(layer)
}

fn whole(path: &str, paths: &PathContext) -> PathBuf {
    match path.strip_prefix("~/") {
        Some(below) => paths.home.join(below),
        None => paths.base.join(path),
    }
}

/// Reads one file as a layer upon the built-in ones, and returns what of it
/// has no effect. `.json` is taken as settings of `srt`.
pub fn check_file(path: &Path, sources: &Sources<'_>) -> Result<Vec<Note>, PolicyLoadError> {
    let is_settings = path
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let mut stack = Stack::default();
    stack.extend(builtin_layers(Profile::Default, &sources.paths));
    stack.push_file(if is_settings {
        read_settings(path, sources)?.1
    } else {
        read_policy(path, LayerKind::Policy, &sources.paths)?
    });
    Ok(resolve(stack.settle(sources)?, None)?.notes().to_vec())
}

/// Reads a native policy file; `.toml` is TOML, anything else YAML.
fn read_policy(
    path: &Path,
    kind: LayerKind,
    paths: &PathContext,
) -> Result<FileLayer, PolicyLoadError> {
    let file = TextFile::read(path)?;
    let origin = Origin::new(kind, path.display().to_string());
    let is_toml = path
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("toml"));
    let layer = if is_toml {
        read_toml(&file.text, &origin, paths)
    } else {
        read_yaml(&file.text, &origin, paths)
    };
    Ok(file.layer(layer?))
}

fn read_settings(
    path: &Path,
    sources: &Sources<'_>,
) -> Result<(SrtSettings, FileLayer), PolicyLoadError> {
    let file = TextFile::read(path)?;
    let origin = Origin::new(LayerKind::SrtSettings, path.display().to_string());
    let mut source = read_srt(&file.text, &origin, &sources.paths)?;
    srt::skip_missing_authorities(&mut source.layer);
    Ok((source.settings, file.layer(source.layer)))
}
