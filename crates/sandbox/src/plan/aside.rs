//! What is made while the rest is planned, since it takes a while and depends on
//! nothing of that.

use ringfence_sys::Beside;

use super::{PlanError, PlanRequest};
use crate::limits::LimitPlan;
use crate::mount_table::MountTable;

/// Limits that are being found out beside us.
pub(super) struct Aside(Beside<Result<LimitPlan, PlanError>>);

impl Aside {
    /// Begins. What it makes is gone with it.
    pub(super) fn start(request: &PlanRequest<'_>, mounts: &MountTable) -> Self {
        Self(Beside::start(LimitPlan::chooser(
            request.policy.limits(),
            request.host,
            request.weaker,
            mounts,
            request.cradle,
        )))
    }

    /// What came of it.
    pub(super) fn finish(self) -> Result<LimitPlan, PlanError> {
        self.0.finish()
    }
}
