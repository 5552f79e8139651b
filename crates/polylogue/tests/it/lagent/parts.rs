//! Agents made of agents, as a user of the library writes them.

use polylogue::{Act, Agent, AnyModel, Assistant, Log, Name, Result, Session, Turn};
use polylogue_core::{
    AgentCall, AnyStore, Capability, DeltaSink, LogId, Model, ModelCall, ModelError, ModelErrorKind, Reply,
    Request, SubAgent, Timestamp,
};
use polylogue_store::Memory;

use crate::stage::name;

pub(crate) fn agent(who: &str, model: &AnyModel) -> Assistant {
    Assistant::new(who, model.clone()).unwrap().system(format!("I am {who}."))
}

/// A session in memory in which no time passes.
pub(crate) async fn session() -> Session {
    session_in(AnyStore::new(Memory::new())).await
}

pub(crate) async fn session_in(store: AnyStore) -> Session {
    let log = Log::create(store, LogId::new("test").unwrap()).await.unwrap();
    Session::from_log(log.clock(|| Timestamp(0)))
}

/// A model whose server refuses tools.
pub(crate) struct NoTools(pub(crate) AnyModel);

impl Model for NoTools {
    fn name(&self) -> &str {
        self.0.name()
    }
    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        if request.tools.is_empty() {
            return self.0.complete(request, deltas).await;
        }
        Err(ModelError::new(ModelErrorKind::Unsupported(Capability::Tools), self.name(), "no tools here"))
    }
}

/// A writer and a critic, in turn, for some rounds.
#[derive(Clone)]
pub(crate) struct Blogger {
    pub(crate) name: Name,
    pub(crate) writer: Assistant,
    pub(crate) critic: Assistant,
    pub(crate) rounds: usize,
}

impl Blogger {
    pub(crate) fn new(who: &str, model: &AnyModel, rounds: usize) -> Self {
        Self { name: name(who), writer: agent("writer", model), critic: agent("critic", model), rounds }
    }
}

impl Agent for Blogger {
    fn name(&self) -> &Name {
        &self.name
    }
    fn sub_agents(&self) -> Vec<SubAgent> {
        vec![SubAgent::of(&self.writer), SubAgent::of(&self.critic)]
    }
    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let mut message = turn.message();
        for _ in 0..self.rounds {
            message = turn.ask(&self.writer, message).await?;
            message = turn.ask(&self.critic, message).await?;
        }
        Ok(Act::Say(turn.ask(&self.writer, message).await?.parts))
    }
}

impl House {
    pub(crate) fn new(model: &AnyModel) -> Self {
        let items = vec![agent("one", model), agent("two", model)];
        Self { name: name("house"), items, blogger: Blogger::new("blogger", model, 1), model: model.clone() }
    }
}

/// Asks its items at the same time, and then a blogger, which is made of agents itself; between, its own model.
#[derive(Clone)]
pub(crate) struct House {
    pub(crate) name: Name,
    pub(crate) items: Vec<Assistant>,
    pub(crate) blogger: Blogger,
    pub(crate) model: AnyModel,
}

impl Agent for House {
    fn name(&self) -> &Name {
        &self.name
    }
    fn sub_agents(&self) -> Vec<SubAgent> {
        let items = self.items.iter().enumerate();
        let items = items.map(|(nth, item)| SubAgent::labeled(format!("items.{nth}"), item));
        items.chain([SubAgent::of(&self.blogger)]).collect()
    }
    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let message = turn.message();
        let asks = self.items.iter().enumerate();
        let asks: Vec<_> =
            asks.map(|(nth, item)| AgentCall::labeled(format!("items.{nth}"), item, &message)).collect();
        let mut received = String::new();
        for reply in turn.ask_all(asks).await {
            received.push_str(&reply?.text());
        }
        turn.prompt(format!("Of all: {received}")).await?;
        let own = turn.ask_model(ModelCall::of(&self.model)).await?;
        Ok(Act::Say(turn.ask(&self.blogger, own.text().into_owned()).await?.parts))
    }
}
