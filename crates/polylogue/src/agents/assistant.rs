//! An agent backed by a language model.

use std::sync::Arc;

use polylogue_core::{
    AnyModel, AnyTool, Name, NameError, Params, Result, Tool, ToolCall, ToolSpec, ViewOptions, Window,
};
use serde_json::Value;

use super::SystemFn;
use super::compaction::{Author, Compaction};
use super::prompted::{PromptedTool, ToolCalling, ToolHistory};
use crate::tools::agent_tool::AgentTool;
use crate::tools::approval::{Approval, ApprovalRequest};
use crate::tools::background;
use crate::tools::known::known;
use crate::tools::runner::Runner;
use crate::tools::search::{self, ToolSearch};

/// An agent backed by a language model: a system message, tools, and a view of the chat.
///
/// In its turn it calls the model. As long as the model calls tools, the agent runs them and calls the model again; the
/// final reply is its message. Models without native function calls get the tools in their prompts; see
/// [`tooling`](crate::agents::tooling).
///
/// # A model with a system message
/// ```
/// # fn example(model: polylogue_core::AnyModel) -> Result<(), polylogue_core::NameError> {
/// use polylogue::Assistant;
/// let poet = Assistant::new("Poet", model)?.system_from(|task| format!("You answer in rhymes. Your task: {task}"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, derive_more::Debug)]
#[must_use]
pub struct Assistant {
    pub(super) name: Name,
    pub(super) description: String,
    pub(crate) model: AnyModel,
    #[debug(skip)]
    system: Option<SystemFn>,
    /// The agent's own tools.
    pub(crate) prompted: Vec<PromptedTool>,
    /// When its model searches the own tools.
    tool_search: Option<ToolSearch>,
    /// The tools that search, if it does.
    pub(super) searching: Vec<PromptedTool>,
    /// Agents and chats offered as tools.
    pub(crate) agent_tools: Vec<AgentTool>,
    /// Open background tasks at most.
    pub(crate) max_background: usize,
    /// The tools for background tasks, if it can start some.
    task_specs: Vec<ToolSpec>,
    /// Tools that other participants run.
    pub(crate) advertised: Vec<ToolSpec>,
    /// Those that the model receives, own tools first.
    pub(crate) specs: Vec<ToolSpec>,
    /// The number of its own tools in `specs`.
    pub(super) offered_own: usize,
    /// All tools; a suggested tool that runs here is refused.
    pub(crate) callable: Vec<AnyTool>,
    pub(crate) params: Params,
    pub(crate) view: ViewOptions,
    pub(crate) max_rounds: u32,
    /// Continuations of a truncated reply; `None` for the default.
    max_continuations: Option<u32>,
    pub(crate) tool_calling: ToolCalling,
    pub(crate) tool_history: ToolHistory,
    /// JSON Schema of the agent's messages.
    pub(crate) output_schema: Option<Arc<Value>>,
    pub(crate) output_retries: u32,
    pub(crate) approval: Approval<ApprovalRequest>,
    compaction: Option<Compaction>,
}

impl Assistant {
    /// Default limit on rounds of tool calls per turn.
    pub const DEFAULT_MAX_TOOL_ROUNDS: u32 = 16;

    /// Default limit on continuations of a text that reached the token limit.
    pub const DEFAULT_MAX_CONTINUATIONS: u32 = 3;

    /// Default of [`output_retries`](Self::output_retries).
    pub const DEFAULT_OUTPUT_RETRIES: u32 = 3;

    /// Creates an agent named `name` that replies by `model`.
    ///
    /// # Errors
    /// When the name is illegal.
    pub fn new(name: impl AsRef<str>, model: impl Into<AnyModel>) -> Result<Self, NameError> {
        Ok(Self {
            name: Name::new(name)?,
            description: String::new(),
            model: model.into(),
            system: None,
            prompted: Vec::new(),
            tool_search: Some(ToolSearch::default()),
            searching: Vec::new(),
            agent_tools: Vec::new(),
            max_background: background::DEFAULT_MAX_BACKGROUND,
            task_specs: Vec::new(),
            advertised: Vec::new(),
            specs: Vec::new(),
            offered_own: 0,
            callable: Vec::new(),
            params: Params::default(),
            view: ViewOptions::default(),
            max_rounds: Self::DEFAULT_MAX_TOOL_ROUNDS,
            max_continuations: None,
            tool_calling: ToolCalling::default(),
            tool_history: ToolHistory::default(),
            output_schema: None,
            output_retries: Self::DEFAULT_OUTPUT_RETRIES,
            approval: Approval::never(),
            compaction: Some(Compaction::default()),
        })
    }

