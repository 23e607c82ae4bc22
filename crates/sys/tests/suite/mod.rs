//! One file per promise.

mod anyip;
mod cradle;
mod datagrams;
mod fence;
mod interception;
mod signals;
