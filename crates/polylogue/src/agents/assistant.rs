//! An agent that speaks by a language model.

use std::fmt;
use std::sync::Arc;

use polylogue_core::{
    Act, Agent, AnyModel, AnyTool, Call, Name, NameError, Outcome, Params, Result, Tool, ToolCx, ToolError,
    ToolSpec, Turn, ViewOptions,
};
use serde_json::Value;

use crate::agent_tool::AgentTool;
use crate::approval::{Approval, Wanted};
use crate::tooling::{PromptedTool, ToolCalling, ToolHistory, Work};

/// An agent that speaks by a language model: a system text, tools, and how it sees the room.
///
/// On its turn it asks the model; as long as the model calls tools, it runs them and asks again; what the model then
/// says is what the agent says. Models that cannot call tools are told of them in words; see [`tooling`](crate::tooling).
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
    pub(crate) model: AnyModel,
    system: Option<SystemFn>,
    /// Its own tools.
    pub(crate) taught: Vec<PromptedTool>,
    /// Those of them that are agents and chats.
    pub(crate) consults: Vec<AgentTool>,
    /// What others run.
    pub(crate) advertised: Vec<ToolSpec>,
    /// What is told of both: first the own tools.
    pub(crate) specs: Vec<ToolSpec>,
    /// Both, so that whoever calls neither is told of both.
    pub(crate) callable: Vec<AnyTool>,
    pub(crate) params: Params,
    pub(crate) lens: ViewOptions,
    pub(crate) max_rounds: u32,
    /// How often a cut reply is continued, if that is said.
    max_continuations: Option<u32>,
    pub(crate) tools_by: ToolCalling,
    pub(crate) trace: ToolHistory,
    /// The schema of what it says.
    pub(crate) answers: Option<Arc<Value>>,
    pub(crate) repairs: u32,
    pub(crate) approval: Approval<Wanted>,
}

/// Makes the system text of the task.
type SystemFn = Arc<dyn Fn(&str) -> Arc<str> + Send + Sync>;

impl Assistant {
    /// How often a model may call tools in one turn, unless it is told otherwise.
    pub const DEFAULT_MAX_ROUNDS: u32 = 16;

    /// How often a text that met the model's limit on tokens is continued, by default.
    pub const DEFAULT_MAX_CONTINUATIONS: u32 = 3;

    /// How often an answer that has not the form asked for is repaired, unless it is told otherwise.
    pub const DEFAULT_REPAIRS: u32 = 3;

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
            taught: Vec::new(),
            consults: Vec::new(),
            advertised: Vec::new(),
            specs: Vec::new(),
            callable: Vec::new(),
            params: Params::default(),
            lens: ViewOptions::default(),
            max_rounds: Self::DEFAULT_MAX_ROUNDS,
            max_continuations: None,
            tools_by: ToolCalling::default(),
            trace: ToolHistory::default(),
            answers: None,
            repairs: Self::DEFAULT_REPAIRS,
            approval: Approval::never(),
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

    /// Adds a tool, which the model may use or not. One of the same name is replaced.
    #[must_use]
    pub fn tool(self, tool: impl Tool) -> Self {
        self.prompted_tool(PromptedTool::new(tool))
    }

    /// Adds several tools, such as those of a [toolkit](macro@crate::toolkit).
    #[must_use]
    pub fn tools(self, tools: impl IntoIterator<Item = AnyTool>) -> Self {
        tools.into_iter().fold(self, Self::tool)
    }

    /// Adds a tool, and how it is taught: whether it has to be used, by which examples, with how many errors. One of the same
    /// name is replaced.
    #[must_use]
    pub fn prompted_tool(self, taught: PromptedTool) -> Self {
        let mut other = self.without_tool(taught.name());
        other.taught.push(taught);
        other.with_specs()
    }

    /// Offers an agent or a chat to the model as a tool, run within this agent's turn. A tool of the same name is replaced.
    #[must_use]
    pub fn agent_tool(self, consult: AgentTool) -> Self {
        let mut other = self.tool(consult.tool());
        other.consults.push(consult);
        other
    }

    /// Sets when a person is asked before a tool of the agent's own is called, an agent or a chat that it
    /// [consults](Self::agent_tool) included. By default nobody is. The person may let it be called, reject it, or give other
    /// arguments; the model is told, and goes on. Whoever runs the tools that are [advertised](Self::suggest_tool) asks for
    /// itself.
    #[must_use]
    pub fn approval(self, approval: Approval<Wanted>) -> Self {
        Self { approval, ..self }
    }

    /// Sets how the model is made to call tools, and to answer in a form: by the best way that it knows, unless it is set.
    #[must_use]
    pub fn tool_calling(self, tools_by: ToolCalling) -> Self {
        Self { tools_by, ..self }
    }

    /// Sets what the agent remembers of a turn in which it called tools by text.
    #[must_use]
    pub fn tool_history(self, trace: ToolHistory) -> Self {
        Self { trace, ..self }
    }

