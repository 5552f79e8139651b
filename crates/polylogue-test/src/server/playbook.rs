//! Which answer a request gets.

use std::sync::Arc;

use polylogue_core::text;

use super::{Answer, Received};

type Behavior = dyn Fn(&Received, usize) -> Answer + Send + Sync;

/// Chooses the answer to a request for a completion.
#[derive(Clone, derive_more::Debug)]
#[debug("Playbook {{ listed: {listed:?}, .. }}")]
pub struct Playbook {
    play: Arc<Behavior>,
    /// How many answers a list has.
    listed: usize,
}

impl Playbook {
    /// Creates a playbook: `play` chooses, given the request and how many requests for completions came before it.
    ///
    /// A `play` that does not look at the number is a pure function of the request, which is what tests need that
    /// kill and resume: [`Received::turn`] tells how far the conversation is.
    pub fn new(play: impl Fn(&Received, usize) -> Answer + Send + Sync + 'static) -> Self {
        Self { play: Arc::new(play), listed: 0 }
    }

    /// Gives the same answer every time.
    pub fn always(answer: impl Into<Answer>) -> Self {
        let answer = answer.into();
        Self::new(move |_, _| answer.clone())
    }

    /// Gives the answers one after the other, in the order in which requests arrive. A request after the last of them is a
    /// violation; [`Server::unused`](super::Server::unused) tells how many were not asked for.
    pub fn list<A: Into<Answer>>(answers: impl IntoIterator<Item = A>) -> Self {
        let answers: Vec<Answer> = answers.into_iter().map(Into::into).collect();
        let listed = answers.len();
        let play = move |_: &Received, nth: usize| {
            answers.get(nth).cloned().unwrap_or_else(|| {
                let count = answers.len();
                Answer::unexpected(format!("the script has {count} answers, and this is request {}", nth + 1))
            })
        };
        Self { play: Arc::new(play), listed }
    }

    /// Gives each agent its own answers. The agent is the first whose key is found in the system message (`""` is found in any,
    /// and where there is none); its answer is the one for this turn of its conversation ([`Received::turn`]), so that the same
    /// request gets the same answer whenever it is asked. A request of no agent, or after an agent's last answer, is a
    /// violation.
    pub fn by_agent<K, A>(agents: impl IntoIterator<Item = (K, Vec<A>)>) -> Self
    where
        K: Into<String>,
        A: Into<Answer>,
    {
        let agent = |(key, answers): (K, Vec<A>)| (key.into(), answers.into_iter().map(Into::into).collect());
        let agents: Vec<(String, Vec<Answer>)> = agents.into_iter().map(agent).collect();
        Self::new(move |received, _| answer_of_agent(&agents, received))
    }

    /// Repeats the text of the last message in every reply.
    pub fn echo() -> Self {
        Self::new(|received, _| Answer::text(received.last_text()))
    }

    pub(super) fn answer(&self, received: &Received, nth: usize) -> Answer {
        (self.play)(received, nth)
    }

    pub(super) const fn listed(&self) -> usize {
        self.listed
    }
}

fn answer_of_agent(agents: &[(String, Vec<Answer>)], received: &Received) -> Answer {
    let system = received.system().unwrap_or_default();
    let Some((key, answers)) = agents.iter().find(|(key, _)| system.contains(key.as_str())) else {
        let start = text::excerpt(&system, 80);
        return Answer::unexpected(format!("the script has no agent for the system message `{start}`"));
    };
    let turn = received.turn();
    answers.get(turn).cloned().unwrap_or_else(|| {
        let count = answers.len();
        Answer::unexpected(format!(
            "the script has {count} answers of `{key}`, and this is its turn {}",
            turn + 1
        ))
    })
}

impl<A: Into<Answer>> From<A> for Playbook {
    /// The same answer every time.
    fn from(answer: A) -> Self {
        Self::always(answer)
    }
}
