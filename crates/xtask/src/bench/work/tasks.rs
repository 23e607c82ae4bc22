//! Work of people and agents that is about many files or many programs.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::calls::median;
use super::{Around, Row, Surroundings};
use crate::bench::alternatives;
use crate::bench::scale::Scale;
use crate::process;

/// One piece of work.
struct Task {
    title: &'static str,
    /// A program without which it cannot be done.
    needs: &'static str,
    /// Done once, outside and not measured, in a folder of its own.
    prepare: &'static str,
    /// Done before each round, outside and not measured, in the folder `work`
    /// below.
    before: &'static str,
    /// The work itself, in the same folder.
    work: &'static str,
    /// Whether it is measured on the disk as well.
    on_disk: bool,
}

const ARCHIVE: &str = "tree.tar";

/// Above the folder of the work lies an archive of 50 000 files in 500 folders.
const TASKS: &[Task] = &[
    Task {
        title: "`tar x` of 50 000 files",
        needs: "tar",
        prepare: "",
        before: "",
        work: "tar xf ../tree.tar",
        on_disk: true,
    },
    Task {
        title: "`rm -rf` of 50 000 files",
        needs: "tar",
        prepare: "",
        before: "tar xf ../tree.tar",
        work: "rm -rf tree",
        on_disk: false,
    },
    Task {
        title: "`git clone` of 50 000 files",
        needs: "git",
        prepare: "tar xf tree.tar && cd tree && git init -q -b main . && git add -A && \
                  git -c user.name=n -c user.email=n@example.org commit -q -m m && git gc -q",
        before: "",
        work: "git clone -q ../tree copy",
        on_disk: true,
    },
    Task {
        title: "`cp -r` of 2 000 files",
        needs: "tar",
        prepare: "tar xf tree.tar && mkdir few && mv tree/d1? tree/d2? few && rm -r tree",
        before: "cp -r ../few from",
        work: "cp -r from to",
        on_disk: false,
    },
    Task {
        title: "2 000 transactions of sqlite",
        needs: "sqlite3",
        prepare: "(echo 'create table t(a);'; for i in $(seq 2000); do \
                  echo \"insert into t values($i);\"; done) > script",
        before: "",
        work: "sqlite3 base < ../script",
        on_disk: false,
    },
    Task {
        title: "`grep -r` through 6 000 files",
        needs: "grep",
        prepare: "tar xf tree.tar && mkdir few && mv tree/d[1-6]? few && rm -r tree",
        before: "",
        work: "! grep -r absent ../few",
        on_disk: false,
    },
    Task {
        title: "2 000 starts of `/bin/true`",
        needs: "true",
        prepare: "",
        before: "",
        work: "i=0; while [ $i -lt 2000 ]; do /bin/true; i=$((i+1)); done",
        on_disk: false,
    },
    Task {
        title: "`npm install` of 12 600 files",
        needs: "npm",
        prepare: "tar xf tree.tar && mkdir package && cp -r tree/d1?? package/ && \
                  cp -r tree/d2[012]? package/ && \
                  echo '{\"name\": \"many\", \"version\": \"1.0.0\"}' > package/package.json && \
                  tar czf many.tgz package && rm -r package tree",
        before: "echo '{\"name\": \"own\", \"version\": \"1.0.0\"}' > package.json",
        work: "npm install --offline --no-audit --no-fund --cache ./cache ../many.tgz",
        on_disk: false,
    },
    Task {
        title: "compile 3 000 functions",
        needs: "cc",
        prepare: "for i in $(seq 3000); do \
                  echo \"int f$i(int a) { int s = 0; for (int i = 0; i < a; i++) s += i * $i; return s; }\"; \
                  done > many.c",
        before: "",
        work: "cc -O1 -c ../many.c",
        on_disk: false,
    },
];

const FOLDERS: usize = 500;
const FILES_IN_FOLDER: usize = 100;

/// Seconds of each task, in each surrounding: the median of its rounds.
pub(super) fn measure(
    surroundings: &Surroundings<'_>,
    place: &Path,
    disk: Option<&Path>,
    scale: Scale,
    absent: &mut Vec<String>,
) -> Result<Vec<Row>> {
    let tree = std::env::current_dir()?.join(ARCHIVE);
    make_tree(&tree)?;
    let mut rows = Vec::new();
    for task in TASKS {
        if alternatives::locate(task.needs).is_none() {
            absent.push(format!("{}: no {}", task.title, task.needs));
            continue;
        }
        let title = task.title.to_owned();
        let figures = task.measure(surroundings, place, &tree, scale)?;
        eprintln!("  {title}: {figures:.3?}");
        rows.push(Row { title, figures });
        if let Some(disk) = disk.filter(|_| task.on_disk) {
            let title = format!("{}, on the disk", task.title);
            let figures = task.measure(surroundings, disk, &tree, scale)?;
            rows.push(Row { title, figures });
        }
    }
    fs::remove_file(&tree)?;
    Ok(rows)
}

impl Task {
    fn measure(
        &self,
        surroundings: &Surroundings<'_>,
        place: &Path,
        tree: &Path,
        scale: Scale,
    ) -> Result<Vec<Option<f64>>> {
        let whole = place.join("task");
        fs::create_dir_all(&whole)?;
        fs::copy(tree, whole.join(ARCHIVE))?;
        outside(&whole, self.prepare)?;
        let folder = whole.join("work");
        let work = format!("cd work; {}", self.work);
        let mut samples = vec![Vec::new(); Around::ALL.len()];
        for _ in 0..scale.tasks {
            for (taken, around) in samples.iter_mut().zip(Around::ALL) {
                let words = ["sh", "-ec", work.as_str()];
                let Some(candidate) = surroundings.candidate(around, &whole, &words)? else {
                    continue;
                };
                fs::create_dir(&folder)?;
                outside(&folder, self.before)?;
                taken.push(candidate.time()?.as_secs_f64());
                fs::remove_dir_all(&folder)?;
            }
        }
        fs::remove_dir_all(&whole)?;
        Ok(samples.into_iter().map(median).collect())
    }
}

fn outside(folder: &Path, script: &str) -> Result<()> {
    let mut command = Command::new("sh");
    process::run(command.args(["-ec", script]).current_dir(folder))
}

/// An archive of many files of 200 bytes.
fn make_tree(archive: &Path) -> Result<()> {
    let content = [b'x'; 200];
    let mut name = String::new();
    for folder in 0..FOLDERS {
        let folder = format!("tree/d{folder}");
        fs::create_dir_all(&folder)?;
        for file in 0..FILES_IN_FOLDER {
            name.clear();
            let _ = write!(name, "{folder}/file-{file}");
            fs::write(&name, content)?;
        }
    }
    process::run(Command::new("tar").arg("cf").arg(archive).arg("tree"))?;
    fs::remove_dir_all("tree")?;
    Ok(())
}
