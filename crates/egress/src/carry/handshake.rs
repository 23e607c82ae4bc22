//! The beginning of TLS, as far as it is in clear.
//!
//! A server may ask for a second hello, and then goes by the name in that one.
//! So everything a client says is read until the server has taken its hello.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use bytes::Buf;
use ringfence_audit::CloseReason;

use super::Opening;
use super::objection::{Objection, check_name};
use crate::limits::Limits;
use crate::relay::Clock;
use crate::tls::{self, Following};

/// How far the server has got.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Server {
    /// It has not answered the hello.
    Silent,
    /// It wants another one.
    AsksAgain,
    /// There will be no other hello.
    Content,
}

impl Opening {
    /// Passes the handshake on until no further hello can come, and sees that
    /// each of them asks for the name that was admitted.
    pub(super) async fn shake_hands(&mut self, limits: &Limits) -> Result<(), Objection> {
        let clock = Clock::new();
        tokio::select! {
            biased;
            shaken = self.shake(&clock) => shaken,
            why = clock.run_out(limits) => Err(Objection::Cut(why)),
        }
    }

    async fn shake(&mut self, clock: &Clock) -> Result<(), Objection> {
        let mut server = Server::Silent;
        let mut answer = Vec::new();
        loop {
            while self.pass_record(&mut server).await? {}
            if server == Server::Content {
                return Ok(());
            }
            let mut buffer = [0; 4096];
            tokio::select! {
                biased;
                () = self.upstream.tracked.revoked() => {
                    return Err(Objection::Cut(CloseReason::PolicyChanged));
                }
                read = self.client.fill() => match read {
                    Ok(0) => return Ok(()),
                    Ok(_) => clock.touch(),
                    Err(_) => return Err(Objection::Cut(CloseReason::ClientReset)),
                },
                read = self.upstream.stream.read(&mut buffer) => match read {
                    Ok(0) => return Ok(()),
                    Ok(read) => {
                        clock.touch();
                        hear(&buffer[..read], &mut answer, &mut server);
                        let passed = self.pass_back(&buffer[..read]).await;
                        passed.map_err(|_| Objection::Cut(CloseReason::ClientReset))?;
                    }
                    Err(_) => return Err(Objection::Cut(CloseReason::ServerReset)),
                },
            }
        }
    }

    /// Passes the client's next record on, if it is there.
    async fn pass_record(&mut self, server: &mut Server) -> Result<bool, Objection> {
        let length = match tls::following(&self.client.inbox) {
            Following::NeedMore => return Ok(false),
            Following::Malformed => return Err(Objection::malformed_tls()),
            Following::Over => {
                *server = Server::Content;
                return Ok(false);
            }
            Following::Other(length) => length,
            Following::Hello { wanted, length } => {
                check_name(&self.attempt.target, &wanted)?;
                // A server asks again only once.
                if *server == Server::AsksAgain {
                    *server = Server::Content;
                }
                length
            }
        };
        let record = &self.client.inbox[..length];
        let sent = self.upstream.stream.write_all(record).await;
        sent.map_err(|_| Objection::Cut(CloseReason::ServerReset))?;
        self.upstream.tracked.sent_up(length as u64);
        self.client.inbox.advance(length);
        Ok(*server != Server::Content)
    }
}

/// Learns from a server's first bytes whether it wants another hello.
fn hear(bytes: &[u8], answer: &mut Vec<u8>, server: &mut Server) {
    if *server != Server::Silent {
        return;
    }
    answer.extend_from_slice(bytes);
    match tls::asks_again(answer) {
        Some(true) => *server = Server::AsksAgain,
        Some(false) => *server = Server::Content,
        None => {}
    }
}
