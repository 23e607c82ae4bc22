//! Everything that looks at the crate from outside, in one binary.
#![allow(clippy::unwrap_used, reason = "a helper of a test fails the test")]

#[path = "suite/appending.rs"]
mod appending;
#[path = "suite/events.rs"]
mod events;
#[path = "suite/floods.rs"]
mod floods;
#[path = "suite/folders.rs"]
mod folders;
#[path = "suite/full_disk.rs"]
mod full_disk;
#[path = "suite/noted.rs"]
mod noted;
#[path = "suite/reading.rs"]
mod reading;
#[path = "suite/recording.rs"]
mod recording;
#[path = "suite/support.rs"]
mod support;
#[path = "suite/tampering.rs"]
mod tampering;
#[path = "suite/telling.rs"]
mod telling;
