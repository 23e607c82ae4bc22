//! Which version of HTTP is spoken: the server decides, among what its client
//! offers (RFC 7301).

/// What two sides agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Agreed {
    /// HTTP/1.1, also where nothing was said about it.
    Http1,
    /// HTTP/2.
    Http2,
}

impl Agreed {
    /// Its name in a handshake.
    pub(crate) fn as_bytes(self) -> &'static [u8] {
        match self {
            Self::Http1 => b"http/1.1",
            Self::Http2 => b"h2",
        }
    }

    /// What a handshake ended with.
    pub(crate) fn of(chosen: Option<&[u8]>) -> Self {
        match chosen {
            Some(b"h2") => Self::Http2,
            _ => Self::Http1,
        }
    }
}

/// What a client offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offer {
    /// HTTP/1.1, by name or by saying nothing.
    Http1,
    /// HTTP/2 and nothing else that we know.
    Http2,
    /// Both.
    Either,
    /// Nothing that can be looked into.
    Other,
}

impl Offer {
    /// The offer in a hello, if it makes one.
    pub(crate) fn of<'a>(names: Option<impl Iterator<Item = &'a [u8]>>) -> Self {
        let Some(names) = names else {
            return Self::Http1;
        };
        let (mut http1, mut http2) = (false, false);
        for name in names {
            http1 |= name == Agreed::Http1.as_bytes();
            http2 |= name == Agreed::Http2.as_bytes();
        }
        match (http1, http2) {
            (true, true) => Self::Either,
            (true, false) => Self::Http1,
            (false, true) => Self::Http2,
            (false, false) => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_is_read_from_its_names() {
        let of = |names: &[&'static str]| Offer::of(Some(names.iter().map(|name| name.as_bytes())));
        assert_eq!(Offer::of(None::<std::iter::Empty<&[u8]>>), Offer::Http1);
        assert_eq!(of(&["h2", "http/1.1"]), Offer::Either);
        assert_eq!(of(&["http/1.1"]), Offer::Http1);
        assert_eq!(of(&["h2"]), Offer::Http2);
        assert_eq!(of(&["h2c", "HTTP/1.1", "imap"]), Offer::Other);
    }
}
