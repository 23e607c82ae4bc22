//! What a run would make of a file.

use std::path::{Component, Path, PathBuf};

use ringfence_runtime::{FileQuestion, RunError, explain_file};
use ringfence_sandbox::PathAnswer;

use super::NOT_ALLOWED;
use crate::commands::scope::ScopeArgs;
use crate::environment;
use crate::error::Failure;
use crate::exit::ExitCode;
use crate::output;

pub(super) fn main(target: &str, scope: ScopeArgs, json: bool) -> ExitCode {
    match answer(target, scope) {
        Ok(answer) => {
            if json {
                output::print_json(&answer);
            } else {
                show(&answer);
            }
            ExitCode::from(if answer.read || answer.write {
                0
            } else {
                NOT_ALLOWED
            })
        }
        Err(failure) => failure.show(json),
    }
}

fn answer(target: &str, scope: ScopeArgs) -> Result<PathAnswer, Failure> {
    let scope = scope.resolve(&environment::own())?;
    let path = absolute(target, &scope.here.host.home, &scope.here.directory)?;
    let question = FileQuestion {
        policy: &scope.policy,
        host: &scope.here.host,
        env: &scope.here.env,
        working_folder: &scope.here.directory,
        untouchable: scope.files,
        setup: scope.setup,
    };
    explain_file(question, &path)
        .map_err(RunError::from)
        .map_err(Failure::from)
}

/// The path that the words mean, from the working folder, as the kernel would walk it.
fn absolute(target: &str, home: &Path, base: &Path) -> Result<PathBuf, Failure> {
    let bad = |why: &str| {
        let message = format!("{target:?}: {why}");
        Failure::new("bad-target", message, "give a path such as ~/.ssh or src/x")
    };
    let path = match target.strip_prefix('~') {
        Some("") => home.to_path_buf(),
        Some(rest) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        Some(_) => return Err(bad("it names another user's home")),
        None => base.join(target),
    };
    if target.is_empty() || target.contains('\0') {
        return Err(bad("it is no path"));
    }
    let mut walked = PathBuf::new();
    for component in path.components() {
        match component {
            // What is above a link is above where it leads.
            Component::ParentDir => {
                walked = std::fs::canonicalize(&walked).unwrap_or(walked);
                walked.pop();
            }
            other => walked.push(other),
        }
    }
    Ok(walked)
}

fn show(answer: &PathAnswer) {
    let row = |name: &str, text: String| vec![name.to_owned(), text];
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let mut rows = vec![
        row("path", answer.path.display().to_string()),
        row("verdict", answer.access.to_string()),
        row("read", yes(answer.read)),
        row("write", yes(answer.write)),
        row(
            "reason",
            format!("{} ({})", answer.reason, answer.reason.code()),
        ),
    ];
    let leads_to = answer.leads_to.iter();
    let leads_to = leads_to.map(|path| row("leads to", path.display().to_string()));
    rows.splice(1..1, leads_to);
    if !answer.exists {
        rows.push(row("exists", "not on the host".to_owned()));
    }
    rows.extend(answer.permissions.map(|text| row("but", text.to_owned())));
    rows.extend(answer.rule.iter().map(|rule| row("rule", rule.clone())));
    let source = answer.source.iter();
    rows.extend(source.map(|source| row("source", source.to_string())));
    rows.push(row("guard", answer.guard.to_string()));
    let lines = answer.suggestions.iter();
    rows.extend(lines.map(|own| row("to change", own.line.clone())));
    output::print_text(&output::columns(&rows));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_walked_as_the_kernel_would() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("a/b")).unwrap();
        std::os::unix::fs::symlink("a/b", base.join("l")).unwrap();
        let walked = |target| absolute(target, Path::new("/h"), &base).ok();
        assert_eq!(walked("~"), Some("/h".into()));
        assert_eq!(walked("~/.ssh"), Some("/h/.ssh".into()));
        assert_eq!(walked("l/../x"), Some(base.join("a/x")));
        assert_eq!(walked("./none/../x"), Some(base.join("x")));
        assert_eq!(walked("/etc/./hosts"), Some("/etc/hosts".into()));
        assert_eq!((walked("~root/x"), walked("")), (None, None));
    }
}
