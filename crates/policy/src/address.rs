//! Addresses: blocks, special ranges and IPv4 hidden inside IPv6.

mod block;
mod class;
mod embedded;

pub use block::{Cidr, CidrError};
pub use class::{AddressClass, special_range};
pub use embedded::{embedded_v4, judged};
