//! The name in the request, the name that TLS asks for, the address that is
//! dialled and the name in the certificate: when two of them disagree, no
//! secret goes out, over HTTP/1.1 and over HTTP/2.

use ringfence_testkit::{Certificate, Web};

use super::said::{Said, fields};
use super::{Bound, HOST, OTHER, SECRET, VARIABLE};

/// Belongs to the other host, so that both are looked into.
const OTHER_SECRET: &str = "another-s3cr3t-0123456789";

/// A secret for each of the two hosts.
fn two_secrets(bound: &Bound) -> [String; 2] {
    let file = bound.policies.write("other-secret", OTHER_SECRET);
    let text = format!(
        "credentials:
  - {{service: my-service, env: {VARIABLE}, hosts: [{HOST}], bearer: true}}
  - {{service: other, file: {{path: {}}}, hosts: [{OTHER}], bearer: true}}\n",
        file.display()
    );
    bound.policy_of(&[HOST, OTHER], &text)
}

fn get(host: &str) -> String {
    format!("GET /page HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
}

/// Says them outside, where each is answered by a server, then inside, where
/// no secret goes anywhere.
#[track_caller]
fn nothing_goes_out(all: &[Said]) {
    let bound = Bound::new();
    for heard in bound.say_outside(all) {
        assert_eq!(heard.status, 200, "{heard:?}");
    }
    let flags = two_secrets(&bound);
    let (run, heard) = bound.say(&flags, all);
    for (heard, said) in heard.iter().zip(all) {
        assert_ne!(heard.status, 200, "{said:?}: {heard:?}");
    }
    for secret in [SECRET, OTHER_SECRET] {
        assert!(!bound.net().saw(secret), "{:#?}", bound.net().connections());
    }
    assert!(run.credentials().is_empty(), "{:?}", run.told());
}

#[test]
fn without_any_disagreement_each_gets_its_own() {
    let bound = Bound::new();
    let flags = two_secrets(&bound);
    let all = [
        Said::one(HOST, &[&get(HOST)]),
        Said::two(HOST, &fields(HOST, "/page"), &[]),
        Said::one(OTHER, &[&get(OTHER)]),
        Said::two(OTHER, &fields(OTHER, "/page"), &[]),
        // Other spellings of the same.
        Said::one(HOST, &[&get("API.my-service.TEST:443")]),
        Said::two(HOST, &fields("api.MY-service.test:443", "/page"), &[]),
    ];
    let (_, heard) = bound.say(&flags, &all);
    for (heard, said) in heard.iter().zip(&all) {
        assert_eq!(heard.status, 200, "{said:?}: {heard:?}");
    }
    assert!(bound.saw(HOST, SECRET) && bound.saw(OTHER, OTHER_SECRET));
    assert!(!bound.saw(HOST, OTHER_SECRET) && !bound.saw(OTHER, SECRET));
}

#[test]
fn g5_the_request_names_another_host_than_tls() {
    nothing_goes_out(&[
        Said::one(HOST, &[&get(OTHER)]),
        Said::one(OTHER, &[&get(HOST)]),
        Said::one(HOST, &[&get(&format!("{HOST}:8443"))]),
        Said::two(HOST, &fields(OTHER, "/page"), &[]),
        Said::two(OTHER, &fields(HOST, "/page"), &[]),
        Said::two(HOST, &fields(&format!("{HOST}:8443"), "/page"), &[]),
    ]);
}

#[test]
fn g5_the_request_names_two_hosts() {
    let with = |authority: &str, host: &str| {
        let mut fields = fields(authority, "/page");
        fields.push(("host".into(), host.into()));
        fields
    };
    let absolute = |target: &str, host: &str| {
        format!("GET https://{target}/page HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
    };
    nothing_goes_out(&[
        Said::one(HOST, &[&absolute(HOST, OTHER)]),
        Said::one(HOST, &[&absolute(OTHER, HOST)]),
        Said::one(OTHER, &[&absolute(HOST, OTHER)]),
        Said::two(HOST, &with(HOST, OTHER), &[]),
        Said::two(HOST, &with(OTHER, HOST), &[]),
        Said::two(OTHER, &with(HOST, OTHER), &[]),
    ]);
}

/// No server takes these, ours or another.
#[test]
fn g5_the_request_is_ambiguous() {
    let bound = Bound::new();
    let flags = two_secrets(&bound);
    let twice = |name: &str, value: &str| {
        let mut fields = fields(HOST, "/page");
        fields.push((name.into(), value.into()));
        fields
    };
    let late = |name: &str, value: &str| {
        let mut fields = fields(HOST, "/page");
        fields.retain(|(own, _)| own != name);
        fields.push(("x-first".into(), "1".into()));
        fields.push((name.into(), value.into()));
        fields
    };
    let request = |first: &str, hosts: &[&str]| {
        let hosts = hosts.iter().map(|host| format!("Host: {host}\r\n"));
        let hosts: String = hosts.collect();
        let whole = format!("{first} HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n");
        Said::one(HOST, &[&whole])
    };
    let all = [
        request("GET /", &[HOST, OTHER]),
        request("GET /", &[OTHER, HOST]),
        request("GET /", &[HOST, HOST]),
        request("GET /", &[]),
        request("GET /", &[&format!("{HOST}, {OTHER}")]),
        request("GET /", &[&format!("user@{HOST}")]),
        request("GET /", &[&format!("{HOST}/")]),
        request(&format!("CONNECT {HOST}:443"), &[HOST]),
        request("TRACE /", &[HOST]),
        Said::two(HOST, &twice(":authority", OTHER), &[]),
        Said::two(HOST, &twice(":authority", HOST), &[]),
        Said::two(HOST, &twice(":path", "/other"), &[]),
        Said::two(HOST, &twice(":method", "POST"), &[]),
        Said::two(HOST, &twice(":scheme", "http"), &[]),
        Said::two(HOST, &twice(":unknown", "x"), &[]),
        Said::two(HOST, &twice("connection", "close"), &[]),
        Said::two(HOST, &late(":authority", HOST), &[]),
        Said::two(HOST, &late(":path", "/page"), &[]),
        Said::two(HOST, &fields(&format!("user@{HOST}"), "/page"), &[]),
        Said::two(HOST, &fields("", "/page"), &[]),
        Said::two(HOST, &fields(HOST, "page"), &[]),
        Said::two(HOST, &fields(HOST, ""), &[]),
    ];
    let (run, heard) = bound.say(&flags, &all);
    for (heard, said) in heard.iter().zip(&all) {
        assert_ne!(heard.status, 200, "{said:?}: {heard:?}");
    }
    assert!(!bound.net().saw(SECRET), "{:#?}", bound.net().connections());
    assert!(run.credentials().is_empty(), "{:?}", run.told());
}

#[test]
fn g5_another_scheme_than_that_of_the_connection() {
    let bound = Bound::new();
    let mut fields = fields(HOST, "/page");
    fields[1].1 = "http".into();
    let all = [
        Said::two(HOST, &fields, &[]),
        Said::one(
            HOST,
            &[&format!(
                "GET http://{HOST}/ HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n"
            )],
        ),
    ];
    let (_, heard) = bound.say(&two_secrets(&bound), &all);
    assert!(heard.iter().all(|heard| heard.status != 200), "{heard:?}");
    assert!(!bound.net().saw(SECRET));
}

/// The address that is dialled is that of another name.
#[test]
fn g5_tls_asks_for_another_name_than_was_dialled() {
    let both = |name: &str| {
        [
            Said::one(name, &[&get(name)]),
            Said::two(name, &fields(name, "/page"), &[]),
        ]
    };
    let dialled = |all: [Said; 2], name: &str| all.map(|said| said.dialling(name));
    nothing_goes_out(&[dialled(both(HOST), OTHER), dialled(both(OTHER), HOST)].concat());
}

#[test]
fn g5_the_request_names_the_dialled_host_and_tls_another() {
    let both = |name: &str, tls: &str| {
        [
            Said::one(name, &[&get(name)]),
            Said::two(name, &fields(name, "/page"), &[]),
        ]
        .map(|said| said.asking_for(Some(tls)))
    };
    nothing_goes_out(&[both(HOST, OTHER), both(OTHER, HOST)].concat());
}

#[test]
fn g5_tls_asks_for_no_name() {
    let nameless = Said::one(HOST, &[&get(HOST)]).asking_for(None);
    nothing_goes_out(&[nameless]);
    // No server speaks HTTP/2 with those.
    let bound = Bound::new();
    let nameless = Said::two(HOST, &fields(HOST, "/page"), &[]).asking_for(None);
    let (_, heard) = bound.say(&two_secrets(&bound), &[nameless]);
    assert_ne!(heard[0].status, 200, "{heard:?}");
    assert!(!bound.net().saw(SECRET));
}

#[test]
fn g5_the_certificate_is_of_another_name() {
    for certificate in [
        Certificate::For(OTHER.to_owned()),
        Certificate::For("*.test".to_owned()),
        Certificate::For("my-service.test".to_owned()),
    ] {
        is_refused(&certificate);
    }
}

#[test]
fn g5_the_certificate_is_not_valid() {
    for certificate in [
        Certificate::Expired,
        Certificate::NotYetValid,
        Certificate::SelfSigned,
        Certificate::OfStranger,
        Certificate::Malformed,
    ] {
        is_refused(&certificate);
    }
}

/// Fails the test unless a server with this certificate gets nothing.
#[track_caller]
fn is_refused(certificate: &Certificate) {
    let bound = Bound::new();
    let web = Web::new().certificate(certificate.clone());
    bound.net().web(HOST, web);
    let flags = two_secrets(&bound);
    for version in ["--http1.1", "--http2"] {
        for way in ["", "--noproxy '*'"] {
            let script = format!("curl -sS -i {version} {way} https://{HOST}/; :");
            bound.outside(&script.replace("curl", "curl --insecure"));
            // No client takes what is no certificate at all.
            let is_taken = *certificate != Certificate::Malformed;
            assert_eq!(bound.saw(HOST, "GET "), is_taken, "{certificate:?}");
            let run = bound.run(&flags, &script).expect_code(0);
            let shown = run.stdout();
            assert!(shown.contains(" 502"), "{certificate:?}: {:?}", run.outcome);
            assert!(
                shown.contains("upstream-certificate"),
                "{certificate:?}: {shown}"
            );
            assert!(!bound.saw(HOST, "GET ") && !bound.net().saw(SECRET));
            let told = run.told();
            let is_told = told
                .iter()
                .any(|one| one.ends_with(" upstream-certificate"));
            assert!(is_told, "{certificate:?}: {told:?}");
        }
    }
}

/// The name leads to a server of somebody else, who has no certificate for it.
#[test]
fn g5_the_name_leads_elsewhere() {
    let bound = Bound::new();
    bound
        .net()
        .zone()
        .set(HOST, ringfence_testkit::place::THIRD_PUBLIC);
    bound.net().web(
        HOST,
        Web::new().certificate(Certificate::For("else.test".into())),
    );
    let run = bound.run(
        &two_secrets(&bound),
        &format!("curl -sS -i https://{HOST}/"),
    );
    assert!(
        run.stdout().contains("upstream-certificate"),
        "{:?}",
        run.outcome
    );
    assert!(!bound.net().saw(SECRET));
}