    /// Sets the JSON Schema that all that the agent says has to satisfy, whatever the model can do: a model that cannot be held
    /// to it is told of it in words. What the agent says is the JSON as a text, and the same as a value,
    /// [`Part::Data`](polylogue_core::Part::Data). Looked at are the common keywords of schemas, not `pattern` and `format`.
    ///
    /// ([`Params::schema`] is given to the provider as it is, and what it replies is not looked at.)
    #[must_use]
    pub fn output_schema(self, schema: Value) -> Self {
        Self { answers: Some(Arc::new(schema)), ..self }
    }

    /// Sets how often an answer that does not satisfy the schema is repaired: the model is asked apart, with the schema, the
    /// answer, and what is wrong with it. If that is not enough the chat ends, as
    /// [`StopReason::Errors`](polylogue_core::StopReason::Errors).
    #[must_use]
    pub fn output_retries(self, repairs: u32) -> Self {
        Self { repairs, ..self }
    }

    /// Offers a tool to the model that another participant runs, such as one with an
    /// [`Executor`](crate::executor::Executor). A call of it ends the turn and stands in the message; the agent's own
    /// tools that were called with it are run before. A tool of the same name is replaced. Asked aside, the model is not
    /// offered it: nobody would run it.
    #[must_use]
    pub fn suggest_tool(self, spec: ToolSpec) -> Self {
        let mut other = self.without_tool(&spec.name);
        other.advertised.push(spec);
        other.with_specs()
    }

    /// The same agent, free to say what it wants: without tools, and without a form for what it says.
    pub(crate) fn at_ease(self) -> Self {
        let params = Params { schema: None, ..self.params };
        let (taught, consults) = (Vec::new(), Vec::new());
        Self { taught, consults, advertised: Vec::new(), answers: None, params, ..self }.with_specs()
    }

    fn without_tool(mut self, name: &str) -> Self {
        self.taught.retain(|taught| taught.name() != name);
        self.consults.retain(|consult| consult.name() != name);
        self.advertised.retain(|spec| spec.name != name);
        self
    }

    fn with_specs(self) -> Self {
        let own = || self.taught.iter().map(PromptedTool::tool);
        let specs = own().map(Tool::spec).chain(&self.advertised).cloned().collect();
        // Refusing twice is refusing once.
        let refuse = |spec: &ToolSpec| AnyTool::new(OfOthers(spec.clone().repeatable()));
        let callable = own().cloned().chain(self.advertised.iter().map(refuse)).collect();
        Self { specs, callable, ..self }
    }

    /// Sets temperature and the like.
    #[must_use]
    pub fn params(self, params: Params) -> Self {
        Self { params, ..self }
    }

    /// Sets how it sees the room.
    #[must_use]
    pub fn view(self, lens: ViewOptions) -> Self {
        Self { lens, ..self }
    }

    /// Sets how often the model may call tools in one turn, at least 1. After that it is told to answer; if it calls a
    /// tool again, the calls are refused and what it said besides is what the agent says.
    #[must_use]
    pub fn max_tool_rounds(self, rounds: u32) -> Self {
        Self { max_rounds: rounds.max(1), ..self }
    }

    /// Sets how often a text that met the limit on tokens is continued: the model is asked for the rest, and both are one message. The
    /// default: [`DEFAULT_MAX_CONTINUATIONS`](Self::DEFAULT_MAX_CONTINUATIONS), and 0 where [`Params::max_tokens`] is set, because
    /// that limit is the caller's own. Replies in a form are not continued. What is still cut off then, or was filtered by the
    /// provider, is marked ([`Part::Cut`](polylogue_core::Part::Cut)).
    #[must_use]
    pub fn max_continuations(self, times: u32) -> Self {
        Self { max_continuations: Some(times), ..self }
    }

    /// How often a reply that is asked for with `params` is continued.
    pub(crate) fn continuations(&self, params: &Params) -> u32 {
        let is_formed = params.schema.is_some() || params.json;
        let default = if params.max_tokens.is_some() { 0 } else { Self::DEFAULT_MAX_CONTINUATIONS };
        if is_formed { 0 } else { self.max_continuations.unwrap_or(default) }
    }

    /// The system text as the model gets it in a chat about `task`.
    #[must_use]
    pub fn system_for(&self, task: &str) -> Option<Arc<str>> {
        self.system.as_ref().map(|text| text(task))
    }

    /// How it sees the room.
    #[must_use]
    pub const fn view_options(&self) -> &ViewOptions {
        &self.lens
    }

    /// What its model is told of its tools.
    #[must_use]
    pub fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }

    /// How its model writes.
    #[must_use]
    pub const fn model_params(&self) -> &Params {
        &self.params
    }

    /// Whether another participant is to run the tool.
    pub(crate) fn is_for_others(&self, call: &Call) -> bool {
        self.advertised.iter().any(|spec| spec.name == call.tool)
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
        Work::begin(self, turn).act().await
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
