//! The commands that steer conversations, whichever process runs them.

use clap::Args;
use polylogue_core::{Instruction, LimitOverrides, Name};

use super::shared::Limits;
use super::worker::OfTenant;
use crate::attachments::Attach;
use crate::error::CliError;
use crate::prompt::user_name;

#[derive(Debug, Args)]
pub(crate) struct Send {
    /// The conversation: its id, the beginning of its id, or `last`
    pub(crate) id: String,

    /// The message; `@FILE` reads it from a file, `-` from standard input
    pub(crate) text: String,

    /// Author of the message: a participant. Default: `user`
    #[arg(long = "as", value_name = "NAME", conflicts_with = "system")]
    pub(crate) speaker: Option<String>,

    /// Send the message as `system`, which is not a participant
    #[arg(long)]
    pub(crate) system: bool,

    #[command(flatten)]
    pub(crate) attach: Attach,

    #[command(flatten)]
    pub(crate) of: OfTenant,
}

#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// The conversation: its id, the beginning of its id, or `last`
    pub(crate) id: String,

    /// Abort model and tool calls in flight, instead of letting the turn end; the text of a reply that has arrived is kept
    #[arg(long)]
    pub(crate) now: bool,

    #[command(flatten)]
    pub(crate) of: OfTenant,
}

#[derive(Debug, Args)]
pub(crate) struct Pause {
    /// The conversation: its id, the beginning of its id, or `last`
    pub(crate) id: String,

    #[command(flatten)]
    pub(crate) of: OfTenant,
}

#[derive(Debug, Args)]
pub(crate) struct Next {
    /// The conversation: its id, the beginning of its id, or `last`
    pub(crate) id: String,

    /// The participant who speaks next
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) of: OfTenant,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Each number is what the conversation may use from now on: `--max-turns 4` allows 4 more turns."
)]
pub(crate) struct Raise {
    /// The conversation: its id, the beginning of its id, or `last`
    pub(crate) id: String,

    /// An agent, whose own limits are raised instead of those of the conversation
    #[arg(long, value_name = "NAME", conflicts_with_all = ["max_turns", "on_limit"])]
    pub(crate) agent: Option<String>,

    /// An open chat, by its name or its path, whose own limits are raised instead of those of the conversation
    #[arg(long, value_name = "NAME", conflicts_with_all = ["agent", "max_turns", "on_limit"])]
    pub(crate) chat: Option<String>,

    #[command(flatten)]
    pub(crate) limits: Limits,

    #[command(flatten)]
    pub(crate) of: OfTenant,
}

impl Raise {
    /// What it allows, which is something.
    pub(crate) fn more(&self) -> Result<LimitOverrides, CliError> {
        let more = self.limits.overrides();
        if more.is_empty() {
            return Err(CliError::usage("there is no limit to raise")
                .hint("name what it may use from now on, such as `--max-cost 0.50`"));
        }
        Ok(more)
    }
}

/// The user allows `more` to `agent` or to `chat`, or else to the conversation.
pub(crate) fn raising(
    agent: Option<&str>,
    chat: Option<&str>,
    more: LimitOverrides,
) -> Result<Instruction, CliError> {
    let by = user_name();
    if let Some(chat) = chat {
        return Ok(Instruction::RaiseChatLimits { chat: chat.into(), more, by });
    }
    let Some(agent) = agent else { return Ok(Instruction::RaiseLimits { more, by }) };
    let who = Name::new(agent).map_err(|error| CliError::usage(error.to_string()))?;
    Ok(Instruction::RaiseAgentLimits { who, more, by })
}

#[derive(Debug, Args)]
pub(crate) struct Waiting {
    /// Print one line of JSON for each question
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) of: OfTenant,
}

#[derive(Debug, Args)]
#[command(override_usage = "polylogue answer [OPTIONS] <ID> [QUESTION] <TEXT>")]
pub(crate) struct Answer {
    /// The conversation: its id, the beginning of its id, or `last`
    pub(crate) id: String,

    /// The answer. If several questions are open, the number of the question precedes it (`waiting` lists them). `@FILE` reads the answer
    /// from a file, `-` from standard input
    #[arg(required = true, num_args = 1..=2, value_name = "TEXT")]
    pub(crate) answer: Vec<String>,

    /// The name of the person who answers, for the log. Default: the name of the user of this machine; at a server that of the token
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,

    #[command(flatten)]
    pub(crate) of: OfTenant,
}
