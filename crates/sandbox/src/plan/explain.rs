//! What a run would make of one path. It is read off the drawing that a run is made from: the
//! mounts in their order, the guard and what was surveyed. Nothing here decides.

mod answer;
mod permissions;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ringfence_policy::{
    Filesystem, HomeRule, LayerKind, Origin, PathRule, Policy, ProtectedName, Resolved,
    SETTINGS_FILES, Sourced,
};

pub use self::answer::{GuardAnswer, PathAccess, PathAnswer, PathReason};
use super::alias::Alias;
use super::drawing::{Drawing, DrawingRequest};
use super::error::PlanError;
use super::files::{Missing, absolute};
use super::ids::Ids;
use super::network::{Intercept, NetworkPlan, ServedFrom};
use super::own::GivenFile;
use crate::git::CONTROL_NAMES;
use crate::guard::GuardRule;
use crate::guarding::Guarding;
use crate::host::Host;
use crate::judge::Judge;
use crate::mount_table::MountTable;
use crate::survey::UserGit;
use crate::trust::TrustPlan;
use crate::view::{Base, Content, CopyOnWrite, LayerPurpose, Overlay, Place};
use crate::within::is_within;

/// What is asked about.
pub struct PathQuestion<'a> {
    /// The policy that holds.
    pub policy: &'a Resolved<Policy>,
    /// The machine.
    pub host: &'a Host,
    /// Where a command would run.
    pub working_folder: &'a Path,
    /// Files in a writable folder that are ours.
    pub untouchable: Vec<PathBuf>,
    /// Looks up a variable outside.
    pub outside: &'a dyn Fn(&str) -> Option<OsString>,
    /// Files for the sandbox's own folder.
    pub given: Vec<GivenFile>,
    /// A name that the host does not have.
    pub alias: Option<Alias>,
    /// Asks for an authority of its own that programs inside trust.
    pub trust: Option<TrustPlan>,
}

/// What a run would make of any path.
#[derive(Debug)]
pub struct PathExplainer<'a> {
    rules: &'a Filesystem,
    drawing: Drawing,
    guarding: Guarding,
    ids: Ids,
    /// What is kept from the command besides what the policy denies.
    untouchable: Vec<PathBuf>,
}

/// What the view shows at a path.
enum Standing<'a> {
    /// The host's own as it is.
    Base,
    /// Nothing: the view is narrow.
    Absent,
    /// What an overlay shows there.
    Laid(&'a Overlay),
    /// A writable directory that the run would make.
    Unmade,
    /// What the sandbox mounts itself.
    Own { is_writable: bool },
}

/// Why something of a writable place stays as it is.
struct Guarded {
    reason: PathReason,
    /// What to let go of.
    name: Option<String>,
    rule: Option<String>,
    source: Option<Origin>,
}

/// Where the sandbox has its own of: with storage at its end.
const OWN_MOUNTS: [(&str, bool); 3] = [("/proc", false), ("/dev", false), ("/dev/shm", true)];

impl<'a> PathExplainer<'a> {
    /// Looks at the machine as a run would; makes nothing.
    pub fn build(question: PathQuestion<'a>) -> Result<Self, PlanError> {
        let policy = question.policy;
        let ids = Ids::choose(question.host);
        let network = NetworkPlan::choose(policy, Intercept::UnlessAbsent, ServedFrom::FirstUse);
        let drawing = Drawing::make(DrawingRequest {
            policy,
            host: question.host,
            working_folder: question.working_folder,
            untouchable: question.untouchable.clone(),
            judge: Judge::Init,
            missing: Missing::Note,
            kept_home: None,
            given: question.given,
            alias: question.alias,
            trust: question.trust.filter(|_| network.is_intercepted()),
            network: &network,
            ids: &ids,
            mounts: &MountTable::read(),
            user_git: UserGit::of(&question.host.home, question.outside),
        })?;
        Ok(Self {
            rules: policy.filesystem(),
            guarding: super::choose_guarding(policy, policy.audit().value, &drawing.guard),
            drawing,
            ids,
            untouchable: question.untouchable,
        })
    }

    /// What a run would make of `path`, which must be absolute.
    pub fn explain(&self, path: &Path) -> PathAnswer {
        let named = name_of(path);
        let real = self.behind_link(absolute(path));
        let status = std::fs::symlink_metadata(&named).ok();
        let mut answer = PathAnswer {
            leads_to: (real != named).then(|| real.clone()),
            exists: status.is_some(),
            path: named.clone(),
            access: PathAccess::ReadOnly,
            read: true,
            write: false,
            reason: PathReason::HostView,
            rule: None,
            source: None,
            guard: GuardAnswer::None,
            permissions: None,
            suggestions: Vec::new(),
        };
        match self.standing(&real) {
            Standing::Base => self.base(&real, &mut answer),
            Standing::Absent => self.absent(&mut answer),
            Standing::Own { is_writable } => {
                answer.reason = PathReason::SandboxOwn;
                if is_writable {
                    answer.access = PathAccess::Private;
                    answer.write = true;
                }
            }
            Standing::Unmade => self.writable(&named, &real, &mut answer),
            Standing::Laid(overlay) => self.laid(overlay, &named, &real, &mut answer),
        }
        answer.suggest(&real);
        answer
    }

