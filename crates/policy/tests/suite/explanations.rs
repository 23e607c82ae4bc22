//! What `explain` tells.

use ringfence_policy::{
    LayerKind, Profile, Request, SuggestionFormat, Target, builtin_layers, explain, resolve, rows,
};

use crate::support::{context, network, policy};

fn lines(rules: &str, host: &str, port: u16) -> Vec<(SuggestionFormat, String)> {
    let target = Target::parse(host).unwrap();
    let told = explain(&policy(rules), &Request::connect(&target, port));
    told.suggestions
        .into_iter()
        .map(|line| (line.format, line.line))
        .collect()
}

#[test]
fn the_line_to_add_is_ready_to_paste() {
    assert_eq!(
        lines("{}", "api.example.org", 8443),
        [
            (
                SuggestionFormat::Flag,
                "--allow api.example.org:8443".to_owned()
            ),
            (
                SuggestionFormat::Yaml,
                "- \"api.example.org:8443\"".to_owned()
            ),
            (
                SuggestionFormat::Toml,
                "\"api.example.org:8443\",".to_owned()
            ),
            (SuggestionFormat::Srt, "\"api.example.org:8443\"".to_owned()),
        ]
    );
    assert_eq!(
        lines("{}", "[fd00::1]", 443)[0].1,
        "--allow '[fd00::1]:443'"
    );
    assert_eq!(
        lines("{hostPorts: [1]}", "host.ringfence.internal", 2)[0].1,
        "--host-port 2"
    );
    assert!(
        lines(
            "{allow: [a.example.org], deny: [b.example.org]}",
            "b.example.org",
            443
        )
        .is_empty()
    );
}

#[test]
fn following_the_suggestion_allows_the_request() {
    for (host, addr) in [
        ("api.example.org", None),
        ("10.1.2.3", None),
        ("api.example.org", Some("10.1.2.3")),
    ] {
        let target = Target::parse(host).unwrap();
        let mut request = Request::connect(&target, 8443);
        request.addr = addr.map(|text| text.parse().unwrap()).or(request.addr);
        let mut entries: Vec<String> = Vec::new();
        for _ in 0..3 {
            let told = explain(
                &policy(&format!("{{allow: [{}]}}", entries.join(", "))),
                &request,
            );
            if told.decision.is_allowed() {
                break;
            }
            let yaml = told
                .suggestions
                .iter()
                .find(|line| line.format == SuggestionFormat::Yaml);
            entries.push(yaml.unwrap().line.trim_start_matches("- ").to_owned());
        }
        let told = explain(
            &policy(&format!("{{allow: [{}]}}", entries.join(", "))),
            &request,
        );
        assert!(told.decision.is_allowed(), "{host} {addr:?} {entries:?}");
    }
}

#[test]
fn rules_that_were_looked_at_are_listed_with_their_source() {
    let target = Target::parse("a.example.org").unwrap();
    let told = explain(
        &policy("{allow: [\"*.example.org:8443\", a.example.org], deny: [\"a.example.org:22\"]}"),
        &Request::connect(&target, 443),
    );
    let seen: Vec<_> = told
        .considered
        .iter()
        .map(|rule| rule.rule.as_str())
        .collect();
    assert_eq!(
        seen,
        [
            "a.example.org:22",
            "*.example.org:8443",
            "a.example.org:80,443"
        ]
    );
    assert_eq!(
        told.decision.source.as_ref().unwrap().to_string(),
        "policy test.yaml:2"
    );
    let json = serde_json::to_value(&told).unwrap();
    assert_eq!(json["decision"]["reason"], "allowed-by-rule");
    assert_eq!(json["considered"][1]["outcome"], "other-port");
}

#[test]
fn a_policy_shows_itself_with_its_sources() {
    let mut layers = builtin_layers(Profile::Default, &context());
    layers.push(network(LayerKind::Policy, "{allow: [a.example.org]}"));
    let policy = resolve(layers, None).unwrap();
    let json = serde_json::to_value(&policy).unwrap();
    assert_eq!(
        json["network"]["allow"][0]["value"]["destination"],
        "a.example.org"
    );
    assert_eq!(json["network"]["allow"][0]["origin"]["line"], 2);
    let rows = rows(&policy);
    let allow = rows
        .iter()
        .find(|row| row.section == "network.allow")
        .unwrap();
    assert_eq!(
        (allow.entry.as_str(), allow.origin.to_string().as_str()),
        ("a.example.org:80,443", "policy test.yaml:2")
    );
    let writable = rows
        .iter()
        .find(|row| row.section == "filesystem.write.allow")
        .unwrap();
    assert_eq!(writable.entry, "/home/u/p");
    assert!(
        rows.iter()
            .any(|row| row.section == "filesystem.protect" && row.entry == ".git")
    );
}

#[test]
fn the_line_for_a_method_or_path_is_about_it_alone() {
    let rules = |more: &str| {
        format!("{{allow: [{{host: a.example.org, methods: [GET], paths: [\"/v1/**\"]}}{more}]}}")
    };
    let target = Target::parse("a.example.org").unwrap();
    let ask = |more: &str, method, path| {
        let request = Request::connect(&target, 443).with_http(method, path);
        explain(&policy(&rules(more)), &request)
    };
    let told = ask("", "POST", "/v1/./a b?q=1");
    let formats: Vec<_> = told.suggestions.iter().map(|line| line.format).collect();
    assert_eq!(formats, [SuggestionFormat::Yaml, SuggestionFormat::Toml]);
    let added = told.suggestions[0].line.trim_start_matches("- ");
    let added = format!(", {added}");
    for (method, path, allowed) in [
        ("POST", "/v1/a b", true),
        ("GET", "/v1/x", true),
        ("POST", "/v1/x", false),
        ("PUT", "/v1/a b", false),
    ] {
        let answer = ask(&added, method, path).decision.is_allowed();
        assert_eq!(answer, allowed, "{method} {path}");
    }
    for (method, path) in [("get", "/v1/x"), ("GET", "/a%2fb"), ("GET", "*")] {
        assert!(
            ask("", method, path).suggestions.is_empty(),
            "{method} {path}"
        );
    }
}
