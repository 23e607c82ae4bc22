//! Git repositories in a writable root: which configuration could run a
//! program, and what was made during this run.
//!
//! A repository that was there before keeps its hooks and configuration as
//! they are. One made inside may be made, but never has live hooks, or
//! configuration that runs programs.

mod naming;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use ringfence_sys::Errno;
use rustix::fs::{FileType, Mode, OFlags};

pub(crate) use self::naming::{
    Named, REBASE, named_by, named_by_command, named_files, rebase_commands, rebase_programs,
};
use crate::view::FileId;

/// A configuration file larger than this is taken as dangerous.
const LARGEST_CONFIG: usize = 256 * 1024;

/// Entries of a repository that decide which programs Git runs.
pub(crate) const CONTROL_NAMES: [&str; 4] = ["config", "config.worktree", "commondir", "hooks"];

/// The entry without which a folder is no repository to Git.
pub(crate) const HEAD: &str = "HEAD";

/// Whether an entry of this name, in lower case, decides which programs Git runs
/// if its directory is a repository.
pub(crate) fn is_control_name(name: &[u8]) -> bool {
    CONTROL_NAMES
        .iter()
        .any(|control| control.as_bytes() == name)
}

/// Whether making this name, in lower case, may make a repository, or is about
/// what one runs.
pub(crate) fn is_telling_name(name: &[u8]) -> bool {
    is_control_name(name) || matches!(name, b"head" | b".git" | b"worktrees" | b"modules")
}

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
///
/// `depth` is how far below its writable root the Git directory is: so far
/// above it its work tree may be, as that of a submodule is.
pub(crate) fn dangerous_setting(text: &str, depth: usize) -> Option<String> {
    match settings(text) {
        Ok(settings) => settings
            .iter()
            .find(|setting| !setting.is_harmless() && !setting.is_near_work_tree(depth))
            .map(Setting::name),
        Err(line) => Some(line),
    }
}

/// The first setting by which `new` differs from `old`, the configuration of a
/// repository that was there before, in more than harmless ones. A remote that
/// was there keeps its addresses, and a branch its remote: what is pushed would
/// go elsewhere.
pub(crate) fn dangerous_change(old: &str, new: &str) -> Option<String> {
    let (old, new) = match (settings(old), settings(new)) {
        (Ok(old), Ok(new)) => (old, new),
        (Err(line), _) | (_, Err(line)) => return Some(line),
    };
    let known: Vec<_> = old.iter().map(Setting::place).collect();
    // A branch may go, and its settings with it.
    let is_elsewhere = |setting: &&Setting<'_>| {
        setting.is_remote_of_branch() && known.contains(&setting.place()) && !old.contains(*setting)
    };
    if let Some(setting) = new.iter().find(is_elsewhere) {
        return Some(setting.name());
    }
    let is_fixed = |setting: &&Setting<'_>| {
        !setting.is_harmless()
            || setting.is_push_target()
            || (setting.is_destination() && known.contains(&setting.place()))
    };
    let before: Vec<_> = old.iter().filter(is_fixed).collect();
    let after: Vec<_> = new.iter().filter(is_fixed).collect();
    let changed = before.iter().zip(&after).find(|(one, other)| one != other);
    let longer = if before.len() > after.len() {
        &before
    } else {
        &after
    };
    let rest = longer.get(before.len().min(after.len()));
    changed
        .map(|(_, after)| *after)
        .or(rest.copied())
        .map(Setting::name)
}

/// The work tree that a configuration file names.
pub(crate) fn work_tree(text: &str) -> Option<&str> {
    let settings = settings(text).ok()?;
    let mut trees = settings.iter().filter(|setting| setting.is_work_tree());
    trees.next_back().map(|setting| setting.value)
}

/// Where a file in place of a Git directory says that it is; any other content
/// means nothing to Git.
pub(crate) fn gitfile_target(content: &[u8]) -> Option<&OsStr> {
    let mut target = content.strip_prefix(b"gitdir: ")?;
    while let Some(rest) = target.strip_suffix(b"\n").or(target.strip_suffix(b"\r")) {
        target = rest;
    }
    (!target.is_empty()).then(|| OsStr::from_bytes(target))
}

/// A line as Git reads a path from it: without its end, and nothing else.
pub(crate) fn without_line_end(line: &str) -> &str {
    line.trim_end_matches(['\r', '\n'])
}

