//! Real tools at real work, each as somebody types it who knows no more of the
//! sandbox than `ringfence run --`. What they fetch comes from hosts of the
//! small internet, as settings in the home directory say; nothing of it stays
//! in that home.

use std::path::Path;

use ringfence_testkit::{Folder, Internet, Outcome, place};

use super::arena::state;
use super::ringfence;

/// Where `cargo xtask setup` puts what does not come from the distribution.
const INSTALLED: &str = "/usr/local/lib/ringfence-tests/bin";
/// Where distributions have the programs of a `PostgreSQL` server.
const POSTGRES: &str = "/usr/lib/postgresql";
/// Where a system has its programs.
const SYSTEM: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The hosts that files are fetched from.
const HOSTS: [&str; 3] = [
    "registry.example.org",
    "git.example.org",
    "model.example.org",
];

/// A tool and its work.
struct Tool {
    /// Run before, outside, in a directory of its own: makes what hosts show below `/files/`
    /// in `$FILES`, and what the user has in `$HOME` already.
    before: &'static str,
    /// Files of the user: below the home directory.
    home: &'static [(&'static str, &'static str)],
    /// Files of the project.
    project: &'static [(&'static str, &'static str)],
    /// What is typed in the project, line by line, each of which must succeed.
    typed: &'static str,
    /// What the last line of it prints.
    prints: &'static str,
    /// What the tool tries beside its work, and is refused.
    tries: &'static [&'static str],
}

/// One that needs nothing and is refused nothing.
const PLAIN: Tool = Tool {
    before: "",
    home: &[],
    project: &[],
    typed: "",
    prints: "",
    tries: &[],
};

/// Makes a test of each.
macro_rules! tools {
    ($($name:ident: $tool:expr;)*) => {
        $(#[test]
        fn $name() {
            check(&$tool);
        })*
    };
}

