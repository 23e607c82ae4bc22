//! Sees that no placeholder leaves in clear.
//!
//! A sandbox without credentials has no sentries, and pays nothing for them.

use std::rc::Rc;
use std::sync::Arc;

use crate::attempt::Attempt;
use crate::exit::Exit;
use crate::intercept::upgrade::frames::{BadFrame, Reader, Sender};
use crate::refusal::Refused;
use crate::secrets::{Found, Watch};

/// Why something with a placeholder in it is refused.
const CODE: &str = "placeholder-elsewhere";

/// Watches what one client sends to one place.
pub(crate) struct Sentry {
    exit: Rc<Exit>,
    attempt: Attempt,
    /// Everything as it is sent.
    sent: Watch,
    /// The content of chunks or frames, without what stands between them.
    content: Watch,
    /// Reads what may be the frames of a WebSocket.
    frames: Option<Frames>,
}

/// Frames of a WebSocket's client, which are masked.
struct Frames {
    reader: Reader,
    /// What a frame means.
    plain: Vec<u8>,
}

impl Sentry {
    /// One for what leaves by `attempt`, if there is anything to watch for.
    pub(crate) fn of(exit: &Rc<Exit>, attempt: &Attempt) -> Option<Self> {
        let placeholders = exit.placeholders()?;
        Some(Self {
            exit: Rc::clone(exit),
            attempt: attempt.clone(),
            sent: Watch::new(Arc::clone(placeholders)),
            content: Watch::new(Arc::clone(placeholders)),
            frames: None,
        })
    }

    /// The same for a connection that speaks something else after a request,
    /// most likely WebSocket.
    pub(crate) fn after_switch(exit: &Rc<Exit>, attempt: &Attempt) -> Option<Self> {
        let frames = Frames {
            reader: Reader::new(Sender::Client),
            plain: Vec::new(),
        };
        Self::of(exit, attempt).map(|sentry| Self {
            frames: Some(frames),
            ..sentry
        })
    }

    /// Looks at bytes before they are sent; a refusal is written down, and none
    /// of them may leave.
    pub(crate) fn check(&mut self, bytes: &[u8]) -> Result<(), Refused> {
        let looked = self.sent.feed(bytes);
        let looked = looked.and_then(|()| self.check_frames(bytes));
        looked.map_err(|found| self.refuse(&found))
    }

    fn check_frames(&mut self, mut bytes: &[u8]) -> Result<(), Found> {
        let Some(Frames { reader, plain }) = &mut self.frames else {
            return Ok(());
        };
        loop {
            match reader.next(&mut bytes) {
                Ok(Some(piece)) => {
                    piece.unmasked(plain);
                    self.content.feed(plain)?;
                }
                Ok(None) => return Ok(()),
                Err(BadFrame) => {
                    // It is something else.
                    self.frames = None;
                    return Ok(());
                }
            }
        }
    }

    /// The same for the content of chunks.
    pub(crate) fn check_content(&mut self, content: &[u8]) -> Result<(), Refused> {
        let looked = self.content.feed(content);
        looked.map_err(|found| self.refuse(&found))
    }

    fn refuse(&self, found: &Found) -> Refused {
        self.exit.refuse_placeholder(&self.attempt, found)
    }
}

impl Exit {
    /// Refuses what has a placeholder in it that does not belong there, and
    /// records it.
    pub(crate) fn refuse_placeholder(&self, attempt: &Attempt, found: &Found) -> Refused {
        let phrase = format!(
            "the placeholder of {} is sent where its secret does not belong",
            found.service
        );
        self.refuse(attempt, CODE, &phrase)
    }

    /// Names are sent to resolvers, and to whoever answers for them.
    pub(crate) fn check_target(&self, attempt: &Attempt) -> Result<(), Refused> {
        let (Some(placeholders), Some(name)) = (self.placeholders(), attempt.target.name()) else {
            return Ok(());
        };
        let looked = Watch::new(Arc::clone(placeholders)).feed(name.as_str().as_bytes());
        looked.map_err(|found| self.refuse_placeholder(attempt, &found))
    }
}

#[cfg(test)]
mod tests;
