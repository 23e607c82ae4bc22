//! Files that show a placeholder instead of the secret in them.

use ringfence_testkit::{Folder, Outcome, Program, sh, wait_until};
use serde_json::json;

use super::arena::refused;
use super::ringfence;

const SECRET: &str = "s3cr3t-of-a-file";

/// Files with secrets, settings elsewhere, and a working folder.
struct Masked {
    /// Where the files are.
    files: Folder,
    settings: Folder,
    /// Where the command runs, if not where the files are.
    elsewhere: Option<Folder>,
}

impl Masked {
    /// In the working folder, with what becomes of a file without its secret.
    fn new(unmatched: &str) -> Self {
        Self::at(Folder::new(), None, unmatched)
    }

    fn at(folder: Folder, elsewhere: Option<Folder>, unmatched: &str) -> Self {
        let settings = Folder::new();
        folder.write(
            "part",
            &format!("user=me\ntoken={SECRET}\nagain {SECRET}\n"),
        );
        folder.write("whole", SECRET);
        folder.write("without", "nothing");
        let file = |name: &str, extract: Option<&str>| {
            let mut file = json!({"mode": "mask", "injectHosts": ["api.example.org"]});
            file["path"] = json!(folder.join(name));
            if let Some(extract) = extract {
                file["extract"] = json!(extract);
                file["onExtractNoMatch"] = json!(unmatched);
            }
            file
        };
        let token = Some("token=(\\S+)");
        let files = [
            file("part", token),
            file("whole", None),
            file("without", token),
            file("missing", None),
        ];
        let all = json!({
            "network": {
                "allowedDomains": ["api.example.org"],
                "deniedDomains": [],
                "tlsTerminate": {},
            },
            "filesystem": {"denyRead": [], "allowWrite": ["."], "denyWrite": []},
            "credentials": {"files": files},
        });
        settings.write("settings.json", &all.to_string());
        Self {
            files: folder,
            settings,
            elsewhere,
        }
    }

    fn folder(&self) -> &Folder {
        self.elsewhere.as_ref().unwrap_or(&self.files)
    }

    fn program(&self, script: &str) -> Program {
        let settings = self.settings.join("settings.json").into_os_string();
        let words = ["-c".into(), script.into()];
        ringfence()
            .args([
                std::ffi::OsString::from("srt"),
                "--settings".into(),
                settings,
            ])
            .args::<std::ffi::OsString>(words)
            .folder(self.folder())
    }

    fn inside(&self, script: &str) -> Outcome {
        self.program(script).run()
    }
}

#[test]
fn g5_a_masked_file_shows_a_placeholder() {
    let masked = Masked::new("deny");
    let text = masked.inside("cat part").expect_code(0).stdout;
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("user=me"));
    let placeholder = lines.next().and_then(|line| line.strip_prefix("token="));
    let placeholder = placeholder.expect("a placeholder");
    assert!(placeholder.len() > 16, "{placeholder}");
    assert_eq!(lines.next(), Some(format!("again {placeholder}").as_str()));
    let text = masked.inside("cat whole").expect_code(0).stdout;
    assert!(text.len() > 16 && !text.contains(SECRET), "{text}");
    assert_eq!(masked.inside("cat without").expect_code(0).stdout, "");
    let all = masked.inside("cat $(find . -type f); cp part copy; cat copy");
    assert!(!all.expect_code(0).stdout.contains(SECRET));
    assert!(masked.files.read("part").contains(SECRET));
}

#[test]
fn g5_a_masked_file_stays_masked() {
    let masked = Masked::new("deny");
    for attack in [
        "echo evil > part",
        "rm part",
        "mv part other",
        "ln part other && grep secret other",
        "touch other && mv other part",
        "umount part",
    ] {
        refused(attack, masked.inside(attack));
    }
    assert!(masked.files.read("part").contains(SECRET));
}

/// How the host gives a file new content.
const REPLACED: [&str; 4] = [
    "mv new NAME",
    "cat new > NAME",
    "rm NAME; mv new NAME",
    "mkdir moved$$; mv * moved$$ 2>/dev/null; cp -r moved$$/* .; mv new NAME",
];

impl Masked {
    /// Waits inside until each new content of both files is masked, and shows it:
    /// in a writable directory there is a moment before that.
    fn waiting(&self, before: &str) -> Program {
        let place = self.files.text();
        let script = format!(
            "shown() {{ until text=$(cat {place}/$1) && case $text in $2) true;; *) false;; esac; \
             do sleep 0.01; done; printf '%s\\n' \"$text\"; }}; \
             {before} for n in 0 1 2 3; do touch ready$n; shown part \"user=new$n*token=rf-*\"; \
             shown whole 'rf-*'; done; touch stop; wait"
        );
        self.program(&script)
    }

    /// Gives both files new content, in every way, and returns what was shown.
    fn replaced(&self, before: &str) -> String {
        let started = self.waiting(before).start();
        for (n, how) in REPLACED.iter().enumerate() {
            assert!(wait_until(|| self.folder().has(format!("ready{n}"))));
            for (name, text) in [
                ("whole", format!("new{n}-{SECRET}")),
                (
                    "part",
                    format!("user=new{n}\ntoken=new{n}-{SECRET}\n{}", "end\n".repeat(n)),
                ),
            ] {
                // Beside the others: what is made in their directory moves with them.
                self.files.write("new", &text);
                sh(&how.replace("NAME", name), self.files.path()).expect_code(0);
            }
        }
        started.finish().expect_code(0).stdout
    }
}

