//! `ringfence policy explain`: why a host is allowed or not, and what becomes of a file.

mod file;

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use ringfence_policy::{
    Explanation, HttpUrl, HttpUrlError, Request, Target, check_path, explain, is_misspelt,
};

use crate::commands::scope::ScopeArgs;
use crate::error::Failure;
use crate::exit::ExitCode;
use crate::output;

/// Say why a request is allowed or not, or what a run would make of a file, and what would change it
///
/// A TARGET that begins with /, ~ or a dot, or that is there in the working
/// folder, is a file; write `https://NAME` for a host of the same name. For a
/// host: which rule decides, and which credential a request gets. For a file:
/// whether it is readable, writable, hidden, protected, masked or private, by
/// which rule, and what the guard of protected names does with it.
///
/// Exits with 0 when it is allowed, or the file can be read or written, and
/// with 3 when not.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ringfence policy explain api.example.org
  ringfence policy explain https://api.example.org/v1/items --method POST
  ringfence policy explain api.example.org:8443 --address 10.0.0.7
  ringfence policy explain ~/.ssh/id_ed25519
  ringfence policy explain .git/hooks/pre-commit --unprotect .git/hooks")]
pub(crate) struct ExplainArgs {
    /// A host, host:port or URL, or a file
    #[arg(value_name = "TARGET")]
    target: String,
    /// TARGET is a file, whatever it looks like
    #[arg(long, conflicts_with_all = ["address", "method", "path"])]
    file: bool,
    /// The address that the name resolved to
    #[arg(long, value_name = "IP")]
    address: Option<IpAddr>,
    /// The method of an HTTP request
    #[arg(long, value_name = "METHOD")]
    method: Option<String>,
    /// The path of an HTTP request
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The exit code for a destination that is not allowed.
const NOT_ALLOWED: u8 = 3;

pub(crate) fn main(arguments: ExplainArgs) -> ExitCode {
    let json = arguments.json;
    if arguments.asks_about_file() {
        return file::main(&arguments.target, arguments.scope, json);
    }
    match answer(arguments) {
        Ok(explanation) => {
            if json {
                output::print_json(&explanation);
            } else {
                show(&explanation);
            }
            ExitCode::from(if explanation.decision.is_allowed() {
                0
            } else {
                NOT_ALLOWED
            })
        }
        Err(failure) => failure.show(json),
    }
}

impl ExplainArgs {
    fn asks_about_file(&self) -> bool {
        let is_request = self.address.is_some() || self.method.is_some() || self.path.is_some();
        // No host begins with a dot.
        let looks_so = self.target.starts_with(['/', '~', '.']);
        let is_there = || {
            let folder = self.scope.folder();
            let path = folder.map_or_else(PathBuf::new, Path::to_path_buf);
            !self.target.is_empty() && path.join(&self.target).symlink_metadata().is_ok()
        };
        self.file || (!is_request && (looks_so || is_there()))
    }
}

fn answer(arguments: ExplainArgs) -> Result<Explanation, Failure> {
    let asked = parse(&arguments.target)?;
    let policy = arguments.scope.resolve()?.policy;
    if let Some(path) = &arguments.path {
        check_path(path).map_err(|bad| malformed(path, &bad))?;
    }
    if let Some(method) = arguments.method.as_deref() {
        check_method(method)?;
    }
    let path = arguments.path.or(asked.path);
    let mut request = Request::connect(&asked.target, asked.port);
    if let Some(address) = arguments.address {
        request = request.resolved_to(address);
    }
    if arguments.method.is_some() || path.is_some() {
        request.method = Some(arguments.method.as_deref().unwrap_or("GET"));
        request.path = Some(path.as_deref().unwrap_or("/"));
    }
    Ok(explain(&policy, &request))
}

/// Reads what the proxies read, and refuses what they refuse.
fn parse(text: &str) -> Result<HttpUrl, Failure> {
    HttpUrl::parse(text).map_err(|bad| malformed(text, &bad))
}

fn malformed(text: &str, bad: &HttpUrlError) -> Failure {
    let hint = match bad {
        HttpUrlError::Path(_) => "encode it with %, as clients do".to_owned(),
        _ => match Target::parse(text) {
            Ok(target) if !text.is_ascii() => format!("write {target}, as clients do"),
            _ => "give a host, host:port or URL".to_owned(),
        },
    };
    Failure::new("bad-target", format!("{text:?}: {bad}"), hint)
}

fn check_method(method: &str) -> Result<(), Failure> {
    // What opens a tunnel is a connection, and asked about without a method.
    if is_misspelt(method) || method == "CONNECT" {
        let why = format!("{method:?} is not the method of a request");
        let hint = "write it as clients do: GET, HEAD, POST";
        return Err(Failure::new("bad-method", why, hint));
    }
    Ok(())
}

fn show(explanation: &Explanation) {
    let decision = &explanation.decision;
    let verdict = if decision.is_allowed() {
        "allowed"
    } else {
        "refused"
    };
    let mut rows = vec![
        vec!["verdict".to_owned(), verdict.to_owned()],
        vec![
            "reason".to_owned(),
            format!("{} ({})", decision.reason, decision.reason.code()),
        ],
    ];
    rows.extend(
        decision
            .rule
            .iter()
            .map(|rule| vec!["rule".to_owned(), rule.clone()]),
    );
    rows.extend(
        decision
            .source
            .iter()
            .map(|source| vec!["source".to_owned(), source.to_string()]),
    );
    if decision.is_allowed() {
        rows.extend(requests(explanation));
    }
    for suggestion in &explanation.suggestions {
        let place = match suggestion.place {
            "" => String::new(),
            place => format!("  ({place})"),
        };
        rows.push(vec![
            "to allow".to_owned(),
            format!("{}{place}", suggestion.line),
        ]);
    }
    output::print_text(&output::columns(&rows));
}

/// What happens to the requests inside an allowed connection.
fn requests(explanation: &Explanation) -> Vec<Vec<String>> {
    let looked_into = if explanation.decision.needs_inspection {
        "looked into, also inside TLS; each one is judged by itself"
    } else {
        "not looked into inside TLS"
    };
    let mut rows = vec![vec!["requests".to_owned(), looked_into.to_owned()]];
    for own in &explanation.credentials {
        let text = format!("{}, {}  ({})", own.service, own.binding, own.origin);
        rows.push(vec!["credential".to_owned(), text]);
    }
    for own in &explanation.withheld {
        let text = format!("{}, {}  ({})", own.service, own.binding, own.origin);
        rows.push(vec!["withheld".to_owned(), text]);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_refused_with_what_to_write() {
        for (text, hint) in [
            ("a b", "give a host"),
            ("a.example.org:080", "give a host"),
            ("bücher.example", "write xn--bcher-kva.example,"),
            ("http://a.example.org/ä", "encode it"),
        ] {
            let failure = serde_json::to_value(parse(text).unwrap_err()).unwrap();
            let found = failure["hint"].as_str().unwrap();
            assert!(found.starts_with(hint), "{text}: {found}");
        }
        assert!(check_method("GET").is_ok() && check_method("get").is_ok());
        assert!(check_method("head").is_err() && check_method("CONNECT").is_err());
    }
}
