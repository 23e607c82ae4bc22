//! The user's own Git configuration, which holds in every repository.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::looking::open_readable;
use crate::git::{self, Named};

/// How far configuration that names configuration is followed: as far as Git
/// does.
const DEEPEST_INCLUDE: usize = 10;
/// The most settings that are read from the environment.
const MOST_VARIABLES: usize = 1000;
/// Variables with commands that Git runs.
const COMMANDS: [&str; 12] = [
    "EDITOR",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "PAGER",
    "SSH_ASKPASS",
    "VISUAL",
];
/// The accounts of the machine.
const ACCOUNTS: &str = "/etc/passwd";
/// Where Git keeps the configuration of the machine, by how it was built.
const OF_THE_MACHINE: [&str; 2] = ["/etc/gitconfig", "/usr/local/etc/gitconfig"];

/// A setting that is a line of a request.
const HEADER: &str = "extraheader";

/// Looks up a variable of the environment outside.
pub(crate) type Variables<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Where that configuration is.
#[derive(Debug, Clone, Default)]
pub(crate) struct UserGit {
    home: PathBuf,
    files: Vec<PathBuf>,
    /// What the environment names.
    variables: Vec<Named>,
}

/// How deep each file was read, by where it is and where what it names is
/// sought from: what names itself often is not read as often.
type Depths = HashMap<(PathBuf, PathBuf), usize>;

impl UserGit {
    /// As Git looks for it with this home directory and these variables. No
    /// other is looked at: they may hold secrets.
    pub(crate) fn of(home: &Path, variables: Variables<'_>) -> Self {
        let variable = |name: &str| variables(name).map(PathBuf::from);
        let settings = variable("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        let own = [home.join(".gitconfig"), settings.join("git/config")];
        let named = ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"];
        let named = named.into_iter().filter_map(variable);
        let machine = OF_THE_MACHINE.map(PathBuf::from);
        Self {
            home: home.to_path_buf(),
            files: own.into_iter().chain(named).chain(machine).collect(),
            variables: named_by_variables(variables),
        }
    }

    /// The files that this configuration names, and those that they name. What
    /// is relative there is a directory of hooks, sought from each work tree.
    pub(super) fn named(&self) -> Vec<Named> {
        let mut named = Vec::new();
        for file in &self.files {
            named.extend(self.named_by(file));
        }
        // Git takes no relative path of configuration from there.
        let is_sought = |one: &Named| match one {
            Named::Hooks(_) | Named::Program { .. } => true,
            Named::Configuration(path) => self.expanded(path.clone()).is_absolute(),
        };
        let variables = self.variables.iter().filter(|one| is_sought(one)).cloned();
        let mut depths = Depths::new();
        self.follow(Path::new("/"), variables, 0, &mut depths, &mut named);
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
        let first = git::named_files(text);
        self.follow(base, first, 0, &mut Depths::new(), &mut named);
        named
    }

    fn follow(
        &self,
        base: &Path,
        ones: impl IntoIterator<Item = Named>,
        depth: usize,
        depths: &mut Depths,
        named: &mut Vec<Named>,
    ) {
        for one in ones {
            match one {
                Named::Hooks(path) => named.push(Named::Hooks(self.expanded(path))),
                Named::Program { path, is_run } => named.push(Named::Program {
                    path: self.expanded(path),
                    is_run,
                }),
                Named::Configuration(path) => {
                    let path = base.join(self.expanded(path));
                    let base = path.parent().unwrap_or(base);
                    if depth < DEEPEST_INCLUDE
                        && is_new(&path, base, depth, depths)
                        && let Some(more) = read(&path)
                    {
                        let more = git::named_files(&more);
                        self.follow(base, more, depth + 1, depths, named);
                    }
                    named.push(Named::Configuration(path));
                }
            }
        }
    }

    /// `~/below`, and `~user/below` by the accounts of the machine.
    fn expanded(&self, path: PathBuf) -> PathBuf {
        let Some(rest) = path.to_str().and_then(|path| path.strip_prefix('~')) else {
            return path;
        };
        let (user, below) = rest.split_once('/').unwrap_or((rest, ""));
        let home = if user.is_empty() {
            Some(self.home.clone())
        } else {
            let accounts = std::fs::read(ACCOUNTS).unwrap_or_default();
            home_of(user, &String::from_utf8_lossy(&accounts))
        };
        // As text: what is below stays so, however many slashes it begins with.
        let below = below.trim_start_matches('/');
        home.map_or(path.clone(), |home| match below {
            "" => home,
            below => home.join(below),
        })
    }
}

/// Whether the file was not read before, or only deeper, where less of what it
/// names was followed.
fn is_new(file: &Path, base: &Path, depth: usize, depths: &mut Depths) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let Some(place) = real(file).zip(real(base)) else {
        return false;
    };
    let before = depths.entry(place).or_insert(usize::MAX);
    let is_new = depth < *before;
    *before = depth.min(*before);
    is_new
}

