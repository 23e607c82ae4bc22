//! [`KitSetup`]: what the kits of a run bring, and how the command is made to
//! begin with it.
//!
//! Everything happens inside, under the same plan as the command. The kits'
//! bytes are in the sandbox's own read-only folder; a script there writes the
//! files, runs the commands and becomes the command of the run. Where kits write
//! to the home folder or run commands, it is a private one: the host's own stays
//! as it is.

use std::ffi::OsString;
use std::path::Path;

use ringfence_policy::{
    Existing, KitPath, KitRoot, Layer, LayerKind, Origin, PathRule, Policy, Resolved, Sourced,
};
use ringfence_sandbox::{Alias, GivenFile};

use super::error::KitError;
use super::load::LoadedKit;
use super::script::{Script, Target};

/// The home folder inside, where kits have one.
const PRIVATE_HOME: &str = "/tmp/ringfence-home";
/// Where kits take it to be.
const KNOWN_HOME: &str = "/home/agent";
/// The sandbox's own folder.
const OWN_FOLDER: &str = "/run/ringfence";
/// Where the kits' parts are in it.
const FOLDER: &str = "kits";
const SCRIPT: &str = "setup.sh";
const WORKDIR: &str = "${WORKDIR}";
/// For everybody, and nobody can write to them.
const READABLE: u32 = 0o444;
const EXECUTABLE: u32 = 0o755;
const PLAIN: u32 = 0o644;

/// What is done before the command.
#[derive(Debug)]
pub struct KitSetup {
    given: Vec<GivenFile>,
    /// The first kit that has a part in it, for messages.
    kit: String,
    has_home: bool,
}

impl KitSetup {
    /// What `kits`, in their order, do before the command; `None` when that is
    /// nothing.
    pub fn new(kits: &[LoadedKit], working_folder: &Path) -> Option<Self> {
        let first = kits.iter().find(|kit| has_setup(kit))?;
        let mut writer = Writer {
            given: Vec::new(),
            script: Script::new(),
            working_folder: working_folder.to_string_lossy().into_owned(),
        };
        let has_home = kits.iter().any(needs_home);
        if has_home {
            writer.script.kit(&first.kit.name);
            writer.script.home();
        }
        writer.phases(kits);
        Some(Self {
            given: writer.finish(),
            kit: first.kit.name.clone(),
            has_home,
        })
    }

    /// The layer that gives the run a home folder of its own, if it has one.
    pub fn layer(&self) -> Option<Layer> {
        let origin = Origin::new(LayerKind::Kit, self.kit.clone());
        let home = Sourced::new(PRIVATE_HOME.to_owned(), origin.clone());
        let mut layer = Layer::empty(origin);
        layer.environment.set.insert("HOME".to_owned(), home);
        self.has_home.then_some(layer)
    }

    /// The name that kits have for the home folder, where the run has one of its
    /// own.
    pub fn alias(&self, policy: &Resolved<Policy>) -> Option<Alias> {
        let home = policy.environment().set.get("HOME")?;
        self.has_home.then(|| Alias {
            path: KNOWN_HOME.into(),
            target: home.value.clone().into(),
        })
    }

    /// Refuses a policy under which files of a kit would be left on the host.
    pub fn check(&self, policy: &Resolved<Policy>) -> Result<(), KitError> {
        let tmp = PathRule::Literal("/tmp".into());
        let is_shared = |rule: &Sourced<PathRule>| {
            rule.origin.layer == LayerKind::SrtSettings && rule.value == tmp
        };
        if policy.filesystem().write_allow.iter().any(is_shared) {
            return Err(KitError::SharedTmp(self.kit.clone()));
        }
        Ok(())
    }

    /// The command that begins with the set-up.
    pub fn wrap(&self, command: Vec<OsString>) -> Vec<OsString> {
        let script = format!("{OWN_FOLDER}/{FOLDER}/{SCRIPT}");
        let words = ["/bin/sh".to_owned(), script].map(OsString::from);
        words.into_iter().chain(command).collect()
    }

    /// The files for the sandbox's own folder.
    pub fn given(self) -> Vec<GivenFile> {
        self.given
    }
}

fn has_setup(kit: &LoadedKit) -> bool {
    needs_home(kit) || !kit.brought().is_empty() || !kit.kit.files.is_empty()
}

