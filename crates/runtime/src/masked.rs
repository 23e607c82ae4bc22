//! What a file with a secret in it shows inside: the same text with the
//! placeholder in the secret's place.
//!
//! Called when the sandbox's init is there already, which so has no copy of
//! what is read here; and again whenever the host has changed the file.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use ringfence_egress::Placeholder;
use ringfence_policy::{Credential, Sourced, Unmatched};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use zeroize::Zeroizing;

use crate::settings_files;

/// The largest file in which a secret is replaced.
const LARGEST: usize = 1024 * 1024;
/// More than reading looks for beyond the end.
const ROOM: usize = 64;

/// What stands for the secrets of a run.
#[derive(Clone, Copy)]
pub(crate) struct Masks<'a> {
    pub(crate) credentials: &'a [Sourced<Credential>],
    pub(crate) placeholders: &'a [Placeholder],
}

impl Masks<'_> {
    /// The file at `path`, which has no links in it, without the secrets of
    /// `services`. Nothing of a file that cannot be read, or in which a secret
    /// is missing that need not be there; `None` when it must be.
    pub(crate) fn shown(&self, path: &Path, services: &[String]) -> Option<Vec<u8>> {
        let Ok(mut text) = read(path) else {
            return Some(Vec::new());
        };
        // No secret of a credential is in it, but settings with others.
        if services.is_empty() {
            return Some(settings_files::shown(path, &text));
        }
        for service in services {
            let (credential, placeholder) = self.of(service)?;
            match replaced(&text, credential, placeholder) {
                Ok(masked) => text = masked,
                Err(Unmatched::Hide) => return Some(Vec::new()),
                Err(Unmatched::Refuse) => return None,
            }
        }
        Some(text.as_bytes().to_vec())
    }

    fn of(&self, service: &str) -> Option<(&Credential, &str)> {
        let mut credentials = self.credentials.iter();
        let credential = credentials.find(|own| own.service == service)?;
        let mut placeholders = self.placeholders.iter();
        let placeholder = placeholders.find(|own| own.service == service)?;
        Some((&credential.value, &placeholder.text))
    }
}

/// A text with the placeholder in the secret's place, or what becomes of one
/// that does not hold the secret. All of it is the secret where nothing says
/// which part is.
pub(crate) fn replaced(
    text: &str,
    credential: &Credential,
    placeholder: &str,
) -> Result<Zeroizing<String>, Unmatched> {
    let masked = match &credential.extract {
        None => placeholder.to_owned(),
        Some(extract) => extract
            .masked(text, placeholder)
            .map_err(|_| extract.unmatched())?,
    };
    Ok(Zeroizing::new(masked))
}

fn read(path: &Path) -> std::io::Result<Zeroizing<String>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let opened = rustix::fs::openat2(CWD, path, flags, Mode::empty(), links)?;
    let file = File::from(opened);
    let size = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    if size > LARGEST {
        return Err(std::io::ErrorKind::FileTooLarge.into());
    }
    // All at once, with room to spare: growing would leave parts of it behind.
    let mut text = Zeroizing::new(String::with_capacity(size + ROOM));
    let length = file.take(size as u64 + 1).read_to_string(&mut text)?;
    if length > size {
        // It was written meanwhile.
        return Err(std::io::ErrorKind::FileTooLarge.into());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringfence_policy::{Attach, Binding, Dialect, Extract, LayerKind, Origin, SecretSource};

    fn credential(service: &str, extract: Option<(&str, Unmatched)>) -> Sourced<Credential> {
        let host = Binding::parse_host("api.example.org", Dialect::Native).unwrap();
        let binding = Binding::new(host, Attach::bearer());
        let sources = vec![SecretSource::env("TOKEN").unwrap()];
        let mut made = Credential::new(service, sources, Vec::new(), vec![binding]).unwrap();
        made.extract = extract.map(|(text, unmatched)| Extract::parse(text, unmatched).unwrap());
        Sourced::new(made, Origin::new(LayerKind::Flag, "test"))
    }

    fn shown(text: &str, credentials: &[Sourced<Credential>]) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, text).unwrap();
        let placeholder = |own: &Sourced<Credential>| Placeholder {
            service: own.service.clone(),
            text: format!("[{}]", own.service),
        };
        let placeholders: Vec<_> = credentials.iter().map(placeholder).collect();
        let services: Vec<_> = credentials.iter().map(|own| own.service.clone()).collect();
        let masks = Masks {
            credentials,
            placeholders: &placeholders,
        };
        let shown = masks.shown(&path, &services)?;
        Some(String::from_utf8(shown).unwrap())
    }

    #[test]
    fn g5_every_secret_of_a_file_is_replaced() {
        let one = credential("one", Some(("a=([^ ]+)", Unmatched::Hide)));
        let two = credential("two", Some(("b=([^ ]+)", Unmatched::Hide)));
        let text = shown("a=x1y b=z2 c=3 again x1y", &[one, two]);
        assert_eq!(text.as_deref(), Some("a=[one] b=[two] c=3 again [one]"));
        assert_eq!(
            shown("all", &[credential("s", None)]).as_deref(),
            Some("[s]")
        );
    }

    #[test]
    fn g5_a_file_without_the_secret_shows_nothing_or_stops_the_run() {
        let hide = credential("s", Some(("a=(.+)", Unmatched::Hide)));
        assert_eq!(shown("other", &[hide]).as_deref(), Some(""));
        let refuse = credential("s", Some(("a=(.+)", Unmatched::Refuse)));
        assert_eq!(shown("other", &[refuse]), None);
    }

    #[test]
    fn what_is_no_file_of_text_shows_nothing() {
        let masks = Masks {
            credentials: &[],
            placeholders: &[],
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        std::os::unix::fs::symlink("file", folder.path().join("link")).unwrap();
        for path in [path, folder.path().join("link"), folder.path().into()] {
            assert_eq!(masks.shown(&path, &[]), Some(Vec::new()));
        }
        let large = folder.path().join("large");
        std::fs::write(&large, vec![b'a'; LARGEST + 1]).unwrap();
        assert_eq!(masks.shown(&large, &[]), Some(Vec::new()));
    }
}
