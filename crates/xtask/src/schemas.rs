//! `cargo xtask schemas`: the JSON Schemas in `schemas/` are what the built
//! program prints. `--check` changes nothing and names what has drifted.

use std::fs;
use std::path::{Display, Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::args::Args;
use crate::cargo::{self, Profile};
use crate::outcome::Outcome;
use crate::process;

const CHECK: &str = "--check";

/// What `ringfence policy schema` is asked for, and the file that keeps the answer.
const SCHEMAS: &[(&str, &str)] = &[
    ("policy", "policy.schema.json"),
    ("preset", "preset.schema.json"),
    ("srt-settings", "srt-settings.schema.json"),
    ("report", "report.schema.json"),
    ("audit-event", "audit-event.schema.json"),
    ("kit-v1", "kit-v1.schema.json"),
    ("kit-v2", "kit-v2.schema.json"),
];

/// Runs the command.
pub(crate) fn run(typed: &[String]) -> Result<Outcome> {
    let args = Args::parse(typed, &[CHECK], 0)?;
    if args.has(CHECK) { check() } else { write() }
}

/// Compares and says what has drifted.
pub(crate) fn check() -> Result<Outcome> {
    let drifted: Vec<PathBuf> = printed()?
        .into_iter()
        .filter(|(path, text)| has_drifted(path, text))
        .map(|(path, _)| path)
        .collect();
    for path in &drifted {
        println!("{} is not what the program prints", shown(path));
    }
    if !drifted.is_empty() {
        println!("to fix it: cargo xtask schemas");
    }
    Ok(Outcome::when(drifted.is_empty()))
}

fn write() -> Result<Outcome> {
    for (path, text) in printed()? {
        if has_drifted(&path, &text) {
            fs::create_dir_all(cargo::root().join("schemas"))?;
            fs::write(&path, &text).with_context(|| format!("cannot write {}", path.display()))?;
            println!("wrote {}", shown(&path));
        }
    }
    Ok(Outcome::Success)
}

fn shown(path: &Path) -> Display<'_> {
    path.strip_prefix(cargo::root()).unwrap_or(path).display()
}

fn has_drifted(path: &Path, text: &str) -> bool {
    fs::read_to_string(path).map_or(true, |kept| kept != text)
}

fn printed() -> Result<Vec<(PathBuf, String)>> {
    let ringfence = cargo::build_ringfence(Profile::Debug)?;
    let folder = cargo::root().join("schemas");
    let print = |&(name, file): &(&str, &str)| Ok((folder.join(file), schema(&ringfence, name)?));
    SCHEMAS.iter().map(print).collect()
}

fn schema(ringfence: &Path, name: &str) -> Result<String> {
    let mut command = Command::new(ringfence);
    command.args(["policy", "schema", name]);
    let printed = String::from_utf8(process::stdout_of(&mut command)?)?;
    as_schema(&printed).with_context(|| format!("`{}`", process::describe(&command)))
}

/// The text to keep: as printed, ending in one newline, if it is a schema at all.
fn as_schema(printed: &str) -> Result<String> {
    let value: serde_json::Value = serde_json::from_str(printed).context("printed no JSON")?;
    if !value.is_object() {
        bail!("printed JSON that is no schema");
    }
    Ok(format!("{}\n", printed.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_kept_as_printed() {
        assert_eq!(
            as_schema("{\"b\": 1,\n\"a\": 2}\n\n").unwrap(),
            "{\"b\": 1,\n\"a\": 2}\n"
        );
    }

    #[test]
    fn silence_and_other_json_are_refused() {
        assert!(as_schema("").is_err());
        assert!(as_schema("[]").is_err());
    }

    #[test]
    fn a_missing_file_has_drifted() {
        assert!(has_drifted(Path::new("/proc/no-such-file"), "{}\n"));
    }
}