/// The home directory of a user in a table of accounts.
fn home_of(user: &str, accounts: &str) -> Option<PathBuf> {
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let is_user = fields.next() == Some(user);
        let home = fields.nth(4)?;
        (is_user && home.starts_with('/')).then(|| PathBuf::from(home))
    })
}

/// What the environment names: by settings, `GIT_CONFIG_KEY_0` and so on, and by
/// variables of their own.
fn named_by_variables(variable: Variables<'_>) -> Vec<Named> {
    let count = variable("GIT_CONFIG_COUNT");
    let count = count.as_ref().and_then(|count| count.to_str());
    // More than a number can hold are too many in any case.
    let count = count.map_or(0, |count| match count.trim().parse::<usize>() {
        Ok(count) => count.min(MOST_VARIABLES),
        Err(_) => MOST_VARIABLES,
    });
    let mut named = Vec::new();
    for number in 0..count {
        let Some(key) = variable(&format!("GIT_CONFIG_KEY_{number}")) else {
            continue;
        };
        let key = key.to_string_lossy().to_ascii_lowercase();
        let (Some((section, _)), Some((_, last))) = (key.split_once('.'), key.rsplit_once('.'))
        else {
            continue;
        };
        // Tokens are handed to Git so, and no file is named.
        if last == HEADER {
            continue;
        }
        if let Some(value) = variable(&format!("GIT_CONFIG_VALUE_{number}")) {
            named.extend(git::named_by(section, last, &value.to_string_lossy()));
        }
    }
    let commands = COMMANDS.iter().filter_map(|name| variable(name));
    named.extend(commands.flat_map(|line| git::named_by_command(&line.to_string_lossy())));
    named.extend(variable("GIT_TEMPLATE_DIR").map(|path| Named::Hooks(path.into())));
    named
}