const NPMRC: (&str, &str) = (".npmrc", include_str!("npm/npmrc"));
const PACKAGE: (&str, &str) = ("package.json", r#"{"name": "own", "version": "1.0.0"}"#);

tools! {
    npm: Tool {
        before: include_str!("npm/before.sh"),
        home: &[NPMRC],
        project: &[PACKAGE],
        typed: "
            ringfence run --allow registry.example.org -- npm install tiny
            rm -r node_modules
            ringfence run --home keep --allow registry.example.org -- npm ci
            rm -r node_modules
            ringfence run --home keep -- npm ci --offline
            ringfence run -- node_modules/.bin/tiny",
        prints: "42\n",
        ..PLAIN
    };
    npx: Tool {
        before: include_str!("npm/before.sh"),
        home: &[NPMRC],
        typed: "ringfence run --allow registry.example.org -- npx --yes tiny",
        prints: "42\n",
        ..PLAIN
    };
    pnpm: Tool {
        before: include_str!("npm/before.sh"),
        home: &[NPMRC],
        project: &[PACKAGE],
        typed: "
            ringfence run --allow registry.example.org -- pnpm add tiny
            ringfence run -- pnpm install --offline
            ringfence run -- pnpm exec tiny",
        prints: "42\n",
        // It looks for the topmost directory from which links into the project can be made.
        tries: &["create "],
    };
    pip: Tool {
        before: include_str!("pip/before.sh"),
        home: &[(".config/pip/pip.conf", include_str!("pip/pip.conf"))],
        typed: "
            ringfence run -- python3 -m venv env
            ringfence run --allow registry.example.org -- env/bin/pip install tiny
            env/bin/python -m tiny",
        prints: "42\n",
        ..PLAIN
    };
    uv: Tool {
        before: include_str!("pip/before.sh"),
        home: &[(".config/uv/uv.toml", include_str!("pip/uv.toml"))],
        typed: "
            ringfence run -- uv init --quiet own
            cd own
            ringfence run --allow registry.example.org -- uv add tiny
            rm -r .venv
            ringfence run --home keep --allow registry.example.org -- uv sync
            rm -r .venv
            ringfence run --home keep --preset python -- uv sync --offline 2> said
            test -z \"$(grep -i warning said)\"
            ringfence run -- uv run --offline --no-sync python -m tiny",
        prints: "42\n",
        ..PLAIN
    };
    cargo: Tool {
        before: include_str!("cargo/before.sh"),
        home: &[(".cargo/config.toml", include_str!("cargo/config.toml"))],
        typed: "
            ringfence run -- cargo new own
            cd own
            ringfence run --allow registry.example.org -- cargo add tiny
            echo 'fn main() { println!(\"{}\", tiny::answer()) }' > src/main.rs
            ringfence run --allow registry.example.org -- cargo build
            ringfence run --home keep --allow registry.example.org -- cargo fetch
            ringfence run --home keep -- cargo test --offline
            ringfence run -- target/debug/own",
        prints: "42\n",
        ..PLAIN
    };
    go: Tool {
        before: include_str!("go/before.sh"),
        home: &[(".config/go/env", include_str!("go/env"))],
        project: &[("main.go", include_str!("go/main.go"))],
        typed: "
            ringfence run -- go mod init example.org/own
            ringfence run --allow registry.example.org -- go mod tidy
            ringfence run --home keep --allow registry.example.org -- go build
            ringfence run --home keep -- go vet
            ringfence run -- ./own",
        prints: "42\n",
        ..PLAIN
    };
    maven: Tool {
        before: include_str!("maven/before.sh"),
        project: &[
            ("pom.xml", include_str!("maven/pom.xml")),
            ("src/main/java/Hello.java", include_str!("maven/Hello.java")),
        ],
        // Java takes the home from the user database, which the test cannot change.
        typed: "
            ringfence run -- mvn -o -Duser.home=$HOME package
            ringfence run -- java -cp target/hello-1.0.jar Hello 2> said
            test ! -s said",
        prints: "42\n",
        ..PLAIN
    };
    make: Tool {
        project: &[
            ("Makefile", include_str!("ccache/Makefile")),
            ("main.c", include_str!("ccache/main.c")),
        ],
        typed: "
            ringfence run -- make -j2
            ./main",
        prints: "42\n",
        ..PLAIN
    };
    ccache: Tool {
        project: &[
            ("Makefile", include_str!("ccache/Makefile")),
            ("main.c", include_str!("ccache/main.c")),
        ],
        typed: "
            ringfence run --home keep -- make CC='ccache cc'
            ringfence run -- make clean
            ringfence run --home keep -- make CC='ccache cc'
            ringfence run --home keep -- ccache --print-stats | grep -w direct_cache_hit",
        prints: "direct_cache_hit\t1\n",
        ..PLAIN
    };
    postgres: Tool {
        project: &[("query.sh", include_str!("postgres/query.sh"))],
        typed: "
            ringfence run -- initdb -D data
            ringfence run -- sh query.sh > answer
            cat answer",
        prints: "42\n",
        ..PLAIN
    };
    sqlite: Tool {
        typed: "
            ringfence run -- sqlite3 own.db 'create table t (n); insert into t values (40), (2)'
            ringfence run -- sqlite3 own.db 'select sum(n) from t'",
        prints: "42\n",
        ..PLAIN
    };
    chromium: Tool {
        before: "echo '<p id=a></p><script>a.textContent = 6 * 7</script>' > $FILES/page.html",
        typed: "
            url=https://registry.example.org/files/page.html
            ringfence run --allow registry.example.org -- chromium --headless --no-sandbox \
                --ignore-certificate-errors --screenshot $url
            grep -q PNG screenshot.png
            ringfence run --allow registry.example.org -- chromium --headless --no-sandbox \
                --ignore-certificate-errors --dump-dom $url | grep -o '<p.*/p>'",
        prints: "<p id=\"a\">42</p>\n",
        // It asks for its own updates, and makes a directory beside itself.
        tries: &["connect ", "create "],
        ..PLAIN
    };
    git: Tool {
        before: include_str!("git/before.sh"),
        typed: "
            ringfence run --allow git.example.org -- git clone https://git.example.org/files/real.git
            cd real
            ringfence run -- git switch -c own
            ringfence run -- git mv README.md READ.md
            ringfence run -- git -c user.name=a -c user.email=a@example.org commit -m own
            ringfence run --allow git.example.org -- git pull --rebase origin main
            git status --short
            git ls-files",
        prints: ".envrc\n.github/workflows/ci.yml\n.husky/pre-commit\n.mcp.json\n\
                 .vscode/settings.json\nREAD.md\n",
        ..PLAIN
    };
    agent: Tool {
        before: include_str!("agent/before.sh"),
        typed: "
            ringfence run -- claude --version
            ringfence run --allow model.example.org \
                --env ANTHROPIC_BASE_URL=https://model.example.org/files/agent \
                --env ANTHROPIC_API_KEY=none -- claude -p 'How much is six times seven?'",
        prints: "42\n",
        // It asks its maker which features are on.
        tries: &["connect "],
        ..PLAIN
    };
}

/// Somebody's machine.
struct Machine {
    net: Internet,
    home: Folder,
    project: Folder,
    state: Folder,
}

impl Machine {
    fn new(tool: &Tool) -> Self {
        let machine = Self {
            net: Internet::start(),
            home: Folder::durable(),
            project: Folder::new(),
            state: Folder::new(),
        };
        for host in HOSTS {
            machine.net.zone().set(host, place::PUBLIC);
        }
        for (name, text) in tool.home {
            machine.home.write(name, text);
        }
        for (name, text) in tool.project {
            machine.project.write(name, text);
        }
        machine
    }

    /// Lines in a shell of the user's, in which `ringfence` is the binary under test.
    fn types(&self, lines: &str, folder: &Folder) -> Outcome {
        let script = format!("set -e\nringfence() {{ \"$RINGFENCE\" \"$@\"; }}\n{lines}");
        let program = self.net.program("sh").args(["-c", &script]).folder(folder);
        // Of the variables of whoever runs the tests none is wanted.
        let program = program.with(|command| {
            command.env_clear();
        });
        program
            .env("PATH", path())
            .env("HOME", self.home.path())
            .env("LANG", "C.UTF-8")
            .env("XDG_STATE_HOME", self.state.path())
            .env("RINGFENCE", ringfence().path())
            .env("FILES", self.net.files())
            .env("NODE_EXTRA_CA_CERTS", self.net.ca_file())
            .run()
    }
}

#[track_caller]
fn check(tool: &Tool) {
    let machine = Machine::new(tool);
    machine.types(tool.before, &Folder::new()).expect_code(0);
    let before = state(machine.home.path());
    let outcome = machine.types(tool.typed, &machine.project).expect_code(0);
    let Outcome { stdout, stderr, .. } = &outcome;
    assert!(stdout.ends_with(tool.prints), "{stdout}\n{stderr}");
    let refused = refusals(stderr);
    let expected = |line: &&str| tool.tries.iter().any(|tried| line.starts_with(tried));
    assert!(refused.iter().all(expected), "{refused:?}\n{stderr}");
    for host in HOSTS {
        let is_asked = tool.typed.contains(&format!("--allow {host}"));
        assert_eq!(machine.net.saw(&format!("sni {host}")), is_asked, "{host}");
    }
    assert_eq!(state(machine.home.path()), before, "the home changed");
}

/// The lines about what was refused, in the blocks that end a run.
fn refusals(stderr: &str) -> Vec<&str> {
    let lines = stderr.lines().filter(|line| line.contains("  ×"));
    lines.filter_map(|line| line.strip_prefix("  ")).collect()
}

/// What set-up installed, the system's programs, and others that everybody can start.
fn path() -> String {
    let own = std::env::var("PATH").unwrap_or_default();
    let public = own.split(':').filter(|folder| is_public(Path::new(folder)));
    let versions = std::fs::read_dir(POSTGRES).into_iter().flatten().flatten();
    let postgres = versions.map(|version| version.path().join("bin").display().to_string());
    let folders = [INSTALLED, SYSTEM].into_iter().chain(public);
    let folders = folders.map(str::to_owned).chain(postgres);
    folders.collect::<Vec<_>>().join(":")
}

/// Whether everybody may enter a directory.
fn is_public(folder: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let may_enter = |part: &Path| {
        std::fs::metadata(part).is_ok_and(|about| about.permissions().mode() & 0o001 != 0)
    };
    folder.is_absolute() && folder.ancestors().all(may_enter)
}
