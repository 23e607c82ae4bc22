//! What is attached, to what, and what is left alone.

use data_encoding::BASE64;
use http::HeaderValue;

use super::*;
use crate::intercept::testing::{H1, H2, text};
use crate::testing::run;

/// The secret as it stands in a URL.
const IN_URL: &str = "s3cret-Value%2F0123%2B4567";
/// With every byte escaped.
const ESCAPED: &str = "%73%33%63%72%65%74%2D%56%61%6C%75%65%2F%30%31%32%33%2B%34%35%36%37";

#[test]
fn g5_each_kind_of_credential_is_put_where_it_belongs() {
    run(async {
        let basic = BASE64.encode(format!("me:{SECRET}").as_bytes());
        for alpn in [H1, H2] {
            for (how, name, want) in [
                ("bearer: true", "authorization", format!("Bearer {SECRET}")),
                (
                    "header: X-Key, format: \"key=%s;\"",
                    "x-key",
                    format!("key={SECRET};"),
                ),
                (
                    "basic: {username: me}",
                    "authorization",
                    format!("Basic {basic}"),
                ),
            ] {
                let stage = Stage::new(how).await.serving(alpn);
                let mut client = stage.client(alpn).await;
                let (status, _) = client.get("a.test", stage.rig.yard.port, "/x").await;
                assert_eq!(status, 200);
                assert_eq!(stage.last().headers[name], want, "{how}");
                let noted = stage.rig.yard.credentials();
                assert!(
                    noted[0].as_ref().unwrap().starts_with("forge ("),
                    "{noted:?}"
                );
            }
            let stage = Stage::new("query: key").await.serving(alpn);
            let mut client = stage.client(alpn).await;
            client.get("a.test", stage.rig.yard.port, "/x?a=1").await;
            assert_eq!(stage.last().target, format!("/x?a=1&key={IN_URL}"));
        }
    });
}

#[test]
fn g5_what_a_later_policy_binds_does_not_leave_a_run_without_credentials() {
    run(async {
        let answer = |_: Request<Incoming>| says("reached".to_owned());
        let rig = Rig::under(
            |port| policy(port, "bearer: true"),
            Settings::default(),
            Box::new(answer),
        )
        .await;
        rig.serve(A, H1);
        let mut client = rig.client("a.test", H1).await;
        let (status, body) = client.get("a.test", rig.yard.port, "/").await;
        assert_eq!(status, 502, "{body}");
        assert!(body.contains("started without credentials"), "{body}");
        assert_eq!(rig.refused(), ["credential-unavailable"]);
    });
}

#[test]
fn g5_what_a_request_carries_itself_is_left_alone_unless_told() {
    run(async {
        let own = "Bearer of-the-client-itself";
        for (how, sent, want) in [
            ("bearer: true", own.to_owned(), own.to_owned()),
            ("bearer: true, replace: true", own.to_owned(), bearer()),
            ("bearer: true", format!("Bearer {PLACEHOLDER}"), bearer()),
            ("bearer: true", format!("token {PLACEHOLDER}"), bearer()),
            ("bearer: true", basic(PLACEHOLDER), bearer()),
            (
                "substitute: {}",
                format!("token {PLACEHOLDER}"),
                format!("token {SECRET}"),
            ),
            ("substitute: {}", basic(PLACEHOLDER), basic(SECRET)),
            ("substitute: {}", own.to_owned(), own.to_owned()),
        ] {
            let stage = Stage::new(how).await.serving(H1);
            let mut client = stage.client(H1).await;
            let mut request = stage.request(&client, "/");
            let value = HeaderValue::try_from(&sent).unwrap();
            request.headers_mut().insert("authorization", value);
            let response = client.send(request).await.unwrap();
            assert_eq!(response.status(), 200, "{how} {sent}");
            assert_eq!(stage.last().headers["authorization"], want, "{how} {sent}");
            let attached = want != sent;
            assert_eq!(stage.rig.yard.credentials()[0].is_some(), attached);
        }
        for (how, sent, want) in [
            ("query: key", "/?key=own", "/?key=own".to_owned()),
            (
                "query: key, replace: true",
                "/?key=own",
                format!("/?key={IN_URL}"),
            ),
            (
                "query: key",
                "/?key=rf-0123456789abcdefghijklmnopqrstuv",
                format!("/?key={IN_URL}"),
            ),
            (
                "substitute: {}",
                "/bot-rf-0123456789abcdefghijklmnopqrstuv/x",
                format!("/bot-{ESCAPED}/x"),
            ),
        ] {
            let stage = Stage::new(how).await.serving(H1);
            let mut client = stage.client(H1).await;
            client.get("a.test", stage.rig.yard.port, sent).await;
            assert_eq!(stage.last().target, want, "{how} {sent}");
        }
    });
}

