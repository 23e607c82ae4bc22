//! What a repository's configuration, or a rebase that was interrupted, names: files that Git
//! reads or runs.
//!
//! Read generously: a name too many is guarded in vain.

use std::path::PathBuf;

use super::{is_harmless, section_name};

/// A file that configuration has Git look for, or run, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Named {
    /// A directory of hooks, or one that new repositories get theirs from.
    Hooks(PathBuf),
    /// Further configuration.
    Configuration(PathBuf),
    /// A word of a command, or of another setting that is not harmless.
    Program {
        /// As a path, from the work tree.
        path: PathBuf,
        /// Whether the setting is one that Git runs.
        is_run: bool,
    },
}

/// Which files the text of a configuration file names. Read generously: a name
/// too many is guarded in vain.
pub(crate) fn named_files(text: &str) -> Vec<Named> {
    let mut section = String::new();
    let mut named = Vec::new();
    for line in &joined_lines(text) {
        let mut setting = line.trim_start_matches('\u{feff}').trim_matches(SPACES);
        while let Some((name, _, rest)) = setting.strip_prefix('[').and_then(section_name) {
            section = name;
            setting = rest.trim_matches(SPACES);
        }
        let Some((key, value)) = setting.split_once('=') else {
            continue;
        };
        let key = key.trim().to_ascii_lowercase();
        named.extend(named_by(&section, &key, &plain_value(value)));
    }
    named
}

/// Which files one setting names.
pub(crate) fn named_by(section: &str, key: &str, value: &str) -> Vec<Named> {
    match (section, key) {
        ("core", "hookspath") | ("init", "templatedir") => vec![Named::Hooks(value.into())],
        ("include" | "includeif", "path") => vec![Named::Configuration(value.into())],
        _ => programs(section, key, value),
    }
}

/// The words of a command line that Git runs.
pub(crate) fn named_by_command(line: &str) -> Vec<Named> {
    let words = words(line).map(|path| Named::Program { path, is_run: true });
    words.collect()
}

/// The words of a setting that may be programs, or files that these read.
fn programs(section: &str, key: &str, value: &str) -> Vec<Named> {
    // An alias that begins otherwise is a command of Git's own.
    let is_own = section == "alias" && !value.starts_with('!');
    if is_own || is_harmless(section, key, value) || (section, key) == ("core", "worktree") {
        return Vec::new();
    }
    let is_run = is_run(section, key);
    let words = words(value).map(|path| Named::Program { path, is_run });
    words.collect()
}

/// Whether Git runs what a setting says.
fn is_run(section: &str, key: &str) -> bool {
    const SECTIONS: [&str; 9] = [
        "alias",
        "browser",
        "credential",
        "difftool",
        "filter",
        "man",
        "mergetool",
        "pager",
        "trailer",
    ];
    const KEYS: [&str; 19] = [
        "alternaterefscommand",
        "askpass",
        "cmd",
        "command",
        "difffilter",
        "driver",
        "editor",
        "external",
        "fsmonitor",
        "gitproxy",
        "packobjectshook",
        "pager",
        "program",
        "receivepack",
        "sshcommand",
        "textconv",
        "update",
        "uploadpack",
        "vcs",
    ];
    SECTIONS.contains(&section) || KEYS.contains(&key)
}

/// The words of a command line that may be paths, whatever quotes are around
/// them.
fn words(line: &str) -> impl Iterator<Item = PathBuf> {
    const MOST: usize = 64;
    const LONGEST: usize = 1024;
    let words = line.split(|c: char| c.is_whitespace() || "!\"';|&()<>=`$,".contains(c));
    let words = words.filter(|word| !word.is_empty() && !word.starts_with('-'));
    let words = words.filter(|word| word.len() <= LONGEST).take(MOST);
    words.map(PathBuf::from)
}

/// The list of what a rebase that was interrupted goes on with, below its
/// directory.
pub(crate) const REBASE: [&str; 2] = ["rebase-merge", "git-rebase-todo"];

/// The commands that a rebase runs when it goes on.
pub(crate) fn rebase_commands(list: &str) -> impl Iterator<Item = &str> {
    let lines = list.lines().map(str::trim_start);
    lines.filter_map(|line| {
        let (word, command) = line.split_once([' ', '\t'])?;
        matches!(word, "exec" | "x").then_some(command.trim())
    })
}

/// The programs among them.
pub(crate) fn rebase_programs(list: &str) -> Vec<PathBuf> {
    rebase_commands(list).flat_map(words).collect()
}

