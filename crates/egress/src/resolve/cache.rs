//! What name servers said lately.

use std::collections::HashMap;

use ringfence_policy::HostName;
use tokio::time::Instant;

use super::answer::Found;

const MOST_NAMES: usize = 1024;

/// Answers that still hold.
#[derive(Default)]
pub(super) struct Cache {
    known: HashMap<HostName, (Instant, Found)>,
}

impl Cache {
    pub(super) fn get(&self, name: &HostName, now: Instant) -> Option<Found> {
        let (until, found) = self.known.get(name)?;
        (*until > now).then(|| found.clone())
    }

    pub(super) fn put(&mut self, name: &HostName, found: Found, now: Instant) {
        if self.known.len() >= MOST_NAMES {
            self.known.retain(|_, (until, _)| *until > now);
        }
        // All of them hold: forgetting some costs a question each.
        if self.known.len() >= MOST_NAMES {
            self.known.clear();
        }
        self.known.insert(name.clone(), (now + found.keep, found));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::resolve::answer::Existence;

    fn name(number: usize) -> HostName {
        HostName::parse(&format!("n{number}.example.org")).unwrap()
    }

    fn found(seconds: u64) -> Found {
        Found {
            existence: Existence::Yes,
            addresses: vec![[192, 0, 2, 1].into()],
            keep: Duration::from_secs(seconds),
        }
    }

    #[test]
    fn answers_hold_for_as_long_as_they_say() {
        let mut cache = Cache::default();
        let now = Instant::now();
        cache.put(&name(1), found(5), now);
        let later = |seconds| now + Duration::from_secs(seconds);
        assert_eq!(cache.get(&name(1), later(4)), Some(found(5)));
        assert_eq!(cache.get(&name(1), later(5)), None);
        assert_eq!(cache.get(&name(2), now), None);
    }

    #[test]
    fn the_table_does_not_grow_without_end() {
        let mut cache = Cache::default();
        let now = Instant::now();
        for number in 0..3 * MOST_NAMES {
            cache.put(&name(number), found(5), now);
            assert!(cache.known.len() <= MOST_NAMES);
            assert!(cache.get(&name(number), now).is_some());
        }
    }
}
