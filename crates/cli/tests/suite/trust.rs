//! What programs inside trust: an authority of the sandbox's own beside those
//! of the host, for every client, and nothing that they could change.

use ringfence_testkit::{Folder, is_root, processes_with, wait_until};

use super::arena::refused;
use super::clients::{Host, Run};
use super::ringfence;

const PAGE: &str = "https://web.example.org/";
const NETWORK: &str =
    "{allow: [{host: web.example.org, ports: [443], inspect: true}, 'api.example.org:443']}";
/// Where programs find the certificates, and where they would look themselves.
const FILES: [&str; 4] = [
    "/run/ringfence/authority.pem",
    "/run/ringfence/bundle.pem",
    "/run/ringfence/java.jks",
    "/etc/ssl/certs/ca-certificates.crt",
];

/// Runs a script where one host is looked into and another is not.
fn look(host: &Host, script: &str) -> Run {
    let flags = host.policy(NETWORK);
    host.run(&flags, script)
}

#[test]
fn every_client_trusts_a_host_that_is_looked_into() {
    let host = Host::new();
    host.write("fetch.py", include_str!("clients/scripts/fetch.py"));
    host.write("fetch.js", include_str!("clients/scripts/fetch.js"));
    host.write("Fetch.java", include_str!("clients/scripts/Fetch.java"));
    host.online.outside("javac Fetch.java").expect_code(0);
    // With the variables, and by the files that are read without.
    for client in [
        "curl -sSf",
        "curl -sSf --noproxy '*'",
        "env -i curl -sSf",
        "wget -qO-",
        "env -i wget -qO-",
        "/usr/bin/python3 fetch.py urllib",
        "/usr/bin/python3 fetch.py requests",
        "env -i /usr/bin/python3 fetch.py urllib",
        "env -i /usr/bin/python3 fetch.py requests",
        "env -u NODE_USE_ENV_PROXY node fetch.js fetch",
        "env -u NODE_USE_ENV_PROXY node fetch.js http",
        "java Fetch",
    ] {
        look(&host, &format!("{client} {PAGE}")).expect_code(0);
    }
    look(&host, &format!("curl -sSf --cacert policy.yaml {PAGE}")).expect_code(77);
}

#[test]
fn git_trusts_a_host_that_is_looked_into() {
    let host = Host::new();
    let place = host.net().files().join("repository.git");
    let script = format!(
        "git init -q --bare {0} && git -C {0} update-server-info",
        place.display()
    );
    host.online.outside(&script).expect_code(0);
    for git in ["git", "git -c http.proxy=", "env -i HOME=/tmp git"] {
        let script = format!("{git} ls-remote {PAGE}files/repository.git");
        look(&host, &script).expect_code(0);
    }
}

#[test]
fn the_authority_is_ours_where_it_is_needed_and_nowhere_else() {
    let host = Host::new();
    let issuer = |name: &str| {
        let script = format!(
            "openssl s_client -verify_return_error -connect {name}:443 </dev/null 2>/dev/null \
             | openssl x509 -noout -issuer"
        );
        look(&host, &script).expect_code(0).stdout().to_owned()
    };
    assert!(issuer("web.example.org").contains("ringfence"));
    assert!(issuer("api.example.org").contains("ringfence test authority"));
    assert_ne!(issuer("web.example.org"), issuer("api.example.org"));
}

#[test]
fn what_is_trusted_cannot_be_changed_inside() {
    let host = Host::new();
    for file in FILES {
        for attack in [
            format!("echo evil >> {file}"),
            format!("chmod 666 {file}"),
            format!("rm {file}"),
            format!("mv {file} /tmp/"),
            format!("ln {file} /tmp/other"),
            format!("touch {file}.new"),
            format!("umount {file}"),
        ] {
            refused(&attack, look(&host, &attack).outcome);
        }
    }
    for attack in ["mv /run/ringfence /run/other", "rmdir /run/ringfence"] {
        refused(attack, look(&host, attack).outcome);
    }
}

#[test]
fn each_sandbox_has_an_authority_of_its_own() {
    let host = Host::new();
    let script = "cat /run/ringfence/authority.pem";
    let certificates = [(); 2].map(|()| look(&host, script).expect_code(0).stdout().to_owned());
    assert!(certificates[0].starts_with("-----BEGIN CERTIFICATE-----"));
    assert_ne!(certificates[0], certificates[1]);
    let all = "cat /run/ringfence/bundle.pem /etc/ssl/certs/ca-certificates.crt";
    let all = look(&host, all).expect_code(0).stdout().to_owned();
    // Ours and the host's only one, twice.
    assert_eq!(all.matches("BEGIN CERTIFICATE").count(), 4);
    assert_eq!(all.matches(host.net().ca_pem().trim()).count(), 2);
}

