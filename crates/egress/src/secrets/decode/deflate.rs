//! gzip and deflate.

use std::io::Write;

use bytes::BytesMut;
use flate2::write::MultiGzDecoder;
use flate2::{Decompress, FlushDecompress, Status};

use super::{DecodeError, Progress, STEP, append};

/// So much is decoded at once; it becomes at most about a thousand times as
/// much.
const PIECE: usize = 1024;

/// One or more gzip members.
pub(super) struct Gzip {
    decoder: MultiGzDecoder<Vec<u8>>,
}

impl Default for Gzip {
    fn default() -> Self {
        Self {
            decoder: MultiGzDecoder::new(Vec::new()),
        }
    }
}

impl Gzip {
    pub(super) fn decode(
        &mut self,
        input: &mut &[u8],
        out: &mut BytesMut,
    ) -> Result<Progress, DecodeError> {
        let malformed = |_| DecodeError::Malformed("gzip");
        let piece = &input[..input.len().min(PIECE)];
        self.decoder.write_all(piece).map_err(malformed)?;
        self.decoder.flush().map_err(malformed)?;
        *input = &input[piece.len()..];
        let decoded = self.decoder.get_mut();
        out.extend_from_slice(decoded);
        decoded.clear();
        Ok(if input.is_empty() {
            Progress::NeedsInput
        } else {
            Progress::More
        })
    }

    pub(super) fn is_complete(&mut self) -> bool {
        self.decoder.try_finish().is_ok()
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
