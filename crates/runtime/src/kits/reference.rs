//! [`KitReference`]: how a kit is named.
//!
//! A URL is taken apart and checked before any of it gets near a command line.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::collect::{FILES, SPEC};

/// A kit as named with `--kit`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KitReference {
    /// A folder.
    Folder(PathBuf),
    /// A zip archive.
    Zip(PathBuf),
    /// A folder of a git repository.
    Git(GitReference),
}

/// A folder of a git repository, at a commit or a name of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitReference {
    /// What git is given: `https://`, `ssh://` or `file://`.
    pub(super) url: String,
    /// How it is fetched.
    pub(super) transport: Transport,
    /// A branch, a tag or a commit; the repository's own choice when absent.
    pub(super) reference: Option<String>,
    /// The folder in the repository; its root when absent.
    pub(super) folder: Option<String>,
}

/// How a repository is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    Https,
    Ssh,
    File,
}

impl Transport {
    /// Git's word for it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Ssh => "ssh",
            Self::File => "file",
        }
    }
}

/// Why a name is no kit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// A bare word.
    #[error("{0:?} is not a path of a kit")]
    Bare(String),
    /// A registry, or a scheme that is none of ours.
    #[error("{0:?}: kits are not fetched from there")]
    Scheme(String),
    /// A part of a URL that is not plain.
    #[error("{url:?}: {part} cannot be used")]
    Part {
        /// As named.
        url: String,
        /// Which part.
        part: &'static str,
    },
    /// A key after `#` that means nothing.
    #[error("{url:?}: {key:?} means nothing here")]
    Key {
        /// As named.
        url: String,
        /// As written.
        key: String,
    },
}

impl ReferenceError {
    /// A stable name for this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Bare(_) => "kit-bare-name",
            Self::Scheme(_) => "kit-scheme",
            Self::Part { .. } | Self::Key { .. } => "kit-url",
        }
    }

    /// What to write instead.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Bare(_) => "write ./NAME for a folder",
            Self::Scheme(_) => "use a folder, a .zip, git+https:// or git+ssh://",
            Self::Part { .. } => {
                "write git+https://HOST/PATH#ref=REF&dir=FOLDER; no options, passwords or queries"
            }
            Self::Key { .. } => "after '#' there are ref=REF and dir=FOLDER, joined by '&'",
        }
    }
}

impl FromStr for KitReference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        if let Some(url) = text.strip_prefix("git+") {
            return GitReference::parse(text, url).map(Self::Git);
        }
        if text.contains("://") {
            return Err(ReferenceError::Scheme(text.to_owned()));
        }
        let path = Path::new(text);
        if is_zip(path) {
            return Ok(Self::Zip(path.to_path_buf()));
        }
        // A bare word is a name in a registry elsewhere; here it must not come
        // to mean whatever folder happens to be there.
        if text.contains('/') || text == "." || text == ".." {
            return Ok(Self::Folder(path.to_path_buf()));
        }
        Err(ReferenceError::Bare(text.to_owned()))
    }
}

/// The path without links, as far as it is there.
fn absolute(path: &Path) -> PathBuf {
    let found = std::fs::canonicalize(path).or_else(|_| std::path::absolute(path));
    found.unwrap_or_else(|_| path.to_path_buf())
}

fn is_zip(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("zip"))
}

impl KitReference {
    /// The files on this machine that it is read from, if it is not fetched.
    /// Code that runs with the kit must not change them.
    pub fn files(&self) -> Vec<PathBuf> {
        match self {
            Self::Folder(path) => {
                let folder = absolute(path);
                [SPEC, FILES].map(|name| folder.join(name)).to_vec()
            }
            Self::Zip(path) => vec![absolute(path)],
            Self::Git(_) => Vec::new(),
        }
    }

    /// What an approval knows the kit by: the place that it comes from, whatever
    /// its content or commit.
    pub fn place(&self) -> String {
        match self {
            Self::Folder(path) | Self::Zip(path) => absolute(path).display().to_string(),
            Self::Git(git) => match &git.folder {
                Some(folder) => format!("git+{}#dir={folder}", git.url),
                None => format!("git+{}", git.url),
            },
        }
    }
}

impl fmt::Display for KitReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) | Self::Zip(path) => path.display().fmt(f),
            Self::Git(git) => {
                write!(f, "git+{}", git.url)?;
                let parts = [("ref", &git.reference), ("dir", &git.folder)];
                let written = parts
                    .into_iter()
                    .filter_map(|(key, value)| Some(format!("{key}={}", value.as_ref()?)));
                let written: Vec<String> = written.collect();
                match written.as_slice() {
                    [] => Ok(()),
                    parts => write!(f, "#{}", parts.join("&")),
                }
            }
        }
    }
}

impl GitReference {
    fn parse(text: &str, url: &str) -> Result<Self, ReferenceError> {
        let part = |part| ReferenceError::Part {
            url: text.to_owned(),
            part,
        };
        let (url, fragment) = url.split_once('#').unwrap_or((url, ""));
        let (scheme, rest) = url.split_once("://").ok_or_else(|| part("the scheme"))?;
        let transport = match scheme {
            "https" => Transport::Https,
            "ssh" => Transport::Ssh,
            "file" => Transport::File,
            _ => return Err(ReferenceError::Scheme(text.to_owned())),
        };
        let (authority, path) = rest.split_once('/').ok_or_else(|| part("the path"))?;
        if !is_authority(authority, transport) {
            return Err(part("the host"));
        }
        if !path.split('/').all(is_segment) || path.is_empty() {
            return Err(part("the path"));
        }
        let mut git = Self {
            url: url.to_owned(),
            transport,
            reference: None,
            folder: None,
        };
        git.read_fragment(text, fragment)?;
        Ok(git)
    }

