//! `host` or `host:port`, as it stands in a URL, a `Host` header or a CONNECT line.

use ringfence_policy::{HostPort, HostPortError};

use super::head::BadRequest;

impl From<HostPortError> for BadRequest {
    fn from(error: HostPortError) -> Self {
        match error {
            HostPortError::UserInfo => Self::UserInfo,
            HostPortError::Host | HostPortError::Port => Self::Authority,
        }
    }
}

/// Remembers the last authority that was read: on a connection it is nearly
/// always the same text again.
#[derive(Debug, Default)]
pub(crate) struct LastAuthority {
    last: Option<(String, HostPort)>,
}

impl LastAuthority {
    pub(crate) fn read(&mut self, text: &str) -> Result<&HostPort, BadRequest> {
        let known = self.last.as_ref().is_some_and(|(last, _)| last == text);
        if !known {
            self.last = None;
            self.last = Some((text.to_owned(), HostPort::parse(text)?));
        }
        match &self.last {
            Some((_, authority)) => Ok(authority),
            None => Err(BadRequest::Authority),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_is_remembered_and_a_bad_one_forgets_it() {
        let mut last = LastAuthority::default();
        assert_eq!(last.read("a.test").unwrap().port, None);
        assert_eq!(last.read("a.test").unwrap().target.to_string(), "a.test");
        assert_eq!(last.read("b.test:1").unwrap().port, Some(1));
        assert!(last.read("b test").is_err());
        assert!(last.read("b test").is_err());
        assert_eq!(last.read("b.test:1").unwrap().port, Some(1));
    }
}
