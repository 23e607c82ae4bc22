//! Git repositories in a writable root: which configuration could run a
//! program, and which folders are repositories.
//!
//! A repository that was there before keeps its hooks and configuration as
//! they are. One made inside may be made, but must not be left with live
//! hooks or with configuration that runs programs.

use std::path::{Path, PathBuf};

/// Entries of a repository that decide which programs Git runs.
pub(crate) const CONTROL_NAMES: [&str; 4] = ["config", "config.worktree", "commondir", "hooks"];

/// The most repositories that one run may make; more are refused, because
/// each is looked at when the run ends.
const MOST_NEW_REPOSITORIES: usize = 4096;

/// The repositories made during this run, by the path of their Git folder.
#[derive(Debug, Default)]
pub(crate) struct NewRepositories(Vec<PathBuf>);

impl NewRepositories {
    /// Notes that a `HEAD` appeared in `folder`. False when there are too many.
    pub(crate) fn note(&mut self, folder: &Path) -> bool {
        if self.contains(folder) {
            return true;
        }
        if self.0.len() >= MOST_NEW_REPOSITORIES {
            return false;
        }
        self.0.push(folder.to_path_buf());
        true
    }

    /// Whether the repository whose Git folder is `folder` was made inside.
    pub(crate) fn contains(&self, folder: &Path) -> bool {
        self.0.iter().any(|known| known == folder)
    }

    /// Follows the rename of a folder.
    pub(crate) fn renamed(&mut self, from: &Path, to: &Path) {
        for known in &mut self.0 {
            if let Ok(below) = known.strip_prefix(from) {
                *known = if below.as_os_str().is_empty() {
                    to.into()
                } else {
                    to.join(below)
                };
            }
        }
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(PathBuf::as_path)
    }
}

/// The first setting in the text of a Git configuration file that could make
/// Git run a program or read further configuration.
///
/// A list of what is harmless, because what runs programs grows with every
/// release of Git; what cannot be read is taken as dangerous.
pub(crate) fn dangerous_setting(text: &str) -> Option<String> {
    let mut section = String::new();
    for line in text.lines() {
        let line = line.trim_start_matches('\u{feff}').trim();
        // Git never writes a continued line, and readers disagree on which
        // lines continue (a backslash inside a comment does not).
        if line.ends_with('\\') {
            return Some(line.to_owned());
        }
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let setting = match line.strip_prefix('[') {
            Some(header) => match section_name(header) {
                Some((name, rest)) => {
                    section = name;
                    rest.trim()
                }
                None => return Some(line.to_owned()),
            },
            None => line,
        };
        if setting.is_empty() || setting.starts_with(['#', ';']) {
            continue;
        }
        let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
        if !is_harmless(&section, key.trim(), value.trim()) {
            return Some(format!("{section}.{}", key.trim()));
        }
    }
    None
}

/// The lower-case section, without its subsection, and what follows it.
fn section_name(header: &str) -> Option<(String, &str)> {
    let mut quoted = false;
    let mut escaped = false;
    for (at, character) in header.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ']' if !quoted => {
                let name: String = header[..at]
                    .chars()
                    .take_while(|c| c.is_ascii_alphanumeric() || *c == '-')
                    .collect();
                return Some((name.to_ascii_lowercase(), &header[at + 1..]));
            }
            _ => {}
        }
    }
    None
}

