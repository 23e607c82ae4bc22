//! The user's own Git configuration, which holds in every repository.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::looking::open_root;
use crate::git::{self, Named};

/// How far configuration that names configuration is followed.
const DEEPEST_INCLUDE: usize = 5;
/// Where Git keeps the configuration of the machine, by how it was built.
const OF_THE_MACHINE: [&str; 2] = ["/etc/gitconfig", "/usr/local/etc/gitconfig"];

/// Where that configuration is.
#[derive(Debug, Clone, Default)]
pub(crate) struct UserGit {
    home: PathBuf,
    files: Vec<PathBuf>,
}

impl UserGit {
    /// As Git looks for it with this home directory and environment.
    pub(crate) fn of(home: &Path, environment: &[(OsString, OsString)]) -> Self {
        let variable = |name: &str| {
            let mut variables = environment.iter();
            let found = variables.find(|(known, _)| known == name);
            found.map(|(_, value)| PathBuf::from(value))
        };
        let settings = variable("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        let own = [home.join(".gitconfig"), settings.join("git/config")];
        let named = ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"];
        let named = named.into_iter().filter_map(variable);
        let machine = OF_THE_MACHINE.map(PathBuf::from);
        Self {
            home: home.to_path_buf(),
            files: own.into_iter().chain(named).chain(machine).collect(),
        }
    }

    /// The files that this configuration names, and those that they name. What
    /// is relative there is a directory of hooks, sought from each work tree.
    pub(super) fn named(&self) -> Vec<Named> {
        let mut named = Vec::new();
        for file in &self.files {
            named.extend(self.named_by(file));
        }
        named
    }

    fn named_by(&self, file: &Path) -> Vec<Named> {
        let base = file.parent().unwrap_or(Path::new("/"));
        let text = read(file);
        self.named_in(base, text.as_deref().unwrap_or_default())
    }

    /// The files that a text names whose file is in `base`, and those that they
    /// name.
    pub(super) fn named_in(&self, base: &Path, text: &str) -> Vec<Named> {
        let mut named = Vec::new();
        self.follow(base, text, 0, &mut named);
        named
    }

    fn follow(&self, base: &Path, text: &str, depth: usize, named: &mut Vec<Named>) {
        for one in git::named_files(text) {
            match one {
                Named::Hooks(path) => named.push(Named::Hooks(self.expanded(path))),
                Named::Configuration(path) => {
                    let path = base.join(self.expanded(path));
                    if depth < DEEPEST_INCLUDE
                        && let Some(more) = read(&path)
                    {
                        let base = path.parent().unwrap_or(base);
                        self.follow(base, &more, depth + 1, named);
                    }
                    named.push(Named::Configuration(path));
                }
            }
        }
    }

    fn expanded(&self, path: PathBuf) -> PathBuf {
        match path.strip_prefix("~") {
            Ok(below) => self.home.join(below),
            Err(_) => path,
        }
    }
}

fn read(file: &Path) -> Option<String> {
    let file = std::fs::canonicalize(file).ok()?;
    let directory = open_root(file.parent()?).ok()?;
    git::read_text(&directory, file.file_name()?).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hooks(path: impl Into<PathBuf>) -> Named {
        Named::Hooks(path.into())
    }

    #[test]
    fn g4_what_the_users_own_configuration_names_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        std::fs::create_dir_all(home.join("elsewhere/git")).unwrap();
        let own = "[include]\n\tpath = more\n[core]\n\thooksPath = .githooks\n";
        std::fs::write(home.join("real"), own).unwrap();
        std::os::unix::fs::symlink("real", home.join(".gitconfig")).unwrap();
        std::fs::write(home.join("more"), "[core]\n\thooksPath = ~/hooks\n").unwrap();
        let xdg = "[core]\n\thooksPath = /opt/hooks\n";
        std::fs::write(home.join("elsewhere/git/config"), xdg).unwrap();
        let environment = [("XDG_CONFIG_HOME".into(), home.join("elsewhere").into())];
        let mut named = UserGit::of(home, &environment).named();
        named.truncate(4);
        assert_eq!(
            named,
            [
                hooks(home.join("hooks")),
                Named::Configuration(home.join("more")),
                hooks(".githooks"),
                hooks("/opt/hooks"),
            ]
        );
    }
}
