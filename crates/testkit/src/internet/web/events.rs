//! A stream of events, each of which is sent only when somebody asks for it:
//! whoever holds one back waits forever.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;

use super::answer::{Answer, streamed};

/// The streams by name, with how many events may be sent.
#[derive(Debug, Clone, Default)]
pub(super) struct Gates(Arc<Mutex<HashMap<String, Arc<Semaphore>>>>);

impl Gates {
    /// Lets one more event of this stream be sent.
    pub(super) fn open(&self, name: &str) {
        self.gate(name).add_permits(1);
    }

    /// The stream: `count` events with `text`, the first of them at once.
    pub(super) fn stream(&self, name: &str, count: usize, text: String) -> Answer {
        let gate = self.gate(name);
        gate.add_permits(1);
        streamed("text/event-stream", async move |mut pieces| {
            for number in 1..=count {
                gate.acquire().await.ok()?.forget();
                let event = format!("data: {number} {text}\n\n");
                pieces.send(event).await?;
            }
            Some(())
        })
    }

    fn gate(&self, name: &str) -> Arc<Semaphore> {
        let mut gates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let gate = gates.entry(name.to_owned());
        Arc::clone(gate.or_insert_with(|| Arc::new(Semaphore::new(0))))
    }
}
