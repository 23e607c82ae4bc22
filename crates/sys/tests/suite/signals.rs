//! Signals of a process that is about to start a program.

use ringfence_sys::{self as sys, SignalQueue};
use rustix::process::{Signal, WaitStatus};

#[test]
fn what_came_before_the_program_is_not_for_it() {
    let child = sys::fork(|| {
        let queue = SignalQueue::new(&[Signal::INT, Signal::USR1]);
        let own = rustix::process::getpid();
        for signal in [Signal::INT, Signal::USR1, Signal::INT] {
            let _ = rustix::process::kill_process(own, signal);
        }
        if queue.is_err() || sys::reset_signals().is_err() {
            return 1;
        }
        7
    });
    let ended = sys::reap(child.unwrap().pid).unwrap();
    assert_eq!(WaitStatus::exit_status(ended), Some(7));
}
