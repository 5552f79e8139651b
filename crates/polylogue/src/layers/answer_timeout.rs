//! A default answer to the questions of an agent, after a time limit.

use std::sync::Arc;
use std::time::Duration;

use polylogue_core::{Act, Agent, AnyAgent, DefaultAnswer, InputRequest, Result, Turn};

use crate::tools::approval::is_refusal;

/// An agent whose questions to its person have a time limit: when it is up, a default answer counts. For questions that ask for
/// approval it counts only if it [refuses](is_refusal), such as `no`; with any other, these wait without a limit.
///
/// The time is wall-clock time, from when the question was asked. It is in the log with the question, so that it does not
/// begin again when the conversation is resumed, and it passes while no process runs the conversation: the default answer then counts
/// when it is resumed.
///
/// ```
/// use std::time::Duration;
/// use polylogue::Human;
/// use polylogue::layers::AnswerTimeout;
///
/// let pat = AnswerTimeout::new(Human::new("Pat")?, Duration::from_secs(600), "Go ahead.");
/// # Ok::<(), polylogue::kernel::data::NameError>(())
/// ```
#[derive(Debug, Clone)]
pub struct AnswerTimeout {
    agent: AnyAgent,
    default: DefaultAnswer,
}

impl AnswerTimeout {
    /// Wraps `agent`: its questions are answered by `answer` after `limit`.
    pub fn new(agent: impl Agent, limit: Duration, answer: impl Into<Arc<str>>) -> Self {
        let after_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        Self { agent: AnyAgent::new(agent), default: DefaultAnswer { after_ms, text: answer.into() } }
    }
}

impl Agent for AnswerTimeout {
    forward_agent!(agent: name, description, sub_agents, background_agent);

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        Ok(match self.agent.act(turn).await? {
            Act::Ask(input)
                if input.default.is_none() && (input.call.is_none() || is_refusal(&self.default.text)) =>
            {
                Act::Ask(InputRequest { default: Some(self.default.clone()), ..input })
            }
            act => act,
        })
    }
}
