//! Processes, namespaces and sockets inside, and how all of them end.

use ringfence_testkit::{Folder, Program, Started, wait_until};

use super::case::{Speaker, cases, script, settings};
use crate::suite::ringfence;
use crate::suite::signals::{Sleeper, is_running};

const SOCKET: &str = "/usr/bin/python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); \
                      s.bind(\"here\"); print(\"bound\")' 2>/dev/null || echo refused";

/// Prints what the proxies are, and what goes without.
const SHOW: &str = r"cat > show <<'END'
for n in HTTP_PROXY HTTPS_PROXY ALL_PROXY GRPC_PROXY DOCKER_HTTP_PROXY; do
    echo ${!n} | sed 's/:[0-9a-f]*@/:TOKEN@/'
done
echo $NO_PROXY
echo $GIT_CONFIG_PARAMETERS
END";

cases! {
    sockets_of_the_sandbox_itself_work: [
        script(SOCKET).labelled("a UNIX socket").prints(&["bound"]).but_srt(0, &["refused"]),
    ];
    namespaces_cannot_be_nested: [
        script("unshare -Ur true 2>/dev/null && echo nested || echo refused").prints(&["refused"]),
        script("unshare -m true 2>/dev/null && echo nested || echo refused").prints(&["refused"]),
    ];
    the_environment_is_the_hosts_and_says_where_one_is: [
        script("echo $SANDBOX_RUNTIME $RSYNC_PROXY ${FTP_PROXY%%:*}")
            .prints(&["1 localhost:1080 socks5h"]),
        script(". ./show").after(SHOW).prints(&proxies()),
        script("echo $USER $LOGNAME").prints(&["alice alice"]),
    ];
}

/// What [`SHOW`] makes of the variables for proxies.
fn proxies() -> Vec<&'static str> {
    let proxy = "http://srt.LiAuL3Nob3c%3D:TOKEN@localhost:3128";
    let direct = "localhost,127.0.0.1,::1,169.254.0.0/16,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16";
    let mut lines = vec![proxy; 5];
    lines.extend([direct, "'http.proxyAuthMethod=basic'"]);
    lines
}

/// A script in a folder of its own, running.
fn started(speaker: &Speaker, folder: &Folder, text: &str) -> Started {
    let file = folder.write("s.json", &settings().to_string());
    let words = speaker.words();
    Program::new(&words[0])
        .args(words[1..].iter())
        .args(["-s".into(), file])
        .args(["-c", text])
        .folder(folder.path())
        .start()
}

#[test]
fn what_runs_in_the_background_ends_with_the_command() {
    leave_behind(&Speaker::Ours);
}

pub(super) fn leave_behind(speaker: &Speaker) {
    let folder = Folder::new();
    let sleeper = Sleeper::new();
    let text = format!("{sleeper} & setsid {sleeper} & touch up");
    started(speaker, &folder, &text).finish().expect_code(0);
    assert!(folder.has("up") && wait_until(|| !is_running(&sleeper)));
}

#[test]
fn signals_end_the_command_and_say_so() {
    for (signal, code) in [("TERM", 143), ("INT", 130)] {
        end(&Speaker::Ours, signal, code);
    }
}

/// Ends a command by a signal to who runs it.
pub(super) fn end(speaker: &Speaker, signal: &str, code: i32) {
    let folder = Folder::new();
    let sleeper = Sleeper::new();
    let text = format!("touch up; {sleeper} & {sleeper}");
    let running = started(speaker, &folder, &text);
    assert!(wait_until(|| folder.has("up") && is_running(&sleeper)));
    running.signal(signal);
    running.finish().expect_code(code);
    assert!(wait_until(|| !is_running(&sleeper)));
}

#[test]
fn every_variable_of_the_host_passes() {
    let folder = Folder::new();
    let file = folder.write("s.json", &settings().to_string());
    let words = [
        "srt",
        "-s",
        file.to_str().unwrap(),
        "-c",
        "echo $SOME_VARIABLE",
    ];
    let program = ringfence().args(words).folder(folder.path());
    let outcome = program.env("SOME_VARIABLE", "a value").run().expect_code(0);
    assert_eq!(outcome.stdout, "a value\n");
}
