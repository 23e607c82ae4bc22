//! Which proxies of the host stand between it and the world.

use std::fmt;

use ringfence_egress::{ParentError, ParentProxies};
use ringfence_policy::srt_settings::SrtParentProxy;
use ringfence_sys::{Errno, WipedOnFork};
use zeroize::Zeroizing;

/// The host's proxies as settings name them. Their addresses may hold
/// passwords, so the first process of a sandbox, which begins as a copy of
/// this one, has zeros for them.
pub struct NamedProxies(WipedOnFork);

impl NamedProxies {
    /// Keeps what settings say, which is wiped with them.
    pub(crate) fn keep(settings: &SrtParentProxy) -> Result<Self, Errno> {
        let text = Zeroizing::new(serde_json::to_vec(settings).unwrap_or_default());
        WipedOnFork::new(&text).map(Self)
    }

    /// Those of settings that name none.
    pub(crate) fn none() -> Result<Self, Errno> {
        Self::keep(&SrtParentProxy::default())
    }

    fn settings(&self) -> SrtParentProxy {
        serde_json::from_slice(self.0.expose()).unwrap_or_default()
    }
}

impl fmt::Debug for NamedProxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NamedProxies")
    }
}

/// Whether the address of one of them has a login in it.
pub(crate) fn has_login(settings: &SrtParentProxy) -> bool {
    let addresses = [&settings.http, &settings.https];
    addresses
        .into_iter()
        .flatten()
        .any(|address| address.contains('@'))
}

/// From the host's variables or, setting by setting, from what settings of
/// srt say. Those have srt's meaning: upper case is stronger, and the proxy
/// for plain HTTP serves for all where no other is named.
pub(crate) fn parent_proxies(
    named: Option<&NamedProxies>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<ParentProxies, ParentError> {
    let Some(settings) = named.map(NamedProxies::settings) else {
        return ParentProxies::from_variables(variable);
    };
    let find = |own: &Option<String>, key: &'static str, names: [&'static str; 2]| {
        let own = own.clone().map(|value| (key, value));
        let variable = |name| variable(name).map(|value| (name, value));
        own.or_else(|| names.into_iter().find_map(variable))
    };
    let http = find(
        &settings.http,
        "network.parentProxy.http",
        ["HTTP_PROXY", "http_proxy"],
    );
    let https = find(
        &settings.https,
        "network.parentProxy.https",
        ["HTTPS_PROXY", "https_proxy"],
    );
    let https = https.or_else(|| http.clone());
    let exempt = find(
        &settings.no_proxy,
        "network.parentProxy.noProxy",
        ["NO_PROXY", "no_proxy"],
    );
    ParentProxies::new(
        http.as_ref().map(|(name, value)| (*name, value.as_str())),
        https.as_ref().map(|(name, value)| (*name, value.as_str())),
        exempt.as_ref().map(|(_, value)| value.as_str()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(settings: Option<&SrtParentProxy>) -> Result<ParentProxies, ParentError> {
        let named = settings.map(|settings| NamedProxies::keep(settings).unwrap());
        parent_proxies(named.as_ref(), &|name| match name {
            "HTTP_PROXY" => Some("http://upper.test".to_owned()),
            "http_proxy" => Some("http://lower.test".to_owned()),
            "NO_PROXY" => Some("direct.test".to_owned()),
            _ => None,
        })
    }

    fn new(http: &str, https: Option<&str>, exempt: &str) -> ParentProxies {
        let https = https.map(|https| ("b", https));
        ParentProxies::new(Some(("a", http)), https, Some(exempt)).unwrap()
    }

    #[test]
    fn settings_are_stronger_than_variables_one_by_one() {
        let own = SrtParentProxy {
            https: Some("http://own.test:3128".to_owned()),
            ..SrtParentProxy::default()
        };
        assert_eq!(
            proxies(Some(&own)).unwrap(),
            new(
                "http://upper.test",
                Some("http://own.test:3128"),
                "direct.test"
            )
        );
        assert_eq!(
            proxies(Some(&SrtParentProxy::default())).unwrap(),
            new(
                "http://upper.test",
                Some("http://upper.test"),
                "direct.test"
            )
        );
        assert_eq!(
            proxies(None).unwrap(),
            new("http://lower.test", None, "direct.test")
        );
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_an_error_that_names_its_setting() {
        let own = SrtParentProxy {
            http: Some("socks5://own.test".to_owned()),
            ..SrtParentProxy::default()
        };
        let error = proxies(Some(&own)).unwrap_err().to_string();
        assert!(error.contains("network.parentProxy.http"), "{error}");
    }
}