    fn read_fragment(&mut self, text: &str, fragment: &str) -> Result<(), ReferenceError> {
        for pair in fragment.split('&').filter(|pair| !pair.is_empty()) {
            let key = || ReferenceError::Key {
                url: text.to_owned(),
                key: pair.to_owned(),
            };
            let part = |part| ReferenceError::Part {
                url: text.to_owned(),
                part,
            };
            let (name, value) = pair.split_once('=').ok_or_else(key)?;
            let (slot, is_good, what): (_, fn(&str) -> bool, _) = match name {
                "ref" => (&mut self.reference, is_reference, "the ref"),
                "dir" => (&mut self.folder, is_folder, "the folder"),
                _ => return Err(key()),
            };
            if slot.is_some() || !is_good(value) {
                return Err(part(what));
            }
            *slot = Some(value.to_owned());
        }
        Ok(())
    }

    /// The commit, where the reference is one.
    pub(super) fn commit(&self) -> Option<&str> {
        self.reference.as_deref().filter(|text| is_commit(text))
    }
}

pub(super) fn is_commit(text: &str) -> bool {
    let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    [40, 64].contains(&text.len()) && text.bytes().all(is_hex)
}

/// A host, with a user for SSH. A password would be seen by everybody on the
/// machine, and a name that begins with `-` would be an option to `ssh`
/// (CVE-2017-1000117).
fn is_authority(text: &str, transport: Transport) -> bool {
    if transport == Transport::File {
        return text.is_empty();
    }
    let (user, host) = match text.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, text),
    };
    let (host, port) = match host.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (host, None),
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    is_word(host)
        && port.is_none_or(is_port)
        && user.is_none_or(|user| transport == Transport::Ssh && is_word(user))
}

/// Letters, digits, `.`, `_` and `-`, not beginning with `-`.
fn is_word(text: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    !text.is_empty() && !text.starts_with('-') && text.bytes().all(is_plain)
}

fn is_segment(text: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"._-~+@%,=".contains(&b);
    !text.starts_with('-') && text != ".." && text.bytes().all(is_plain)
}

/// A name that git takes for a branch, a tag or a commit, and for nothing else:
/// no ranges, no `@{…}`, no refspecs.
fn is_reference(text: &str) -> bool {
    let parts = || text.split('/');
    let is_lock = |part: &str| part.rsplit_once('.').is_some_and(|(_, end)| end == "lock");
    let is_odd = |part: &str| part.starts_with('.') || is_lock(part);
    parts().all(is_word) && !parts().any(is_odd) && !text.contains("..") && !text.ends_with('.')
}

fn is_folder(text: &str) -> bool {
    !text.starts_with('/') && text.split('/').all(is_word) && !text.split('/').any(|p| p == "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kits_are_named_by_path_or_url() {
        let parse = |text: &str| text.parse::<KitReference>();
        assert!(matches!(parse("./k"), Ok(KitReference::Folder(_))));
        assert!(matches!(parse("/srv/kits/k/"), Ok(KitReference::Folder(_))));
        assert!(matches!(parse("k.zip"), Ok(KitReference::Zip(_))));
        for text in [
            "git+https://forge.example.org/team/kits.git#ref=v1.2&dir=mixins/forge",
            "git+ssh://git@forge.example.org:2222/team/kits.git#ref=main",
            "git+file:///srv/kits.git#dir=a",
            "git+https://forge.example.org/team/kits.git",
        ] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        for (text, code) in [
            ("k", "kit-bare-name"),
            ("", "kit-bare-name"),
            ("oci://registry.example.org/k:1", "kit-scheme"),
            ("https://example.org/k", "kit-scheme"),
            ("git+http://example.org/k", "kit-scheme"),
            ("git+ext::sh -c id", "kit-url"),
            ("git+ext://example.org/k", "kit-scheme"),
        ] {
            assert_eq!(parse(text).unwrap_err().code(), code, "{text}");
        }
    }

    #[test]
    fn options_and_tricks_in_urls_are_refused() {
        for text in [
            "git+https://-oProxyCommand=id/x",
            "git+ssh://-oProxyCommand=id/x",
            "git+ssh://-l@example.org/x",
            "git+ssh://u@-example.org/x",
            "git+ssh://example.org/--upload-pack=id",
            "git+https://example.org/-x/y",
            "git+https://user:word@example.org/x",
            "git+https://user@example.org/x",
            "git+https://example.org",
            "git+https://example.org/",
            "git+https:///x",
            "git+https://example.org/x?y=z",
            "git+https://example.org/x y",
            "git+https://example.org/../x",
            "git+https://example.org:0/x",
            "git+https://example.org:99999/x",
            "git+https://example.org/x\n",
            "git+file://host/x",
            "git+https://example.org/x#ref=--upload-pack=id",
            "git+https://example.org/x#ref=-x",
            "git+https://example.org/x#ref=a..b",
            "git+https://example.org/x#ref=a@{1}",
            "git+https://example.org/x#ref=a:b",
            "git+https://example.org/x#ref=+a",
            "git+https://example.org/x#ref=",
            "git+https://example.org/x#ref=a&ref=b",
            "git+https://example.org/x#dir=../x",
            "git+https://example.org/x#dir=/x",
            "git+https://example.org/x#dir=a/../b",
            "git+https://example.org/x#dir=-x",
            "git+https://example.org/x#dir=:(glob)x",
            "git+https://example.org/x#depth=1",
            "git+https://example.org/x#main",
        ] {
            let error = text.parse::<KitReference>().unwrap_err();
            assert_eq!(error.code(), "kit-url", "{text}: {error}");
        }
    }
}
