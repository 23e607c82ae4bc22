//! What hyper needs of the runtime: tasks on this thread, and a clock.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Executor, Sleep, Timer};

use crate::traffic::Traffic;

/// Runs tasks on the service's own thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OnThisThread;

impl<F> Executor<F> for OnThisThread
where
    F: Future + 'static,
{
    fn execute(&self, task: F) {
        tokio::task::spawn_local(async move {
            task.await;
        });
    }
}

/// Gives a client time for a head from when it begins to send one.
///
/// hyper counts from the end of the request before, and so would close
/// connections that are kept and quiet.
#[derive(Debug, Clone)]
pub(crate) struct HeadTimer(pub(crate) Arc<Traffic>);

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(Instant::now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(HeadTime {
            time: deadline.saturating_duration_since(Instant::now()),
            sleep: Box::pin(tokio::time::sleep_until(deadline.into())),
            seen: self.0.total_received(),
            begun: false,
            traffic: Arc::clone(&self.0),
        })
    }
}

/// Ends when a client that has begun to send has not finished in time, and at
/// the latest after twice that.
struct HeadTime {
    time: Duration,
    sleep: Pin<Box<tokio::time::Sleep>>,
    traffic: Arc<Traffic>,
    /// How much had come when the wait began.
    seen: u64,
    /// More had come when it was last looked at.
    begun: bool,
}

impl Sleep for HeadTime {}

impl Future for HeadTime {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        while self.sleep.as_mut().poll(context).is_ready() {
            if self.begun {
                return Poll::Ready(());
            }
            self.begun = self.traffic.total_received() != self.seen;
            let next = tokio::time::Instant::now() + self.time;
            self.sleep.as_mut().reset(next);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run;

    const TIME: Duration = Duration::from_millis(5);

    #[test]
    fn a_head_that_was_begun_must_end_in_time() {
        run(async {
            let traffic = Arc::new(Traffic::new());
            let waiting = HeadTimer(Arc::clone(&traffic)).sleep(TIME);
            traffic.received(1);
            waiting.await;
        });
    }

    #[test]
    fn a_client_that_sends_nothing_is_not_late() {
        run(async {
            let traffic = Arc::new(Traffic::new());
            traffic.received(1);
            let waiting = HeadTimer(traffic).sleep(TIME);
            assert!(tokio::time::timeout(TIME * 10, waiting).await.is_err());
        });
    }
}