/// Whether a file of this name, in a directory of hooks, may be one. Every hook
/// that Git knows is called so.
pub(crate) fn is_hook_name(name: &OsStr) -> bool {
    const BEGINNINGS: [&str; 12] = [
        "applypatch-",
        "commit-",
        "fsmonitor-",
        "p4-",
        "post-",
        "pre-",
        "prepare-",
        "proc-",
        "push-",
        "reference-",
        "sendemail-",
        "update",
    ];
    let name = name.to_string_lossy();
    BEGINNINGS
        .iter()
        .any(|beginning| name.starts_with(beginning))
}

/// The text of a plain file of ordinary size; `None` for anything else.
pub(crate) fn read_text(directory: impl AsFd, name: &OsStr) -> Result<Option<String>, Errno> {
    let bytes = read_plain(directory, name)?;
    Ok(bytes.and_then(|bytes| String::from_utf8(bytes).ok()))
}

/// The text of such a file to look for paths in, whatever bytes are between
/// them.
pub(crate) fn read_roughly(directory: impl AsFd, name: &OsStr) -> Option<String> {
    let bytes = read_plain(directory, name).ok()??;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The bytes of a plain file of ordinary size; `None` for anything else.
pub(crate) fn read_plain(directory: impl AsFd, name: &OsStr) -> Result<Option<Vec<u8>>, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(directory, name, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::LOOP | Errno::ACCESS | Errno::NXIO) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    read_whole(&file)
}

/// The same of an open file, from its beginning.
pub(crate) fn read_whole(file: &OwnedFd) -> Result<Option<Vec<u8>>, Errno> {
    let status = rustix::fs::fstat(file)?;
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        return Ok(None);
    }
    let mut bytes = vec![0; LARGEST_CONFIG + 1];
    let mut length = 0;
    while length < bytes.len() {
        match rustix::io::pread(file, &mut bytes[length..], length as u64)? {
            0 => break,
            read => length += read,
        }
    }
    bytes.truncate(length);
    Ok((length <= LARGEST_CONFIG).then_some(bytes))
}

/// One setting of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Setting<'a> {
    /// In lower case.
    section: String,
    /// As it was written, quotes and all.
    subsection: &'a str,
    /// In lower case.
    key: String,
    value: &'a str,
}

impl Setting<'_> {
    fn name(&self) -> String {
        const LONGEST: usize = 64;
        let subsection = self.subsection.trim().trim_matches('"');
        let is_plain = |character: char| character.is_ascii_graphic();
        // Code inside wrote it.
        if subsection.is_empty() || subsection.len() > LONGEST || !subsection.chars().all(is_plain)
        {
            return format!("{}.{}", self.section, self.key);
        }
        format!("{}.{subsection}.{}", self.section, self.key)
    }

    fn is_harmless(&self) -> bool {
        is_harmless(&self.section, &self.key, self.value)
    }

    fn is_work_tree(&self) -> bool {
        (self.section.as_str(), self.key.as_str()) == ("core", "worktree")
    }

    /// A work tree at most `depth` directories above its Git directory, and
    /// below that.
    fn is_near_work_tree(&self, depth: usize) -> bool {
        let above = self.value.split('/').take_while(|part| *part == "..");
        let above = above.count();
        let mut below = self.value.split('/').skip(above).peekable();
        self.is_work_tree()
            // Git would read another path than we do.
            && !self.value.contains(['"', '\\', '#', ';'])
            && (1..=depth).contains(&above)
            && below.peek().is_some()
            && below.all(|part| !matches!(part, "" | "." | "..") && !part.starts_with(['~', '"']))
    }

    /// Its section and subsection.
    fn place(&self) -> (&str, &str) {
        (&self.section, self.subsection)
    }

    /// Where something is fetched from or pushed to, and what is pushed.
    fn is_destination(&self) -> bool {
        matches!(
            (self.section.as_str(), self.key.as_str()),
            ("remote" | "submodule", "url" | "pushurl") | ("remote", "push" | "mirror")
        )
    }

    /// Which remote a branch belongs to.
    fn is_remote_of_branch(&self) -> bool {
        (self.section.as_str(), self.key.as_str()) == ("branch", "remote")
    }

    /// Which remote is pushed to when nothing is said.
    fn is_push_target(&self) -> bool {
        matches!(
            (self.section.as_str(), self.key.as_str()),
            ("branch", "pushremote") | ("remote", "pushdefault")
        )
    }
}

