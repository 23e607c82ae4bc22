//! The cryptography of connections that are looked into, both sides.

use std::sync::{Arc, LazyLock};

use tokio_rustls::rustls::CipherSuite;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};

static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| {
    let mut provider = ring::default_provider();
    // Everything passes through it twice, and the shorter key is the faster.
    provider.cipher_suites.sort_by_key(|suite| {
        !matches!(
            suite.suite(),
            CipherSuite::TLS13_AES_128_GCM_SHA256
                | CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
                | CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
        )
    });
    Arc::new(provider)
});

/// The same for everything, so that it is made once.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::clone(&PROVIDER)
}
