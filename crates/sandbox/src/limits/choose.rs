//! Choosing what holds each limit: a control group where there is one, else
//! the best that there is for that limit alone.

use std::time::Duration;

use ringfence_policy::{ByteSize, LayerKind, Limits, Sourced};

use super::group::{Group, Shares};
use super::inside::ProcessLimits;
use super::machine::Machine;
use super::part::OWN_TASKS;
use super::place::{Controller, Hierarchies};
use super::{Held, LimitName, LimitPlan, Mechanism, WatchPlan};
use crate::cradle::Cradle;
use crate::host::Host;
use crate::mount_table::MountTable;
use crate::plan::{PlanError, Weaker};

/// Of the machine's memory, in hundredths, where the policy says nothing.
const DEFAULT_MEMORY: u64 = 80;
/// Processes and threads where the policy says nothing.
const DEFAULT_PIDS: u64 = 4096;
/// Limits that only show what would hold them.
const SOME_MILLIS: u64 = 500;
const SOME_BYTES: u64 = 64 << 20;

/// Why nothing here can hold a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Unheld {
    #[error("the policy wants it held by a control group, and none here can")]
    GroupRequired,
    #[error("no control group here can, and without one only whole cores can be held: 1 to {most}")]
    Fraction { most: usize },
    #[error(
        "no control group here can, and the kernel does not count the processes of root's own id"
    )]
    RootUncounted,
}

/// A limit in its unit, and whether somebody asked for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wanted {
    value: u64,
    is_stated: bool,
}

impl Wanted {
    fn of<T: Copy>(limit: Option<&Sourced<T>>, value: impl FnOnce(T) -> u64) -> Option<Self> {
        limit.map(|limit| Self {
            value: value(limit.value),
            is_stated: limit.origin.layer != LayerKind::Default,
        })
    }

    fn by_default(value: u64) -> Self {
        Self {
            value,
            is_stated: false,
        }
    }
}

/// What is left to be held by a group or by something less.
struct WantedShares {
    cpu: Option<Wanted>,
    memory: Option<Wanted>,
    pids: Option<Wanted>,
    /// Milliseconds.
    cpu_time: Option<Wanted>,
    /// Whether nothing less than a group will do.
    is_group_required: bool,
}

impl WantedShares {
    fn of(limits: &Limits, memory_here: Option<u64>) -> Self {
        let default_memory = memory_here.map(|bytes| bytes / 100 * DEFAULT_MEMORY);
        Self {
            cpu: Wanted::of(limits.cpu.as_ref(), |cores| u64::from(cores.millis())),
            memory: Wanted::of(limits.memory.as_ref(), ByteSize::bytes)
                .or(default_memory.map(Wanted::by_default)),
            pids: Wanted::of(limits.pids.as_ref(), |count| u64::from(count.get()))
                .or(Some(Wanted::by_default(DEFAULT_PIDS))),
            cpu_time: Wanted::of(limits.cpu_time.as_ref(), |span| millis(span.as_duration())),
            is_group_required: limits
                .required
                .as_ref()
                .is_some_and(|required| required.value),
        }
    }

