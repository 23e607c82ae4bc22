//! The policy of the `srt` command line: settings upon the base alone.
//!
//! No profile stands below them, so nothing is writable but what they name and
//! the few folders that srt always has.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ringfence_policy::{
    FlagLayer, Layer, LayerKind, Note, NoteKind, Origin, PathContext, PathRule, Policy, Resolved,
    Sourced, SrtSettings, SrtSource, base_layer, home_layer, read_srt, read_variables, resolve,
    variables,
};

use super::roots_files::roots_folders;
use super::{
    PolicyInputs, PolicyLoadError, Sources, Stack, TextFile, authority_files, hidden_secrets,
    read_policy, with_its_end,
};
use crate::parents::{NamedProxies, has_login};

/// Settings that are used where nobody names others, in the home folder.
const DEFAULT_SETTINGS: &str = ".srt-settings.json";
/// Writable wherever they exist, in the home folder.
const HOME_FOLDERS: [&str; 2] = [".npm/_logs", ".claude/debug"];
/// The folder for temporary files that srt tells of.
const TEMPORARY: &str = "/tmp/claude";
/// The folder above it, which is the host's own.
const TEMPORARY_PARENT: &str = "/tmp";
/// The folder for temporary files where the host has none of srt's.
const PRIVATE_TEMPORARY: &str = "/var/tmp/claude";

/// The code of what is told of an authority that is not there.
pub const MISSING_AUTHORITY: &str = "srt-authority-missing";

/// What that command line gave.
#[derive(Debug, Clone, Default)]
pub struct SrtInputs {
    /// The named settings file.
    pub settings: Option<PathBuf>,
    /// Further hidden places.
    pub hide: Vec<PathBuf>,
}

/// A policy from settings, and what else they say.
#[derive(Debug)]
pub struct SrtLoaded {
    /// The policy.
    pub policy: Resolved<Policy>,
    /// The settings as written, without proxies of the host.
    pub settings: SrtSettings,
    /// Proxies of the host that the settings name, with the meaning of srt.
    pub parents: NamedProxies,
    /// The file they were read from; without one, srt's own defaults hold.
    pub file: Option<PathBuf>,
    /// Files that code under this policy must not change or make: they decide
    /// about this run or the next.
    pub untouchable: Vec<PathBuf>,
    /// All but the settings.
    pub rest: SrtRest,
}

/// Everything but the settings, kept to resolve later ones while the command
/// runs.
#[derive(Debug, Clone)]
pub struct SrtRest {
    layers: Vec<Layer>,
    ceiling: Option<Layer>,
    paths: PathContext,
}

impl SrtInputs {
    /// Reads everything and resolves it.
    pub fn load(&self, sources: &Sources<'_>) -> Result<SrtLoaded, PolicyLoadError> {
        let place = self.place(sources);
        let file = place.read()?;
        let name = file.as_ref().map_or("srt's defaults".to_owned(), |_| {
            place.path.display().to_string()
        });
        let is_read = file.is_some();
        let mut stack = self.rest(sources)?;
        let of_rest = stack.len();
        let text = file.as_ref().map(|file| file.text.as_str());
        let mut read = read(text, &name, &sources.paths)?;
        skip_missing_authorities(&mut read.layer);
        stack.push(defaults(&read.layer, sources));
        stack.push(shown(&read.layer));
        stack.extend(safe_directories(&read.settings, sources));
        let parents = match take_proxies(&mut read.settings, &place.path, &mut stack)? {
            Some(named) => named,
            None => NamedProxies::none().map_err(PolicyLoadError::Memory)?,
        };
        match file {
            Some(file) => stack.push_file(file.layer(read.layer)),
            None => stack.push(read.layer),
        }
        let mut layers = stack.settle(sources)?;
        let rest = SrtRest {
            layers: layers[..of_rest].to_vec(),
            ceiling: PolicyInputs::default().ceiling(sources)?,
            paths: sources.paths.clone(),
        };
        layers.extend(hidden_secrets(&layers, &sources.paths));
        let policy = resolve(layers, rest.ceiling.clone())?;
        let mut untouchable = untouchable(&place, sources);
        untouchable.extend(authority_files(&policy));
        Ok(SrtLoaded {
            policy,
            settings: read.settings,
            parents,
            untouchable,
            file: is_read.then_some(place.path),
            rest,
        })
    }

