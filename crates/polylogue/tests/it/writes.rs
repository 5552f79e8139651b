//! What a conversation writes at once: its opening with the first step, one write for each model call, and nothing lost while a run waits.

use std::sync::{Arc, Mutex};

use crate::common::{name, script};
use polylogue::policies::with_termination;
use polylogue::stop::max_turns;
use polylogue::{
    Act, Agent, AnyModel, Assistant, Chat, Error, Log, Name, Result, Turn, parallel, round_robin,
};
use polylogue_core::{AnyStore, Claim, Event, LogId, ModelCall, Store, StoreError, StoreWrapper};
use polylogue_store::Memory;

type Writes = Arc<Mutex<Vec<Vec<String>>>>;

/// A store that notes the events of each append, and has no room for more than `room` of them.
struct Noted {
    store: AnyStore,
    writes: Writes,
    room: usize,
}

impl StoreWrapper for Noted {
    fn inner(&self) -> &AnyStore {
        &self.store
    }

    async fn append(&self, claim: &Claim, batch: &[Arc<Event>]) -> Result<(), StoreError> {
        let kind = |event: &Arc<Event>| {
            let text = format!("{:?}", event.body);
            text.split(|c: char| !c.is_alphanumeric()).next().unwrap().to_owned()
        };
        if self.writes.lock().unwrap().len() == self.room {
            return Err(StoreError::Full { place: "here".into() });
        }
        self.writes.lock().unwrap().push(batch.iter().map(kind).collect());
        self.store.append(claim, batch).await
    }
}

async fn noted(room: usize) -> (Log, Writes) {
    let writes = Writes::default();
    let store = AnyStore::new(Noted { store: Memory::new().into(), writes: Arc::clone(&writes), room });
    (Log::create(store, LogId::new("noted").unwrap()).await.unwrap(), writes)
}

fn shown(writes: &Writes) -> Vec<String> {
    writes.lock().unwrap().iter().map(|write| write.join(" ")).collect()
}

#[tokio::test]
async fn a_model_call_costs_one_write() {
    let script = script(r#"[{"A": "one"}, {"B": "two"}, {"A": "three"}]"#);
    let assistant = |who| Assistant::new(who, AnyModel::new(script.model("test"))).unwrap();
    let chat = Chat::builder("pair").participant(assistant("A")).participant(assistant("B"));
    let chat = chat.policy(with_termination(round_robin(), max_turns(3))).build().unwrap();
    let (mut log, writes) = noted(usize::MAX).await;
    chat.run_in(&mut log, "count").await.unwrap();
    let each = "ModelReplied Message TurnStarted";
    assert_eq!(shown(&writes), ["Opened TurnStarted", each, each, "ModelReplied Message Closed"]);
}

/// Asks its model, then waits for something that is not in the log.
struct Slow {
    name: Name,
    model: AnyModel,
    writes: Writes,
    /// How often it waits.
    waits: usize,
}

impl Agent for Slow {
    fn name(&self) -> &Name {
        &self.name
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let reply = turn.ask_model(ModelCall::of(&self.model)).await?;
        for _ in 0..self.waits {
            tokio::task::yield_now().await;
            let is_written = self.writes.lock().unwrap().iter().flatten().any(|kind| kind == "ModelReplied");
            assert!(is_written, "the reply of {} is not written", self.name);
        }
        Ok(Act::Say(reply.parts))
    }
}

#[tokio::test]
async fn a_reply_is_written_before_its_agent_waits_for_something_else() {
    let script = script(r#"[{"A": "one"}]"#);
    let (mut log, writes) = noted(usize::MAX).await;
    let model = AnyModel::new(script.model("test"));
    let agent = Slow { name: name("A"), model, writes: Arc::clone(&writes), waits: 1 };
    let chat = Chat::builder("one").participant(agent).policy(with_termination(round_robin(), max_turns(1)));
    chat.build().unwrap().run_in(&mut log, "count").await.unwrap();
    assert_eq!(shown(&writes), ["Opened TurnStarted", "ModelReplied", "Message Closed"]);
}

#[tokio::test]
async fn a_reply_is_written_while_a_parallel_turn_waits() {
    let script = script(r#"[{"A": "one"}, {"B": "two"}]"#);
    let (mut log, writes) = noted(usize::MAX).await;
    let agent = |who, waits| {
        let model = AnyModel::new(script.model("test"));
        Slow { name: name(who), model, writes: Arc::clone(&writes), waits }
    };
    let chat = Chat::builder("both").participant(agent("A", 0)).participant(agent("B", 1)).policy(parallel());
    chat.build().unwrap().run_in(&mut log, "count").await.unwrap();
    let expected = ["Opened TurnStarted", "ModelReplied ModelReplied", "Message Message Closed"];
    assert_eq!(shown(&writes), expected);
}

#[tokio::test]
async fn a_reply_that_cannot_be_written_ends_the_run() {
    let script = script(r#"[{"A": "one"}]"#);
    let (mut log, writes) = noted(1).await;
    let model = AnyModel::new(script.model("test"));
    let agent = Slow { name: name("A"), model, writes: Arc::clone(&writes), waits: 1 };
    let chat = Chat::builder("one").participant(agent).policy(with_termination(round_robin(), max_turns(1)));
    let error = chat.build().unwrap().run_in(&mut log, "count").await.unwrap_err();
    assert!(matches!(error, Error::Store(StoreError::Full { .. })), "{error}");
    assert_eq!(shown(&writes), ["Opened TurnStarted"]);
}
