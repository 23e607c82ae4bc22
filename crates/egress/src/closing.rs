//! Closing a connection so that the last answer is read.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long a client has to read the answer and stop sending.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);
/// How much it may still send until then.
pub(crate) const MOST_DRAINED: usize = 4 * 1024 * 1024;

/// Sends `answer` and closes. What the client still sends is read and dropped:
/// closing with unread bytes is a reset, which would overtake the answer.
pub(crate) async fn close_with(mut client: TcpStream, answer: &[u8]) {
    let parting = async {
        client.write_all(answer).await?;
        client.shutdown().await?;
        drain(&mut client).await
    };
    // A client that is gone or too slow needs no further answer.
    let _ = tokio::time::timeout(PATIENCE, parting).await;
}

async fn drain(client: &mut TcpStream) -> std::io::Result<()> {
    let mut dropped = [0; 4096];
    let mut total = 0;
    while total < MOST_DRAINED {
        match client.read(&mut dropped).await? {
            0 => break,
            read => total += read,
        }
    }
    Ok(())
}