    /// Where a path leads inside, if that is by a link that the host does not have.
    fn behind_link(&self, path: PathBuf) -> PathBuf {
        let overlays = self.drawing.view.overlays.iter();
        let mut links = overlays.flat_map(|overlay| match &overlay.content {
            Content::Gathered(gathered) => gathered
                .links
                .iter()
                .filter(|(_, target)| target.is_absolute())
                .map(|(name, target)| (overlay.path.join(name), target))
                .collect(),
            _ => Vec::new(),
        });
        let led = links.find_map(|(link, target)| {
            let below = path.strip_prefix(link).ok()?;
            Some(target.join(below).components().collect())
        });
        led.unwrap_or(path)
    }

    /// What is mounted last of all that covers the path shows; what is frozen shows what was there.
    fn standing(&self, real: &Path) -> Standing<'_> {
        let own = OWN_MOUNTS.iter().rev();
        let own = own.clone().find(|(own, _)| is_within(real, Path::new(own)));
        if let Some((_, is_writable)) = own {
            return Standing::Own {
                is_writable: *is_writable,
            };
        }
        let view = &self.drawing.view;
        let layers = view.layers();
        let overlays = view.overlays.iter().enumerate().rev();
        let mut covering = overlays.filter(|(_, overlay)| is_within(real, &overlay.path));
        let laid = covering.find(|(index, overlay)| {
            !shows_what_was_there(overlay) && !view.is_left_out(*index, &layers)
        });
        let laid = laid.map(|(_, overlay)| overlay);
        let unmade = &self.drawing.files.unmade;
        if unmade.iter().any(|path| is_within(real, path)) {
            return Standing::Unmade;
        }
        match (laid, &view.base) {
            (Some(overlay), _) => Standing::Laid(overlay),
            (None, Base::Host) => Standing::Base,
            (None, Base::Only(shown)) => {
                if shown.iter().any(|folder| is_within(real, folder)) {
                    Standing::Base
                } else {
                    Standing::Absent
                }
            }
        }
    }

    fn laid(&self, overlay: &Overlay, named: &Path, real: &Path, answer: &mut PathAnswer) {
        match &overlay.content {
            Content::Writable(place) => {
                self.writable(named, real, answer);
                self.permit(real, Some(place), answer);
            }
            Content::Shown(place) | Content::Volume(place) => {
                if self.is_unreadable(real) {
                    self.hidden(real, answer);
                    return;
                }
                let rule = covering(&self.rules.read_allow, real);
                answer.because(PathReason::Shown, rule);
                self.permit(real, Some(place), answer);
            }
            Content::Hidden { .. } => self.hidden(real, answer),
            Content::Layered(layer) => self.layered(overlay, layer, real, answer),
            Content::Scratch => {
                answer.access = PathAccess::Private;
                answer.reason = PathReason::PrivateFolder;
                answer.write = true;
            }
            Content::Masked(_) => {
                answer.access = PathAccess::Masked;
                let is_of = |file: &&Sourced<_>| is_masked_at(file, real);
                let file = self.rules.masked.iter().find(is_of);
                answer.reason = PathReason::MaskedFile;
                match file {
                    Some(file) => {
                        answer.rule = Some(file.value.to_string());
                        answer.source = Some(file.origin.clone());
                    }
                    None => self.settings(real, answer),
                }
            }
            Content::File(_) | Content::Own(_) | Content::Replaced(_) => {
                answer.access = PathAccess::Replaced;
                answer.reason = PathReason::MadeForSandbox;
            }
            // They are never what shows.
            Content::Frozen | Content::Gathered(_) => {}
        }
    }

    /// A settings file that is shown without tokens, by the rule that would hide it.
    fn settings(&self, real: &Path, answer: &mut PathAnswer) {
        let named = SETTINGS_FILES.iter().any(|name| real.ends_with(name));
        if named {
            answer.because(
                PathReason::SettingsFile,
                covering(&self.rules.read_deny, real),
            );
        }
    }

    /// The host's own, read-only; what its user cannot reach needs nothing to hide it.
    fn base(&self, real: &Path, answer: &mut PathAnswer) {
        if self.is_unreadable(real) {
            self.hidden(real, answer);
            return;
        }
        answer.source = Some(self.rules.scope.origin.clone());
        answer.rule = Some(format!("read scope {}", self.rules.scope.value.as_str()));
        self.permit(real, None, answer);
    }

    fn absent(&self, answer: &mut PathAnswer) {
        answer.access = PathAccess::Absent;
        answer.reason = PathReason::NarrowView;
        answer.read = false;
        answer.source = Some(self.rules.scope.origin.clone());
        answer.rule = Some(format!("read scope {}", self.rules.scope.value.as_str()));
    }

    /// Whether a hidden place that no mount covers is there, or may come to be.
    fn is_unreadable(&self, real: &Path) -> bool {
        let files = &self.drawing.files;
        let hidden = files.hidden.iter().map(|place| place.path.as_path());
        let hidden = hidden.chain(files.fragile.iter().map(PathBuf::as_path));
        let innermost = |paths: &mut dyn Iterator<Item = &Path>| {
            let around = paths.filter(|path| is_within(real, path));
            around.map(|path| path.components().count()).max()
        };
        let shown = files.shown.iter().map(|place| place.path.as_path());
        innermost(&mut { hidden }) > innermost(&mut { shown })
    }

    fn hidden(&self, real: &Path, answer: &mut PathAnswer) {
        answer.access = PathAccess::Hidden;
        answer.read = false;
        match covering(&self.rules.read_deny, real) {
            Some(rule) => answer.because(PathReason::Hidden, Some(rule)),
            None => answer.reason = PathReason::ForeignMount,
        }
    }

    fn layered(
        &self,
        overlay: &Overlay,
        layer: &CopyOnWrite,
        real: &Path,
        answer: &mut PathAnswer,
    ) {
        answer.write = true;
        answer.access = PathAccess::Private;
        match layer.purpose {
            LayerPurpose::Home => {
                if let HomeRule::Keep(_) = self.rules.home.value {
                    answer.access = PathAccess::Kept;
                }
                answer.source = Some(self.rules.home.origin.clone());
                answer.rule = Some(format!("home {}", self.rules.home.value));
                answer.reason = PathReason::HomeLayer;
            }
            LayerPurpose::BesideFile => {
                let is_below = |rule: &&Sourced<PathRule>| match &rule.value {
                    PathRule::Literal(path) => is_within(&absolute(path), &overlay.path),
                    PathRule::Glob(_) => false,
                };
                let rule = self.rules.write_allow.iter().find(is_below);
                answer.because(PathReason::BesideFile, rule);
            }
        }
        match &layer.shown {
            Some(_) if layer.leaves_out(&overlay.path, real) => {
                answer.read = false;
                answer.access = PathAccess::Hidden;
                answer.because(
                    PathReason::HiddenInHome,
                    covering(&self.rules.read_deny, real),
                );
            }
            Some(place) => self.permit(real, Some(place), answer),
            None => answer.reason = PathReason::EmptyHome,
        }
    }

    fn writable(&self, named: &Path, real: &Path, answer: &mut PathAnswer) {
        let rule = covering(&self.rules.write_allow, real);
        answer.because(PathReason::Writable, rule);
        answer.access = PathAccess::Writable;
        answer.write = true;
        let guarded = self.guarded(named).or_else(|| self.guarded(real));
        let is_frozen = self.is_frozen(real);
        let Some(guarded) = guarded.or_else(|| is_frozen.then(Guarded::by_link)) else {
            return;
        };
        answer.reason = guarded.reason;
        answer.rule = guarded.rule;
        answer.source = guarded.source;
        answer.unprotect(guarded.name);
        answer.guard = match self.guarding {
            _ if is_frozen => GuardAnswer::Frozen,
            Guarding::Sweep => GuardAnswer::Swept,
            Guarding::Live | Guarding::Full => GuardAnswer::JudgedWhenMade,
        };
        if answer.guard != GuardAnswer::Swept {
            answer.access = PathAccess::Protected;
            answer.write = false;
        }
    }

    fn is_frozen(&self, real: &Path) -> bool {
        let overlays = self.drawing.view.overlays.iter().rev();
        let mut covering = overlays.filter(|overlay| is_within(real, &overlay.path));
        covering
            .next()
            .is_some_and(|overlay| overlay.content == Content::Frozen)
    }

    /// What the guard says of a path before anything was run: names are free in directories that
    /// only the run would make.
    fn guarded(&self, path: &Path) -> Option<Guarded> {
        let is_new = |on: crate::guard::On<'_>| on.directory.symlink_metadata().is_err();
        match self.drawing.guard.rule_for(path, &is_new) {
            Some(GuardRule::Name(name)) => Some(self.by_name(name)),
            Some(GuardRule::Denied) => Some(self.by_denial(path)),
            None => self.git_control(path),
        }
    }

    fn by_name(&self, name: String) -> Guarded {
        let is_it = |own: &&Sourced<ProtectedName>| own.value.to_string() == name;
        let named = |own: &&Sourced<ProtectedName>| {
            own.value.to_string().eq_ignore_ascii_case(&name) && !is_it(own)
        };
        let protect = &self.rules.protect;
        let own = protect.iter().find(is_it);
        let own = own.or_else(|| protect.iter().find(named));
        Guarded {
            reason: PathReason::ProtectedName,
            rule: Some(format!("protected name {name}")),
            source: own.map(|own| own.origin.clone()),
            name: Some(own.map_or(name, |own| own.value.to_string())),
        }
    }

    fn by_denial(&self, path: &Path) -> Guarded {
        if let Some(rule) = covering(&self.rules.write_deny, path) {
            return Guarded {
                reason: PathReason::Denied,
                name: None,
                rule: Some(rule.value.to_string()),
                source: Some(rule.origin.clone()),
            };
        }
        if self.untouchable.iter().any(|own| is_within(path, own)) {
            return Guarded {
                reason: PathReason::Untouchable,
                name: None,
                rule: None,
                source: None,
            };
        }
        Guarded::by_link()
    }

    /// Control files of a Git directory that is there already.
    fn git_control(&self, path: &Path) -> Option<Guarded> {
        let guard = &self.drawing.guard;
        let directories = &guard.survey().directories;
        let is_control = |path: &&Path| {
            let name = path.file_name().map(|name| name.to_string_lossy());
            let name = name.unwrap_or_default();
            let mut controls = CONTROL_NAMES.iter();
            controls.any(|control| name.eq_ignore_ascii_case(control))
                && guard.guards_git_entry(&name)
                && path
                    .parent()
                    .and_then(|parent| directories.get(parent))
                    .is_some_and(|id| guard.is_old_repository(*id))
        };
        let control = path.ancestors().find(is_control)?;
        let is_called = |wanted: &str| {
            let name = control.file_name();
            name.is_some_and(|name| name.eq_ignore_ascii_case(wanted))
        };
        let is_config = is_called("config");
        let protect = self.rules.protect.iter();
        let mut git = protect.filter(|own| own.value == ProtectedName::GitInternals);
        Some(Guarded {
            reason: if is_config {
                PathReason::GitConfiguration
            } else {
                PathReason::GitControl
            },
            name: Some(match is_config {
                true => ".git/config".to_owned(),
                false if is_called("hooks") => ".git/hooks".to_owned(),
                false => ProtectedName::GIT.to_owned(),
            }),
            rule: Some("hooks and configuration of a repository".to_owned()),
            source: git.next().map(|own| own.origin.clone()),
        })
    }

    /// What the file's own permissions leave of that. Of `place` the sandbox has its owner's rights.
    fn permit(&self, real: &Path, place: Option<&Place>, answer: &mut PathAnswer) {
        let found = permissions::of(real, place, &self.ids);
        if answer.read && !found.read {
            answer.read = false;
            answer.permissions = Some("its own permissions do not let the sandbox read it");
        }
        if answer.write && !found.write {
            answer.write = false;
            answer.permissions = Some(if found.read {
                "its own permissions do not let the sandbox write it"
            } else {
                "its own permissions let the sandbox neither read nor write it"
            });
        }
    }
}

