//! One file per promise.

mod anyip;
mod datagrams;
mod fence;
mod interception;
