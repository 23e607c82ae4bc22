//! [`Shared`]: one answer for all who ask at the same time, kept for a while
//! if that is wanted.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use ringfence_egress::SecretError;
use zeroize::Zeroizing;

pub(super) type Answer = Result<Zeroizing<String>, SecretError>;

/// Something that takes a while to find out.
#[derive(Default)]
pub(super) struct Shared(Mutex<Option<Arc<Finding>>>);

/// An answer once it is there, and when it was begun to be found.
type Finding = OnceLock<(Instant, Answer)>;

impl Shared {
    /// The answer: one that is younger than `keep`, the one that somebody is
    /// finding already, or else what `find` says. A failure is not kept.
    pub(super) fn get(&self, keep: Option<Duration>, find: impl FnOnce() -> Answer) -> Answer {
        let finding = self.join(keep);
        let (_, answer) = finding.get_or_init(|| (Instant::now(), find()));
        if keep.is_none() || answer.is_err() {
            self.forget(&finding);
        }
        answer.clone()
    }

    fn join(&self, keep: Option<Duration>) -> Arc<Finding> {
        let mut current = self.current();
        match &*current {
            Some(finding) if is_usable(finding, keep) => Arc::clone(finding),
            _ => Arc::clone(current.insert(Arc::default())),
        }
    }

    fn forget(&self, finding: &Arc<Finding>) {
        let mut current = self.current();
        if current
            .as_ref()
            .is_some_and(|other| Arc::ptr_eq(other, finding))
        {
            *current = None;
        }
    }

    fn current(&self) -> MutexGuard<'_, Option<Arc<Finding>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_usable(finding: &Finding, keep: Option<Duration>) -> bool {
    match finding.get() {
        None => true,
        Some((begun, Ok(_))) => keep.is_some_and(|keep| begun.elapsed() < keep),
        Some((_, Err(_))) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;

    const LONG: Option<Duration> = Some(Duration::from_hours(1));

    fn text(number: usize) -> Zeroizing<String> {
        Zeroizing::new(number.to_string())
    }

    #[test]
    fn an_answer_is_kept_as_long_as_that_is_wanted() {
        let (shared, count) = (Shared::default(), AtomicUsize::new(0));
        let ask = |keep| {
            let found = shared.get(keep, || Ok(text(count.fetch_add(1, Ordering::Relaxed))));
            found.unwrap().as_str().to_owned()
        };
        assert_eq!([ask(LONG), ask(LONG)], ["0", "0"]);
        assert_eq!(ask(Some(Duration::ZERO)), "1");
        assert_eq!([ask(None), ask(None)], ["2", "3"]);
        assert!(shared.current().is_none(), "nothing is kept");
    }

    #[test]
    fn a_failure_is_not_kept() {
        let shared = Shared::default();
        let failed = shared.get(LONG, || Err(SecretError::Failed("once".to_owned())));
        assert!(failed.is_err());
        assert_eq!(shared.get(LONG, || Ok(text(7))), Ok(text(7)));
    }

    #[test]
    fn who_asks_at_the_same_time_gets_the_same_answer() {
        let shared = Shared::default();
        let (sign, seen) = mpsc::channel();
        let (leave, left) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let first = scope.spawn(|| {
                shared.get(None, move || {
                    sign.send(()).unwrap();
                    left.recv().unwrap();
                    Ok(text(1))
                })
            });
            seen.recv().unwrap();
            let others: Vec<_> = (0..3)
                .map(|_| shared.join(None))
                .map(|joined| scope.spawn(move || joined.wait().1.clone()))
                .collect();
            leave.send(()).unwrap();
            assert_eq!(first.join().unwrap(), Ok(text(1)));
            for other in others {
                assert_eq!(other.join().unwrap(), Ok(text(1)));
            }
        });
        assert_eq!(shared.get(None, || Ok(text(2))), Ok(text(2)));
    }
}
