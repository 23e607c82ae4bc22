//! `ringfence man`: manual pages, made from the same description as help and completions.

mod sections;

use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::error::Failure;
use crate::exit::ExitCode;
use crate::output;

/// Print a manual page, or write all of them
///
/// Without a command it is the page of ringfence itself. Pages that are read
/// by name belong into a folder man1 of MANPATH.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ringfence man run | man -l -
  ringfence man policy explain > ringfence-policy-explain.1
  ringfence man --out ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// The command, with its subcommand if it is about that
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
    /// Write the pages of all commands to this folder, which is made if it is missing
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    out: Option<PathBuf>,
}

/// A page: the name of its file, and its text.
struct Page {
    file: String,
    text: String,
}

pub(crate) fn main(arguments: &ManArgs) -> ExitCode {
    let done = match &arguments.out {
        Some(folder) => write_all(folder),
        None => print(&arguments.command),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.show(false),
    }
}

fn print(words: &[String]) -> Result<(), Failure> {
    let whole = built();
    let mut command = &whole;
    for word in words {
        command = command.find_subcommand(word).ok_or_else(|| {
            let known = command.get_subcommands().map(Command::get_name);
            let known = known.collect::<Vec<_>>().join(", ");
            let hint = if known.is_empty() {
                "leave it out".to_owned()
            } else {
                format!("use one of: {known}")
            };
            Failure::new("unknown-command", format!("there is no {word:?}"), hint)
        })?;
    }
    output::print_text(page(command)?.text.trim_end());
    Ok(())
}

fn write_all(folder: &Path) -> Result<(), Failure> {
    let unwritable = |path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| {
            let message = format!("{path}: {error}");
            Failure::new("unwritable", message, "name a folder that can be written")
        }
    };
    std::fs::create_dir_all(folder).map_err(unwritable(folder))?;
    for page in pages()? {
        let path = folder.join(&page.file);
        std::fs::write(&path, page.text).map_err(unwritable(&path))?;
        output::print_text(&path.display().to_string());
    }
    Ok(())
}

fn pages() -> Result<Vec<Page>, Failure> {
    fn collect(command: &Command, pages: &mut Vec<Page>) -> Result<(), Failure> {
        pages.push(page(command)?);
        command
            .get_subcommands()
            .try_for_each(|inner| collect(inner, pages))
    }
    let mut pages = Vec::new();
    collect(&built(), &mut pages)?;
    Ok(pages)
}

/// With the names that commands have by where they are.
fn built() -> Command {
    let mut whole = super::whole().disable_help_subcommand(true);
    whole.build();
    whole
}

fn page(command: &Command) -> Result<Page, Failure> {
    let impossible = |error: std::io::Error| {
        let message = format!("the page cannot be made: {error}");
        Failure::new("no-page", message, "try ringfence --help")
    };
    let mut text = Vec::new();
    let file = render(command, &mut text).map_err(impossible)?;
    Ok(Page {
        file,
        text: in_ascii(&String::from_utf8_lossy(&text)),
    })
}

fn render(command: &Command, text: &mut dyn Write) -> std::io::Result<String> {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    let man = Man::new(command.clone().override_usage(usage))
        .source(concat!("ringfence ", env!("CARGO_PKG_VERSION")))
        .manual("ringfence");
    man.render_title(text)?;
    man.render_name_section(text)?;
    man.render_synopsis_section(text)?;
    man.render_description_section(text)?;
    man.render_options_section(text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(text)?;
    }
    let after = command.get_after_help();
    let after = after.map(ToString::to_string).unwrap_or_default();
    after_help(&after).to_writer(text)?;
    if command.get_name() == "ringfence" {
        sections::all().to_writer(text)?;
    } else {
        let mut roff = Roff::new();
        roff.control("SH", ["SEE ALSO"])
            .text([roman("ringfence(1)")]);
        roff.to_writer(text)?;
    }
    Ok(man.get_filename())
}

/// What follows the options: a heading of its own for each paragraph that has one, lines as they
/// are where they are indented.
fn after_help(text: &str) -> Roff {
    let mut roff = Roff::new();
    for paragraph in text.split("\n\n").filter(|own| !own.trim().is_empty()) {
        let (heading, body) = match paragraph.split_once(':') {
            Some(("Example" | "Examples", body)) => ("EXAMPLES", body),
            Some(("Exit codes", body)) => ("EXIT STATUS", body),
            _ => ("NOTES", paragraph),
        };
        roff.control("SH", [heading]);
        let is_fixed = body.starts_with('\n');
        if is_fixed {
            roff.control("EX", []);
        }
        for line in body.trim_matches('\n').lines() {
            let line = line.strip_prefix("  ").unwrap_or(line.trim_start());
            roff.text([roman(line)]);
        }
        if is_fixed {
            roff.control("EE", []);
        }
    }
    roff
}

/// Characters as every formatter knows them, whatever encoding it expects.
fn in_ascii(text: &str) -> String {
    let mut ascii = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii() {
            ascii.push(character);
        } else {
            // Writing to a text cannot fail.
            let _ = write!(ascii, "\\[u{:04X}]", u32::from(character));
        }
    }
    ascii
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(file: &str) -> String {
        let mut pages = pages().unwrap_or_default().into_iter();
        let page = pages.find(|page| page.file == file);
        page.map(|page| page.text).unwrap_or_default()
    }

    /// As it is read: without what formatters need.
    fn plain(text: &str) -> String {
        text.replace("\\-", "-")
            .replace("\\fB", "")
            .replace("\\fI", "")
            .replace("\\fR", "")
    }

    #[test]
    fn every_command_and_every_flag_has_its_place() {
        fn check(command: &Command) {
            let name = command.get_display_name();
            let name = name.unwrap_or_else(|| command.get_name());
            let page = plain(&text_of(&format!("{name}.1")));
            assert!(page.contains(".SH NAME"), "{name} has no page");
            for argument in command.get_arguments().filter(|own| !own.is_hide_set()) {
                if let Some(long) = argument.get_long() {
                    assert!(page.contains(&format!("--{long}")), "{name} --{long}");
                }
            }
            for inner in command.get_subcommands() {
                let own = format!("{name}-{}(1)", inner.get_name());
                assert!(page.contains(&own), "{own}");
                check(inner);
            }
        }
        check(&built());
        assert!(pages().is_ok_and(|pages| pages.len() > 20));
    }

    #[test]
    fn the_main_page_has_the_sections_that_people_look_for() {
        let page = plain(&text_of("ringfence.1"));
        for heading in [
            "SYNOPSIS",
            "EXAMPLES",
            "EXIT STATUS",
            "FILES",
            "ENVIRONMENT",
        ] {
            assert!(
                page.contains(&format!(".SH \"{heading}\""))
                    || page.contains(&format!(".SH {heading}")),
                "{heading}"
            );
        }
        let run = plain(&text_of("ringfence-run.1"));
        assert!(
            run.contains("ringfence run --preset node -- npm ci")
                && run.contains(".SH \"EXIT STATUS\""),
            "{run}"
        );
    }

    #[test]
    fn pages_are_plain_ascii() {
        assert_eq!(in_ascii("a…"), "a\\[u2026]");
        let all = pages().unwrap_or_default();
        assert!(all.iter().all(|page| page.text.is_ascii()));
    }
}
