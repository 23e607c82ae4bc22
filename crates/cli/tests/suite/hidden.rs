//! G4: hidden places stay unreadable.

use ringfence_testkit::{Folder, Outcome, Program, is_root, sh, wait_until};

use super::arena::{Arena, refused};
use super::{inside_with, ringfence};

const SECRET: &str = "s3cr3t-of-the-home";

/// Files that are hidden by themselves or because of the folder they are in.
const SECRETS: [&str; 8] = [
    ".ssh/id_ed25519",
    ".aws/credentials",
    ".gnupg/private-keys-v1.d/key",
    ".config/gh/hosts.yml",
    ".netrc",
    ".git-credentials",
    ".pgpass",
    ".bash_history",
];

fn home() -> Folder {
    let home = Folder::new();
    for name in SECRETS {
        home.write(name, SECRET);
    }
    home.write("plain", "plain");
    home
}

/// Runs a script with that home folder, which is shown: it lies in the folder
/// for temporary files, of which the sandbox has its own.
fn run_at_home(home: &Folder, folder: &Folder, script: &str) -> Outcome {
    let place = home.text();
    ringfence()
        .args(["run", "--read", place, "--", "sh", "-c", script])
        .env("HOME", place)
        .folder(folder)
        .run()
}

#[test]
fn g4_secrets_of_the_home_folder_are_unreadable() {
    let (home, folder) = (home(), Folder::new());
    let outcome = run_at_home(&home, &folder, "cat $HOME/plain").expect_code(0);
    assert_eq!(outcome.stdout, "plain");
    for name in SECRETS {
        for attack in [
            format!("cat $HOME/{name}"),
            format!("cat /proc/self/root/$HOME/{name}"),
            format!("ln -s $HOME l; cat l/{name}; e=$?; rm l; exit $e"),
            format!("ln -s $HOME/{name} l; cat l; e=$?; rm l; exit $e"),
            format!("cd $HOME && cat {name}"),
            format!("cp $HOME/{name} copy"),
            format!("ln $HOME/{name} hard && cat hard"),
            format!("grep -r s3cr3t $HOME/{name}"),
            format!("exec 5< $HOME/$(dirname {name}) && cat /proc/self/fd/5/$(basename {name})"),
        ] {
            let proof = Program::new("sh")
                .args(["-c", &attack])
                .env("HOME", home.path());
            let outside = Folder::new();
            proof.folder(&outside).run().expect_code(0);
            let outcome = refused(&attack, run_at_home(&home, &folder, &attack));
            assert!(!outcome.stdout.contains(SECRET), "{attack}");
            assert!(folder.listing().is_empty(), "{attack}");
        }
    }
}

#[test]
fn g4_secrets_behind_links_of_the_home_folder_are_unreadable() {
    let (home, folder, store) = (Folder::new(), Folder::new(), Folder::new());
    store.write("keys/id", SECRET);
    store.write("netrc", SECRET);
    std::os::unix::fs::symlink(store.join("keys"), home.join(".ssh")).unwrap();
    std::os::unix::fs::symlink(store.join("netrc"), home.join(".netrc")).unwrap();
    let script = format!(
        "cat $HOME/.ssh/id $HOME/.netrc {0}/keys/id {0}/netrc",
        store.path().display()
    );
    let proof = Program::new("sh")
        .args(["-c", &script])
        .env("HOME", home.path());
    proof.folder(&folder).run().expect_code(0);
    let places = [home.path(), store.path()].map(|path| path.to_str().unwrap());
    let outcome = ringfence()
        .args([
            "run", "--read", places[0], "--read", places[1], "--", "sh", "-c", &script,
        ])
        .env("HOME", home.path())
        .folder(&folder)
        .run();
    assert!(refused(&script, outcome).stdout.is_empty());
}

/// Runs `cat READ` inside after the host has done `change` during the run.
fn read_after(
    folder: &Folder,
    home: &Folder,
    flags: &[&str],
    change: impl FnOnce(),
    read: &str,
) -> Outcome {
    let script = format!("touch go; while [ ! -e done ]; do sleep 0.05; done; cat {read}");
    let run = ringfence()
        .args(
            ["run"]
                .into_iter()
                .chain(flags.iter().copied())
                .chain(["--", "sh", "-c", &script]),
        )
        .env("HOME", home.path())
        .folder(folder)
        .start();
    assert!(wait_until(|| folder.has("go")), "it did not start");
    change();
    folder.write("done", "");
    run.finish()
}