fn bearer() -> String {
    format!("Bearer {SECRET}")
}

fn basic(password: &str) -> String {
    format!(
        "Basic {}",
        BASE64.encode(format!("x:{password}").as_bytes())
    )
}

#[test]
fn g5_a_rotated_secret_takes_effect_with_the_next_request() {
    run(async {
        for alpn in [H1, H2] {
            let stage = Stage::new("bearer: true").await.serving(alpn);
            let mut client = stage.client(alpn).await;
            for value in ["first-value-of-it", "second-value-of-it"] {
                stage.vault.holds("forge", value);
                client.get("a.test", stage.rig.yard.port, "/").await;
                let want = format!("Bearer {value}");
                assert_eq!(stage.last().headers["authorization"], want);
            }
            // The one before stays hidden.
            let mut request = stage.request(&client, "/");
            let own = HeaderValue::from_static("first-value-of-it");
            request.headers_mut().insert("x-told", own);
            let page = text(client.send(request).await.unwrap()).await;
            assert!(!page.contains("first-value"), "{page}");
            assert_eq!(stage.rig.accepted.get(), 1);
        }
    });
}

#[test]
fn g5_without_its_secret_a_request_does_not_leave() {
    run(async {
        let failed = SecretError::Failed("no such file".to_owned());
        for value in [
            Err(failed),
            Ok("one\r\nX-Two: three"),
            Ok("nul\0in-the-middle"),
            Ok("short"),
        ] {
            for alpn in [H1, H2] {
                let stage = Stage::new("bearer: true").await.serving(alpn);
                let values = &stage.vault.values;
                values.lock().unwrap().insert("forge", value.clone());
                let mut client = stage.client(alpn).await;
                let mut request = stage.request(&client, "/");
                let own = HeaderValue::try_from(format!("Bearer {PLACEHOLDER}")).unwrap();
                request.headers_mut().insert("authorization", own);
                let response = client.send(request).await.unwrap();
                assert_eq!(response.status(), 502);
                let reason = &response.headers()["x-ringfence-reason"];
                assert_eq!(reason, "credential-unavailable");
                let page = text(response).await;
                assert!(page.contains("forge") && !page.contains("three"), "{page}");
                assert_eq!(stage.refused(), ["credential-unavailable"]);
                assert!(stage.is_untouched());
            }
        }
    });
}

#[test]
fn g5_a_binding_by_method_and_path_covers_no_other_request() {
    run(async {
        let how = "bearer: true, methods: [GET], paths: [\"/v1/**\"]";
        for (method, path, sent, attached) in [
            ("GET", "/v1/x", "/v1/x", true),
            ("POST", "/v1/x", "/v1/x", false),
            ("GET", "/v2/x", "/v2/x", false),
            ("GET", "/v1/../v2/x", "/v2/x", false),
            ("GET", "/v2/%2e%2e/v1//x?q=/../", "/v1/x?q=/../", true),
            ("GET", "/v1/a%2fb", "/v1/a%2fb", false),
        ] {
            let stage = Stage::new(how).await.serving(H1);
            let mut client = stage.client(H1).await;
            let mut request = stage.request(&client, path);
            *request.method_mut() = method.parse().unwrap();
            let response = client.send(request).await.unwrap();
            assert_eq!(response.status(), 200, "{method} {path}");
            let got = stage.last();
            assert_eq!(got.target, sent, "{method} {path}");
            assert_eq!(
                got.headers.contains_key("authorization"),
                attached,
                "{method} {path}"
            );
        }
    });
}

