//! How models call tools.

use indexmap::IndexMap;
use polylogue::agents::tooling::{PromptedTool, ToolCalling, ToolHistory};
use polylogue::tools::results::LargeResults;
use polylogue::tools::search::ToolSearch;
use polylogue_config::types::Text;
use polylogue_config::{At, Config, Illegal, NameKind, Ref};
use polylogue_core::{AnyTool, Money, StateScope, ToolResult};
use polylogue_tools::LimitedTool;
use serde_json::{Map, Value};

use crate::built_in::{SET_STATE, known_tools};
use crate::diagnostic::Report;
use crate::duration::Time;
use crate::mcp::McpTools;
use crate::set::Set as _;
use crate::suggest;

/// The name of a tool.
pub(crate) struct ToolKind;
/// The name of a tool that an agent is given.
pub(crate) type ToolRef = At<Ref<ToolKind>>;

impl NameKind for ToolKind {
    type Name = String;
    const KIND: &'static str = "tool";
    const NOUN: &'static str = "a tool";
    const TEXT: Text = Text { format: "tool", ..Text::PLAIN };

    fn parse(text: &str) -> Result<String, Illegal> {
        Ok(text.to_owned())
    }

    fn hole() -> String {
        String::new()
    }

    fn hint(name: &str, names: &[&str]) -> String {
        let known = suggest::hint(name, names.iter().copied());
        match suggest::closest(name, names.iter().copied()) {
            Some(_) => known,
            None => format!("define a function of yours in `commands`, or a server in `mcp`; {known}"),
        }
    }
}

/// Way in which a model calls tools and satisfies an output schema.
#[derive(Config)]
#[config(name = "ToolCalling", for = ToolCalling)]
pub(crate) enum ToolCallingKey {
    /// Best way that the model supports.
    Auto,
    /// Function calls of the provider's API.
    Native,
    /// Replies constrained by a JSON Schema.
    Schema,
    /// Prompted step by step, with the provider's JSON mode where JSON is requested.
    Json,
    /// Prompted step by step, in plain text.
    Text,
}

/// Messages that remain in an agent's history after a turn in which it called tools step by step.
#[derive(Config)]
#[config(name = "ToolHistory", for = ToolHistory)]
pub(crate) enum ToolHistoryKey {
    /// The reply.
    Answer,
    /// Five messages: the task, the question whether to use the tool, the decision, the arguments, and the result,
    /// which is also the reply.
    Full,
}

/// When a model searches an agent's tools.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "ToolSearch")]
pub struct ToolSearchKeys {
    /// Number of tools up to which the model receives the definitions of all.
    #[key(default = ToolSearch::DEFAULT_ABOVE)]
    pub above: usize,
    /// Names of tools whose definitions the model always receives.
    #[key(unique)]
    pub always: Vec<String>,
}

impl ToolSearchKeys {
    pub(crate) fn built(&self) -> ToolSearch {
        ToolSearch::default().above(self.above).always(&self.always)
    }
}

/// Limits on each call of an agent's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Config)]
#[config(nonempty)]
pub struct ToolLimits {
    /// Time limit of a call, such as `30 s`. A call that takes longer fails, and the agent continues.
    #[key(none = "the limit of the tool")]
    pub timeout: Option<Time>,
    /// Maximum size of a result in bytes. Longer text is cut in the middle, and the result says so.
    #[key(default = most_bytes(), range = 100..=65_536)]
    pub max_output_bytes: u32,
    /// What happens to a result that is longer than `max_output_bytes`. For the agent's own `tools`; others are truncated.
    #[key(default = LargeResultsKey::Truncate)]
    pub large_results: LargeResultsKey,
}

/// What happens to large results of an agent's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Config)]
#[config(name = "LargeResults")]
pub enum LargeResultsKey {
    /// Text is cut in the middle.
    Truncate,
    /// The whole is stored with the conversation: the model receives its beginning and its end, and reads more of it with
    /// the tool `read_result`, which the agent then has.
    Store,
}

fn most_bytes() -> u32 {
    u32::try_from(ToolResult::MAX_BYTES).unwrap_or(u32::MAX)
}

impl Default for ToolLimits {
    fn default() -> Self {
        Self::absent()
    }
}

impl ToolLimits {
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// `tool` within these limits.
    pub(crate) fn around(self, tool: AnyTool) -> AnyTool {
        if self.is_none() {
            return tool;
        }
        let most = if self.stored().is_some() { usize::MAX } else { self.bytes() };
        let tool = LimitedTool::new(tool).max_bytes(most);
        let tool = AnyTool::new(tool.set(self.timeout, |tool, time| tool.within(time.into())));
        self.stored().map_or(tool.clone(), |stored| stored.around(tool))
    }

    fn bytes(self) -> usize {
        usize::try_from(self.max_output_bytes).unwrap_or(ToolResult::MAX_BYTES)
    }

    /// The same limits for tools whose large results are truncated.
    pub(crate) fn truncating(self) -> Self {
        Self { large_results: LargeResultsKey::Truncate, ..self }
    }

    /// How large results are stored, if they are.
    pub(crate) fn stored(self) -> Option<LargeResults> {
        let is_stored = self.large_results == LargeResultsKey::Store;
        is_stored.then(|| LargeResults::default().above(self.bytes()))
    }
}

/// `tool`, of which a call costs at most this many dollars, if that is declared.
pub(crate) fn costing(tool: AnyTool, dollars: Option<f64>) -> AnyTool {
    match dollars.map(Money::dollars) {
        Some(most) => AnyTool::new(LimitedTool::new(tool).max_cost(most)),
        None => tool,
    }
}