#[test]
fn g4_a_hidden_file_that_the_host_replaces_stays_unreadable() {
    let (home, folder) = (Folder::durable(), Folder::new());
    home.write(".netrc", SECRET);
    let place = home.text();
    let change = || {
        home.write("new", SECRET);
        std::fs::rename(home.join("new"), home.join(".netrc")).unwrap();
    };
    let outcome = read_after(&folder, &home, &["--read", place], change, "$HOME/.netrc");
    assert!(refused("cat", outcome).stdout.is_empty());
}

#[test]
fn g4_a_hidden_folder_that_the_host_replaces_stays_unreadable() {
    let (home, folder) = (Folder::durable(), Folder::new());
    home.write(".ssh/id", SECRET);
    let place = home.text();
    let change = || {
        std::fs::rename(home.join(".ssh"), home.join(".ssh-old")).unwrap();
        home.write(".ssh/id", SECRET);
    };
    let outcome = read_after(
        &folder,
        &home,
        &["--read", place],
        change,
        "$HOME/.ssh/id $HOME/.ssh-old/id",
    );
    assert!(refused("cat", outcome).stdout.is_empty());
}

#[test]
fn g4_a_hidden_place_that_comes_to_be_during_the_run_is_unreadable() {
    let (home, folder) = (Folder::durable(), Folder::new());
    let change = || {
        home.write(".aws/credentials", SECRET);
    };
    let outcome = read_after(&folder, &home, &[], change, "$HOME/.aws/credentials");
    assert!(refused("cat", outcome).stdout.is_empty());
}

#[test]
fn g4_hide_hides_and_read_shows_again() {
    let arena = Arena::new();
    arena.folder.write("vault/key", SECRET);
    arena.folder.write("vault/public/note", "note");
    arena.folder.write("token", SECRET);
    arena.folder.write("certs/a.pem", SECRET);
    let hide = ["--hide", "vault", "--hide", "token", "--hide", "**/*.pem"];
    for attack in [
        "cat vault/key",
        "cat token",
        "cat certs/a.pem",
        "mv vault v && cat v/key",
        "mv token t && cat t",
        "ln token t && cat t",
        "./attack exchange token attack && cat attack",
        "cp -r vault v && cat v/key",
        "./attack umount vault && cat vault/key",
        "rmdir vault && echo",
        "echo evil > vault/new",
        "echo evil > token",
    ] {
        refused(attack, arena.inside_with(&hide, attack));
    }
    assert_eq!(arena.folder.read("token"), SECRET);
    let show = [&hide[..], &["--read", "vault/public"]].concat();
    let outcome = arena
        .inside_with(&show, "cat vault/public/note")
        .expect_code(0);
    assert_eq!(outcome.stdout, "note");
    refused("cat", arena.inside_with(&show, "cat vault/key"));
    refused(
        "write",
        arena.inside_with(&show, "echo evil > vault/public/note"),
    );
}

/// A home folder that is the root, however that is written, hides all of it.
#[test]
fn g4_the_root_is_hidden_in_any_spelling() {
    let (folder, state) = (Folder::new(), Folder::new());
    let settings = folder.write(
        "settings.json",
        r#"{"network": {"allowedDomains": [], "deniedDomains": []},
            "filesystem": {"denyRead": ["~"], "allowRead": ["/usr", "/lib", "/lib64", "/bin", "."],
                           "allowWrite": [], "denyWrite": []}}"#,
    );
    let shown = |home: &str| {
        let words = ["run", "--settings", settings.to_str().unwrap(), "--"];
        ringfence()
            .args(words.into_iter().chain(["ls", "/var"]))
            .env("HOME", home)
            .env("XDG_STATE_HOME", state.path())
            .folder(folder.path())
            .run()
            .expect_code(0)
            .stdout
    };
    assert!(sh("ls /var", folder.path()).stdout.contains("lib\n"));
    for home in ["/", "//", "/.", "/./"] {
        // Where the sandbox has a folder of its own.
        assert_eq!(shown(home), "tmp\n", "{home}");
    }
}