/// The settings of a text, or the first line that cannot be read.
fn settings(text: &str) -> Result<Vec<Setting<'_>>, String> {
    let mut settings = Vec::new();
    let (mut section, mut subsection) = (String::new(), "");
    for line in text.lines() {
        let line = line.trim_start_matches('\u{feff}').trim();
        // Git never writes a continued line, and readers disagree on which
        // lines continue (a backslash inside a comment does not).
        if line.ends_with('\\') {
            return Err(line.to_owned());
        }
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let setting = match line.strip_prefix('[') {
            Some(header) => {
                let rest;
                (section, subsection, rest) =
                    section_name(header).ok_or_else(|| line.to_owned())?;
                // One subsection has several spellings else.
                if !is_plain_subsection(subsection) {
                    return Err(line.to_owned());
                }
                rest.trim()
            }
            None => line,
        };
        if setting.is_empty() || setting.starts_with(['#', ';']) {
            continue;
        }
        let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
        settings.push(Setting {
            section: section.clone(),
            subsection,
            key: key.trim().to_ascii_lowercase(),
            value: value.trim(),
        });
    }
    Ok(settings)
}

/// None, or a text in quotes without escapes.
fn is_plain_subsection(subsection: &str) -> bool {
    let quoted = subsection
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    subsection.is_empty() || quoted.is_some_and(|text| !text.contains(['\\', '"']))
}

/// The lower-case section, its subsection, and what follows it.
fn section_name(header: &str) -> Option<(String, &str, &str)> {
    let mut quoted = false;
    let mut escaped = false;
    for (at, character) in header.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ']' if !quoted => {
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
                let inside = &header[..at];
                let end = inside.find(|c| !is_name(c)).unwrap_or(inside.len());
                let (name, subsection) = inside.split_at(end);
                return Some((
                    name.to_ascii_lowercase(),
                    subsection.trim(),
                    &header[at + 1..],
                ));
            }
            _ => {}
        }
    }
    None
}

