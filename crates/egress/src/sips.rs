//! How much a connection reads whose request has given its room back: so much
//! as has been passed on, and a sip.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::traffic::Traffic;

/// Read and not passed on yet, at most.
pub(crate) const SIP: usize = 4 * 1024;
/// HTTP makes larger buffers after a read of so much, and keeps them.
const LARGE: usize = 8 * 1024;

/// What one connection has read, as far as the other has not sent it.
///
/// A connection reads only when what it read before has gone to the one that
/// sends it; and once that one has nothing left to send, all of it is gone.
#[derive(Debug, Default)]
pub(crate) struct Sips(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Who sends what is read, once it passes at all.
    sink: Option<Arc<Traffic>>,
    /// Perhaps not sent yet.
    unsent: usize,
    /// Of it, what was read when it last read.
    newest: usize,
    /// How often the sink was empty before that.
    mark: u64,
    is_narrow: bool,
    is_cut: bool,
    was_large: bool,
    reader: Option<Waker>,
    /// Whoever takes room for more.
    minder: Option<Waker>,
}

impl State {
    fn settle(&mut self) {
        let flushes = self.sink.as_ref().map(|sink| sink.flushes());
        if flushes.is_some_and(|flushes| flushes > self.mark) {
            self.unsent = self.newest;
        }
    }

    fn is_wanting(&self) -> bool {
        self.is_narrow && self.reader.is_some() && self.unsent >= SIP
    }
}

impl Sips {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How much may be read now; nothing where it does not matter how much.
    pub(crate) fn poll_most(&self, context: &mut Context<'_>) -> Poll<io::Result<Option<usize>>> {
        let mut state = self.state();
        if state.is_cut {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        state.settle();
        state.newest = 0;
        state.mark = state.sink.as_ref().map_or(0, |sink| sink.flushes());
        if !state.is_narrow {
            return Poll::Ready(Ok(None));
        }
        if state.unsent < SIP {
            return Poll::Ready(Ok(Some(SIP - state.unsent)));
        }
        state.reader = Some(context.waker().clone());
        if let Some(minder) = state.minder.take() {
            minder.wake();
        }
        Poll::Pending
    }

    /// Counts what was read.
    pub(crate) fn took(&self, count: usize) {
        let mut state = self.state();
        state.was_large |= count >= LARGE;
        state.unsent = state.unsent.saturating_add(count);
        state.newest = state.newest.saturating_add(count);
    }

    /// A request begins, of which nothing was read.
    pub(crate) fn begin(&self) {
        let mut state = self.state();
        (state.unsent, state.newest, state.sink) = (0, 0, None);
    }

    /// What is read from now on is sent by `sink`.
    pub(crate) fn pass_to(&self, sink: &Arc<Traffic>) {
        let mut state = self.state();
        state.mark = sink.flushes();
        state.newest = state.unsent;
        state.sink = Some(Arc::clone(sink));
    }

    /// Whether it holds no more than a sip, and never read much at once.
    pub(crate) fn is_little(&self) -> bool {
        let mut state = self.state();
        state.settle();
        state.unsent < SIP && !state.was_large
    }

    /// Whether no more than so much was read of what nobody has passed on, and
    /// never much at once.
    pub(crate) fn is_below(&self, most: usize) -> bool {
        let state = self.state();
        state.unsent < most && !state.was_large
    }

    /// Reads no more than a sip ahead from now on.
    pub(crate) fn narrow(&self) {
        let mut state = self.state();
        state.is_narrow = true;
        if state.sink.is_none() && state.unsent >= SIP {
            // It was used up.
            state.unsent = 0;
        }
    }

    /// Reads as much as comes again.
    pub(crate) fn widen(&self) {
        let mut state = self.state();
        state.is_narrow = false;
        if let Some(reader) = state.reader.take() {
            reader.wake();
        }
    }

    /// Reads nothing any more.
    pub(crate) fn cut(&self) {
        self.state().is_cut = true;
        self.widen();
    }

    /// Ready when it could read more than it may.
    pub(crate) fn poll_wanting(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.is_wanting() {
            return Poll::Ready(());
        }
        state.minder = Some(context.waker().clone());
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn most(sips: &Sips) -> Poll<Option<usize>> {
        let mut context = Context::from_waker(Waker::noop());
        sips.poll_most(&mut context).map(|most| most.unwrap())
    }

    fn is_wanting(sips: &Sips) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        sips.poll_wanting(&mut context).is_ready()
    }

    #[test]
    fn g9_no_more_is_read_than_a_sip_until_it_is_sent() {
        let (sink, sips) = (Arc::new(Traffic::new()), Sips::default());
        sips.begin();
        assert_eq!(most(&sips), Poll::Ready(None));
        sips.pass_to(&sink);
        sips.narrow();
        assert_eq!(most(&sips), Poll::Ready(Some(SIP)));
        sips.took(1000);
        assert_eq!(most(&sips), Poll::Ready(Some(SIP - 1000)));
        sips.took(SIP - 1000);
        assert!(!is_wanting(&sips));
        assert_eq!(most(&sips), Poll::Pending);
        assert!(is_wanting(&sips), "nothing was sent");
        sink.flushed();
        assert_eq!(most(&sips), Poll::Ready(Some(SIP)));
        sips.took(SIP);
        // Sent was what came before it, perhaps.
        sink.flushed();
        assert!(!sips.is_little());
        assert_eq!(most(&sips), Poll::Pending);
        sips.widen();
        assert_eq!(most(&sips), Poll::Ready(None));
        sink.flushed();
        assert!(sips.is_little());
        sips.took(LARGE);
        sips.begin();
        assert!(!sips.is_little(), "its buffers are large");
    }

    #[test]
    fn g9_a_head_that_has_not_ended_is_held_whatever_is_sent() {
        let (sink, sips) = (Traffic::new(), Sips::default());
        sips.narrow();
        sips.took(SIP);
        sink.flushed();
        assert_eq!(most(&sips), Poll::Pending);
        sips.cut();
        let mut context = Context::from_waker(Waker::noop());
        assert!(matches!(sips.poll_most(&mut context), Poll::Ready(Err(_))));
    }
}