#[test]
fn g4_the_restrictive_profile_sees_system_folders_only() {
    let (folder, home) = (Folder::new(), home());
    folder.write("file", "text");
    let flags = ["--profile", "restrictive", "--weaker", "limits"];
    let outcome = inside_with(
        &folder,
        &flags,
        "cat file; ls -A /; for d in $HOME /home /root /var /srv /mnt; do ls -A $d; done 2>/dev/null; true",
    )
    .expect_code(0);
    let expected = [
        "text", "bin", "dev", "etc", "gnu", "lib", "lib32", "lib64", "libx32", "nix", "opt",
        "proc", "sbin", "sys", "tmp", "usr",
    ];
    let top = folder.path().iter().nth(1).unwrap().to_str().unwrap();
    // The home is there, empty and the sandbox's own.
    let own = std::env::var("HOME").unwrap_or_default();
    let text = outcome.stdout.replacen("text", "text\n", 1);
    for line in text.lines() {
        assert!(
            expected.contains(&line) || line == top || own.split('/').any(|part| part == line),
            "{line} is in sight"
        );
    }
    refused("write", inside_with(&folder, &flags, "echo evil > file"));
    refused("make", inside_with(&folder, &flags, "echo evil > new"));
    let plain = format!("cat {}", home.join("plain").display());
    refused(&plain, inside_with(&folder, &flags, &plain));
    assert_eq!(folder.listing(), ["file"]);
}

#[test]
fn g4_what_is_hidden_in_a_folder_that_is_shown_stays_hidden() {
    let folder = Folder::new();
    let policy = "version: 1\nfilesystem: {read: {allow: [/etc]}}\n";
    folder.write("policy.yaml", policy);
    let flags = ["--policy", "policy.yaml"];
    inside_with(&folder, &flags, "cat /etc/hostname").expect_code(0);
    // Who is shown a folder is its owner inside, also started by root.
    let attack = "cat /etc/shadow";
    if is_root() {
        sh(attack, folder.path()).expect_code(0);
    }
    refused(attack, inside_with(&folder, &flags, attack));
}

/// A company's certificates keep being trusted where they lie in a hidden
/// place; the key beside them stays outside.
#[test]
fn g5_certificates_that_variables_name_are_there_without_their_key() {
    let (home, folder) = (Folder::new(), Folder::new());
    let block =
        |kind: &str, text: &str| format!("-----BEGIN {kind}-----\n{text}\n-----END {kind}-----\n");
    let certificate = block("CERTIFICATE", "AAAA");
    let key = block("PRIVATE KEY", SECRET);
    let file = home.write(".pki/corp.pem", &format!("{key}{certificate}"));
    let script = "cat $SSL_CERT_FILE $NODE_EXTRA_CA_CERTS; echo x >> $SSL_CERT_FILE; \
                  cat ~/.pki/corp.pem; echo ${PIP_CERT-none}; exit 0";
    let outcome = ringfence()
        .args(["run", "--read", home.text(), "--", "sh", "-c", script])
        .env("HOME", home.text())
        .env("SSL_CERT_FILE", &file)
        .env("NODE_EXTRA_CA_CERTS", &file)
        .env("PIP_CERT", "/no/such/file")
        .folder(&folder)
        .run()
        .expect_code(0);
    assert_eq!(outcome.stdout, format!("{certificate}{certificate}none\n"));
}

/// Settings that stand beside tokens work inside; the tokens stay outside, and
/// of a file that cannot be understood all of it.
#[test]
fn g5_settings_files_are_there_without_their_tokens() {
    let (home, folder) = (Folder::new(), Folder::new());
    let npm =
        format!("registry=https://npm.example.org/\n//npm.example.org/:_authToken={SECRET}\n");
    home.write(".npmrc", &npm);
    let pip = format!("[global]\nindex-url = https://u:{SECRET}@pip.example.org/simple\n");
    home.write(".config/pip/pip.conf", &pip);
    let cargo = format!("[net]\nretry = 2\n[registries.own]\ntoken = \"{SECRET}\"\n");
    home.write(".cargo/config.toml", &cargo);
    home.write(".yarnrc.yml", SECRET);
    let script = "cd; cat .npmrc .config/pip/pip.conf .cargo/config.toml .yarnrc.yml";
    let outcome = run_at_home(&home, &folder, script).expect_code(0);
    let want = "registry=https://npm.example.org/\n[global]\n\
                index-url = https://pip.example.org/simple\n[net]\nretry = 2\n[registries.own]\n";
    assert_eq!(outcome.stdout, want);
    let hide = home.join(".npmrc").display().to_string();
    let script = "cat ~/.npmrc";
    let words = ["run", "--hide", &hide, "--", "sh", "-c", script];
    let outcome = ringfence().env("HOME", home.path()).args(words);
    let outcome = outcome.folder(folder.path()).run();
    assert_ne!(outcome.code(), 0, "{}", outcome.stdout);
}

