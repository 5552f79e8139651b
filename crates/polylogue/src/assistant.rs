//! An agent that speaks by a language model.

use std::fmt;
use std::sync::Arc;

use polylogue_core::{
    Act, Agent, AnyModel, AnyTool, Ask, Call, Error, Lens, Name, NameError, Outcome, OutcomeStatus, Params,
    Part, Reply, Result, Tool, ToolCx, ToolError, ToolSpec, Turn,
};
use serde_json::Value;

/// An agent that speaks by a language model: a system text, tools, and how it sees the room.
///
/// On its turn it asks the model; as long as the model calls tools, it runs them and asks again; what the model then
/// says is what the agent says.
///
/// # A model with a system text
/// ```
/// # fn example(model: polylogue_core::AnyModel) -> Result<(), polylogue_core::NameError> {
/// use polylogue::Assistant;
/// let poet = Assistant::new("Poet", model)?.system_from(|task| format!("You answer in rhymes. Your task: {task}"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Assistant {
    name: Name,
    description: String,
    model: AnyModel,
    system: Option<SystemFn>,
    tools: Vec<AnyTool>,
    /// What others run.
    advertised: Vec<ToolSpec>,
    /// What is told of both: first the own tools.
    specs: Vec<ToolSpec>,
    /// Both, so that whoever calls neither is told of both.
    callable: Vec<AnyTool>,
    params: Params,
    lens: Lens,
    max_rounds: u32,
}

/// Makes the system text of the task.
type SystemFn = Arc<dyn Fn(&str) -> Arc<str> + Send + Sync>;

/// Told to the model when it has called tools [`max_rounds`](Assistant::max_rounds) times in one turn.
const NO_MORE_TOOLS: &str =
    "You have used all tool calls of this turn. Answer now with what you know, without calling a tool.";

impl Assistant {
    /// How often a model may call tools in one turn, unless it is told otherwise.
    pub const DEFAULT_MAX_ROUNDS: u32 = 16;

    /// An agent `name` that speaks by `model`.
    ///
    /// # Errors
    /// When the name is illegal.
    pub fn new(name: &str, model: AnyModel) -> Result<Self, NameError> {
        Ok(Self {
            name: Name::new(name)?,
            description: String::new(),
            model,
            system: None,
            tools: Vec::new(),
            advertised: Vec::new(),
            specs: Vec::new(),
            callable: Vec::new(),
            params: Params::default(),
            lens: Lens::default(),
            max_rounds: Self::DEFAULT_MAX_ROUNDS,
        })
    }

    /// Sets the system text.
    #[must_use]
    pub fn system(self, text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        Self { system: Some(Arc::new(move |_| Arc::clone(&text))), ..self }
    }

    /// Sets a system text that is made of the task of the chat the agent is in. It has to be the same for the same task.
    #[must_use]
    pub fn system_from(self, text: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self { system: Some(Arc::new(move |task| text(task).into())), ..self }
    }

    /// Sets what it is good at, for whoever chooses the next speaker.
    #[must_use]
    pub fn description(self, text: impl Into<String>) -> Self {
        Self { description: text.into(), ..self }
    }

    /// Adds a tool. One of the same name is replaced.
    #[must_use]
    pub fn tool(self, tool: impl Tool) -> Self {
        let tool = AnyTool::new(tool);
        let mut other = self.without_tool(&tool.spec().name);
        other.tools.push(tool);
        other.with_specs()
    }

    /// Offers a tool to the model that another participant runs, such as one with an
    /// [`Executor`](crate::executor::Executor). A call of it ends the turn and stands in the message; the agent's own
    /// tools that were called with it are run before. A tool of the same name is replaced. Asked aside, the model is not
    /// offered it: nobody would run it.
    #[must_use]
    pub fn advertise(self, spec: ToolSpec) -> Self {
        let mut other = self.without_tool(&spec.name);
        other.advertised.push(spec);
        other.with_specs()
    }

    /// The same agent without any tools.
    pub(crate) fn without_tools(self) -> Self {
        Self { tools: Vec::new(), advertised: Vec::new(), ..self }.with_specs()
    }

    fn without_tool(mut self, name: &str) -> Self {
        self.tools.retain(|tool| tool.spec().name != name);
        self.advertised.retain(|spec| spec.name != name);
        self
    }

    fn with_specs(mut self) -> Self {
        self.specs = self.tools.iter().map(Tool::spec).chain(&self.advertised).cloned().collect();
        // Refusing twice is refusing once.
        let refuse = |spec: &ToolSpec| AnyTool::new(OfOthers(spec.clone().repeatable()));
        self.callable = self.tools.iter().cloned().chain(self.advertised.iter().map(refuse)).collect();
        self
    }

