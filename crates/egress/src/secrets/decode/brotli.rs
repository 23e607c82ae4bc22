//! Brotli.

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use bytes::BytesMut;

use super::{DecodeError, Progress, append};

type State = BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>;

pub(super) struct Brotli {
    state: Box<State>,
    is_complete: bool,
}

impl Default for Brotli {
    fn default() -> Self {
        let memory = StandardAlloc::default;
        Self {
            // Not the windows of up to 1 GiB that browsers do not take either.
            state: Box::new(State::new_strict(memory(), memory(), memory())),
            is_complete: false,
        }
    }
}

impl Brotli {
    pub(super) fn decode(
        &mut self,
        input: &mut &[u8],
        out: &mut BytesMut,
    ) -> Result<Progress, DecodeError> {
        if self.is_complete {
            *input = &[];
            return Ok(Progress::Done);
        }
        let (mut left, mut used) = (input.len(), 0);
        let result = append(out, |room| {
            let (mut free, mut written) = (room.len(), 0);
            let result = BrotliDecompressStream(
                &mut left,
                &mut used,
                input,
                &mut free,
                &mut written,
                room,
                &mut 0,
                &mut self.state,
            );
            (written, result)
        });
        *input = &input[used..];
        match result {
            BrotliResult::NeedsMoreInput => Ok(Progress::NeedsInput),
            BrotliResult::NeedsMoreOutput => Ok(Progress::More),
            BrotliResult::ResultSuccess => {
                self.is_complete = true;
                *input = &[];
                Ok(Progress::Done)
            }
            BrotliResult::ResultFailure => Err(DecodeError::Malformed("br")),
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }
}
