//! Recording what is seen of the command's calls, for the supervisor.

mod action;
mod filter;
mod log;

pub(super) use action::{Detail, about, about_files};
pub(super) use filter::{
    ATTACH, FIRST_CALL, Pass, SEIZE, TRACE_ME, is_of_interest, of_command, of_command_with,
    sees_programs_begin,
};
pub(super) use log::{Observer, Repeat, now};