#[test]
fn a_narrow_view_has_them_too() {
    let host = Host::new();
    let rest = "filesystem: {read: {scope: system}}\n";
    host.write(
        "policy.yaml",
        &format!("version: 1\nnetwork: {NETWORK}\n{rest}"),
    );
    let script = format!("curl -sSf {PAGE} && env -i curl -sSf {PAGE}");
    host.run(&["--policy", "policy.yaml"], &script)
        .expect_code(0);
    let attack = "touch /run/ringfence/other";
    refused(
        attack,
        host.run(&["--policy", "policy.yaml"], attack).outcome,
    );
}

#[test]
fn what_the_policy_sets_wins_over_our_variables() {
    let host = Host::new();
    let rest = "environment: {set: {SSL_CERT_FILE: /made/up}}\n";
    host.write(
        "policy.yaml",
        &format!("version: 1\nnetwork: {NETWORK}\n{rest}"),
    );
    let script = "echo $SSL_CERT_FILE $CURL_CA_BUNDLE $NODE_EXTRA_CA_CERTS";
    let run = host.run(&["--policy", "policy.yaml"], script);
    assert_eq!(
        run.expect_code(0).stdout(),
        "/made/up /run/ringfence/bundle.pem /run/ringfence/authority.pem\n"
    );
}

#[test]
fn nothing_is_there_when_nothing_is_looked_into() {
    let host = Host::new();
    let script = "env | grep ringfence/; ls /run/ringfence || cmp /etc/ssl/certs/ca-certificates.crt all.pem";
    host.write("all.pem", &host.net().ca_pem());
    let run = host.run(&["--allow", "web.example.org:443"], script);
    assert_eq!(run.expect_code(0).stdout(), "");
}

#[test]
fn a_run_that_shows_the_hosts_own_run_folder_is_refused() {
    let host = Host::new();
    let flags = host.policy(NETWORK);
    let run = host.run(&[flags[0], flags[1], "--read", "/run"], "true");
    let outcome = run.expect_code(125).outcome;
    assert!(
        outcome.stderr.contains("error[own-folder-taken]"),
        "{}",
        outcome.stderr
    );
}

/// The bytes of all memory that a process can read.
fn memory_of(pid: u32) -> Vec<u8> {
    use std::os::unix::fs::FileExt;
    let memory = std::fs::File::open(format!("/proc/{pid}/mem")).expect("its memory");
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("its mappings");
    let mut all = Vec::new();
    for line in maps.lines() {
        let (range, rest) = line.split_once(' ').expect("a range");
        let (start, end) = range.split_once('-').expect("two ends");
        let [start, end] =
            [start, end].map(|text| u64::from_str_radix(text, 16).expect("an address"));
        // What the kernel itself keeps there cannot be read.
        if rest.starts_with('r') {
            let mut bytes = vec![0; usize::try_from(end - start).expect("a length")];
            if memory.read_exact_at(&mut bytes, start).is_ok() {
                all.append(&mut bytes);
            }
        }
    }
    all
}

/// While a sandbox is made there are others for a moment.
fn only_child(pid: u32) -> Option<u32> {
    let children = format!("/proc/{pid}/task/{pid}/children");
    let children = std::fs::read_to_string(children).ok()?;
    children.trim().parse().ok()
}

fn holds(memory: &[u8], text: &str) -> bool {
    memory
        .windows(text.len())
        .any(|bytes| bytes == text.as_bytes())
}

#[test]
fn g5_a_variable_of_the_starter_is_not_in_the_memory_of_the_init() {
    if !is_root() {
        println!("skipped: only root may read the memory of the init");
        return;
    }
    let (folder, secret) = (Folder::new(), format!("s3cr3t-{}", std::process::id()));
    let marker = format!("987{}", std::process::id());
    let started = ringfence()
        .args(["run", "--allow", "web.example.org", "--", "sleep", &marker])
        .env("MY_SECRET", &secret)
        .env("HTTPS_PROXY", format!("http://me:{secret}@proxy.test:3128"))
        .env("MY_SHOWN", "shown")
        .folder(&folder)
        .start();
    let supervisor = started.id();
    // The starter, its init, which keeps the arguments, and the command.
    let is_ready = || processes_with(&marker).len() == 3 && only_child(supervisor).is_some();
    assert!(wait_until(is_ready));
    let init = only_child(supervisor).expect("the init");
    assert!(holds(&memory_of(supervisor), &secret));
    let inside = memory_of(init);
    assert!(holds(&inside, &marker), "its memory was read");
    assert!(!holds(&inside, &secret));
    started.signal("KILL");
    started.finish();
    assert!(wait_until(|| processes_with(&marker).is_empty()));
}

#[test]
fn g8_a_supervisor_with_secrets_ends_all_when_it_is_killed() {
    let host = Host::new();
    let marker = format!("986{}", std::process::id());
    let flags = host.policy(NETWORK);
    let started = host
        .online
        .ringfence()
        .args(["run", flags[0], flags[1], "--", "sleep", &marker])
        .start();
    assert!(wait_until(|| processes_with(&marker).len() >= 3));
    started.signal("KILL");
    started.finish();
    assert!(wait_until(|| processes_with(&marker).is_empty()));
}
