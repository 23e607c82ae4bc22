//! A certificate authority for tests, and TLS servers for any name.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
};
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, crypto};

use crate::{Folder, Program};

/// The subject of the authority; [`HASH`] is made from it.
const SUBJECT: &str = "ringfence test authority";

/// `openssl x509 -subject_hash` of the authority's certificate: the name by
/// which OpenSSL looks for it in a folder of certificates.
const HASH: &str = "54a10125.0";

/// The authority. There is one for each process that runs tests.
pub(super) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    /// The key of every server.
    key: KeyPair,
    servers: Mutex<HashMap<String, Arc<ServerConfig>>>,
    /// Its certificate in a file of Java's format.
    java: OnceLock<Vec<u8>>,
}

impl Authority {
    pub(super) fn shared() -> &'static Self {
        static SHARED: OnceLock<Authority> = OnceLock::new();
        SHARED.get_or_init(Self::new)
    }

    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, SUBJECT);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("a key");
        Self {
            issuer: CertifiedIssuer::self_signed(params, key).expect("a certificate"),
            key: KeyPair::generate().expect("a key"),
            servers: Mutex::default(),
            java: OnceLock::new(),
        }
    }

    /// Its certificate.
    pub(super) fn pem(&self) -> String {
        self.issuer.pem()
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

    fn issue(&self, name: &str) -> ServerConfig {
        let params = CertificateParams::new([name.to_owned()]).expect("a name for a certificate");
        let certificate = params
            .signed_by(&self.key, &self.issuer)
            .expect("a certificate");
        let chain = vec![certificate.der().clone(), self.issuer.der().clone()];
        let key = PrivateKeyDer::try_from(self.key.serialize_der()).expect("a private key");
        let provider = Arc::new(crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("protocol versions")
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .expect("a certificate that fits its key");
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config
    }
}
