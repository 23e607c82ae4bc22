//! Asking the operator about hosts that no rule allows, while the command that
//! wants them waits.
//!
//! Nothing is decided here: an approval becomes a rule of a policy that takes
//! the place of the one in force, and the connection is judged by that.

use std::collections::VecDeque;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use ringfence_egress::{Answer, Ask, HOLD, Question};
use ringfence_policy::{AllowRule, Sourced, approval};

use crate::project::{Project, RuleEntry, RuleList};

/// After so many in a row that nobody answered, nobody is asked any more.
const MOST_UNANSWERED: u32 = 3;
/// How long a question is only shown. Code inside sees what is typed to it, and
/// can make a question come in the middle of a word that ends like an answer.
const READING: Duration = Duration::from_secs(1);

/// How far an approval goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// It stays refused.
    No,
    /// For the connections that wait.
    Once,
    /// For this run.
    Run,
    /// For this run, and for all later ones of the project.
    Project,
}

/// Puts questions to somebody: a terminal, or another front end. Nothing here
/// may wait; the supervisor attends to its sandbox meanwhile.
pub trait Asker {
    /// Shows a question, `host:port` in canonical form.
    fn ask(&mut self, destination: &str);
    /// From now on it may be answered. What was typed before is no answer.
    fn open(&mut self);
    /// Readable once there may be an answer.
    fn input(&self) -> BorrowedFd<'_>;
    /// The answer, once it is there.
    fn answer(&mut self) -> Option<Permission>;
    /// Takes a question back that was not answered.
    fn withdraw(&mut self);
    /// Says what became of an approval after the run.
    fn tell(&mut self, text: &str);
}

/// Who is asked, and whose rules an answer may change.
pub struct Asking {
    /// Whom.
    pub asker: Box<dyn Asker>,
    /// The project of the run.
    pub project: Project,
    /// How long a question waits for its answer, if not as long as clients do.
    pub hold: Option<Duration>,
}

/// The supervisor's side of the questions.
pub(crate) struct Desk {
    asking: Asking,
    questions: Receiver<(Instant, Question)>,
    bell: PipeReader,
    waiting: VecDeque<(Instant, Question)>,
    current: Option<Current>,
    unanswered: u32,
    for_project: Vec<RuleEntry>,
}

/// The question that is shown.
struct Current {
    question: Question,
    /// When it is taken back.
    until: Instant,
    /// When it may be answered, if not yet.
    opens: Option<Instant>,
}

/// What is to be put in force before a question is answered.
pub(crate) enum Granted {
    Nothing,
    ForRun(Box<Sourced<AllowRule>>, Question),
}

impl Desk {
    /// A desk, and how questions get there.
    pub(crate) fn open(asking: Asking) -> io::Result<(Self, Ask)> {
        let (bell, ring) = io::pipe()?;
        let (sender, questions) = channel();
        let hold = asking.hold.map_or(HOLD, |hold| hold.min(HOLD));
        let desk = Self {
            asking,
            questions,
            bell,
            waiting: VecDeque::new(),
            current: None,
            unanswered: 0,
            for_project: Vec::new(),
        };
        Ok((
            desk,
            Arc::new(move |question| put(&sender, &ring, (Instant::now() + hold, question))),
        ))
    }

    pub(crate) fn is_asking(&self) -> bool {
        self.current.is_some()
    }

    /// Readable once a question came.
    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Readable once there may be an answer; none before it may be given.
    pub(crate) fn input(&self) -> Option<BorrowedFd<'_>> {
        let is_open = self.current.as_ref()?.opens.is_none();
        is_open.then(|| self.asking.asker.input())
    }

    /// When there is something to do about the question.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let current = self.current.as_ref()?;
        Some(current.opens.unwrap_or(current.until).min(current.until))
    }

    /// Takes in the questions that came.
    pub(crate) fn receive(&mut self) {
        // As many as can wait at a time.
        let _ = self.bell.read(&mut [0; 64]);
        self.waiting.extend(self.questions.try_iter());
    }

    /// Whether there is a question to put now.
    pub(crate) fn has_more(&mut self) -> bool {
        let now = Instant::now();
        let is_over = self.unanswered >= MOST_UNANSWERED;
        // Dropped, they are answered with no.
        self.waiting.retain(|(until, _)| !is_over && *until > now);
        self.current.is_none() && !self.waiting.is_empty()
    }

    /// Puts the next question.
    pub(crate) fn put_next(&mut self) {
        let Some((until, question)) = self.waiting.pop_front() else {
            return;
        };
        self.current = Some(Current {
            question,
            until,
            opens: None,
        });
        self.show();
    }

    /// Shows the question, again after the terminal was somebody else's.
    pub(crate) fn show(&mut self) {
        if let Some(current) = &mut self.current {
            let destination = RuleEntry::of(&current.question.target, current.question.port);
            self.asking.asker.ask(destination.as_str());
            current.opens = Some(Instant::now() + READING);
        }
    }

    /// Lets the question be answered when it could be read, and takes it back
    /// if its time is up.
    pub(crate) fn keep_time(&mut self) {
        let Some(current) = &mut self.current else {
            return;
        };
        let now = Instant::now();
        if now >= current.until {
            self.unanswered += 1;
            self.withdraw();
        } else if current.opens.is_some_and(|at| now >= at) {
            current.opens = None;
            self.asking.asker.open();
        }
    }

    /// Takes the question back, which is a no.
    pub(crate) fn withdraw(&mut self) {
        if self.current.take().is_some() {
            self.asking.asker.withdraw();
        }
    }

    /// Reads the answer, if it is there.
    pub(crate) fn take_answer(&mut self) -> Granted {
        let Some(permission) = self.asking.asker.answer() else {
            return Granted::Nothing;
        };
        self.unanswered = 0;
        let Some(current) = self.current.take() else {
            return Granted::Nothing;
        };
        self.grant(current.question, permission)
    }

    fn grant(&mut self, question: Question, permission: Permission) -> Granted {
        let for_what = match permission {
            Permission::No => "",
            Permission::Once => "once",
            Permission::Run => "for this run",
            Permission::Project => "for this project",
        };
        let rule = approval(&question.target, question.port, for_what).map(Box::new);
        match (permission, rule) {
            (Permission::No, _) | (_, None) => question.answer(Answer::No),
            (Permission::Once, Some(rule)) => question.answer(Answer::Once(rule)),
            (Permission::Run, Some(rule)) => return Granted::ForRun(rule, question),
            (Permission::Project, Some(rule)) => {
                let entry = RuleEntry::of(&question.target, question.port);
                self.for_project.push(entry);
                return Granted::ForRun(rule, question);
            }
        }
        Granted::Nothing
    }

    /// Writes down what was approved for the project. When nothing runs inside
    /// any more, which could be beside us while the file is changed.
    pub(crate) fn close(mut self) {
        if self.for_project.is_empty() {
            return;
        }
        let project = &self.asking.project;
        let text = match project.add(RuleList::Allow, &self.for_project) {
            Ok(change) if change.trusted => format!("added to {}", change.path.display()),
            Ok(change) => format!(
                "added to {0}, which is not trusted and not used; to look at it and use it: ringfence trust {0}",
                change.path.display()
            ),
            Err(error) => format!("not added to the project: {error}"),
        };
        self.asking.asker.tell(&text);
    }
}

fn put(sender: &Sender<(Instant, Question)>, mut ring: &PipeWriter, question: (Instant, Question)) {
    if sender.send(question).is_ok() {
        let _ = ring.write(&[1]);
    }
}