#[test]
fn g6_a_reload_takes_the_credential_away_from_a_kept_connection() {
    run(async {
        let stage = Stage::new("bearer: true").await.serving(H2);
        let mut client = stage.client(H2).await;
        let port = stage.rig.yard.port;
        client.get("a.test", port, "/").await;
        assert!(stage.last().headers.contains_key("authorization"));
        let without = crate::testing::policy(&inspected(port));
        stage.rig.yard.exit.replace_policy(without);
        let (status, _) = client.get("a.test", port, "/").await;
        assert_eq!(status, 200);
        assert!(!stage.last().headers.contains_key("authorization"));
    });
}

#[test]
fn g5_in_clear_only_a_port_of_this_host_gets_a_credential() {
    run(async {
        let host = "host.ringfence.internal";
        let stage = Stage::under(|port| {
            policy_of(&format!(
                "version: 1\nnetwork:\n  hostPorts: [{port}]\n  allow:\n    \
                 - {{host: a.test, ports: [{port}]}}\n    - {}\n\
                 credentials:\n  - {{service: forge, env: FORGE_TOKEN, hosts: [{host}], \
                 ports: [{port}], scheme: http, bearer: true}}\n",
                crate::testing::here(port)
            ))
        });
        let stage = stage.await;
        for (name, attached) in [(host, true), ("a.test", false)] {
            let mut client = stage.rig.yard.dialled(name).await;
            let port = stage.rig.yard.port;
            let asks = format!("GET / HTTP/1.1\r\nHost: {name}:{port}\r\n\r\n");
            crate::testing::send(&mut client, &asks).await;
            let mut server = stage.rig.yard.accept().await;
            let head = crate::testing::head(&mut server).await;
            assert_eq!(head.contains(SECRET), attached, "{head}");
            let echo = format!("X-Echo: {SECRET}\r\nContent-Length: 0");
            let answer = format!("HTTP/1.1 200 OK\r\n{echo}\r\n\r\n");
            crate::testing::send(&mut server, &answer).await;
            let answer = crate::testing::head(&mut client).await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            assert_eq!(answer.contains(PLACEHOLDER), attached, "{answer}");
        }
    });
}

#[test]
fn g5_what_stands_before_a_placeholder_takes_nothing_of_the_secret() {
    run(async {
        for (target, header) in [
            (format!("/?a=%4{PLACEHOLDER}"), String::new()),
            (format!("/?a=%81{PLACEHOLDER}"), String::new()),
            (format!("/?a=\\u004{PLACEHOLDER}"), String::new()),
            ("/".to_owned(), format!("a=%4{PLACEHOLDER}")),
            ("/".to_owned(), format!("a=\"\\{PLACEHOLDER}\"")),
            ("/".to_owned(), basic(&format!("\\u004{PLACEHOLDER}"))),
        ] {
            let stage = Stage::new("substitute: {}").await.serving(H1);
            let mut client = stage.client(H1).await;
            let mut request = stage.request(&client, &target);
            let value = HeaderValue::try_from(&header).unwrap();
            request.headers_mut().insert("authorization", value);
            let response = client.send(request).await.unwrap();
            assert_eq!(response.status(), 502, "{target} {header}");
            assert!(stage.is_untouched(), "{target} {header}");
            assert_eq!(stage.refused(), ["credential-unavailable"]);
        }
    });
}