    /// Sets the system message.
    pub fn system(self, text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        Self { system: Some(Arc::new(move |_| Arc::clone(&text))), ..self }
    }

    /// Sets a system message made from the task of the agent's chat. Must be deterministic.
    pub fn system_from(self, text: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self { system: Some(Arc::new(move |task| text(task).into())), ..self }
    }

    /// Sets the description of the agent, which speaker selection reads.
    pub fn description(self, text: impl Into<String>) -> Self {
        Self { description: text.into(), ..self }
    }

    /// Adds a tool that the model may call. Replaces a tool of the same name.
    pub fn tool(self, tool: impl Tool) -> Self {
        self.prompted_tool(PromptedTool::new(tool))
    }

    /// Adds several tools, such as those of a [toolkit](macro@crate::toolkit).
    pub fn tools(self, tools: impl IntoIterator<Item = AnyTool>) -> Self {
        tools.into_iter().fold(self, Self::tool)
    }

    /// Adds a tool with prompting options: required or not, examples, error limits. Replaces a tool of the same name.
    pub fn prompted_tool(self, prompted: PromptedTool) -> Self {
        let mut other = self.without_tool(prompted.name());
        other.prompted.push(prompted);
        other.with_specs()
    }

    /// Offers an agent or a chat to the model as a tool, run within this agent's turn. Replaces a tool of the same
    /// name.
    pub fn agent_tool(self, agent_tool: AgentTool) -> Self {
        let needs_tasks = agent_tool.is_background() && self.task_specs.is_empty();
        let mut other = self.tool(agent_tool.tool());
        other.agent_tools.push(agent_tool);
        if needs_tasks {
            let specs = background::specs()
                .into_iter()
                .filter(|spec| other.prompted.iter().all(|tool| tool.name() != spec.name));
            let specs: Vec<ToolSpec> = specs.collect();
            other.prompted.extend(specs.iter().map(|spec| {
                PromptedTool::new(known(spec.clone(), Vec::new(), "there are no background tasks here"))
            }));
            other.task_specs = specs;
        }
        other.with_specs()
    }

    /// Sets how many [background tasks](crate::tools::background) of this agent can be open in a chat. A further one is refused.
    /// Default: [`DEFAULT_MAX_BACKGROUND`](crate::tools::background::DEFAULT_MAX_BACKGROUND).
    pub fn max_background(self, tasks: usize) -> Self {
        Self { max_background: tasks, ..self }
    }

    /// Its tools for background tasks.
    pub(crate) fn task_specs(&self) -> &[ToolSpec] {
        &self.task_specs
    }

    /// Sets which calls of the agent's own tools need approval by a person, [agent tools](Self::agent_tool) included.
    /// Default: none. The person can approve, reject or edit the call; the model receives the decision and the turn
    /// continues. Calls of [suggested tools](Self::suggest_tool) are approved by the participant that runs them.
    pub fn approval(self, approval: Approval<ApprovalRequest>) -> Self {
        Self { approval, ..self }
    }

    /// Sets how the model calls tools and writes structured output. Default: the best way that it supports.
    pub fn tool_calling(self, tool_calling: ToolCalling) -> Self {
        Self { tool_calling, ..self }
    }

    /// Sets what the agent's history keeps of a turn with prompted tool calls.
    pub fn tool_history(self, tool_history: ToolHistory) -> Self {
        Self { tool_history, ..self }
    }

    /// Sets the JSON Schema that every message of the agent must satisfy. Works with any model: one without structured
    /// output is prompted with the schema. The message holds the JSON as text, and as a value in
    /// [`Part::Data`](polylogue_core::Part::Data). Checks the common keywords of JSON Schema, `pattern` included, not
    /// `format`.
    ///
    /// ([`Params::schema`] is passed to the provider unchanged, and the reply is not checked.)
    pub fn output_schema(self, schema: Value) -> Self {
        Self { output_schema: Some(Arc::new(schema)), ..self }
    }

