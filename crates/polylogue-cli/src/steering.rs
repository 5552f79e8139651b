//! Steering a run by key at its terminal: Ctrl-\ asks what to do.
//!
//! Ctrl-\ is a signal, as Ctrl-C is: the mode of the terminal stays as it was, and no key that is typed ahead is read.

use std::pin::{Pin, pin};

use clap::Parser;
use futures_util::future::{Either, select};
use polylogue::{Message, Name};
use polylogue_core::Instruction;
use polylogue_runtime::Conversation;
use polylogue_team::{Pattern, Team};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args;
use crate::args::steer::raising;
use crate::error::CliError;
use crate::prompt::{self, Typed};
use crate::screen::Keys;
use crate::signals::Signals;
use crate::stderr::{print_error, print_table};

/// What the status line says of the keys.
pub(crate) const KEYS: Keys = Keys {
    running: "Ctrl-C stops after the turn, Ctrl-\\ steers",
    paused: "Ctrl-\\ and /resume continue it, Ctrl-C stops it",
};

const HELP: &str = "\
Enter continues, and a text is a message to the chat. Commands:
  /pause         pauses after the turn; /resume continues
  /next NAME     chooses the next speaker
  /raise OPTION  raises a limit: --max-cost 0.50, --max-turns, --max-tokens, --max-calls, --max-time; with --agent NAME that of an \
    agent, with --chat NAME that of an open chat
  /cancel        stops after the turn; /cancel --now stops at once
  ?              shows this list";

/// Where an error says what there is.
const HINT: &str = "Ctrl-\\ and `?` list the commands";

/// The key that asks what to do.
pub(crate) struct SteeringKey(Option<Signal>);

impl SteeringKey {
    /// The key, if there `is_person` at the terminal.
    pub(crate) fn at_terminal(is_person: bool) -> Self {
        Self(is_person.then(|| signal(SignalKind::quit()).ok()).flatten())
    }

    /// Waits until it is pressed.
    pub(crate) async fn pressed(&mut self) {
        match &mut self.0 {
            Some(key) => drop(key.recv().await),
            None => std::future::pending().await,
        }
    }
}

/// Asks the person what to do, while the run continues. Returns the instruction, and the result of the run if it has ended meanwhile.
pub(crate) async fn ask<S>(
    mut run: Pin<&mut impl Future<Output = S>>,
    signals: &mut Signals,
) -> (Option<Instruction>, Option<S>) {
    let (typed, ended) = loop {
        print_table(HELP);
        let prompt = pin!(prompt::message("steer> ", Vec::new(), signals));
        let (typed, ended) = match select(prompt, run.as_mut()).await {
            Either::Left((typed, _)) => (typed, None),
            Either::Right((ended, prompt)) => (prompt.await, Some(ended)),
        };
        let asks = matches!(&typed, Ok(Typed::Text(text)) if is_help(text));
        if !asks || ended.is_some() {
            break (typed, ended);
        }
    };
    let instruction = match typed.map(|typed| parsed(&typed)) {
        Ok(Ok(instruction)) => instruction,
        Ok(Err(error)) | Err(error) => {
            print_error(&error);
            None
        }
    };
    (instruction, ended)
}

fn is_help(text: &str) -> bool {
    ["?", "/?", "/help"].contains(&text.trim())
}

/// Sends what the person said during a run that has ended: in the log, it is not lost, however the run has ended.
pub(crate) async fn send_all(
    conversation: &Conversation,
    texts: &mut Vec<Message>,
) -> polylogue_runtime::Result<()> {
    for text in texts.drain(..) {
        conversation.send(text).await?;
    }
    Ok(())
}

/// Whether the outermost chat of `team` ends with its only turn: no turn follows that sees a text which is given meanwhile.
pub(crate) fn has_one_turn(team: &Team) -> bool {
    let has_one_step = matches!(team.chat.pattern, Pattern::Sequential | Pattern::Parallel);
    has_one_step && team.chat.participants.len() == 1
}

/// The limits after `/raise`.
#[derive(Parser)]
#[command(name = "/raise", no_binary_name = true, disable_help_flag = true)]
struct Raise {
    /// The words of a name
    #[arg(long, num_args = 1.., conflicts_with_all = ["max_turns", "on_limit"])]
    agent: Vec<String>,

    /// The words of a name, or a path
    #[arg(long, num_args = 1.., conflicts_with_all = ["agent", "max_turns", "on_limit"])]
    chat: Vec<String>,

    #[command(flatten)]
    limits: args::Limits,
}

/// What is wrong with options, without how to use a command line.
fn what(error: &clap::Error) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    first.strip_prefix("error: ").unwrap_or(first).to_owned()
}

