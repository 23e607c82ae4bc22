//! The secrets of one sandbox at work: read anew for each request, and
//! remembered once they left, so that none of them is let in again.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ringfence_policy::Target;
use tokio::sync::Semaphore;

use crate::attempt::Attempt;
use crate::secret::{Credentials, Placeholder, Secret, SecretError, Vault};
use crate::secrets::{Find, Forms, Hidden, REDACTED};

/// For a source to give a secret, which may be a command.
const READING_TIME: Duration = Duration::from_secs(30);
/// Secrets that are read at once.
const MOST_READERS: usize = 16;
/// A shorter secret could not be told from ordinary text, and so not be hidden
/// in what comes back.
const SHORTEST: usize = 8;
/// Values that may leave in one run. All of them are looked for in what comes
/// back, and none is ever forgotten: a server may keep what it was sent.
const MOST_VALUES: usize = 256;
/// Answers of one run that a secret may be found in. Whoever can make a server
/// send bytes of his own choice can try with each answer whether they are the
/// secret, and a server that says so often is no place for it.
const MOST_ANSWERS: u32 = 64;
/// Parts of secrets that may be found in one run. Whoever knows nearly as much
/// as is hidden can ask with each for the next characters, so with many for all
/// of them; and no server gives back parts without being asked to.
const MOST_PARTS: u32 = 3;

/// How often something may come near a secret in one run: no chance any more,
/// and not yet a part. Whoever tries what a secret may be comes near it with
/// many a try, and with each once he knows how it begins; nothing else does so
/// often.
const MOST_NEAR: u64 = 100_000;

/// Why nothing more is let in.
pub(crate) const GUESSED: &str =
    "parts of secrets came back, or what is nearly one, as if somebody were guessing them";

/// What attaching secrets and hiding them needs.
pub(crate) struct Keeper {
    vault: Arc<dyn Vault>,
    placeholders: Vec<Placeholder>,
    readers: Arc<Semaphore>,
    gone: RefCell<Gone>,
}

/// What left the machine.
#[derive(Default)]
struct Gone {
    /// In the order in which they left; their numbers stay.
    values: Vec<(String, Rc<Secret>)>,
    places: HashSet<(Target, u16)>,
    /// How many answers each service's secret was found in.
    returned: HashMap<String, u32>,
    /// How many parts were found.
    parts: u32,
    /// How often something came near.
    near: u64,
    forms: Option<Arc<Forms>>,
}

impl Keeper {
    pub(crate) fn new(credentials: Credentials) -> Self {
        Self {
            vault: credentials.vault,
            placeholders: credentials.placeholders,
            readers: Arc::new(Semaphore::new(MOST_READERS)),
            gone: RefCell::default(),
        }
    }

    /// The secret of `service` as it is now.
    pub(crate) async fn secret(&self, service: &str) -> Result<Rc<Secret>, SecretError> {
        if self.is_guessed_at() {
            return Err(SecretError::Withdrawn(GUESSED.to_owned()));
        }
        if self.gone.borrow().returned.get(service) > Some(&MOST_ANSWERS) {
            let why = format!("it came back in more than {MOST_ANSWERS} answers");
            return Err(SecretError::Withdrawn(why));
        }
        let late = || SecretError::Failed("it takes too long".to_owned());
        let secret = if self.vault.may_block(service) {
            let reading = tokio::time::timeout(READING_TIME, self.read(service)).await;
            reading.unwrap_or_else(|_| Err(late()))?
        } else {
            self.vault.secret(service)?
        };
        if secret.expose().len() < SHORTEST {
            let why = format!("it is shorter than {SHORTEST} characters and could not be hidden");
            return Err(SecretError::Malformed(why));
        }
        Ok(Rc::new(secret))
    }