fn is_harmless(section: &str, key: &str, value: &str) -> bool {
    let key = key.to_ascii_lowercase();
    match section {
        "core" => matches!(
            key.as_str(),
            "repositoryformatversion"
                | "filemode"
                | "bare"
                | "logallrefupdates"
                | "ignorecase"
                | "precomposeunicode"
                | "symlinks"
                | "autocrlf"
                | "eol"
                | "safecrlf"
                | "worktree"
                | "compression"
                | "bigfilethreshold"
                | "untrackedcache"
                | "sparsecheckout"
                | "sparsecheckoutcone"
                | "sharedrepository"
                | "quotepath"
                | "abbrev"
        ),
        "extensions" => matches!(
            key.as_str(),
            "objectformat" | "refstorage" | "partialclone" | "worktreeconfig"
        ),
        "remote" => match key.as_str() {
            "url" | "pushurl" => is_plain_url(value),
            "fetch" | "push" | "tagopt" | "prune" | "prunetags" | "mirror" | "promisor"
            | "partialclonefilter" | "skipdefaultupdate" | "skipfetchall" | "followremotehead" => {
                true
            }
            _ => false,
        },
        "branch" => matches!(
            key.as_str(),
            "remote"
                | "merge"
                | "rebase"
                | "pushremote"
                | "description"
                | "autosetupmerge"
                | "autosetuprebase"
        ),
        "submodule" => match key.as_str() {
            "url" => is_plain_url(value),
            "update" => matches!(value, "checkout" | "rebase" | "merge" | "none"),
            "active" | "branch" | "path" | "ignore" | "fetchrecursesubmodules" | "shallow" => true,
            _ => false,
        },
        "user" | "author" | "committer" => {
            matches!(key.as_str(), "name" | "email" | "useconfigonly")
        }
        "init" => key == "defaultbranch",
        "pull" | "push" | "fetch" | "merge" | "rebase" | "color" | "advice" | "gc" | "pack"
        | "index" | "feature" | "status" | "log" | "receive" | "transfer" | "commit" => {
            is_plain_option(&key)
        }
        _ => false,
    }
}

/// Options of otherwise harmless sections that name no program or file.
fn is_plain_option(key: &str) -> bool {
    !matches!(
        key,
        "template"
            | "tool"
            | "guitool"
            | "driver"
            | "command"
            | "cmd"
            | "gpgsign"
            | "program"
            | "procreceiverefs"
            | "certnonceseed"
            | "fsckobjects"
            | "unpacklimit"
            | "external"
            | "instructionformat"
            | "editor"
            | "packobjectshook"
            | "recentobjectshook"
    )
}

/// Whether fetching from `value` runs no helper: `ext::` and other
/// `transport::address` forms do.
fn is_plain_url(value: &str) -> bool {
    let value = value.trim_matches('"');
    !value.contains("::") && !value.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_itself_writes_is_harmless() {
        let text = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\
            [remote \"origin\"]\n\turl = https://git.example.org/a.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
            [branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n[user]\n\tname = A\n\temail = a@example.org\n";
        assert_eq!(dangerous_setting(text), None);
    }

    #[test]
    fn g4_settings_that_run_programs_are_found() {
        for (text, expected) in [
            ("[core]\n fsmonitor = ./x", "core.fsmonitor"),
            ("[CORE] hooksPath=evil", "core.hooksPath"),
            ("[core]\nfilemode=true\n[alias]\nst = !x", "alias.st"),
            ("[include]\npath = /tmp/x", "include.path"),
            ("[includeIf \"gitdir:a]b\"]\npath = x", "includeif.path"),
            ("[remote \"o\"]\nurl = ext::sh -c x", "remote.url"),
            ("[remote \"o\"]\nuploadpack = x", "remote.uploadpack"),
            ("[filter \"x\"]\nclean = x", "filter.clean"),
            ("[submodule \"x\"]\nupdate = !x", "submodule.update"),
            ("[diff] external = x", "diff.external"),
            ("[pager] log = x", "pager.log"),
        ] {
            assert_eq!(dangerous_setting(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_dangerous() {
        assert!(dangerous_setting("[core\nfsmonitor = x").is_some());
        assert!(dangerous_setting("[core]\nfilemode = true # \\\nfsmonitor = x").is_some());
    }

    #[test]
    fn renames_are_followed() {
        let mut new = NewRepositories::default();
        assert!(new.note(Path::new("/w/a/.git")));
        new.renamed(Path::new("/w/a"), Path::new("/w/b"));
        assert!(new.contains(Path::new("/w/b/.git")) && !new.contains(Path::new("/w/a/.git")));
    }

    #[test]
    fn there_is_a_limit() {
        let mut new = NewRepositories::default();
        assert!((0..MOST_NEW_REPOSITORIES).all(|n| new.note(Path::new(&format!("/w/{n}")))));
        assert!(!new.note(Path::new("/w/more")));
    }
}
