//! `host` or `host:port`, as it stands in a URL, a `Host` header or a CONNECT line.

use ringfence_policy::{Port, Target};

use super::head::BadRequest;

/// A destination as a request names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Authority {
    pub(crate) target: Target,
    /// `None` where none is written.
    pub(crate) port: Option<u16>,
}

impl Authority {
    /// Parses ASCII only, because the next reader may map Unicode differently.
    pub(crate) fn parse(text: &str) -> Result<Self, BadRequest> {
        if text.contains('@') {
            return Err(BadRequest::UserInfo);
        }
        let (host, port) = split(text).ok_or(BadRequest::Authority)?;
        if !host.is_ascii() {
            return Err(BadRequest::Authority);
        }
        let target = Target::parse(host).map_err(|_| BadRequest::Authority)?;
        Ok(Self { target, port })
    }

    /// The port, or the one that plain HTTP has.
    pub(crate) fn http_port(&self) -> u16 {
        self.port.unwrap_or(80)
    }

    /// Whether a client that means `target` and `port` may write this.
    pub(crate) fn means(&self, target: &Target, port: u16) -> bool {
        self.target == *target && self.port.is_none_or(|own| own == port)
    }
}

/// Host and port; IPv6 stands in brackets.
fn split(text: &str) -> Option<(&str, Option<u16>)> {
    let colon = match text.rfind(']') {
        Some(end) => {
            let after = end + 1;
            match text.as_bytes().get(after) {
                None => None,
                Some(b':') => Some(after),
                Some(_) => return None,
            }
        }
        None => text.find(':'),
    };
    let Some(colon) = colon else {
        return Some((text, None));
    };
    let port: Port = text[colon + 1..].parse().ok()?;
    Some((&text[..colon], Some(port.get())))
}

/// Remembers the last authority that was read: on a connection it is nearly
/// always the same text again.
#[derive(Debug, Default)]
pub(crate) struct LastAuthority {
    last: Option<(String, Authority)>,
}

impl LastAuthority {
    pub(crate) fn read(&mut self, text: &str) -> Result<&Authority, BadRequest> {
        let known = self.last.as_ref().is_some_and(|(last, _)| last == text);
        if !known {
            self.last = None;
            self.last = Some((text.to_owned(), Authority::parse(text)?));
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
    fn hosts_and_ports() {
        for (text, target, port) in [
            ("a.example.org", "a.example.org", None),
            ("A.example.org.:8080", "a.example.org", Some(8080)),
            ("127.1:80", "127.0.0.1", Some(80)),
            ("[::1]", "[::1]", None),
            ("[::1]:443", "[::1]", Some(443)),
            ("[::ffff:127.0.0.1]", "127.0.0.1", None),
        ] {
            let authority = Authority::parse(text).unwrap();
            assert_eq!(authority.target.to_string(), target, "{text}");
            assert_eq!(authority.port, port, "{text}");
        }
    }

    #[test]
    fn g3_what_has_two_readings_is_refused() {
        for text in [
            "",
            ":80",
            "a.example.org:",
            "a.example.org:0",
            "a.example.org:080",
            "a.example.org:+80",
            "a.example.org:65536",
            "a.example.org:80:80",
            "a.example.org:80 ",
            "a.example.org/",
            "a.example.org\\",
            "a.example.org,b.example.org",
            "a.example.org b.example.org",
            "a%2eexample.org",
            "::1",
            "::1:80",
            "[::1",
            "[::1]x",
            "[::1]]",
            "[a.example.org]",
            "x[::1]",
            "[fe80::1%25eth0]",
            "bücher.example",
            "a\0.example.org",
            "a..example.org",
            "*",
        ] {
            assert_eq!(
                Authority::parse(text),
                Err(BadRequest::Authority),
                "{text:?}"
            );
        }
        for text in [
            "me@a.example.org",
            "me:pw@a.example.org:80",
            "@a.example.org",
            "a@b@c",
        ] {
            assert_eq!(
                Authority::parse(text),
                Err(BadRequest::UserInfo),
                "{text:?}"
            );
        }
    }

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
