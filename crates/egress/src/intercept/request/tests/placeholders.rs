//! Placeholders that go where their secret does not belong.

use data_encoding::{BASE64, HEXLOWER};
use http::HeaderValue;

use super::*;
use crate::intercept::testing::{H1, H2, text};
use crate::testing::run;

fn encoded(text: &str) -> String {
    let all = text.bytes().map(percent_encoding::percent_encode_byte);
    all.collect()
}

#[test]
fn g5_a_placeholder_in_another_hosts_request_is_refused() {
    run(async {
        let other = OTHER_PLACEHOLDER;
        let shifted = BASE64.encode(format!("user:{other}").as_bytes());
        for alpn in [H1, H2] {
            for (path, header) in [
                (format!("/?key={other}"), String::new()),
                (format!("/{other}/x"), String::new()),
                (format!("/?key={}", encoded(other)), String::new()),
                ("/".to_owned(), format!("Bearer {other}")),
                ("/".to_owned(), format!("Basic {shifted}")),
                ("/".to_owned(), HEXLOWER.encode(other.as_bytes())),
            ] {
                let stage = Stage::new("bearer: true").await.serving(alpn);
                let mut client = stage.client(alpn).await;
                let mut request = stage.request(&client, &path);
                let value = HeaderValue::try_from(&header).unwrap();
                request.headers_mut().insert("x-any", value);
                let response = client.send(request).await.unwrap();
                assert_eq!(response.status(), 403, "{path} {header}");
                let reason = &response.headers()["x-ringfence-reason"];
                assert_eq!(reason, "placeholder-elsewhere");
                assert_eq!(stage.refused(), ["placeholder-elsewhere"]);
                assert!(stage.is_untouched() && !stage.vault.was_asked());
            }
        }
    });
}

#[test]
fn g5_the_placeholder_of_a_bound_host_goes_to_no_other() {
    run(async {
        let stage = Stage::new("bearer: true").await;
        stage.rig.serve(Shown::For("b.test"), H1);
        let mut client = stage.rig.client("b.test", H1).await;
        let port = stage.rig.yard.port;
        let mut request = client.request("b.test", port, "/");
        let value = HeaderValue::try_from(format!("Bearer {PLACEHOLDER}")).unwrap();
        request.headers_mut().insert("authorization", value);
        let response = client.send(request).await.unwrap();
        assert_eq!(response.status(), 403);
        assert!(stage.is_untouched());
        let (status, page) = client.get("b.test", port, "/").await;
        assert_eq!(status, 200);
        assert!(!page.contains("authorization"), "{page}");
    });
}

#[test]
fn g5_a_body_is_cut_before_it_gives_a_placeholder_away() {
    run(async {
        for alpn in [H1, H2] {
            let stage = Stage::new("bearer: true").await.serving(alpn);
            let mut client = stage.client(alpn).await;
            let parts = ["some text rf-zyxwvuts", "rqponmlkjihgfed", "cba987654 more"];
            let request = post(&client, stage.rig.yard.port, "/", frames(&parts));
            // Depending on how far the server is, it is refused or cut.
            if let Ok(response) = client.send(request).await {
                let refused = response.status() == 403;
                let page = http_body_util::BodyExt::collect(response.into_body()).await;
                if let Ok(page) = page {
                    assert!(refused);
                    let page = String::from_utf8(page.to_bytes().to_vec()).unwrap();
                    assert!(!page.contains(OTHER_PLACEHOLDER), "{page}");
                }
            }
            assert_eq!(stage.refused(), ["placeholder-elsewhere"], "{alpn:?}");
        }
    });
}

#[test]
fn what_only_looks_like_a_placeholder_passes() {
    run(async {
        let stage = Stage::new("bearer: true").await.serving(H1);
        let mut client = stage.client(H1).await;
        let parts = ["rf-zyxwvutsrqponmlkjihgfedcba98765", "x and more rf-"];
        let request = post(&client, stage.rig.yard.port, "/", frames(&parts));
        let page = text(client.send(request).await.unwrap()).await;
        assert_eq!(page, parts.concat());
    });
}
