//! The addresses of this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::{Result, check};

/// Every address of every interface in the caller's network namespace.
pub fn own_addresses() -> Result<Vec<IpAddr>> {
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: `getifaddrs` writes the head of a list that is freed below.
    check(unsafe { libc::c_long::from(libc::getifaddrs(&raw mut list)) })?;
    let mut addresses = Vec::new();
    let mut next = list;
    // SAFETY: each element and its address belong to the list, which lives
    // until it is freed; an address may be missing.
    while let Some(interface) = unsafe { next.as_ref() } {
        // SAFETY: as above.
        addresses.extend(unsafe { address(interface.ifa_addr) });
        next = interface.ifa_next;
    }
    // SAFETY: the list came from `getifaddrs` and is not used any more.
    unsafe { libc::freeifaddrs(list) };
    Ok(addresses)
}

/// The address that `place` holds, if it is one of the internet.
///
/// # Safety
/// `place` is null or points to a socket address as long as its family's.
unsafe fn address(place: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: by this function's own condition.
    let family = unsafe { place.as_ref() }?.sa_family;
    match libc::c_int::from(family) {
        libc::AF_INET => {
            // SAFETY: the family says that it is a `sockaddr_in`.
            let address = unsafe { place.cast::<libc::sockaddr_in>().read_unaligned() };
            let bytes = address.sin_addr.s_addr.to_ne_bytes();
            Some(Ipv4Addr::from(bytes).into())
        }
        libc::AF_INET6 => {
            // SAFETY: the family says that it is a `sockaddr_in6`.
            let address = unsafe { place.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(address.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_among_them() {
        let addresses = own_addresses().unwrap();
        assert!(
            addresses.contains(&Ipv4Addr::LOCALHOST.into()),
            "{addresses:?}"
        );
    }
}
