//! SOCKS5 for clients that know of it (RFC 1928, RFC 1929): CONNECT only.
//!
//! Names are read by the same parser as everywhere else; one that is none is
//! refused and recorded, never resolved.

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod wire;

use std::io;
use std::rc::Rc;

use bytes::Buf;
use ringfence_audit::Via;
use ringfence_policy::Target;
use tokio::io::AsyncWriteExt;

use crate::attempt::Attempt;
use crate::carry::{carry, tunnel};
use crate::closing::close_with;
use crate::credentials::is_password;
use crate::exit::{Exit, OpenError, ProxyToken};
use crate::http::peer::Peer;
use crate::proxy::Caller;
use wire::{Command, Destination, Malformed, Method, Offer, Password, Reply, Request};

/// Why a client gets no further.
#[derive(Debug)]
enum Quit {
    /// It ended, or its connection broke.
    Gone,
    /// It is answered with these bytes.
    Answer(Vec<u8>),
}

impl From<io::Error> for Quit {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

impl From<Malformed> for Quit {
    fn from(_: Malformed) -> Self {
        Self::Answer(Reply::Failed.bytes())
    }
}

/// Whether the client has shown what is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Known,
    Unknown,
}

/// Serves one connection to its end.
pub(crate) async fn serve(mut client: Peer, caller: Caller, exit: Rc<Exit>) {
    let time = exit.limits().head_time;
    let negotiation = negotiate(&mut client, exit.credentials_wanted());
    match tokio::time::timeout(time, negotiation).await {
        Ok(Ok((standing, request))) => obey(client, standing, request, caller, exit).await,
        Ok(Err(Quit::Answer(answer))) => close_with(client.stream, &answer).await,
        Ok(Err(Quit::Gone)) | Err(_) => {}
    }
}

async fn negotiate(
    client: &mut Peer,
    wanted: Option<&ProxyToken>,
) -> Result<(Standing, Request), Quit> {
    let offer: Offer = next(client, wire::offer).await?;
    let method = choose(offer, wanted);
    let answer = method.bytes();
    if method == Method::None {
        return Err(Quit::Answer(answer.to_vec()));
    }
    client.stream.write_all(&answer).await?;
    let standing = match method {
        Method::Password => log_in(client, wanted).await?,
        _ if wanted.is_some() => Standing::Unknown,
        _ => Standing::Known,
    };
    Ok((standing, next(client, wire::request).await?))
}

/// A client that offers no password is let on, so that it can be told at its
/// request that it is refused.
fn choose(offer: Offer, wanted: Option<&ProxyToken>) -> Method {
    match (offer.open, offer.password) {
        (_, true) if wanted.is_some() => Method::Password,
        (true, _) => Method::Open,
        (false, true) => Method::Password,
        (false, false) => Method::None,
    }
}

async fn log_in(client: &mut Peer, wanted: Option<&ProxyToken>) -> Result<Standing, Quit> {
    let password: Password = next(client, wire::password).await?;
    if wanted.is_some_and(|token| !is_password(token, &password.0)) {
        return Err(Quit::Answer(wire::WRONG_PASSWORD.to_vec()));
    }
    client.stream.write_all(&wire::RIGHT_PASSWORD).await?;
    Ok(Standing::Known)
}

/// Reads the next message.
async fn next<T>(
    client: &mut Peer,
    parse: impl Fn(&[u8]) -> Result<Option<(T, usize)>, Malformed>,
) -> Result<T, Quit> {
    loop {
        if let Some((message, length)) = parse(&client.inbox)? {
            client.inbox.advance(length);
            return Ok(message);
        }
        if client.fill().await? == 0 {
            return Err(Quit::Gone);
        }
    }
}