/// One text for each way, each with the placeholder and nothing of the secret.
fn assert_masked(shown: &str) {
    let placeholders: Vec<_> = shown
        .lines()
        .filter_map(|line| line.strip_prefix("token="))
        .collect();
    assert_eq!(placeholders.len(), REPLACED.len(), "{shown}");
    assert!(placeholders[0].len() > 16, "{shown}");
    assert!(
        placeholders.iter().all(|one| *one == placeholders[0]),
        "{shown}"
    );
    assert!(!shown.contains(SECRET), "{shown}");
    assert_eq!(shown.matches("end\n").count(), 6, "{shown}");
}

#[test]
fn g5_a_masked_file_that_the_host_replaces_shows_its_new_content_masked() {
    let masked = Masked::at(Folder::durable(), Some(Folder::new()), "deny");
    let place = masked.files.text();
    // What is there for a moment is looked for as well.
    let look = format!(
        "(while [ ! -e stop ]; do cat {place}/part {place}/whole {place}/new {place}/*/part; done \
         > seen 2> /dev/null) &"
    );
    assert_masked(&masked.replaced(&look));
    let seen = masked.folder().read("seen");
    assert!(seen.contains("token=") && !seen.contains(SECRET), "{seen}");
}

#[test]
fn g5_a_masked_file_of_the_working_directory_is_masked_again() {
    assert_masked(&Masked::new("deny").replaced(""));
}

#[test]
fn g5_a_masked_file_that_comes_later_is_not_shown() {
    let masked = Masked::at(Folder::durable(), Some(Folder::new()), "deny");
    let place = masked.files.text();
    let script =
        format!("touch ready; while [ ! -e go ]; do sleep 0.01; done; cat {place}/missing");
    let started = masked.program(&script).start();
    assert!(wait_until(|| masked.folder().has("ready")));
    let new = masked.files.write("new", SECRET);
    std::fs::rename(new, masked.files.join("missing")).expect("a new file");
    masked.folder().write("go", "");
    assert_eq!(started.finish().expect_code(1).stdout, "");
}

#[test]
fn g5_new_content_without_its_secret_shows_nothing() {
    for unmatched in ["deny", "error"] {
        let masked = Masked::at(Folder::durable(), Some(Folder::new()), unmatched);
        masked.files.write("without", "token=other");
        let place = masked.files.text();
        // In between it may be nothing that can be opened.
        let script = format!(
            "touch ready; until text=$(cat {place}/part) && [ -z \"$text\" ]; do sleep 0.01; done"
        );
        let started = masked.program(&script).start();
        assert!(wait_until(|| masked.folder().has("ready")));
        let new = masked.files.write("new", &format!("key={SECRET}"));
        std::fs::rename(new, masked.files.join("part")).expect("a new file");
        started.finish().expect_code(0);
    }
}

#[test]
fn g5_nothing_is_run_when_a_secret_that_must_be_there_is_missing() {
    let masked = Masked::new("error");
    let outcome = masked.inside("touch ran").expect_code(1);
    assert!(outcome.stderr.contains("without"), "{}", outcome.stderr);
    assert!(!masked.files.join("ran").exists());
}

#[test]
fn g5_a_link_in_the_place_of_a_masked_file_is_refused() {
    let masked = Masked::new("deny");
    let other = masked
        .settings
        .write("other", &format!("token={SECRET} and more"));
    std::fs::remove_file(masked.files.join("part")).expect("a removal");
    std::os::unix::fs::symlink(other, masked.files.join("part")).expect("a link");
    let outcome = masked.inside("cat part");
    assert_ne!(outcome.code(), 0);
    assert_eq!(outcome.stdout, "");
}

/// Settings with a variable of which a part is the secret, and the variable.
fn with_variable(value: &str, unmatched: &str, script: &str) -> Outcome {
    let (settings, folder) = (Folder::new(), Folder::new());
    let all = json!({
        "network": {
            "allowedDomains": ["db.example.org"],
            "deniedDomains": [],
            "tlsTerminate": {},
        },
        "filesystem": {"denyRead": [], "allowWrite": ["."], "denyWrite": []},
        "credentials": {"envVars": [{
            "name": "DB_URL",
            "mode": "mask",
            "extract": "://u:([^@]+)@",
            "onExtractNoMatch": unmatched,
        }]},
    });
    settings.write("settings.json", &all.to_string());
    let file = settings.join("settings.json").into_os_string();
    ringfence()
        .env("DB_URL", value)
        .args(["srt".into(), "--settings".into(), file])
        .args(["-c", script])
        .folder(&folder)
        .run()
}

#[test]
fn g5_a_variable_shows_what_stands_around_its_secret() {
    let show = "printf %s \"${DB_URL-unset}\"";
    let value = format!("db://u:{SECRET}@db.example.org");
    let text = with_variable(&value, "error", show).expect_code(0).stdout;
    let placeholder = text
        .strip_prefix("db://u:")
        .and_then(|rest| rest.strip_suffix("@db.example.org"));
    let placeholder = placeholder.unwrap_or_else(|| panic!("{text}"));
    assert!(placeholder.len() > 16 && placeholder != SECRET, "{text}");
    let hidden = with_variable(SECRET, "deny", show).expect_code(0).stdout;
    assert_eq!(hidden, "unset");
    let refused = with_variable(SECRET, "error", show);
    assert!(
        refused.stderr.contains("variable-not-masked"),
        "{}",
        refused.stderr
    );
    assert_eq!(refused.stdout, "");
    assert!(!refused.stderr.contains(SECRET), "{}", refused.stderr);
}