    fn shares(&self) -> Shares {
        let value = |wanted: Option<Wanted>| wanted.map(|wanted| wanted.value);
        Shares {
            cpu: value(self.cpu),
            memory: value(self.memory),
            pids: value(self.pids),
            cpu_time: value(self.cpu_time).map(Duration::from_millis),
            are_stated: self.is_group_required
                || [self.cpu, self.memory, self.pids, self.cpu_time]
                    .into_iter()
                    .flatten()
                    .any(|wanted| wanted.is_stated),
        }
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

impl LimitPlan {
    /// Finds out what holds each limit here; a group that is needed for it is
    /// made. Fails on a limit that was asked for and that nothing holds. All
    /// this takes the kernel a while, and depends on nothing else that is
    /// planned: it can be done beside that.
    pub(crate) fn chooser(
        limits: &Limits,
        host: &Host,
        weaker: Weaker,
        mounts: &MountTable,
        cradle: &Cradle,
    ) -> impl FnOnce() -> Result<Self, PlanError> + Clone + Send + 'static {
        let (limits, mounts, cradle) = (limits.clone(), mounts.clone(), cradle.clone());
        let machine = Machine::look(host, weaker);
        let accepts_less = weaker.no_limits;
        move || {
            let hierarchies = Hierarchies::among(&mounts);
            Choice::new(&limits, &machine, &hierarchies, &cradle, accepts_less).plan(&limits)
        }
    }
}

/// What would hold a fraction of a core, memory, processes and CPU time here,
/// found out by making a group for them.
pub fn limit_mechanisms(host: &Host) -> Vec<(LimitName, Mechanism)> {
    let machine = Machine::look(host, Weaker::default());
    let wanted = WantedShares {
        cpu: Some(Wanted::by_default(SOME_MILLIS)),
        memory: Some(Wanted::by_default(SOME_BYTES)),
        pids: Some(Wanted::by_default(DEFAULT_PIDS)),
        cpu_time: Some(Wanted::by_default(SOME_MILLIS)),
        is_group_required: true,
    };
    let choice = Choice::of(wanted, &machine, &Hierarchies::here(), &Cradle::default());
    // Nothing that nobody asked for is refused.
    let plan = choice.plan(&Limits::default()).unwrap_or_default();
    let held = plan.held.iter();
    held.map(|held| (held.limit, held.mechanism)).collect()
}

/// A choice under way.
struct Choice<'a> {
    machine: &'a Machine,
    wanted: WantedShares,
    is_group_required: bool,
    accepts_less: bool,
    group: Option<Group>,
    held: Vec<Held>,
    watch: WatchPlan,
    process: ProcessLimits,
}

impl<'a> Choice<'a> {
    fn new(
        limits: &Limits,
        machine: &'a Machine,
        hierarchies: &Hierarchies,
        cradle: &Cradle,
        accepts_less: bool,
    ) -> Self {
        let memory_here = [machine.memory, hierarchies.memory_limit()];
        let mut wanted = WantedShares::of(limits, memory_here.into_iter().flatten().min());
        let mut held = Vec::new();
        let cores = u64::try_from(machine.cpus.len()).unwrap_or(u64::MAX);
        // More than there is cannot be used anyway.
        let is_all = |cpu: &mut Wanted| cores > 0 && cpu.value >= cores.saturating_mul(1000);
        if let Some(cpu) = wanted.cpu.take_if(is_all) {
            held.push(Held::new(LimitName::Cpu, cpu.value, Mechanism::Machine));
        }
        Self {
            is_group_required: wanted.is_group_required,
            accepts_less,
            held,
            ..Self::of(wanted, machine, hierarchies, cradle)
        }
    }

    fn of(
        wanted: WantedShares,
        machine: &'a Machine,
        hierarchies: &Hierarchies,
        cradle: &Cradle,
    ) -> Self {
        Self {
            machine,
            is_group_required: false,
            accepts_less: false,
            group: Group::make(&wanted.shares(), hierarchies, &machine.bus, cradle),
            wanted,
            held: Vec::new(),
            watch: WatchPlan::default(),
            process: ProcessLimits::default(),
        }
    }

    fn plan(mut self, limits: &Limits) -> Result<LimitPlan, PlanError> {
        for (limit, controller, wanted) in [
            (LimitName::Cpu, Controller::Cpu, self.wanted.cpu),
            (LimitName::Memory, Controller::Memory, self.wanted.memory),
            (LimitName::Pids, Controller::Pids, self.wanted.pids),
            (
                LimitName::CpuTime,
                Controller::CpuTime,
                self.wanted.cpu_time,
            ),
        ] {
            if let Some(wanted) = wanted {
                let mechanism = self.mechanism(limit, controller, wanted)?;
                self.held.push(Held::new(limit, wanted.value, mechanism));
            }
        }
        self.add_others(limits);
        self.held.sort_by_key(|held| held.limit);
        Ok(LimitPlan {
            watch: self.watch,
            cores: self.machine.cpus.len(),
            held: self.held,
            process: self.process,
            group: self.group,
            ..LimitPlan::default()
        })
    }

    fn mechanism(
        &mut self,
        limit: LimitName,
        controller: Controller,
        wanted: Wanted,
    ) -> Result<Mechanism, PlanError> {
        let group = self.group.as_ref();
        if let Some(mechanism) = group.and_then(|group| group.mechanism(controller)) {
            return Ok(mechanism);
        }
        let must_hold = wanted.is_stated && !self.accepts_less;
        if self.is_group_required && !self.accepts_less {
            let why = Unheld::GroupRequired;
            return Err(PlanError::LimitUnenforceable { limit, why });
        }
        match self.without_group(controller, wanted.value) {
            Ok(mechanism) => Ok(mechanism),
            Err(why) if must_hold => Err(PlanError::LimitUnenforceable { limit, why }),
            Err(_) => Ok(Mechanism::Nothing),
        }
    }

