//! What clients of the loopback proxies show, against what is wanted.

use data_encoding::BASE64;

use crate::exit::ProxyToken;

/// Longer than any password that is handed out.
const LONGEST: usize = 1024;

/// Whether `password` is the one. Takes the same time for every wrong one of
/// the same length.
pub(crate) fn is_password(token: &ProxyToken, password: &[u8]) -> bool {
    let wanted = token.password.as_bytes();
    let differences = wanted
        .iter()
        .zip(password)
        .fold(0, |differences, (own, other)| differences | (own ^ other));
    std::hint::black_box(differences) == 0 && wanted.len() == password.len()
}

/// Whether a `Proxy-Authorization` value shows the password; any user name will
/// do.
pub(crate) fn is_authorized(token: &ProxyToken, value: Option<&[u8]>) -> bool {
    let shown = value.and_then(basic_password);
    shown.is_some_and(|password| is_password(token, &password))
}

fn basic_password(value: &[u8]) -> Option<Vec<u8>> {
    let (scheme, encoded) = value.split_at_checked(b"Basic ".len())?;
    if !scheme.eq_ignore_ascii_case(b"Basic ") || encoded.len() > LONGEST {
        return None;
    }
    let mut pair = BASE64.decode(encoded.trim_ascii()).ok()?;
    let colon = pair.iter().position(|byte| *byte == b':')?;
    Some(pair.split_off(colon + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> ProxyToken {
        ProxyToken {
            realm: "ringfence",
            password: "s3:cret".to_owned(),
        }
    }

    #[test]
    fn any_user_with_the_password_is_let_in() {
        for pair in ["me:s3:cret", ":s3:cret"] {
            for scheme in ["Basic ", "basic  "] {
                let value = format!("{scheme}{}", BASE64.encode(pair.as_bytes()));
                assert!(is_authorized(&token(), Some(value.as_bytes())), "{value}");
            }
        }
    }

    #[test]
    fn nobody_else_is() {
        assert!(!is_authorized(&token(), None));
        for pair in ["me:", "me:s3:cre", "me:s3:cret2", "me:S3:cret", "s3", ""] {
            let value = format!("Basic {}", BASE64.encode(pair.as_bytes()));
            assert!(!is_authorized(&token(), Some(value.as_bytes())), "{pair}");
        }
        for value in [
            "",
            "Basic",
            "Basic !",
            "Bearer bWU6czM6Y3JldA==",
            "bWU6czM6Y3JldA==",
        ] {
            assert!(!is_authorized(&token(), Some(value.as_bytes())), "{value}");
        }
    }
}
