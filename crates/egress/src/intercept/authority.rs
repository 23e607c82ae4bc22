//! The certificate authority of one sandbox.
//!
//! Its key is made with it, is in this process's memory only, and is gone with
//! it. What it signs is trusted inside that one sandbox and nowhere else. One
//! key serves all names; certificates are made as names are asked for.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use data_encoding::HEXLOWER;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType,
    SerialNumber,
};
use ringfence_policy::Target;
use thiserror::Error;
use tokio_rustls::rustls;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::sign::any_ecdsa_type;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::server::ProducesTickets;
use tokio_rustls::rustls::sign::{CertifiedKey, SigningKey, SingleCertAndKey};

use super::alpn::Agreed;
use super::suites;

const DAY: Duration = Duration::from_hours(24);
/// Longer than any run; a sandbox that is kept gets another one at its start.
const AUTHORITY_DAYS: u32 = 90;
const LEAF_DAYS: u32 = 7;
/// A clock inside may be a little behind.
const LEEWAY: Duration = DAY;
/// A certificate is made again before its time is up.
const RENEWED_AFTER: Duration = DAY;
/// Names whose certificates are kept; the one not asked for longest goes.
const MOST_LEAVES: usize = 256;
/// A common name may not be longer (RFC 5280, upper bounds).
const LONGEST_COMMON_NAME: usize = 64;

/// Why there is no certificate.
#[derive(Debug, Error)]
pub enum AuthorityError {
    /// No key could be made.
    #[error("cannot make a key for the sandbox's certificate authority: {0}")]
    Key(#[source] rcgen::Error),
    /// The authority's own certificate could not be made.
    #[error("cannot make the certificate of the sandbox's authority: {0}")]
    Root(#[source] rcgen::Error),
    /// A name is none that a certificate can hold.
    #[error("cannot make a certificate for {name}: {source}")]
    Leaf {
        /// Whose it would be.
        name: String,
        /// What is wrong.
        source: rcgen::Error,
    },
    /// The TLS library does not take what was made.
    #[error("cannot serve TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// Signs for every name that is looked into, in one sandbox.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    leaf_pair: KeyPair,
    leaf_key: Arc<dyn SigningKey>,
    tickets: Arc<dyn ProducesTickets>,
    serial: AtomicU64,
    leaves: Mutex<Leaves>,
}

/// The certificates that were made, and when each was last asked for.
#[derive(Default)]
struct Leaves {
    by_target: HashMap<Target, Leaf>,
    clock: u64,
}

struct Leaf {
    http1: Arc<ServerConfig>,
    http2: Arc<ServerConfig>,
    made: SystemTime,
    used: u64,
}

impl Authority {
    /// Makes a new one, unlike any other.
    pub fn new() -> Result<Self, AuthorityError> {
        let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(AuthorityError::Key)?;
        let leaf_pair =
            KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(AuthorityError::Key)?;
        let der = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(leaf_pair.serialize_der()));
        let leaf_key = any_ecdsa_type(&der)?;
        let issuer =
            CertifiedIssuer::self_signed(root(&pair), pair).map_err(AuthorityError::Root)?;
        Ok(Self {
            issuer,
            leaf_pair,
            leaf_key,
            tickets: rustls::crypto::ring::Ticketer::new()?,
            serial: AtomicU64::new(2),
            leaves: Mutex::default(),
        })
    }

    /// Its certificate, which clients inside must trust.
    pub fn certificate_pem(&self) -> String {
        self.issuer.pem()
    }

    /// The same in binary form.
    pub fn certificate_der(&self) -> &[u8] {
        self.issuer.der()
    }

    /// How to be `target` towards a client with which `agreed` will be spoken.
    pub(crate) fn serve_as(
        &self,
        target: &Target,
        agreed: Agreed,
    ) -> Result<Arc<ServerConfig>, AuthorityError> {
        let mut leaves = self.leaves.lock().unwrap_or_else(PoisonError::into_inner);
        leaves.clock += 1;
        let now = leaves.clock;
        if let Some(leaf) = leaves.by_target.get_mut(target)
            && leaf.is_fresh()
        {
            leaf.used = now;
            return Ok(leaf.config(agreed));
        }
        let leaf = self.leaf(target, now)?;
        let config = leaf.config(agreed);
        leaves.keep(target, leaf);
        Ok(config)
    }

    fn leaf(&self, target: &Target, used: u64) -> Result<Leaf, AuthorityError> {
        let failed = |source| AuthorityError::Leaf {
            name: target.to_string(),
            source,
        };
        let params = leaf_of(target, self.serial.fetch_add(1, Ordering::Relaxed));
        let certificate = params.map_err(failed)?;
        let certificate = certificate
            .signed_by(&self.leaf_pair, &self.issuer)
            .map_err(failed)?;
        let chain = vec![certificate.der().clone()];
        let key = CertifiedKey::new(chain, Arc::clone(&self.leaf_key));
        let key = Arc::new(SingleCertAndKey::from(key));
        Ok(Leaf {
            http1: self.config(&key, Agreed::Http1)?,
            http2: self.config(&key, Agreed::Http2)?,
            made: SystemTime::now(),
            used,
        })
    }

    fn config(
        &self,
        key: &Arc<SingleCertAndKey>,
        agreed: Agreed,
    ) -> Result<Arc<ServerConfig>, AuthorityError> {
        let mut config = ServerConfig::builder_with_provider(suites::provider())
            .with_protocol_versions(rustls::ALL_VERSIONS)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(key) as _);
        config.alpn_protocols = vec![agreed.as_bytes().to_vec()];
        config.ticketer = Arc::clone(&self.tickets);
        config.ignore_client_order = true;
        config.send_tls13_tickets = 1;
        Ok(Arc::new(config))
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authority")
    }
}

