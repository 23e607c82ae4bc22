//! The supervisor's side of what is seen of calls inside.
//!
//! The memory is shared with the init, so it is read even when that was killed.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};

use ringfence_sys::{COUNTERS, Counter, Errno, RingReader};

use crate::observation::Observed;

/// Why what was seen cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ObservationError {
    /// The memory shared with the init makes no sense.
    #[error("what the sandbox's first process recorded makes no sense: {0}")]
    Memory(Errno),
    /// A record is none.
    #[error("the sandbox's first process recorded something unreadable: {0}")]
    Record(serde_json::Error),
}

/// What the supervisor has read of it, and has not.
#[derive(Debug)]
pub(super) struct Observations {
    reader: RingReader,
    /// How much of each counter was told.
    told: Mutex<Vec<u64>>,
}

impl Observations {
    pub(super) fn new(reader: RingReader) -> Self {
        Self {
            reader,
            told: Mutex::new(vec![0; COUNTERS]),
        }
    }

    pub(super) fn take(&self) -> Result<Vec<Observed>, ObservationError> {
        let records = self.reader.take().map_err(ObservationError::Memory)?;
        records
            .iter()
            .map(|record| serde_json::from_slice(record).map_err(ObservationError::Record))
            .collect()
    }

    /// What was counted since this was last asked.
    pub(super) fn take_counts(&self) -> Vec<Observed> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let counters = self.reader.counters().into_iter();
        counters
            .filter_map(|(number, counter)| {
                let new = counter.count.saturating_sub(told[number]);
                told[number] = counter.count;
                (new > 0).then(|| count(number, new, counter))
            })
            .collect()
    }
}

impl AsFd for Observations {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}

fn count(number: usize, count: u64, counter: Counter) -> Observed {
    Observed::Count {
        call: super::calls::name(number),
        count,
        first: counter.first,
        last: counter.last,
    }
}
