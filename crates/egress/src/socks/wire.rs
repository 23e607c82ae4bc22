//! The messages of SOCKS5 as bytes. Each is at most a few hundred long.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const VERSION: u8 = 5;
const PASSWORD_VERSION: u8 = 1;
const OPEN: u8 = 0;
const PASSWORD: u8 = 2;

/// The answers to a password.
pub(super) const RIGHT_PASSWORD: [u8; 2] = [PASSWORD_VERSION, 0];
pub(super) const WRONG_PASSWORD: [u8; 2] = [PASSWORD_VERSION, 1];

/// Bytes that are no such message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// How a client could show who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offer {
    /// Not at all.
    pub(crate) open: bool,
    /// By user name and password.
    pub(crate) password: bool,
}

/// Which of those is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Open,
    Password,
    None,
}

/// The password of whatever user.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Password(pub(crate) Vec<u8>);

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) command: Command,
    pub(crate) destination: Destination,
    pub(crate) port: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    Connect,
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Destination {
    Address(IpAddr),
    /// As sent.
    Name(Vec<u8>),
}

/// The answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reply {
    Done = 0,
    Failed = 1,
    NotAllowed = 2,
    NetworkUnreachable = 3,
    HostUnreachable = 4,
    ConnectionRefused = 5,
    NoSuchCommand = 7,
}

impl Method {
    pub(super) fn bytes(self) -> [u8; 2] {
        let method = match self {
            Self::Open => OPEN,
            Self::Password => PASSWORD,
            Self::None => 0xff,
        };
        [VERSION, method]
    }
}

impl Reply {
    /// With no address: nobody needs ours.
    pub(super) fn bytes(self) -> Vec<u8> {
        vec![VERSION, self as u8, 0, 1, 0, 0, 0, 0, 0, 0]
    }
}

/// A message and its length, once it is there as a whole.
type Parsed<T> = Result<Option<(T, usize)>, Malformed>;

/// Reads the first message.
pub(crate) fn offer(bytes: &[u8]) -> Parsed<Offer> {
    let (count, rest) = match bytes {
        [VERSION, count, rest @ ..] if *count > 0 => (usize::from(*count), rest),
        [] | [VERSION] => return Ok(None),
        _ => return Err(Malformed),
    };
    let Some(methods) = rest.get(..count) else {
        return Ok(None);
    };
    let offer = Offer {
        open: methods.contains(&OPEN),
        password: methods.contains(&PASSWORD),
    };
    Ok(Some((offer, 2 + count)))
}

/// Reads user name and password.
pub(crate) fn password(bytes: &[u8]) -> Parsed<Password> {
    match bytes.first() {
        Some(&PASSWORD_VERSION) => {}
        None => return Ok(None),
        Some(_) => return Err(Malformed),
    }
    let Some((user, _)) = counted(&bytes[1..]) else {
        return Ok(None);
    };
    let start = 2 + user.len();
    let Some((password, _)) = counted(&bytes[start..]) else {
        return Ok(None);
    };
    let length = start + 1 + password.len();
    Ok(Some((Password(password.to_vec()), length)))
}

/// Reads a request.
pub(crate) fn request(bytes: &[u8]) -> Parsed<Request> {
    let (command, kind, rest) = match bytes {
        [VERSION, command, _, kind, rest @ ..] => (command, kind, rest),
        [] | [VERSION] | [VERSION, _] | [VERSION, _, _] => return Ok(None),
        _ => return Err(Malformed),
    };
    let found = match kind {
        1 => rest.first_chunk().map(|octets: &[u8; 4]| {
            let address = Ipv4Addr::from(*octets).into();
            (Destination::Address(address), octets.len())
        }),
        4 => rest.first_chunk().map(|octets: &[u8; 16]| {
            let address = Ipv6Addr::from(*octets).into();
            (Destination::Address(address), octets.len())
        }),
        3 => counted(rest).map(|(name, length)| (Destination::Name(name.to_vec()), length)),
        _ => return Err(Malformed),
    };
    let Some((destination, length)) = found else {
        return Ok(None);
    };
    let Some(port) = rest[length..].first_chunk() else {
        return Ok(None);
    };
    let request = Request {
        command: match command {
            1 => Command::Connect,
            _ => Command::Other,
        },
        destination,
        port: u16::from_be_bytes(*port),
    };
    Ok(Some((request, 4 + length + 2)))
}

/// Bytes after their number, and how many that are with it.
fn counted(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let (count, rest) = bytes.split_first()?;
    let content = rest.get(..usize::from(*count))?;
    Some((content, content.len() + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every shorter beginning must be waited on.
    fn whole<T>(parse: impl Fn(&[u8]) -> Parsed<T>, bytes: &[u8]) -> T {
        for end in 0..bytes.len() {
            assert!(
                matches!(parse(&bytes[..end]), Ok(None)),
                "{end} of {bytes:?}"
            );
        }
        let more = [bytes, b"more"].concat();
        let Ok(Some((message, length))) = parse(&more) else {
            panic!("{bytes:?}");
        };
        assert_eq!(length, bytes.len());
        message
    }

    #[test]
    fn offers() {
        let both = whole(offer, &[5, 3, 0, 1, 2]);
        assert_eq!((both.open, both.password), (true, true));
        let neither = whole(offer, &[5, 1, 1]);
        assert_eq!((neither.open, neither.password), (false, false));
        for bytes in [&[4][..], &[5, 0], &[0, 1, 0]] {
            assert_eq!(offer(bytes), Err(Malformed), "{bytes:?}");
        }
    }

    #[test]
    fn passwords() {
        assert_eq!(whole(password, b"\x01\x02me\x03abc").0, b"abc");
        assert_eq!(whole(password, b"\x01\0\0").0, b"");
        assert!(password(&[5]).is_err());
    }

    #[test]
    fn requests() {
        let address = whole(request, &[5, 1, 0, 1, 127, 0, 0, 1, 1, 187]);
        assert_eq!(
            address.destination,
            Destination::Address("127.0.0.1".parse().unwrap())
        );
        assert_eq!((address.command, address.port), (Command::Connect, 443));
        let mut bytes = vec![5, 3, 0, 4];
        bytes.extend(Ipv6Addr::LOCALHOST.octets());
        bytes.extend([0, 80]);
        let six = whole(request, &bytes);
        assert_eq!(
            six.destination,
            Destination::Address("::1".parse().unwrap())
        );
        assert_eq!(six.command, Command::Other);
        let name = whole(request, b"\x05\x01\0\x03\x06a\0test\0\x50");
        assert_eq!(name.destination, Destination::Name(b"a\0test".to_vec()));
        for bytes in [&[4, 1, 0, 1][..], &[5, 1, 0, 2], &[5, 1, 0, 0, 0, 0]] {
            assert_eq!(request(bytes), Err(Malformed), "{bytes:?}");
        }
    }

    #[test]
    fn replies() {
        assert_eq!(Reply::NotAllowed.bytes(), [5, 2, 0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Method::None.bytes(), [5, 255]);
    }
}
