//! Whom we trust upstream: the authorities this host trusts, and those that
//! were configured.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustix::fs::{Mode, OFlags};
use thiserror::Error;
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};

/// A bundle of every authority in the world is about 250 KiB.
const LARGEST_FILE: u64 = 16 * 1024 * 1024;

/// Why configured authorities cannot be used.
#[derive(Debug, Error)]
pub enum RootsError {
    /// The file cannot be read.
    #[error("cannot read the certificates in {}: {source}", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is too large to be one.
    #[error("{} is no file of certificates: it is larger than 16 MiB", path.display())]
    TooLarge {
        /// Which one.
        path: PathBuf,
    },
    /// The file is not in PEM form.
    #[error("{} is no file of certificates in PEM form: {source}", path.display())]
    NotPem {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: pem::Error,
    },
    /// The file holds no certificate.
    #[error("{} holds no certificate in PEM form", path.display())]
    Empty {
        /// Which one.
        path: PathBuf,
    },
    /// A certificate in the file is none that could sign.
    #[error("{} holds a certificate that cannot be used: {source}", path.display())]
    Unusable {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: tokio_rustls::rustls::Error,
    },
}

/// Certificate authorities for connections to the world.
pub struct Roots {
    configured: RootCertStore,
    all: OnceLock<Arc<RootCertStore>>,
}

impl Roots {
    /// Reads the `extra` files, in PEM form. The host's own authorities are
    /// read when the first connection needs them.
    pub fn load(extra: &[PathBuf]) -> Result<Self, RootsError> {
        let mut configured = RootCertStore::empty();
        for path in extra {
            for certificate in certificates_in(path)? {
                let added = configured.add(certificate);
                added.map_err(|source| RootsError::Unusable {
                    path: path.clone(),
                    source,
                })?;
            }
        }
        Ok(Self {
            configured,
            all: OnceLock::new(),
        })
    }

    /// All of them.
    pub(crate) fn store(&self) -> Arc<RootCertStore> {
        let all = self.all.get_or_init(|| {
            let mut store = self.configured.clone();
            // What cannot be read is missing, and so trusted by nobody.
            let found = rustls_native_certs::load_native_certs();
            store.add_parsable_certificates(found.certs);
            Arc::new(store)
        });
        Arc::clone(all)
    }
}

impl fmt::Debug for Roots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Roots")
    }
}

fn certificates_in(path: &Path) -> Result<Vec<CertificateDer<'static>>, RootsError> {
    let owned = || path.to_owned();
    let unread = |source| RootsError::Read {
        path: owned(),
        source,
    };
    let bytes = read(path).map_err(unread)?;
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(RootsError::TooLarge { path: owned() });
    }
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match found {
        Err(source) => Err(RootsError::NotPem {
            path: owned(),
            source,
        }),
        Ok(none) if none.is_empty() => Err(RootsError::Empty { path: owned() }),
        Ok(found) => Ok(found),
    }
}

/// A file, and a little more than the largest one. A pipe would be waited for,
/// and a device has no end.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST_FILE + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::Authority;
    use super::*;

    #[test]
    fn files_that_hold_no_certificates_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            Roots::load(&[path])
        };
        let good = Authority::new().unwrap().certificate_pem();
        let twice = format!("# two of them\n{good}{good}");
        assert_eq!(file("good", &twice).unwrap().configured.len(), 2);
        let cut = &good[..good.len() / 2];
        assert!(matches!(file("cut", cut), Err(RootsError::NotPem { .. })));
        assert!(matches!(file("none", "x"), Err(RootsError::Empty { .. })));
        let hollow = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(matches!(
            file("hollow", hollow),
            Err(RootsError::Unusable { .. })
        ));
        let missing = Roots::load(&[folder.path().join("missing")]);
        let error = missing.unwrap_err();
        assert!(matches!(error, RootsError::Read { .. }), "{error}");
        assert!(error.to_string().contains("missing"), "{error}");
    }

    #[test]
    fn g9_what_has_no_end_is_not_read() {
        for endless in ["/dev/zero", "/"] {
            let refused = Roots::load(&[endless.into()]);
            assert!(matches!(refused, Err(RootsError::Read { .. })), "{endless}");
        }
        let folder = tempfile::tempdir().unwrap();
        let large = folder.path().join("large");
        let file = File::create(&large).unwrap();
        file.set_len(LARGEST_FILE + 1).unwrap();
        let refused = Roots::load(&[large]);
        assert!(matches!(refused, Err(RootsError::TooLarge { .. })));
    }
}
