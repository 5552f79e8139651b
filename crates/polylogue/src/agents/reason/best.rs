//! The best of several drafts.

use std::fmt::Write;
use std::sync::Arc;

use polylogue_core::{Act, Agent, AnyAgent, Chat, Layer, Message, Name, Result, Start, Turn};

use super::{alone, came_of};

/// An agent that is asked several times for the same reply, and a critic who chooses one. The chosen one is said; the others
/// stand in the log.
///
/// It has the name of the agent that proposes, which sees the conversation each time as if it had proposed nothing yet. A critic
/// whose answer holds no number of an option is asked again; if that is not enough, the first option is taken.
#[derive(Debug, Clone)]
pub struct Best {
    proposer: AnyAgent,
    critic: AnyAgent,
    options: usize,
    retries: u32,
}

impl Best {
    /// How often the critic is asked again, unless it is told otherwise.
    pub const DEFAULT_RETRIES: u32 = 2;

    /// The best of so many replies of `proposer`, at least 1; of one, nobody is asked.
    #[must_use]
    pub fn of(options: usize, proposer: impl Agent, critic: impl Agent) -> Self {
        let (proposer, critic) = (AnyAgent::new(proposer), AnyAgent::new(critic));
        Self { proposer, critic, options: options.max(1), retries: Self::DEFAULT_RETRIES }
    }

    /// Sets how often a critic who chooses nothing is asked again.
    #[must_use]
    pub fn retries(self, retries: u32) -> Self {
        Self { retries, ..self }
    }

    /// The conversation around, for one reply.
    fn room(&self, turn: &Turn<'_>) -> Result<Chat> {
        let prompt = turn.cue().prompt.clone();
        let opening = move |start: &Start<'_>| {
            let around = start.around.into_iter().flat_map(|chat| chat.room());
            let seen = around.filter(|line| line.is_seen_by(start.who)).map(|line| line.message.clone());
            let told = prompt.iter().map(|prompt| Message::text(Name::user(), Arc::clone(prompt)));
            seen.chain(told).collect()
        };
        alone(&self.proposer).opening_from(opening).build()
    }

    /// Which option the critic chooses.
    async fn choose(&self, turn: &mut Turn<'_>, options: &[Arc<str>]) -> Result<usize> {
        let mut listed = format!("Choose the best of these {} options.\n", options.len());
        for (number, option) in (1..).zip(options) {
            let _ = write!(listed, "\nOption {number}:\n{option}\n");
        }
        let form = format!("Answer with the number of the option, from 1 to {}, and why.", options.len());
        let mut asked = format!("{listed}\n{form}");
        for _ in 0..=self.retries {
            let answer = turn.ask(&self.critic, asked).await?;
            if let Some(number) =
                number(&answer.plain()).filter(|number| (1..=options.len()).contains(number))
            {
                return Ok(number - 1);
            }
            asked = format!("That is none of the options. {form}");
        }
        Ok(0)
    }
}

impl Agent for Best {
    fn name(&self) -> &Name {
        self.proposer.name()
    }

    fn description(&self) -> &str {
        self.proposer.description()
    }

    fn layers(&self) -> Vec<Layer> {
        vec![Layer::of(&self.critic)]
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let room = self.room(turn)?;
        let task = turn.transcript().task().to_owned();
        let mut options = Vec::new();
        for _ in 0..self.options {
            let option = came_of(turn, &room, &task).await?;
            if !option.trim().is_empty() {
                options.push(option);
            }
        }
        let chosen = if options.len() > 1 { self.choose(turn, &options).await? } else { 0 };
        Ok(options.into_iter().nth(chosen).map_or(Act::Pass, Act::say))
    }
}

/// The first whole number in a text.
fn number(text: &str) -> Option<usize> {
    text.split(|c: char| !c.is_ascii_digit()).find(|digits| !digits.is_empty())?.parse().ok()
}
