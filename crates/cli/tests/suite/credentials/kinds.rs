//! How a secret is attached, and to which requests.

use percent_encoding::percent_decode_str;

use super::{Bound, HOST, SECRET, VARIABLE, basic};

const VERSIONS: [&str; 2] = ["--http1.1", "--http2"];

/// A credential for the host with this way to attach it.
fn with(kind: &str) -> String {
    format!("{{service: my-service, env: {VARIABLE}, hosts: [{HOST}], {kind}}}")
}

impl Bound {
    /// Asks over both versions; what stands for the secret must not arrive.
    #[track_caller]
    fn asks(&self, credential: &str, words: &str, arrives: &str) {
        let flags = self.policy(credential);
        for version in VERSIONS {
            let script = format!("curl -sSf {version} {words}; echo token=${VARIABLE}");
            let run = self.run(&flags, &script).expect_code(0);
            let seen = self.net().connections();
            assert!(
                self.saw(HOST, arrives),
                "{words} with {credential}: {seen:#?}"
            );
            let placeholder = super::placeholder(&run);
            assert!(
                !self.net().saw(placeholder),
                "{words} with {credential}: {seen:#?}"
            );
            self.went_only_there();
        }
    }

    /// Asks over both versions for something that gets no credential.
    #[track_caller]
    fn asks_without(&self, credential: &str, words: &str, arrives: &str) {
        let flags = self.policy(credential);
        for version in VERSIONS {
            let run = self.run(&flags, &format!("curl -sSf {version} {words}"));
            let run = run.expect_code(0);
            let seen = self.net().connections();
            assert!(
                self.saw(HOST, arrives),
                "{words} with {credential}: {seen:#?}"
            );
            assert!(
                !self.net().saw(SECRET),
                "{words} with {credential}: {seen:#?}"
            );
            assert!(run.credentials().is_empty(), "{words} with {credential}");
        }
    }
}

#[test]
fn headers() {
    let bound = Bound::new();
    let url = format!("https://{HOST}/");
    for (kind, arrives) in [
        ("bearer: true", format!("authorization: Bearer {SECRET}")),
        ("header: X-Api-Key", format!("x-api-key: {SECRET}")),
        (
            "header: X-Api-Key, format: 'key=%s; v=1'",
            format!("x-api-key: key={SECRET}; v=1"),
        ),
        (
            "basic: {username: someone}",
            format!("authorization: Basic {}", basic("someone")),
        ),
    ] {
        bound.asks(&with(kind), &url, &arrives);
    }
}

#[test]
fn what_stands_for_the_secret_is_replaced_where_the_secret_goes() {
    let bound = Bound::new();
    let url = format!("https://{HOST}/");
    for (kind, header, arrives) in [
        (
            "bearer: true",
            "Authorization: Bearer $API_TOKEN",
            format!("authorization: Bearer {SECRET}"),
        ),
        (
            "header: X-Api-Key",
            "X-Api-Key: $API_TOKEN",
            format!("x-api-key: {SECRET}"),
        ),
    ] {
        let words = format!("-H \"{header}\" {url}");
        bound.asks(&with(kind), &words, &arrives);
    }
    let words = format!("-u someone:$API_TOKEN {url}");
    let arrives = format!("authorization: Basic {}", basic("someone"));
    bound.asks(&with("basic: {username: someone}"), &words, &arrives);
}

/// The value of a parameter of a target, decoded.
fn parameter(target: &str, name: &str) -> Option<String> {
    let query = target.split_whitespace().nth(1)?.split_once('?')?.1;
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(own, _)| *own == name)?;
    Some(percent_decode_str(value).decode_utf8_lossy().into_owned())
}

#[test]
fn a_query_parameter() {
    let bound = Bound::new();
    let flags = bound.policy(&with("query: key"));
    for (version, path) in [
        ("--http1.1", "page"),
        ("--http2", "page?first=1&second=a%2Fb"),
        ("--http1.1", "page?key=$API_TOKEN&first=1"),
        ("--http2", "page?first=1&key=$API_TOKEN"),
    ] {
        let script = format!("curl -sSf {version} \"https://{HOST}/{path}\"");
        bound.run(&flags, &script).expect_code(0);
        let connections = bound.net().connections();
        let heads: Vec<&String> = connections.iter().flat_map(|one| &one.saw).collect();
        let keys: Vec<String> = heads
            .iter()
            .filter_map(|head| parameter(head, "key"))
            .collect();
        assert_eq!(keys, [SECRET], "{path}: {heads:?}");
        if path.contains("second") {
            assert!(bound.saw(HOST, "first=1&second=a%2Fb"), "{heads:?}");
        }
    }
}

