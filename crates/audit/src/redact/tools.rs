//! [`Command`]: what the words of a command mean, by the tool that they are
//! for.

use super::assignments::is_plain_value;
use super::names::{is_secret_header, is_secret_name};
use super::shapes::is_credential;

/// How an option takes a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// In the same word.
    Attached,
    /// As the next word.
    Next,
    /// Either.
    Both,
    /// As the next word, in a command that logs in.
    NextInLogin,
    /// After a user and this, in the same word or the next.
    After(char),
}

/// Options of well-known tools that say nothing by their names.
const OPTIONS: [(&[&str], &str, Takes); 15] = [
    (
        &["mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlsh"],
        "-p",
        Takes::Attached,
    ),
    (
        &["mariadb", "mariadb-dump", "mariadb-admin"],
        "-p",
        Takes::Attached,
    ),
    (
        &["7z", "7za", "7zr", "7zz", "rar", "unrar"],
        "-p",
        Takes::Attached,
    ),
    (&["sshpass"], "-p", Takes::Both),
    (
        &[
            "mongo",
            "mongosh",
            "mongodump",
            "mongorestore",
            "mongoimport",
            "mongoexport",
        ],
        "-p",
        Takes::Both,
    ),
    (
        &[
            "docker", "podman", "nerdctl", "buildah", "skopeo", "helm", "az", "oc", "cf",
        ],
        "-p",
        Takes::NextInLogin,
    ),
    (&["redis-cli"], "-a", Takes::Both),
    (
        &[
            "ldapsearch",
            "ldapadd",
            "ldapmodify",
            "ldapdelete",
            "ldapwhoami",
            "ldappasswd",
        ],
        "-w",
        Takes::Both,
    ),
    (
        &["zip", "unzip", "sqlcmd", "bcp", "ssh-keygen"],
        "-P",
        Takes::Both,
    ),
    (&["ssh-keygen"], "-N", Takes::Both),
    (&["openssl"], "-passin", Takes::Next),
    (&["openssl"], "-passout", Takes::Next),
    (&["openssl"], "-k", Takes::Next),
    (&["smbclient", "rpcclient"], "-U", Takes::After('%')),
    (&["lftp"], "-u", Takes::After(',')),
];

/// Options that a user and a password follow, whatever the tool.
const USERS: [&str; 4] = ["-u", "-U", "--user", "--proxy-user"];
/// Options that a script follows, which has more in it than one value.
const SCRIPTS: [&str; 3] = ["--", "--eval", "--command"];

/// What a word of a command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Anything,
    Secret,
    /// A secret from this byte on.
    SecretFrom(usize),
    /// From this byte on a user, this and a password.
    UserAndPassword(usize, char),
    /// A secret if it looks like one.
    Credential,
    /// A text that a shell reads.
    Script,
}

/// What is known of a command by its words so far.
#[derive(Debug, Default)]
pub(super) struct Command {
    /// The last word that is the name of a tool; it may follow `sudo` or `env`.
    tool: Option<String>,
    is_login: bool,
    next: Option<Meaning>,
}

impl Command {
    /// What the next word is.
    pub(super) fn take(&mut self, word: &str) -> Meaning {
        match self.next.take() {
            Some(Meaning::Credential) if is_coded(word) => return Meaning::Secret,
            Some(Meaning::Credential) | None => {}
            Some(Meaning::Script) => return Meaning::Anything,
            Some(meaning) => return meaning,
        }
        let name = word.rsplit('/').next().unwrap_or(word);
        if OPTIONS.iter().any(|(tools, ..)| tools.contains(&name)) {
            self.tool = Some(name.to_owned());
            self.is_login = false;
        }
        self.is_login |= word == "login";
        self.option(word).unwrap_or_else(|| {
            self.next = next_after(word);
            joined(word)
        })
    }

    /// What an option of the tool is.
    fn option(&mut self, word: &str) -> Option<Meaning> {
        let tool = self.tool.as_deref()?;
        let is_it = |(tools, option, _): &&(&[&str], &str, Takes)| {
            tools.contains(&tool) && word.starts_with(option)
        };
        let (_, option, takes) = OPTIONS.iter().find(is_it)?;
        let is_attached = word.len() > option.len();
        let attached = Meaning::SecretFrom(option.len());
        let (now, next) = match (takes, is_attached) {
            (Takes::Attached | Takes::Both, true) => (attached, None),
            (Takes::Next | Takes::Both, false) => (Meaning::Anything, Some(Meaning::Secret)),
            (Takes::NextInLogin, false) if self.is_login => {
                (Meaning::Anything, Some(Meaning::Secret))
            }
            (Takes::After(sign), true) => (Meaning::UserAndPassword(option.len(), *sign), None),
            (Takes::After(sign), false) => {
                (Meaning::Anything, Some(Meaning::UserAndPassword(0, *sign)))
            }
            _ => return None,
        };
        self.next = next;
        Some(now)
    }
}

/// Whether it looks like what follows `Basic`.
fn is_coded(word: &str) -> bool {
    let is_code = |it: char| it.is_ascii_alphanumeric() || matches!(it, '+' | '/' | '=');
    is_credential(word) && word.chars().all(is_code)
}

/// What the word after this one is, if this one says so by itself.
fn next_after(word: &str) -> Option<Meaning> {
    let is_name = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
    let is_header = word.strip_suffix(':').is_some_and(is_secret_header);
    let is_option = word.starts_with('-') && word.chars().all(is_name);
    let is_short = is_option && !word.starts_with("--");
    match word {
        _ if USERS.contains(&word) => Some(Meaning::UserAndPassword(0, ':')),
        _ if SCRIPTS.contains(&word) || is_short && word.ends_with(['c', 'e']) => {
            Some(Meaning::Script)
        }
        _ if is_header || is_option && is_secret_name(word) => Some(Meaning::Secret),
        _ if word.eq_ignore_ascii_case("bearer") => Some(Meaning::Secret),
        _ if word.eq_ignore_ascii_case("basic") => Some(Meaning::Credential),
        _ => None,
    }
}

/// `--password=SECRET`, `-uUSER:PASSWORD` and `--user=USER:PASSWORD`.
fn joined(word: &str) -> Meaning {
    let is_name = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
    let assigned = word.split_once('=');
    match assigned.filter(|(name, _)| name.chars().all(is_name)) {
        Some((name, _)) if USERS.contains(&name) => Meaning::UserAndPassword(name.len() + 1, ':'),
        Some((name, value)) if is_secret_name(name) && !is_plain_value(value) => {
            Meaning::SecretFrom(name.len() + 1)
        }
        _ if is_user_joined(word) => Meaning::UserAndPassword(2, ':'),
        _ => Meaning::Anything,
    }
}

fn is_user_joined(word: &str) -> bool {
    word.starts_with("-u") && word.contains(':') && !word.contains([' ', '/', '='])
}