impl Leaves {
    fn keep(&mut self, target: &Target, leaf: Leaf) {
        if self.by_target.len() >= MOST_LEAVES && !self.by_target.contains_key(target) {
            let oldest = self.by_target.iter().min_by_key(|(_, leaf)| leaf.used);
            if let Some(oldest) = oldest.map(|(target, _)| target.clone()) {
                self.by_target.remove(&oldest);
            }
        }
        self.by_target.insert(target.clone(), leaf);
    }
}

impl Leaf {
    fn is_fresh(&self) -> bool {
        // A clock that was set back says nothing about age.
        self.made.elapsed().is_ok_and(|age| age < RENEWED_AFTER)
    }

    fn config(&self, agreed: Agreed) -> Arc<ServerConfig> {
        Arc::clone(match agreed {
            Agreed::Http1 => &self.http1,
            Agreed::Http2 => &self.http2,
        })
    }
}

fn root(key: &KeyPair) -> CertificateParams {
    let mut params = valid_for(AUTHORITY_DAYS);
    let own = HEXLOWER.encode(&params.key_identifier(key));
    let mut name = DistinguishedName::new();
    name.push(DnType::OrganizationName, "ringfence");
    name.push(
        DnType::CommonName,
        format!("ringfence sandbox {}", &own[..16.min(own.len())]),
    );
    params.distinguished_name = name;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.serial_number = Some(SerialNumber::from(1));
    params
}

fn leaf_of(target: &Target, serial: u64) -> Result<CertificateParams, rcgen::Error> {
    let mut params = valid_for(LEAF_DAYS);
    let text = target.to_string();
    params.subject_alt_names = vec![match target {
        Target::Addr(address) => SanType::IpAddress(IpAddr::clone(address)),
        Target::Name(name) => SanType::DnsName(name.as_str().try_into()?),
    }];
    let mut name = DistinguishedName::new();
    let common = match text.len() {
        ..=LONGEST_COMMON_NAME => text,
        _ => "ringfence".to_owned(),
    };
    name.push(DnType::CommonName, common);
    params.distinguished_name = name;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    params.serial_number = Some(SerialNumber::from(serial));
    Ok(params)
}

fn valid_for(days: u32) -> CertificateParams {
    let now = SystemTime::now();
    let mut params = CertificateParams::default();
    params.not_before = (now - LEEWAY).into();
    params.not_after = (now + DAY * days).into();
    params
}

#[cfg(test)]
mod tests {
    use tokio_rustls::rustls::RootCertStore;
    use tokio_rustls::rustls::client::WebPkiServerVerifier;
    use tokio_rustls::rustls::client::danger::ServerCertVerifier;
    use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};

    use super::*;

    /// What a client that trusts `authority` makes of a certificate.
    fn verify(authority: &Authority, certificate: &CertificateDer<'_>, name: &str) -> bool {
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_slice(authority.certificate_der());
        roots.add(root.into_owned()).unwrap();
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), suites::provider());
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let checked = verifier.build().unwrap().verify_server_cert(
            certificate,
            &[],
            &name,
            &[],
            UnixTime::now(),
        );
        checked.is_ok()
    }

    fn certificate(authority: &Authority, target: &str) -> CertificateDer<'static> {
        let target = Target::parse(target).unwrap();
        let params = leaf_of(&target, 7).unwrap();
        let signed = params.signed_by(&authority.leaf_pair, &authority.issuer);
        signed.unwrap().der().clone()
    }

    #[test]
    fn certificates_are_for_one_name_and_of_one_sandbox() {
        let (own, other) = (Authority::new().unwrap(), Authority::new().unwrap());
        let long = format!("{}.example.org", ["abcdefghij"; 8].join("."));
        for name in [
            "a.example.org",
            "127.0.0.1",
            "::1",
            "a_b.example.org",
            &long,
        ] {
            let made = certificate(&own, name);
            assert!(verify(&own, &made, name), "{name}");
            assert!(!verify(&own, &made, "b.example.org"), "{name}");
            assert!(!verify(&other, &made, name), "{name}");
        }
        assert_ne!(own.certificate_pem(), other.certificate_pem());
        assert!(
            own.certificate_pem()
                .starts_with("-----BEGIN CERTIFICATE-----")
        );
    }

    #[test]
    fn certificates_are_kept_and_the_one_longest_unused_goes() {
        let authority = Authority::new().unwrap();
        let target = |number: usize| Target::parse(&format!("n{number}.example.org")).unwrap();
        let get = |number| authority.serve_as(&target(number), Agreed::Http1).unwrap();
        let (first, second) = (get(0), get(1));
        for number in 2..MOST_LEAVES {
            get(number);
        }
        assert!(Arc::ptr_eq(&first, &get(0)));
        get(MOST_LEAVES);
        assert!(Arc::ptr_eq(&first, &get(0)));
        assert!(!Arc::ptr_eq(&second, &get(1)));
        assert_eq!(
            authority.leaves.lock().unwrap().by_target.len(),
            MOST_LEAVES
        );
    }

    #[test]
    fn each_version_has_its_own_offer() {
        let authority = Authority::new().unwrap();
        let target = Target::parse("a.example.org").unwrap();
        for agreed in [Agreed::Http1, Agreed::Http2] {
            let config = authority.serve_as(&target, agreed).unwrap();
            assert_eq!(config.alpn_protocols, [agreed.as_bytes()]);
        }
    }
}
