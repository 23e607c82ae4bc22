//! Variables that tell programs of the proxies on the sandbox's loopback.
//!
//! Nothing depends on them: what does not know them is intercepted. Programs
//! that do give better error messages and say more about what they want.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::network::{HTTP_PROXY_PORT, SOCKS_PROXY_PORT};
use crate::trust::JAVA_OPTIONS;

/// What clients of the proxies show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ProxyUser {
    /// Nothing.
    #[default]
    None,
    /// A name and a password.
    Named {
        /// The name.
        name: String,
        /// The password.
        password: String,
    },
}

/// Reached without a proxy: the sandbox's own loopback.
const OWN: &str = "localhost,127.0.0.1,::1,[::1]";
/// The same as srt, whose form of the variables has a name and a password,
/// lists it: with local and private networks, which are intercepted too.
const OWN_AND_PRIVATE: &str =
    "localhost,127.0.0.1,::1,169.254.0.0/16,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16";
/// What would mean something else in a name or password of a URL.
const MISREAD: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');
const HTTP_VARIABLES: [&str; 10] = [
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    "GRPC_PROXY",
    "grpc_proxy",
    "DOCKER_HTTP_PROXY",
    "DOCKER_HTTPS_PROXY",
];
/// Where nothing will ever be allowed: pip takes a proxy's refusal for a
/// mishap, and asks five more times over eight seconds.
const NO_SECOND_TRY: [(&str, &str); 1] = [("PIP_RETRIES", "0")];
const SOCKS_VARIABLES: [&str; 2] = ["FTP_PROXY", "ftp_proxy"];

/// The variables and their values.
pub(crate) fn variables(user: ProxyUser) -> Vec<(&'static str, String)> {
    let (prefix, direct) = match &user {
        ProxyUser::None => (String::new(), OWN),
        ProxyUser::Named { name, password } => {
            let encode = |text| utf8_percent_encode(text, &MISREAD);
            let prefix = format!("{}:{}@", encode(name), encode(password));
            (prefix, OWN_AND_PRIVATE)
        }
    };
    let http = format!("http://{prefix}localhost:{HTTP_PROXY_PORT}");
    let socks = format!("socks5h://{prefix}localhost:{SOCKS_PROXY_PORT}");
    let mut variables: Vec<(&'static str, String)> = Vec::new();
    variables.extend(HTTP_VARIABLES.map(|name| (name, http.clone())));
    variables.extend(SOCKS_VARIABLES.map(|name| (name, socks.clone())));
    variables.extend([
        ("NO_PROXY", direct.to_owned()),
        ("no_proxy", direct.to_owned()),
        ("RSYNC_PROXY", format!("localhost:{SOCKS_PROXY_PORT}")),
        ("CLOUDSDK_PROXY_TYPE", "http".to_owned()),
        ("CLOUDSDK_PROXY_ADDRESS", "localhost".to_owned()),
        ("CLOUDSDK_PROXY_PORT", HTTP_PROXY_PORT.to_string()),
        ("NODE_USE_ENV_PROXY", "1".to_owned()),
    ]);
    match user {
        // A Java virtual machine shows no password to a proxy for TLS unless
        // it is told to in its own settings; without the properties it is
        // intercepted like any other program.
        ProxyUser::Named { name, password } => variables.extend([
            (
                "GIT_CONFIG_PARAMETERS",
                "'http.proxyAuthMethod=basic'".to_owned(),
            ),
            ("CLOUDSDK_PROXY_USERNAME", name),
            ("CLOUDSDK_PROXY_PASSWORD", password),
        ]),
        ProxyUser::None => variables.push((JAVA_OPTIONS, java_options())),
    }
    variables
}

/// Where nothing can ever be allowed: for clients that ask again whatever the
/// answer was. A Java virtual machine prints its options each time it starts,
/// and is refused without them just as well.
pub(crate) fn tell_hopeless(variables: &mut Vec<(&'static str, String)>) {
    variables.retain(|(name, _)| *name != JAVA_OPTIONS);
    let more = NO_SECOND_TRY.map(|(name, value)| (name, value.to_owned()));
    variables.extend(more);
}

fn java_options() -> String {
    format!(
        "-Dhttp.proxyHost=localhost -Dhttp.proxyPort={HTTP_PROXY_PORT} \
         -Dhttps.proxyHost=localhost -Dhttps.proxyPort={HTTP_PROXY_PORT} \
         -Dhttp.nonProxyHosts=localhost|127.*|[::1]"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(user: ProxyUser, name: &str) -> Option<String> {
        let found = variables(user).into_iter().find(|(own, _)| *own == name);
        found.map(|(_, value)| value)
    }

    #[test]
    fn java_is_told_nothing_where_there_is_no_hope() {
        let mut told = variables(ProxyUser::None);
        let has = |told: &[(&str, String)], name| told.iter().any(|(own, _)| *own == name);
        assert!(has(&told, JAVA_OPTIONS) && !has(&told, "PIP_RETRIES"));
        tell_hopeless(&mut told);
        assert!(!has(&told, JAVA_OPTIONS) && has(&told, "PIP_RETRIES"));
        assert!(has(&told, "HTTPS_PROXY"));
    }

    #[test]
    fn a_user_stands_in_the_address_of_the_proxy() {
        let named = ProxyUser::Named {
            name: "me.a+/=".to_owned(),
            password: "word".to_owned(),
        };
        assert_eq!(
            value(named.clone(), "https_proxy").as_deref(),
            Some("http://me.a%2B%2F%3D:word@localhost:3128")
        );
        assert_eq!(
            value(named.clone(), "CLOUDSDK_PROXY_USERNAME").as_deref(),
            Some("me.a+/=")
        );
        assert_eq!(value(named, "JAVA_TOOL_OPTIONS"), None);
        assert_eq!(
            value(ProxyUser::None, "FTP_PROXY").as_deref(),
            Some("socks5h://localhost:1080")
        );
    }
}
