//! What a plan makes of files: what is there, what is guarded, what is mounted. A run and whoever
//! asks what a run would do get it from here, so that both are told the same.

use std::path::{Path, PathBuf};

use ringfence_policy::{Policy, Resolved};

use super::alias::{self, Alias};
use super::copy_on_write::{self, LayerGrants};
use super::covers;
use super::error::PlanError;
use super::files::{self, Files, Missing};
use super::ids::Ids;
use super::late::{self, LateFiles};
use super::layout;
use super::network::NetworkPlan;
use super::own::{self, GivenFile};
use crate::guard::Guard;
use crate::host::Host;
use crate::judge::Judge;
use crate::mount_table::MountTable;
use crate::survey::UserGit;
use crate::trust::TrustPlan;
use crate::view::{Cover, View};

/// What it is made from.
pub(super) struct DrawingRequest<'a> {
    pub(super) policy: &'a Resolved<Policy>,
    pub(super) host: &'a Host,
    pub(super) working_folder: &'a Path,
    pub(super) untouchable: Vec<PathBuf>,
    pub(super) judge: Judge,
    pub(super) missing: Missing,
    pub(super) kept_home: Option<&'a Path>,
    pub(super) given: Vec<GivenFile>,
    pub(super) alias: Option<Alias>,
    pub(super) trust: Option<TrustPlan>,
    pub(super) network: &'a NetworkPlan,
    pub(super) ids: &'a Ids,
    pub(super) mounts: &'a MountTable,
    pub(super) user_git: UserGit,
}

/// The part of a plan that is about files.
#[derive(Debug)]
pub(super) struct Drawing {
    pub(super) files: Files,
    pub(super) guard: Guard,
    pub(super) view: View,
    pub(super) late: LateFiles,
    /// What is to be laid anew when the host replaces what it lies on.
    pub(super) covers: Vec<Cover>,
    /// Where something is that was made for the sandbox.
    pub(super) made: Vec<PathBuf>,
    pub(super) layers: Vec<LayerGrants>,
}

impl Drawing {
    pub(super) fn make(request: DrawingRequest<'_>) -> Result<Self, PlanError> {
        let rules = request.policy.filesystem();
        let mut files = files::survey(
            rules,
            request.host,
            request.working_folder,
            request.untouchable,
            request.judge,
            request.missing,
        )?;
        let (host, mounts) = (request.host, request.mounts);
        let ground = copy_on_write::Ground {
            rules,
            host,
            ids: request.ids,
            mounts,
            kept: request.kept_home,
        };
        let layers = copy_on_write::overlays(&mut files, &ground)?;
        let grants = LayerGrants::of(&layers);
        let guard = files.guard(rules, request.judge, request.user_git)?;
        let mut overlays = request.network.files()?;
        let environment = request.policy.environment();
        overlays.extend(layout::temporary_folder(environment, &files));
        let mut late = LateFiles::default();
        overlays.extend(late::overlays(&files, &mut late));
        let (ids, trust) = (request.ids, request.trust);
        overlays.extend(own::overlays(&files, ids, request.given, trust, &mut late)?);
        let made = overlays
            .iter()
            .map(|overlay| overlay.path.clone())
            .collect();
        // No rule is about it, so it is not among what was made.
        let gathered = request.alias.as_ref();
        let gathered = gathered.and_then(|alias| alias::overlay(alias, &files, host, mounts));
        overlays.extend(gathered);
        overlays.extend(layers);
        let view = layout::view(&files, ids, host, mounts, overlays)?;
        Ok(Self {
            covers: covers::covers(&files, &view, &late),
            files,
            guard,
            view,
            late,
            made,
            layers: grants,
        })
    }
}
