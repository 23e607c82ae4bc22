//! What is made while the rest is planned, since it takes a while and depends on
//! nothing of that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ringfence_policy::AuditLevel;
use ringfence_sys::{Beside, Errno};

use super::{PlanError, PlanRequest, wants_terminal};
use crate::judge::Judge;
use crate::limits::LimitPlan;
use crate::mount_table::MountTable;
use crate::native::Prepared;

type Filters = Result<Prepared, Errno>;

/// Limits that are being found out beside us, and filters, which are prepared by
/// whoever is done with the rest first: that differs from start to start.
pub(super) struct Aside {
    beside: Beside<(Result<LimitPlan, PlanError>, Option<Filters>)>,
    filters: Chore,
}

/// The filters, to be prepared by one of two.
#[derive(Clone)]
struct Chore {
    level: AuditLevel,
    judge: Judge,
    has_terminal: bool,
    is_taken: Arc<AtomicBool>,
}

impl Chore {
    /// Nothing if the other does it.
    fn unless_taken(&self) -> Option<Filters> {
        let is_taken = self.is_taken.swap(true, Ordering::Relaxed);
        (!is_taken).then(|| self.carry_out())
    }

    fn carry_out(&self) -> Filters {
        Prepared::new(self.level, self.judge, self.has_terminal)
    }
}

impl Aside {
    /// Begins. What it makes is gone with it.
    pub(super) fn start(request: &PlanRequest<'_>, level: AuditLevel, mounts: &MountTable) -> Self {
        let choose_limits = LimitPlan::chooser(
            request.policy.limits(),
            request.host,
            request.weaker,
            mounts,
            request.cradle,
        );
        let filters = Chore {
            level,
            judge: request.judge,
            has_terminal: wants_terminal(&request.streams),
            is_taken: Arc::default(),
        };
        let theirs = filters.clone();
        let beside = Beside::start(move || (choose_limits(), theirs.unless_taken()));
        Self { beside, filters }
    }

    /// What came of it.
    pub(super) fn finish(self) -> Result<(LimitPlan, Prepared), PlanError> {
        let ours = self.filters.unless_taken();
        let (limits, theirs) = self.beside.finish();
        let filters = ours.or(theirs);
        let filters = filters.unwrap_or_else(|| self.filters.carry_out());
        Ok((limits?, filters.map_err(PlanError::Filters)?))
    }
}
