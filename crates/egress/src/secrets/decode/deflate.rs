//! gzip and deflate.

use std::io::{self, Write};

use bytes::BytesMut;
use flate2::write::GzDecoder;
use flate2::{Decompress, FlushDecompress, Status};

use super::{DecodeError, Progress, STEP, append};

/// So much is decoded at once; it becomes at most about a thousand times as
/// much.
const PIECE: usize = 128;
const MALFORMED: DecodeError = DecodeError::Malformed("gzip");

/// One or more gzip members. What comes after them and is none is left out, as
/// most clients leave it out.
pub(super) struct Gzip {
    member: GzDecoder<Vec<u8>>,
    /// There was another one before.
    is_further: bool,
    is_done: bool,
}

impl Default for Gzip {
    fn default() -> Self {
        Self {
            member: GzDecoder::new(Vec::new()),
            is_further: false,
            is_done: false,
        }
    }
}

impl Gzip {
    pub(super) fn decode(
        &mut self,
        input: &mut &[u8],
        out: &mut BytesMut,
    ) -> Result<Progress, DecodeError> {
        let mut piece = &input[..input.len().min(PIECE)];
        *input = &input[piece.len()..];
        while !piece.is_empty() && !self.is_done {
            match self.decode_piece(piece, out) {
                Ok(0) => self.begin_next()?,
                Ok(taken) => piece = &piece[taken..],
                Err(_) if self.may_be_none() => self.is_done = true,
                Err(_) => return Err(MALFORMED),
            }
        }
        if self.is_done {
            *input = &[];
            return Ok(Progress::Done);
        }
        Ok(if input.is_empty() {
            Progress::NeedsInput
        } else {
            Progress::More
        })
    }

    /// Takes what belongs to the member, and gives out what that means.
    fn decode_piece(&mut self, piece: &[u8], out: &mut BytesMut) -> io::Result<usize> {
        let taken = self.member.write(piece)?;
        self.member.flush()?;
        let decoded = self.member.get_mut();
        out.extend_from_slice(decoded);
        *decoded = Vec::new();
        Ok(taken)
    }

    fn begin_next(&mut self) -> Result<(), DecodeError> {
        self.member.try_finish().map_err(|_| MALFORMED)?;
        self.member = GzDecoder::new(Vec::new());
        self.is_further = true;
        Ok(())
    }

    /// Whether what is read may be no member at all. That is settled by its
    /// header: how much of what follows is decoded before it turns out to be
    /// wrong depends on the pieces in which it comes.
    fn may_be_none(&self) -> bool {
        self.is_further && self.member.header().is_none()
    }

    pub(super) fn is_complete(&mut self) -> bool {
        self.is_done || self.may_be_none() || self.member.try_finish().is_ok()
    }
}

/// What is called `deflate`: with the frame of zlib, as it should be, or
/// without, as some servers send it.
#[derive(Default)]
pub(super) struct Deflate {
    stream: Option<Decompress>,
    is_complete: bool,
}

impl Deflate {
    pub(super) fn decode(
        &mut self,
        input: &mut &[u8],
        out: &mut BytesMut,
    ) -> Result<Progress, DecodeError> {
        if self.is_complete {
            *input = &[];
            return Ok(Progress::Done);
        }
        let stream = match (&mut self.stream, input.first()) {
            (None, None) => return Ok(Progress::NeedsInput),
            (None, Some(first)) => self.stream.insert(Decompress::new(has_frame(*first))),
            (Some(stream), _) => stream,
        };
        let (read, wrote) = (stream.total_in(), stream.total_out());
        let status = append(out, |room| {
            let status = stream.decompress(input, room, FlushDecompress::None);
            (length(stream.total_out() - wrote), status)
        });
        let read = length(stream.total_in() - read);
        let wrote = length(stream.total_out() - wrote);
        *input = &input[read..];
        match status {
            Ok(Status::StreamEnd) => {
                self.is_complete = true;
                *input = &[];
                Ok(Progress::Done)
            }
            Ok(_) if wrote == STEP => Ok(Progress::More),
            Ok(_) if input.is_empty() => Ok(Progress::NeedsInput),
            Ok(_) if read + wrote > 0 => Ok(Progress::More),
            Ok(_) | Err(_) => Err(DecodeError::Malformed("deflate")),
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }
}

/// Whether the first byte is that of zlib: its method is 8, and its window not
/// too large. A stream without a frame that began like this would begin with a
/// stored block and wrong padding.
fn has_frame(first: u8) -> bool {
    first & 0x0f == 8 && first >> 4 <= 7
}

fn length(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