    /// Sets how often a reply that violates the schema is repaired: the model is asked in a private turn, with the
    /// schema, the reply and its errors. After the last repair the chat ends with
    /// [`LibraryStopReason::Errors`](crate::stop::LibraryStopReason::Errors).
    pub fn output_retries(self, retries: u32) -> Self {
        Self { output_retries: retries, ..self }
    }

    /// Offers a tool to the model that another participant runs, such as one with an
    /// [`Executor`](crate::layers::executor::Executor). A call of it ends the turn and is part of the message; the agent's own
    /// tools called in the same reply run before. Replaces a tool of the same name. Not offered in private turns, where
    /// no other participant could run it.
    pub fn suggest_tool(self, spec: ToolSpec) -> Self {
        let mut other = self.without_tool(&spec.name);
        other.advertised.push(spec);
        other.with_specs()
    }

    /// Sets when the model [searches](crate::tools::search) the agent's own tools instead of receiving the definitions
    /// of all. Default: if there are more than [`DEFAULT_ABOVE`](ToolSearch::DEFAULT_ABOVE).
    pub fn tool_search(self, search: ToolSearch) -> Self {
        Self { tool_search: Some(search), ..self }.with_specs()
    }

    /// Sends the model the definitions of all tools, however many there are.
    pub fn without_tool_search(self) -> Self {
        Self { tool_search: None, ..self }.with_specs()
    }

