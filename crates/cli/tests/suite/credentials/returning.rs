//! What comes back has nothing of the secret in it, in any form and coding.

use super::{BEARER, Bound, HOST, leak, placeholder};

const ASK: &str =
    "curl -sS -i --suppress-connect-headers -m 60 -H \"Authorization: Bearer $API_TOKEN\"";

impl Bound {
    /// Asks for a page: on the host it shows the secret, inside what stands
    /// for it. Returns what came inside.
    #[track_caller]
    fn scrubs(&self, words: &str, path: &str) -> String {
        let script = format!("{ASK} {words} https://{HOST}/{path}");
        let outside = self.outside(&script).expect_code(0);
        assert!(leak(&outside.stdout).is_some(), "{script}: {outside:?}");
        let script = format!("{script}; echo; echo token=$API_TOKEN");
        // Which fails the test if there is anything of the secret in it.
        let run = self.run(&self.policy(BEARER), &script).expect_code(0);
        assert!(super::clients::arrived(self), "{script}: {:?}", run.outcome);
        // A piece of three bytes may be the start of anything.
        let is_shown = run.stdout().matches(placeholder(&run)).count() > 1;
        assert!(is_shown, "{script}: {}", run.stdout());
        run.stdout().to_owned()
    }
}

#[test]
fn g5_every_form_in_bodies_and_headers() {
    let bound = Bound::new();
    for version in ["--http1.1", "--http2"] {
        let shown = bound.scrubs(version, "forms");
        for name in ["x-raw: ", "x-base64: ", "set-cookie: seen=", "raw ", "hex "] {
            assert!(shown.contains(name), "{name}: {shown}");
        }
    }
}

#[test]
fn g5_every_coding() {
    let bound = Bound::new();
    for coding in [
        "identity",
        "gzip",
        "deflate",
        "br",
        "zstd",
        "gzip,identity",
        "gzip,br",
    ] {
        for version in ["--http1.1", "--http2"] {
            let words = format!("{version} --compressed");
            let shown = bound.scrubs(&words, &format!("encoded/{coding}"));
            assert!(shown.contains(" 998 999\n"), "{coding}: {shown}");
        }
    }
}

/// Clients read what is before it.
#[test]
fn g5_g11_what_follows_gzip_is_left_out() {
    let bound = Bound::new();
    let script = format!(
        "/usr/bin/python3 -c 'import requests; \
         print(requests.get(\"https://{HOST}/encoded/gzip-filled\").text)'"
    );
    let outside = bound.outside(&script).expect_code(0).stdout;
    assert!(outside.ends_with(" 998 999\n\n"), "{outside}");
    let run = bound.run(&bound.policy(BEARER), &script).expect_code(0);
    assert!(run.stdout().ends_with(" 998 999\n\n"), "{}", run.stdout());
    assert!(super::clients::arrived(&bound), "{}", run.stdout());
    assert_eq!(super::leak(run.stdout()), None);
}

/// Some servers send it so, and some clients read it.
#[test]
fn deflate_without_its_frame() {
    let bound = Bound::new();
    let script = format!("{ASK} --compressed https://{HOST}/encoded/deflate-raw");
    let run = bound.run(&bound.policy(BEARER), &script).expect_code(0);
    assert!(super::clients::arrived(&bound), "{}", run.stdout());
}

#[test]
fn g5_a_coding_that_is_unknown_or_broken_is_not_passed() {
    let bound = Bound::new();
    for path in [
        "claims/compress",
        "claims/x-unknown",
        "claims/gzip",
        "claims/br",
        "claims/zstd",
        "claims/gzip,gzip,gzip,gzip",
    ] {
        for version in ["--http1.1", "--http2"] {
            let script = format!("{ASK} {version} https://{HOST}/{path}");
            let run = bound.run(&bound.policy(BEARER), &script);
            assert!(super::clients::arrived(&bound), "{path}");
            assert!(
                !run.stdout().contains("body_bytes"),
                "{path}: {}",
                run.stdout()
            );
        }
    }
}

#[test]
fn g5_bodies_in_pieces_of_any_length() {
    let bound = Bound::new();
    for version in ["--http1.1", "--http2"] {
        for length in [1, 2, 3, 5, 8, 13, 31] {
            bound.scrubs(version, &format!("split/{length}"));
        }
    }
}

#[test]
fn g5_trailers() {
    let bound = Bound::new();
    let shown = bound.scrubs("--http1.1 --raw -H TE:trailers", "trailers");
    assert!(shown.contains("x-end: yes"), "{shown}");
    assert!(shown.contains("x-came: Bearer "), "{shown}");
}

