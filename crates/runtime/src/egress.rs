//! The way out of a run: the sandbox's sockets, served under its policy.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use ringfence_audit::{Digest, Process, Recorder, Text};
use ringfence_egress::{
    self as egress, Ask, Authority, AuthorityError, Credentials, Idle, Interception, ParentError,
    Placeholder, ProxyToken, RefusalWords, Roots, RootsError, Service, Settings,
};
use ringfence_policy::{AllowRule, Policy, Resolved, Sourced};
use ringfence_sandbox::{self as sandbox, Intercept, ProxyUser, Running, SpawnError, Trust};
use ringfence_sys::{self as sys, Errno};
use rustix::process::Resource;
use sha2::{Digest as _, Sha256};

use crate::asking::Asking;
use crate::host_env::HostEnv;
use crate::parents::{NamedProxies, parent_proxies};
use crate::run::RunError;
use crate::secrets::{HostVault, SecretSettings, Surroundings, VaultError};
use crate::trust;

/// What a run that may reach something needs to know.
#[derive(Default)]
pub struct EgressRequest {
    /// When connections are intercepted.
    pub intercept: Intercept,
    /// What clients of the loopback proxies must show.
    pub token: Option<ProxyToken>,
    /// The same, in the variables that tell of the proxies.
    pub proxy_user: ProxyUser,
    /// In whose words refusals are told.
    pub words: RefusalWords,
    /// The host's own proxies, as far as settings name them.
    pub parents: Option<NamedProxies>,
    /// Where other policies come from while the command runs.
    pub changes: Option<Changes>,
    /// Who is asked about hosts that no rule allows.
    pub asking: Option<Asking>,
    /// Where the policy's secrets are looked for.
    pub secrets: SecretSettings,
}

/// Calls back with each new policy until there are no more. Runs on a thread
/// of its own.
pub type Changes = Box<dyn FnOnce(&dyn Fn(Resolved<Policy>)) + Send>;

/// Why there is no way out. Nothing was run.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    /// The host's own proxies cannot be used.
    #[error(transparent)]
    Parents(#[from] ParentError),
    /// The host's own addresses are not known, so they could not be kept from.
    #[error("cannot list this machine's addresses: {0}")]
    HostAddresses(Errno),
    /// There is nothing that programs inside could trust.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// Certificates that the policy names cannot be used.
    #[error(transparent)]
    Roots(#[from] RootsError),
    /// Secrets that the policy names cannot be had.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The service did not start.
    #[error("cannot serve the sandbox's network: {0}")]
    Serve(io::Error),
}

impl EgressError {
    /// A stable name for this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Parents(error) => error.code(),
            Self::Roots(_) => "authorities-unusable",
            Self::Vault(error) => error.code(),
            Self::HostAddresses(_) | Self::Authority(_) | Self::Serve(_) => "egress-unavailable",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Parents(error) => error.hint(),
            Self::Roots(_) => "name PEM files with certificates of authorities",
            Self::Vault(error) => error.hint(),
            _ => "run it with the network closed: --no-network",
        }
    }
}

/// A way out that nobody uses yet. All that its settings name is there.
struct Prepared<'a> {
    policy: &'a Resolved<Policy>,
    recorder: Arc<Recorder>,
    settings: Settings,
    changes: Option<Changes>,
}

/// A way out, which is served from some time on.
pub(crate) struct Outlet<'a> {
    prepared: Option<Prepared<'a>>,
    service: Option<Service>,
    in_force: Option<InForce>,
}

/// The policy of a service, and what was approved on top of it.
#[derive(Clone)]
struct InForce {
    handle: egress::Handle,
    own: Vec<IpAddr>,
    state: Arc<Mutex<Standing>>,
}

struct Standing {
    policy: Resolved<Policy>,
    approved: Vec<Sourced<AllowRule>>,
}

impl InForce {
    /// Another policy; approvals hold on.
    fn replace(&self, policy: Resolved<Policy>) {
        let policy = policy.with_host_addresses(self.own.iter().copied());
        self.change(|state| state.policy = policy);
    }

    fn approve(&self, rule: Sourced<AllowRule>) {
        self.change(|state| state.approved.push(rule));
    }

    /// One change at a time.
    fn change(&self, change: impl FnOnce(&mut Standing)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        let policy = state.policy.with_approved(&state.approved);
        self.handle.replace_policy(Arc::new(policy));
    }
}

