//! Where the time comes from; a test brings its own.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use crate::event::Timestamp;

/// One reading of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// What people's clocks show, which may jump.
    pub wall: Timestamp,
    /// Time since the clock was made, which never goes back.
    pub steady: Duration,
}

/// Tells the time.
pub trait Clock: Debug + Send {
    /// The present.
    fn now(&self) -> Moment;
}

/// The machine's clocks.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    made: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self {
            made: Instant::now(),
        }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        Moment {
            wall: Timestamp::now(),
            steady: self.made.elapsed(),
        }
    }
}
