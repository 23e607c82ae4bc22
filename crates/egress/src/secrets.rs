//! Secret values and placeholders in streams of bytes: found, hidden, refused
//! or put in, however they are written and however the stream is cut.
//!
//! Nothing here reads or writes anything. Memory is bounded by the longest
//! form of a value, and what is not part of a value passes byte for byte.

mod beginnings;
mod decode;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod guard;
mod matcher;
mod pattern;
mod place;
mod scrub;
mod spelling;
mod substitute;
mod watch;

#[cfg(test)]
mod tests;

pub(crate) use decode::{ACCEPTED, Decoder, Progress};
pub use pattern::untold;
pub(crate) use place::{Misplaced, is_framed};
pub(crate) use scrub::{Find, Findings, Forms, Hidden, REDACTED, Scrubber};
pub(crate) use substitute::Context;
pub(crate) use watch::{Found, Placeholders, Watch};
