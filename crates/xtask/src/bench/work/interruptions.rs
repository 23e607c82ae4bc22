//! How often programs meet `EINTR` that they would not meet outside.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::{Around, Row, Surroundings};
use crate::bench::scale::Scale;
use crate::process;

/// Makes and removes files while a timer goes off, and prints how many calls
/// were interrupted.
const TIMER: &str = include_str!("timer.c");

/// Prints how many of 300 shells failed that start a program just when a child
/// of theirs ends.
const CHILDREN: &str = "n=0; for i in $(seq 300); do \
    sh -c 'true | true & exec /bin/true' 2> /dev/null || n=$((n+1)); done; echo $n";

/// The same with a document for the standard input that is larger than a pipe
/// takes at once, 200 times.
const DOCUMENTS: &str = "d=$(head -c 6000 /dev/zero | tr '\\0' x); n=0; for i in $(seq 200); do \
    printf 'exec /bin/cat > /dev/null <<E\\n%s\\nE\\n' $d | sh 2> /dev/null || n=$((n+1)); done; echo $n";

/// How often each failed, in each surrounding.
pub(super) fn measure(
    surroundings: &Surroundings<'_>,
    place: &Path,
    scale: Scale,
) -> Result<Vec<Row>> {
    let folder = place.join("interrupted");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("timer.c"), TIMER)?;
    let mut compile = Command::new("cc");
    compile.args(["-O1", "-o", "timer", "timer.c"]);
    process::run(compile.current_dir(&folder))?;
    let timer = format!("./timer {}", scale.interrupted_calls);
    let title = format!(
        "{} calls about names, a timer every 5 ms",
        scale.interrupted_calls
    );
    let rows = [
        (
            "300 shells that start a program while a child ends",
            CHILDREN,
        ),
        ("200 shells with a document of 6 000 bytes", DOCUMENTS),
        (&title, &timer),
    ];
    let count = |(title, script): (&str, &str)| {
        eprintln!("  {title}");
        let count = |around| count(surroundings, around, &folder, script);
        let figures = Around::ALL.into_iter().map(count);
        Ok(Row {
            title: title.to_owned(),
            figures: figures.collect::<Result<_>>()?,
        })
    };
    let rows = rows.into_iter().map(count).collect();
    std::fs::remove_dir_all(&folder)?;
    rows
}

fn count(
    surroundings: &Surroundings<'_>,
    around: Around,
    folder: &Path,
    script: &str,
) -> Result<Option<f64>> {
    let candidate = surroundings.candidate(around, folder, &["sh", "-c", script])?;
    let printed = candidate.map(|candidate| candidate.printed()).transpose()?;
    let figure = |text: String| text.trim().parse().with_context(|| text.clone());
    printed.map(figure).transpose()
}