impl<'a> Prepared<'a> {
    /// Makes sure that decisions can be made.
    fn new(wanted: Wanted<'a>, recorder: Arc<Recorder>) -> Result<Self, EgressError> {
        let Wanted {
            policy,
            request,
            placeholders,
            surroundings,
            authority,
            ask: wanted_ask,
            env,
        } = wanted;
        let interception = interception(policy, authority)?;
        let parents = parent_proxies(request.parents.as_ref(), &|name| env.text(name))?;
        let open_vault = |surroundings| {
            let vault = HostVault::open(policy.credentials(), surroundings, request.secrets, &env)?;
            Ok::<_, EgressError>(Credentials {
                vault: Arc::new(vault),
                placeholders,
            })
        };
        Ok(Self {
            policy,
            recorder,
            settings: Settings {
                limits: limits(policy.limits()),
                parents,
                token: request.token,
                words: request.words,
                credentials: surroundings.as_ref().map(open_vault).transpose()?,
                interception,
                ask: wanted_ask,
            },
            changes: request.changes,
        })
    }

    /// Serves the sockets of a sandbox.
    fn serve(
        mut self,
        idle: Idle,
        own: Vec<IpAddr>,
        inlets: sandbox::Inlets,
    ) -> Result<(Service, InForce), EgressError> {
        let policy = self.policy.clone().with_host_addresses(own.clone());
        let limits = &mut self.settings.limits;
        limits.connections = limits.connections.min(room_for_connections());
        let inlets = egress::Inlets {
            transparent: inlets.transparent,
            proxies: inlets.proxies,
            names: inlets.names.into_iter().map(name_socket).collect(),
            callers: Some(Box::new(Callers(inlets.callers))),
        };
        let first = Arc::new(policy.clone());
        let service = idle.serve(inlets, first, self.recorder, self.settings);
        let in_force = InForce {
            handle: service.handle(),
            own,
            state: Arc::new(Mutex::new(Standing {
                policy,
                approved: Vec::new(),
            })),
        };
        if let Some(changes) = self.changes {
            let in_force = in_force.clone();
            let follow = move || changes(&|policy| in_force.replace(policy));
            std::thread::Builder::new()
                .name("changes".to_owned())
                .spawn(follow)
                .map_err(EgressError::Serve)?;
        }
        Ok((service, in_force))
    }
}

/// A way out while the sandbox starts.
pub(crate) enum Opening<'a> {
    /// There is none to open, or not yet.
    Waiting(Option<Box<Wanted<'a>>>),
    /// It can be opened, or is open.
    Ready(Box<Outlet<'a>>),
    /// It cannot be opened.
    Failed(RunError),
}

/// What a way out is made from.
pub(crate) struct Wanted<'a> {
    pub(crate) policy: &'a Resolved<Policy>,
    pub(crate) request: EgressRequest,
    pub(crate) placeholders: Vec<Placeholder>,
    /// Where the policy has credentials.
    pub(crate) surroundings: Option<Surroundings>,
    /// Made once the sandbox is: see [`Opening::trust`].
    pub(crate) authority: Option<Arc<Authority>>,
    /// Where questions about hosts go.
    pub(crate) ask: Option<Ask>,
    /// The environment outside.
    pub(crate) env: HostEnv,
}

impl<'a> Opening<'a> {
    pub(crate) fn of(wanted: Wanted<'a>) -> Self {
        Self::Waiting(Some(Box::new(wanted)))
    }

    /// Makes the authority that programs inside will trust. After the sandbox,
    /// whose init must not have a copy of its key.
    pub(crate) fn trust(&mut self) -> Option<Trust> {
        let Self::Waiting(Some(wanted)) = self else {
            return None;
        };
        match Authority::new() {
            Ok(authority) => {
                let pem = authority.certificate_pem();
                let trust = trust::with_authority(&pem, authority.certificate_der(), &wanted.env);
                wanted.authority = Some(Arc::new(authority));
                Some(trust)
            }
            Err(error) => {
                *self = Self::Failed(EgressError::from(error).into());
                None
            }
        }
    }

    /// Makes it ready to be opened; false when that failed. All that may be
    /// missing shows here, before the command starts.
    pub(crate) fn prepare(&mut self, recorder: Arc<Recorder>) -> bool {
        let Self::Waiting(wanted) = self else {
            return false;
        };
        let Some(wanted) = wanted.take() else {
            return false;
        };
        *self = match Prepared::new(*wanted, recorder) {
            Ok(prepared) => Self::Ready(Box::new(Outlet {
                prepared: Some(prepared),
                service: None,
                in_force: None,
            })),
            Err(error) => Self::Failed(error.into()),
        };
        matches!(self, Self::Ready(_))
    }

    /// Opens it; false when that failed.
    pub(crate) fn serve(&mut self, inlets: sandbox::Inlets) -> bool {
        let Self::Ready(outlet) = self else {
            return false;
        };
        match outlet.open(|| Ok(inlets)) {
            Ok(()) => true,
            Err(error) => {
                *self = Self::Failed(error);
                false
            }
        }
    }

