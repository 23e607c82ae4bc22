//! Request paths in one normal form, and the globs of rules.
//!
//! Servers disagree about `..;`, `%2e`, `//` and encoded slashes. A path is matched in the form
//! the most generous server would act on; one that has no single reading is refused.

use std::fmt;

use serde::{Serialize, Serializer};
use thiserror::Error;

/// A request path in normal form: decoded once, no dot segments, no double slashes, no matrix
/// parameters, no query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpPath(String);

impl HttpPath {
    /// Normalises the path of a request target (origin form; query and fragment are dropped). The
    /// `*` of `OPTIONS *` is no path: where rules name paths, none of them covers it.
    pub fn normalise(target: &str) -> Result<Self, HttpPathError> {
        let raw = target.split(['?', '#']).next().unwrap_or_default();
        if !raw.starts_with('/') {
            return Err(HttpPathError::Relative);
        }
        let mut segments: Vec<String> = Vec::new();
        let mut folder = true;
        for part in raw.split('/').skip(1) {
            let segment = decode(part.split(';').next().unwrap_or_default())?;
            folder = matches!(segment.as_str(), "" | "." | "..");
            match segment.as_str() {
                "" | "." => {}
                ".." => drop(segments.pop().ok_or(HttpPathError::AboveRoot)?),
                _ => segments.push(segment),
            }
        }
        let slash = if folder && !segments.is_empty() {
            "/"
        } else {
            ""
        };
        Ok(Self(format!("/{}{slash}", segments.join("/"))))
    }

    /// The normal form.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path as it is sent, without a query: the normal form, encoded again where it must be.
    /// Whoever judges a path sends this one, so that the server acts on what was judged.
    pub fn to_target(&self) -> String {
        let mut target = String::with_capacity(self.0.len());
        for byte in self.0.bytes() {
            if byte == b'/' || stays_plain(byte) {
                target.push(char::from(byte));
            } else {
                target.push('%');
                target.extend(hex_digits(byte));
            }
        }
        target
    }
}

/// RFC 3986 `pchar` without `;` and `%`, which have a meaning in paths.
fn stays_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,=:@".contains(&byte)
}

fn hex_digits(byte: u8) -> [char; 2] {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    [byte >> 4, byte & 15].map(|digit| char::from(DIGITS[usize::from(digit)]))
}

/// Decodes once; what would still change in a second round, or hides a separator, is ambiguous.
fn decode(part: &str) -> Result<String, HttpPathError> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let (byte, next) = match first {
            b'%' => (hex_pair(tail).ok_or(HttpPathError::Encoding)?, &tail[2..]),
            _ => (first, tail),
        };
        let encoded = first == b'%';
        if byte < 0x20
            || byte == 0x7f
            || byte == b'\\'
            || (encoded && matches!(byte, b'/' | b'%' | b';'))
        {
            return Err(HttpPathError::Ambiguous);
        }
        bytes.push(byte);
        rest = next;
    }
    String::from_utf8(bytes).map_err(|_| HttpPathError::Encoding)
}

fn hex_pair(bytes: &[u8]) -> Option<u8> {
    let digit = |index: usize| char::from(*bytes.get(index)?).to_digit(16);
    u8::try_from(digit(0)? * 16 + digit(1)?).ok()
}

/// Why a request path has no single reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HttpPathError {
    /// Does not start with a slash.
    #[error("the path does not start with '/'")]
    Relative,
    /// Broken percent-encoding or not UTF-8.
    #[error("the path is not valid percent-encoded UTF-8")]
    Encoding,
    /// An encoded separator, double encoding, a backslash or a control character.
    #[error("the path can be read in more than one way")]
    Ambiguous,
    /// `..` above the root.
    #[error("the path climbs above '/'")]
    AboveRoot,
}

/// A glob over normal paths: `*` within a segment, `**` for any number of segments.
///
/// `/v1/**` covers everything below `/v1/`, not `/v1` itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathPattern(String);

impl PathPattern {
    /// Parses a glob. It must be in normal form itself, or it could never match.
    pub fn parse(text: &str) -> Result<Self, PathPatternError> {
        let normal = HttpPath::normalise(text).map_err(|source| PathPatternError::Path {
            entry: text.to_owned(),
            source,
        })?;
        let stars_whole = text
            .split('/')
            .all(|part| !part.contains("**") || part == "**");
        if !stars_whole {
            return Err(PathPatternError::DoubleStar(text.to_owned()));
        }
        if normal.as_str() != text {
            return Err(PathPatternError::NotNormal {
                entry: text.to_owned(),
                normal: normal.as_str().to_owned(),
            });
        }
        Ok(Self(text.to_owned()))
    }

