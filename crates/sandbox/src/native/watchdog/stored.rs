//! Memory that is there whether or not a process has it mapped: on the private
//! storage, in System V segments, and in files without a name.
//!
//! The first two are asked for. The last have to be looked for, which is done
//! when the machine has more shared memory than can be explained, and now and
//! then without a sign, since others may have freed as much meanwhile.

use std::rc::Rc;
use std::time::Duration;

use ringfence_sys::Errno;

use super::mappings::Known;
use super::nameless::{Nameless, Progress};
use super::reserve::Reserve;
use super::{machine, segments};
use crate::native::storage::Storage;

/// Between two walks over descriptors for which there is no sign lies at least
/// this many times what the last one took.
const REST_WITHOUT_SIGN: u32 = 100;
const LEAST_REST_WITHOUT_SIGN: Duration = Duration::from_secs(1);
/// Shared memory beyond this part of the limit is worth looking for.
const WORTH_LOOKING: u64 = 16;

/// The account of such memory.
pub(super) struct Stored {
    reserve: Rc<Reserve>,
    storage: Storage,
    /// Nothing where there are no such files.
    nameless: Option<Nameless>,
    unexplained: Unexplained,
}

impl Stored {
    pub(super) fn open(reserve: &Rc<Reserve>) -> Result<Self, Errno> {
        Ok(Self {
            reserve: Rc::clone(reserve),
            storage: Storage::open()?,
            nameless: Nameless::new(Rc::clone(reserve)).ok(),
            unexplained: Unexplained(machine::shared_memory()),
        })
    }

    pub(super) fn bytes(&mut self) -> u64 {
        let nameless = self.nameless.as_mut().map_or(0, Nameless::bytes);
        let storage = self.storage.added().bytes;
        storage
            .saturating_add(segments::bytes(&self.reserve))
            .saturating_add(nameless)
    }

    /// Begins to look for more if there seems to be some. Of shared memory, so
    /// much is `known`.
    pub(super) fn look_for_more(&mut self, known: u64, limit: u64) {
        let is_sign =
            self.unexplained
                .is_sign(machine::shared_memory(), known, limit / WORTH_LOOKING);
        if let Some(nameless) = &mut self.nameless
            && (is_sign || nameless.has_rested(LEAST_REST_WITHOUT_SIGN, REST_WITHOUT_SIGN))
        {
            nameless.begin();
        }
    }

    /// Goes on looking. So much is mapped.
    pub(super) fn go_on(&mut self, slice: Duration, mapped: u64) -> Progress {
        let Some(nameless) = &mut self.nameless else {
            return Progress::Over;
        };
        let progress = nameless.go_on(slice);
        if progress != Progress::UnderWay {
            let known = self.bytes().max(mapped);
            self.unexplained.accept(machine::shared_memory(), known);
        }
        progress
    }

    pub(super) fn is_looking(&self) -> bool {
        self.nameless.as_ref().is_some_and(Nameless::is_under_way)
    }

    pub(super) fn known(&self) -> Known {
        let (device, inodes) = self
            .nameless
            .as_ref()
            .map_or_else(Default::default, Nameless::known);
        Known { device, inodes }
    }
}

/// The shared memory of the machine that is not known to be the sandbox's; the
/// least there was since it was last looked for.
#[derive(Debug)]
struct Unexplained(Option<u64>);

impl Unexplained {
    /// Whether there is so much more that it is worth looking for. What others
    /// have freed is room in which more could hide.
    fn is_sign(&mut self, machine: Option<u64>, known: u64, worth: u64) -> bool {
        let (Some(before), Some(machine)) = (self.0, machine) else {
            return false;
        };
        let now = machine.saturating_sub(known);
        self.0 = Some(before.min(now));
        now > before.saturating_add(worth)
    }

    /// What is there now was looked for.
    fn accept(&mut self, machine: Option<u64>, known: u64) {
        self.0 = machine.map(|machine| machine.saturating_sub(known));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g9_shared_memory_that_nobody_explains_is_a_sign_once() {
        let mut unexplained = Unexplained(Some(1000));
        assert!(!unexplained.is_sign(Some(1100), 0, 100));
        assert!(!unexplained.is_sign(Some(1500), 450, 100));
        assert!(unexplained.is_sign(Some(1101), 0, 100));
        unexplained.accept(Some(1101), 0);
        assert!(!unexplained.is_sign(Some(1101), 0, 100));
    }

    #[test]
    fn g9_what_others_free_hides_nothing() {
        let mut unexplained = Unexplained(Some(1000));
        assert!(!unexplained.is_sign(Some(200), 0, 100));
        assert!(unexplained.is_sign(Some(301), 0, 100));
        assert!(!Unexplained(None).is_sign(Some(1), 0, 0));
    }
}
