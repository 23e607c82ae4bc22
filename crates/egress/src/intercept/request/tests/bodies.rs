//! Secrets that go into bodies.

use super::*;
use crate::intercept::testing::{H1, H2, text};
use crate::testing::run;

const IN_BODIES: &str = "substitute: {body: true}";
const LIMIT: usize = 1024 * 1024;

#[test]
fn g5_a_placeholder_in_a_body_becomes_the_secret_where_that_is_declared() {
    run(async {
        for alpn in [H1, H2] {
            let got: Rc<RefCell<Vec<Incoming>>> = Rc::default();
            let keep = Rc::clone(&got);
            let stage = Stage::answering(IN_BODIES, move |request| {
                keep.borrow_mut().push(request.into_body());
                says("kept")
            });
            let stage = stage.await.serving(alpn);
            let mut client = stage.client(alpn).await;
            let parts = ["{\"token\":\"rf-0123456789abcdef", "ghijklmnopqrstuv\"}"];
            let request = post(&client, stage.rig.yard.port, "/", frames(&parts));
            let response = client.send(request).await.unwrap();
            assert_eq!(response.status(), 200);
            let body = got.borrow_mut().pop().unwrap();
            let body = http_body_util::BodyExt::collect(body).await.unwrap();
            assert_eq!(body.to_bytes(), format!("{{\"token\":\"{SECRET}\"}}"));
            assert!(stage.rig.yard.credentials()[0].is_some());
        }
    });
}

#[test]
fn a_body_without_the_placeholder_needs_no_secret() {
    run(async {
        let stage = Stage::new(IN_BODIES).await.serving(H1);
        let mut client = stage.client(H1).await;
        let request = post(
            &client,
            stage.rig.yard.port,
            "/",
            frames(&["plain", " text"]),
        );
        let page = text(client.send(request).await.unwrap()).await;
        assert_eq!(page, "plain text");
        assert!(!stage.vault.was_asked());
    });
}

#[test]
fn g5_a_body_over_the_limit_is_refused_and_not_passed() {
    run(async {
        for alpn in [H1, H2] {
            for (size, status) in [(LIMIT, 200), (LIMIT + 1, 413)] {
                for announced in [true, false] {
                    let stage = Stage::new(IN_BODIES).await.serving(alpn);
                    let mut client = stage.client(alpn).await;
                    let text: &'static str = "x".repeat(size).leak();
                    let body = if announced {
                        LocalBody::full(text)
                    } else {
                        frames(&[text])
                    };
                    let request = post(&client, stage.rig.yard.port, "/", body);
                    let response = client.send(request).await.unwrap();
                    assert_eq!(response.status(), status, "{alpn:?} {size} {announced}");
                    assert_eq!(stage.is_untouched(), status == 413);
                }
            }
        }
    });
}

#[test]
fn g5_another_placeholder_in_a_body_that_is_read_is_refused() {
    run(async {
        let stage = Stage::new(IN_BODIES).await.serving(H1);
        let mut client = stage.client(H1).await;
        let body = frames(&["rf-zyxwvutsrqponml", "kjihgfedcba987654"]);
        let request = post(&client, stage.rig.yard.port, "/", body);
        let response = client.send(request).await.unwrap();
        assert_eq!(response.status(), 403);
        assert_eq!(stage.refused(), ["placeholder-elsewhere"]);
        assert!(stage.is_untouched());
    });
}