    fn place(&self, sources: &Sources<'_>) -> Place {
        match settings_path(self.settings.as_deref(), sources) {
            Some(path) => Place {
                path,
                may_be_missing: false,
            },
            None => Place {
                path: sources.paths.home.join(DEFAULT_SETTINGS),
                may_be_missing: true,
            },
        }
    }

    /// All but the settings.
    fn rest(&self, sources: &Sources<'_>) -> Result<Stack, PolicyLoadError> {
        let paths = &sources.paths;
        let mut layers = Stack::default();
        layers.push(base_layer(paths));
        layers.extend(
            sources
                .other_home
                .as_deref()
                .map(|home| home_layer(home, paths)),
        );
        if let Some(path) = sources.env.text(variables::POLICY) {
            layers.push_file(read_policy(Path::new(&path), LayerKind::Policy, paths)?);
        }
        layers.extend(read_variables(|name| sources.env.text(name))?);
        let hide = self.hide.iter().map(|path| path.display().to_string());
        let flags = FlagLayer {
            hide: hide.collect(),
            ..FlagLayer::default()
        };
        layers.push(flags.to_layer(paths)?);
        Ok(layers)
    }
}

impl SrtRest {
    /// The policy that holds with other settings. Only its network part can
    /// take the place of another's while a command runs.
    pub fn resolve(&self, text: &str, name: &str) -> Result<Resolved<Policy>, PolicyLoadError> {
        let mut layers = self.layers.clone();
        layers.push(read(Some(text), name, &self.paths)?.layer);
        Ok(resolve(layers, self.ceiling.clone())?)
    }
}

/// Settings, or srt's own defaults.
fn read(text: Option<&str>, name: &str, paths: &PathContext) -> Result<SrtSource, PolicyLoadError> {
    let origin = Origin::new(LayerKind::SrtSettings, name);
    let own = || serde_json::to_string(&SrtSettings::default()).unwrap_or_default();
    let text = text.map_or_else(own, str::to_owned);
    Ok(read_srt(&text, &origin, paths)?)
}

/// The proxies of the host that settings name. A file with a login in it is
/// hidden: inside, nobody is to know it.
pub(super) fn take_proxies(
    settings: &mut SrtSettings,
    path: &Path,
    stack: &mut Stack,
) -> Result<Option<NamedProxies>, PolicyLoadError> {
    let Some(proxies) = settings.network.parent_proxy.take() else {
        return Ok(None);
    };
    if has_login(&proxies) {
        let origin = Origin::new(LayerKind::SrtSettings, path.display().to_string());
        let mut layer = Layer::empty(origin.clone());
        let places = with_its_end(path).into_iter().map(PathRule::Literal);
        let hidden = places.map(|place| Sourced::new(place, origin.clone()));
        layer.filesystem.read_deny = hidden.collect();
        stack.push(layer);
    }
    let kept = NamedProxies::keep(&proxies).map_err(PolicyLoadError::Memory)?;
    Ok(Some(kept))
}

/// The settings file that is named: by a flag, or else by the variable.
pub(super) fn settings_path(named: Option<&Path>, sources: &Sources<'_>) -> Option<PathBuf> {
    let variable = || {
        sources
            .env
            .text(variables::KAGENT_SRT_SETTINGS_PATH)
            .filter(|path| !path.is_empty())
            .map(PathBuf::from)
    };
    named.map(Path::to_path_buf).or_else(variable)
}

/// Where settings are looked for.
struct Place {
    path: PathBuf,
    may_be_missing: bool,
}

impl Place {
    /// Their text; `None` if they are missing and may be.
    fn read(&self) -> Result<Option<TextFile>, PolicyLoadError> {
        match TextFile::read(&self.path) {
            Err(PolicyLoadError::Unreadable { error, .. })
                if self.may_be_missing && error.kind() == std::io::ErrorKind::NotFound =>
            {
                Ok(None)
            }
            read => read.map(Some),
        }
    }
}

/// Also the default settings that are not there yet: whoever made them would
/// decide about the next run.
fn untouchable(place: &Place, sources: &Sources<'_>) -> Vec<PathBuf> {
    let mut files = PolicyInputs::default().files(sources);
    files.extend(with_its_end(&place.path));
    files.push(real(&sources.paths.home).join(DEFAULT_SETTINGS));
    files
}

