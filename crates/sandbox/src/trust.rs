//! Which certificates programs inside trust: the host's, and the one of the
//! authority that stands for intercepted hosts.
//!
//! The authority is made after the sandbox's first process, which must have
//! no copy of its key. So a plan only says where the files go; what is in them
//! comes later, from the [`Attendant`](crate::Attendant).

use std::path::Path;

/// Asks for a sandbox in which an authority of its own is trusted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TrustPlan;

/// The certificates, in the forms that programs read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trust {
    /// The authority's certificate alone.
    pub authority_pem: String,
    /// The host's trusted certificates and the authority's.
    pub bundle_pem: Vec<u8>,
    /// The same as a key store of Java, with [`JAVA_PASSWORD`].
    pub java: Vec<u8>,
}

/// The password of a key store that is no secret, as Java's own has it.
pub const JAVA_PASSWORD: &str = "changeit";

/// One of the files of a [`Trust`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrustFile {
    Authority,
    Bundle,
    Java,
}

impl TrustFile {
    pub(crate) const ALL: [Self; 3] = [Self::Authority, Self::Bundle, Self::Java];

    /// Its name in the sandbox's own folder.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Authority => "authority.pem",
            Self::Bundle => "bundle.pem",
            Self::Java => "java.jks",
        }
    }

    pub(crate) fn bytes(self, trust: &Trust) -> &[u8] {
        match self {
            Self::Authority => trust.authority_pem.as_bytes(),
            Self::Bundle => &trust.bundle_pem,
            Self::Java => &trust.java,
        }
    }

    fn path(self) -> String {
        format!("{OWN_FOLDER}/{}", self.name())
    }
}

/// The sandbox's own folder of files that are made for it.
pub const OWN_FOLDER: &str = "/run/ringfence";

/// Where programs look for trusted certificates without being told. A name can
/// be laid over but not added, so OpenSSL's folder of files named by a hash has
/// none for ours; OpenSSL reads its file as well, which newer distributions
/// have, and the variable tells it of ours in any case.
const BUNDLES: [&str; 10] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/ssl/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/usr/lib/ssl/cert.pem",
    "/usr/local/share/certs/ca-root-nss.crt",
];

/// The same for Java.
const JAVA_STORES: [&str; 3] = [
    "/etc/ssl/certs/java/cacerts",
    "/etc/pki/java/cacerts",
    "/etc/pki/ca-trust/extracted/java/cacerts",
];

/// Files of the host that are replaced inside, where they are there.
pub(crate) fn replaced() -> impl Iterator<Item = (&'static Path, TrustFile)> {
    let bundles = BUNDLES.iter().map(Path::new);
    let stores = JAVA_STORES.iter().map(Path::new);
    bundles
        .map(|path| (path, TrustFile::Bundle))
        .chain(stores.map(|path| (path, TrustFile::Java)))
}

/// Variables whose file is read instead of the usual one.
const INSTEAD: [&str; 14] = [
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
    "PIP_CERT",
    "BUNDLE_SSL_CA_CERT",
    "NPM_CONFIG_CAFILE",
    "npm_config_cafile",
    "AWS_CA_BUNDLE",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "NIX_SSL_CERT_FILE",
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
    "HTTPLIB2_CA_CERTS",
];
/// The folder that is read instead of the usual one. OpenSSL finds nothing in
/// ours, where no name is a hash, and reads its file.
const FOLDER_INSTEAD: &str = "SSL_CERT_DIR";
/// Variables whose file is read as well.
const AS_WELL: [&str; 2] = ["NODE_EXTRA_CA_CERTS", "DENO_CERT"];
pub(crate) const JAVA_OPTIONS: &str = "JAVA_TOOL_OPTIONS";

/// The variables that name a file of certificates, and whether it is read beside the usual one.
pub fn certificate_variables() -> impl Iterator<Item = (&'static str, Certificates)> {
    let instead = INSTEAD.iter().map(|name| (*name, Certificates::Instead));
    instead.chain(AS_WELL.iter().map(|name| (*name, Certificates::AsWell)))
}

/// How a file of certificates is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certificates {
    /// In the place of the usual one.
    Instead,
    /// Beside it.
    AsWell,
}

/// Tells programs of the certificates, beside what `variables` say already.
pub(crate) fn tell(variables: &mut Vec<(&'static str, String)>) {
    variables.extend(INSTEAD.map(|name| (name, TrustFile::Bundle.path())));
    variables.push((FOLDER_INSTEAD, OWN_FOLDER.to_owned()));
    variables.extend(AS_WELL.map(|name| (name, TrustFile::Authority.path())));
    let options = java_options();
    match variables.iter_mut().find(|(name, _)| *name == JAVA_OPTIONS) {
        Some((_, told)) => *told = format!("{told} {options}"),
        None => variables.push((JAVA_OPTIONS, options)),
    }
}

fn java_options() -> String {
    format!(
        "-Djavax.net.ssl.trustStore={} -Djavax.net.ssl.trustStorePassword={JAVA_PASSWORD}",
        TrustFile::Java.path()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::{self, ProxyUser};

    fn told(mut variables: Vec<(&'static str, String)>, name: &str) -> Vec<String> {
        tell(&mut variables);
        let found = variables.into_iter().filter(|(own, _)| *own == name);
        found.map(|(_, value)| value).collect()
    }

    #[test]
    fn what_replaces_has_all_certificates_and_what_adds_only_ours() {
        assert_eq!(
            told(Vec::new(), "SSL_CERT_FILE"),
            ["/run/ringfence/bundle.pem"]
        );
        assert_eq!(
            told(Vec::new(), "NODE_EXTRA_CA_CERTS"),
            ["/run/ringfence/authority.pem"]
        );
    }

    #[test]
    fn java_hears_of_the_proxies_and_of_the_certificates() {
        let options = told(proxy::variables(ProxyUser::None), JAVA_OPTIONS);
        let [options] = options.as_slice() else {
            panic!("{options:?}");
        };
        assert!(options.contains("-Dhttps.proxyHost=localhost "));
        assert!(options.ends_with(
            "-Djavax.net.ssl.trustStore=/run/ringfence/java.jks \
             -Djavax.net.ssl.trustStorePassword=changeit"
        ));
        assert_eq!(told(Vec::new(), JAVA_OPTIONS), [java_options()]);
    }
}
