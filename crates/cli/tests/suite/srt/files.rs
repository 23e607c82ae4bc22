//! What is read, what is written, which names are protected.

use std::path::PathBuf;

use serde_json::json;

use super::case::{Case, cases, script, settings, with};

/// What `touch` says of each place.
fn touching(places: &str) -> Case {
    script(&format!(
        "for p in {places}; do touch $p 2>&1 | sed 's/.*: //'; done"
    ))
}

/// Whether each of these writes works.
fn writing(places: &str) -> Case {
    script(&format!(
        "for p in {places}; do if (echo x > $p) 2>/dev/null; then echo done; else echo refused; fi; done"
    ))
}

const REPOSITORY: &str = "git init -q . && mkdir sub && echo kept > .git/hooks/old";
const SECRETS: &str = "mkdir d && echo secret | tee secret.txt d/inner a.key b.key > shown \
                       && ln -s secret.txt link";

const FOLDERS: &str = "for d in .vscode .idea .claude/commands .claude/agents; do \
                       mkdir -p $d 2>/dev/null && echo x 2>/dev/null > $d/x && echo done; \
                       done; echo end";
const COMMIT: &str = "touch new && git add new \
                      && git -c user.name=n -c user.email=e commit -qm m \
                      && git log --oneline | wc -l";
const READING: &str = "for f in secret.txt link d/inner a.key b.key shown; do \
                       cat $f 2>/dev/null || echo hidden; done";
const SYSTEM: [&str; 5] = ["/usr", "/bin", "/lib", "/lib64", "/etc"];

/// The same, and where srt itself is, which has a program of its own inside.
fn system() -> Vec<String> {
    let srt = std::env::var_os(super::compare::SRT).map(PathBuf::from);
    let folder = srt
        .as_deref()
        .and_then(|program| program.ancestors().nth(3));
    let folder = folder.map(|folder| folder.display().to_string());
    SYSTEM
        .iter()
        .map(ToString::to_string)
        .chain(folder)
        .collect()
}

cases! {
    writing_works_where_it_is_allowed_and_nowhere_else: [
        touching("made /usr/made /etc/made").prints(&["Read-only file system"; 2]),
        writing("made sub/made /usr/made").after("mkdir sub").prints(&["done", "done", "refused"]),
        script("echo x >> old; cat old").after("echo old > old").prints(&["old", "x"]),
        writing("made").settings(&with("filesystem", json!({"allowWrite": []}))).prints(&["refused"]),
        writing("../beside/made")
            .after("mkdir ../beside")
            .settings(&with("filesystem", json!({"allowWrite": ["../beside"]})))
            .prints(&["done"]),
    ];
    what_is_denied_to_be_written_stays_there_or_not: [
        writing("there missing d/inner other")
            .after("touch there && mkdir d && touch d/inner")
            .settings(&with("filesystem", json!({"denyWrite": ["there", "missing", "d"]})))
            .prints(&["refused", "refused", "refused", "done"]),
        writing("a.lock b.txt")
            .labelled("a pattern that is not written to")
            .settings(&with("filesystem", json!({"denyWrite": ["*.lock"]})))
            .prints(&["refused", "done"])
            .but_srt(0, &["done", "done"]),
    ];
    protected_names_cannot_be_written_and_leave_nothing_behind: [
        writing(".bashrc .bash_profile .zshrc .zprofile .profile .gitconfig .gitmodules .ripgreprc .mcp.json")
            .prints(&["refused"; 9]),
        writing(".bashrc .gitconfig").after("touch .bashrc .gitconfig").prints(&["refused"; 2]),
        script(FOLDERS).labelled("folders of editors and agents").prints(&["end"]),
        script("mkdir -p sub/.vscode 2>/dev/null && echo made || echo refused")
            .prints(&["made"]),
    ];
    hooks_and_configuration_of_git_stay: [
        writing(".git/hooks/new .git/hooks/old .git/config .git/made")
            .after(REPOSITORY)
            .prints(&["refused", "refused", "refused", "done"]),
        writing(".git/hooks/new .git/config")
            .after(REPOSITORY)
            .settings(&with("filesystem", json!({"allowGitConfig": true})))
            .prints(&["refused", "done"]),
        script(COMMIT)
            .labelled("a commit")
            .after(REPOSITORY)
            .prints(&["1"]),
    ];
    hidden_places_cannot_be_read: [
        script(READING)
            .labelled("a file, a link to it, a folder, a pattern")
            .after(SECRETS)
            .settings(&with("filesystem", json!({"denyRead": ["secret.txt", "d", "*.key"]})))
            .prints(&["hidden", "hidden", "hidden", "hidden", "hidden", "secret"]),
        script("cat secret.txt 2>&1 | sed 's/.*: //'; cat d/inner 2>&1 | sed 's/.*: //'; ls d")
            .after(SECRETS)
            .settings(&with("filesystem", json!({"denyRead": ["secret.txt", "d"]})))
            .prints(&["Permission denied", "No such file or directory"]),
        script("cat secret.txt; cat ../beside/secret 2>/dev/null || echo hidden; touch made && echo made")
            .after("mkdir ../beside && echo secret | tee secret.txt > ../beside/secret")
            .settings(&with("filesystem", json!({"denyRead": [".."], "allowRead": ["."]})))
            .prints(&["secret", "hidden", "made"]),
        script("cat secret.txt; touch made && echo made")
            .after("echo secret > secret.txt")
            .settings(&with("filesystem", json!({"denyRead": [".."]})))
            .prints(&["secret", "made"]),
        script("cat secret.txt; touch made && echo made; cat /var/lib/dpkg/status 2>/dev/null || echo hidden")
            .after("echo secret > secret.txt")
            .settings(&with("filesystem", json!({"denyRead": ["/"], "allowRead": system()})))
            .prints(&["secret", "made", "hidden"]),
    ];
    folders_above_what_is_guarded_cannot_be_moved_away: [
        script("mv .git away 2>/dev/null && echo moved || echo refused; test -d .git && echo there")
            .after(REPOSITORY)
            .prints(&["refused", "there"]),
        script("mv d away 2>/dev/null && echo moved || echo refused; test -e d/inner && echo there")
            .after("mkdir d && echo x > d/inner")
            .settings(&with("filesystem", json!({"denyWrite": ["d/inner"]})))
            .prints(&["refused", "there"]),
        script("mv .git away 2>&1 | sed 's/.*: //'")
            .after(REPOSITORY)
            .prints(&["Read-only file system"])
            .but_srt(0, &["Device or resource busy"]),
    ];
    temporary_files_have_a_folder_that_exists: [
        // Of the host's own, or made inside where there is none.
        script("echo ${TMPDIR#/var}; touch $TMPDIR/made 2>/dev/null && echo made")
            .labelled("a folder for temporary files")
            .prints(&["/tmp/claude", "made"])
            .but_srt(1, &["/tmp/claude"]),
    ];
    the_whole_host_is_read: [
        script("head -c 4 /usr/bin/env | tail -c 3; echo; test -r /etc/passwd && echo read")
            .prints(&["ELF", "read"]),
    ];
}