    /// The next best for this share.
    fn without_group(&mut self, controller: Controller, value: u64) -> Result<Mechanism, Unheld> {
        match controller {
            Controller::Memory => {
                self.watch.memory = Some(value);
                Ok(Mechanism::Watchdog)
            }
            Controller::CpuTime => {
                let span = Duration::from_millis(value);
                self.watch.cpu_time = Some(span);
                self.process.cpu_time = Some(span);
                Ok(Mechanism::Watchdog)
            }
            Controller::Pids if self.machine.counts_processes => {
                self.watch.pids = Some(value);
                self.process.processes = Some(value + OWN_TASKS);
                Ok(Mechanism::Rlimit)
            }
            Controller::Pids => Err(Unheld::RootUncounted),
            Controller::Cpu => self.whole_cores(value),
        }
    }

    fn whole_cores(&mut self, thousandths: u64) -> Result<Mechanism, Unheld> {
        let count = usize::try_from(thousandths / 1000).unwrap_or(usize::MAX);
        if !thousandths.is_multiple_of(1000) || self.machine.cpus.is_empty() {
            let most = self.machine.cpus.len();
            return Err(Unheld::Fraction { most });
        }
        self.process.cpus = Some(self.machine.some_cpus(count));
        Ok(Mechanism::Affinity)
    }

    /// Those that are held in the same way everywhere.
    fn add_others(&mut self, limits: &Limits) {
        self.watch.disk = limits.disk.as_ref().map(|disk| disk.value.bytes());
        self.process.file_size = limits.file_size.as_ref().map(|size| size.value.bytes());
        self.process.open_files = limits
            .open_files
            .as_ref()
            .map(|count| u64::from(count.value.get()));
        let time = limits.time.as_ref();
        let output = limits.output.as_ref();
        let others = [
            (LimitName::Disk, self.watch.disk, Mechanism::Account),
            (
                LimitName::Time,
                time.map(|time| millis(time.value.as_duration())),
                Mechanism::Timer,
            ),
            (
                LimitName::Output,
                output.map(|output| output.value.bytes()),
                Mechanism::Relay,
            ),
            (
                LimitName::OpenFiles,
                self.process.open_files,
                Mechanism::Rlimit,
            ),
            (
                LimitName::FileSize,
                self.process.file_size,
                Mechanism::Rlimit,
            ),
        ];
        let others = others.into_iter().filter_map(|(limit, value, mechanism)| {
            value.map(|value| Held::new(limit, value, mechanism))
        });
        self.held.extend(others);
    }
}

#[cfg(test)]
mod tests {
    use ringfence_policy::{Cores, Count, Origin, TimeSpan};

    use super::*;
    use crate::host::BusVariables;
    use crate::judge::Judge;

    fn stated<T>(value: T) -> Sourced<T> {
        Sourced::new(value, Origin::new(LayerKind::Flag, "--x"))
    }

    fn machine() -> Machine {
        Machine {
            cpus: vec![0, 1, 2, 3],
            memory: Some(1000 << 20),
            counts_processes: true,
            bus: BusVariables::default(),
        }
    }

    fn choose(limits: &Limits, machine: &Machine, weaker: bool) -> Result<LimitPlan, PlanError> {
        Choice::new(
            limits,
            machine,
            &Hierarchies::default(),
            &Cradle::default(),
            weaker,
        )
        .plan(limits)
    }

    fn mechanism(plan: &LimitPlan, limit: LimitName) -> Option<Mechanism> {
        let held = plan.held.iter().find(|held| held.limit == limit);
        held.map(|held| held.mechanism)
    }

