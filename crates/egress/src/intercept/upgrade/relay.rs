//! The messages of one WebSocket, both ways: watched on their way out, scrubbed
//! on their way in.

use std::io;

use bytes::BytesMut;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};

use super::Watching;
use super::frames::{self, BadFrame, LONGEST_CONTROL, Opcode, Piece, Reader, Sender};
use crate::intercept::response::{Hider, Hiding, Looking};
use crate::intercept::server_body::ServerBody;

/// Read at once.
const ROOM: usize = 16 * 1024;

/// One connection that has become a WebSocket.
pub(super) struct Relay {
    pub(super) upward: Option<Upward>,
    pub(super) downward: Option<Downward>,
}

/// It ends before its time.
#[derive(Debug)]
pub(super) struct Broken;

impl From<io::Error> for Broken {
    fn from(_: io::Error) -> Self {
        Self
    }
}

impl From<BadFrame> for Broken {
    fn from(_: BadFrame) -> Self {
        Self
    }
}

impl Relay {
    /// Passes everything on until both sides have ended it, or the policy no
    /// longer allows it. A client that is quiet for too long is cut from
    /// outside.
    pub(super) async fn run(self, client: OnUpgrade, server: OnUpgrade, mut body: ServerBody) {
        let Self {
            mut upward,
            mut downward,
        } = self;
        let (Ok(client), Ok(server)) = tokio::join!(client, server) else {
            return;
        };
        let (from_client, to_client) = tokio::io::split(TokioIo::new(client));
        let (from_server, to_server) = tokio::io::split(TokioIo::new(server));
        let up = pump(from_client, to_server, |bytes, out| {
            if let Some(upward) = &mut upward {
                upward.check(bytes)?;
            }
            out.extend_from_slice(bytes);
            Ok(())
        });
        let down = pump(from_server, to_client, |bytes, out| {
            match &mut downward {
                Some(downward) => downward.pass(bytes, out)?,
                None => out.extend_from_slice(bytes),
            }
            Ok(())
        });
        tokio::select! {
            biased;
            () = body.revoked() => {}
            _ = async { tokio::try_join!(up, down) } => {}
        }
    }
}

async fn pump(
    mut from: ReadHalf<TokioIo<Upgraded>>,
    mut to: WriteHalf<TokioIo<Upgraded>>,
    mut pass: impl FnMut(&[u8], &mut BytesMut) -> Result<(), Broken>,
) -> Result<(), Broken> {
    let mut buffer = vec![0; ROOM];
    let mut out = BytesMut::new();
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            break;
        }
        pass(&buffer[..read], &mut out)?;
        to.write_all_buf(&mut out).await?;
        to.flush().await?;
    }
    // A peer that has already gone away needs no telling.
    let _ = to.shutdown().await;
    Ok(())
}

/// Looks at what a client sends, which it has masked.
pub(super) struct Upward {
    reader: Reader,
    watching: Watching,
    plain: Vec<u8>,
}

impl Upward {
    pub(super) fn new(watching: Watching) -> Self {
        Self {
            reader: Reader::new(Sender::Client),
            watching,
            plain: Vec::new(),
        }
    }

    /// Whether `bytes` may leave.
    fn check(&mut self, mut bytes: &[u8]) -> Result<(), Broken> {
        while let Some(piece) = self.reader.next(&mut bytes)? {
            piece.unmasked(&mut self.plain);
            // A ping between two parts of a message parts no placeholder.
            let [messages, others] = &mut self.watching.watches;
            let watch = if piece.header.opcode.is_control() {
                others
            } else {
                messages
            };
            if let Err(found) = watch.feed(&self.plain) {
                self.watching.alarm.raise(&found);
                return Err(Broken);
            }
        }
        Ok(())
    }
}

/// Hides secrets in what a server sends. Messages are put into frames of our
/// own, because hiding changes lengths.
pub(super) struct Downward {
    reader: Reader,
    looking: Looking,
    message: Option<Message>,
    /// The payload of a frame between the parts of messages.
    control: Vec<u8>,
}

/// A message that has not ended yet.
struct Message {
    hider: Hider,
    /// Of its next frame.
    opcode: Opcode,
    ready: BytesMut,
}

impl Downward {
    pub(super) fn new(looking: Looking) -> Self {
        Self {
            reader: Reader::new(Sender::Server),
            looking,
            message: None,
            control: Vec::new(),
        }
    }

    fn pass(&mut self, mut bytes: &[u8], out: &mut BytesMut) -> Result<(), Broken> {
        while let Some(piece) = self.reader.next(&mut bytes)? {
            if piece.header.opcode.is_control() {
                self.pass_control(&piece, out);
            } else {
                self.pass_part(&piece, out)?;
            }
        }
        if let Some(message) = &mut self.message {
            message.write(false, out);
        }
        Ok(())
    }

    fn pass_part(&mut self, piece: &Piece<'_>, out: &mut BytesMut) -> Result<(), Broken> {
        let opcode = piece.header.opcode;
        let begins = piece.begins() && opcode != Opcode::Continuation;
        if begins == self.message.is_some() && piece.begins() {
            // A part of nothing, or a message within a message.
            return Err(Broken);
        }
        let looking = &self.looking;
        let message = self
            .message
            .get_or_insert_with(|| Message::new(opcode, looking.clone()));
        message.hider.feed(piece.payload, &mut message.ready);
        if looking.is_cut() {
            return Err(Broken);
        }
        if piece.ends && piece.header.fin {
            message.hider.finish(&mut message.ready);
            message.write(true, out);
            self.message = None;
        }
        Ok(())
    }

    fn pass_control(&mut self, piece: &Piece<'_>, out: &mut BytesMut) {
        self.control.extend_from_slice(piece.payload);
        if !piece.ends {
            return;
        }
        let payload = std::mem::take(&mut self.control);
        let forms = self.looking.forms();
        let hidden = forms.as_ref().map(|forms| forms.scrub(&payload));
        let hidden = hidden.as_deref().unwrap_or(&payload);
        let length = hidden.len().min(LONGEST_CONTROL);
        frames::write(piece.header.opcode, true, &hidden[..length], out);
    }
}

impl Message {
    fn new(opcode: Opcode, looking: Looking) -> Self {
        let hiding = match opcode {
            Opcode::Text => Hiding::Placeholder,
            _ => Hiding::Covering,
        };
        Self {
            hider: Hider::new(hiding, looking),
            opcode,
            ready: BytesMut::new(),
        }
    }

    /// Writes what is ready, as a frame of its own.
    fn write(&mut self, fin: bool, out: &mut BytesMut) {
        if fin || !self.ready.is_empty() {
            frames::write(self.opcode, fin, &self.ready.split(), out);
            self.opcode = Opcode::Continuation;
        }
    }
}