    /// The same agent without tools and without an output schema.
    pub(crate) fn without_tools(self) -> Self {
        let params = Params { schema: None, ..self.params };
        let (prompted, agent_tools, task_specs) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            prompted,
            agent_tools,
            task_specs,
            advertised: Vec::new(),
            output_schema: None,
            params,
            ..self
        }
        .with_specs()
    }

    fn without_tool(mut self, name: &str) -> Self {
        self.prompted.retain(|prompted| prompted.name() != name);
        self.agent_tools.retain(|agent_tool| agent_tool.name() != name);
        self.task_specs.retain(|spec| spec.name != name);
        self.advertised.retain(|spec| spec.name != name);
        self
    }

    fn with_specs(self) -> Self {
        let searching = self.searching();
        let is_searching = !searching.is_empty();
        let offered = self.prompted.iter().filter(|prompted| !is_searching || !self.is_searched(prompted));
        let own = offered.chain(&searching).map(|prompted| prompted.tool().spec());
        let mut specs: Vec<ToolSpec> = own.cloned().collect();
        let offered_own = specs.len();
        specs.extend(self.advertised.iter().cloned());
        // A refusal has no side effects.
        let refuse = |spec: &ToolSpec| {
            known(spec.clone().repeatable(), Vec::new(), format!("Nobody runs `{}` here.", spec.name))
        };
        let own = self.prompted.iter().chain(&searching).map(|prompted| prompted.tool().clone());
        let callable = own.chain(self.advertised.iter().map(refuse)).collect();
        Self { specs, offered_own, callable, searching, ..self }
    }

    /// The tools that search, if there are enough to search.
    fn searching(&self) -> Vec<PromptedTool> {
        if !self.tool_search.as_ref().is_some_and(|search| search.is_active(self.prompted.len())) {
            return Vec::new();
        }
        let specs = || self.prompted.iter().map(|prompted| prompted.tool().spec());
        let searched = self.prompted.iter().filter(|prompted| self.is_searched(prompted));
        let searched = searched.map(|prompted| prompted.tool().spec().clone()).collect();
        let tools = search::tools(searched, specs().chain(&self.advertised));
        tools.into_iter().flatten().map(PromptedTool::of).collect()
    }

    /// Whether a search finds the tool, instead of the model receiving its definition.
    fn is_searched(&self, prompted: &PromptedTool) -> bool {
        let is_agent = self.agent_tools.iter().any(|agent_tool| agent_tool.name() == prompted.name());
        let is_of_tasks = self.task_specs.iter().any(|spec| spec.name == prompted.name());
        let defers = |search: &ToolSearch| search.defers(prompted.tool().spec());
        !prompted.must && !is_agent && !is_of_tasks && self.tool_search.as_ref().is_some_and(defers)
    }

    /// Its own tools that the model receives.
    pub(super) fn offered(&self) -> impl Iterator<Item = &PromptedTool> {
        let own = self.specs.get(..self.offered_own).unwrap_or_default();
        let all = || self.prompted.iter().chain(&self.searching);
        own.iter().filter_map(move |spec| all().find(|prompted| prompted.name() == spec.name))
    }

    /// Sets sampling parameters, such as the temperature.
    pub fn params(self, params: Params) -> Self {
        Self { params, ..self }
    }

    /// Sets how the agent sees the chat.
    pub fn view(self, view: ViewOptions) -> Self {
        Self { view, ..self }
    }

    /// Sets the limit on rounds of tool calls per turn, at least 1. After the last round the model is prompted to
    /// answer; further calls are refused, and the text of that reply is the message.
    pub fn max_tool_rounds(self, rounds: u32) -> Self {
        Self { max_rounds: rounds.max(1), ..self }
    }

    /// Sets when and how the agent's history is [compacted](crate::agents::compaction). Default: at 80 % of the context
    /// window if that is known, and when a provider refuses a request as too long. Never, if the [window](ViewOptions::window) of the
    /// view is set.
    pub fn compaction(self, compaction: Compaction) -> Self {
        Self { compaction: Some(compaction), ..self }
    }

    /// Disables compaction of the agent's history: a request that exceeds the context window ends the chat.
    pub fn without_compaction(self) -> Self {
        Self { compaction: None, ..self }
    }

    /// How the agent's history is compacted, if it is.
    pub(crate) fn active_compaction(&self) -> Option<&Compaction> {
        self.compaction.as_ref().filter(|_| self.view.window == Window::All)
    }

    /// Sets how often a text that reached the token limit is continued: the model is asked for the rest, and both are
    /// one message. Default: [`DEFAULT_MAX_CONTINUATIONS`](Self::DEFAULT_MAX_CONTINUATIONS), or 0 when
    /// [`Params::max_tokens`] is set, since the caller chose that limit. Structured output is not continued. A text
    /// that is still truncated, or was filtered by the provider, is marked with
    /// [`Part::Cut`](polylogue_core::Part::Cut).
    pub fn max_continuations(self, times: u32) -> Self {
        Self { max_continuations: Some(times), ..self }
    }

    /// The limit on continuations of a reply with `params`.
    pub(crate) fn continuations(&self, params: &Params) -> u32 {
        let is_formed = params.schema.is_some() || params.json;
        let default = if params.max_tokens.is_some() { 0 } else { Self::DEFAULT_MAX_CONTINUATIONS };
        if is_formed { 0 } else { self.max_continuations.unwrap_or(default) }
    }

    /// Returns the system message in a chat with this `task`.
    pub fn system_for(&self, task: &str) -> Option<Arc<str>> {
        self.system.as_ref().map(|text| text(task))
    }

    /// Returns the view options: how the agent sees the chat.
    pub const fn view_options(&self) -> &ViewOptions {
        &self.view
    }

    /// Returns the specs of the tools that the model receives: all, or those of a [search](crate::tools::search) and those that
    /// are always offered.
    pub fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }

    /// Returns the specs of the tools that the model finds by a [search](crate::tools::search), and has no definitions of
    /// before; none if it does not search.
    pub fn searched(&self) -> impl Iterator<Item = &ToolSpec> {
        let searches = !self.searching.is_empty();
        let searched = self.prompted.iter().filter(move |prompted| searches && self.is_searched(prompted));
        searched.map(|prompted| prompted.tool().spec())
    }

    /// Returns the sampling parameters of the model.
    pub const fn model_params(&self) -> &Params {
        &self.params
    }

    /// The tools that it runs itself.
    pub(crate) fn own_tools(&self) -> &[AnyTool] {
        self.callable.get(..self.prompted.len() + self.searching.len()).unwrap_or_default()
    }

    /// Runs calls of `tools`, its own.
    pub(crate) fn runner<'a>(&'a self, tools: &'a [AnyTool]) -> Runner<'a> {
        Runner { tools, approval: &self.approval, searches: !self.searching.is_empty() }
    }

    /// Whether another participant runs the tool.
    pub(crate) fn is_for_others(&self, call: &ToolCall) -> bool {
        self.advertised.iter().any(|spec| spec.name == call.tool)
    }
}

impl Compaction {
    /// Sets the agent that summarizes: its model and parameters, with its system message before the instructions for the
    /// summary. Its tools are not used.
    pub fn by_agent(self, agent: &Assistant) -> Self {
        let Assistant { model, params, system, .. } = agent;
        self.by_author(Author { model: model.clone(), params: params.clone(), system: system.clone() })
    }
}
