//! Tests of the checks on credentials.

use super::*;
use crate::host::Dialect;

fn code<T: std::fmt::Debug>(result: Result<T, CredentialError>) -> &'static str {
    let error = result.unwrap_err();
    assert!(!error.hint().is_empty() && !error.to_string().is_empty());
    error.code()
}

fn to(host: &str) -> Binding {
    let host = Binding::parse_host(host, Dialect::Native).unwrap();
    Binding::new(host, Attach::bearer())
}

#[test]
fn g5_headers_are_checked() {
    let good = Attach::header("X-Api-Key", "key=%s;").unwrap();
    let Attach::Header { name, format } = good else {
        panic!("not a header");
    };
    assert_eq!(name, "x-api-key");
    assert_eq!(format.around(), ("key=", ";"));
    for name in ["", "Auth\r\nX: y", "Auth orization", ":authority", "Äuth"] {
        assert_eq!(code(Attach::header(name, "%s")), "credential-header");
    }
    for name in [
        "Host",
        "content-length",
        "Transfer-Encoding",
        "Connection",
        "TE",
        "Trailer",
        "Upgrade",
        "Proxy-Authorization",
        "Sec-WebSocket-Key",
        "Expect",
    ] {
        let refused = code(Attach::header(name, "%s"));
        assert_eq!(refused, "credential-framing-header", "{name}");
    }
    for format in ["Bearer", "%s %s", "%s\r\nX: y", "%d %s", "%%s", "", "ü%s"] {
        let refused = code(Attach::header("Authorization", format));
        assert_eq!(refused, "credential-format", "{format:?}");
    }
}

#[test]
fn other_kinds_are_checked() {
    assert_eq!(code(Attach::basic("a:b")), "credential-username");
    assert_eq!(code(Attach::basic("a\nb")), "credential-username");
    assert!(Attach::basic("").is_ok());
    for name in ["", "a=b", "a&b", "a b", "a%20"] {
        assert_eq!(code(Attach::query(name)), "credential-query", "{name}");
    }
    assert!(Attach::query("api_key").is_ok());
}

#[test]
fn sources_are_checked() {
    assert_eq!(code(SecretSource::env("A B")), "credential-env");
    for path in ["token", "~", "~/", "~u/x", "/a/../b", "", "/a\n"] {
        let refused = code(SecretSource::file(path, None));
        assert_eq!(refused, "credential-file", "{path:?}");
    }
    for key in ["", ".a", "a..b", "a."] {
        let refused = code(SecretSource::file("/t", Some(key)));
        assert_eq!(refused, "credential-key", "{key:?}");
    }
    for argv in [vec![], vec![""], vec!["./x"], vec!["a/b"], vec!["x", "\0"]] {
        let argv: Vec<String> = argv.into_iter().map(str::to_owned).collect();
        let refused = code(SecretSource::command(&argv, None));
        assert_eq!(refused, "credential-command", "{argv:?}");
    }
    for line in ["", "tool $X", "tool | head", "tool 'a b'", "tool\nrm"] {
        let refused = code(SecretSource::command_line(line, None));
        assert_eq!(refused, "credential-command", "{line:?}");
    }
    assert_eq!(
        SecretSource::command_line(" tool  print-token ", None).unwrap(),
        SecretSource::Command {
            argv: vec!["tool".into(), "print-token".into()],
            refresh: None
        }
    );
    for name in ["", "a/b", "a b", "ä"] {
        let refused = code(SecretSource::store(name));
        assert_eq!(refused, "credential-secret", "{name:?}");
    }
}

#[test]
fn g5_no_two_commands_look_alike() {
    let shown = |words: &[&str]| {
        let argv: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        SecretSource::command(&argv, None).unwrap().to_string()
    };
    assert_eq!(shown(&["tool", "--print=x"]), "command tool --print=x");
    assert_eq!(shown(&["tool", "a b", ""]), r#"command tool "a b" """#);
    assert_eq!(shown(&["tool", "a\u{1b}"]), r#"command tool "a\u{1b}""#);
    assert_ne!(shown(&["tool", "a b"]), shown(&["tool", "\"a b\""]));
}

#[test]
fn a_credential_has_a_name_a_source_and_a_host() {
    let env = || vec![SecretSource::env("T").unwrap()];
    let bound = || vec![to("api.example.org")];
    let made = |service, sources, bindings| Credential::new(service, sources, vec![], bindings);
    assert!(made("forge", env(), bound()).is_ok());
    let long = "x".repeat(65);
    for service in ["", "a b", "a\n", "ä", long.as_str()] {
        let refused = code(made(service, env(), bound()));
        assert_eq!(refused, "credential-service", "{service:?}");
    }
    assert_eq!(code(made("a", vec![], bound())), "credential-no-source");
    assert_eq!(code(made("a", env(), vec![])), "credential-no-hosts");
    let bad = Credential::new("a", env(), vec!["A=B".into()], bound());
    assert_eq!(code(bad), "credential-env");
}

#[test]
fn g5_hosts_are_names_and_clear_text_stays_on_this_machine() {
    let host = |text| Binding::parse_host(text, Dialect::Native);
    assert_eq!(code(host("*.com")), "pattern-too-broad");
    assert_eq!(code(host("*")), "pattern-everything");
    assert!(host("https://api.example.org").is_err());
    assert_eq!(
        code(to("api.example.org").in_clear()),
        "credential-in-clear"
    );
    let inside = to("host.ringfence.internal").in_clear().unwrap();
    assert_eq!(inside.scheme, Scheme::Http);
}

#[test]
fn the_secret_is_the_first_group() {
    let extract = |text| Extract::parse(text, Unmatched::Refuse);
    for text in ["token", "(", "(?=x)(y)", r"(a)\1"] {
        assert_eq!(code(extract(text)), "credential-extract", "{text}");
    }
    let token = extract(r"token: (\w+)").unwrap();
    let text = "user: u\ntoken: s3cret\nagain: s3cret\n";
    assert_eq!(token.secret(text), Ok("s3cret"));
    assert_eq!(
        token.masked(text, "rf-1").unwrap(),
        "user: u\ntoken: rf-1\nagain: rf-1\n"
    );
    assert_eq!(token.secret("user: u"), Err(ExtractError::NotFound));
    assert_eq!(
        token.secret("token: a\ntoken: b"),
        Err(ExtractError::Several)
    );
    assert_eq!(token.secret("token: a\ntoken: a"), Ok("a"));
    let empty = extract("token=(.*)").unwrap();
    assert_eq!(empty.secret("token="), Err(ExtractError::NotFound));
}
