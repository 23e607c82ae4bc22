//! What is hostile or broken beyond single requests: floods over HTTP/2,
//! bodies that are too long, clients that trust nobody.

use super::{BEARER, Bound, HOST, SECRET, VARIABLE, leak_of, placeholder};

/// The host is looked into, and goes on being served.
#[track_caller]
fn survives(bound: &Bound, how: &str) -> String {
    bound
        .host
        .write("flood.py", include_str!("scripts/flood.py"));
    let script = format!(
        "timeout 100 /usr/bin/python3 flood.py {how} {HOST}; \
         curl -sSf --http2 https://{HOST}/after > /dev/null && echo served"
    );
    let run = bound.run(&bound.policy(BEARER), &script).expect_code(0);
    assert!(run.stdout().ends_with("served\n"), "{:?}", run.outcome);
    run.stdout().to_owned()
}

#[test]
fn a_thousand_requests_at_once() {
    let bound = Bound::new();
    let shown = survives(&bound, "streams");
    assert!(!shown.contains("answered"), "{shown}");
    let connections = bound.net().connections();
    let heads = connections.iter().flat_map(|one| &one.saw);
    let count = heads.filter(|text| text.contains("/flood")).count();
    assert!(count <= 256, "{count} reached the server");
}

#[test]
fn requests_that_are_cancelled_at_once() {
    let bound = Bound::new();
    let shown = survives(&bound, "resets");
    assert!(
        shown.contains("ended") || shown.contains("failed"),
        "{shown}"
    );
}

#[test]
fn heads_that_are_too_long_or_have_no_end() {
    let bound = Bound::new();
    for how in ["headers", "continuation"] {
        let shown = survives(&bound, how);
        assert!(!shown.contains("answered 200"), "{shown}");
        assert!(!bound.saw(HOST, "/flood"), "{how}");
    }
    let script = format!(
        "head -c 200000 /dev/zero | tr '\\0' x | sed 's/^/X-Long: /' > long
         curl -sS -i --http1.1 -H @long https://{HOST}/flood
         curl -sSf https://{HOST}/after > /dev/null && echo served"
    );
    let run = bound.run(&bound.policy(BEARER), &script).expect_code(0);
    assert!(run.stdout().ends_with("served\n"), "{:?}", run.outcome);
    assert!(!bound.saw(HOST, "/flood"));
}

#[test]
fn g9_a_flood_of_frames() {
    let bound = Bound::new();
    for how in ["pings", "settings", "windows", "priorities", "empty"] {
        // It is answered, or has the connection ended.
        let shown = survives(&bound, how);
        assert!(shown.starts_with(how), "{shown}");
        assert!(!shown.contains("timed out"), "{shown}");
    }
}

#[test]
fn g5_a_body_that_is_too_long_to_be_looked_through_is_refused() {
    let bound = Bound::new();
    let credential = format!(
        "{{service: my-service, env: {VARIABLE}, hosts: [{HOST}], substitute: {{body: true}}}}"
    );
    let flags = bound.policy(&credential);
    let make = "{ head -c 3000000 /dev/zero | tr '\\0' x; echo $API_TOKEN; } > body";
    for how in ["", "-H 'Transfer-Encoding: chunked'"] {
        for version in ["--http1.1", "--http2"] {
            let ask = format!("curl -sS -i {version} {how} -T body https://{HOST}/");
            let run = bound.run(
                &flags,
                &format!("{make}; {ask}; echo; echo token=$API_TOKEN"),
            );
            let shown = run.stdout();
            assert!(shown.contains(" 413"), "{ask}: {:?}", run.outcome);
            assert!(shown.contains("body-too-large"), "{ask}: {shown}");
            let seen: String = bound
                .net()
                .connections()
                .into_iter()
                .flat_map(|one| one.saw)
                .collect();
            assert_eq!(leak_of(placeholder(&run), &seen), None, "{ask}");
            assert!(!seen.contains(SECRET), "{ask}");
        }
    }
}

/// It trusts the server's own authority and nobody else.
#[test]
fn a_client_that_pins_certificates_is_told_apart() {
    let bound = Bound::new();
    bound.host.write("own.pem", &bound.net().ca_pem());
    let flags = bound.policy(BEARER);
    for way in ["", "--noproxy '*'"] {
        let script = format!("curl -sSf {way} --cacert own.pem --capath /dev/null https://{HOST}/");
        bound.outside(&script).expect_code(0);
        let run = bound.run(&flags, &script).expect_code(60);
        assert!(!bound.net().saw(SECRET) && !bound.saw(HOST, "GET "));
        let told = run.told();
        assert!(
            told.iter().any(|one| one.ends_with(" client-distrusts")),
            "{told:?}"
        );
        assert!(
            run.outcome.stderr.contains(HOST),
            "no hint: {}",
            run.outcome.stderr
        );
    }
}

/// TLS that is not HTTP, and HTTP that is not TLS, for a host with a secret.
#[test]
fn g5_what_is_not_http_over_tls_gets_nothing() {
    let bound = Bound::new();
    let flags = bound.policy(BEARER);
    for script in [
        format!(
            "printf 'GET / HTTP/1.1\\r\\nHost: {HOST}\\r\\n\\r\\n' | socat -t 5 - tcp:{HOST}:443"
        ),
        format!(
            "printf 'EHLO x\\r\\n' | timeout 20 openssl s_client -quiet -connect {HOST}:443 -servername {HOST}"
        ),
        format!("printf 'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n' | socat -t 5 - tcp:{HOST}:443"),
        format!(
            "echo | timeout 20 openssl s_client -alpn h3 -connect {HOST}:443 -servername {HOST}"
        ),
    ] {
        bound.run(&flags, &format!("{script}; :")).expect_code(0);
        assert!(!bound.net().saw(SECRET), "{script}");
    }
}