/// A tool of an agent or a task: its name, or a mapping.
#[derive(Debug, Clone, PartialEq, Config)]
#[config(shorthand = "tool")]
pub struct NamedTool {
    /// Name of the tool.
    #[key(as = ToolRef)]
    pub tool: At<String>,
    /// Scope of the state of `set_state` and `chess`: `team` shares it with nested chats and later runs, `chat` limits
    /// it to one run of the chat.
    #[key(as = Option<At<ToolScope>>, none = "`team`")]
    pub scope: Option<At<StateScope>>,
    /// Keys of the state that `set_state` can set. The model receives the list, calls with other keys fail, and `polylogue check`
    /// finds conditions that read others.
    #[key(none = "any", nonempty, unique)]
    pub keys: At<Vec<String>>,
    /// Requires a call of the tool in every turn in which the agent speaks to others.
    #[key(default = false)]
    pub mandatory: At<bool>,
    /// Examples for models that write arguments as text. They are not in any history.
    pub examples: At<Vec<ToolExample>>,
    /// Maximum number of consecutive calls written as text that the tool rejects. One more ends the chat.
    #[key(default = PromptedTool::DEFAULT_MAX_ERRORS, range = 0..=1000)]
    pub max_errors: At<u32>,
    /// Maximum number of consecutive calls written as text whose arguments do not match the tool. One more ends the
    /// chat.
    #[key(default = PromptedTool::DEFAULT_MAX_ERRORS, range = 0..=1000)]
    pub max_call_errors: At<u32>,
}

/// A tool that an agent executes for others: its name, or a mapping.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(shorthand = "tool")]
pub struct RunTool {
    /// Name of the tool.
    #[key(as = ToolRef)]
    pub tool: At<String>,
    /// Scope of the state of `set_state` and `chess`: `team` shares it with nested chats and later runs, `chat` limits
    /// it to one run of the chat.
    #[key(as = Option<At<ToolScope>>, none = "`team`")]
    pub scope: Option<At<StateScope>>,
}

/// Scope of the state of a tool.
#[derive(Config)]
#[config(for = StateScope)]
enum ToolScope {
    /// The team: the outermost chat with all nested chats, and later runs of them.
    Team,
    /// One run of one chat.
    Chat,
}

/// An example of a tool call.
#[derive(Debug, Clone, PartialEq, Config)]
#[config(name = "ToolExample")]
pub struct ToolExample {
    /// Request that leads to the call.
    #[key(nonempty)]
    pub user: String,
    /// Arguments of the call.
    #[key(required)]
    pub args: At<IndexMap<String, At<Value>>>,
}

impl NamedTool {
    /// Whether it sets some keys of the state, and no others.
    pub(crate) fn sets_keys(&self) -> bool {
        *self.tool == SET_STATE && !self.keys.is_empty()
    }

    /// `tool` with how it is prompted.
    pub(crate) fn prompted(&self, tool: AnyTool) -> PromptedTool {
        let mut prompted =
            PromptedTool::new(tool).max_errors(*self.max_errors).max_call_errors(*self.max_call_errors);
        prompted = prompted.set_if(*self.mandatory, PromptedTool::mandatory);
        for ToolExample { user, args } in self.examples.iter() {
            let args: Map<String, Value> =
                args.iter().map(|(name, value)| (name.clone(), value.value.clone())).collect();
            prompted = prompted.example(user, args.into());
        }
        prompted
    }
}

/// A tool of an agent or of a task.
#[derive(Debug, Clone, PartialEq, Config)]
#[config(name = "Tool", by_shape)]
pub enum ToolEntry {
    /// A tool by its name, or `files` for all file tools.
    Own(NamedTool),
    /// Tools of an MCP server.
    Mcp(McpTools),
}

impl ToolEntry {
    pub(crate) fn own(&self) -> Option<&NamedTool> {
        match self {
            Self::Own(own) => Some(own),
            Self::Mcp(_) => None,
        }
    }

    pub(crate) fn mcp(&self) -> Option<&McpTools> {
        match self {
            Self::Own(_) => None,
            Self::Mcp(tools) => Some(tools),
        }
    }
}

/// Reports arguments in the examples of tools that these do not take, and those that they need.
pub(crate) fn check_examples(tools: &[At<ToolEntry>], report: &mut Report<'_>) {
    for own in tools.iter().filter_map(|given| given.own()).filter(|own| !own.examples.is_empty()) {
        if let Some(spec) = known_tools().iter().find(|spec| spec.name == **own.tool) {
            own.examples
                .iter()
                .for_each(|example| check_args(&example.args, &spec.name, &spec.parameters, report));
        }
    }
}

fn check_args(
    args: &At<IndexMap<String, At<Value>>>,
    name: &str,
    parameters: &Value,
    report: &mut Report<'_>,
) {
    if !args.ok {
        return;
    }
    let takes: Vec<&str> = parameters.get("properties").map(keys).unwrap_or_default();
    for (key, value) in args.iter().filter(|(key, _)| !takes.contains(&key.as_str())) {
        let hint = suggest::hint(key, takes.iter().copied());
        report.error_with_hint(value.key(), format!("`{name}` takes no `{key}`"), hint);
    }
    let needs = parameters.get("required").and_then(Value::as_array).into_iter().flatten();
    for key in needs.filter_map(Value::as_str).filter(|key| !args.contains_key(*key)) {
        report.error(args.key(), format!("`{name}` needs the argument `{key}`"));
    }
}

fn keys(of: &Value) -> Vec<&str> {
    of.as_object().into_iter().flat_map(|of| of.keys().map(String::as_str)).collect()
}
