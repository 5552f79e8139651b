//! Tools, and what agents remember.

use std::sync::Arc;

use polylogue::agents::tooling::{PromptedTool, ToolCalling};
use polylogue::tools::FunctionTool;
use polylogue::{AnyModel, Assistant, Chat, Tool, Transcript, sequential};
use polylogue_core::{AnyTool, Entry, Event, Path, ToolError, ToolSpec, View, ViewOptions, text_of};
use polylogue_models::{Script, Scripted};
use polylogue_test::tool::tool_of;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::stage::{Asked, Spy, name, run};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Pair {
    /// The number that is to be guessed
    secret: i64,
    /// The player's guess
    guess: i64,
}

/// Compares two numbers up to 20.
pub(crate) fn high_low() -> impl Tool {
    FunctionTool::new("high_low", "Compares two numbers.", async |Pair { secret, guess }: Pair| {
        if guess > 20 {
            return Err(ToolError("the guess must be at most 20".into()));
        }
        Ok(match secret.cmp(&guess) {
            std::cmp::Ordering::Less => "The secret number is lower. // (tool)",
            std::cmp::Ordering::Equal => "You won ! // (tool)",
            std::cmp::Ordering::Greater => "The secret number is higher. // (tool)",
        })
    })
    .repeatable()
}

/// Tells the time, without arguments.
pub(crate) fn clock() -> impl Tool {
    FunctionTool::new("clock", "Tells the time.", async |_: ()| Ok("noon")).repeatable()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Note {
    text: String,
}

/// Writes something down, and returns nothing.
pub(crate) fn note() -> impl Tool {
    FunctionTool::new("note", "Writes something down.", async |Note { text }: Note| {
        if text.is_empty() { Err(ToolError("there is nothing to write down".into())) } else { Ok(()) }
    })
    .repeatable()
}

/// A model of M that says `lines`, one after the other.
pub(crate) fn lines(lines: &[&str]) -> Scripted {
    let step = |line: &&str| polylogue_models::ScriptStep::say(name("M"), *line);
    Script::new(lines.iter().map(step)).model("test")
}

/// M, who has `tool` and talks about it.
pub(crate) fn talker(model: AnyModel, tool: PromptedTool) -> Assistant {
    Assistant::new("M", model).unwrap().prompted_tool(tool).tool_calling(ToolCalling::Text)
}

/// A chat of one turn.
pub(crate) fn alone(agent: Assistant) -> Chat {
    Chat::builder("alone").participant(agent).policy(sequential()).build().unwrap()
}

/// The result of a turn of an agent alone.
pub(crate) struct Turned {
    pub(crate) reason: String,
    pub(crate) said: String,
    pub(crate) events: Vec<Arc<Event>>,
    pub(crate) asked: Vec<Asked>,
    /// What it remembers, as `user: ..` and `assistant: ..`.
    pub(crate) remembers: Vec<String>,
}

/// Lets the agent that `made` makes of `model` speak once about `Compare 7 and 3.`, and checks that every line of the
/// script was played.
pub(crate) async fn turn(model: Scripted, made: impl FnOnce(AnyModel) -> Assistant) -> Turned {
    let spy = Spy::on(AnyModel::new(model.clone()));
    let (status, events) = run(&alone(made(spy.model())), "Compare 7 and 3.").await;
    model.finish().unwrap();
    let (reason, said) = crate::stage::closed(&status);
    let remembers = remembered(&events);
    Turned { reason, said, events, asked: spy.asked(), remembers }
}

/// The history of M after the events.
pub(crate) fn remembered(events: &[Arc<Event>]) -> Vec<String> {
    let transcript = Transcript::from_events(&Path::root(), events).unwrap();
    entries(View::of(&transcript, &name("M"), ViewOptions::default()).entries())
}

/// Entries as `role: text`.
pub(crate) fn entries(entries: &[Entry]) -> Vec<String> {
    let line = |entry: &Entry| {
        let role = match entry {
            Entry::System { .. } => "system",
            Entry::User { .. } => "user",
            Entry::Assistant { .. } => "assistant",
            Entry::Tool { .. } => "tool",
        };
        format!("{role}: {}", text_of(entry.parts()))
    };
    entries.iter().map(line).collect()
}

/// The last thing that was said to the model in each request.
pub(crate) fn prompts(asked: &[Asked]) -> Vec<String> {
    asked.iter().map(|asked| text_of(asked.entries.last().unwrap().parts()).into_owned()).collect()
}

/// A tool that always fails.
pub(crate) fn broken(spec: ToolSpec) -> AnyTool {
    tool_of(spec, |_| panic!("it is broken"))
}
