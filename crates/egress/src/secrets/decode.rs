//! Content encodings taken off, so that a body can be read.
//!
//! Each call takes a bounded step: what a small body expands to is passed on
//! piece by piece, and never kept as a whole.

mod brotli;
mod deflate;
mod zstd;

use bytes::{Buf, BytesMut};
use thiserror::Error;

use brotli::Brotli;
use deflate::{Deflate, Gzip};
use zstd::Zstd;

/// What to ask servers for: what looks back no further than 32 KiB. The window
/// of `br` may be of 16 MiB and that of `zstd` of 8, and of the latter nothing
/// comes out before the whole window is there.
pub(crate) const ACCEPTED: &str = "gzip, deflate";

/// About how many bytes one step appends.
const STEP: usize = 64 * 1024;
/// What a decoder of a large window holds, with its tables.
const LARGE_WINDOW: usize = 20 * 1024 * 1024;
/// How many encodings may be applied one after the other.
const MOST_STACKED: usize = 2;

/// Why a body cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum DecodeError {
    /// Its encoding is not known.
    #[error("the content encoding {0:?} is not known")]
    Unknown(String),
    /// It was encoded too often.
    #[error("the content was encoded more than {MOST_STACKED} times")]
    Stacked,
    /// It would have to be looked back at twice, and far.
    #[error("the content was encoded twice with a large window")]
    Windows,
    /// It is not what its encoding promises.
    #[error("the content is no valid {0}")]
    Malformed(&'static str),
    /// It ended too early.
    #[error("the content ends in the middle")]
    Truncated,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Another step with the same input.
    More,
    /// The input is used up.
    NeedsInput,
    /// The content is complete; what follows it is left out.
    Done,
}

/// Takes all encodings of one body off.
pub(crate) struct Decoder {
    /// The encoding that was applied last.
    outer: Stage,
    inner: Option<Inner>,
}

/// The encoding that was applied first, and what was taken out of the other.
struct Inner {
    stage: Stage,
    waiting: BytesMut,
}

enum Stage {
    Gzip(Box<Gzip>),
    Deflate(Deflate),
    Brotli(Brotli),
    Zstd(Box<Zstd>),
}

impl Decoder {
    /// By the value of `Content-Encoding`; `None` if there is nothing to do.
    pub(crate) fn new(content_encoding: &str) -> Result<Option<Self>, DecodeError> {
        let names = content_encoding.split(',').map(str::trim);
        let mut stages = Vec::new();
        for name in names.filter(|name| !name.is_empty()) {
            stages.extend(Stage::new(name)?);
            if stages.len() > MOST_STACKED {
                return Err(DecodeError::Stacked);
            }
        }
        if stages.len() > 1 && stages.iter().all(|stage| stage.window() > 0) {
            return Err(DecodeError::Windows);
        }
        let Some(outer) = stages.pop() else {
            return Ok(None);
        };
        let inner = stages.pop().map(|stage| Inner {
            stage,
            waiting: BytesMut::new(),
        });
        Ok(Some(Self { outer, inner }))
    }

    /// What it may hold to look back at; nothing worth counting for most.
    pub(crate) fn window(&self) -> usize {
        let inner = self.inner.as_ref().map(|inner| &inner.stage);
        let stages = [Some(&self.outer), inner].into_iter().flatten();
        stages.map(Stage::window).sum()
    }

    /// Takes one step: advances `input` and appends to `out`.
    pub(crate) fn decode(
        &mut self,
        input: &mut &[u8],
        out: &mut BytesMut,
    ) -> Result<Progress, DecodeError> {
        let Some(inner) = &mut self.inner else {
            return self.outer.decode(input, out);
        };
        let outer = if inner.waiting.is_empty() {
            self.outer.decode(input, &mut inner.waiting)?
        } else {
            Progress::More
        };
        match inner.decode(out)? {
            Progress::More => Ok(Progress::More),
            // The other may have its end still to come.
            Progress::NeedsInput | Progress::Done => Ok(outer),
        }
    }

    /// Whether the end of the input is that of the content, too.
    pub(crate) fn finish(&mut self) -> Result<(), DecodeError> {
        self.outer.finish()?;
        match &mut self.inner {
            Some(inner) if !inner.waiting.is_empty() => Err(DecodeError::Truncated),
            Some(inner) => inner.stage.finish(),
            None => Ok(()),
        }
    }
}

impl Inner {
    fn decode(&mut self, out: &mut BytesMut) -> Result<Progress, DecodeError> {
        let mut waiting = &self.waiting[..];
        let progress = self.stage.decode(&mut waiting, out)?;
        let left = waiting.len();
        self.waiting.advance(self.waiting.len() - left);
        if progress == Progress::Done {
            self.waiting.clear();
        }
        Ok(progress)
    }
}

impl Stage {
    /// `None` for an encoding that changes nothing.
    fn new(name: &str) -> Result<Option<Self>, DecodeError> {
        Ok(Some(match name.to_ascii_lowercase().as_str() {
            "identity" => return Ok(None),
            "gzip" | "x-gzip" => Self::Gzip(Box::default()),
            "deflate" => Self::Deflate(Deflate::default()),
            "br" => Self::Brotli(Brotli::default()),
            "zstd" => Self::Zstd(Box::default()),
            _ => return Err(DecodeError::Unknown(name.chars().take(40).collect())),
        }))
    }

    fn decode(&mut self, input: &mut &[u8], out: &mut BytesMut) -> Result<Progress, DecodeError> {
        match self {
            Self::Gzip(gzip) => gzip.decode(input, out),
            Self::Deflate(deflate) => deflate.decode(input, out),
            Self::Brotli(brotli) => brotli.decode(input, out),
            Self::Zstd(zstd) => zstd.decode(input, out),
        }
    }

    fn window(&self) -> usize {
        match self {
            Self::Gzip(_) | Self::Deflate(_) => 0,
            Self::Brotli(_) | Self::Zstd(_) => LARGE_WINDOW,
        }
    }

    fn finish(&mut self) -> Result<(), DecodeError> {
        let is_complete = match self {
            Self::Gzip(gzip) => gzip.is_complete(),
            Self::Deflate(deflate) => deflate.is_complete(),
            Self::Brotli(brotli) => brotli.is_complete(),
            Self::Zstd(zstd) => zstd.is_complete(),
        };
        is_complete.then_some(()).ok_or(DecodeError::Truncated)
    }
}

/// Lets `write` fill room at the end of `out`; it returns how much it used.
fn append<T>(out: &mut BytesMut, write: impl FnOnce(&mut [u8]) -> (usize, T)) -> T {
    let before = out.len();
    out.resize(before + STEP, 0);
    let (written, result) = write(&mut out[before..]);
    out.truncate(before + written);
    result
}

#[cfg(test)]
mod tests;
