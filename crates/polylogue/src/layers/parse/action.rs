//! Runs parsed tool calls.

use std::ops::ControlFlow;

use polylogue_core::{
    Act, Agent, AnyTool, Message, Name, NameError, Part, Result, Tool, ToolCall, ToolResult, ToolStatus,
    Turn, no_such_tool,
};
use serde_json::{Value, json};

use super::call_record::{CallRecord, RunState};
use super::tool_table::ToolTable;
use super::{ParsedBlock, value};
use crate::agents::lenient;
use crate::json_schema::check;
use crate::tools::approval::{Approval, ApprovalRequest};
use crate::tools::runner::{Finished, Runner};

/// An agent that runs the tool call in a message and replies with the result.
///
/// It runs parsed values: a [`ParsedBlock`], or any value of the form `{"name": ..., "parameters": {...}}`. A block with
/// plain text is code, for the tool that [`tool_for`](Self::tool_for) its kind. Text that could not be parsed never runs; the
/// sender receives the error.
///
/// It always replies: with the output of the tool or with an error, as text, and with a [`CallRecord`] for programs. The
/// caller finishes with a tool that [ends the turn](polylogue_core::ToolSpec::ends_turn), such as
/// [`Finish`](crate::tools::tool::Finish).
///
/// # Tools by name, and tools of a toolkit by qualified name
/// ```
/// use polylogue::layers::parse::{ActionExecutor, CallRecord, RunState};
/// use polylogue::tools::tool::Finish;
/// use polylogue::kernel::data::Part;
/// use polylogue::{Message, Session, toolkit};
///
/// struct Shop;
///
/// #[toolkit]
/// impl Shop {
///     /// Tells the price of an article.
///     #[tool(repeatable)]
///     fn price(&self, article: String) -> String {
///         format!("{article}: 5 EUR")
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let runner = ActionExecutor::new("runner")?.toolkit("Shop", Shop.tools()).tool(Finish::default());
/// let session = Session::in_memory();
/// let call = serde_json::json!({"name": "Shop.price", "parameters": {"article": "tea"}});
/// let reply = session.call(&runner, Message { parts: vec![Part::Note(call)], ..Message::from("") }).await?;
/// assert_eq!(reply.text(), "tea: 5 EUR");
/// assert_eq!(CallRecord::from_message(&reply).map(|ran| ran.state), Some(RunState::Done));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct ActionExecutor {
    name: Name,
    kit: ToolTable,
    kinds: Vec<Kind>,
    approval: Approval<ApprovalRequest>,
}

/// The tool that runs text blocks of a kind.
#[derive(Debug, Clone)]
struct Kind {
    kind: String,
    tool: String,
    argument: String,
}

impl ActionExecutor {
    /// Creates an agent without tools.
    ///
    /// # Errors
    /// When the name is illegal.
    pub fn new(name: impl AsRef<str>) -> Result<Self, NameError> {
        let (kit, kinds, approval) = (ToolTable::default(), Vec::new(), Approval::never());
        Ok(Self { name: Name::new(name)?, kit, kinds, approval })
    }

    /// Adds a tool. Replaces a tool of the same name.
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.kit.add(AnyTool::new(tool));
        self
    }

    /// Adds tools that are called as `name.tool`; one named `run` also as `name`.
    pub fn toolkit(mut self, name: &str, tools: impl IntoIterator<Item = AnyTool>) -> Self {
        tools.into_iter().for_each(|tool| self.kit.add_of(name, tool));
        self
    }

    /// Adds a tool that gets the text of blocks of this kind, as its argument `code`.
    pub fn tool_for(self, kind: &str, tool: impl Tool) -> Self {
        self.tool_for_argument(kind, "code", tool)
    }

    /// Adds a tool like [`tool_for`](Self::tool_for), which gets the text as this argument.
    pub fn tool_for_argument(mut self, kind: &str, argument: &str, tool: impl Tool) -> Self {
        let tool = AnyTool::new(tool);
        self.kinds.retain(|other| other.kind != kind);
        let (kind, argument) = (kind.to_owned(), argument.to_owned());
        self.kinds.push(Kind { kind, tool: tool.spec().name.clone(), argument });
        self.tool(tool)
    }

    /// Sets which calls need approval by a person. Default: none. The rule sees the tool's name as in the log:
    /// `Shop_price` for a tool of a toolkit.
    pub fn approval(self, approval: Approval<ApprovalRequest>) -> Self {
        Self { approval, ..self }
    }

    /// Lists the tools as a JSON list of names, descriptions and parameters, for the system message of the caller.
    pub fn instructions(&self) -> String {
        let tool = |(name, tool): (&str, &AnyTool)| {
            let spec = tool.spec();
            json!({"name": name, "description": spec.description, "parameters": spec.parameters})
        };
        serde_json::to_string_pretty(&self.kit.iter().map(tool).collect::<Vec<_>>()).unwrap_or_default()
    }

    /// The name and arguments of the call in `message`.
    fn wish(&self, message: &Message) -> std::result::Result<(String, Value), Refusal> {
        let nothing = || Refusal::not_read("There is nothing to run.");
        let block = match (ParsedBlock::from_message(message), value(message)) {
            (Some(block), _) => block,
            (None, Some(call @ Value::Object(_))) => ParsedBlock {
                tool_type: None,
                thought: String::new(),
                action: call.clone(),
                status: 1,
                flaw: None,
            },
            _ => return Err(nothing()),
        };
        match (block.action, block.status) {
            (_, -1) => Err(Refusal::of_form(block.flaw.as_deref())),
            (Value::Null, _) => Err(nothing()),
            (Value::String(code), _) => {
                let kind = block.tool_type.unwrap_or_default();
                let runs = self.kinds.iter().find(|other| other.kind == kind).ok_or_else(|| {
                    Refusal::not_read(&format!("There is nothing here that runs `{kind}`."))
                })?;
                Ok((runs.tool.clone(), json!({runs.argument.as_str(): code})))
            }
            (Value::Object(mut call), _) => match call.swap_remove("name") {
                Some(Value::String(name)) => {
                    Ok((name, call.swap_remove("parameters").unwrap_or_else(|| json!({}))))
                }
                _ => Err(Refusal::not_read("A call has to have a `name` and `parameters`.")),
            },
            _ => Err(Refusal::not_read("A call has to be an object with `name` and `parameters`.")),
        }
    }

    /// The tool, and arguments that fit it.
    fn admitted(&self, name: String, args: Value) -> std::result::Result<(&AnyTool, CallRecord), Refusal> {
        let refused = |name: String, args: Value, state: RunState, why: String| Refusal {
            ran: Box::new(CallRecord { tool: Some(name), args, state }),
            why,
        };
        let Some(tool) = self.kit.get(&name) else {
            let why = no_such_tool(&name, self.kit.iter().map(|(name, _)| name));
            return Err(refused(name, args, RunState::NoSuchTool, why));
        };
        let args = match args {
            Value::String(text) => lenient::object(&text).map_or(Value::String(text), Value::Object),
            args => args,
        };
        let flaw = match args.is_object() {
            false => Some(format!("The arguments of `{name}` must be a JSON object; got: {args}")),
            true => check(&args, &tool.spec().parameters)
                .err()
                .map(|flaws| format!("The arguments of `{name}` are wrong: {flaws}")),
        };
        match flaw {
            Some(why) => Err(refused(name, args, RunState::WrongArguments, why)),
            None => Ok((tool, CallRecord { tool: Some(name), args, state: RunState::Done })),
        }
    }
}

