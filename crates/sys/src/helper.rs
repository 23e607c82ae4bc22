//! Programs that the supervisor starts for itself, outside of any sandbox.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::signal::reset_signals;

/// Has the kernel kill the program when the thread that starts it ends, so
/// that it cannot outlive us; and starts it with signals as it expects them,
/// not as we have them blocked.
pub fn end_with_parent(command: &mut Command) {
    let parent = std::process::id();
    let prepare = move || {
        reset_signals()?;
        let signal = libc::SIGKILL;
        // SAFETY: plain integers.
        if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal, 0, 0, 0) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // It may have ended before that.
        if std::os::unix::process::parent_id() == parent {
            Ok(())
        } else {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    };
    // SAFETY: between fork and exec it makes system calls only; nothing is
    // allocated and no lock is taken.
    unsafe { command.pre_exec(prepare) };
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Stdio};

    use super::*;

    fn start() -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", "echo started; exec sleep 300"]);
        command.stdout(Stdio::piped());
        end_with_parent(&mut command);
        command.spawn().unwrap()
    }

    #[test]
    fn g8_a_program_ends_with_the_thread_that_started_it() {
        let (send, receive) = std::sync::mpsc::channel();
        let starter = std::thread::spawn(move || {
            let mut child = start();
            let mut line = [0; 8];
            let output = child.stdout.as_mut().unwrap();
            output.read_exact(&mut line).unwrap();
            send.send(child).unwrap();
        });
        let mut child = receive.recv().unwrap();
        starter.join().unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(libc::SIGKILL));
    }
}
