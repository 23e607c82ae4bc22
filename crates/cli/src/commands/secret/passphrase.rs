//! Where the passphrase of the secret store comes from: a descriptor, or
//! whoever is at the terminal. Never an argument, never a variable.

use std::io;
use std::os::fd::OwnedFd;

use ringfence_runtime::{AskPassphrase, PassphraseError, Purpose};
use rustix::io::Errno;
use zeroize::Zeroizing;

use crate::descriptor::duplicate;

/// Longer than any passphrase that is taken.
const LONGEST: usize = 4096;

/// Asks for it when it is needed, and not before. A descriptor is taken hold of
/// now: later its number may be that of one of our own.
pub(crate) fn asking(descriptor: Option<i32>) -> AskPassphrase {
    let given = descriptor.map(|number| (number, duplicate(number)));
    Box::new(move |purpose| match &given {
        Some((number, given)) => given
            .as_ref()
            .map_err(|errno| *errno)
            .and_then(read_line)
            .map_err(|errno| PassphraseError::Unreadable(format!("descriptor {number}: {errno}"))),
        None => ask(purpose),
    })
}

/// What is typed on the terminal, unseen.
pub(super) fn prompt(text: &str) -> io::Result<Zeroizing<String>> {
    rpassword::prompt_password(text).map(Zeroizing::new)
}

fn ask(purpose: Purpose) -> Result<Zeroizing<String>, PassphraseError> {
    let unreadable = |error: io::Error| match error.kind() {
        // There is no /dev/tty.
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => PassphraseError::NobodyToAsk,
        _ if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
            PassphraseError::NobodyToAsk
        }
        _ => PassphraseError::Unreadable(error.to_string()),
    };
    match purpose {
        Purpose::Open => prompt("Passphrase of the secret store: ").map_err(unreadable),
        Purpose::New => {
            let first = prompt("New passphrase: ").map_err(unreadable)?;
            let second = prompt("The same again: ").map_err(unreadable)?;
            if first == second {
                Ok(first)
            } else {
                Err(PassphraseError::Differ)
            }
        }
    }
}

/// One line, byte by byte: what follows it is for others.
fn read_line(descriptor: &OwnedFd) -> Result<Zeroizing<String>, Errno> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(LONGEST));
    while bytes.len() < LONGEST {
        let mut byte = [0];
        match rustix::io::read(descriptor, &mut byte) {
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
            Ok(0) => break,
            Ok(_) if byte == *b"\n" => break,
            Ok(_) => bytes.extend(byte),
        }
    }
    let text = String::from_utf8(std::mem::take(&mut *bytes));
    text.map(Zeroizing::new).map_err(|error| {
        drop(Zeroizing::new(error.into_bytes()));
        Errno::ILSEQ
    })
}
