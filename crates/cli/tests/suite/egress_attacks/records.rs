//! G7 against a client that does not want to be seen, or wants to be seen as
//! something else.

use super::{Host, host};

/// Connects without `connect`.
const FAST_OPEN: &str = "import socket
address = socket.gethostbyname('web.example.org')
stream = socket.socket()
try:
    stream.sendto(b'GET / HTTP/1.1\\r\\nHost: web.example.org\\r\\n\\r\\n', 0x20000000, (address, 80))
    stream.recv(100)
except OSError:
    pass
";

#[test]
fn g7_a_connection_made_in_passing_is_recorded_with_its_program() {
    let host = host();
    host.write("fast.py", FAST_OPEN);
    let run = host
        .run(&["--allow", "web.example.org"], "/usr/bin/python3 fast.py")
        .expect_code(0);
    let strangers: Vec<_> = run
        .decisions()
        .filter(|made| made.process.is_none())
        .collect();
    assert!(strangers.is_empty(), "{strangers:?}");
}

/// Puts control characters wherever the client's text is kept.
const WRITES: &str = r#"import socket
bad = 'a\x1b[31m\n{"verdict":"allowed"}\r\u009b2J\u202eb\x7f'.encode()
def say(port, *parts):
    with socket.create_connection(('127.0.0.1', port), 60) as stream:
        for part in parts:
            stream.sendall(part)
            try:
                stream.recv(4096)
            except OSError:
                return
say(1080, b'\5\1\0', b'\5\1\0\3' + bytes([len(bad)]) + bad + b'\0\x50')
line = '\u009b2J\u202eb.test'.encode()
say(3128, b'CONNECT ' + line + b':443 HTTP/1.1\r\n\r\n')
say(3128, b'GET http://' + line + b'/ HTTP/1.1\r\nHost: x\r\n\r\n')
say(3128, b'GET http://web.example.org/' + line + b' HTTP/1.1\r\nHost: web.example.org\r\n\r\n')
"#;

fn log(host: &Host, state: &str, words: &[&str]) -> String {
    let program = host.online.ringfence().env("XDG_STATE_HOME", state);
    let words = ["policy", "log"].into_iter().chain(words.iter().copied());
    program.args(words).run().expect_code(0).stdout
}

#[test]
fn g7_what_a_client_says_moves_no_terminal_and_forges_no_line() {
    let host = host();
    host.write("writes.py", WRITES);
    let evil = "cp /usr/bin/python3 \"$(printf 'ev\\033[31mil\\n')\"; \
                \"./$(printf 'ev\\033[31mil\\n')\" writes.py || /usr/bin/python3 writes.py";
    let run = host
        .run(&["--allow", "web.example.org"], evil)
        .expect_code(0);
    let state = run.state.path().display().to_string();
    let texts = [
        run.outcome.stderr.clone(),
        log(&host, &state, &[]),
        log(&host, &state, &["--json"]),
    ];
    for text in texts {
        let bad = |one: char| {
            (one.is_control() && one != '\n') || ('\u{202a}'..='\u{202e}').contains(&one)
        };
        let found: Vec<char> = text.chars().filter(|one| bad(*one)).collect();
        assert!(found.is_empty(), "{found:?} in {text}");
        assert!(
            !text.lines().any(|line| line.starts_with("{\"verdict\"")),
            "{text}"
        );
    }
}
