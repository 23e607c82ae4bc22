//! The beginning of a program, in place of the standard library's.
//!
//! That one prepares to say, of a bad access to memory, whether a stack was too
//! small: it has the kernel write down all of the process's memory, and gives
//! each thread another stack to say it from. A program that runs for less time
//! than most files take to read does without; the access ends it all the same.

use std::os::fd::BorrowedFd;

use rustix::fs::{Mode, OFlags};

use crate::Errno;

/// Makes `$start`, which takes nothing and returns an exit status as a `u8`,
/// the whole of a program without another `main`. For programs that are linked
/// with the GNU C library, which hands the arguments to the standard library by
/// itself.
#[macro_export]
macro_rules! program {
    ($start:path) => {
        #[unsafe(no_mangle)]
        extern "C" fn main(_: ::std::ffi::c_int, _: *const *const ::std::ffi::c_char) -> ! {
            $crate::run_program($start)
        }
    };
}

/// Does for `start` what the standard library does for a `main` of its own, but
/// for stacks. See [`program!`](crate::program).
pub fn run_program(start: fn() -> u8) -> ! {
    if !hold_standard_streams() {
        std::process::abort();
    }
    // SAFETY: there is no other thread, and no handler is replaced.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    // Writes what is left for standard output.
    std::process::exit(i32::from(start()))
}

/// Opens those that the starter closed: the next file that is opened would be
/// taken for one of them. False if that failed.
fn hold_standard_streams() -> bool {
    // SAFETY: whether they are open is what is asked here.
    let streams = [0, 1, 2].map(|number| unsafe { BorrowedFd::borrow_raw(number) });
    let closed = streams
        .iter()
        .filter(|stream| rustix::io::fcntl_getfd(stream) == Err(Errno::BADF));
    // Each gets the lowest number that is free.
    closed.fold(true, |is_fine, _| {
        let opened = rustix::fs::open("/dev/null", OFlags::RDWR, Mode::empty());
        is_fine & opened.map(std::mem::forget).is_ok()
    })
}