fn parsed(typed: &Typed) -> Result<Option<Instruction>, CliError> {
    let Typed::Text(text) = typed else { return Ok(None) };
    let text = text.trim();
    let (command, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    Ok(Some(match command {
        "" => return Ok(None),
        _ if is_help(text) => return Ok(None),
        "/pause" => Instruction::Pause,
        "/resume" => Instruction::Resume,
        "/cancel" => match rest.trim() {
            "" => Instruction::Cancel { now: false },
            "--now" => Instruction::Cancel { now: true },
            other => return Err(CliError::usage(format!("`/cancel` does not take `{other}`")).hint(HINT)),
        },
        "/next" => {
            let who = Name::new(rest.trim()).map_err(|error| CliError::usage(error.to_string()))?;
            Instruction::NextSpeaker { who }
        }
        "/raise" => {
            let raise = Raise::try_parse_from(rest.split_whitespace())
                .map_err(|error| CliError::usage(what(&error)).hint(HINT))?;
            let more = raise.limits.overrides();
            if more.is_empty() {
                return Err(CliError::usage("there is no limit to raise").hint(HINT));
            }
            let (agent, chat) = (raise.agent.join(" "), raise.chat.join(" "));
            let [agent, chat] =
                [&agent, &chat].map(|words| Some(words.as_str()).filter(|words| !words.is_empty()));
            raising(agent, chat, more)?
        }
        unknown if unknown.starts_with('/') => {
            return Err(CliError::usage(format!("there is no command `{unknown}`")).hint(HINT));
        }
        _ => Instruction::Send(Message::new(Name::user(), text)),
    }))
}

#[cfg(test)]
mod tests {
    use polylogue_core::LimitOverrides;

    use super::*;

    fn typed(text: &str) -> Result<Option<Instruction>, String> {
        parsed(&Typed::Text(text.to_owned())).map_err(|error| error.to_string())
    }

    #[test]
    fn a_typed_line_is_a_command_or_a_message() {
        assert_eq!(typed("  "), Ok(None));
        assert_eq!([typed("?"), typed(" /help")], [Ok(None), Ok(None)], "it is no message to the chat");
        assert_eq!(typed("/pause"), Ok(Some(Instruction::Pause)));
        assert_eq!(typed("/cancel"), Ok(Some(Instruction::Cancel { now: false })));
        assert_eq!(typed("/cancel  --now "), Ok(Some(Instruction::Cancel { now: true })));
        assert!(typed("/cancel now").unwrap_err().contains("`/cancel` does not take `now`\n"));
        let who = Name::new("Ann B").unwrap();
        assert_eq!(typed("/next Ann B"), Ok(Some(Instruction::NextSpeaker { who })));
        let (by, more) = (prompt::user_name, LimitOverrides { turns: Some(3), ..LimitOverrides::default() });
        assert_eq!(typed("/raise --max-turns 3"), Ok(Some(Instruction::RaiseLimits { more, by: by() })));
        let (who, more) =
            (Name::new("Ann B").unwrap(), LimitOverrides { calls: Some(2), ..LimitOverrides::default() });
        let instruction = Instruction::RaiseAgentLimits { who, more, by: by() };
        assert_eq!(typed("/raise --agent Ann B --max-calls 2"), Ok(Some(instruction)));
        let instruction = Instruction::RaiseChatLimits { chat: "the desk".into(), more, by: by() };
        assert_eq!(typed("/raise --chat the desk --max-calls 2"), Ok(Some(instruction)));
        let message = Message::new(Name::user(), "be brief");
        assert_eq!(typed("be brief\n"), Ok(Some(Instruction::Send(message))));
    }

    #[test]
    fn an_option_that_is_wrong_is_named() {
        let why = typed("/raise --max-cost").unwrap_err();
        assert!(why.contains("a value is required for '--max-cost <DOLLARS>'"), "{why}");
        let why = typed("/raise --max-turns many").unwrap_err();
        assert!(why.contains("invalid value 'many' for '--max-turns <N>'"), "{why}");
    }

    #[test]
    fn an_unknown_command_is_refused_and_not_sent() {
        for wrong in [
            "/stp",
            "/raise",
            "/raise --max-turns many",
            "/raise 5",
            "/raise --agent Ann",
            "/raise --agent Ann --max-turns 3",
            "/raise --chat desk --max-turns 3",
            "/raise --chat desk --agent Ann --max-calls 3",
            "/next",
            "/next \u{7}",
        ] {
            assert!(typed(wrong).is_err(), "{wrong}");
        }
    }
}
