//! The control group of one sandbox: made before its first process, removed
//! with the last.
//!
//! It may have parts in several hierarchies. The sandbox's first process is
//! born in the part of version 2, and enters those of version 1 before it does
//! anything else.

use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use ringfence_sys::Errno;

use super::Mechanism;
use super::files::errno_of;
use super::name::GroupName;
use super::part::{self, Part};
use super::place::{Controller, Hierarchies};
use super::scope;
use super::site::{Leaf, Site};
use crate::cradle::Cradle;
use crate::host::BusVariables;

/// What a group is to hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Shares {
    /// Thousandths of a core.
    pub(crate) cpu: Option<u64>,
    /// Bytes.
    pub(crate) memory: Option<u64>,
    /// Processes and threads.
    pub(crate) pids: Option<u64>,
    /// CPU time, which a group counts.
    pub(crate) cpu_time: Option<Duration>,
    /// Whether somebody asked for any of this.
    pub(crate) are_stated: bool,
}

impl Shares {
    pub(crate) fn controllers(&self) -> Vec<Controller> {
        [
            (Controller::Cpu, self.cpu.is_some()),
            (Controller::Memory, self.memory.is_some()),
            (Controller::Pids, self.pids.is_some()),
            (Controller::CpuTime, self.cpu_time.is_some()),
        ]
        .into_iter()
        .filter_map(|(controller, is_wanted)| is_wanted.then_some(controller))
        .collect()
    }
}

/// A group, as long as this lives.
#[derive(Debug)]
pub(crate) struct Group {
    parts: Vec<Part>,
    leaf: Option<Leaf>,
    name: GroupName,
    /// Copies of this in other processes remove nothing.
    maker: u32,
}

impl Group {
    /// Makes a group for as many of the shares as can be held here: in version
    /// 2 where it can, else in version 1, else in a scope of systemd's. That
    /// takes several times as long as a start, so it is not for defaults.
    pub(crate) fn make(
        shares: &Shares,
        hierarchies: &Hierarchies,
        bus: &BusVariables,
        cradle: &Cradle,
    ) -> Option<Self> {
        Self::make_below(shares, hierarchies, cradle).or_else(|| {
            let is_worth_it = shares.are_stated && hierarchies.may_gain(&shares.controllers());
            if !is_worth_it {
                return None;
            }
            // Only we are moved there.
            cradle.dismiss();
            let scope = scope::enter(bus).ok()?;
            Self::make_below(shares, &scope, cradle)
        })
    }

    fn make_below(shares: &Shares, hierarchies: &Hierarchies, cradle: &Cradle) -> Option<Self> {
        let wanted = shares.controllers();
        let mut group = Self {
            parts: Vec::new(),
            leaf: None,
            name: GroupName::new().ok()?,
            maker: std::process::id(),
        };
        group.add_v2(shares, &wanted, hierarchies, cradle);
        group.add_v1(shares, &wanted, hierarchies);
        (!group.parts.is_empty()).then_some(group)
    }

    #[cfg(test)]
    pub(crate) fn fake(parts: Vec<Part>) -> Self {
        Self {
            parts,
            leaf: None,
            name: GroupName::new().unwrap(),
            maker: 0,
        }
    }

    fn add_v2(
        &mut self,
        shares: &Shares,
        wanted: &[Controller],
        hierarchies: &Hierarchies,
        cradle: &Cradle,
    ) {
        let Some(site) = Site::best(hierarchies.v2(), wanted, cradle) else {
            return;
        };
        let Ok((controllers, leaf)) = site.prepare(cradle) else {
            return;
        };
        self.leaf = leaf;
        let folder = site.folder().path().join(self.name.to_string());
        if let Ok(mut part) = Part::make_v2(&folder) {
            part.set(shares, &controllers);
            if !part.controllers().is_empty() && wanted.contains(&Controller::CpuTime) {
                part.set(shares, &[Controller::CpuTime]);
            }
            self.keep(part);
        }
    }

    fn add_v1(&mut self, shares: &Shares, wanted: &[Controller], hierarchies: &Hierarchies) {
        for controller in wanted {
            if self.part_of(*controller).is_some() {
                continue;
            }
            let Some(place) = hierarchies.v1(*controller) else {
                continue;
            };
            let folder = place.join(self.name.to_string());
            // Several controllers may share a hierarchy.
            let known = self.parts.iter_mut().find(|part| part.is_at(&folder));
            if let Some(part) = known {
                part.set(shares, &[*controller]);
            } else if let Ok(mut part) = Part::make_v1(&folder) {
                part.set(shares, &[*controller]);
                self.keep(part);
            }
        }
    }

    fn keep(&mut self, part: Part) {
        if part.controllers().is_empty() {
            part.remove();
        } else {
            self.parts.push(part);
        }
    }

    fn part_of(&self, controller: Controller) -> Option<&Part> {
        self.parts
            .iter()
            .find(|part| part.controllers().contains(&controller))
    }

    /// Removes groups beside this one whose supervisor was killed.
    pub(crate) fn remove_left_over(&self) {
        part::remove_left_over(&self.parts, &self.name);
    }

    /// What holds this share, if the group does.
    pub(crate) fn mechanism(&self, controller: Controller) -> Option<Mechanism> {
        self.part_of(controller).map(Part::mechanism)
    }

    /// The part of version 2, in which the first process is to be born.
    pub(crate) fn birthplace(&self) -> Option<BorrowedFd<'_>> {
        let part = self.parts.iter().find(|part| part.is_v2());
        part.map(|part| part.entrance().as_fd())
    }

    /// Moves the calling process, which must have one thread, into the parts
    /// of version 1. A process that moves itself is spared a lock of all of
    /// the machine's processes, which takes milliseconds.
    pub(crate) fn enter(&self) -> Result<(), Errno> {
        for part in self.parts.iter().filter(|part| !part.is_v2()) {
            let mut entrance = part.entrance();
            entrance.write_all(b"0").map_err(|error| errno_of(&error))?;
        }
        Ok(())
    }

    /// Whether processes go on when one was killed for want of memory.
    pub(crate) fn outlives_lack_of_memory(&self) -> bool {
        self.part_of(Controller::Memory)
            .is_some_and(|part| !part.is_v2())
    }

    /// How many processes were killed for want of memory.
    pub(crate) fn memory_kills(&self) -> u64 {
        self.part_of(Controller::Memory)
            .map_or(0, Part::memory_kills)
    }

    /// How often a new process or thread was refused.
    pub(crate) fn pids_refused(&self) -> u64 {
        self.part_of(Controller::Pids).map_or(0, Part::pids_refused)
    }

    /// In how many of how many periods the group had to wait for its share of
    /// the CPU.
    pub(crate) fn throttled(&self) -> (u64, u64) {
        self.part_of(Controller::Cpu)
            .map_or((0, 0), Part::throttled)
    }

    /// The most memory used so far, or what is used now where that is not kept.
    pub(crate) fn memory(&self) -> Option<u64> {
        self.part_of(Controller::Memory)?.memory()
    }

    /// The most tasks so far, or those of now where that is not kept.
    pub(crate) fn pids(&self) -> Option<u64> {
        self.part_of(Controller::Pids)?.pids()
    }

    /// CPU time used so far.
    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        self.part_of(Controller::CpuTime)?.cpu_time()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.maker != std::process::id() {
            return;
        }
        for part in &self.parts {
            part.remove();
        }
        if let Some(leaf) = &self.leaf {
            leaf.leave();
        }
    }
}