/// The path without links, where there is something.
fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

/// What srt adds to any settings: a few writable folders and two variables.
fn defaults(settings: &Layer, sources: &Sources<'_>) -> Layer {
    let origin = Origin::new(LayerKind::Profile, "srt");
    let mut layer = Layer::empty(origin.clone());
    let home = real(&sources.paths.home);
    let folders = HOME_FOLDERS
        .into_iter()
        .filter(|folder| !is_read_denied(settings, &sources.paths.home.join(folder)))
        .map(|folder| home.join(folder))
        .chain([PathBuf::from(TEMPORARY)])
        .filter(|folder| is_own_folder(folder));
    let rules = folders.map(|folder| Sourced::new(PathRule::Literal(folder), origin.clone()));
    layer.filesystem.write_allow = Some(rules.collect());
    let temporary = temporary(settings, sources);
    for (name, value) in [("SANDBOX_RUNTIME", "1"), ("TMPDIR", &temporary)] {
        let value = Sourced::new(value.to_owned(), origin.clone());
        layer.environment.set.insert(name.to_owned(), value);
    }
    layer
}

/// What srt lets be read that a sandbox has its own of, or that is not the
/// sandbox's own user's.
fn shown(settings: &Layer) -> Layer {
    let origin = Origin::new(LayerKind::SrtSettings, "srt");
    let mut layer = Layer::empty(origin.clone());
    let folders = [PathBuf::from(TEMPORARY_PARENT)]
        .into_iter()
        .chain(roots_folders())
        .filter(|folder| !is_read_denied(settings, folder));
    let rules = folders.map(|folder| Sourced::new(PathRule::Literal(folder), origin.clone()));
    layer.filesystem.read_allow = Some(rules.collect());
    layer
}

/// Explicit rules are stronger than what is writable unasked.
fn is_read_denied(settings: &Layer, folder: &Path) -> bool {
    let mut denied = settings.filesystem.read_deny.iter();
    denied.any(|rule| rule.value.matches(folder))
}

/// A folder and not a link to one, of this user: in a folder that all may
/// write to, anybody could have put it there.
fn is_own_folder(path: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let is_own =
        std::fs::symlink_metadata(path).is_ok_and(|about| about.is_dir() && about.uid() == own);
    is_own && std::fs::canonicalize(path).is_ok_and(|real| real == path)
}

/// The folder for temporary files: the one that a variable names if it can be
/// written to, or else srt's, which is made in the private folder.
fn temporary(settings: &Layer, sources: &Sources<'_>) -> String {
    let writable = || settings.filesystem.write_allow.iter().flatten();
    let named = variables::SRT_TEMPORARY
        .iter()
        .find_map(|name| sources.env.text(name).filter(|value| !value.is_empty()));
    let usable = |path: &String| {
        let path = Path::new(path);
        path.is_absolute() && path.is_dir() && writable().any(|rule| rule.value.matches(path))
    };
    if let Some(named) = named.filter(usable) {
        return named;
    }
    let shared = PathRule::Literal(TEMPORARY_PARENT.into());
    let is_shared = writable().any(|rule| rule.value == shared);
    match (is_own_folder(Path::new(TEMPORARY)), is_shared) {
        (true, _) => TEMPORARY.to_owned(),
        (false, true) => TEMPORARY_PARENT.to_owned(),
        // Made inside: nothing can be made in the host's own folder.
        (false, false) if is_read_denied(settings, Path::new(TEMPORARY_PARENT)) => {
            TEMPORARY.to_owned()
        }
        (false, false) => PRIVATE_TEMPORARY.to_owned(),
    }
}

/// Authorities that are not there are passed over, as srt does. One that is
/// there and cannot be used is an error later.
pub(super) fn skip_missing_authorities(layer: &mut Layer) {
    let Some(files) = layer.network.authorities.take() else {
        return;
    };
    let (there, missing): (Vec<_>, Vec<_>) = files
        .into_iter()
        .partition(|file| file.value.try_exists().unwrap_or(true));
    layer.network.authorities = Some(there);
    layer.notes.extend(missing.iter().map(|file| {
        let message = format!(
            "network.tlsTerminate.extraCaCertPaths: {} is not there and is skipped",
            file.value.display()
        );
        Note::new(NoteKind::NoEffect, MISSING_AUTHORITY, message, &file.origin)
    }));
}

