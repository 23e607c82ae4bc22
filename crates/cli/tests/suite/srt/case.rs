//! A command under settings, and what is to be seen of it.

use std::ffi::OsString;
use std::path::PathBuf;

use ringfence_testkit::{Folder, Internet, Outcome, Program, sh};
use serde_json::{Value, json};

use crate::suite::ringfence;

/// Asks the proxies things that no ordinary client would.
const ASK: &str = include_str!("ask.py");

/// Who runs the command.
pub(crate) enum Speaker {
    /// The binary under test.
    Ours,
    /// srt itself.
    Srt(PathBuf),
}

impl Speaker {
    /// The program and its first words.
    pub(crate) fn words(&self) -> Vec<OsString> {
        match self {
            Self::Ours => vec![ringfence().path().into(), "srt".into()],
            Self::Srt(path) => vec![path.into()],
        }
    }
}

/// What is seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) code: i32,
    pub(crate) stdout: String,
}

/// Where the command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Machine,
    Internet,
}

/// A command under settings.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) label: String,
    settings: String,
    prepare: &'static str,
    words: Vec<String>,
    input: &'static str,
    place: Place,
    both: Seen,
    srt: Option<Seen>,
    says: Vec<&'static str>,
}

/// Settings that allow nothing but to write in the working folder.
pub(crate) fn settings() -> Value {
    json!({
        "network": {"allowedDomains": [], "deniedDomains": []},
        "filesystem": {"denyRead": [], "allowWrite": ["."], "denyWrite": []}
    })
}

/// The same with the fields of one part added or changed.
pub(crate) fn with(part: &str, fields: Value) -> Value {
    let mut all = settings();
    let Value::Object(fields) = fields else {
        panic!("fields are an object");
    };
    for (name, value) in fields {
        all[part][name] = value;
    }
    all
}

/// A script for the shell, as it is.
pub(crate) fn script(text: &str) -> Case {
    words(&["-c", text]).labelled(text)
}

/// Words after the settings.
pub(crate) fn words(words: &[&str]) -> Case {
    Case {
        label: words.join(" "),
        settings: settings().to_string(),
        prepare: "",
        words: words.iter().map(ToString::to_string).collect(),
        input: "",
        place: Place::Machine,
        both: Seen {
            code: 0,
            stdout: String::new(),
        },
        srt: None,
        says: Vec::new(),
    }
}

/// A script on a host that is online.
pub(crate) fn online(text: &str) -> Case {
    Case {
        place: Place::Internet,
        ..script(text)
    }
}

impl Case {
    pub(crate) fn labelled(mut self, label: &str) -> Self {
        label.clone_into(&mut self.label);
        self
    }

    pub(crate) fn settings(self, settings: &Value) -> Self {
        self.raw_settings(&settings.to_string())
    }

    pub(crate) fn raw_settings(mut self, text: &str) -> Self {
        text.clone_into(&mut self.settings);
        self
    }

    /// With these hosts allowed.
    pub(crate) fn allowing(self, hosts: &[&str]) -> Self {
        self.settings(&with("network", json!({"allowedDomains": hosts})))
    }

    /// After a script in the working folder, outside.
    pub(crate) fn after(mut self, prepare: &'static str) -> Self {
        self.prepare = prepare;
        self
    }

    pub(crate) fn input(mut self, text: &'static str) -> Self {
        self.input = text;
        self
    }

    pub(crate) fn code(mut self, code: i32) -> Self {
        self.both.code = code;
        self
    }

    pub(crate) fn prints(mut self, lines: &[&str]) -> Self {
        self.both.stdout = text(lines);
        self
    }

    /// Prints this and no line end.
    pub(crate) fn prints_exactly(mut self, text: &str) -> Self {
        text.clone_into(&mut self.both.stdout);
        self
    }

    /// With `--debug`.
    pub(crate) fn debugging(mut self) -> Self {
        self.words.insert(0, "--debug".to_owned());
        self
    }

    /// Whether srt and ours are said to differ.
    pub(crate) fn is_told_apart(&self) -> bool {
        self.srt.is_some()
    }

    /// Standard error has these, of both.
    pub(crate) fn says(mut self, words: &[&'static str]) -> Self {
        self.says = words.to_vec();
        self
    }

    /// What srt shows where ours differs on purpose.
    pub(crate) fn but_srt(mut self, code: i32, lines: &[&str]) -> Self {
        self.srt = Some(Seen {
            code,
            stdout: text(lines),
        });
        self
    }

    pub(crate) fn wanted(&self, speaker: &Speaker) -> &Seen {
        match (speaker, &self.srt) {
            (Speaker::Srt(_), Some(seen)) => seen,
            _ => &self.both,
        }
    }

    /// Runs it in a folder of its own.
    pub(crate) fn run(&self, speaker: &Speaker) -> Outcome {
        let folder = Folder::new();
        let work = folder.join("work");
        for path in [&work, &folder.join("home")] {
            std::fs::create_dir(path).expect("a folder");
        }
        folder.write("work/ask.py", ASK);
        sh(self.prepare, &work).expect_code(0);
        let internet = (self.place == Place::Internet).then(Internet::start);
        let words = speaker.words();
        let program = match &internet {
            Some(internet) => internet.program(&words[0]),
            None => Program::new(&words[0]),
        };
        let settings = folder.write("settings.json", &self.settings);
        program
            .args(words[1..].iter())
            .args(["--settings".into(), settings])
            .args(self.words.iter())
            .env("HOME", folder.join("home"))
            .env("USER", "alice")
            .env("LOGNAME", "alice")
            .folder(&work)
            .input(self.input)
            .run()
    }

    /// What is wrong with what came of it, if anything is.
    pub(crate) fn fault(&self, speaker: &Speaker) -> Option<String> {
        let outcome = self.run(speaker);
        let seen = Seen {
            code: outcome.code(),
            stdout: outcome.stdout,
        };
        let unsaid = self
            .says
            .iter()
            .find(|word| !outcome.stderr.contains(**word));
        let wanted = self.wanted(speaker);
        (seen != *wanted || unsaid.is_some()).then(|| {
            format!(
                "{}\nwanted {wanted:?}\nseen   {seen:?}\nunsaid {unsaid:?}\nstderr:\n{}",
                self.label, outcome.stderr
            )
        })
    }
}

fn text(lines: &[&str]) -> String {
    lines
        .iter()
        .fold(String::new(), |text, line| text + line + "\n")
}

/// Makes a test of each named list of cases, and `all`, which has every case.
macro_rules! cases {
    ($($name:ident: $cases:expr;)*) => {
        $(
            #[test]
            fn $name() {
                for case in $cases {
                    let fault = case.fault(&super::case::Speaker::Ours);
                    assert!(fault.is_none(), "{}", fault.unwrap_or_default());
                }
            }
        )*

        pub(super) fn all() -> Vec<(&'static str, super::case::Case)> {
            let mut all = Vec::new();
            $(all.extend($cases.into_iter().map(|case| (stringify!($name), case)));)*
            all
        }
    };
}
pub(super) use cases;
