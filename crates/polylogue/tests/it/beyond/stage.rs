//! What the tests stand on.

use std::sync::Arc;

use polylogue::{AnyModel, Assistant, Chat};
use polylogue_core::{AnyStore, ChatBuilder, Event, Status};
use polylogue_models::Script;
use polylogue_store::Memory;
use polylogue_test::cut::{Calls, Cut};
use polylogue_test::print::transcript;

pub(crate) use crate::common::{log, name};
use crate::common::{log_of, run_or_resume};

/// The speakers of a conversation: assistants that speak by one script, their model calls counted.
pub(crate) struct Cast<'a> {
    script: Script,
    calls: &'a Calls,
}

impl Cast<'_> {
    pub(crate) fn assistant(&self, who: &str) -> Assistant {
        Assistant::new(who, self.model()).unwrap()
    }

    pub(crate) fn model(&self) -> AnyModel {
        self.calls.through(self.script.model("test"))
    }

    /// A chat of assistants with these names.
    pub(crate) fn chat(&self, names: &[&str]) -> ChatBuilder {
        names.iter().fold(Chat::builder("group"), |builder, who| builder.participant(self.assistant(who)))
    }
}

/// Plays a conversation, whole and cut after every event, and returns its events.
pub(crate) async fn events(script: &str, chat: impl Fn(&Cast<'_>) -> Chat) -> Vec<Arc<Event>> {
    events_with(script, &|_| unreachable!("no one is asked"), chat).await
}

/// The same with people, who give the nth answer.
pub(crate) async fn events_with(
    script: &str,
    answer: &(dyn Fn(usize) -> &'static str + Sync),
    chat: impl Fn(&Cast<'_>) -> Chat,
) -> Vec<Arc<Event>> {
    let script: Script = serde_json::from_str(script).unwrap();
    let cut = Cut {
        task: "task",
        chat: &|calls| chat(&Cast { script: script.clone(), calls }),
        store: &|| AnyStore::new(Memory::default()),
        answer: &|_, _, nth| answer(usize::try_from(nth).unwrap()).to_owned(),
    };
    cut.everywhere().await.unwrap_or_else(|flaw| panic!("{flaw}"))
}

/// Plays a conversation from the events `prefix` to its end, and returns all events.
pub(crate) async fn played_from(
    prefix: &[Arc<Event>],
    script: &str,
    chat: impl Fn(&Cast<'_>) -> Chat,
) -> Vec<Arc<Event>> {
    let mut log = log_of(prefix).await;
    let calls = Calls::default();
    let chat = chat(&Cast { script: serde_json::from_str(script).unwrap(), calls: &calls });
    let run = run_or_resume(&chat, &mut log, "task").await.unwrap();
    assert!(matches!(run.status, Status::Closed { .. }));
    log.events().await
}

/// The same as text, without model calls.
pub(crate) async fn play(script: &str, chat: impl Fn(&Cast<'_>) -> Chat) -> String {
    print(&events(script, chat).await)
}

/// Events as text, without model calls and numbers.
pub(crate) fn print(events: &[Arc<Event>]) -> String {
    let text = transcript(events);
    let lines = text.lines().filter(|line| !line.contains(" replies to "));
    lines.map(|line| line.split_once(' ').map_or(line, |(_, rest)| rest)).collect::<Vec<_>>().join("\n")
}

/// Plays a conversation that fails, and returns why.
pub(crate) async fn fails(script: &str, chat: impl Fn(&Cast<'_>) -> Chat) -> String {
    let script: Script = serde_json::from_str(script).unwrap();
    let calls = Calls::default();
    let chat = chat(&Cast { script, calls: &calls });
    let mut log = log().await;
    chat.run_in(&mut log, "task").await.unwrap_err().to_string()
}
