//! Git repositories in a writable root: which configuration could run a
//! program, and what was made during this run.
//!
//! A repository that was there before keeps its hooks and configuration as
//! they are. One made inside may be made, but never has live hooks, or
//! configuration that runs programs.

use std::collections::HashSet;

use crate::view::FileId;

/// Entries of a repository that decide which programs Git runs.
pub(crate) const CONTROL_NAMES: [&str; 4] = ["config", "config.worktree", "commondir", "hooks"];

/// The entry without which a folder is no repository to Git.
pub(crate) const HEAD: &str = "HEAD";

/// The most folders that are remembered. Those beyond it count as old.
const MOST_REMEMBERED: usize = 200_000;

/// What was made during this run, by identity: a name can be moved, and
/// another thing put in its place.
#[derive(Debug, Default)]
pub(crate) struct Made(HashSet<FileId>);

impl Made {
    /// Remembers a folder that was made inside, or that became a repository
    /// there.
    pub(crate) fn remember(&mut self, folder: FileId) {
        if self.0.len() < MOST_REMEMBERED {
            self.0.insert(folder);
        }
    }

    /// Forgets a folder that was removed: its number may be given to another.
    pub(crate) fn forget(&mut self, folder: FileId) {
        self.0.remove(&folder);
    }

    /// Whether the folder is one of those.
    pub(crate) fn has(&self, folder: FileId) -> bool {
        self.0.contains(&folder)
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
    let is_name = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if !is_name || value.contains('\\') {
        return false;
    }
    match (section, key.as_str()) {
        ("remote", "url" | "pushurl") | ("submodule", "url") => is_plain_url(value),
        ("submodule", "update") => matches!(value, "checkout" | "rebase" | "merge" | "none"),
        (section, key) => HARMLESS
            .iter()
            .any(|(known, keys)| *known == section && keys.contains(&key)),
    }
}

/// Settings that name no program, no file and no further configuration.
const HARMLESS: &[(&str, &[&str])] = &[
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "ignorecase",
            "precomposeunicode",
            "symlinks",
            "autocrlf",
            "eol",
            "safecrlf",
            "compression",
            "bigfilethreshold",
            "sparsecheckout",
            "sparsecheckoutcone",
            "sharedrepository",
            "quotepath",
            "abbrev",
        ],
    ),
    (
        "extensions",
        &[
            "objectformat",
            "refstorage",
            "partialclone",
            "worktreeconfig",
        ],
    ),
    (
        "remote",
        &[
            "fetch",
            "push",
            "tagopt",
            "prune",
            "prunetags",
            "mirror",
            "promisor",
            "partialclonefilter",
            "skipdefaultupdate",
            "skipfetchall",
        ],
    ),
    (
        "branch",
        &[
            "remote",
            "merge",
            "rebase",
            "pushremote",
            "description",
            "autosetupmerge",
            "autosetuprebase",
        ],
    ),
    (
        "submodule",
        &[
            "active",
            "branch",
            "path",
            "ignore",
            "fetchrecursesubmodules",
            "shallow",
        ],
    ),
    ("user", &["name", "email", "useconfigonly"]),
    ("author", &["name", "email"]),
    ("committer", &["name", "email"]),
    ("init", &["defaultbranch"]),
    ("pull", &["rebase", "ff"]),
    ("push", &["default", "autosetupremote", "followtags"]),
    ("fetch", &["prune", "prunetags"]),
    ("merge", &["ff", "conflictstyle"]),
    ("color", &["ui"]),
    ("gc", &["auto"]),
];

/// Whether fetching from `value` runs no helper: `ext::` and other
/// `transport::address` forms do, and quotes inside could hide one.
fn is_plain_url(value: &str) -> bool {
    !value.contains("::") && !value.contains('"') && !value.starts_with('-')
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
    fn g4_readers_do_not_disagree() {
        for text in [
            "[gc] [core] fsmonitor = x",
            "[remote \"o\"]\nurl = ext\":\":sh -c x",
            "[core]\nworktree = /",
            "[core]\nfilemode = tr\\ue",
        ] {
            assert!(dangerous_setting(text).is_some(), "{text}");
        }
    }
}
