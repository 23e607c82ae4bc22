//! Where a message's body ends.
//!
//! A [`Body`] is shown the bytes as they pass and says how many of them belong
//! to the message; it keeps none of them. What comes after is the next
//! message's.

mod chunked;

use chunked::Chunked;

pub(crate) use chunked::BadChunk;

/// How the end of a body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// There is no body.
    Empty,
    /// By `Content-Length`.
    Length(u64),
    /// By `Transfer-Encoding: chunked`.
    Chunked,
    /// By the end of the connection; responses only.
    UntilClose,
}

/// A body that is on its way.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    /// Bytes that are still to come.
    Counted(u64),
    Chunked(Chunked),
    UntilClose,
}

impl Body {
    pub(crate) fn new(framing: Framing) -> Self {
        match framing {
            Framing::Empty => Self::Counted(0),
            Framing::Length(length) => Self::Counted(length),
            Framing::Chunked => Self::Chunked(Chunked::new()),
            Framing::UntilClose => Self::UntilClose,
        }
    }

    /// How many of `bytes` belong to the body: all of them, unless it is done.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<usize, BadChunk> {
        self.take_showing(bytes, |_| {})
    }

    /// The same; `show` is shown the content of chunks, of which the bytes have
    /// more than that.
    pub(crate) fn take_showing(
        &mut self,
        bytes: &[u8],
        show: impl FnMut(&[u8]),
    ) -> Result<usize, BadChunk> {
        match self {
            Self::Counted(left) => {
                let taken =
                    usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
                *left -= taken as u64;
                Ok(taken)
            }
            Self::Chunked(chunked) => chunked.take(bytes, show),
            Self::UntilClose => Ok(bytes.len()),
        }
    }

    /// Whether its last byte has been seen.
    pub(crate) fn is_done(&self) -> bool {
        match self {
            Self::Counted(left) => *left == 0,
            Self::Chunked(chunked) => chunked.is_done(),
            Self::UntilClose => false,
        }
    }

    /// Whether the end of the connection is its end, too.
    pub(crate) fn may_end_here(&self) -> bool {
        self.is_done() || matches!(self, Self::UntilClose)
    }

    /// At most how many bytes to read at once, so that nothing of another
    /// message is read along.
    pub(crate) fn most_to_read(&self) -> usize {
        match self {
            Self::Counted(left) => usize::try_from(*left).unwrap_or(usize::MAX),
            Self::Chunked(_) | Self::UntilClose => usize::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counted_body_ends_at_its_count() {
        let mut body = Body::new(Framing::Length(5));
        assert_eq!((body.take(b"abc"), body.is_done()), (Ok(3), false));
        assert_eq!(body.most_to_read(), 2);
        assert_eq!((body.take(b"deGET /"), body.is_done()), (Ok(2), true));
        assert_eq!(body.take(b"more"), Ok(0));
        assert!(Body::new(Framing::Empty).is_done());
        assert!(Body::new(Framing::Length(0)).is_done());
    }

    #[test]
    fn only_a_close_delimited_body_ends_with_the_connection() {
        for (framing, want) in [
            (Framing::Empty, true),
            (Framing::Length(1), false),
            (Framing::Chunked, false),
            (Framing::UntilClose, true),
        ] {
            assert_eq!(Body::new(framing).may_end_here(), want, "{framing:?}");
        }
        let mut body = Body::new(Framing::UntilClose);
        assert_eq!((body.take(b"abc"), body.is_done()), (Ok(3), false));
    }
}