    fn why(result: Result<LimitPlan, PlanError>) -> Unheld {
        match result.unwrap_err() {
            PlanError::LimitUnenforceable { why, .. } => why,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn without_anything_asked_for_memory_and_processes_are_held() {
        let plan = choose(&Limits::default(), &machine(), false).unwrap();
        assert_eq!(
            mechanism(&plan, LimitName::Memory),
            Some(Mechanism::Watchdog)
        );
        assert_eq!(mechanism(&plan, LimitName::Pids), Some(Mechanism::Rlimit));
        assert_eq!(plan.held.len(), 2);
        assert_eq!(plan.watch.memory, Some(800 << 20));
        assert_eq!(plan.process.processes, Some(4097));
    }

    #[test]
    fn g9_where_nobody_judges_the_size_of_private_storage_holds_the_limit() {
        let limits = Limits {
            disk: Some(stated(ByteSize::from_bytes(1 << 20).unwrap())),
            ..Limits::default()
        };
        for (judge, held) in [
            (Judge::Init, Mechanism::Account),
            (Judge::Nobody, Mechanism::Tmpfs),
        ] {
            let plan = choose(&limits, &machine(), false).unwrap().judged_by(judge);
            assert_eq!(mechanism(&plan, LimitName::Disk), Some(held));
            assert_eq!(plan.watch.disk, Some(1 << 20));
        }
    }

    #[test]
    fn whole_cores_are_held_by_affinity_and_all_of_them_by_the_machine() {
        let with = |millis| Limits {
            cpu: Some(stated(Cores::from_millis(millis).unwrap())),
            ..Limits::default()
        };
        let plan = choose(&with(3000), &machine(), false).unwrap();
        assert_eq!(mechanism(&plan, LimitName::Cpu), Some(Mechanism::Affinity));
        assert_eq!(plan.process.cpus.unwrap().count(), 3);
        let plan = choose(&with(4000), &machine(), false).unwrap();
        assert_eq!(mechanism(&plan, LimitName::Cpu), Some(Mechanism::Machine));
        assert_eq!(plan.process.cpus, None);
        let refused = why(choose(&with(1500), &machine(), false));
        assert_eq!(refused, Unheld::Fraction { most: 4 });
        let plan = choose(&with(1500), &machine(), true).unwrap();
        assert_eq!(mechanism(&plan, LimitName::Cpu), Some(Mechanism::Nothing));
    }

    #[test]
    fn a_required_group_refuses_what_is_less_also_for_defaults() {
        let mut limits = Limits {
            required: Some(stated(true)),
            ..Limits::default()
        };
        let refused = why(choose(&limits, &machine(), false));
        assert_eq!(refused, Unheld::GroupRequired);
        limits.memory = Some(stated(ByteSize::from_bytes(1 << 20).unwrap()));
        let refused = why(choose(&limits, &machine(), false));
        assert_eq!(refused, Unheld::GroupRequired);
        let plan = choose(&limits, &machine(), true).unwrap();
        assert_eq!(plan.watch.memory, Some(1 << 20));
    }

    #[test]
    fn processes_of_roots_own_id_cannot_be_held() {
        let machine = Machine {
            counts_processes: false,
            ..machine()
        };
        let plan = choose(&Limits::default(), &machine, false).unwrap();
        assert_eq!(mechanism(&plan, LimitName::Pids), Some(Mechanism::Nothing));
        let limits = Limits {
            pids: Some(stated(Count::new(5).unwrap())),
            ..Limits::default()
        };
        assert_eq!(why(choose(&limits, &machine, false)), Unheld::RootUncounted);
    }

    #[test]
    fn what_is_built_in_counts_as_a_default() {
        let origin = Origin::new(LayerKind::Default, "built in");
        let limits = Limits {
            cpu: Some(Sourced::new(Cores::from_millis(500).unwrap(), origin)),
            ..Limits::default()
        };
        assert!(choose(&limits, &machine(), false).is_ok());
    }

    #[test]
    fn the_others_are_listed_with_what_holds_them() {
        let limits = Limits {
            disk: Some(stated(ByteSize::from_bytes(5).unwrap())),
            time: Some(stated(TimeSpan::from_millis(7).unwrap())),
            output: Some(stated(ByteSize::from_bytes(9).unwrap())),
            open_files: Some(stated(Count::new(11).unwrap())),
            file_size: Some(stated(ByteSize::from_bytes(13).unwrap())),
            ..Limits::default()
        };
        let plan = choose(&limits, &machine(), false).unwrap();
        let listed: Vec<_> = plan.held.iter().map(|held| held.limit).collect();
        let mut sorted = listed.clone();
        sorted.sort();
        assert_eq!(listed, sorted);
        assert_eq!(listed.len(), 7);
        assert_eq!(
            (plan.watch.disk, plan.process.file_size),
            (Some(5), Some(13))
        );
        assert_eq!(plan.process.open_files, Some(11));
    }
}