/// What Git takes for space around a value.
const SPACES: [char; 3] = [' ', '\t', '\r'];

/// The lines without comments, each with those that it goes on in. What ends a
/// comment, or an escaped backslash, does not go on.
fn joined_lines(text: &str) -> Vec<String> {
    let text = text.replace("\r\n", "\n");
    let mut characters = text.chars();
    let (mut quoted, mut comment) = (false, false);
    let mut lines = Vec::new();
    let mut line = String::new();
    while let Some(character) = characters.next() {
        match character {
            '\n' => {
                lines.push(std::mem::take(&mut line));
                (quoted, comment) = (false, false);
            }
            _ if comment => {}
            '\\' => match characters.next() {
                Some('\n') => {}
                next => line.extend(['\\'].into_iter().chain(next)),
            },
            '#' | ';' if !quoted => comment = true,
            other => {
                quoted ^= other == '"';
                line.push(other);
            }
        }
    }
    lines.push(line);
    lines
}

/// A value as Git reads it: without quotes, and with its escapes resolved.
fn plain_value(value: &str) -> String {
    let mut quoted = false;
    let mut plain = String::new();
    // Up to where space at the end belongs to the value.
    let mut end = 0;
    let mut characters = value.trim_start_matches(SPACES).chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => quoted = !quoted,
            '\\' => {
                plain.extend(characters.next().map(unescaped));
                end = plain.len();
            }
            other => {
                plain.push(other);
                if quoted || !SPACES.contains(&other) {
                    end = plain.len();
                }
            }
        }
    }
    plain.truncate(end);
    plain
}

fn unescaped(character: char) -> char {
    match character {
        'n' => '\n',
        't' => '\t',
        'b' => '\u{8}',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;
    use crate::git::gitfile_target;

    #[test]
    fn files_that_configuration_names_are_known() {
        let text = "[core]\nhooksPath = .husky\n[include]\npath = ../more\n[user]\nname = x\n";
        let named = [
            Named::Hooks(".husky".into()),
            Named::Configuration("../more".into()),
        ];
        assert_eq!(named_files(text), named);
        let target = gitfile_target(b"gitdir: ../\xff/s\r\n");
        assert_eq!(target, Some(OsStr::from_bytes(b"../\xff/s")));
        assert_eq!(gitfile_target(b"gitdir: \n"), None);
        let text = "[core]\nhooksPath = tools # ours\n[alias]\nl = log \\\n x\n[include]\npath = \"a b\"\n";
        let named = [
            Named::Hooks("tools".into()),
            Named::Configuration("a b".into()),
        ];
        assert_eq!(named_files(text), named);
    }

    #[test]
    fn g4_values_are_read_with_their_escapes_as_git_does() {
        for (value, read) in [
            (r"a\\b", r"a\b"),
            (r#""a\"b""#, "a\"b"),
            (r"a\tb\nc\bd", "a\tb\nc\u{8}d"),
            (r#"\"a#b"#, "\"a"),
            (r#"a" b # c" # d"#, "a b # c"),
            ("\" a \" ", " a "),
            ("a\u{a0}", "a\u{a0}"),
            ("a\\\r\nb", "ab"),
        ] {
            let text = format!("[core]\nhooksPath = {value}\n");
            assert_eq!(named_files(&text), [Named::Hooks(read.into())], "{value}");
        }
        for before in ["# note \\", "; \"", "[alias]\nx = a\\\\", "[a \"#\"]"] {
            let text = format!("{before}\n[x] [core] hooksPath = own\n");
            assert_eq!(named_files(&text), [Named::Hooks("own".into())], "{before}");
        }
    }

    #[test]
    fn g4_words_of_commands_are_known() {
        let program = |path: &str, is_run| Named::Program {
            path: path.into(),
            is_run,
        };
        let text = "[core]\nfsmonitor = ./tools/fs -x\nexcludesFile = .ignored\nworktree = ../x\n\
                    [alias]\nst = status -s\na = \"!sh bin/a; true\"\n";
        let named = [
            program("./tools/fs", true),
            program(".ignored", false),
            program("sh", true),
            program("bin/a", true),
            program("true", true),
        ];
        assert_eq!(named_files(text), named);
        let list = "pick 1 a\nexec sh check.sh\n x make\nbreak\nexecute\n";
        let commands: Vec<_> = rebase_commands(list).collect();
        assert_eq!(commands, ["sh check.sh", "make"]);
        let programs = ["sh", "check.sh", "make"].map(PathBuf::from);
        assert_eq!(rebase_programs(list), programs);
    }
}
