//! The one door: every attempt to leave is judged, written down and only then
//! carried out.
//!
//! Nothing in this crate resolves a name or dials an address except through
//! [`Exit::open`]; the policy it asks may be replaced at any time, and what is
//! no longer allowed is then cut.

mod credentials;
mod error;
mod interception;
mod malformed;
mod tracked;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use ringfence_audit::{
    ConnectionId, Decided, LogError, Protocol, ReasonCode, Recorder, Verdict, Via,
};
use ringfence_policy::{
    AllowRule, Decision, HOST_ALIAS, HostName, Policy, Reason, Request, Resolved, Sourced, Target,
    decide, may_be_approved,
};
use tokio::net::TcpStream;

use crate::attempt::Attempt;
use crate::budget::Budget;
use crate::dial::dial;
use crate::intercept::{Interception, Keeper, Pools};
use crate::limits::Limits;
use crate::memory::Memory;
use crate::names::{Named, Names, is_virtual};
use crate::parent::{self, Kind, Login, ParentProxies, ParentProxy};
use crate::questions::{Answer, Ask, Questions};
use crate::refusal::{RefusalWords, Refused};
use crate::resolve::{ResolveError, Resolver};
use crate::secret::Credentials;
use crate::secrets::Placeholders;

pub(crate) use error::OpenError;
use tracked::Register;
pub(crate) use tracked::Tracked;

/// What clients of the loopback proxies must show.
#[derive(Clone)]
pub struct ProxyToken {
    /// The realm named to those who show nothing.
    pub realm: &'static str,
    /// The password; any user name will do.
    pub password: String,
}

/// Everything that stands between a sandbox and the world.
pub(crate) struct Exit {
    policy: RefCell<Arc<Resolved<Policy>>>,
    generation: Cell<u64>,
    recorder: Arc<Recorder>,
    register: Register,
    resolver: Resolver,
    budget: RefCell<Budget>,
    names: Rc<RefCell<Names>>,
    parents: ParentProxies,
    token: Option<ProxyToken>,
    words: RefusalWords,
    keeper: Option<Keeper>,
    placeholders: Option<Arc<Placeholders>>,
    interception: Option<Interception>,
    pools: Pools,
    limits: Limits,
    memory: Rc<Memory>,
    questions: Option<Questions>,
    /// What single connections were let out for.
    granted: RefCell<HashMap<ConnectionId, Sourced<AllowRule>>>,
}

/// A connection to where an attempt wanted to go.
pub(crate) struct Upstream {
    pub(crate) stream: TcpStream,
    pub(crate) hop: Hop,
    /// The policy allows it only as far as every request is judged too.
    pub(crate) needs_inspection: bool,
    pub(crate) tracked: Tracked,
}

/// What is at the other end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Hop {
    /// The destination, directly or through a tunnel.
    Destination,
    /// A proxy that expects requests in absolute form.
    Forward {
        /// How this host is known to it.
        login: Option<Login>,
    },
}

/// How to get there.
enum Route {
    Direct(Vec<SocketAddr>),
    Through(ParentProxy, Kind),
}

impl Route {
    fn first_address(&self) -> Option<IpAddr> {
        match self {
            Self::Direct(addresses) => addresses.first().map(SocketAddr::ip),
            Self::Through(..) => None,
        }
    }
}

/// What holds for a whole run, whatever its policy becomes.
#[derive(Clone, Default)]
pub struct Settings {
    /// How much of everything.
    pub limits: Limits,
    /// The host's own proxies.
    pub parents: ParentProxies,
    /// What clients of the loopback proxies must show.
    pub token: Option<ProxyToken>,
    /// In whose words refusals are told.
    pub words: RefusalWords,
    /// Secrets that are attached to requests, if the policy has any.
    pub credentials: Option<Credentials>,
    /// What TLS connections that must be looked into need; without it they are
    /// refused.
    pub interception: Option<Interception>,
    /// Who is asked about what no rule allows; without, it is refused.
    pub ask: Option<Ask>,
}