/// Commands expect to be able to write there.
fn needs_home(kit: &LoadedKit) -> bool {
    let is_home = |path: &KitPath| path.root == KitRoot::Home;
    !kit.kit.install.is_empty()
        || !kit.kit.startup.is_empty()
        || kit.kit.files.iter().any(|file| is_home(&file.path))
        || kit.brought().iter().any(|file| is_home(&file.path))
}

struct Writer {
    given: Vec<GivenFile>,
    script: Script,
    working_folder: String,
}

impl Writer {
    /// In the order of the format: files of the home folder, install, written
    /// files, startup, files of the working folder; each for all kits.
    fn phases(&mut self, kits: &[LoadedKit]) {
        let phases: [fn(&mut Self, &LoadedKit); 5] = [
            |writer, kit| writer.brought(kit, KitRoot::Home),
            Self::install,
            Self::files,
            Self::startup,
            |writer, kit| writer.brought(kit, KitRoot::Workspace),
        ];
        for phase in phases {
            for kit in kits {
                self.script.kit(&kit.kit.name);
                phase(self, kit);
            }
        }
    }

    /// What lies in the working folder is the user's, and stays.
    fn brought(&mut self, kit: &LoadedKit, root: KitRoot) {
        let existing = match root {
            KitRoot::Workspace => Existing::Keep,
            KitRoot::Home | KitRoot::Temporary => Existing::Replace,
        };
        for file in kit.brought().iter().filter(|file| file.path.root == root) {
            let mode = if file.content.executable {
                EXECUTABLE
            } else {
                PLAIN
            };
            self.put(&file.path, file.content.bytes.clone(), mode, existing);
        }
    }

    fn install(&mut self, kit: &LoadedKit) {
        for (at, step) in kit.kit.install.iter().enumerate() {
            let source = self.give(step.command.clone().into_bytes());
            let what = named("install step", at, step.description.as_deref());
            self.script.shell_step(&what, &source);
        }
    }

    fn files(&mut self, kit: &LoadedKit) {
        for file in &kit.kit.files {
            let content = file.content.replace(WORKDIR, &self.working_folder);
            self.put(&file.path, content.into_bytes(), file.mode, file.existing);
        }
    }

    fn startup(&mut self, kit: &LoadedKit) {
        for (at, step) in kit.kit.startup.iter().enumerate() {
            let words: Vec<&str> = step.argv.iter().map(String::as_str).collect();
            if step.background {
                self.script.start(&words);
            } else {
                let what = named("startup command", at, step.description.as_deref());
                self.script.step(&what, &words);
            }
        }
    }

    fn put(&mut self, path: &KitPath, bytes: Vec<u8>, mode: u32, existing: Existing) {
        let source = self.give(bytes);
        let below = path.below.to_string_lossy();
        let at = match path.root {
            KitRoot::Workspace => format!("{}/{below}", self.working_folder),
            KitRoot::Home | KitRoot::Temporary => format!("/tmp/{below}"),
        };
        let target = match path.root {
            KitRoot::Home => Target::Home(&below),
            KitRoot::Workspace | KitRoot::Temporary => Target::At(&at),
        };
        let existing = match existing {
            Existing::Keep => "keep",
            Existing::Replace => "replace",
        };
        self.script.put(&source, &target, mode, existing);
    }

    /// Puts bytes into the sandbox's own folder, and tells where.
    fn give(&mut self, bytes: Vec<u8>) -> String {
        let path = Path::new(FOLDER).join(self.given.len().to_string());
        let inside = format!("{OWN_FOLDER}/{}", path.display());
        self.given.push(GivenFile {
            path,
            bytes,
            mode: READABLE,
        });
        inside
    }

    fn finish(mut self) -> Vec<GivenFile> {
        self.given.push(GivenFile {
            path: Path::new(FOLDER).join(SCRIPT),
            bytes: self.script.finish().into_bytes(),
            mode: READABLE,
        });
        self.given
    }
}

/// A step as people are told of it.
fn named(what: &str, at: usize, description: Option<&str>) -> String {
    match description {
        Some(text) => format!("{what} {} ({text})", at + 1),
        None => format!("{what} {}", at + 1),
    }
}
