//! What programs in a sandbox trust: the host's certificates and those of the
//! authority that stands for intercepted hosts, in the forms they read.
//!
//! Only certificates come by here, which everybody may know; never a key.

mod named;

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use ringfence_sandbox::{Certificates, JAVA_PASSWORD, Trust};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use sha1::{Digest, Sha1};

/// Where the certificates that the host trusts are, in one file; the variable
/// `SSL_CERT_FILE` comes first.
const BUNDLES: [&str; 8] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/ssl/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
    "/usr/local/share/certs/ca-root-nss.crt",
];
/// The most that is read of it; the usual ones have a quarter of a megabyte.
const LARGEST_BUNDLE: u64 = 16 * 1024 * 1024;

pub(crate) use self::named::HostCertificates;
use crate::host_env::HostEnv;

/// The host's trust with this authority added, whose certificate is given in
/// both forms.
pub(crate) fn with_authority(pem: &str, der: &[u8], env: &HostEnv) -> Trust {
    let variable = |name: &str| env.variable(name);
    let mut host = host_bundle(variable("SSL_CERT_FILE").map(PathBuf::from));
    let (more, as_well) = (
        named::all(&variable, Certificates::Instead),
        named::all(&variable, Certificates::AsWell),
    );
    for text in [&more, &as_well] {
        host.push(b'\n');
        host.extend_from_slice(text.as_bytes());
    }
    let mut certificates = vec![der.to_vec()];
    certificates.extend(certificates_in(&host));
    Trust {
        authority_pem: format!("{}\n{as_well}", pem.trim_end()),
        bundle_pem: bundle(&host, pem),
        java: java_store(&certificates),
    }
}

/// The host's trusted certificates, from the first file that there is. Nothing
/// on a host that trusts nobody.
fn host_bundle(named: Option<PathBuf>) -> Vec<u8> {
    let usual = BUNDLES.iter().map(PathBuf::from);
    let mut found = named
        .into_iter()
        .chain(usual)
        .filter_map(|path| read(&path));
    found.next().unwrap_or_default()
}

fn read(path: &Path) -> Option<Vec<u8>> {
    // What is no file may let whoever opens it wait.
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .custom_flags(nonblocking)
        .open(path)
        .ok()?;
    let about = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let size = about.len().min(LARGEST_BUNDLE);
    let mut bytes = Vec::with_capacity(usize::try_from(size).ok()? + 1);
    file.take(LARGEST_BUNDLE).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// What is not a certificate is left out, as other programs do.
fn certificates_in(bundle: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let found = CertificateDer::pem_slice_iter(bundle).filter_map(Result::ok);
    found.map(|certificate| certificate.to_vec())
}

/// All certificates in one file. Ours comes first: a broken one of the host's,
/// at which some programs stop, is then no loss.
fn bundle(host: &[u8], ours: &str) -> Vec<u8> {
    let mut all = ours.trim_end().as_bytes().to_vec();
    all.push(b'\n');
    all.extend_from_slice(host);
    all
}

/// A key store of Java with these certificates, all trusted, in its older
/// format, which every version reads and which needs no cipher.
fn java_store(certificates: &[Vec<u8>]) -> Vec<u8> {
    const MAGIC: u32 = 0xfeed_feed;
    const VERSION: u32 = 2;
    let mut store = Vec::new();
    store.extend(MAGIC.to_be_bytes());
    store.extend(VERSION.to_be_bytes());
    store.extend(length(certificates.len()));
    for (number, certificate) in certificates.iter().enumerate() {
        add_trusted(&mut store, &format!("{number:04}"), certificate);
    }
    let sum = java_sum(&store);
    store.extend(sum);
    store
}

fn add_trusted(store: &mut Vec<u8>, alias: &str, certificate: &[u8]) {
    const TRUSTED: u32 = 2;
    // When it was added, which nobody asks for.
    const TIME: u64 = 0;
    store.extend(TRUSTED.to_be_bytes());
    add_text(store, alias);
    store.extend(TIME.to_be_bytes());
    add_text(store, "X.509");
    store.extend(length(certificate.len()));
    store.extend(certificate);
}

/// As `DataOutput.writeUTF` has it, for short ASCII texts.
fn add_text(store: &mut Vec<u8>, text: &str) {
    store.extend(u16::try_from(text.len()).unwrap_or(u16::MAX).to_be_bytes());
    store.extend(text.as_bytes());
}

fn length(count: usize) -> [u8; 4] {
    u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes()
}

/// The sum that shows Java that nothing was changed by somebody who does not
/// know the password, which everybody does.
fn java_sum(store: &[u8]) -> [u8; 20] {
    let mut sum = Sha1::new();
    for unit in JAVA_PASSWORD.encode_utf16() {
        sum.update(unit.to_be_bytes());
    }
    sum.update(b"Mighty Aphrodite");
    sum.update(store);
    sum.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate of nobody, and the same again in a file.
    const PEM: &str = include_str!("trust/nobody.pem");

    fn der() -> Vec<u8> {
        certificates_in(PEM.as_bytes()).next().unwrap()
    }

    #[test]
    fn the_bundle_has_ours_and_all_of_the_host() {
        let host = format!("# a remark\n{PEM}not a certificate\n{PEM}");
        let all = bundle(host.as_bytes(), PEM.trim_end());
        assert_eq!(certificates_in(&all).count(), 3);
        assert!(all.starts_with(b"-----BEGIN CERTIFICATE-----\n"));
        assert_eq!(certificates_in(&bundle(b"", PEM)).count(), 1);
    }

    #[test]
    fn a_named_file_comes_before_the_usual_ones() {
        let folder = tempfile::tempdir().unwrap();
        let named = folder.path().join("roots.pem");
        std::fs::write(&named, "named").unwrap();
        assert_eq!(host_bundle(Some(named)), b"named");
        // A folder is no file, and what is missing is passed over.
        let usual = host_bundle(None);
        assert_eq!(host_bundle(Some(folder.path().into())), usual);
        assert_eq!(host_bundle(Some(folder.path().join("none"))), usual);
    }

    #[test]
    fn java_lists_every_certificate() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.jks");
        std::fs::write(&path, java_store(&[der(), der()])).unwrap();
        let list = |password: &str| {
            let mut keytool = std::process::Command::new("keytool");
            keytool.args(["-list", "-storepass", password, "-keystore"]);
            keytool.arg(&path).output()
        };
        let listed = list(JAVA_PASSWORD).expect("keytool, which is part of Java");
        let text = String::from_utf8_lossy(&listed.stdout);
        assert!(listed.status.success(), "{text}");
        assert!(text.contains("contains 2 entries"), "{text}");
        assert_eq!(text.matches("trustedCertEntry").count(), 2, "{text}");
        assert!(!list("another").unwrap().status.success());
    }
}