    /// Sets temperature and the like.
    #[must_use]
    pub fn params(self, params: Params) -> Self {
        Self { params, ..self }
    }

    /// Sets how it sees the room.
    #[must_use]
    pub fn lens(self, lens: Lens) -> Self {
        Self { lens, ..self }
    }

    /// Sets how often the model may call tools in one turn, at least 1. After that it is told to answer; if it calls a
    /// tool again, the calls are refused and what it said besides is what the agent says.
    #[must_use]
    pub fn max_rounds(self, rounds: u32) -> Self {
        Self { max_rounds: rounds.max(1), ..self }
    }

    /// The system text as the model gets it in a chat about `task`.
    #[must_use]
    pub fn system_for(&self, task: &str) -> Option<Arc<str>> {
        self.system.as_ref().map(|text| text(task))
    }

    /// How it sees the room.
    #[must_use]
    pub const fn sees(&self) -> &Lens {
        &self.lens
    }

    /// What its model is told of its tools.
    #[must_use]
    pub fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }

    /// How its model writes.
    #[must_use]
    pub const fn sampling(&self) -> &Params {
        &self.params
    }

    /// The outcome that ends the turn, if a tool was called that ends it.
    fn last_word<'o>(&self, calls: &[Call], outcomes: &'o [Outcome]) -> Option<&'o Outcome> {
        let ends = |call: &Call| self.specs.iter().any(|spec| spec.name == call.tool && spec.ends_turn);
        let done = |outcome: &Outcome| outcome.status == OutcomeStatus::Done;
        calls
            .iter()
            .zip(outcomes)
            .find(|(call, outcome)| ends(call) && done(outcome))
            .map(|(_, outcome)| outcome)
    }

    async fn ask(&self, turn: &mut Turn<'_>, system: Option<&str>) -> Result<Reply> {
        let Self { model, specs, params, lens, .. } = self;
        let offered = if turn.cue().to.is_aside() { self.tools.len() } else { specs.len() };
        let tools = specs.get(..offered).unwrap_or_default();
        turn.sample(Ask { model, system, tools, params, lens }).await
    }

    /// Whether another participant is to run the tool.
    fn is_for_others(&self, call: &Call) -> bool {
        self.advertised.iter().any(|spec| spec.name == call.tool)
    }

    /// Runs the agent's own calls of `reply`, and says how the turn ends, if it does.
    async fn make_calls(&self, turn: &mut Turn<'_>, reply: &Reply) -> Result<Option<Act>> {
        let aside = turn.cue().to.is_aside();
        let (others, own): (Vec<Call>, Vec<Call>) =
            reply.calls().into_iter().partition(|call| !aside && self.is_for_others(call));
        let outcomes = turn.call(&self.callable, &own).await?;
        debug_assert_eq!(outcomes.len(), own.len(), "every call is answered");
        if !others.is_empty() {
            return Ok(Some(speak(reply, &others)));
        }
        Ok(self.last_word(&own, &outcomes).map(|last| match speak(reply, &[]) {
            Act::Pass => Act::Say(last.parts.clone()),
            said => said,
        }))
    }
}

impl fmt::Debug for Assistant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Assistant")
            .field("name", &self.name)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

impl Agent for Assistant {
    fn name(&self) -> &Name {
        &self.name
    }

    fn description(&self) -> &str {
        &self.description
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let system = self.system_for(turn.transcript().task());
        for round in 0..=self.max_rounds {
            let reply = self.ask(turn, system.as_deref()).await?;
            if reply.calls().is_empty() || round == self.max_rounds {
                return Ok(speak(&reply, &[]));
            }
            if let Some(act) = self.make_calls(turn, &reply).await? {
                return Ok(act);
            }
            if round + 1 == self.max_rounds {
                turn.prompt(NO_MORE_TOOLS).await?;
            }
        }
        Err(Error::Bug("the last round always returns".into()))
    }
}

/// A tool that another participant runs, where no other does: aside.
struct OfOthers(ToolSpec);

impl Tool for OfOthers {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }
    async fn call(&self, _: Value, _: &ToolCx<'_>) -> Result<Outcome, ToolError> {
        Err(ToolError(format!("Nobody runs `{}` here.", self.0.name)))
    }
}

/// What an agent says of a reply: no thoughts, and no calls but those that others are to run.
fn speak(reply: &Reply, others: &[Call]) -> Act {
    let said = |part: &&Part| match part {
        Part::Call(call) => others.iter().any(|other| other.id == call.id),
        Part::Thought(_) => false,
        part => !part.is_blank(),
    };
    let parts: Vec<Part> = reply.parts.iter().filter(said).cloned().collect();
    if parts.is_empty() { Act::Pass } else { Act::Say(parts) }
}
