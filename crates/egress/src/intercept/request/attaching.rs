//! From a request that is allowed to one with its credentials, written down.

use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt;
use hyper::body::Body;
use ringfence_policy::{Attach, Attachment, attachments, services_of_host};

use super::super::body::Kept;
use super::draft::Draft;
use super::finder::Finder;
use super::watched::Alarm;
use crate::attempt::Attempt;
use crate::intercept::Intercepted;
use crate::intercept::answer::Answer;
use crate::intercept::keeper::{GUESSED, Keeper};
use crate::memory::{Reservation, Spent, Use};
use crate::secret::{Secret, SecretError};
use crate::secrets::is_framed;

/// The most of a body that is read to put a secret in.
const LONGEST_BODY: usize = 1024 * 1024;
/// How often a policy may change while one request's secrets are read.
const MOST_CHANGES: usize = 4;

/// Why there is no request where secrets are guessed at.
const WITHDRAWN: &str = "credential-withdrawn";
/// Why a request whose secret cannot stand where it should does not leave.
const UNFIT: &str = "credential-unavailable";

/// A request that may leave.
pub(super) struct Attached {
    pub(super) draft: Draft,
    /// The body, unless the draft has it.
    pub(super) body: Option<Kept>,
    /// The room that the draft's body takes.
    pub(super) room: Option<Reservation>,
    /// Services whose placeholders may be in the body and what follows it.
    pub(super) bound: Vec<String>,
}

/// Attaches what the policy binds to the request, and records that it leaves.
pub(super) async fn attach(
    draft: Draft,
    body: Kept,
    attempt: &Attempt,
    finder: &Finder,
    connection: &Intercepted,
) -> Result<Attached, Answer> {
    let exit = &connection.exit;
    let Some(keeper) = exit.keeper() else {
        refuse_unkept(attempt, connection)?;
        exit.admit_with(attempt, None)?;
        return Ok(Attached {
            draft,
            body: Some(body),
            room: None,
            bound: Vec::new(),
        });
    };
    let mut attaching = Attaching {
        draft,
        body: Some(body),
        room: None,
        attempt,
        finder,
        connection,
        keeper,
    };
    for _ in 0..MOST_CHANGES {
        if let Some((draft, bound)) = attaching.attach().await? {
            let Attaching { body, room, .. } = attaching;
            return Ok(Attached {
                draft,
                body,
                room,
                bound,
            });
        }
    }
    let phrase = "the policy changes all the time";
    Err(Answer::failed(StatusCode::SERVICE_UNAVAILABLE, phrase))
}

/// A policy that came later may bind secrets in a sandbox that keeps none.
fn refuse_unkept(attempt: &Attempt, connection: &Intercepted) -> Result<(), Answer> {
    let policy = connection.exit.policy();
    let bound = attachments(&policy, &attempt.request(), connection.scheme);
    match bound.first() {
        Some(one) => {
            connection.exit.admit_first(attempt)?;
            let why = "this run started without credentials";
            let why = SecretError::Missing(why.to_owned());
            let service = &one.credential.service;
            Err(unavailable(
                service,
                (why.code(), &why),
                attempt,
                connection,
            ))
        }
        None => Ok(()),
    }
}

/// The request does not leave without what it needs, nor with a placeholder
/// instead.
fn unavailable(
    service: &str,
    (code, why): (&'static str, &dyn std::fmt::Display),
    attempt: &Attempt,
    connection: &Intercepted,
) -> Answer {
    let phrase = format!("the credential {service} is not available: {why}");
    let exit = &connection.exit;
    let refused = exit.refuse(attempt, code, &phrase);
    Answer::refused_as(StatusCode::BAD_GATEWAY, &refused)
}

struct Attaching<'a> {
    /// As the client sent it.
    draft: Draft,
    body: Option<Kept>,
    room: Option<Reservation>,
    attempt: &'a Attempt,
    finder: &'a Finder,
    connection: &'a Intercepted,
    keeper: &'a Keeper,
}

/// A secret that was put in.
struct Put {
    service: String,
    how: String,
    secret: Rc<Secret>,
}

