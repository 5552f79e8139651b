//! Switch and repeat.

use std::fmt;
use std::sync::Arc;

use polylogue_core::{Act, Agent, Error, Layer, Message, Name, NameError, Result, Turn};

use super::{ask, labelled, named};

/// Routes each message to one of several agents, whose reply is the reply of the switch.
///
/// For an if-else, choose between two labels.
#[derive(Clone)]
pub struct Switch {
    name: Name,
    choose: Arc<dyn Fn(&Message) -> String + Send + Sync>,
    cases: Vec<Layer>,
    otherwise: Option<Layer>,
}

impl Switch {
    /// A switch without cases. `choose` returns the label of the case, and must be deterministic.
    ///
    /// # Errors
    /// When the name is illegal.
    pub fn new<L: Into<String>>(
        name: &str,
        choose: impl Fn(&Message) -> L + Send + Sync + 'static,
    ) -> Result<Self, NameError> {
        let choose = Arc::new(move |message: &Message| choose(message).into());
        Ok(Self { name: Name::new(name)?, choose, cases: Vec::new(), otherwise: None })
    }

    /// Adds a case.
    #[must_use]
    pub fn case(mut self, label: &str, agent: impl Agent) -> Self {
        self.cases.push(labelled(label, agent));
        self
    }

    /// Sets the agent for messages without a case. By default they are passed on unchanged.
    #[must_use]
    pub fn otherwise(self, agent: impl Agent) -> Self {
        Self { otherwise: Some(named(agent)), ..self }
    }
}

impl Agent for Switch {
    fn name(&self) -> &Name {
        &self.name
    }

    fn layers(&self) -> Vec<Layer> {
        self.cases.iter().chain(&self.otherwise).cloned().collect()
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let message = turn.message();
        let chosen = (self.choose)(&message);
        let case = self.cases.iter().find(|case| *case.label == *chosen).or(self.otherwise.as_ref());
        Ok(Act::Say(match case {
            Some(case) => ask(turn, case, message).await?.parts,
            None => message.parts,
        }))
    }
}

impl fmt::Debug for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Switch")
            .field("name", &self.name)
            .field("cases", &self.cases)
            .field("otherwise", &self.otherwise)
            .finish_non_exhaustive()
    }
}

/// An agent called in a loop: each round receives the reply of the round before.
#[derive(Clone)]
pub struct Repeat {
    name: Name,
    body: Layer,
    rounds: usize,
    until: Option<Arc<Over>>,
    strict: bool,
}

type Over = dyn Fn(&Message) -> bool + Send + Sync;

impl Repeat {
    /// Calls `agent` for at most `rounds` rounds.
    ///
    /// # Errors
    /// When the name is illegal.
    pub fn new(name: &str, agent: impl Agent, rounds: usize) -> Result<Self, NameError> {
        Ok(Self { name: Name::new(name)?, body: named(agent), rounds, until: None, strict: false })
    }

    /// Sets the condition that ends the loop, checked after each round. Must be deterministic.
    #[must_use]
    pub fn until(self, over: impl Fn(&Message) -> bool + Send + Sync + 'static) -> Self {
        Self { until: Some(Arc::new(over)), ..self }
    }

    /// Fails if the condition does not hold after the last round. Default: the last reply is returned.
    #[must_use]
    pub fn or_fails(self) -> Self {
        Self { strict: true, ..self }
    }
}

impl Agent for Repeat {
    fn name(&self) -> &Name {
        &self.name
    }

    fn layers(&self) -> Vec<Layer> {
        vec![self.body.clone()]
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let mut message = turn.message();
        for _ in 0..self.rounds {
            message = ask(turn, &self.body, message).await?;
            if self.until.as_ref().is_some_and(|over| over(&message)) {
                return Ok(Act::Say(message.parts));
            }
        }
        match self.strict {
            true => Err(Error::Agent(format!("`{}` is not over after {} rounds", self.name, self.rounds))),
            false => Ok(Act::Say(message.parts)),
        }
    }
}

impl fmt::Debug for Repeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Repeat")
            .field("name", &self.name)
            .field("body", &self.body)
            .field("rounds", &self.rounds)
            .finish_non_exhaustive()
    }
}
