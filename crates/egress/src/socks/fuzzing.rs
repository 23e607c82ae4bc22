//! Doors for the fuzz targets.

use super::{target_of, wire};

/// How long each message is that the bytes could be the beginning of: an offer,
/// a password, a request; and the destination of that.
pub fn messages(bytes: &[u8]) -> ([Option<usize>; 3], Option<String>) {
    let offer = wire::offer(bytes).ok().flatten();
    let password = wire::password(bytes).ok().flatten();
    let request = wire::request(bytes).ok().flatten();
    let target = request
        .as_ref()
        .and_then(|(request, _)| target_of(&request.destination).ok());
    let lengths = [
        offer.map(|(_, length)| length),
        password.map(|(_, length)| length),
        request.map(|(_, length)| length),
    ];
    (lengths, target.map(|target| target.to_string()))
}
