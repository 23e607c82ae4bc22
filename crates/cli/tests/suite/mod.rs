//! One file per promise.

mod arena;
mod asking;
mod audit;
mod audit_commands;
mod bad_input;
mod clients;
mod closed_network;
mod credentials;
mod doctor;
mod egress_attacks;
mod egress_walkthrough;
mod exit_codes;
mod explained_files;
mod files;
mod files_with_rights;
mod first_use;
mod git;
mod guard;
mod hidden;
mod home;
mod hooks_elsewhere;
mod host_id;
mod internet;
mod internet_servers;
mod interruptions;
mod kits;
mod leftovers;
mod limits;
mod listener;
mod manual;
mod masked;
mod nesting;
mod network;
mod ordinary_work;
mod peers;
mod pipes;
mod policy_commands;
mod policy_log;
mod presets;
mod privileges;
mod protected;
mod report;
mod second_names;
mod secret_commands;
mod secrets;
mod set_group_id;
mod signals;
mod single_ports;
mod smoke;
mod srt;
mod streams;
mod terminal;
mod tools;
mod trust;
mod trust_commands;
mod undumpable;
mod waiting;

use std::path::Path;

use ringfence_testkit::{Outcome, Program};

/// The binary under test.
pub(crate) fn ringfence() -> Program {
    Program::ringfence(env!("CARGO_BIN_EXE_ringfence"))
}

/// `ringfence run -- sh -c SCRIPT` in `folder`.
pub(crate) fn inside(folder: impl AsRef<Path>, script: &str) -> Outcome {
    inside_with(folder, &[], script)
}

/// The same with more flags.
pub(crate) fn inside_with(folder: impl AsRef<Path>, flags: &[&str], script: &str) -> Outcome {
    let command = ["--", "sh", "-c", script];
    let words = ["run"]
        .into_iter()
        .chain(flags.iter().copied())
        .chain(command);
    ringfence().args(words).folder(folder).run()
}

/// Python that becomes its arguments under a filter of system calls. `code` is
/// that filter, a list in Python of which `SETNS` and `SOCKET` may be numbers.
pub(crate) fn under_filter(code: &str) -> String {
    let begin = r#"
import ctypes, os, platform, struct, sys
LOAD, EQUAL, RETURN, ALLOW, ERRNO = 0x20, 0x15, 0x06, 0x7fff0000, 0x00050000
SETNS, SOCKET = {"x86_64": (308, 41), "aarch64": (268, 198)}[platform.machine()]
"#;
    let end = r#"
program = b"".join(struct.pack("HBBI", *line) for line in code)
buffer = ctypes.create_string_buffer(program)
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
loaded = Filter(len(code), ctypes.addressof(buffer))
assert libc.prctl(22, 2, ctypes.byref(loaded), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"#;
    format!("{begin}code = {code}{end}")
}