impl Attaching<'_> {
    /// The request with its credentials and the services bound to it; `None`
    /// when the policy changed meanwhile.
    async fn attach(&mut self) -> Result<Option<(Draft, Vec<String>)>, Answer> {
        let exit = &self.connection.exit;
        let generation = exit.generation();
        // No secret is read for a request that is not allowed.
        exit.admit_first(self.attempt)?;
        self.refuse_guesses()?;
        let policy = exit.policy();
        let scheme = self.connection.scheme;
        let bound = attachments(&policy, &self.attempt.request(), scheme);
        let services = services_of(bound.iter());
        self.check_head(&services)?;
        self.read_body(&bound).await?;
        self.check_body(&services)?;
        let (draft, put) = self.put_all(&bound).await?;
        self.learn_others(&put).await?;
        if exit.generation() != generation {
            return Ok(None);
        }
        for one in &put {
            let room = self.keeper.check_room(&one.service, &one.secret);
            room.map_err(|why| self.unavailable(&one.service, why.code(), &why))?;
        }
        exit.admit_with(self.attempt, note(&put).as_deref())?;
        for one in &put {
            self.keeper.leaves(&one.service, &one.secret, self.attempt);
        }
        let services = self.services_in_body(&bound);
        Ok(Some((draft, services)))
    }

    /// Where secrets are guessed at, no answer is let in.
    fn refuse_guesses(&self) -> Result<(), Answer> {
        if !self.keeper.is_guessed_at() {
            return Ok(());
        }
        let exit = &self.connection.exit;
        let refused = exit.refuse(self.attempt, WITHDRAWN, GUESSED);
        Err(Answer::refused_as(StatusCode::BAD_GATEWAY, &refused))
    }

    /// The host may hold others than those that it gets now.
    async fn learn_others(&self, put: &[Put]) -> Result<(), Answer> {
        let exit = &self.connection.exit;
        let policy = exit.policy();
        let mut services = services_of_host(&policy, &self.attempt.request());
        services.retain(|service| put.iter().all(|one| one.service != *service));
        let learnt = self.keeper.learn(&services).await;
        learnt.map_err(|(service, why)| self.unavailable(service, why.code(), &why))
    }

    /// Content that tells lengths passes as it comes, as streams of calls must:
    /// no secret is put into it, and a placeholder that waits for one is
    /// refused there.
    fn services_in_body(&self, bound: &[Attachment<'_>]) -> Vec<String> {
        let waits = |one: &&Attachment<'_>| is_in_body(one) && self.is_framed();
        let waiting: Vec<&str> = services_of(bound.iter().filter(waits));
        let all = services_of(bound.iter());
        let others = all.into_iter().filter(|own| !waiting.contains(own));
        others.map(str::to_owned).collect()
    }

    fn is_framed(&self) -> bool {
        is_framed(&self.draft.field(CONTENT_TYPE.as_str()))
    }

    /// No placeholder of another credential may be in the head.
    fn check_head(&self, services: &[&str]) -> Result<(), Answer> {
        let Draft {
            target, headers, ..
        } = &self.draft;
        let checked = self.finder.check_head(target, headers, services);
        checked.map_err(|found| self.alarm().raise(&found).into())
    }

    fn alarm(&self) -> Rc<Alarm> {
        Alarm::new(Rc::clone(&self.connection.exit), self.attempt.clone())
    }

    /// Reads the body as a whole where a secret may go into it.
    async fn read_body(&mut self, bound: &[Attachment<'_>]) -> Result<(), Answer> {
        if !bound.iter().any(is_in_body) || self.is_framed() {
            return Ok(());
        }
        if let Some(body) = self.body.take_if(|body| !body.is_end_stream()) {
            let exit = &self.connection.exit;
            let room = exit.memory().take_soon(Use::Body).await;
            self.room = Some(room.map_err(|Spent| Answer::spent(exit, self.attempt))?);
            self.draft.body = Some(self.collect(body).await?);
        }
        Ok(())
    }

    /// Nor in a body that was read as a whole, and is not watched on its way.
    fn check_body(&self, services: &[&str]) -> Result<(), Answer> {
        let (Some(body), Some(mut watch)) = (&self.draft.body, self.finder.watch(services)) else {
            return Ok(());
        };
        let checked = watch.feed(body);
        checked.map_err(|found| self.alarm().raise(&found).into())
    }

    async fn collect(&self, mut body: Kept) -> Result<Bytes, Answer> {
        let too_large = body.size_hint().lower() > LONGEST_BODY as u64;
        let mut whole = BytesMut::new();
        while !too_large && let Some(frame) = body.frame().await {
            let broken = |_| Answer::failed(StatusCode::BAD_REQUEST, "the body breaks off");
            if let Ok(data) = frame.map_err(broken)?.into_data() {
                whole.extend_from_slice(&data);
            }
            if whole.len() > LONGEST_BODY {
                break;
            }
        }
        if too_large || whole.len() > LONGEST_BODY {
            let phrase = "a secret may go into the body, and it is too large to look through";
            let exit = &self.connection.exit;
            let refused = exit.refuse(self.attempt, "body-too-large", phrase);
            return Err(Answer::refused_as(StatusCode::PAYLOAD_TOO_LARGE, &refused));
        }
        Ok(whole.freeze())
    }

    async fn put_all(&self, bound: &[Attachment<'_>]) -> Result<(Draft, Vec<Put>), Answer> {
        let mut draft = self.draft.clone();
        let mut put = Vec::new();
        for attachment in bound {
            if !draft.wants(attachment, self.finder) {
                continue;
            }
            let service = attachment.credential.service.as_str();
            let read = self.keeper.secret(service).await;
            let secret = read.map_err(|why| self.unavailable(service, why.code(), &why))?;
            draft
                .put(attachment, &secret, self.finder)
                .map_err(|why| self.unavailable(service, UNFIT, &why))?;
            put.push(Put {
                service: service.to_owned(),
                how: attachment.binding.attach.to_string(),
                secret,
            });
        }
        Ok((draft, put))
    }

    fn unavailable(
        &self,
        service: &str,
        code: &'static str,
        why: &dyn std::fmt::Display,
    ) -> Answer {
        unavailable(service, (code, why), self.attempt, self.connection)
    }
}

fn is_in_body(attachment: &Attachment<'_>) -> bool {
    matches!(
        attachment.binding.attach,
        Attach::Placeholder { body: true }
    )
}

fn services_of<'a: 'b, 'b>(bound: impl Iterator<Item = &'b Attachment<'a>>) -> Vec<&'a str> {
    let services = bound.map(|one| one.credential.service.as_str());
    services.collect()
}

/// What the record says of the credentials.
fn note(put: &[Put]) -> Option<String> {
    let each = put
        .iter()
        .map(|one| format!("{} ({})", one.service, one.how));
    (!put.is_empty()).then(|| each.collect::<Vec<_>>().join(", "))
}
