//! A machine without netfilter: ports that the policy names are served one by
//! one, and no others.

use super::internet::Online;
use super::ringfence;

/// Becomes its arguments with a filter that knows no netfilter, as in a kernel
/// without it.
const WITHOUT_NETFILTER: &str = r#"
import ctypes, os, platform, struct, sys
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, UNKNOWN = 0x7fff0000, 0x00050000 | 93
SOCKET = {"x86_64": 41, "aarch64": 198}[platform.machine()]
code = [
    (LOAD, 0, 0, 0), (EQUAL, 0, 5, SOCKET),
    (LOAD, 0, 0, 16), (EQUAL, 0, 3, 16),
    (LOAD, 0, 0, 32), (EQUAL, 0, 1, 12),
    (RETURN, 0, 0, UNKNOWN), (RETURN, 0, 0, ALLOW),
]
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

#[test]
fn without_nf_tables_the_named_ports_work_and_others_are_refused() {
    let online = Online::new();
    let binary = ringfence().path();
    let binary = binary.to_str().unwrap();
    let run = |flags: &[&str], script: &str| {
        let words = ["-c", WITHOUT_NETFILTER, binary, "run"];
        let command = ["--", "sh", "-c", script];
        let words = words.iter().chain(flags).chain(&command);
        let program = online.net.program("/usr/bin/python3");
        program.args(words).folder(online.arena.folder.path()).run()
    };
    let report = online.arena.folder.path().join("report.json");
    let flags = [
        "--allow",
        "web.example.org:8443",
        "--report",
        report.to_str().unwrap(),
    ];
    let client = "curl -sS --noproxy '*' --max-time 20 -o /dev/null";
    run(&flags, &format!("{client} https://web.example.org:8443/")).expect_code(0);
    let written = std::fs::read_to_string(&report).unwrap();
    assert!(written.contains("without nf_tables"), "{written}");

    // Refused in words on a usual port, and by the kernel on any other.
    online.net.forget();
    let refused = run(&flags, &format!("{client} -f http://other.test/"));
    assert_eq!(refused.code(), 22, "{refused:?}");
    let closed = run(&flags, &format!("{client} http://web.example.org:9000/"));
    assert_eq!(closed.code(), 7, "{closed:?}");
    assert_eq!(online.net.packets(), Vec::<String>::new());
}
