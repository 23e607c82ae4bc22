//! Questions about destinations that no rule allows, put to whoever may approve
//! them while the client waits.
//!
//! Those about one destination are one question. How many wait and how many are
//! put in all is bounded: code inside must not be able to flood whoever answers.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ringfence_policy::{AllowRule, Sourced, Target};
use tokio::sync::watch;

/// How long a client waits for an answer.
pub const HOLD: Duration = Duration::from_secs(30);
/// The most questions that wait at a time.
const MOST_WAITING: usize = 8;
/// The most that are put in one run.
const MOST_IN_ALL: usize = 64;

/// What came of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It stays refused.
    No,
    /// The connections that wait may go on, by this rule.
    Once(Box<Sourced<AllowRule>>),
    /// The policy in force is another one; it is asked again.
    Changed,
}

/// A destination that somebody wants to reach.
#[derive(Debug)]
pub struct Question {
    /// The name or address, in canonical form.
    pub target: Target,
    /// The port.
    pub port: u16,
    answer: watch::Sender<Option<Answer>>,
}

/// Takes a question to whoever answers it; must not wait.
pub type Ask = Arc<dyn Fn(Question) + Send + Sync>;

impl Question {
    /// Answers it. One that is dropped is answered with no.
    pub fn answer(self, answer: Answer) {
        let _ = self.answer.send(Some(answer));
    }
}

type Open = HashMap<(Target, u16), watch::Receiver<Option<Answer>>>;

/// The questions of a run.
pub(crate) struct Questions {
    ask: Ask,
    put: RefCell<Open>,
}

impl Questions {
    pub(crate) fn new(ask: Ask) -> Self {
        Self {
            ask,
            put: RefCell::default(),
        }
    }

    /// Asks, or waits for the answer to the same question.
    pub(crate) async fn ask(&self, target: &Target, port: u16) -> Answer {
        let Some(mut answer) = self.waiting(target, port) else {
            return Answer::No;
        };
        let answered = answer.wait_for(Option::is_some);
        match tokio::time::timeout(HOLD, answered).await {
            Ok(Ok(answer)) => answer.clone().unwrap_or(Answer::No),
            _ => Answer::No,
        }
    }

    fn waiting(&self, target: &Target, port: u16) -> Option<watch::Receiver<Option<Answer>>> {
        let mut put = self.put.borrow_mut();
        let key = (target.clone(), port);
        if let Some(known) = put.get(&key)
            && !is_used_up(known)
        {
            return Some(known.clone());
        }
        let waiting = put.values().filter(|answer| is_waiting(answer));
        if waiting.count() >= MOST_WAITING || put.len() >= MOST_IN_ALL {
            return None;
        }
        let (sender, receiver) = watch::channel(None);
        put.insert(key, receiver.clone());
        (self.ask)(Question {
            target: target.clone(),
            port,
            answer: sender,
        });
        Some(receiver)
    }
}

/// Whether an answer may still come: nobody gives one that was dropped.
fn is_waiting(answer: &watch::Receiver<Option<Answer>>) -> bool {
    answer.borrow().is_none() && answer.has_changed().is_ok()
}

/// Whether an answer was for those who waited then. A no holds for the run.
fn is_used_up(answer: &watch::Receiver<Option<Answer>>) -> bool {
    matches!(&*answer.borrow(), Some(Answer::Once(_) | Answer::Changed))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn asked() -> (Questions, Arc<Mutex<Vec<Question>>>) {
        let put: Arc<Mutex<Vec<Question>>> = Arc::default();
        let inbox = Arc::clone(&put);
        let ask = move |question| inbox.lock().unwrap().push(question);
        (Questions::new(Arc::new(ask)), put)
    }

    fn name(text: &str) -> Target {
        Target::parse(text).unwrap()
    }

    #[tokio::test]
    async fn the_same_question_is_put_once_and_its_no_remembered() {
        let (questions, put) = asked();
        let target = name("a.example.org");
        let answer = async {
            let question = put.lock().unwrap().pop().unwrap();
            question.answer(Answer::No);
        };
        let (one, other, ()) = tokio::join!(
            questions.ask(&target, 443),
            questions.ask(&target, 443),
            answer
        );
        assert_eq!((one, other), (Answer::No, Answer::No));
        assert_eq!(questions.ask(&target, 443).await, Answer::No);
        assert!(put.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_question_that_nobody_keeps_is_a_no() {
        let questions = Questions::new(Arc::new(drop));
        assert_eq!(questions.ask(&name("a.example.org"), 443).await, Answer::No);
    }

    #[test]
    fn g9_a_flood_of_questions_is_refused() {
        let (questions, put) = asked();
        for n in 0..3 * MOST_WAITING {
            let _ = questions.waiting(&name(&format!("h{n}.example.org")), 443);
        }
        assert_eq!(put.lock().unwrap().len(), MOST_WAITING);
        for n in 0..3 * MOST_IN_ALL {
            put.lock().unwrap().drain(..).for_each(drop);
            let waiting = questions.put.borrow();
            assert!(waiting.len() <= MOST_IN_ALL);
            drop(waiting);
            let _ = questions.waiting(&name(&format!("g{n}.example.org")), 443);
        }
        assert_eq!(questions.put.borrow().len(), MOST_IN_ALL);
    }
}
