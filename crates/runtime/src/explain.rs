//! What a run would make of one file, from the same inputs as a run.

use std::path::{Path, PathBuf};

use ringfence_policy::{Policy, Resolved};
use ringfence_sandbox::{Host, PathAnswer, PathExplainer, PathQuestion, PlanError};

use crate::host_env::HostEnv;
use crate::kits::KitSetup;
use crate::run::{Brought, trust_plan};

/// What is asked about.
pub struct FileQuestion<'a> {
    /// The policy that holds.
    pub policy: &'a Resolved<Policy>,
    /// The environment outside.
    pub env: &'a HostEnv,
    /// The machine.
    pub host: &'a Host,
    /// Where a command would run.
    pub working_folder: &'a Path,
    /// Files in a writable folder that a command must not touch.
    pub untouchable: Vec<PathBuf>,
    /// What kits do before the command.
    pub setup: Option<KitSetup>,
}

/// What a run would make of `path`, which must be absolute. Makes nothing.
pub fn explain_file(question: FileQuestion<'_>, path: &Path) -> Result<PathAnswer, PlanError> {
    let brought = Brought::along(question.policy, question.setup, question.env);
    let outside = |name: &str| question.env.variable(name);
    let explainer = PathExplainer::build(PathQuestion {
        policy: question.policy,
        host: question.host,
        working_folder: question.working_folder,
        untouchable: question.untouchable,
        outside: &outside,
        given: brought.files,
        alias: brought.alias,
        trust: trust_plan(question.policy),
    })?;
    Ok(explainer.explain(path))
}
