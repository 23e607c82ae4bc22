//! Zstandard.
//!
//! The frames are taken apart here, so that never more than one block is
//! decoded at once: a block of four bytes may stand for 128 KiB.

use std::io::Read;

use bytes::{Buf, BytesMut};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::{DecodeError, Progress, append};

/// What decoders have to support for HTTP (RFC 9659), and no more.
const LARGEST_WINDOW: u64 = 8 * 1024 * 1024;
const LARGEST_BLOCK: usize = 128 * 1024;
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

pub(super) struct Zstd {
    decoder: FrameDecoder,
    /// The beginning of the next part.
    part: BytesMut,
    next: Next,
}

/// What comes next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// A frame, or the end.
    Frame,
    Block {
        /// Of four bytes, after the last one.
        checksum: bool,
    },
    /// So many bytes that mean nothing.
    Skipped(usize),
}

fn malformed<E>(_: E) -> DecodeError {
    DecodeError::Malformed("zstd")
}

impl Default for Zstd {
    fn default() -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(LARGEST_WINDOW);
        Self {
            decoder,
            part: BytesMut::new(),
            next: Next::Frame,
        }
    }
}

impl Zstd {
    pub(super) fn decode(
        &mut self,
        input: &mut &[u8],
        out: &mut BytesMut,
    ) -> Result<Progress, DecodeError> {
        loop {
            if self.drain(out)? > 0 {
                return Ok(Progress::More);
            }
            if let Next::Skipped(left) = self.next {
                self.skip(left, input);
            } else if self.gather(input)? {
                self.take_part()?;
                continue;
            }
            if input.is_empty() {
                return Ok(Progress::NeedsInput);
            }
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.next == Next::Frame && self.part.is_empty()
    }

    fn drain(&mut self, out: &mut BytesMut) -> Result<usize, DecodeError> {
        append(out, |room| match self.decoder.read(room) {
            Ok(read) => (read, Ok(read)),
            Err(error) => (0, Err(malformed(error))),
        })
    }

    fn skip(&mut self, left: usize, input: &mut &[u8]) {
        let skipped = left.min(input.len());
        input.advance(skipped);
        self.next = match left - skipped {
            0 => Next::Frame,
            left => Next::Skipped(left),
        };
    }

    /// Whether the whole next part is there.
    fn gather(&mut self, input: &mut &[u8]) -> Result<bool, DecodeError> {
        loop {
            let wanted = self.wanted()?;
            let taken = wanted.saturating_sub(self.part.len()).min(input.len());
            self.part.extend_from_slice(&input[..taken]);
            input.advance(taken);
            if self.part.len() < wanted {
                return Ok(false);
            }
            if self.wanted()? == wanted {
                return Ok(true);
            }
        }
    }

    /// The length of the next part, as far as it is known.
    fn wanted(&self) -> Result<usize, DecodeError> {
        match self.next {
            Next::Block { checksum } => block_length(&self.part, checksum),
            _ => header_length(&self.part),
        }
    }

    fn take_part(&mut self) -> Result<(), DecodeError> {
        let part = std::mem::take(&mut self.part);
        self.next = match self.next {
            Next::Block { checksum } => {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                let ended = self.decoder.decode_blocks(&part[..], one);
                if ended.map_err(malformed)? {
                    Next::Frame
                } else {
                    Next::Block { checksum }
                }
            }
            _ if is_skippable(&part) => {
                let length = u32::from_le_bytes([part[4], part[5], part[6], part[7]]);
                Next::Skipped(usize::try_from(length).map_err(malformed)?)
            }
            _ => {
                self.decoder.reset(&part[..]).map_err(malformed)?;
                let checksum = part[4] & 4 != 0;
                Next::Block { checksum }
            }
        };
        Ok(())
    }
}

fn is_skippable(part: &[u8]) -> bool {
    part.first().is_some_and(|byte| byte & 0xf0 == 0x50)
        && part[1..].starts_with(&[0x2a, 0x4d, 0x18])
}

/// The length of a frame's header (RFC 8878, 3.1.1.1), or of that of a frame to
/// be skipped.
fn header_length(part: &[u8]) -> Result<usize, DecodeError> {
    let Some((magic, rest)) = part.split_at_checked(MAGIC.len()) else {
        return Ok(MAGIC.len());
    };
    if is_skippable(magic) {
        return Ok(MAGIC.len() + 4);
    }
    if magic != MAGIC {
        return Err(DecodeError::Malformed("zstd"));
    }
    let Some(descriptor) = rest.first() else {
        return Ok(MAGIC.len() + 1);
    };
    let is_single = descriptor & 0x20 != 0;
    let window = usize::from(!is_single);
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let size = [usize::from(is_single), 2, 4, 8][usize::from(descriptor >> 6)];
    Ok(MAGIC.len() + 1 + window + dictionary + size)
}

/// The length of a block, with its header of three bytes and what follows the
/// last one.
fn block_length(part: &[u8], checksum: bool) -> Result<usize, DecodeError> {
    let [first, second, third, ..] = *part else {
        return Ok(3);
    };
    let header = u32::from_le_bytes([first, second, third, 0]);
    let is_last = header & 1 != 0;
    let size = usize::try_from(header >> 3).map_err(malformed)?;
    if size > LARGEST_BLOCK {
        return Err(DecodeError::Malformed("zstd"));
    }
    let is_repeated = (header >> 1) & 3 == 1;
    let content = if is_repeated { 1 } else { size };
    let after = if is_last && checksum { 4 } else { 0 };
    Ok(3 + content + after)
}
