//! The empty line at the end of a head, found without reading anything twice.

/// Whether lines must end in CRLF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineEnds {
    /// Requests: a reader that takes a lone line feed for a line end sees other
    /// headers than one that does not.
    Strict,
    /// Responses: some servers still send lone line feeds.
    Lenient,
}

/// A lone line feed where none may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BareLineFeed;

/// How far a head has been looked through.
#[derive(Debug, Clone)]
pub(crate) struct HeadScan {
    line_ends: LineEnds,
    scanned: usize,
    line_start: usize,
    first_line: Option<usize>,
}

impl HeadScan {
    pub(crate) fn new(line_ends: LineEnds) -> Self {
        Self {
            line_ends,
            scanned: 0,
            line_start: 0,
            first_line: None,
        }
    }

    /// The length of the head with its empty line, once that is there. Each call
    /// shows all bytes from the first one on.
    pub(crate) fn find(&mut self, bytes: &[u8]) -> Result<Option<usize>, BareLineFeed> {
        while let Some(at) = next_line_feed(bytes, self.scanned) {
            let line = &bytes[self.line_start..at];
            if self.line_ends == LineEnds::Strict && line.last() != Some(&b'\r') {
                return Err(BareLineFeed);
            }
            self.first_line.get_or_insert(at + 1);
            self.scanned = at + 1;
            self.line_start = at + 1;
            if matches!(line, [] | [b'\r']) {
                return Ok(Some(at + 1));
            }
        }
        self.scanned = bytes.len();
        Ok(None)
    }

    /// The length of the first line, once its end was seen.
    pub(crate) fn first_line(&self) -> Option<usize> {
        self.first_line
    }
}

fn next_line_feed(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    Some(from + rest.iter().position(|byte| *byte == b'\n')?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str, line_ends: LineEnds) -> Result<Option<usize>, BareLineFeed> {
        let mut whole = HeadScan::new(line_ends);
        let result = whole.find(text.as_bytes());
        let mut stepwise = HeadScan::new(line_ends);
        let mut seen = Ok(None);
        for end in 1..=text.len() {
            seen = stepwise.find(&text.as_bytes()[..end]);
            if seen != Ok(None) {
                break;
            }
        }
        assert_eq!(seen, result, "{text:?}");
        result
    }

    #[test]
    fn heads_end_at_the_empty_line() {
        for (text, want) in [
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\nrest", Some(27)),
            ("GET / HTTP/1.1\r\n\r\n", Some(18)),
            ("GET / HTTP/1.1\r\nHost: a\r\n", None),
            ("GET / HTTP/1.1\r\nHost: a\r\n\r", None),
            ("\r\nGET", Some(2)),
        ] {
            assert_eq!(find(text, LineEnds::Strict), Ok(want), "{text:?}");
        }
    }

    #[test]
    fn lone_line_feeds_are_for_responses() {
        for text in [
            "GET / HTTP/1.1\n\n",
            "GET / HTTP/1.1\r\nA: b\n\r\n",
            "\n",
            "a\r\n\n",
        ] {
            assert_eq!(find(text, LineEnds::Strict), Err(BareLineFeed), "{text:?}");
        }
        assert_eq!(
            find("HTTP/1.1 200 OK\nA: b\n\nx", LineEnds::Lenient),
            Ok(Some(22))
        );
        assert_eq!(
            find("HTTP/1.1 200 OK\r\nA: b\n\r\nx", LineEnds::Lenient),
            Ok(Some(24))
        );
    }

    #[test]
    fn the_first_line_is_measured() {
        let mut scan = HeadScan::new(LineEnds::Strict);
        assert_eq!((scan.find(b"GET /"), scan.first_line()), (Ok(None), None));
        assert_eq!(
            (scan.find(b"GET /\r\nA"), scan.first_line()),
            (Ok(None), Some(7))
        );
    }
}
