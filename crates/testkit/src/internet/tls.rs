//! A certificate authority for tests, and TLS servers for any name.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{ServerConfig, crypto};

use crate::{Folder, Program};

/// The subject of the authority; [`HASH`] is made from it.
const SUBJECT: &str = "ringfence test authority";

/// `openssl x509 -subject_hash` of the authority's certificate: the name by
/// which OpenSSL looks for it in a folder of certificates.
const HASH: &str = "54a10125.0";

/// What a server shows for its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Certificate {
    /// One that is valid.
    Good,
    /// One that was valid until last century.
    Expired,
    /// One that will be valid in a far year.
    NotYetValid,
    /// A valid one for another name.
    For(String),
    /// One that nobody but itself vouches for.
    SelfSigned,
    /// One of an authority that nobody knows.
    OfStranger,
    /// Bytes that are no certificate.
    Malformed,
}

/// The authority. There is one for each process that runs tests.
pub(super) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    /// The key of every server.
    key: KeyPair,
    servers: Mutex<HashMap<String, Arc<ServerConfig>>>,
    /// Another authority, which no program knows.
    stranger: OnceLock<CertifiedIssuer<'static, KeyPair>>,
    /// Its certificate in a file of Java's format.
    java: OnceLock<Vec<u8>>,
}

impl Authority {
    pub(super) fn shared() -> &'static Self {
        static SHARED: OnceLock<Authority> = OnceLock::new();
        SHARED.get_or_init(Self::new)
    }

    fn new() -> Self {
        Self {
            issuer: issuer(SUBJECT),
            key: KeyPair::generate().expect("a key"),
            servers: Mutex::default(),
            stranger: OnceLock::new(),
            java: OnceLock::new(),
        }
    }

    /// Its certificate.
    pub(super) fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// The authority of [`Certificate::OfStranger`].
    pub(super) fn stranger(&self) -> &CertifiedIssuer<'static, KeyPair> {
        self.stranger.get_or_init(|| issuer("a stranger"))
    }

    /// Fills a folder like `/etc/ssl/certs` with this authority alone.
    pub(super) fn write(&self, folder: &Path) {
        std::fs::create_dir_all(folder.join("java")).expect("a folder");
        for name in ["ca-certificates.crt", HASH] {
            std::fs::write(folder.join(name), self.pem()).expect("a written file");
        }
    }

    /// The content of a file of trusted certificates in Java's format.
    pub(super) fn java_store(&self) -> &[u8] {
        self.java.get_or_init(|| {
            let folder = Folder::new();
            folder.write("authority.pem", &self.pem());
            Program::new("keytool")
                .args(["-importcert", "-noprompt", "-alias", "test"])
                .args(["-file", "authority.pem", "-keystore", "cacerts"])
                // The newer type could not be read without its password.
                .args(["-storetype", "JKS", "-storepass", "changeit"])
                .folder(&folder)
                .run()
                .expect_code(0);
            std::fs::read(folder.join("cacerts")).expect("the file it made")
        })
    }

    /// What a server called `name`, which can be an address, needs.
    pub(super) fn server(&self, name: &str) -> Arc<ServerConfig> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let server = servers.entry(name.to_owned());
        Arc::clone(server.or_insert_with(|| Arc::new(self.issue(name))))
    }

    /// What a server needs that shows this certificate and speaks these
    /// protocols.
    pub(super) fn dressed(
        &self,
        name: &str,
        certificate: &Certificate,
        protocols: &[&str],
    ) -> Arc<ServerConfig> {
        let key = format!("{name} {certificate:?} {protocols:?}");
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let server = servers.entry(key);
        let make = || self.config(self.chain(name, certificate), protocols);
        Arc::clone(server.or_insert_with(|| Arc::new(make())))
    }

    /// A certificate with its authority's, and the key to it, for a server
    /// that is a program of its own.
    pub(super) fn files_for(&self, name: &str) -> (String, String) {
        let certificate = self.sign(&named(name), &self.issuer);
        (certificate.pem() + &self.pem(), self.key.serialize_pem())
    }

    fn issue(&self, name: &str) -> ServerConfig {
        self.config(self.chain(name, &Certificate::Good), &["http/1.1"])
    }

    fn chain(&self, name: &str, certificate: &Certificate) -> Vec<CertificateDer<'static>> {
        let mut params = named(name);
        let own = &self.issuer;
        let (signed, issuer) = match certificate {
            Certificate::Good => (self.sign(&params, own), own),
            Certificate::For(other) => (self.sign(&named(other), own), own),
            Certificate::Expired => {
                params.not_before = date_time_ymd(1990, 1, 1);
                params.not_after = date_time_ymd(1999, 12, 31);
                (self.sign(&params, own), own)
            }
            Certificate::NotYetValid => {
                params.not_before = date_time_ymd(2999, 1, 1);
                (self.sign(&params, own), own)
            }
            Certificate::OfStranger => (self.sign(&params, self.stranger()), self.stranger()),
            Certificate::SelfSigned => {
                let signed = params.self_signed(&self.key).expect("a certificate");
                return vec![signed.der().clone()];
            }
            Certificate::Malformed => return vec![b"no certificate".to_vec().into()],
        };
        vec![signed.der().clone(), issuer.der().clone()]
    }

    fn sign(
        &self,
        params: &CertificateParams,
        issuer: &CertifiedIssuer<'static, KeyPair>,
    ) -> rcgen::Certificate {
        let signed = params.signed_by(&self.key, issuer);
        signed.expect("a certificate")
    }

    fn config(&self, chain: Vec<CertificateDer<'static>>, protocols: &[&str]) -> ServerConfig {
        let key = PrivateKeyDer::try_from(self.key.serialize_der()).expect("a private key");
        let key = crypto::ring::sign::any_supported_type(&key).expect("a key to sign with");
        let shown = Shown(Arc::new(CertifiedKey::new(chain, key)));
        let provider = Arc::new(crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("protocol versions")
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(shown));
        let protocols = protocols.iter().map(|name| name.as_bytes().to_vec());
        config.alpn_protocols = protocols.collect();
        config
    }
}

/// The certificate to show, whatever it is: nothing is checked.
#[derive(Debug)]
struct Shown(Arc<CertifiedKey>);

impl ResolvesServerCert for Shown {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

fn issuer(subject: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, subject);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate().expect("a key");
    CertifiedIssuer::self_signed(params, key).expect("a certificate")
}

fn named(name: &str) -> CertificateParams {
    CertificateParams::new([name.to_owned()]).expect("a name for a certificate")
}
