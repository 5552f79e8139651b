//! Tool search: an agent with many tools offers its model a search instead of all definitions.
//!
//! Definitions of many tools fill the context window, and models choose worse among them. An
//! [`Assistant`](crate::Assistant) with more than 40 tools therefore offers two in their place: `search_tools` returns
//! the definitions that match a query, and `call_tool` calls one of the tools found. Definitions arrive as results,
//! after everything sent so far: the tools of a request never change, so the provider's prompt cache stays valid in a
//! long conversation. A found tool can also be called by its own name.
//!
//! Always offered are mandatory tools, agents and chats as tools, tools that end the turn (such as handoffs), tools
//! that other participants run, the reader of [large results](super::results), and those of [`always`](ToolSearch::always). Approval, limits and the log have the
//! calls of the tools themselves: `call_tool` is not in them. If the agent has a tool of its own that is named
//! `search_tools` or `call_tool`, its model receives all definitions.
//!
//! Limits on the size of results hold for the tools that are found, and not for the definitions that a search returns:
//! half a definition is of no use. [`longest_result`] says how long they are at most.
//!
//! # A search among more than 100 tools, except for one that is used in every turn
//! ```
//! use polylogue::tools::search::ToolSearch;
//! # fn example(agent: polylogue::Assistant) -> polylogue::Assistant {
//! agent.tool_search(ToolSearch::default().above(100).always(["clock"]))
//! # }
//! ```

mod rank;

use std::sync::{Arc, OnceLock};

use polylogue_core::{AnyTool, StoredResult, Tool, ToolCall, ToolCx, ToolError, ToolResult, ToolSpec};
use serde_json::{Value, json};

use self::rank::Index;

/// The tool that searches.
const SEARCH: &str = "search_tools";
/// The tool that calls what was found.
const CALL: &str = "call_tool";

/// Number of tools that a search returns if the model does not say.
const RESULTS: u64 = 5;
/// Maximum number of tools that a search returns.
const MAX_RESULTS: u64 = 20;
/// Number of tools that the error for an unknown one names.
const SIMILAR: usize = 3;

/// The most bytes of a result that repeats what the model wrote: the query, or the name of an unknown tool.
const FAILURE: usize = 1024;
/// Bytes of the sentence after the definitions, at most.
const NOTE: usize = 64;

/// Settings of the search by which an agent's model finds tools, instead of receiving all definitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSearch {
    above: usize,
    always: Vec<String>,
}

impl Default for ToolSearch {
    fn default() -> Self {
        Self { above: Self::DEFAULT_ABOVE, always: Vec::new() }
    }
}

impl ToolSearch {
    /// Default of [`above`](Self::above).
    pub const DEFAULT_ABOVE: usize = 40;

    /// The names of the tools that search, and call what was found.
    pub const TOOLS: [&'static str; 2] = [SEARCH, CALL];

    /// Sets the number of tools up to which the model receives all definitions. 0 means that it always searches.
    #[must_use]
    pub fn above(self, tools: usize) -> Self {
        Self { above: tools, ..self }
    }

    /// Sets the tools whose definitions the model always receives, by name.
    #[must_use]
    pub fn always<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Self {
        Self { always: names.into_iter().map(Into::into).collect(), ..self }
    }

    /// Whether an agent with `count` tools searches.
    pub(crate) const fn is_active(&self, count: usize) -> bool {
        count > self.above
    }

    /// Whether the definition of `tool` is left out while the agent searches.
    pub(crate) fn defers(&self, tool: &ToolSpec) -> bool {
        let is_reader = tool.name == StoredResult::READER;
        !tool.ends_turn && !is_reader && !self.always.contains(&tool.name)
    }
}

/// The two tools of an agent that searches among `tools`; `None` if one of `all` has a name of theirs.
pub(crate) fn tools<'t>(
    tools: Vec<ToolSpec>,
    all: impl IntoIterator<Item = &'t ToolSpec>,
) -> Option<[AnyTool; 2]> {
    if tools.is_empty() || all.into_iter().any(|spec| spec.name == SEARCH || spec.name == CALL) {
        return None;
    }
    let tools = Arc::new(Searched { tools, index: OnceLock::new() });
    Some([AnyTool::new(SearchTools::new(Arc::clone(&tools))), AnyTool::new(CallTool::new(tools))])
}

/// Returns the maximum number of bytes of a result of `search_tools` among `tools`, and of `call_tool` for a tool that is not
/// one of them.
///
/// ```
/// use polylogue::kernel::data::{ToolResult, ToolSpec};
/// use polylogue::tools::search::longest_result;
/// let tool = |words| ToolSpec::new("scan", "word ".repeat(words), serde_json::json!({"type": "object"}));
/// assert!(longest_result(&[tool(1_000)]) > 5_000);
/// assert_eq!(longest_result(&[tool(1_000_000)]), ToolResult::MAX_BYTES);
/// ```
pub fn longest_result<'t>(tools: impl IntoIterator<Item = &'t ToolSpec>) -> usize {
    let mut sizes: Vec<usize> = tools.into_iter().map(|tool| definition(tool).len() + 1).collect();
    sizes.sort_unstable_by(|one, other| other.cmp(one));
    let most = usize::try_from(MAX_RESULTS).unwrap_or(usize::MAX);
    let found: usize = sizes.iter().take(most).sum();
    (found + NOTE).clamp(FAILURE, ToolResult::MAX_BYTES)
}