    /// The way out of a sandbox that started, or why it did not.
    pub(crate) fn finish(
        self,
        running: Result<Running, SpawnError>,
    ) -> Result<(Running, Option<Box<Outlet<'a>>>), RunError> {
        match (self, running) {
            (Self::Failed(error), _) => Err(error),
            (_, Err(error)) => Err(error.into()),
            (Self::Ready(outlet), Ok(running)) => Ok((running, Some(outlet))),
            (Self::Waiting(_), Ok(running)) => Ok((running, None)),
        }
    }
}

impl Outlet<'_> {
    /// Whether it was not opened yet.
    pub(crate) fn is_closed(&self) -> bool {
        self.prepared.is_some()
    }

    /// Sets the network of a sandbox up and serves it. After an error that may
    /// pass it may be tried again.
    pub(crate) fn open(
        &mut self,
        set_up: impl FnOnce() -> Result<sandbox::Inlets, SpawnError>,
    ) -> Result<(), RunError> {
        // What can be repeated comes first.
        let idle = Idle::new().map_err(EgressError::Serve)?;
        let own = sys::own_addresses().map_err(EgressError::HostAddresses)?;
        let inlets = set_up()?;
        if let Some(prepared) = self.prepared.take() {
            let (service, in_force) = prepared.serve(idle, own, inlets)?;
            (self.service, self.in_force) = (Some(service), Some(in_force));
        }
        Ok(())
    }

    /// Puts a rule in force besides the policy. When this returns, every later
    /// connection is judged by it too.
    pub(crate) fn approve(&self, rule: Sourced<AllowRule>) {
        if let Some(in_force) = &self.in_force {
            in_force.approve(rule);
        }
    }

    /// Ends every connection.
    pub(crate) fn close(self) {
        drop(self.service);
    }
}

/// What looking into TLS needs, where an authority was made for it.
fn interception(
    policy: &Resolved<Policy>,
    authority: Option<Arc<Authority>>,
) -> Result<Option<Interception>, EgressError> {
    let extra = policy.authorities().iter();
    let extra: Vec<_> = extra.map(|path| path.value.clone()).collect();
    // Also where they are not needed: a wrong file is a mistake anyway.
    let roots = Arc::new(Roots::load(&extra)?);
    Ok(authority.map(|authority| Interception { authority, roots }))
}

/// The policy's limits on connections, and ours where it has none.
fn limits(policy: &ringfence_policy::Limits) -> egress::Limits {
    let default = egress::Limits::default();
    let number = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
    let connections = policy.connections.as_ref().map(|count| number(count.get()));
    let names = policy
        .wildcard_names
        .as_ref()
        .map(|count| number(count.get()));
    let idle = policy
        .connection_idle
        .as_ref()
        .map(|span| span.as_duration());
    egress::Limits {
        connections: connections.unwrap_or(default.connections),
        idle_time: idle.or(default.idle_time),
        total_time: policy
            .connection_time
            .as_ref()
            .map(|span| span.as_duration()),
        names: egress::BudgetSettings {
            names: names.unwrap_or(default.names.names),
            ..default.names
        },
        ..default
    }
}

/// Each connection takes a descriptor on both sides. As many as this process
/// may have are made available to it; the sandbox took its own limit along
/// when it started.
fn room_for_connections() -> usize {
    const OWN: u64 = 64;
    let mut limit = rustix::process::getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = rustix::process::setrlimit(Resource::Nofile, limit);
    let available = rustix::process::getrlimit(Resource::Nofile).current;
    let most = available.unwrap_or(u64::MAX).saturating_sub(OWN) / 2;
    usize::try_from(most).unwrap_or(usize::MAX).max(1)
}

struct NameSocket(OwnedFd);

fn name_socket(socket: OwnedFd) -> Box<dyn egress::Datagrams + Send> {
    Box::new(NameSocket(socket))
}

impl egress::Datagrams for NameSocket {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn receive(&self, buffer: &mut [u8]) -> io::Result<egress::Datagram> {
        let datagram = sys::receive_datagram(self.0.as_fd(), buffer)?;
        Ok(egress::Datagram {
            length: datagram.length,
            truncated: datagram.truncated,
            source: datagram.source,
            destination: datagram.destination,
        })
    }

    fn send(&self, bytes: &[u8], to: SocketAddr, from: IpAddr) -> io::Result<()> {
        Ok(sys::send_datagram(self.0.as_fd(), bytes, to, from)?)
    }
}

struct Callers(sandbox::Callers);

impl egress::Callers for Callers {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn next(&self) -> io::Result<Option<(SocketAddr, Process)>> {
        Ok(self.0.next()?.map(|dialled| {
            let process = Process {
                pid: dialled.pid,
                executable: dialled.executable.as_deref().map(Text::new),
                argv_sha256: dialled.arguments.as_deref().map(sum),
            };
            (dialled.local, process)
        }))
    }
}

fn sum(bytes: &[u8]) -> Digest {
    <[u8; 32]>::from(Sha256::digest(bytes)).into()
}