impl Agent for ActionExecutor {
    fn name(&self) -> &Name {
        &self.name
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let admitted = self.wish(&turn.message()).and_then(|(name, args)| self.admitted(name, args));
        let (tool, ran) = match admitted {
            Ok(admitted) => admitted,
            Err(Refusal { ran, why }) => return Ok(said(vec![Part::text(why)], &ran)),
        };
        let id = format!("action-{}", turn.transcript().turns_begun_by(turn.me()));
        let call = ToolCall { id, tool: tool.spec().name.clone(), args: ran.args.clone() };
        let runner = Runner { tools: std::slice::from_ref(tool), approval: &self.approval, searches: false };
        let caller = turn.message().from;
        Ok(match runner.run(turn, &caller, &[call]).await?.map_continue(|mut all| all.pop()) {
            ControlFlow::Break(act) => act,
            ControlFlow::Continue(None) => Act::Pass,
            ControlFlow::Continue(Some(Finished { outcome, is_rejected: true, .. })) => {
                said(outcome.for_model(), &CallRecord { state: RunState::Rejected, ..ran })
            }
            ControlFlow::Continue(Some(Finished { call, outcome, .. })) => {
                result(outcome, tool, CallRecord { args: call.args, ..ran })
            }
        })
    }
}

/// Why nothing runs.
struct Refusal {
    ran: Box<CallRecord>,
    why: String,
}

impl Refusal {
    /// The validation of a block refused its content.
    fn of_form(flaw: Option<&str>) -> Self {
        let why = flaw.map(|flaw| format!(": {flaw}")).unwrap_or_default();
        Self::not_read(&format!("What you wrote does not have the required form and was not run{why}"))
    }

    fn not_read(why: &str) -> Self {
        let ran = CallRecord { tool: None, args: Value::Null, state: RunState::NotRead };
        Self { ran: Box::new(ran), why: why.to_owned() }
    }
}

fn result(outcome: ToolResult, tool: &AnyTool, ran: CallRecord) -> Act {
    let state = match outcome.status {
        ToolStatus::Done if tool.spec().ends_turn => RunState::Finished,
        ToolStatus::Done => RunState::Done,
        ToolStatus::Unknown => RunState::Unknown,
        _ => RunState::Failed,
    };
    // Text from outside is marked: models read this message like any other.
    let mut parts: Vec<Part> = outcome.for_model().into_iter().flat_map(worded).collect();
    if parts.iter().all(Part::is_blank) {
        parts.push(Part::text(match state {
            RunState::Done | RunState::Finished => "(It ran, and there is no output.)",
            _ => "(It failed, and there is no output.)",
        }));
    }
    said(parts, &CallRecord { state, ..ran })
}

/// A value is also there as text, which programs read as the message's text; models receive it once.
fn worded(part: Part) -> impl Iterator<Item = Part> {
    let words = match &part {
        Part::Data(value) => Some(Part::text(value.to_string())),
        _ => None,
    };
    words.into_iter().chain([part])
}

fn said(mut parts: Vec<Part>, ran: &CallRecord) -> Act {
    parts.extend(serde_json::to_value(ran).ok().map(Part::Note));
    Act::Say(parts)
}