/// Whether a call of `tool` by an agent that searches needs no approval: nothing is done by it.
pub(crate) fn is_harmless(tool: &str) -> bool {
    tool == SEARCH || tool == CALL
}

/// The call that `call` makes: by `call_tool`, that of the named tool, if it is one of `tools`.
pub(crate) fn unwrapped(call: ToolCall, tools: &[AnyTool]) -> ToolCall {
    let name = call.args.get("name").and_then(Value::as_str).map(str::trim).filter(|_| call.tool == CALL);
    let is_there = |name: &&str| *name != CALL && tools.iter().any(|tool| tool.spec().name == **name);
    let Some(name) = name.filter(is_there) else { return call };
    let args = match call.args.get("arguments") {
        None | Some(Value::Null) => json!({}),
        // Models also write an object as a text.
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
        Some(args) => args.clone(),
    };
    ToolCall { tool: name.to_owned(), args, id: call.id }
}

/// The tools of a search.
struct Searched {
    tools: Vec<ToolSpec>,
    /// Made by the first search.
    index: OnceLock<Index>,
}

impl Searched {
    /// The tools that match `query` best, at most `limit`.
    fn best(&self, query: &str, limit: usize) -> Vec<&ToolSpec> {
        let index = self.index.get_or_init(|| Index::new(&self.tools));
        index.best(query, limit).into_iter().filter_map(|index| self.tools.get(index)).collect()
    }
}

struct SearchTools {
    spec: ToolSpec,
    searched: Arc<Searched>,
}

impl SearchTools {
    fn new(searched: Arc<Searched>) -> Self {
        let description = format!(
            "Searches {} more tools by what they do, and returns the names, descriptions and arguments of those that \
             match best. Call one of them by `{CALL}`. Search before you say that you cannot do something.",
            searched.tools.len()
        );
        let parameters = json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What the tool should do, in a few words, or its name."},
                "limit": {
                    "type": "integer", "minimum": 1, "maximum": MAX_RESULTS,
                    "description": format!("Maximum number of tools; {RESULTS} if it is left out."),
                },
            },
            "required": ["query"],
            "additionalProperties": false,
        });
        Self { spec: ToolSpec::new(SEARCH, description, parameters).repeatable(), searched }
    }
}

impl Tool for SearchTools {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: Value, _: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let query = args.get("query").and_then(Value::as_str).map(str::trim).unwrap_or_default();
        if query.is_empty() {
            return Err("`query` must say what the tool should do.".into());
        }
        let limit = args.get("limit").and_then(Value::as_u64).unwrap_or(RESULTS).clamp(1, MAX_RESULTS);
        let best = self.searched.best(query, usize::try_from(limit).unwrap_or(usize::MAX));
        if best.is_empty() {
            let count = self.searched.tools.len();
            let none = format!("None of the {count} tools matches `{query}`. Search with other words.");
            return Ok(ToolResult::done(none).truncated_to(FAILURE));
        }
        let found: Vec<String> = best.into_iter().map(definition).collect();
        Ok(ToolResult::done(format!("{}\n\nCall one by `{CALL}`.", found.join("\n"))))
    }
}

/// What a model needs to call a tool, as one line of JSON.
fn definition(tool: &ToolSpec) -> String {
    json!({"name": tool.name, "description": tool.description, "arguments": tool.parameters}).to_string()
}

/// Only reached by calls that [`unwrapped`] leaves: those of unknown tools.
struct CallTool {
    spec: ToolSpec,
    searched: Arc<Searched>,
}

impl CallTool {
    fn new(searched: Arc<Searched>) -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": format!("Name of the tool, as `{SEARCH}` returned it.")},
                "arguments": {"type": "object", "description": "Arguments of the tool, by its JSON Schema."},
            },
            "required": ["name", "arguments"],
        });
        let description = format!("Calls a tool that `{SEARCH}` returned.");
        Self { spec: ToolSpec::new(CALL, description, parameters).repeatable(), searched }
    }
}

impl Tool for CallTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: Value, _: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let Some(name) = args.get("name").and_then(Value::as_str) else {
            return Err("`name` must be the name of a tool.".into());
        };
        let similar = self.searched.best(name, SIMILAR);
        let similar: Vec<String> = similar.iter().map(|tool| format!("`{}`", tool.name)).collect();
        let similar = match similar.is_empty() {
            true => String::new(),
            false => format!(" Similar: {}.", similar.join(", ")),
        };
        let failed = format!("There is no tool `{name}`.{similar} `{SEARCH}` finds tools.");
        Err(ToolError(ToolResult::failed(failed).truncated_to(FAILURE).text().into_owned()))
    }
}
