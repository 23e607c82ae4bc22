//! The files that presets are read from, compiled in.

macro_rules! file {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("../../presets/", $name, ".toml")),
        )
    };
}

/// Each file's name and text, sorted.
pub(super) const FILES: &[(&str, &str)] = &[
    file!("aider"),
    file!("apk"),
    file!("apt"),
    file!("bun"),
    file!("claude"),
    file!("codex"),
    file!("conda"),
    file!("copilot"),
    file!("dart"),
    file!("deno"),
    file!("dnf"),
    file!("dotnet"),
    file!("elixir"),
    file!("gemini"),
    file!("git-hosting"),
    file!("go"),
    file!("huggingface"),
    file!("java"),
    file!("node"),
    file!("opencode"),
    file!("php"),
    file!("playwright"),
    file!("python"),
    file!("ruby"),
    file!("rust"),
    file!("terraform"),
];
