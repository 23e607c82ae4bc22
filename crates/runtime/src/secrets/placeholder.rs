//! What stands for secrets inside: one text per credential and sandbox, of no
//! use anywhere else.

use ringfence_egress::Placeholder;
use ringfence_policy::{Credential, Sourced};
use rustix::io::Errno;

use super::random;

/// By which people know them.
const PREFIX: &str = "rf-";
const RANDOM_BYTES: usize = 16;

/// One for each credential. They have no character that percent-encoding, JSON
/// or a shell writes otherwise, so that they are found again in what is sent.
pub(crate) fn placeholders(credentials: &[Sourced<Credential>]) -> Result<Vec<Placeholder>, Errno> {
    let placeholder = |credential: &Sourced<Credential>| {
        Ok(Placeholder {
            service: credential.service.clone(),
            text: text()?,
        })
    };
    credentials.iter().map(placeholder).collect()
}

fn text() -> Result<String, Errno> {
    let random: [u8; RANDOM_BYTES] = random::bytes()?;
    let digits = u128::from_be_bytes(random);
    Ok(format!("{PREFIX}{digits:032x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g5_placeholders_are_plain_and_never_the_same() {
        let (one, other) = (text().unwrap(), text().unwrap());
        assert_ne!(one, other);
        for text in [one, other] {
            let digits = text.strip_prefix(PREFIX).unwrap();
            assert_eq!(digits.len(), 32);
            let is_plain = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
            assert!(digits.chars().all(is_plain), "{text}");
        }
    }
}