fn read(file: &Path) -> Option<String> {
    let file = std::fs::canonicalize(file).ok()?;
    let directory = open_readable(file.parent()?).ok()?;
    git::read_roughly(&directory, file.file_name()?)
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
        let elsewhere = home.join("elsewhere");
        let variable = |name: &str| (name == "XDG_CONFIG_HOME").then(|| elsewhere.clone().into());
        let mut named = UserGit::of(home, &variable).named();
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

    #[test]
    fn g4_homes_of_other_users_are_found() {
        let accounts = "root:x:0:0:root:/root:/bin/sh\nbad:x\nann:x:7:7::/home/ann:\nno:x:8:8:::\n";
        assert_eq!(home_of("ann", accounts), Some("/home/ann".into()));
        assert_eq!(home_of("root", accounts), Some("/root".into()));
        assert_eq!(home_of("no", accounts), None);
        assert_eq!(home_of("an", accounts), None);
        let user = UserGit::of(Path::new("/h"), &|_| None);
        let text = "[core]\nhooksPath = ~root/hooks\nhooksPath = ~//a\nhooksPath = ~\n";
        let root = std::fs::read_to_string(ACCOUNTS).unwrap();
        let root = home_of("root", &root).unwrap();
        let want = [hooks(root.join("hooks")), hooks("/h/a"), hooks("/h")];
        assert_eq!(user.named_in(Path::new("/"), text), want);
        let text = "[core]\nhooksPath = ~nobody-has-this-name/a\n";
        let want = [hooks("~nobody-has-this-name/a")];
        assert_eq!(user.named_in(Path::new("/"), text), want);
    }

    #[test]
    fn g4_configuration_is_followed_as_deep_as_git_does() {
        let folder = tempfile::tempdir().unwrap();
        for depth in 1..=11 {
            let text = format!(
                "[include]\npath = {}\n[core]\nhooksPath = /{depth}\n",
                depth + 1
            );
            std::fs::write(folder.path().join(depth.to_string()), text).unwrap();
        }
        let named = UserGit::default().named_in(folder.path(), "[include]\npath = 1\n");
        assert!(named.contains(&hooks("/10")), "{named:?}");
        assert!(!named.contains(&hooks("/11")), "{named:?}");
    }

    #[test]
    fn g4_configuration_that_names_itself_is_read_to_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let mut text = "[include]\npath = own\npath = ../x/own\n".repeat(100);
        text.push_str("[core]\nhooksPath = /a\n");
        std::fs::create_dir(folder.path().join("x")).unwrap();
        let base = folder.path().join("x");
        std::fs::write(base.join("own"), &text).unwrap();
        let named = UserGit::default().named_in(&base, &text);
        let found = named.iter().filter(|one| **one == hooks("/a")).count();
        assert_eq!(found, 2);
    }

    #[test]
    fn g4_configuration_in_the_environment_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        std::fs::write(home.join("more"), "[core]\nhooksPath = /of/more\n").unwrap();
        let of = |count: &str| {
            let settings = [
                ("core.hooksPath", "own \\\\"),
                ("Include.Path", "~/more"),
                ("includeIf.gitdir:/A.b/.path", "/none/here"),
                ("include.path", "relative"),
                ("http.https://a.test/.extraHeader", "token /x"),
                ("core.hookspath", "/last"),
            ];
            let mut variables = HashMap::from([("GIT_CONFIG_COUNT".to_owned(), count)]);
            for (number, (key, value)) in settings.into_iter().enumerate() {
                variables.insert(format!("GIT_CONFIG_KEY_{number}"), key);
                variables.insert(format!("GIT_CONFIG_VALUE_{number}"), value);
            }
            let looked = std::cell::RefCell::new(Vec::new());
            let variable = |name: &str| {
                looked.borrow_mut().push(name.to_owned());
                variables.get(name).map(OsString::from)
            };
            let mut user = UserGit::of(home, &variable);
            assert!(!looked.borrow().contains(&"GIT_CONFIG_VALUE_4".to_owned()));
            user.files.clear();
            user.named()
        };
        let want = [
            hooks("own \\\\"),
            hooks("/of/more"),
            Named::Configuration(home.join("more")),
            Named::Configuration("/none/here".into()),
            hooks("/last"),
        ];
        assert_eq!(of("5"), want[..4]);
        assert_eq!(of("6"), want);
        assert_eq!(of("99999999999999999999999"), want);
        assert_eq!(of("0"), []);
    }

    #[test]
    fn g4_programs_in_the_environment_are_read() {
        let of = |name: &str, value: &str| {
            let variables = [
                (name, value),
                ("GIT_CONFIG_COUNT", "1"),
                ("GIT_CONFIG_VALUE_0", "sh tools/run"),
            ];
            let variable = |wanted: &str| {
                let found = variables.iter().find(|(name, _)| *name == wanted);
                found.map(|(_, value)| OsString::from(value))
            };
            let mut user = UserGit::of(Path::new("/home/me"), &variable);
            user.files.clear();
            user.named()
        };
        let program = |path: &str| Named::Program {
            path: path.into(),
            is_run: true,
        };
        let words = [program("sh"), program("tools/run")];
        for setting in ["core.fsmonitor", "Filter.a.b.Clean", "Pager.log"] {
            assert_eq!(of("GIT_CONFIG_KEY_0", setting), words, "{setting}");
        }
        assert_eq!(of("GIT_CONFIG_KEY_0", "user.name"), []);
        for variable in COMMANDS {
            assert_eq!(of(variable, "~/bin/x -f")[..1], [program("/home/me/bin/x")]);
        }
        let template = of("GIT_TEMPLATE_DIR", "/w/tpl");
        assert_eq!(template, [hooks("/w/tpl")]);
    }
}
