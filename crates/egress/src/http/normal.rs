//! Targets in the form in which their paths are judged: what was judged is
//! what is sent, so that the server reads the same.

use ringfence_policy::{HttpPath, judges_paths};

use crate::attempt::Attempt;
use crate::exit::Exit;

/// The target of a request in its normal form, if the policy judges paths
/// where the request goes.
pub(super) fn judged_target(exit: &Exit, attempt: &Attempt) -> Option<String> {
    let seen = attempt.http.as_ref()?;
    let judges = judges_paths(&exit.policy(), &attempt.request());
    judges.then(|| normal_target(&seen.path)).flatten()
}

/// The target with its path in normal form; `None` for a path that has none.
pub(crate) fn normal_target(target: &str) -> Option<String> {
    let path = HttpPath::normalise(target).ok()?.to_target();
    Some(match target.split_once('?') {
        Some((_, query)) => format!("{path}?{query}"),
        None => path,
    })
}

/// Puts another target into the first line of a head.
pub(super) fn set_target(head: &mut Vec<u8>, target: &str) {
    let is_space = |byte: &u8| *byte == b' ';
    let Some(start) = head.iter().position(is_space).map(|at| at + 1) else {
        return;
    };
    if let Some(length) = head[start..].iter().position(is_space) {
        head.splice(start..start + length, target.bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_path_changes_its_form() {
        for (target, normal) in [
            ("/v1/a/../b", "/v1/b"),
            ("//v1/%62?x=/../y?z", "/v1/b?x=/../y?z"),
            ("/?", "/?"),
        ] {
            assert_eq!(normal_target(target).as_deref(), Some(normal), "{target}");
        }
    }

    #[test]
    fn a_target_is_replaced_and_nothing_else() {
        let mut head = b"GET /a/../b HTTP/1.1\r\nX: a b\r\n\r\n".to_vec();
        set_target(&mut head, "/b");
        assert_eq!(head, b"GET /b HTTP/1.1\r\nX: a b\r\n\r\n");
        let mut broken = b"GET".to_vec();
        set_target(&mut broken, "/b");
        assert_eq!(broken, b"GET");
    }
}
