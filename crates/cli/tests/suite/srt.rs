//! What users of srt rely on, case by case. Each case says what both do, or
//! what each does where ours differs on purpose; [`compare`] runs the same
//! cases against srt itself where it is installed.

mod case;
mod command_line;
mod compare;
mod control;
mod files;
mod kagent;
mod network;
mod processes;
