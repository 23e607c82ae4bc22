//! Which files of sockets were bound in this run, and by which socket.
//!
//! Every `bind` to a path is carried out by the broker, so it knows what the
//! kernel's socket diagnostics cannot say: on an overlay, as the home is, and on
//! a subvolume they name another device than `stat` does.

use std::collections::VecDeque;

use crate::view::FileId;

/// More are hardly wanted at once; of more the oldest is forgotten.
const MOST_REMEMBERED: usize = 4096;

/// Files of sockets by identity, because a name can be moved, with the inode
/// number of the last socket that was bound to each.
#[derive(Debug, Default)]
pub(super) struct BoundHere(VecDeque<(FileId, u32)>);

impl BoundHere {
    pub(super) fn remember(&mut self, file: FileId, socket: u32) {
        self.0.retain(|(known, _)| *known != file);
        if self.0.len() == MOST_REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back((file, socket));
    }

    /// The socket that was bound to `file` in this run; it may be gone.
    pub(super) fn socket_of(&self, file: FileId) -> Option<u32> {
        let mut all = self.0.iter();
        all.find_map(|(known, socket)| (*known == file).then_some(*socket))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_the_oldest_is_forgotten() {
        let mut bound = BoundHere::default();
        let most = u32::try_from(MOST_REMEMBERED).unwrap();
        let file = |number: u32| FileId::new(1, number.into());
        for number in 0..=most {
            bound.remember(file(number), 0);
            bound.remember(file(number), number);
        }
        assert_eq!(bound.socket_of(file(0)), None);
        assert_eq!(bound.socket_of(file(1)), Some(1));
        assert_eq!(bound.socket_of(file(most)), Some(most));
        assert_eq!(bound.socket_of(FileId::new(2, 1)), None);
    }
}