impl Exit {
    pub(crate) fn new(
        policy: Arc<Resolved<Policy>>,
        recorder: Arc<Recorder>,
        resolver: Resolver,
        settings: Settings,
    ) -> Self {
        let credentials = settings.credentials;
        let placeholders = credentials
            .as_ref()
            .and_then(|credentials| Placeholders::new(&credentials.placeholders));
        Self {
            policy: RefCell::new(policy),
            generation: Cell::new(0),
            register: Register::new(Arc::clone(&recorder)),
            recorder,
            resolver,
            budget: RefCell::new(Budget::new(settings.limits.names)),
            names: Rc::default(),
            parents: settings.parents,
            token: settings.token,
            words: settings.words,
            placeholders: placeholders.map(Arc::new),
            keeper: credentials.map(Keeper::new),
            interception: settings.interception,
            pools: Pools::default(),
            limits: settings.limits,
            memory: Memory::new(),
            questions: settings.ask.map(Questions::new),
            granted: RefCell::default(),
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What its connections may hold.
    pub(crate) fn memory(&self) -> &Rc<Memory> {
        &self.memory
    }

    /// What clients of the proxies must show, if anything.
    pub(crate) fn credentials_wanted(&self) -> Option<&ProxyToken> {
        self.token.as_ref()
    }

    /// Changes with the policy; nothing decided under another one may be used.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.get()
    }

    /// Puts another policy in force and cuts what it does not allow.
    pub(crate) fn replace_policy(&self, policy: Arc<Resolved<Policy>>) {
        *self.policy.borrow_mut() = policy;
        self.generation.set(self.generation.get() + 1);
        let policy = self.policy.borrow();
        self.register.revoke_unless(|attempt, address, inspected| {
            let request = attempt.request();
            let request = address.map_or(request, |address| request.resolved_to(address));
            let decision = self.decide_by(&policy, attempt, &request);
            decision.is_allowed() && (inspected || !decision.needs_inspection)
        });
    }

    /// Judges and records a further request over a connection that is open.
    pub(crate) fn admit(&self, attempt: &Attempt) -> Result<(), Refused> {
        let decision = self.judge(attempt)?;
        self.record(attempt, None, &decision)
    }

    /// Whether the policy allows an attempt only as far as every request is
    /// judged.
    pub(crate) fn needs_inspection(&self, attempt: &Attempt) -> bool {
        let decision = self.decide(attempt, None);
        decision.is_allowed() && decision.needs_inspection
    }

    /// Judges the request that a connection was opened for. That was recorded
    /// with the connection; only a refusal is something new.
    pub(crate) fn admit_first(&self, attempt: &Attempt) -> Result<(), Refused> {
        self.judge(attempt).map(drop)
    }

    /// Refuses something for the way it was asked.
    pub(crate) fn refuse(&self, attempt: &Attempt, code: &'static str, phrase: &str) -> Refused {
        let mut decided = decided(attempt, None, &self.decide(attempt, None));
        decided.verdict = Verdict::Refused;
        decided.reason = ReasonCode::new(code);
        (decided.rule, decided.source) = (None, None);
        // It is refused either way.
        let _ = self.recorder.decision(decided);
        Refused::of_form(code, phrase)
    }

    /// Records a question for a name that is allowed on no port.
    pub(crate) fn note_lookup(&self, lookup: &Attempt) -> Result<(), LogError> {
        let decision = self.decide(lookup, None);
        let is_near = matches!(
            decision.reason,
            Reason::PortNotAllowed
                | Reason::MethodNotAllowed
                | Reason::PathNotAllowed
                | Reason::HostPortNotAllowed
        );
        if decision.is_allowed() || is_near {
            return Ok(());
        }
        let mut decided = decided(lookup, None, &decision);
        decided.port = 0;
        self.recorder.decision(decided)
    }

    /// Judges, resolves, judges again, records and dials. A policy that comes
    /// into force meanwhile and does not allow it ends it.
    pub(crate) async fn open(&self, attempt: &Attempt) -> Result<Upstream, OpenError> {
        self.ask_about(attempt).await;
        let decision = self.judge(attempt)?;
        let tracked = self.register.track(attempt);
        let opened = tokio::select! {
            biased;
            () = tracked.revoked() => {
                let phrase = "the policy no longer allows it";
                Err(self.refuse(attempt, "policy-changed", phrase).into())
            }
            opened = self.open_tracked(attempt, decision, &tracked) => opened,
        };
        let opened = opened.inspect_err(|error| {
            tracked.because(error.close_reason());
            self.note_failure(attempt, error);
        });
        let (stream, hop, decision) = opened?;
        Ok(Upstream {
            stream,
            hop,
            needs_inspection: decision.needs_inspection,
            tracked,
        })
    }

    /// Records that what is allowed leads nowhere, with the rule that allows it.
    fn note_failure(&self, attempt: &Attempt, error: &OpenError) {
        let Some(code) = error.failure() else { return };
        let mut decided = decided(attempt, None, &self.decide(attempt, None));
        decided.verdict = Verdict::Refused;
        decided.reason = ReasonCode::new(code);
        // There is nothing that would take effect.
        let _ = self.recorder.decision(decided);
    }

    async fn open_tracked(
        &self,
        attempt: &Attempt,
        decision: Decision,
        tracked: &Tracked,
    ) -> Result<(TcpStream, Hop, Decision), OpenError> {
        let (route, decision) = self.route(attempt, decision).await?;
        let address = route.first_address();
        self.record(attempt, address, &decision)?;
        tracked.admitted(address);
        tracked.inspected(decision.needs_inspection);
        let connecting = self.connect(attempt, &route);
        let connected = tokio::time::timeout(self.limits.connect_time, connecting).await;
        let (stream, hop) = connected.unwrap_or(Err(OpenError::TimedOut))?;
        if let (Route::Direct(_), Ok(peer)) = (&route, stream.peer_addr()) {
            tracked.admitted(Some(peer.ip()));
            self.judge_end(attempt, &stream)?;
        }
        Ok((stream, hop, decision))
    }

    /// An address that this host got after the policy was made shows in that
    /// both ends of a connection have it.
    fn judge_end(&self, attempt: &Attempt, stream: &TcpStream) -> Result<(), OpenError> {
        let (Ok(own), Ok(peer)) = (stream.local_addr(), stream.peer_addr()) else {
            return Ok(());
        };
        let address = own.ip().to_canonical();
        if address != peer.ip().to_canonical() || address.is_loopback() {
            return Ok(());
        }
        let policy = Resolved::clone(&self.policy.borrow()).with_host_addresses([address]);
        let request = attempt.request().resolved_to(address);
        let decision = self.decide_by(&policy, attempt, &request);
        if decision.is_allowed() {
            return Ok(());
        }
        Err(self
            .refuse_by_policy(attempt, Some(address), &decision)
            .into())
    }

    /// The names of the sandbox and their virtual addresses.
    pub(crate) fn names(&self) -> &Rc<RefCell<Names>> {
        &self.names
    }

    /// What a client means that names `target`: a virtual address stands for
    /// its name.
    pub(crate) fn meant(&self, target: Target) -> Target {
        let named = target
            .addr()
            .map(|address| self.names.borrow().name_of(address));
        match named {
            Some(Named::Name(name)) => Target::Name(name),
            _ => target,
        }
    }

    /// What is still open ends with the run, and is written down as that.
    pub(crate) fn finish(&self) {
        self.register.end_all();
    }

    /// Writes down what was only counted so far, where it is due.
    pub(crate) fn tick(&self) {
        // The next decision fails if this did.
        let _ = self.recorder.tick();
    }

    fn decide(&self, attempt: &Attempt, address: Option<IpAddr>) -> Decision {
        let request = attempt.request();
        let request = address.map_or(request, |address| request.resolved_to(address));
        self.decide_by(&self.policy.borrow(), attempt, &request)
    }

    /// By a policy, and by what this connection alone was let out for.
    fn decide_by(
        &self,
        policy: &Resolved<Policy>,
        attempt: &Attempt,
        request: &Request<'_>,
    ) -> Decision {
        match self.granted.borrow().get(&attempt.connection) {
            Some(rule) => decide(&policy.with_approved(std::slice::from_ref(rule)), request),
            None => decide(policy, request),
        }
    }

    /// Lets somebody approve what no rule allows, where there is somebody. What
    /// was approved is judged like everything else.
    async fn ask_about(&self, attempt: &Attempt) {
        let Some(questions) = &self.questions else {
            return;
        };
        let is_known = !attempt.target.addr().is_some_and(is_virtual);
        let may_be = || may_be_approved(&self.policy.borrow(), &attempt.target, attempt.port);
        if !is_known || self.decide(attempt, None).is_allowed() || !may_be() {
            return;
        }
        if let Answer::Once(rule) = questions.ask(&attempt.target, attempt.port).await {
            let mut granted = self.granted.borrow_mut();
            granted.insert(attempt.connection, *rule);
        }
    }

    /// The decision on what is known before resolving; a refusal is recorded.
    fn judge(&self, attempt: &Attempt) -> Result<Decision, Refused> {
        if attempt.target.addr().is_some_and(is_virtual) {
            let phrase = "no name was looked up for this address";
            return Err(self.refuse(attempt, "unknown-virtual-address", phrase));
        }
        self.check_target(attempt)?;
        let decision = self.decide(attempt, None);
        if decision.is_allowed() {
            Ok(decision)
        } else {
            Err(self.refuse_by_policy(attempt, None, &decision))
        }
    }

    fn refuse_by_policy(
        &self,
        attempt: &Attempt,
        address: Option<IpAddr>,
        decision: &Decision,
    ) -> Refused {
        let request = attempt.request();
        let request = address.map_or(request, |address| request.resolved_to(address));
        // It is refused either way.
        let _ = self.record(attempt, address, decision);
        let policy = self.policy.borrow();
        let refused = Refused::by_policy(&policy, &request, decision);
        self.words.of_policy(refused, &policy, &request, decision)
    }

    /// What cannot be written down does not happen.
    fn record(
        &self,
        attempt: &Attempt,
        address: Option<IpAddr>,
        decision: &Decision,
    ) -> Result<(), Refused> {
        let decided = decided(attempt, address, decision);
        self.recorder.decision(decided).map_err(|_| unrecorded())
    }

    /// Records that a name is about to be asked for.
    fn record_question(&self, attempt: &Attempt, decision: &Decision) -> Result<(), LogError> {
        let question = Decided {
            via: Via::Dns,
            protocol: Protocol::Dns,
            port: 0,
            method: None,
            path: None,
            ..decided(attempt, None, decision)
        };
        self.recorder.decision(question)
    }

    async fn route(
        &self,
        attempt: &Attempt,
        decision: Decision,
    ) -> Result<(Route, Decision), OpenError> {
        let kind = match (attempt.via, attempt.spoken) {
            (Via::HttpProxy, Protocol::Http) => Kind::Forward,
            _ => Kind::Tunnel,
        };
        if let Target::Name(name) = &attempt.target {
            self.spend(attempt, name, &decision)?;
        }
        if let Some(parent) = self.parents.of(&attempt.target, attempt.port, kind) {
            return Ok((Route::Through(parent.clone(), kind), decision));
        }
        let candidates = self.addresses(attempt, &decision).await?;
        self.judge_addresses(attempt, &candidates)
    }

    /// Of the addresses, those that the policy in force by now allows.
    fn judge_addresses(
        &self,
        attempt: &Attempt,
        candidates: &[IpAddr],
    ) -> Result<(Route, Decision), OpenError> {
        let mut allowed = Vec::new();
        let mut granted = None;
        let mut refused = None;
        for address in candidates {
            let decision = self.decide(attempt, Some(*address));
            if decision.is_allowed() {
                allowed.push(SocketAddr::new(*address, attempt.port));
                granted.get_or_insert(decision);
            } else {
                refused.get_or_insert((*address, decision));
            }
        }
        match (granted, refused) {
            (Some(decision), _) => Ok((Route::Direct(allowed), decision)),
            (None, Some((address, decision))) => {
                let refused = self.refuse_by_policy(attempt, Some(address), &decision);
                Err(refused.into())
            }
            (None, None) => Err(OpenError::Unresolved(ResolveError::NoAddresses)),
        }
    }

    async fn addresses(
        &self,
        attempt: &Attempt,
        decision: &Decision,
    ) -> Result<Vec<IpAddr>, OpenError> {
        match &attempt.target {
            Target::Addr(address) => Ok(vec![*address]),
            Target::Name(name) if name.as_str() == HOST_ALIAS => {
                Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()])
            }
            Target::Name(name) => {
                let may_ask = || self.record_question(attempt, decision).is_ok();
                match self.resolver.addresses_of(name, &may_ask).await {
                    Err(ResolveError::Kept) => Err(unrecorded().into()),
                    found => found.map_err(OpenError::Unresolved),
                }
            }
        }
    }

    /// Names below a wildcard can carry data to whoever answers for them.
    fn spend(
        &self,
        attempt: &Attempt,
        name: &HostName,
        decision: &Decision,
    ) -> Result<(), Refused> {
        let Some(wildcard) = decision
            .rule
            .as_deref()
            .filter(|rule| rule.starts_with('*'))
        else {
            return Ok(());
        };
        let spent = self.budget.borrow_mut().spend(wildcard, name);
        spent.map_err(|spent| self.refuse(attempt, "name-budget", &spent.to_string()))
    }

    async fn connect(
        &self,
        attempt: &Attempt,
        route: &Route,
    ) -> Result<(TcpStream, Hop), OpenError> {
        match route {
            Route::Direct(addresses) => {
                let stream = dial(addresses).await.map_err(OpenError::Unreachable)?;
                Ok((stream, Hop::Destination))
            }
            Route::Through(proxy, kind) => self.connect_through(attempt, proxy, *kind).await,
        }
    }

    async fn connect_through(
        &self,
        attempt: &Attempt,
        proxy: &ParentProxy,
        kind: Kind,
    ) -> Result<(TcpStream, Hop), OpenError> {
        let found = match &proxy.host {
            Target::Addr(address) => vec![*address],
            Target::Name(name) => {
                let found = self.resolver.addresses_of(name, &|| true).await;
                found.map_err(OpenError::Unresolved)?
            }
        };
        let places: Vec<SocketAddr> = found
            .into_iter()
            .map(|address| SocketAddr::new(address, proxy.port))
            .collect();
        let mut stream = dial(&places).await.map_err(OpenError::Unreachable)?;
        if kind == Kind::Forward {
            let login = proxy.login.clone();
            return Ok((stream, Hop::Forward { login }));
        }
        parent::tunnel(&mut stream, proxy, &attempt.target, attempt.port)
            .await
            .map_err(OpenError::Unreachable)?;
        Ok((stream, Hop::Destination))
    }
}

fn unrecorded() -> Refused {
    Refused::of_form("audit-unavailable", "the audit log cannot be written")
}

fn decided(attempt: &Attempt, address: Option<IpAddr>, decision: &Decision) -> Decided {
    let request = attempt.request();
    let request = address.map_or(request, |address| request.resolved_to(address));
    Decided {
        process: attempt.process.clone(),
        ..Decided::new(
            attempt.connection,
            attempt.via,
            attempt.spoken,
            &request,
            decision,
        )
    }
}
