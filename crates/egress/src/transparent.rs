//! Connections of programs that know of no proxy.
//!
//! The local address of such a connection is where the client wanted to go: a
//! virtual address stands for the name it was handed out for, any other for
//! itself.

use std::net::SocketAddr;
use std::rc::Rc;

use ringfence_audit::{ConnectionId, Process, Protocol, Via};
use ringfence_policy::Target;
use tokio::net::TcpStream;

use crate::attempt::Attempt;
use crate::carry::carry;
use crate::dns::serve_stream;
use crate::exit::Exit;
use crate::inbox::Inbox;
use crate::names::Named;
use crate::relay::reset_on_close;
use crate::service::World;

/// The port of name servers, which are us at every address.
const NAME_SERVICE: u16 = 53;

/// Serves one connection to its end.
pub(crate) async fn serve(
    client: TcpStream,
    connection: ConnectionId,
    process: Option<Process>,
    world: Rc<World>,
) {
    let Ok(destination) = client.local_addr() else {
        return;
    };
    // The listener itself has a port, which can be dialled on the loopback.
    if destination.ip().to_canonical().is_loopback() {
        reset_on_close(&client);
        return;
    }
    if destination.port() == NAME_SERVICE {
        serve_stream(client, &world.name_server).await;
        return;
    }
    let attempt = Attempt {
        connection,
        via: Via::Transparent,
        process,
        target: Target::Addr(destination.ip().to_canonical()),
        port: destination.port(),
        spoken: Protocol::Tcp,
        http: None,
    };
    match meant(&world, destination) {
        Some(target) => {
            let attempt = Attempt { target, ..attempt };
            carry(client, Inbox::default(), attempt, Rc::clone(&world.exit)).await;
        }
        None => refuse_unknown(&client, &attempt, &world.exit),
    }
}

/// What the client meant; `None` for a virtual address that no name has.
fn meant(world: &World, destination: SocketAddr) -> Option<Target> {
    let address = destination.ip().to_canonical();
    match world.exit.names().borrow().name_of(address) {
        Named::Name(name) => Some(Target::Name(name)),
        Named::NotVirtual => Some(Target::Addr(address)),
        Named::Unknown => None,
    }
}

fn refuse_unknown(client: &TcpStream, attempt: &Attempt, exit: &Exit) {
    let phrase = "no name was looked up for this address";
    exit.refuse(attempt, "unknown-virtual-address", phrase);
    reset_on_close(client);
}