    /// True when the glob covers `path`.
    pub fn matches(&self, path: &HttpPath) -> bool {
        let pattern: Vec<&str> = self.0.split('/').collect();
        let path: Vec<&str> = path.0.split('/').collect();
        let left = match_parts(
            &pattern,
            &path,
            |part| *part == "**",
            |glob, text| match_segment(glob, text),
        );
        left.is_some_and(<[_]>::is_empty)
    }

    /// The glob as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn match_segment(glob: &str, text: &str) -> bool {
    let glob: Vec<char> = glob.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let left = match_parts(&glob, &text, |c| *c == '*', |a, b| a == b);
    left.is_some_and(|left| left.iter().all(|c| *c == '*'))
}

/// Greedy glob matching that remembers only the last star, so it is never exponential. Gives what
/// is left of the pattern once the text is used up.
fn match_parts<'p, P, T>(
    pattern: &'p [P],
    text: &[T],
    star: impl Fn(&P) -> bool,
    same: impl Fn(&P, &T) -> bool,
) -> Option<&'p [P]> {
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p).is_some_and(&star) {
            retry = Some((p + 1, t));
            p += 1;
        } else if pattern.get(p).is_some_and(|item| same(item, &text[t])) {
            p += 1;
            t += 1;
        } else if let Some((after, from)) = retry {
            retry = Some((after, from + 1));
            p = after;
            t = from + 1;
        } else {
            return None;
        }
    }
    pattern.get(p..)
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for PathPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// Why a path glob is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PathPatternError {
    /// Not a path.
    #[error("path {entry:?}: {source}")]
    Path {
        /// The entry as written.
        entry: String,
        /// What is wrong with it.
        source: HttpPathError,
    },
    /// `**` inside a segment.
    #[error("path {0:?} has a '**' that is not a whole segment")]
    DoubleStar(String),
    /// Has dot segments, double slashes, encoding or parameters.
    #[error("path {entry:?} could never match; its normal form is {normal:?}")]
    NotNormal {
        /// The entry as written.
        entry: String,
        /// What it should be.
        normal: String,
    },
    /// A list without paths.
    #[error("the list of paths is empty and could never match")]
    Empty,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_form() {
        for (raw, want) in [
            ("/", "/"),
            ("/v1/a?x=/../b", "/v1/a"),
            ("/v1//a/", "/v1/a/"),
            ("/v1/./a", "/v1/a"),
            ("/v1/../admin", "/admin"),
            ("/v1/%2e%2e/admin", "/admin"),
            ("/v1/..;x=1/admin", "/admin"),
            ("/v1/a;jsessionid=1/b", "/v1/a/b"),
            ("/%76%31/a", "/v1/a"),
            ("/v1/..", "/"),
            ("/v1/caf%C3%A9", "/v1/café"),
        ] {
            assert_eq!(HttpPath::normalise(raw).unwrap().as_str(), want, "{raw}");
        }
        for raw in [
            "",
            "v1",
            "*",
            "/..",
            "/a/../../b",
            "/a%2fb",
            "/a%5cb",
            "/a\\b",
            "/a%00",
            "/a%252e",
            "/a%",
            "/a%zz",
            "/%ff",
            "/a%3b/x",
        ] {
            assert!(HttpPath::normalise(raw).is_err(), "{raw}");
        }
    }

    #[test]
    fn globs() {
        for (glob, path, want) in [
            ("/v1/**", "/v1/a/b", true),
            ("/v1/**", "/v1/", true),
            ("/v1/**", "/v1", false),
            ("/v1/**", "/v1x/a", false),
            ("/v1/**", "/v1/../admin", false),
            ("/v1/*", "/v1/a", true),
            ("/v1/*", "/v1/a/b", false),
            ("/repos/*/issues", "/repos/x/issues", true),
            ("/**/issues", "/a/b/issues", true),
            ("/**", "/", true),
            ("/a*c", "/abbc", true),
            ("/V1/*", "/v1/a", false),
        ] {
            let pattern = PathPattern::parse(glob).unwrap();
            assert_eq!(
                pattern.matches(&HttpPath::normalise(path).unwrap()),
                want,
                "{glob} {path}"
            );
        }
        for glob in ["", "v1", "/v1/../x", "/v1//x", "/a**", "/a?x", "/%76"] {
            assert!(PathPattern::parse(glob).is_err(), "{glob}");
        }
    }
}