impl Guarded {
    /// A protected name leads there, or Git's configuration does.
    fn by_link() -> Self {
        Self {
            reason: PathReason::LedTo,
            name: None,
            rule: None,
            source: None,
        }
    }
}

fn shows_what_was_there(overlay: &Overlay) -> bool {
    matches!(overlay.content, Content::Frozen | Content::Gathered(_))
}

/// The path without links but for the last component.
fn name_of(path: &Path) -> PathBuf {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => absolute(parent).join(name),
        _ => absolute(path),
    }
}

/// Of the rules that cover a path the innermost, for equal ones the strongest.
fn covering<'a>(rules: &'a [Sourced<PathRule>], real: &Path) -> Option<&'a Sourced<PathRule>> {
    let depth = |rule: &&Sourced<PathRule>| match &rule.value {
        PathRule::Literal(path) => absolute(path).components().count(),
        // A pattern is about what it matches.
        PathRule::Glob(_) => real.components().count(),
    };
    let covers = |rule: &&Sourced<PathRule>| match &rule.value {
        PathRule::Literal(path) => is_within(real, &absolute(path)),
        PathRule::Glob(_) => rule.value.matches(real),
    };
    let rank = |rule: &&Sourced<PathRule>| rule.origin.layer != LayerKind::Default;
    let covering = rules.iter().filter(covers);
    covering.max_by_key(|rule| (depth(rule), rank(rule)))
}

fn is_masked_at(file: &Sourced<ringfence_policy::MaskedFile>, real: &Path) -> bool {
    absolute(&file.value.path) == real
}