#[test]
fn a_placeholder_anywhere_in_headers_and_bodies() {
    let bound = Bound::new();
    let url = format!("https://{HOST}/");
    let header = "-H \"X-Any: before-$API_TOKEN-after\"";
    let arrives = format!("x-any: before-{SECRET}-after");
    bound.asks(
        &with("substitute: {}"),
        &format!("{header} {url}"),
        &arrives,
    );
    let body = "--data-raw \"{before $API_TOKEN after}\" -H Content-Type:text/plain";
    let arrives = format!("{{before {SECRET} after}}");
    bound.asks(
        &with("substitute: {body: true}"),
        &format!("{body} {header} {url}"),
        &arrives,
    );
    // In JSON the secret is text of JSON, with every character escaped.
    let body = "--json \"{\\\"key\\\":\\\"$API_TOKEN\\\"}\"";
    let escaped: Vec<String> = SECRET
        .bytes()
        .map(|byte| format!("\\u{byte:04x}"))
        .collect();
    let arrives = format!("{{\"key\":\"{}\"}}", escaped.concat());
    bound.asks(
        &with("substitute: {body: true}"),
        &format!("{body} {url}"),
        &arrives,
    );
    let body = "--data-urlencode \"key=$API_TOKEN\"";
    bound.asks(
        &with("substitute: {body: true}"),
        &format!("{body} {url}"),
        "key=%73%33%63%72%33%74%2F%6F%66%2B%74%68%65%3D%53%65%72%76%69%63%65",
    );
}

#[test]
fn a_request_with_other_credentials_is_left_alone_unless_told() {
    let bound = Bound::new();
    let own = format!("-H 'Authorization: Bearer of-my-own' https://{HOST}/");
    bound.asks_without(
        &with("bearer: true"),
        &own,
        "authorization: Bearer of-my-own",
    );
    bound.asks(
        &with("bearer: true, replace: true"),
        &own,
        &format!("authorization: Bearer {SECRET}"),
    );
    assert!(!bound.net().saw("of-my-own"));
    let own = format!("'https://{HOST}/?key=of-my-own'");
    bound.asks_without(&with("query: key"), &own, "key=of-my-own");
}

#[test]
fn g5_only_the_bound_methods_and_paths_get_it() {
    let bound = Bound::new();
    let credential = with("bearer: true, methods: [GET], paths: ['/v1/**']");
    let site = format!("https://{HOST}");
    let header = format!("authorization: Bearer {SECRET}");
    for path in ["/v1/page", "/v1/a/b?c=d", "/v2/../v1/page"] {
        bound.asks(
            &credential,
            &format!("--path-as-is '{site}{path}'"),
            &header,
        );
    }
    for (words, path) in [
        ("", "/v2/page"),
        ("", "/v1/../v2/page"),
        ("", "/v1/%2e%2e/v2/page"),
        ("", "/v1/x/..%2f..%2fv2/page"),
        ("", "/V1/page"),
        ("-d body", "/v1/page"),
        ("-X DELETE", "/v1/page"),
    ] {
        let flags = bound.policy(&credential);
        for version in VERSIONS {
            let script = format!("curl -sS {version} {words} --path-as-is '{site}{path}'");
            bound.run(&flags, &script);
            assert!(!bound.net().saw(SECRET), "{script}");
        }
    }
}

#[test]
fn g5_each_request_on_one_connection_is_looked_at_anew() {
    let bound = Bound::new();
    let credential = with("bearer: true, paths: ['/v1/**']");
    let flags = bound.policy(&credential);
    for version in VERSIONS {
        let urls = ["v1/a", "v2/b", "v1/c"].map(|path| format!("https://{HOST}/{path}"));
        let script = format!("curl -sSf {version} {}", urls.join(" "));
        bound.run(&flags, &script).expect_code(0);
        let connections = bound.net().connections();
        let heads = connections.iter().flat_map(|one| &one.saw);
        let heads: Vec<&String> = heads.filter(|text| text.starts_with("GET ")).collect();
        let added: Vec<bool> = heads.iter().map(|head| head.contains(SECRET)).collect();
        assert_eq!(added, [true, false, true], "{heads:?}");
    }
}