fn is_harmless(section: &str, key: &str, value: &str) -> bool {
    let is_name = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if !is_name || value.contains('\\') {
        return false;
    }
    match (section, key) {
        ("remote", "url" | "pushurl") | ("submodule", "url") => is_plain_url(value),
        ("branch", "remote" | "pushremote") => is_remote_name(value),
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
            "merge",
            "rebase",
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
    // Of repositories that several people push to (`git init --shared`).
    ("receive", &["denynonfastforwards"]),
    ("merge", &["ff", "conflictstyle"]),
    ("color", &["ui"]),
    ("gc", &["auto"]),
];

/// Whether fetching from `value` runs no helper: `ext::` and other
/// `transport::address` forms do, schemes that Git does not know do, and quotes
/// inside could hide one.
fn is_plain_url(value: &str) -> bool {
    const SCHEMES: [&str; 5] = ["https", "http", "ssh", "git", "file"];
    let is_known = match value.split_once("://") {
        Some((scheme, _)) => SCHEMES.contains(&scheme),
        None => true,
    };
    is_known && !value.contains("::") && !value.contains('"') && !value.starts_with('-')
}

/// Whether `value` names a remote, and is no address by itself.
fn is_remote_name(value: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    !value.starts_with(['-', '/']) && !value.contains("..") && value.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g4_a_work_tree_that_git_reads_otherwise_is_dangerous() {
        let config = |tree: &str| format!("[core]\n\tworktree = {tree}\n");
        assert_eq!(dangerous_setting(&config("../../../sub"), 3), None);
        for tree in [
            "../.\".\"/x",
            "../l ;c",
            "../l #c",
            "../a\\\\b",
            "../../../../x",
        ] {
            assert!(dangerous_setting(&config(tree), 3).is_some(), "{tree}");
        }
    }

    #[test]
    fn g4_what_is_pushed_stays_where_it_was_sent() {
        let old =
            "[remote \"o\"]\n\turl = https://git.example.org/o\n[branch \"main\"]\n\tremote = o\n";
        let with = |more: &str| dangerous_change(old, &format!("{old}{more}"));
        for more in [
            "[branch \"main\"]\n\tremote = e\n",
            "[remote \"o\"]\n\tmirror = true\n",
            "[remote \"o\"]\n\tpush = +refs/heads/x:refs/heads/main\n",
        ] {
            assert!(with(more).is_some(), "{more}");
        }
        let harmless =
            "[remote \"e\"]\n\turl = https://git.example.org/e\n[branch \"b\"]\n\tremote = e\n";
        assert_eq!(with(harmless), None);
    }

    #[test]
    fn what_git_itself_writes_is_harmless() {
        let text = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\
            [remote \"origin\"]\n\turl = https://git.example.org/a.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
            [branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n[user]\n\tname = A\n\temail = a@example.org\n";
        assert_eq!(dangerous_setting(text, 3), None);
    }

    #[test]
    fn g4_settings_that_run_programs_are_found() {
        for (text, expected) in [
            ("[core]\n fsmonitor = ./x", "core.fsmonitor"),
            ("[CORE] hooksPath=evil", "core.hookspath"),
            ("[core]\nfilemode=true\n[alias]\nst = !x", "alias.st"),
            ("[include]\npath = /tmp/x", "include.path"),
            (
                "[includeIf \"gitdir:a]b\"]\npath = x",
                "includeif.gitdir:a]b.path",
            ),
            ("[remote \"o\"]\nurl = ext::sh -c x", "remote.o.url"),
            ("[remote \"o\"]\nuploadpack = x", "remote.o.uploadpack"),
            ("[filter \"x\"]\nclean = x", "filter.x.clean"),
            ("[submodule \"x\"]\nupdate = !x", "submodule.x.update"),
            ("[diff] external = x", "diff.external"),
            ("[pager] log = x", "pager.log"),
        ] {
            assert_eq!(
                dangerous_setting(text, 3).as_deref(),
                Some(expected),
                "{text}"
            );
        }
    }

    #[test]
    fn what_cannot_be_read_is_dangerous() {
        assert!(dangerous_setting("[core\nfsmonitor = x", 3).is_some());
        assert!(dangerous_setting("[core]\nfilemode = true # \\\nfsmonitor = x", 3).is_some());
    }

    #[test]
    fn g4_readers_do_not_disagree() {
        for text in [
            "[gc] [core] fsmonitor = x",
            "[remote \"o\"]\nurl = ext\":\":sh -c x",
            "[core]\nworktree = /",
            "[core]\nfilemode = tr\\ue",
        ] {
            assert!(dangerous_setting(text, 3).is_some(), "{text}");
        }
    }

    #[test]
    fn a_work_tree_stays_in_the_root_of_its_repository() {
        let text = |value: &str| format!("[core]\n\tworktree = {value}\n");
        for (value, depth, is_fine) in [
            ("../../../sub", 3, true),
            ("../../../a/b", 3, true),
            ("../../../sub", 2, false),
            ("../../..", 3, false),
            ("../a/../../../x", 3, false),
            ("/home/u", 3, false),
            ("sub", 3, false),
            ("../~", 3, false),
        ] {
            let text = text(value);
            assert_eq!(
                dangerous_setting(&text, depth).is_none(),
                is_fine,
                "{value}"
            );
            assert_eq!(work_tree(&text), Some(value));
        }
    }

    #[test]
    fn g4_in_an_old_repository_only_harmless_settings_change() {
        let old = "[core]\n\tbare = false\n\tfsmonitor = own\n[alias]\n\tst = status\n\
            [remote \"origin\"]\n\turl = https://git.example.org/a\n";
        let with = |more: &str| format!("{old}{more}");
        for more in [
            "",
            "[user]\n\temail = a@example.org\n",
            "[remote \"fork\"]\n\turl = https://git.example.org/b\n\tfetch = +refs/heads/*:refs/remotes/fork/*\n",
            "[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n",
            "[submodule \"s\"]\n\turl = https://git.example.org/s\n\tactive = true\n",
        ] {
            assert_eq!(dangerous_change(old, &with(more)), None, "{more}");
            assert_eq!(
                dangerous_change(&with(more), old).is_some(),
                more.contains("url")
            );
        }
        for (new, setting) in [
            (with("[core]\n\tsshCommand = x\n"), "core.sshcommand"),
            (
                with("[remote \"origin\"]\n\tpushurl = https://evil.example.org\n"),
                "remote.origin.pushurl",
            ),
            (
                with("[branch \"main\"]\n\tpushRemote = fork\n"),
                "branch.main.pushremote",
            ),
            (old.replace("own", "other"), "core.fsmonitor"),
            (
                old.replace("git.example", "evil.example"),
                "remote.origin.url",
            ),
            (old.replace("\tst = status\n", ""), "alias.st"),
        ] {
            assert!(dangerous_change(old, &new).is_some(), "{new}");
            if !new.contains("evil.example.org/a") && new.len() > old.len() {
                assert_eq!(dangerous_change(old, &new).as_deref(), Some(setting));
            }
        }
    }
}