/// Each event is sent only after the one before it was seen.
#[test]
fn g5_events_come_when_they_are_sent() {
    let bound = Bound::new();
    for version in ["--http1.1", "--http2"] {
        let stream = format!("{ASK} {version} -N https://{HOST}/events/{}", &version[2..]);
        let next = format!(
            "curl -sSf -m 60 https://{HOST}/events/{}/next",
            &version[2..]
        );
        let script = format!(
            "{stream} | while read -r line; do echo \"$line\"; \
             case $line in data:*) {next} > opened;; esac; done; echo token=$API_TOKEN"
        );
        let outside = bound.outside(&script).expect_code(0).stdout;
        assert!(
            leak(&outside).is_some() && outside.contains("data: 3 "),
            "{outside}"
        );
        let run = bound.run(&bound.policy(BEARER), &script).expect_code(0);
        for number in 1..=3 {
            let event = format!("data: {number} Bearer {}", placeholder(&run));
            assert!(run.stdout().contains(&event), "{event}: {}", run.stdout());
        }
    }
}

#[test]
fn g5_messages_of_a_websocket() {
    let bound = Bound::new();
    let script = format!("/usr/bin/python3 socket_talk.py wss://{HOST}/socket/ hello");
    let outside = bound.outside(&script).expect_code(0).stdout;
    assert!(leak(&outside).is_some(), "{outside}");
    let run = bound.run(&bound.policy(BEARER), &script).expect_code(0);
    assert!(super::clients::arrived(&bound));
    assert!(run.stdout().starts_with("Bearer ") && run.stdout().ends_with("\nhello\n"));
}

/// A value could be fetched letter by letter.
#[test]
fn g5_nothing_is_asked_for_in_parts() {
    let bound = Bound::new();
    for version in ["--http1.1", "--http2"] {
        let script = format!("{ASK} {version} -r 0-3 -H 'If-Range: x' https://{HOST}/");
        bound.run(&bound.policy(BEARER), &script).expect_code(0);
        assert!(super::clients::arrived(&bound));
        assert!(
            !bound.net().saw("range: "),
            "{:?}",
            bound.net().connections()
        );
    }
}

#[test]
fn g5_the_server_is_asked_only_for_codings_that_can_be_read() {
    let bound = Bound::new();
    let words = "-H 'Accept-Encoding: gzip, compress, x-unknown, br;q=0.5, dcb, *'";
    let script = format!("{ASK} {words} https://{HOST}/");
    bound.run(&bound.policy(BEARER), &script).expect_code(0);
    assert!(super::clients::arrived(&bound));
    for word in ["compress", "x-unknown", "dcb", "*\r"] {
        let connections = bound.net().connections();
        let mut heads = connections.iter().flat_map(|one| &one.saw);
        let asked = heads.any(|head| {
            head.lines()
                .any(|line| line.starts_with("accept-encoding") && line.contains(word))
        });
        assert!(!asked, "{word}: {connections:?}");
    }
}

#[test]
fn heads_without_bodies_are_answered() {
    let bound = Bound::new();
    for version in ["--http1.1", "--http2"] {
        for (words, path, status) in [
            ("-I", "forms", "200"),
            ("", "status/204", "204"),
            ("", "status/304", "304"),
            ("", "status/404", "404"),
        ] {
            let script = format!("{ASK} {version} {words} https://{HOST}/{path}");
            let run = bound.run(&bound.policy(BEARER), &script).expect_code(0);
            let first = run.stdout().lines().next().unwrap_or_default();
            assert!(first.contains(status), "{script}: {}", run.stdout());
            assert!(super::clients::arrived(&bound), "{script}");
        }
    }
}

#[test]
fn an_upload_waits_until_the_server_wants_it() {
    let bound = Bound::new();
    bound.host.write("upload", &"x".repeat(300_000));
    for version in ["--http1.1", "--http2"] {
        let words = format!("{version} -H 'Expect: 100-continue' --expect100-timeout 60 -T upload");
        let script = format!("{ASK} {words} https://{HOST}/");
        let run = bound.run(&bound.policy(BEARER), &script).expect_code(0);
        assert!(
            run.stdout().contains("\"body_bytes\":300000"),
            "{}",
            run.stdout()
        );
        assert!(super::clients::arrived(&bound));
    }
    let words = "--http1.1 -H 'Expect: 100-continue' --expect100-timeout 60 -T upload";
    let script = format!("{ASK} {words} https://{HOST}/early/413");
    let run = bound.run(&bound.policy(BEARER), &script);
    assert!(run.stdout().contains(" 413 "), "{:?}", run.outcome);
}
