//! Counting refusals inside, so that a flood of them costs no more than a few.

use std::collections::HashMap;

use crate::wire::Refusal;

/// The most different refusals that are told apart.
const MOST_DISTINCT: usize = 512;

/// Refusals by what was refused, with how often.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    counts: HashMap<Refusal, u64>,
    uncounted: u64,
}

impl Refusals {
    /// Counts one. True when it is the first of its kind.
    pub(super) fn add(&mut self, refusal: &Refusal) -> bool {
        if let Some(count) = self.counts.get_mut(refusal) {
            *count += 1;
            return false;
        }
        if self.counts.len() >= MOST_DISTINCT {
            self.uncounted += 1;
            return false;
        }
        self.counts.insert(refusal.clone(), 1);
        true
    }

    /// Those that happened more than once.
    pub(super) fn repeated(&self) -> impl Iterator<Item = (&Refusal, u64)> {
        self.counts
            .iter()
            .filter(|(_, count)| **count > 1)
            .map(|(refusal, count)| (refusal, *count))
    }

    /// How many were not told apart.
    pub(super) fn uncounted(&self) -> u64 {
        self.uncounted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Operation, RefusalKind};

    #[test]
    fn a_flood_is_counted_and_bounded() {
        let mut refusals = Refusals::default();
        for n in 0..10 * MOST_DISTINCT {
            let subject = n.to_string();
            refusals.add(&Refusal::new(
                RefusalKind::File,
                Operation::Create,
                &subject,
                "r",
            ));
        }
        let known = Refusal::new(RefusalKind::File, Operation::Create, "0", "r");
        assert!(!refusals.add(&known));
        assert_eq!(refusals.repeated().collect::<Vec<_>>(), [(&known, 2)]);
        assert_eq!(refusals.uncounted(), 9 * MOST_DISTINCT as u64);
    }
}
