//! Credentials where the way out or the policy is not the usual one.

use ringfence_testkit::place::port::{HTTP_HIGH, PROXY, PROXY_WITH_PASSWORD};
use ringfence_testkit::place::{OTHER_PUBLIC6, PRIVATE, PUBLIC6};
use ringfence_testkit::{Certificate, Service, Web};
use serde_json::json;

use super::clients::arrived;
use super::{ADDED, BEARER, Bound, HOST, OTHER, SECRET, VARIABLE, leak, placeholder};

const VERSIONS: [&str; 2] = ["--http1.1", "--http2"];

/// The organisation's proxy sees a tunnel and nothing of what is in it.
#[test]
fn g5_through_a_proxy_of_the_organisation() {
    let bound = Bound::new();
    let flags = bound.policy(BEARER);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    for proxy in [
        format!("http://{PRIVATE}:{PROXY}"),
        format!("http://user:password@{PRIVATE}:{PROXY_WITH_PASSWORD}"),
    ] {
        for version in VERSIONS {
            let variables = [(VARIABLE, SECRET), ("HTTPS_PROXY", proxy.as_str())];
            let script = format!("curl -sSf {version} https://{HOST}/");
            let run = bound.host.run_with(&variables, &flags, &script);
            bound.holds_nothing(&run);
            run.expect_code(0);
            assert!(arrived(&bound), "{:#?}", bound.net().connections());
            let connections = bound.net().connections();
            let seen = connections
                .iter()
                .filter(|one| one.service == Service::Proxy);
            let seen: Vec<String> = seen.map(|one| one.saw.join("\n")).collect();
            assert!(
                seen.iter()
                    .any(|text| text.contains(&format!("CONNECT {HOST}:443")))
            );
            assert!(seen.iter().all(|text| leak(text).is_none()), "{seen:?}");
        }
    }
}

/// Its certificate is vouched for by an authority that the policy names.
#[test]
fn a_server_whose_authority_only_the_policy_knows() {
    let bound = Bound::new();
    let web = Web::new().certificate(Certificate::OfStranger);
    bound.net().web(HOST, web);
    let authority = bound
        .policies
        .write("stranger.pem", &bound.net().stranger_pem());
    let text = format!("credentials:\n  - {BEARER}\n");
    let named = format!("  authorities: [{}]\n{text}", authority.display());
    let by_flag = ["--authority".to_owned(), authority.display().to_string()];
    for version in VERSIONS {
        let script = format!("curl -sS -i {version} https://{HOST}/");
        let flags = bound.policy_of(&[HOST], &text);
        let run = bound.run(&flags, &script);
        assert!(
            run.stdout().contains("upstream-certificate"),
            "{:?}",
            run.outcome
        );
        assert!(!bound.net().saw(SECRET));
        bound
            .run(&[&flags[..], &by_flag[..]].concat(), &script)
            .expect_code(0);
        assert!(arrived(&bound), "{version}");
        bound
            .run(&bound.policy_of(&[HOST], &named), &script)
            .expect_code(0);
        assert!(arrived(&bound), "{version}");
    }
}

#[test]
fn an_authority_that_cannot_be_read_stops_the_run() {
    let bound = Bound::new();
    let broken = bound.policies.write("broken.pem", "no certificate\n");
    for path in [broken, bound.policies.join("missing.pem")] {
        let flags = ["--authority".to_owned(), path.display().to_string()];
        let flags = [&bound.policy(BEARER)[..], &flags[..]].concat();
        let run = bound.run(&flags, &format!("curl -sS -i https://{HOST}/"));
        assert_ne!(run.outcome.code(), 0, "{:?}", run.outcome);
        assert!(!bound.net().saw(SECRET));
        let told = run.outcome.stderr.contains(&path.display().to_string());
        assert!(told, "{}", run.outcome.stderr);
    }
}

#[test]
fn names_by_a_pattern() {
    let bound = Bound::new();
    let credential = format!(
        "credentials:\n  - {{service: my-service, env: {VARIABLE}, hosts: ['*.my-service.test'], bearer: true}}\n"
    );
    bound.net().web("my-service.test", Web::new());
    let flags = bound.policy_of(&["**.my-service.test"], &credential);
    for (name, gets) in [(HOST, true), (OTHER, true), ("my-service.test", false)] {
        for version in VERSIONS {
            let script = format!("curl -sSf {version} https://{name}/");
            bound.run(&flags, &script).expect_code(0);
            assert_eq!(bound.saw(name, SECRET), gets, "{name}");
        }
    }
}

#[test]
fn over_ipv6() {
    let bound = Bound::new();
    bound.net().zone().set(HOST, OTHER_PUBLIC6);
    bound.net().zone().set(OTHER, PUBLIC6);
    let flags = bound.policy(BEARER);
    for way in ["", "--noproxy '*'", "-6 --noproxy '*'"] {
        bound
            .run(&flags, &format!("curl -sSf {way} https://{HOST}/"))
            .expect_code(0);
        assert!(arrived(&bound), "{way}");
    }
}

