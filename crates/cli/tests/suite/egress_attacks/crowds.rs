//! Many clients at once, and limits on them.

use super::host;

/// One that does come to its point is served as ever.
#[test]
fn g9_three_hundred_slow_clients_do_not_disturb_another() {
    let host = host();
    host.write("crowd.py", include_str!("scripts/crowd.py"));
    let run = host.run(
        &["--allow", "web.example.org"],
        "/usr/bin/python3 crowd.py slow",
    );
    assert_eq!(run.expect_code(0).stdout(), "200\n");
}

#[test]
fn g9_three_hundred_that_spell_their_requests_are_served() {
    let host = host();
    host.write("crowd.py", include_str!("scripts/crowd.py"));
    let run = host.run(
        &["--allow", "web.example.org"],
        "/usr/bin/python3 crowd.py spelling",
    );
    assert_eq!(run.expect_code(0).stdout(), "150\n150\n200\n");
}

#[test]
fn g9_three_hundred_that_wait_for_a_server_do_not_disturb_another() {
    let host = host();
    host.write("crowd.py", include_str!("scripts/crowd.py"));
    let run = host.run(
        &["--allow", "web.example.org"],
        "/usr/bin/python3 crowd.py waiting",
    );
    assert_eq!(run.expect_code(0).stdout(), "200\n");
}

#[test]
fn g9_a_short_address_does_not_stop_everybody() {
    let host = host();
    host.write("short.py", include_str!("scripts/short_address.py"));
    for flags in [&["--no-network"][..], &["--allow", "web.example.org"]] {
        let run = host.run(flags, "timeout -s KILL 30 /usr/bin/python3 short.py");
        assert_eq!(run.expect_code(0).stdout(), "made\n", "{flags:?}");
    }
}

#[test]
fn a_small_number_of_connections_is_enough_for_each_way() {
    let host = host();
    for connections in [1, 2, 5] {
        host.write(
            "policy.yaml",
            &format!(
                "version: 1\nnetwork: {{mode: allowlist, allow: [web.example.org]}}\n\
                 resources: {{connections: {connections}}}\n"
            ),
        );
        for way in ["", "--noproxy '*'", "--socks5-hostname 127.0.0.1:1080"] {
            let script = format!("curl -sSf -m 20 {way} http://web.example.org/ > /dev/null");
            host.run(&["--policy", "policy.yaml"], &script)
                .expect_code(0);
        }
    }
}

/// Opens, uses and closes a thousand connections, most of them refused.
const MANY: &str = "import socket, threading
def some():
    for number in range(125):
        name = 'web.example.org' if number % 5 == 0 else f'n{number}.test'
        try:
            with socket.create_connection((name, 80), 60) as stream:
                stream.sendall(f'GET /status/204 HTTP/1.1\\r\\nHost: {name}\\r\\nConnection: close\\r\\n\\r\\n'.encode())
                answers.append(stream.recv(4096)[9:12])
        except OSError:
            answers.append(b'none')
answers = []
threads = [threading.Thread(target=some) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(answers.count(b'204'), answers.count(b'403'))
";

#[test]
fn g9_a_flood_of_connections_is_served_to_the_end() {
    let host = host();
    host.write("many.py", MANY);
    let run = host.run(&["--allow", "web.example.org"], "/usr/bin/python3 many.py");
    assert_eq!(run.expect_code(0).stdout(), "200 800\n");
    host.asked_only_for("web.example.org");
}
