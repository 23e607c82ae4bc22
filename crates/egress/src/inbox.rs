//! What came over a connection and was not used yet.
//!
//! The first bytes are part of what any connection may hold. For a large head
//! there is room in the budget, or it is waited for.

use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use bytes::BytesMut;

use crate::memory::{Memory, Reservation, Use};

/// Room for an ordinary head and the beginning of its body.
pub(crate) const ROOM: usize = 16 * 1024;
/// Less room than this is not worth a read.
const LEAST: usize = 4 * 1024;

/// Lets go of a copy of a head that was larger than most.
pub(crate) fn let_go_of_large(head: &mut Vec<u8>) {
    if head.capacity() > ROOM {
        *head = Vec::new();
    }
}

/// Unread bytes, and the part of the budget that they take.
#[derive(Default)]
pub(crate) struct Inbox {
    bytes: BytesMut,
    room: Option<Reservation>,
}

impl Inbox {
    /// Makes room for more, which may have to be waited for. One that is empty
    /// is an ordinary one again.
    pub(crate) async fn make_room(&mut self, memory: &Rc<Memory>, what: Use) {
        self.shrink();
        if self.bytes.capacity() - self.bytes.len() >= LEAST {
            return;
        }
        if self.bytes.len() + ROOM > 2 * ROOM - LEAST && self.room.is_none() {
            self.room = Some(memory.take(what).await);
        }
        let kept = match self.room {
            Some(_) => 0,
            None => self.bytes.len(),
        };
        self.bytes.reserve(ROOM - kept);
    }

    /// The bytes alone, for one who has room for them.
    pub(crate) fn into_bytes(self) -> BytesMut {
        self.bytes
    }

    fn shrink(&mut self) {
        if self.bytes.is_empty() && self.room.is_some() {
            *self = Self::default();
        }
    }
}

impl From<BytesMut> for Inbox {
    fn from(bytes: BytesMut) -> Self {
        Self { bytes, room: None }
    }
}

impl Deref for Inbox {
    type Target = BytesMut;

    fn deref(&self) -> &BytesMut {
        &self.bytes
    }
}

impl DerefMut for Inbox {
    fn deref_mut(&mut self) -> &mut BytesMut {
        &mut self.bytes
    }
}
