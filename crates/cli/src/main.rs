//! The `ringfence` command.
#![forbid(unsafe_code)]
#![cfg_attr(all(target_env = "gnu", not(test)), no_main)]

mod commands;
mod descriptor;
mod environment;
mod error;
mod exit;
mod output;
mod personality;

/// What was read of the host before a sandbox is made is not to be found in the
/// memory of its first process, which begins as a copy of this one.
#[global_allocator]
static MEMORY: ringfence_sys::WipeOnFree = ringfence_sys::WipeOnFree;

#[cfg(all(target_env = "gnu", not(test)))]
ringfence_sys::program!(start);

#[cfg(all(not(target_env = "gnu"), not(test)))]
fn main() -> std::process::ExitCode {
    start().into()
}

#[cfg_attr(
    test,
    allow(dead_code, reason = "the program is not started in its tests")
)]
fn start() -> u8 {
    ringfence_sys::heed_children();
    let arguments: Vec<_> = std::env::args_os().collect();
    let personality = personality::of(arguments.first());
    personality.start(arguments).status()
}
