//! Files of certificates that variables of the host name: they keep working inside.
//!
//! What is in them is copied into the sandbox's own folder, wherever they lie, and the variables
//! name the copies. Only certificates are copied, which everybody may know: such a file may hold a
//! key as well.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ringfence_policy::Environment;
use ringfence_sandbox::{Certificates, GivenFile, OWN_FOLDER, certificate_variables};

/// The most that is copied of one file.
const LARGEST: usize = 4 * 1024 * 1024;
/// Where the copies are in the sandbox's own folder.
const FOLDER: &str = "certificates";
const READABLE: u32 = 0o444;
const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
/// How certificates are called in such files.
const KINDS: [&str; 3] = ["CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE"];

/// A look at a variable of the host.
type Variable<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// What a sandbox is given of them.
#[derive(Debug, Default)]
pub(crate) struct HostCertificates {
    /// The copies.
    pub(crate) given: Vec<GivenFile>,
    /// Which variable names which.
    pub(crate) variables: Vec<(&'static str, String)>,
}

impl HostCertificates {
    /// Of the variables that are set and name a file with certificates, but for those that `rules`
    /// withhold or set.
    pub(crate) fn of(rules: &Environment, variable: Variable<'_>) -> Self {
        let is_kept = |name: &str| {
            let withheld = rules.withheld.iter().any(|own| own.value == name);
            !withheld && !rules.set.contains_key(name)
        };
        let mut all = Self::default();
        let mut known: Vec<(OsString, String)> = Vec::new();
        for (name, _) in certificate_variables().filter(|(name, _)| is_kept(name)) {
            let Some(value) = variable(name) else {
                continue;
            };
            let seen = known.iter().find(|(own, _)| *own == value);
            let inside = match seen {
                Some((_, inside)) => Some(inside.clone()),
                None => all.give(&PathBuf::from(&value)),
            };
            if let Some(inside) = inside {
                known.push((value, inside.clone()));
                all.variables.push((name, inside));
            }
        }
        all
    }

    /// Copies a file; where the copy is inside.
    fn give(&mut self, path: &Path) -> Option<String> {
        let text = certificates_of(path)?;
        let below = Path::new(FOLDER).join(format!("{}.pem", self.given.len() + 1));
        let inside = format!("{OWN_FOLDER}/{}", below.display());
        self.given.push(GivenFile {
            path: below,
            bytes: text.into_bytes(),
            mode: READABLE,
        });
        Some(inside)
    }
}

/// The certificates of every file that such variables name, each file once.
pub(super) fn all(variable: Variable<'_>, kind: Certificates) -> String {
    let names = certificate_variables().filter(|(_, own)| *own == kind);
    let files: BTreeSet<PathBuf> = names
        .filter_map(|(name, _)| variable(name).map(PathBuf::from))
        .collect();
    let texts = files.iter().filter_map(|path| certificates_of(path));
    texts.collect()
}

/// What there is of certificates in a file, as text; `None` without any.
fn certificates_of(path: &Path) -> Option<String> {
    let bytes = super::read(path).filter(|bytes| bytes.len() <= LARGEST)?;
    let text = blocks(&String::from_utf8_lossy(&bytes));
    (!text.is_empty()).then_some(text)
}

/// The lines of whole certificates, and no others.
fn blocks(text: &str) -> String {
    let mut found = String::with_capacity(text.len());
    // Where the block that is not whole yet begins.
    let mut open: Option<usize> = None;
    for line in text.lines().map(str::trim_end) {
        if line.starts_with(BEGIN) {
            found.truncate(open.take().unwrap_or(found.len()));
            open = is_mark(line, BEGIN).then_some(found.len());
        }
        if open.is_some() {
            found.push_str(line);
            found.push('\n');
        }
        if line.starts_with(END)
            && let Some(begin) = open.take()
            && !is_mark(line, END)
        {
            found.truncate(begin);
        }
    }
    found.truncate(open.unwrap_or(found.len()));
    found
}

fn is_mark(line: &str, mark: &str) -> bool {
    let name = line
        .strip_prefix(mark)
        .and_then(|rest| rest.strip_suffix("-----"));
    name.is_some_and(|name| KINDS.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEM: &str = include_str!("nobody.pem");

    #[test]
    fn g5_a_key_beside_a_certificate_is_not_copied() {
        let key = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n";
        let torn = "-----BEGIN CERTIFICATE-----\nAAAA\n-----BEGIN PRIVATE KEY-----\nBBBB\n";
        let text = format!("password=x\n{key}{PEM}{key}{torn}");
        assert_eq!(blocks(&text), PEM);
        assert_eq!(blocks(key), "");
    }

    #[test]
    fn each_file_is_copied_once_and_every_variable_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("corp.pem");
        std::fs::write(&file, PEM).unwrap();
        let other = folder.path().join("none.pem");
        std::fs::write(&other, "nothing").unwrap();
        let variable = |name: &str| match name {
            "SSL_CERT_FILE" | "NODE_EXTRA_CA_CERTS" | "PIP_CERT" => Some(file.clone().into()),
            "CURL_CA_BUNDLE" => Some(other.clone().into()),
            "REQUESTS_CA_BUNDLE" => Some(folder.path().into()),
            _ => None,
        };
        let given = HostCertificates::of(&Environment::default(), &variable);
        let inside = "/run/ringfence/certificates/1.pem".to_owned();
        let names = ["SSL_CERT_FILE", "PIP_CERT", "NODE_EXTRA_CA_CERTS"];
        assert_eq!(given.variables, names.map(|name| (name, inside.clone())));
        assert_eq!(given.given.len(), 1);
        assert_eq!(given.given[0].bytes, PEM.as_bytes());
        assert_eq!(all(&variable, Certificates::AsWell), PEM);
    }
}