/// To write such a file is refused for what it is, and nothing is proposed that would open the home.
#[test]
fn a_settings_file_without_its_tokens_is_not_proposed_to_be_written() {
    let home = Folder::durable();
    home.write(".npmrc", &format!("//a.example.org/:_authToken={SECRET}\n"));
    std::fs::create_dir(home.join("work")).expect("a folder");
    let run = |flags: &[&str], script: &str| {
        let words = [&["run"], flags, &["--", "sh", "-c", script]].concat();
        let program = ringfence().env("HOME", home.path()).args(words);
        program.folder(home.join("work")).run()
    };
    let path = home.join(".npmrc").display().to_string();
    for script in [
        "echo x >> ~/.npmrc",
        "cd; echo x > .npmrc",
        "chmod 600 ~/.npmrc",
    ] {
        let outcome = run(&[], script);
        assert_ne!(outcome.code(), 0, "{script}");
        if script.contains("echo") {
            let told = &outcome.stderr;
            assert!(told.contains(&path), "{script}: {told}");
            assert!(
                told.contains("shown without its secrets"),
                "{script}: {told}"
            );
        }
        assert!(!outcome.stderr.contains("--write"), "{}", outcome.stderr);
    }
    // Nor is the home for a file that is in no writable place.
    let outcome = run(&["--home", "none"], "echo x > ~/file; echo x > ../file");
    assert!(outcome.stderr.contains("outside the writable places"));
    assert!(!outcome.stderr.contains("--write"), "{}", outcome.stderr);
    assert!(home.read(".npmrc").contains(SECRET));
}

/// What `npm login` does meanwhile shows inside, without the new token.
#[test]
fn g5_settings_files_that_the_host_replaces_are_there_without_their_tokens() {
    let (home, folder) = (Folder::new(), Folder::new());
    let npm = |host: &str, token: &str| {
        format!("registry=https://{host}.example.org/\n//{host}.example.org/:_authToken={token}\n")
    };
    home.write(".npmrc", &npm("old", SECRET));
    let script = "cd; cat .npmrc; touch $OLDPWD/ready; \
         until grep -qs new .npmrc; do sleep 0.01; done; cat .npmrc";
    let words = ["run", "--", "sh", "-c", script];
    let program = ringfence().env("HOME", home.path()).args(words);
    let run = program.folder(folder.path()).start();
    assert!(wait_until(|| folder.has("ready")));
    let new = home.write("other", &npm("new", &format!("another-{SECRET}")));
    std::fs::rename(new, home.join(".npmrc")).expect("a new file");
    let want = "registry=https://old.example.org/\nregistry=https://new.example.org/\n";
    assert_eq!(run.finish().expect_code(0).stdout, want);
}

/// A mount goes with the file that it lies on; it comes back on the next. Until
/// then, for a moment, what is in a writable directory can be read.
#[test]
fn g4_what_the_host_puts_in_the_place_of_a_hidden_file_is_hidden_again() {
    let replaced = [
        (
            "vault",
            "mkdir other; echo s3cr3t > other/token; rm -r vault; mv other vault",
        ),
        (
            "vault/token",
            "mv vault old; mkdir vault; echo s3cr3t > vault/token",
        ),
        (".env", "echo s3cr3t > new; mv new .env"),
        (".env", "rm .env; echo s3cr3t > .env"),
        (".env", "echo s3cr3t > plain; ln -sf plain .env"),
        (
            "deep/er/.env",
            "mv deep/er deep/old; mkdir deep/er; echo s3cr3t > deep/er/.env",
        ),
    ];
    for (hidden, replace) in replaced {
        for flags in [&[][..], &["--guard", "sweep"]] {
            let prepare = "mkdir -p vault deep/er; for file in .env deep/er/.env vault/token; \
                 do echo s3cr3t > $file; done";
            let arena = Arena::prepared(prepare);
            let read = format!("cat {hidden} {hidden}/token 2> /dev/null | grep -q s3cr3t");
            arena.outside(&read).expect_code(0);
            let script = format!(
                "{read} && exit 9; touch ready; until [ -e go ]; do sleep 0.01; done; \
                 while {read}; do sleep 0.01; done; exit 0"
            );
            let words = ["run", "--hide", hidden].into_iter();
            let words = words
                .chain(flags.iter().copied())
                .chain(["--", "sh", "-c", &script]);
            let run = ringfence().args(words).folder(&arena.folder).start();
            assert!(wait_until(|| arena.folder.has("ready")));
            arena.outside(replace).expect_code(0);
            arena.outside(&format!("{read} && touch go")).expect_code(0);
            run.finish().expect_code(0);
        }
    }
}
