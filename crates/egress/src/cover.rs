//! Covers secrets in what a server says over a connection whose bytes pass as
//! they are: each is replaced, so lengths stay what they were.
//!
//! Here nobody knows where a message ends. So whatever is held back because a
//! secret may have begun in it passes when the server says no more for a while;
//! a secret that goes on after that is covered from there on.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::net::tcp::ReadHalf;

use crate::attempt::Attempt;
use crate::buffers::Buffer;
use crate::exit::Exit;
use crate::inbox::ROOM;
use crate::intercept::{Hider, Hiding, Looking};
use crate::secrets::Forms;

/// For a server to go on with what may be a secret. Whoever waits for what is
/// held back may have to speak before it does.
const PATIENCE: Duration = Duration::from_millis(100);

/// Read at once: as much as its reader has room for.
const MOST: usize = ROOM;

/// What covers them on one connection.
pub(crate) struct Cover(Box<Hider>);

impl Cover {
    /// Covers what left for the host that `attempt` leads to, if anything may
    /// have.
    pub(crate) fn of_returns(exit: &Rc<Exit>, attempt: &Attempt) -> Option<Self> {
        let looking = Looking::at_host(exit, attempt)?;
        Some(Self(Box::new(Hider::new(Hiding::Covering, looking))))
    }

    /// Covers what `forms` has.
    pub(crate) fn of(forms: Arc<Forms>) -> Self {
        Self(Box::new(Hider::new(Hiding::Covering, Looking::For(forms))))
    }

    /// Reads until there is something that may pass, which is appended to
    /// `out`; 0 at the end of the connection.
    pub(crate) async fn read(
        &mut self,
        from: &mut ReadHalf<'_>,
        out: &mut BytesMut,
    ) -> io::Result<usize> {
        let before = out.len();
        let mut has_ended = false;
        while out.len() == before && !has_ended {
            let mut buffer = Buffer::take();
            let most = buffer.len().min(MOST);
            match from.try_read(&mut buffer[..most]) {
                Ok(0) => {
                    self.0.finish(out);
                    has_ended = true;
                }
                Ok(read) => self.0.feed(&buffer[..read], out),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    drop(buffer);
                    self.pause(from, out).await?;
                }
                Err(error) => return Err(error),
            }
            self.check()?;
        }
        Ok(out.len() - before)
    }

    /// Nothing is let in by which secrets are guessed.
    fn check(&self) -> io::Result<()> {
        if self.0.is_cut() {
            return Err(io::Error::other("parts of secrets came back"));
        }
        Ok(())
    }

    /// Nothing follows at the moment.
    async fn pause(&mut self, from: &ReadHalf<'_>, out: &mut BytesMut) -> io::Result<()> {
        let before = out.len();
        self.0.release(out);
        if out.len() > before {
            return Ok(());
        }
        tokio::select! {
            biased;
            readable = from.readable() => readable,
            () = self.run_out() => {
                self.let_go(out);
                Ok(())
            }
        }
    }

    /// Takes the next bytes, and appends to `out` what may pass.
    pub(crate) fn feed(&mut self, bytes: &[u8], out: &mut BytesMut) -> io::Result<()> {
        self.0.feed(bytes, out);
        self.0.release(out);
        self.check()
    }

    /// Ends when what is held back has waited for long enough.
    pub(crate) async fn run_out(&self) {
        if self.0.is_holding() {
            tokio::time::sleep(PATIENCE).await;
        } else {
            std::future::pending::<()>().await;
        }
    }

    /// Lets go of what is held back.
    pub(crate) fn let_go(&mut self, out: &mut BytesMut) {
        self.0.let_go(out);
    }
}
