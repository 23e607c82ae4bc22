//! Values of the headers that say how long a message and a connection last.

use super::head::Version;

/// What `Connection` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ConnectionOptions {
    close: bool,
    keep_alive: bool,
    pub(crate) upgrade: bool,
    /// Names headers that are meant for the next hop only.
    pub(crate) names_headers: bool,
}

/// Whether a connection is kept after a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Persistence {
    Keep,
    Close,
}

impl ConnectionOptions {
    /// Takes one member of the list into account.
    pub(crate) fn read(&mut self, token: &[u8]) {
        let option = match token.len() {
            5 if token.eq_ignore_ascii_case(b"close") => &mut self.close,
            7 if token.eq_ignore_ascii_case(b"upgrade") => &mut self.upgrade,
            10 if token.eq_ignore_ascii_case(b"keep-alive") => &mut self.keep_alive,
            _ => &mut self.names_headers,
        };
        *option = true;
    }

    pub(crate) fn persistence(self, version: Version) -> Persistence {
        match version {
            _ if self.close => Persistence::Close,
            Version::Http10 if !self.keep_alive => Persistence::Close,
            _ => Persistence::Keep,
        }
    }
}

/// The members of a comma-separated list, without blanks around them.
pub(crate) fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

/// Whether `token` is one of `names`, in any case.
pub(crate) fn is_one_of(token: &[u8], names: &[&str]) -> bool {
    names
        .iter()
        .any(|name| token.eq_ignore_ascii_case(name.as_bytes()))
}

/// A length in plain decimal: no sign, no list, no blanks, no overflow.
pub(crate) fn content_length(value: &[u8]) -> Option<u64> {
    let plain = !value.is_empty() && value.len() <= 18 && value.iter().all(u8::is_ascii_digit);
    if !plain {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_plain_decimal() {
        assert_eq!(content_length(b"0"), Some(0));
        assert_eq!(content_length(b"0042"), Some(42));
        assert_eq!(
            content_length(b"999999999999999999"),
            Some(999_999_999_999_999_999)
        );
        for value in [
            "",
            "+5",
            "-5",
            " 5",
            "5 ",
            "5x",
            "0x5",
            "5,5",
            "5, 5",
            "5.0",
            "1e3",
            "５",
            "18446744073709551616",
            "0000000000000000005",
        ] {
            assert_eq!(content_length(value.as_bytes()), None, "{value:?}");
        }
    }

    #[test]
    fn connections_are_kept_by_version_and_option() {
        for (value, old, new) in [
            ("", Persistence::Close, Persistence::Keep),
            ("Keep-Alive", Persistence::Keep, Persistence::Keep),
            ("close", Persistence::Close, Persistence::Close),
            ("close, keep-alive", Persistence::Close, Persistence::Close),
            (
                "keep-alive,\tClose ",
                Persistence::Close,
                Persistence::Close,
            ),
            ("closed", Persistence::Close, Persistence::Keep),
        ] {
            let mut options = ConnectionOptions::default();
            tokens(value.as_bytes()).for_each(|token| options.read(token));
            assert_eq!(options.persistence(Version::Http10), old, "{value}");
            assert_eq!(options.persistence(Version::Http11), new, "{value}");
        }
    }
}
