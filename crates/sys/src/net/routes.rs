//! Routes that deliver every address locally, which is called "any IP".

use std::net::Ipv4Addr;

use super::Families;
use super::netlink::{Batch, Body, CREATE, EXCLUSIVE, ROUTE, exchange};
use crate::{Errno, Result};

const RTM_NEWLINK: u16 = 16;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;

const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const RT_TABLE_LOCAL: u8 = 255;
const RTPROT_STATIC: u8 = 4;
const RT_SCOPE_HOST: u8 = 254;
const RTN_LOCAL: u8 = 2;

const IFA_LOCAL: u16 = 2;
const RTA_OIF: u16 = 4;
const RTA_PREFSRC: u16 = 7;

/// `lo` is the first interface of every network namespace.
const LOOPBACK: u32 = 1;

/// Brings `lo` up in the caller's network namespace and routes every address
/// of both families to it, so that packets to any address are delivered to
/// sockets of this namespace.
pub fn bring_anyip_up() -> Result<Families> {
    let mut batch = Batch::with_capacity(256);
    batch.push(RTM_NEWLINK, 0, link_up);
    batch.push(RTM_NEWADDR, CREATE | EXCLUSIVE, second_address);
    batch.push(RTM_NEWROUTE, CREATE | EXCLUSIVE, route_v4);
    let v6 = 3;
    batch.push_acknowledged(RTM_NEWROUTE, CREATE | EXCLUSIVE, route_v6);
    match exchange(ROUTE, &batch)?.first() {
        None => Ok(Families::Both),
        Some(refusal) if refusal.place == v6 && means_no_v6(refusal.errno) => Ok(Families::V4Only),
        Some(refusal) => Err(refusal.errno),
    }
}

/// Not built in or switched off at boot; switched off for `lo`.
fn means_no_v6(errno: Errno) -> bool {
    matches!(errno, Errno::OPNOTSUPP | Errno::AFNOSUPPORT | Errno::ACCESS)
}

fn link_up(body: &mut Body<'_>) {
    // struct ifinfomsg: family, padding, type, index, flags, change
    let up = libc::IFF_UP.cast_unsigned().to_ne_bytes();
    body.fixed(&[0; 4]);
    body.fixed(&LOOPBACK.to_ne_bytes());
    body.fixed(&up);
    body.fixed(&up);
}

/// 127.0.0.2: with 127.0.0.1 alone, glibc holds that there is no IPv4, and a
/// look-up with `AF_INET` and `AI_ADDRCONFIG` (`wget -4`) finds nothing.
fn second_address(body: &mut Body<'_>) {
    // struct ifaddrmsg: family, prefix length, flags, scope, index
    body.fixed(&[AF_INET, 8, 0, RT_SCOPE_HOST]);
    body.fixed(&LOOPBACK.to_ne_bytes());
    body.attribute(IFA_LOCAL, &[127, 0, 0, 2]);
}

fn route_v4(body: &mut Body<'_>) {
    route(body, AF_INET);
    // Without it a connection's source is its own destination. One from port
    // 50000 to port 50000 then reaches itself instead of the listener.
    body.attribute(RTA_PREFSRC, &Ipv4Addr::LOCALHOST.octets());
}

/// Here the source is `::1` in any case, the only address there is.
fn route_v6(body: &mut Body<'_>) {
    route(body, AF_INET6);
}

fn route(body: &mut Body<'_>, family: u8) {
    // struct rtmsg: family, lengths of destination and source, type of
    // service, table, protocol, scope, type, flags
    body.fixed(&[family, 0, 0, 0]);
    body.fixed(&[RT_TABLE_LOCAL, RTPROT_STATIC, RT_SCOPE_HOST, RTN_LOCAL]);
    body.fixed(&[0; 4]);
    body.attribute(RTA_OIF, &LOOPBACK.to_ne_bytes());
}