    /// On a thread of its own.
    async fn read(&self, service: &str) -> Result<Secret, SecretError> {
        let ended = || SecretError::Failed("the reader broke off".to_owned());
        let place = Arc::clone(&self.readers).acquire_owned().await;
        let place = place.map_err(|_| ended())?;
        let vault = Arc::clone(&self.vault);
        let service = service.to_owned();
        let reading = tokio::task::spawn_blocking(move || {
            // A reader that takes too long keeps its place until it is done.
            let _place = place;
            vault.secret(&service)
        });
        reading.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Whether a value can be remembered if it leaves.
    pub(crate) fn check_room(&self, service: &str, secret: &Secret) -> Result<(), SecretError> {
        if self.gone.borrow().has_room(service, secret) {
            return Ok(());
        }
        let why = format!("{MOST_VALUES} different secrets have left in this run");
        Err(SecretError::Failed(why))
    }

    /// Notes what was found in an answer. Returns its service.
    pub(crate) fn returned(&self, find: Find) -> Option<String> {
        let mut gone = self.gone.borrow_mut();
        let gone = &mut *gone;
        let service = gone.values.get(find.value)?.0.clone();
        let count = if find.is_whole {
            gone.returned.entry(service.clone()).or_default()
        } else {
            &mut gone.parts
        };
        *count = count.saturating_add(1);
        Some(service)
    }

    /// Notes that something in answers came near a secret.
    pub(crate) fn came_near(&self, times: u64) {
        let mut gone = self.gone.borrow_mut();
        gone.near = gone.near.saturating_add(times);
    }

    /// Whether so many parts were found, or something came near so often, that
    /// somebody must be guessing. What is hidden tells him whether he is right,
    /// so nothing is let in any more from where that may be seen.
    pub(crate) fn is_guessed_at(&self) -> bool {
        let gone = self.gone.borrow();
        gone.parts > MOST_PARTS || gone.near > MOST_NEAR
    }

    /// Notes that a secret is about to leave with `attempt`. What comes back is
    /// scrubbed of it from here on.
    pub(crate) fn leaves(&self, service: &str, secret: &Rc<Secret>, attempt: &Attempt) {
        let place = (attempt.target.clone(), attempt.port);
        self.gone.borrow_mut().places.insert(place);
        self.hide(service, secret);
    }

    /// Reads those of these services' secrets that are not known yet, so that
    /// they are hidden in what comes: a server may have kept one that another
    /// run sent. Where there is none, none was sent.
    pub(crate) async fn learn<'a>(
        &self,
        services: &[&'a str],
    ) -> Result<(), (&'a str, SecretError)> {
        for service in services.iter().copied() {
            if self.gone.borrow().has_any_of(service) {
                continue;
            }
            match self.secret(service).await {
                Ok(secret) => {
                    let room = self.check_room(service, &secret);
                    room.map_err(|why| (service, why))?;
                    self.hide(service, &secret);
                }
                Err(SecretError::Missing(_) | SecretError::Malformed(_)) => {}
                Err(why) => return Err((service, why)),
            }
        }
        Ok(())
    }

    /// Hides a secret in all that comes from here on.
    fn hide(&self, service: &str, secret: &Rc<Secret>) {
        let mut gone = self.gone.borrow_mut();
        if gone.remember(service, secret) {
            let hidden: Vec<Hidden<'_>> = gone
                .values
                .iter()
                .map(|(service, secret)| Hidden {
                    value: secret.expose(),
                    shown: self.shown_for(service),
                })
                .collect();
            let forms = match &gone.forms {
                Some(known) => Forms::grown(known, &hidden),
                None => Forms::of_secrets(&hidden),
            };
            gone.forms = Some(Arc::new(forms));
        }
    }

    /// Whether a secret went to where `attempt` leads.
    pub(crate) fn sent_to(&self, attempt: &Attempt) -> bool {
        let place = (attempt.target.clone(), attempt.port);
        self.gone.borrow().places.contains(&place)
    }

    /// Every form of the secrets that left so far. It is another one when
    /// there is a new secret among them.
    pub(crate) fn forms(&self) -> Option<Arc<Forms>> {
        self.gone.borrow().forms.clone()
    }

    fn shown_for(&self, service: &str) -> &str {
        let mut all = self.placeholders.iter();
        let own = all.find(|placeholder| placeholder.service == service);
        own.map_or(REDACTED, |placeholder| placeholder.text.as_str())
    }
}

impl Gone {
    /// Whether the value is new.
    fn remember(&mut self, service: &str, secret: &Rc<Secret>) -> bool {
        if self.knows(service, secret) {
            return false;
        }
        self.values.push((service.to_owned(), Rc::clone(secret)));
        true
    }

    fn has_room(&self, service: &str, secret: &Secret) -> bool {
        self.values.len() < MOST_VALUES || self.knows(service, secret)
    }

    fn has_any_of(&self, service: &str) -> bool {
        self.values.iter().any(|(own, _)| own == service)
    }

    fn knows(&self, service: &str, secret: &Secret) -> bool {
        let mut known = self.values.iter();
        known.any(|(own, value)| own == service && **value == *secret)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g5_what_could_not_be_remembered_does_not_leave() {
        let mut gone = Gone::default();
        let value = |number: usize| Rc::new(Secret::new(format!("secret-{number}")));
        for number in 0..MOST_VALUES {
            assert!(gone.has_room("forge", &value(number)), "{number}");
            assert!(gone.remember("forge", &value(number)));
        }
        assert!(!gone.has_room("forge", &value(MOST_VALUES)));
        assert!(gone.has_room("forge", &value(0)), "it left before");
        assert!(!gone.remember("forge", &value(0)));
        assert_eq!(gone.values.len(), MOST_VALUES);
    }
}