async fn obey(
    mut client: Peer,
    standing: Standing,
    request: Request,
    caller: Caller,
    exit: Rc<Exit>,
) {
    let opened = match admit(standing, &request, &caller, &exit) {
        Ok(attempt) if exit.intercepts(&attempt) => {
            // Where its requests go is opened when the first one was read.
            if client.stream.write_all(&Reply::Done.bytes()).await.is_ok() {
                carry(client.stream, client.inbox, attempt, exit).await;
            }
            return;
        }
        Ok(attempt) => match exit.open(&attempt).await {
            Ok(upstream) => Ok((attempt, upstream)),
            Err(error) => Err(reply_to(&error)),
        },
        Err(reply) => Err(reply),
    };
    match opened {
        Ok((attempt, upstream)) => {
            if client.stream.write_all(&Reply::Done.bytes()).await.is_ok() {
                tunnel(client.stream, client.inbox, attempt, upstream, exit).await;
            }
        }
        Err(reply) => close_with(client.stream, &reply.bytes()).await,
    }
}

/// The attempt that is asked for, if this can be asked for at all.
fn admit(
    standing: Standing,
    request: &Request,
    caller: &Caller,
    exit: &Exit,
) -> Result<Attempt, Reply> {
    if request.command != Command::Connect {
        return Err(Reply::NoSuchCommand);
    }
    let target = target_of(&request.destination).map_err(|host| {
        exit.refuse_malformed(caller, Via::Socks, host, request.port);
        Reply::NotAllowed
    })?;
    let attempt = caller.attempt(Via::Socks, exit.meant(target), request.port);
    if standing == Standing::Unknown {
        let phrase = "proxy credentials are missing";
        exit.refuse(&attempt, "proxy-credentials", phrase);
        return Err(Reply::NotAllowed);
    }
    Ok(attempt)
}

/// The destination, or the text that is none.
fn target_of(destination: &Destination) -> Result<Target, &[u8]> {
    match destination {
        Destination::Address(address) => Ok(Target::Addr(address.to_canonical())),
        Destination::Name(name) => std::str::from_utf8(name)
            .ok()
            .filter(|text| text.is_ascii())
            .and_then(|text| Target::parse(text).ok())
            .ok_or(name),
    }
}

fn reply_to(error: &OpenError) -> Reply {
    match error {
        OpenError::Refused(_) => Reply::NotAllowed,
        OpenError::Unresolved(_) | OpenError::TimedOut => Reply::HostUnreachable,
        OpenError::Unreachable(error) => match error.kind() {
            io::ErrorKind::ConnectionRefused => Reply::ConnectionRefused,
            io::ErrorKind::HostUnreachable => Reply::HostUnreachable,
            _ => Reply::NetworkUnreachable,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_asked_for_where_one_is_wanted() {
        let token = ProxyToken {
            realm: "ringfence",
            password: "x".to_owned(),
        };
        for (open, password, wanted, free) in [
            (true, false, Method::Open, Method::Open),
            (true, true, Method::Password, Method::Open),
            (false, true, Method::Password, Method::Password),
            (false, false, Method::None, Method::None),
        ] {
            let offer = Offer { open, password };
            assert_eq!(choose(offer, Some(&token)), wanted, "{offer:?}");
            assert_eq!(choose(offer, None), free, "{offer:?}");
        }
    }

    #[test]
    fn g3_names_that_are_none_are_refused() {
        for name in [
            &b"a.example.org\0.b.test"[..],
            b"a%2eexample.org",
            b"",
            b"a b",
            b"user@a.test",
            b"a.test:80",
            b"\xff\xfe",
            "b\u{fc}cher.example".as_bytes(),
            b"a..test",
            b"fe80::1%eth0",
        ] {
            assert!(
                target_of(&Destination::Name(name.to_vec())).is_err(),
                "{name:?}"
            );
        }
        for (name, want) in [
            ("A.Test.", "a.test"),
            ("0x7f.1", "127.0.0.1"),
            ("::1", "[::1]"),
        ] {
            let found = target_of(&Destination::Name(name.into())).unwrap();
            assert_eq!(found.to_string(), want);
        }
        let mapped = Destination::Address("::ffff:127.0.0.1".parse().unwrap());
        assert_eq!(target_of(&mapped).unwrap().to_string(), "127.0.0.1");
    }
}
