//! Frames of WebSocket (RFC 6455, 5.2), read piece by piece as they come.

use bytes::{BufMut, BytesMut};
use thiserror::Error;

/// The longest payload of a frame that is no part of a message.
pub(crate) const LONGEST_CONTROL: usize = 125;
const LONGEST_HEADER: usize = 14;

/// What a frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opcode {
    Continuation = 0,
    Text = 1,
    Binary = 2,
    Close = 8,
    Ping = 9,
    Pong = 10,
}

impl Opcode {
    fn of(bits: u8) -> Option<Self> {
        [
            Self::Continuation,
            Self::Text,
            Self::Binary,
            Self::Close,
            Self::Ping,
            Self::Pong,
        ]
        .into_iter()
        .find(|one| *one as u8 == bits)
    }

    /// Stands between the parts of messages.
    pub(crate) fn is_control(self) -> bool {
        self as u8 >= Self::Close as u8
    }
}

/// Who sent a frame: clients mask theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sender {
    Client,
    Server,
}

/// What stands before the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// The last frame of its message.
    pub(crate) fin: bool,
    pub(crate) opcode: Opcode,
    mask: [u8; 4],
    length: u64,
}

/// No frame, or one that cannot be looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("malformed WebSocket frame")]
pub(crate) struct BadFrame;

/// A part of a frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    pub(crate) header: Header,
    /// Of the payload, as sent.
    pub(crate) payload: &'a [u8],
    /// How much of the payload came before.
    offset: u64,
    /// The frame ends with it.
    pub(crate) ends: bool,
}

impl Piece<'_> {
    /// The frame begins with it.
    pub(crate) fn begins(&self) -> bool {
        self.offset == 0
    }

    /// The payload as it was meant.
    pub(crate) fn unmasked(&self, into: &mut Vec<u8>) {
        into.clear();
        let key = self.header.mask.iter().cycle();
        // Less than four.
        let skipped = (self.offset % 4) as usize;
        let pairs = self.payload.iter().zip(key.skip(skipped));
        into.extend(pairs.map(|(byte, key)| byte ^ key));
    }
}

/// Reads the frames of one side.
pub(crate) struct Reader {
    sender: Sender,
    /// The beginning of a header.
    pending: Vec<u8>,
    current: Option<(Header, u64)>,
}

impl Reader {
    pub(crate) fn new(sender: Sender) -> Self {
        Self {
            sender,
            pending: Vec::with_capacity(LONGEST_HEADER),
            current: None,
        }
    }

    /// Takes the next piece off the front of `bytes`; `None` when more is
    /// needed.
    pub(crate) fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Result<Option<Piece<'a>>, BadFrame> {
        let (header, offset) = match self.current.take() {
            Some(current) => {
                if bytes.is_empty() {
                    self.current = Some(current);
                    return Ok(None);
                }
                current
            }
            None => match self.header(bytes)? {
                Some(header) => (header, 0),
                None => return Ok(None),
            },
        };
        let left = header.length - offset;
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        let (payload, rest) = bytes.split_at(count);
        *bytes = rest;
        let reached = offset + count as u64;
        let ends = reached == header.length;
        if !ends {
            self.current = Some((header, reached));
        }
        Ok(Some(Piece {
            header,
            payload,
            offset,
            ends,
        }))
    }

    /// The next header, once it is there as a whole.
    fn header(&mut self, bytes: &mut &[u8]) -> Result<Option<Header>, BadFrame> {
        while let Some((first, rest)) = bytes.split_first() {
            self.pending.push(*first);
            *bytes = rest;
            if let Some(header) = self.parse()? {
                self.pending.clear();
                return Ok(Some(header));
            }
        }
        Ok(None)
    }

    fn parse(&self) -> Result<Option<Header>, BadFrame> {
        let [first, second, rest @ ..] = self.pending.as_slice() else {
            return Ok(None);
        };
        let masked = second & 0x80 != 0;
        // Bits of extensions, which nobody agreed on.
        if first & 0x70 != 0 || masked != (self.sender == Sender::Client) {
            return Err(BadFrame);
        }
        let Some((length, rest)) = length(second & 0x7f, rest) else {
            return Ok(None);
        };
        let mask = match (masked, rest) {
            (false, _) => [0; 4],
            (true, [a, b, c, d]) => [*a, *b, *c, *d],
            (true, _) => return Ok(None),
        };
        let header = Header {
            fin: first & 0x80 != 0,
            opcode: Opcode::of(first & 0x0f).ok_or(BadFrame)?,
            mask,
            length,
        };
        let fits = !header.opcode.is_control() || header.fin && length <= LONGEST_CONTROL as u64;
        (fits && length < 1 << 63)
            .then_some(Some(header))
            .ok_or(BadFrame)
    }
}

