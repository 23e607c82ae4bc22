//! Every address is delivered locally, also without `nf_tables`.

use std::os::fd::AsFd as _;

use ringfence_sys::{self as sys, Errno, Family};
use rustix::net::SocketType;

use super::fence::{
    Fence, answer_of, converse, echo, expected_families, failure_to_reach, reachable, steal,
};

#[test]
fn the_families_of_this_machine_are_found() {
    Fence::start(|inside| {
        inside.hand_out(vec![]);
        assert_eq!(sys::bring_anyip_up(), Ok(expected_families()));
    })
    .attend(|_| ());
}

#[test]
fn a_plain_listener_takes_its_port_of_every_address() {
    let destinations = reachable(&[
        "93.184.216.34:443",
        "127.0.0.1:443",
        "[2001:db8::1]:443",
        "[::1]:443",
    ]);
    Fence::start(|inside| {
        let families = sys::bring_anyip_up().unwrap().each().iter();
        inside.hand_out(
            families
                .map(|family| sys::anyip_listener(*family, 443).unwrap())
                .collect(),
        );
        for destination in &destinations {
            assert_eq!(converse(*destination), answer_of(destination));
        }
    })
    .attend(echo);
}

#[test]
fn a_port_without_a_listener_refuses_at_once() {
    let destinations = reachable(&["93.184.216.34:80", "[2001:db8::1]:80"]);
    Fence::start(|inside| {
        inside.hand_out(vec![]);
        sys::bring_anyip_up().unwrap();
        for destination in &destinations {
            assert_eq!(failure_to_reach(*destination), Some(Errno::CONNREFUSED));
        }
    })
    .attend(|_| ());
}

#[test]
fn a_taken_port_cannot_be_shared_or_shadowed() {
    Fence::start(|inside| {
        sys::bring_anyip_up().unwrap();
        inside.hand_out(vec![sys::anyip_listener(Family::V4, 443).unwrap()]);
        for address in ["0.0.0.0:443", "93.184.216.34:443", "127.0.0.1:443"] {
            let stolen = steal(SocketType::STREAM, address.parse().unwrap());
            assert_eq!(stolen.err(), Some(Errno::ADDRINUSE), "{address}");
        }
        sys::drop_capabilities().unwrap();
        let stolen = steal(SocketType::STREAM, "93.184.216.34:80".parse().unwrap());
        assert_eq!(stolen.err(), Some(Errno::ACCESS));
    })
    .attend(|_| ());
}

#[test]
fn a_loopback_listener_is_on_loopback_alone() {
    Fence::start(|inside| {
        let families = sys::bring_anyip_up().unwrap().each();
        let listeners: Vec<_> = families
            .iter()
            .map(|family| sys::loopback_listener(*family, 3128).unwrap())
            .collect();
        assert_eq!(sys::local_port(listeners[0].as_fd()), Ok(3128));
        inside.hand_out(listeners);
        for destination in reachable(&["127.0.0.1:3128", "[::1]:3128"]) {
            assert_eq!(converse(destination), answer_of(&destination));
        }
        let elsewhere = "93.184.216.34:3128".parse().unwrap();
        assert_eq!(failure_to_reach(elsewhere), Some(Errno::CONNREFUSED));
    })
    .attend(echo);
}

/// With 127.0.0.1 alone the C library answers "Name or service not known".
#[test]
fn a_lookup_for_configured_families_finds_ipv4() {
    Fence::start(|inside| {
        inside.hand_out(vec![]);
        sys::bring_anyip_up().unwrap();
        // SAFETY: plain data; zero is a valid value.
        let mut hints: libc::addrinfo = unsafe { std::mem::zeroed() };
        hints.ai_family = libc::AF_INET;
        hints.ai_flags = libc::AI_ADDRCONFIG | libc::AI_NUMERICHOST;
        let mut found = std::ptr::null_mut();
        // SAFETY: the name ends with NUL, the rest outlives the call.
        let returned = unsafe {
            libc::getaddrinfo(
                c"192.0.2.1".as_ptr(),
                std::ptr::null(),
                &raw const hints,
                &raw mut found,
            )
        };
        assert_eq!(returned, 0);
        // SAFETY: made by the call above, not used again.
        unsafe { libc::freeaddrinfo(found) };
    })
    .attend(|_| ());
}
