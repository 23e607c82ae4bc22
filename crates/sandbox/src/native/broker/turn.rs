//! How long the init serves calls before it looks at everything else.

use std::time::{Duration, Instant};

/// The longest that calls are served in a row. The last one may take longer.
const LONGEST: Duration = Duration::from_millis(4);
/// The most calls, where they take no time at all.
const MOST: u32 = 128;

/// One turn of serving.
#[derive(Debug)]
pub(super) struct Turn {
    until: Option<Instant>,
    left: u32,
}

impl Turn {
    pub(super) fn begin(now: Instant) -> Self {
        Self {
            until: now.checked_add(LONGEST),
            left: MOST,
        }
    }

    /// Whether one more call may be served now.
    pub(super) fn goes_on(&mut self, now: Instant) -> bool {
        let goes_on = self.left > 0 && self.until.is_some_and(|until| now < until);
        self.left = self.left.saturating_sub(1);
        goes_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many calls are served in a turn if each takes so long.
    fn served(each: Duration) -> usize {
        let mut now = Instant::now();
        let mut turn = Turn::begin(now);
        let calls = std::iter::repeat_with(|| {
            now += each;
            turn.goes_on(now)
        });
        calls.take_while(|goes_on| *goes_on).count()
    }

    #[test]
    fn g9_slow_calls_end_a_turn_sooner_than_quick_ones() {
        assert_eq!(served(Duration::ZERO), 128);
        assert_eq!(served(Duration::from_micros(100)), 39);
        assert_eq!(served(Duration::from_millis(1)), 3);
        assert_eq!(served(Duration::from_secs(1)), 0);
    }
}
