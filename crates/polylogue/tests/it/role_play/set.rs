//! Shared by the tests: a programmer, a trader, and the result of their conversation.

use std::sync::Arc;

use polylogue::tasks::RolePlay;
use polylogue::{AnyModel, Assistant, Chat, Status, Transcript};
use polylogue_core::{Event, MessageSource, StopReason};

use crate::stage::{Asked, Spy, log, script};

/// The marker.
pub(crate) const DONE: &str = RolePlay::DEFAULT_DONE;

pub(crate) fn agent(name: &str, model: &AnyModel) -> Assistant {
    Assistant::new(name, model.clone()).unwrap()
}

/// A programmer who solves, and a trader who instructs.
pub(crate) fn role_play(model: &AnyModel) -> RolePlay {
    RolePlay::new(agent("Python_programmer", model), agent("Trader", model))
}

/// A script of what a trader and a programmer say in turn, after what the others say.
pub(crate) fn talk(before: &[(&str, &str)], said: &[&str]) -> String {
    let speakers = ["Trader", "Python_programmer"].into_iter().cycle();
    let said = speakers.zip(said).map(|(who, text)| (who, *text));
    let steps: Vec<_> =
        before.iter().copied().chain(said).map(|(who, text)| serde_json::json!({ who: text })).collect();
    serde_json::to_string(&steps).unwrap()
}

/// So many instructions and solutions, all different.
pub(crate) fn work(rounds: usize) -> Vec<String> {
    const THINGS: [&str; 6] = ["prices", "orders", "risks", "fees", "taxes", "charts"];
    let round = |thing: &str| {
        let instruction = format!("Instruction: write a function for {thing}\nInput: None");
        [instruction, format!("Solution: here are the {thing}, as you wanted. Next request.")]
    };
    THINGS.iter().take(rounds).copied().flat_map(round).collect()
}

/// The result of a conversation.
pub(crate) struct Came {
    pub(crate) reason: StopReason,
    pub(crate) summary: String,
    pub(crate) transcript: Transcript,
    pub(crate) events: Vec<Arc<Event>>,
    pub(crate) asked: Vec<Asked>,
}

impl Came {
    /// Speakers and texts of turns in the chat.
    pub(crate) fn said(&self) -> Vec<(String, String)> {
        let turns = self.transcript.messages().filter(|line| line.source == MessageSource::Turn);
        turns.map(|line| (line.message.from.to_string(), line.message.text().into_owned())).collect()
    }

    /// The requests of one agent.
    pub(crate) fn asked(&self, who: &str) -> Vec<&Asked> {
        self.asked.iter().filter(|asked| asked.who.as_str() == who).collect()
    }
}

/// Runs the chat that `make` makes of a model that speaks by the script.
pub(crate) async fn play(json: &str, task: &str, make: impl FnOnce(&AnyModel) -> Chat) -> Came {
    let spy = Spy::on(script(json));
    let chat = make(&spy.model());
    let mut log = log().await;
    let status = chat.run_in(&mut log, task).await.unwrap().status;
    let Status::Closed { reason, summary } = status else { panic!("it is not over: {status:?}") };
    let (transcript, events) = (log.transcript().await.unwrap(), log.events().await);
    Came { reason, summary: summary.to_string(), transcript, events, asked: spy.asked() }
}

/// As [`play`], of what the two say in turn.
pub(crate) async fn said(said: &[&str], change: impl FnOnce(RolePlay) -> RolePlay) -> Came {
    play(&talk(&[], said), "Trade", |model| change(role_play(model)).build("role_play").unwrap()).await
}
