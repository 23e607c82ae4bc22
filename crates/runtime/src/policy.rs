//! Which policy holds: reads the files that the operator named, and resolves
//! all layers into one.

mod srt;

use std::io::Read;
use std::path::{Path, PathBuf};

pub use self::srt::{SrtInputs, SrtLoaded, SrtRest};
use ringfence_policy::srt_settings::SrtParentProxy;
use ringfence_policy::{
    FlagLayer, Layer, LayerKind, Note, Origin, PathContext, Policy, PolicyError, Profile, Resolved,
    SourceError, SrtError, SrtSource, base_layer, builtin_layers, read_srt, read_toml,
    read_variables, read_yaml, resolve, variables,
};

/// The operator's ceiling, used wherever it exists.
const SYSTEM_CEILING: &str = "/etc/ringfence/ceiling.yaml";
/// The largest policy file, in bytes.
const LARGEST_FILE: u64 = 16 * 1024 * 1024;

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
}

/// Where things outside the inputs come from; a test passes its own.
pub struct Sources<'a> {
    /// Environment variables.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// What `~` and relative paths mean.
    pub paths: PathContext,
    /// The user's home folder by the user database, if `~` means another.
    pub other_home: Option<PathBuf>,
}

/// A policy, and what its files say beyond it.
#[derive(Debug)]
pub struct Loaded {
    /// The policy.
    pub policy: Resolved<Policy>,
    /// Proxies of the host that a settings file names.
    pub parents: Option<SrtParentProxy>,
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
}

impl PolicyLoadError {
    /// A stable name for this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "file-unreadable",
            Self::TooLarge { .. } => "file-too-large",
            Self::UnknownProfile { .. } => "unknown-profile",
            Self::SecondCeiling => "second-ceiling",
            Self::Source(error) => error.code(),
            Self::Srt(error) => error.code(),
            Self::Policy(error) => error.code(),
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
            Self::SecondCeiling => {
                "leave --ceiling out; deny rules and limits in a --policy file narrow as well"
            }
            Self::Source(error) => error.hint(),
            Self::Srt(error) => error.hint(),
            Self::Policy(error) => error.hint(),
        }
    }
}

impl PolicyInputs {
    /// Reads everything and resolves it.
    pub fn load(&self, sources: &Sources<'_>) -> Result<Loaded, PolicyLoadError> {
        let settings = srt::settings_path(self.settings.as_deref(), sources)
            .map(|path| read_settings(&path, &sources.paths))
            .transpose()?;
        let (settings, layer) = settings
            .map(|source| (source.settings, source.layer))
            .unzip();
        let mut layers = self.layers(sources)?;
        layers.extend(layer);
        Ok(Loaded {
            policy: resolve(layers, self.ceiling(sources)?)?,
            parents: settings.and_then(|settings| settings.network.parent_proxy),
        })
    }

    /// Every file that the policy is read from, which code under it must not
    /// change.
    pub fn files(&self, sources: &Sources<'_>) -> Vec<PathBuf> {
        let named = (sources.variable)(variables::POLICY).map(PathBuf::from);
        let settings = srt::settings_path(self.settings.as_deref(), sources);
        named
            .iter()
            .chain(&self.policies)
            .chain(&settings)
            .chain(&self.ceiling)
            .filter_map(|path| std::fs::canonicalize(path).ok())
            .collect()
    }

    /// All but settings of `srt`; the order among kinds does not matter.
    fn layers(&self, sources: &Sources<'_>) -> Result<Vec<Layer>, PolicyLoadError> {
        let mut layers = builtin_layers(self.profile()?, &sources.paths);
        layers.extend(
            sources
                .other_home
                .as_deref()
                .map(|home| hidden_places_of(home, &sources.paths)),
        );
        let named = (sources.variable)(variables::POLICY).map(PathBuf::from);
        for path in named.iter().chain(&self.policies) {
            layers.push(read_policy(path, LayerKind::Policy, &sources.paths)?);
        }
        layers.extend(read_variables(sources.variable)?);
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
        read_policy(path, LayerKind::Ceiling, &sources.paths).map(Some)
    }
}

/// The places hidden in a home folder, alone.
fn hidden_places_of(home: &Path, paths: &PathContext) -> Layer {
    let paths = PathContext {
        home: home.to_path_buf(),
        ..paths.clone()
    };
    let base = base_layer(&paths);
    let mut layer = Layer::empty(base.origin);
    layer.filesystem.read_deny = base.filesystem.read_deny;
    layer
}

/// Reads one file as a layer upon the built-in ones, and returns what of it
/// has no effect. `.json` is taken as settings of `srt`.
pub fn check_file(path: &Path, sources: &Sources<'_>) -> Result<Vec<Note>, PolicyLoadError> {
    let is_settings = path
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let layer = if is_settings {
        read_settings(path, &sources.paths)?.layer
    } else {
        read_policy(path, LayerKind::Policy, &sources.paths)?
    };
    let mut layers = builtin_layers(Profile::Default, &sources.paths);
    layers.push(layer);
    Ok(resolve(layers, None)?.notes().to_vec())
}

/// Reads a native policy file; `.toml` is TOML, anything else YAML.
fn read_policy(
    path: &Path,
    kind: LayerKind,
    paths: &PathContext,
) -> Result<Layer, PolicyLoadError> {
    let text = read_file(path)?;
    let origin = Origin::new(kind, path.display().to_string());
    let is_toml = path
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("toml"));
    let layer = if is_toml {
        read_toml(&text, &origin, paths)
    } else {
        read_yaml(&text, &origin, paths)
    };
    Ok(layer?)
}

fn read_settings(path: &Path, paths: &PathContext) -> Result<SrtSource, PolicyLoadError> {
    let text = read_file(path)?;
    let origin = Origin::new(LayerKind::SrtSettings, path.display().to_string());
    Ok(read_srt(&text, &origin, paths)?)
}

/// Reads a small text, also from what has no size, such as a pipe.
fn read_file(path: &Path) -> Result<String, PolicyLoadError> {
    let unreadable = |error| PolicyLoadError::Unreadable {
        path: path.to_path_buf(),
        error,
    };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut text = String::new();
    file.take(LARGEST_FILE + 1)
        .read_to_string(&mut text)
        .map_err(unreadable)?;
    if text.len() as u64 > LARGEST_FILE {
        return Err(PolicyLoadError::TooLarge {
            path: path.to_path_buf(),
        });
    }
    Ok(text)
}