/// Tells git, beside what it is told already, which folders are to be trusted
/// whoever owns them.
pub(super) fn safe_directories(settings: &SrtSettings, sources: &Sources<'_>) -> Option<Layer> {
    let folders = &settings.git.as_ref()?.safe_directories;
    let values = safe_values(folders);
    let told = sources
        .env
        .text("GIT_CONFIG_COUNT")
        .and_then(|count| count.parse().ok());
    let first: usize = told.unwrap_or(0);
    let count = (first + values.len()).to_string();
    let pairs = (first..).zip(values).flat_map(|(at, value)| {
        [
            (format!("GIT_CONFIG_KEY_{at}"), "safe.directory".to_owned()),
            (format!("GIT_CONFIG_VALUE_{at}"), value),
        ]
    });
    let pairs = pairs.chain([("GIT_CONFIG_COUNT".to_owned(), count)]);
    let origin = Origin::new(LayerKind::SrtSettings, "git.safeDirectories");
    let mut layer = Layer::empty(origin.clone());
    layer.environment.set = pairs
        .map(|(name, value)| (name, Sourced::new(value, origin.clone())))
        .collect();
    (!folders.is_empty()).then_some(layer)
}

/// A repository in the folder itself, and those below it. An empty value would make Git forget
/// what came before it.
fn safe_values(folders: &[String]) -> Vec<String> {
    let named = folders.iter().filter(|folder| !folder.is_empty());
    let values = named.flat_map(|folder| match folder.trim_end_matches('/') {
        "" => ["/".to_owned(), "/*".to_owned()],
        folder => [folder.to_owned(), format!("{folder}/*")],
    });
    values.collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::host_env::HostEnv;

    const OPEN: &str = r#"{"network": {"allowedDomains": ["api.example.org"], "deniedDomains": []},
        "filesystem": {"denyRead": ["~/.npm"], "allowWrite": [".", "/tmp"], "denyWrite": []}}"#;

    struct Setup {
        home: tempfile::TempDir,
        variables: Vec<(&'static str, String)>,
    }

    impl Setup {
        fn new() -> Self {
            Self {
                home: tempfile::tempdir().unwrap(),
                variables: Vec::new(),
            }
        }

        fn load(&self, settings: Option<PathBuf>) -> Result<SrtLoaded, PolicyLoadError> {
            let variables = self.variables.iter();
            let variables = variables.map(|(name, value)| (name.into(), value.into()));
            let variables: Vec<(OsString, OsString)> = variables.collect();
            let sources = Sources {
                env: &HostEnv::new(variables, None),
                paths: PathContext {
                    home: self.home.path().canonicalize().unwrap(),
                    base: "/w".into(),
                },
                other_home: None,
                approvals: self.home.path().join("approvals"),
            };
            let inputs = SrtInputs {
                settings,
                hide: Vec::new(),
            };
            inputs.load(&sources)
        }

        fn write(&self, name: &str, text: &str) -> PathBuf {
            let path = self.home.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        }
    }

    fn writable(loaded: &SrtLoaded) -> Vec<String> {
        let rules = &loaded.policy.filesystem().write_allow;
        rules.iter().map(|rule| rule.value.to_string()).collect()
    }

    fn set<'a>(loaded: &'a SrtLoaded, name: &str) -> &'a str {
        &loaded.policy.environment().set[name].value
    }

    #[test]
    fn without_settings_nothing_is_allowed() {
        let loaded = Setup::new().load(None).unwrap();
        assert!(loaded.policy.network_is_closed());
        assert!(!writable(&loaded).contains(&"/w".to_owned()));
        assert_eq!(loaded.file, None);
        assert!(loaded.policy.environment().pass_all);
        assert_eq!(set(&loaded, "SANDBOX_RUNTIME"), "1");
    }

    #[test]
    fn settings_are_found_by_flag_then_variable_then_home() {
        let mut setup = Setup::new();
        let home = setup.write(DEFAULT_SETTINGS, OPEN);
        assert_eq!(setup.load(None).unwrap().file, Some(home));
        let other = setup.write("other.json", OPEN);
        let name = variables::KAGENT_SRT_SETTINGS_PATH;
        setup.variables = vec![(name, other.display().to_string())];
        assert_eq!(setup.load(None).unwrap().file, Some(other));
        let named = setup.write("named.json", OPEN);
        let loaded = setup.load(Some(named.clone())).unwrap();
        assert_eq!(loaded.file, Some(named));
        setup.variables = vec![(name, "/no/such/file".to_owned())];
        assert!(setup.load(None).is_err());
    }

    #[test]
    fn g10_settings_that_are_there_but_unusable_are_errors() {
        let setup = Setup::new();
        for text in ["", "  \n", "{", "{}"] {
            setup.write(DEFAULT_SETTINGS, text);
            assert!(setup.load(None).is_err(), "{text:?}");
        }
        assert!(setup.load(Some("/no/such/file".into())).is_err());
    }

    #[test]
    fn folders_of_srt_are_writable_where_they_exist_and_are_not_hidden() {
        let setup = Setup::new();
        for folder in HOME_FOLDERS {
            std::fs::create_dir_all(setup.home.path().join(folder)).unwrap();
        }
        let home = setup.home.path().canonicalize().unwrap();
        let [logs, debug] = HOME_FOLDERS.map(|folder| home.join(folder).display().to_string());
        let plain = writable(&setup.load(None).unwrap());
        assert!(plain.contains(&logs) && plain.contains(&debug), "{plain:?}");
        setup.write(DEFAULT_SETTINGS, OPEN);
        let hidden = writable(&setup.load(None).unwrap());
        assert!(!hidden.contains(&logs) && hidden.contains(&debug));
        std::fs::remove_dir(home.join(HOME_FOLDERS[1])).unwrap();
        std::os::unix::fs::symlink("/etc", home.join(HOME_FOLDERS[1])).unwrap();
        let linked = writable(&setup.load(None).unwrap());
        assert!(!linked.contains(&debug) && !linked.contains(&"/etc".to_owned()));
    }

    #[test]
    fn the_folder_for_temporary_files_can_be_written_to() {
        let mut setup = Setup::new();
        let unnamed = setup.load(None).unwrap();
        assert!([TEMPORARY, PRIVATE_TEMPORARY].contains(&set(&unnamed, "TMPDIR")));
        setup.write(DEFAULT_SETTINGS, OPEN);
        let shared = setup.load(None).unwrap();
        assert!([TEMPORARY, TEMPORARY_PARENT].contains(&set(&shared, "TMPDIR")));
        let own = setup.home.path().display().to_string();
        setup.variables = vec![(variables::SRT_TEMPORARY[0], own.clone())];
        let within = own.starts_with("/tmp/");
        assert_eq!(set(&setup.load(None).unwrap(), "TMPDIR") == own, within);
        setup.variables[0].1 = "/etc".to_owned();
        assert_ne!(set(&setup.load(None).unwrap(), "TMPDIR"), "/etc");
    }

    #[test]
    fn the_lists_of_kagent_add_to_settings_and_stay_when_they_change() {
        let mut setup = Setup::new();
        setup.variables = vec![
            (
                variables::KAGENT_ALLOWED_DOMAINS,
                "web.example.org".to_owned(),
            ),
            (
                variables::KAGENT_DENIED_DOMAINS,
                "api.example.org".to_owned(),
            ),
        ];
        let loaded = setup.load(Some(setup.write("s.json", OPEN))).unwrap();
        assert_eq!(loaded.policy.network().allow().len(), 2);
        let changed = OPEN.replace("api.example.org", "other.example.org");
        let changed = loaded.rest.resolve(&changed, "line 1").unwrap();
        assert_eq!(changed.network().allow().len(), 2);
        assert_eq!(changed.network().deny().len(), 1);
        assert!(loaded.rest.resolve("{}", "line 2").is_err());
    }

    #[test]
    fn g4_settings_cannot_be_made_for_the_next_run() {
        let setup = Setup::new();
        let home = setup.home.path().canonicalize().unwrap();
        let missing = home.join(DEFAULT_SETTINGS);
        assert!(setup.load(None).unwrap().untouchable.contains(&missing));
        let named = setup.write("named.json", OPEN).canonicalize().unwrap();
        let files = setup.load(Some(named.clone())).unwrap().untouchable;
        assert!(files.contains(&named) && files.contains(&missing));
    }
}
