//! git over HTTPS and over ssh.

use ringfence_testkit::{own_ids, sh};

use super::Host;

/// A bare repository at `$place` with one commit.
const REPOSITORY: &str = "export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org
    export GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@example.org
    git init -q -b main work && echo one > work/file && git -C work add file
    git -C work commit -qm first && git clone -q --bare work \"$place\"
    git -C \"$place\" update-server-info && rm -r work";

fn host_with_repository() -> (Host, String) {
    let host = Host::new();
    let place = host.net().files().join("repository.git");
    let script = format!("place={}; {REPOSITORY}", place.display());
    host.online.outside(&script).expect_code(0);
    (host, place.display().to_string())
}

#[test]
fn git_over_https() {
    let (host, _) = host_with_repository();
    for (flag, via) in [("", "connect"), ("-c http.proxy=", "transparent")] {
        let script = format!(
            "git {flag} clone -q https://web.example.org/files/repository.git /tmp/copy \
             && cat /tmp/copy/file"
        );
        let to = "web.example.org:443";
        let run = host.run(&["--allow", to], &script).expect_code(0);
        assert_eq!(run.stdout(), "one\n");
        // It may use several connections, all of them alike.
        let told = run.told();
        let wanted = format!("allowed {to} {via} git-remote-https {to}");
        assert!(
            !told.is_empty() && told.iter().all(|one| *one == wanted),
            "{told:?}"
        );

        let run = host
            .run(&["--allow", "api.example.org"], &script)
            .expect_code(128);
        let wanted = format!("refused {to} {via} git-remote-https not-in-allowlist");
        assert_eq!(run.told(), [wanted]);
        host.sent_nothing();
    }
}

/// The command that git is to use for ssh; the keys are copied to the working
/// folder, because no sandbox sees the test's own folder.
fn ssh_command(host: &Host) -> String {
    let ssh = host.net().ssh();
    host.write("known", &format!("web.example.org {}", ssh.server_key()));
    let copy = format!("install -m 600 {} key", ssh.client_key().display());
    host.online.outside(&copy).expect_code(0);
    "ssh -F none -i $PWD/key -o IdentitiesOnly=yes -o BatchMode=yes -o UserKnownHostsFile=$PWD/known".to_owned()
}

#[test]
fn git_over_ssh() {
    let (host, place) = host_with_repository();
    let command = ssh_command(&host);
    let (id, _) = own_ids();
    let user = sh(&format!("id -un {id}"), "/".as_ref())
        .expect_code(0)
        .stdout;
    let script = format!(
        "GIT_SSH_COMMAND=\"{command}\" \
         git clone -q ssh://{}@web.example.org{place} /tmp/copy && cat /tmp/copy/file",
        user.trim()
    );
    let to = "web.example.org:22";
    let run = host.run(&["--allow", to], &script).expect_code(0);
    assert_eq!(run.stdout(), "one\n");
    assert_eq!(run.told(), [format!("allowed {to} transparent ssh {to}")]);

    let run = host
        .run(&["--allow", "web.example.org"], &script)
        .expect_code(128);
    assert_eq!(
        run.told(),
        [format!("refused {to} transparent ssh port-not-allowed")]
    );
    host.sent_nothing();
}
