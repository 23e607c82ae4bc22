//! [`Method`]: an HTTP method in a rule.

use std::fmt;

use serde::Serialize;
use thiserror::Error;

/// A method token in upper case. Requests are compared by case, as HTTP does.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Method(String);

impl Method {
    /// Parses a token; lower case is read as upper case. `CONNECT` opens a tunnel and is no rule.
    pub fn parse(text: &str) -> Result<Self, MethodError> {
        if !is_token(text) {
            return Err(MethodError::Token(text.to_owned()));
        }
        let upper = text.to_ascii_uppercase();
        if upper == "CONNECT" {
            return Err(MethodError::Connect);
        }
        Ok(Self(upper))
    }

    /// The token.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether a request with this method is malformed: the method is no token, or one that decides how
/// the message is read, in other letters. A server that reads `head` as HEAD sends no body where
/// one is waited for.
pub fn is_misspelt(method: &str) -> bool {
    let like = |name: &str| method != name && method.eq_ignore_ascii_case(name);
    !is_token(method) || like("HEAD") || like("CONNECT")
}

/// RFC 9110 token.
pub(crate) fn is_token(text: &str) -> bool {
    let special = |b: u8| b"!#$%&'*+-.^_`|~".contains(&b);
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || special(b))
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a text is no method for a rule.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MethodError {
    /// Not a token.
    #[error("{0:?} is not an HTTP method")]
    Token(String),
    /// The tunnel method.
    #[error("CONNECT opens a tunnel; list the methods used inside it")]
    Connect,
    /// A list without methods.
    #[error("the list of methods is empty and could never match")]
    Empty,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g1_methods_that_two_readers_could_split_are_misspelt() {
        for text in ["", "G ET", "GÉT", "head", "Head", "connect"] {
            assert!(is_misspelt(text), "{text:?}");
        }
        for text in ["GET", "get", "HEAD", "CONNECT", "X-ODD"] {
            assert!(!is_misspelt(text), "{text:?}");
        }
    }

    #[test]
    fn parses_tokens() {
        assert_eq!(Method::parse("get").unwrap().as_str(), "GET");
        for text in ["", "G ET", "GET\r\n", "CONNECT", "connect", "GÉT"] {
            assert!(Method::parse(text).is_err(), "{text:?}");
        }
    }
}
