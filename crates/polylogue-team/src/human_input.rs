//! Human input before an agent replies, and messages that end the chat for it.

use polylogue::layers::{AnswerTimeout, HumanInput};
use polylogue::stop;
use polylogue::{Agent, Result};
use polylogue_config::Config;

use crate::duration::Time;
use crate::stop::{Matches, Says};
use crate::text::compile_regex;

/// When a person is asked for input before an agent replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Config)]
pub enum HumanInputMode {
    /// In every turn.
    Always,
    /// When the chat would end: at a terminating message, and at the limit on automatic replies.
    Terminate,
    /// Never.
    Never,
}

/// The answer to a question when there is none in time.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
pub struct DefaultAnswer {
    /// Time limit, such as `10 min`, from when the question is asked. It passes also while no process runs the conversation.
    pub timeout: Time,
    /// The answer.
    pub text: String,
}

impl DefaultAnswer {
    /// `agent`, whose questions have this default answer.
    pub(crate) fn around(&self, agent: impl Agent) -> AnswerTimeout {
        AnswerTimeout::new(agent, self.timeout.into(), self.text.as_str())
    }
}

/// Received message that ends the chat.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "", by_shape)]
pub enum TerminateOn {
    /// One that is this text.
    Text(String),
    /// One that meets a condition.
    Condition(TerminatingMessage),
}

/// Which message ends the chat for an agent.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "TerminateOn")]
pub enum TerminatingMessage {
    /// One that contains a text.
    Says(Says),
    /// One that matches a regular expression.
    Matches(Matches),
}

impl HumanInputMode {
    /// The layer that asks.
    pub(crate) fn build(self) -> HumanInput {
        match self {
            Self::Always => HumanInput::always(),
            Self::Terminate => HumanInput::terminate(),
            Self::Never => HumanInput::never(),
        }
    }
}

impl TerminateOn {
    /// `layer`, which ends the chat at this message.
    pub(crate) fn add_to(&self, layer: HumanInput) -> Result<HumanInput> {
        Ok(match self {
            Self::Text(text) => layer.terminate_on(stop::says(text).whole()),
            Self::Condition(TerminatingMessage::Says(says)) => layer.terminate_on(says.build()),
            Self::Condition(TerminatingMessage::Matches(Matches { pattern, by })) => {
                let (regex, by) = (compile_regex(pattern)?, by.clone());
                layer.terminate_when(pattern, move |line| {
                    let from = &line.message.from;
                    (by.is_empty() || by.contains(from)) && regex.is_match(&line.message.text())
                })
            }
        })
    }
}
