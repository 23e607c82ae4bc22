//! Buffers for copying, shared by all connections of a thread.
//!
//! A buffer is taken when there is something to read and given back when it is
//! written, so that quiet connections hold none and a busy one has a large one.
//! When many are held by connections whose other side is slow, further ones
//! are small: memory stays bounded whatever the clients do.

use std::cell::{Cell, RefCell};
use std::ops::{Deref, DerefMut};

/// A copy gains up to about this size.
const LARGE: usize = 512 * 1024;
const SMALL: usize = 8 * 1024;
/// Large buffers in use at once.
const MOST_LARGE: usize = 8;
/// Large buffers kept for later.
const KEPT: usize = 2;

thread_local! {
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
    static LENT: Cell<usize> = const { Cell::new(0) };
}

/// A buffer on loan.
pub(crate) struct Buffer(Vec<u8>);

impl Buffer {
    /// Takes a large one while there are not too many, else a small one.
    pub(crate) fn take() -> Self {
        if LENT.get() >= MOST_LARGE {
            return Self(vec![0; SMALL]);
        }
        LENT.set(LENT.get() + 1);
        let spare = SPARE.with_borrow_mut(Vec::pop);
        Self(spare.unwrap_or_else(|| vec![0; LARGE]))
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.0.len() != LARGE {
            return;
        }
        LENT.set(LENT.get().saturating_sub(1));
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < KEPT {
                spare.push(std::mem::take(&mut self.0));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_held_at_once_become_small_and_are_reused() {
        let held: Vec<Buffer> = (0..MOST_LARGE + 5).map(|_| Buffer::take()).collect();
        let large = held.iter().filter(|buffer| buffer.len() == LARGE).count();
        assert_eq!(large, MOST_LARGE);
        drop(held);
        assert_eq!(Buffer::take().len(), LARGE);
        assert_eq!(SPARE.with_borrow(Vec::len), KEPT);
    }
}