#[test]
fn no_file_is_left_behind() {
    use super::case::Speaker;
    let case = script("ls -A; mkdir -p .claude; rmdir .claude").prints(&["ask.py"]);
    assert_eq!(case.fault(&Speaker::Ours), None);
}

#[test]
fn the_hosts_own_temporary_folder_is_writable_where_it_is_named() {
    use super::case::Speaker;
    let host = ringfence_testkit::Folder::new();
    let file = host.join("made");
    if !file.starts_with("/tmp") {
        println!("skipped: temporary files of this machine are not in /tmp");
        return;
    }
    let text = format!("echo host > {}; echo $TMPDIR", file.display());
    let shared = with("filesystem", json!({"allowWrite": [".", "/tmp"]}));
    let outcome = script(&text)
        .settings(&shared)
        .run(&Speaker::Ours)
        .expect_code(0);
    assert_eq!(host.read("made"), "host\n");
    assert!(["/tmp\n", "/tmp/claude\n"].contains(&outcome.stdout.as_str()));
    let private = script(&text).settings(&settings());
    std::fs::remove_file(&file).unwrap();
    private.run(&Speaker::Ours).expect_code(0);
    assert!(!file.exists(), "nothing is written there otherwise");
}

#[test]
fn the_hosts_own_temporary_folder_is_read() {
    use super::case::Speaker;
    let host = ringfence_testkit::Folder::new();
    let file = host.join("script.sh");
    if !file.starts_with("/tmp") {
        println!("skipped: temporary files of this machine are not in /tmp");
        return;
    }
    host.write(
        "script.sh",
        "echo run; touch \"$0.made\" 2>&1 | sed 's/.*: //'",
    );
    let text = format!("sh {}", file.display());
    let outcome = script(&text).run(&Speaker::Ours).expect_code(0);
    assert_eq!(outcome.stdout, "run\nRead-only file system\n");
    assert_eq!(host.listing(), ["script.sh"]);
    let hidden = with(
        "filesystem",
        json!({"denyRead": ["/tmp"], "allowWrite": []}),
    );
    let case = script(&format!("{text} 2>/dev/null || echo hidden")).settings(&hidden);
    let outcome = case.run(&Speaker::Ours);
    assert!(!outcome.stdout.contains("run"), "{}", outcome.stdout);
}

#[test]
fn root_reads_what_only_root_can() {
    use super::case::Speaker;
    if !ringfence_testkit::is_root() {
        println!("skipped: for root");
        return;
    }
    let Some(place) = RootsOwn::make() else {
        println!("skipped: nothing can be made in /opt");
        return;
    };
    let text = format!(
        "cat {0}/file; echo x > {0}/file; cat /etc/shadow || echo hidden",
        place.0.display()
    );
    let outcome = script(&text).run(&Speaker::Ours).expect_code(0);
    assert_eq!(outcome.stdout, "roots\nhidden\n");
    let file = place.0.join("file");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "roots\n");
}

/// A folder for root alone, in no home folder, gone again at the end.
struct RootsOwn(std::path::PathBuf);

impl RootsOwn {
    fn make() -> Option<Self> {
        use std::os::unix::fs::DirBuilderExt;
        let path = std::path::PathBuf::from(format!("/opt/ringfence-test-{}", std::process::id()));
        std::fs::DirBuilder::new().mode(0o700).create(&path).ok()?;
        let made = Self(path);
        std::fs::write(made.0.join("file"), "roots\n").ok()?;
        Some(made)
    }
}

impl Drop for RootsOwn {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
