//! Uploads over plain HTTP as ordinary clients make them: all arrive whole, and
//! connections are kept as they are without a sandbox.

use ringfence_testkit::Started;

use super::Host;

/// Where the server is.
const SERVER: &str = "v4.example.org:8006";

fn server(host: &Host) -> Started {
    let server = host.net().program_in_the_world("/usr/bin/python3");
    let program = include_str!("scripts/upload_server.py");
    let folder = host.net().files().display().to_string();
    let server = server.args(["-c", program, &folder]).start();
    let is_up = format!("until curl -sf http://{SERVER}/connections; do sleep 0.05; done");
    host.online.outside(&is_up).expect_code(0);
    server
}

/// How many connections had uploads since the last call.
fn connections(host: &Host) -> u32 {
    let ask = format!("curl -sf http://{SERVER}/connections");
    let told = host.online.outside(&ask).expect_code(0).stdout;
    told.parse().expect("a number")
}

#[test]
fn g11_uploads_in_clear_keep_their_connections() {
    let host = Host::new();
    let _server = server(&host);
    host.write("upload.py", include_str!("scripts/upload.py"));
    host.write("upload.js", include_str!("scripts/upload.js"));
    host.write("words", &"many words\n".repeat(50_000));
    let to = format!("-sSf http://{SERVER}/upload");
    let curl = format!("printf 'two words' | curl {to} --data-binary @- --next {to} -T words");
    let python = "/usr/bin/python3 upload.py";
    for script in [
        python,
        &format!("{python} proxied"),
        "node upload.js",
        &curl,
        &curl.replace("-sSf", "--noproxy '*' -sSf"),
    ] {
        let outside = host.online.outside(script).expect_code(0);
        let wanted = connections(&host);
        let run = host.run(&["--allow", SERVER], script).expect_code(0);
        assert_eq!(run.stdout(), outside.stdout, "{script}");
        let made = connections(&host);
        assert!(made <= wanted, "{script}: {made}, outside {wanted}");
    }
}

#[test]
fn g11_git_pushes_in_clear() {
    let host = Host::new();
    let _server = server(&host);
    let place = host.net().files().join("repository.git");
    let make = format!("git init -q -b main --bare {}", place.display());
    host.online.outside(&make).expect_code(0);
    // What is larger than the buffer is sent in chunks.
    let small = "-c http.postBuffer=65536";
    for (number, flags) in [small, &format!("-c http.proxy= {small}"), "-c http.proxy="]
        .into_iter()
        .enumerate()
    {
        let to = format!("http://{SERVER}/git/repository.git");
        let branch = format!("branch{number}");
        let script = format!(
            "set -e; cd /tmp; git init -q -b {branch} work; cd work
             head -c 300000 /dev/urandom > file; git add file
             git -c user.name=A -c user.email=a@example.org commit -qm first
             git {flags} push -q {to} {branch}
             git {flags} clone -q -b {branch} {to} /tmp/copy
             cmp file /tmp/copy/file && echo same"
        );
        let run = host.run(&["--allow", SERVER], &script).expect_code(0);
        assert_eq!(run.stdout(), "same\n", "{flags}");
    }
    let codings = host.net().files().join("codings");
    let codings = std::fs::read_to_string(codings).expect("what was told");
    assert!(codings.contains("chunked"), "{codings}");
}