/// The length of the payload, and what follows it; `None` when it is not all
/// there.
fn length(short: u8, rest: &[u8]) -> Option<(u64, &[u8])> {
    match short {
        126 => {
            let (length, rest) = rest.split_first_chunk::<2>()?;
            Some((u16::from_be_bytes(*length).into(), rest))
        }
        127 => {
            let (length, rest) = rest.split_first_chunk::<8>()?;
            Some((u64::from_be_bytes(*length), rest))
        }
        short => Some((short.into(), rest)),
    }
}

/// Writes a frame as servers do.
pub(crate) fn write(opcode: Opcode, fin: bool, payload: &[u8], out: &mut BytesMut) {
    out.put_u8(u8::from(fin) << 7 | opcode as u8);
    match (u8::try_from(payload.len()), u16::try_from(payload.len())) {
        (Ok(length @ 0..=125), _) => out.put_u8(length),
        (_, Ok(length)) => {
            out.put_u8(126);
            out.put_u16(length);
        }
        _ => {
            out.put_u8(127);
            out.put_u64(payload.len() as u64);
        }
    }
    out.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All payloads, read in pieces of `step`.
    fn read(sender: Sender, bytes: &[u8], step: usize) -> Result<Vec<(Opcode, Vec<u8>)>, BadFrame> {
        let mut reader = Reader::new(sender);
        let mut found = Vec::new();
        let mut plain = Vec::new();
        let mut payload = Vec::new();
        for mut chunk in bytes.chunks(step) {
            while let Some(piece) = reader.next(&mut chunk)? {
                piece.unmasked(&mut plain);
                payload.extend_from_slice(&plain);
                if piece.ends {
                    found.push((piece.header.opcode, std::mem::take(&mut payload)));
                }
            }
        }
        Ok(found)
    }

    #[test]
    fn frames_are_read_however_they_are_cut() {
        // "Hello" of RFC 6455, 5.7, a ping without a payload, and a long one.
        let mut bytes = vec![
            0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58,
        ];
        bytes.extend([0x89, 0x80, 1, 2, 3, 4]);
        bytes.extend([0x82, 0xfe, 0x01, 0x00, 0, 0, 0, 0]);
        bytes.extend([7; 256]);
        for step in [1, 2, 3, 7, 1000] {
            let found = read(Sender::Client, &bytes, step).unwrap();
            let want = [
                (Opcode::Text, b"Hello".to_vec()),
                (Opcode::Ping, Vec::new()),
                (Opcode::Binary, vec![7; 256]),
            ];
            assert_eq!(found, want, "{step}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        for length in [0, 1, 125, 126, 65535, 65536] {
            let mut bytes = BytesMut::new();
            write(Opcode::Binary, true, &vec![9; length], &mut bytes);
            let found = read(Sender::Server, &bytes, 4096).unwrap();
            assert_eq!(found, [(Opcode::Binary, vec![9; length])]);
        }
    }

    #[test]
    fn what_cannot_be_looked_into_is_no_frame() {
        for (sender, bytes) in [
            (Sender::Client, &[0x81, 0x00][..]),
            (Sender::Server, &[0x81, 0x80]),
            (Sender::Server, &[0xc1, 0x00]),
            (Sender::Server, &[0x83, 0x00]),
            (Sender::Server, &[0x09, 0x00]),
            (Sender::Server, &[0x89, 126, 0, 126]),
            (Sender::Server, &[0x82, 127, 0xff, 0, 0, 0, 0, 0, 0, 0]),
        ] {
            assert_eq!(read(sender, bytes, 64), Err(BadFrame), "{bytes:?}");
        }
    }
}