/// The host's own server gets it in clear, because the policy says so.
#[test]
fn a_port_of_the_host_in_clear() {
    let bound = Bound::new();
    let own = "host.ringfence.internal";
    let credential = |scheme: &str| {
        format!(
            "  hostPorts: [{HTTP_HIGH}]\ncredentials:\n  - {{service: my-service, env: {VARIABLE}, \
             hosts: [{own}], ports: [{HTTP_HIGH}], {scheme} bearer: true}}\n"
        )
    };
    let flags = bound.policy_of(&[OTHER], &credential("scheme: http,"));
    for way in ["", "--noproxy '*'"] {
        let script = format!("curl -sSf {way} http://{own}:{HTTP_HIGH}/; echo token=$API_TOKEN");
        let run = bound.run(&flags, &script).expect_code(0);
        assert!(
            bound.net().saw(SECRET),
            "{way}: {:#?}",
            bound.net().connections()
        );
        let shown = format!("Bearer {}", placeholder(&run));
        assert!(run.stdout().contains(&shown), "{}", run.stdout());
    }
    // Not when it does not say so.
    let flags = bound.policy_of(&[OTHER], &credential(""));
    bound.run(&flags, &format!("curl -sS http://{own}:{HTTP_HIGH}/"));
    assert!(!bound.net().saw(SECRET));
}

/// Settings of srt: a variable that is masked.
#[test]
fn a_masked_variable_of_srt() {
    let bound = Bound::new();
    let settings = json!({
        "network": {
            "allowedDomains": [HOST, OTHER],
            "deniedDomains": [],
            "tlsTerminate": {},
        },
        "filesystem": {"denyRead": [], "allowWrite": ["."], "denyWrite": []},
        "credentials": {"envVars": [{"name": VARIABLE, "mode": "mask", "injectHosts": [HOST]}]},
    });
    let path = bound.policies.write("settings.json", &settings.to_string());
    let flags = ["--settings".to_owned(), path.display().to_string()];
    for version in VERSIONS {
        let ask = format!("curl -sSf {version} -H \"Authorization: Bearer $API_TOKEN\"");
        let script = format!("{ask} https://{HOST}/; echo token=$API_TOKEN");
        let run = bound.run(&flags, &script).expect_code(0);
        assert!(arrived(&bound), "{:#?}", bound.net().connections());
        assert!(
            run.stdout()
                .contains(&format!("Bearer {}", placeholder(&run)))
        );
        bound.run(&flags, &format!("{ask} https://{OTHER}/"));
        assert!(!bound.net().saw(SECRET));
    }
}

#[test]
fn g5_the_log_shows_what_was_added_and_never_the_value() {
    let bound = Bound::new();
    let flags = bound.policy(BEARER);
    let script = format!("curl -sSf https://{HOST}/ https://{OTHER}/ > /dev/null");
    let run = bound.run(&flags, &script).expect_code(0);
    assert_eq!(run.credentials(), [ADDED]);
    for words in [&["policy", "log"][..], &["policy", "log", "--json"]] {
        let program = bound.host.online.ringfence().args(words.iter().copied());
        let shown = program.env("XDG_STATE_HOME", run.state.path()).run();
        let shown = shown.expect_code(0).stdout;
        let added = shown.matches("my-service (header").count();
        assert_eq!(added, 1, "{words:?}: {shown}");
        // The page showed it, and that is there, too.
        assert!(
            shown.contains("my-service (hidden in the answer)"),
            "{shown}"
        );
        assert!(shown.contains("secret-returned"), "{shown}");
        assert_eq!(leak(&shown), None);
    }
}

/// A file in the working folder only asks; who runs it says yes.
#[test]
fn g5_a_policy_in_the_working_folder_needs_approval() {
    let bound = Bound::new();
    let text = format!("version: 1\nnetwork:\n  allow: [{HOST}]\ncredentials:\n  - {BEARER}\n");
    bound.host.write("policy.yaml", &text);
    let asking = ["--policy", "policy.yaml"].map(str::to_owned);
    let script = format!("curl -sSf https://{HOST}/; echo token=$API_TOKEN");
    let run = bound.run(&asking, &script).expect_code(0);
    assert!(!bound.net().saw(SECRET), "nobody approved it");
    assert_eq!(placeholder(&run), "");
    assert!(
        run.outcome.stderr.contains("my-service"),
        "{}",
        run.outcome.stderr
    );
    let approved = ["--approve", "my-service"].map(str::to_owned);
    bound
        .run(&[asking, approved].concat(), &script)
        .expect_code(0);
    assert!(arrived(&bound));
}

#[test]
fn a_credential_for_a_host_that_is_not_allowed_is_an_error() {
    let bound = Bound::new();
    let flags = bound.policy_of(&[OTHER], &format!("credentials:\n  - {BEARER}\n"));
    let run = bound.run(&flags, "echo ran").expect_code(125);
    assert!(
        run.stdout().is_empty() && run.outcome.stderr.contains(HOST),
        "{:?}",
        run.outcome
    );
}
