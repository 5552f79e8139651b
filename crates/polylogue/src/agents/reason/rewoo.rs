//! ReWOO: a plan that names its evidence.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use polylogue_core::text::{counted, of_json};
use polylogue_core::{
    Act, Agent, AnyAgent, AnyTool, Error, Name, NameError, Part, Result, SubAgent, Tool, ToolCall,
    ToolResult, ToolSpec, Turn,
};
use serde_json::{Value, json};

use crate::tools::approval::{Approval, ApprovalRequest};
use crate::tools::runner::Runner;

/// One agent plans all tool calls at once, the calls run without a model, and another agent answers from the results:
/// two agent turns, however many calls.
///
/// The planner writes `#E1 = search[{"query": "..."}]`, and can use `#E1` in the arguments of later calls: a string
/// that is only the label becomes the value of the result; within a longer string it is inserted as text.
#[derive(Debug, Clone)]
pub struct Rewoo {
    name: Name,
    planner: AnyAgent,
    solver: AnyAgent,
    tools: Vec<AnyTool>,
    approval: Approval<ApprovalRequest>,
    max_steps: usize,
}

impl Rewoo {
    /// Default limit on the steps of a plan, each of which is a tool call.
    pub const DEFAULT_MAX_STEPS: usize = 100;

    /// Creates an agent named `name` with a planner and a solver.
    ///
    /// # Errors
    /// When the name is illegal.
    pub fn new(name: impl AsRef<str>, planner: impl Agent, solver: impl Agent) -> Result<Self, NameError> {
        let (planner, solver) = (AnyAgent::new(planner), AnyAgent::new(solver));
        let (name, tools, approval) = (Name::new(name)?, Vec::new(), Approval::never());
        Ok(Self { name, planner, solver, tools, approval, max_steps: Self::DEFAULT_MAX_STEPS })
    }

    /// Sets the limit on the steps of a plan. The turn fails before the first tool call if the plan has more.
    #[must_use]
    pub fn max_steps(self, steps: usize) -> Self {
        Self { max_steps: steps, ..self }
    }

    /// Adds a tool. Replaces a tool of the same name.
    #[must_use]
    pub fn tool(mut self, tool: impl Tool) -> Self {
        let tool = AnyTool::new(tool);
        self.tools.retain(|other| other.spec().name != tool.spec().name);
        self.tools.push(tool);
        self
    }

    /// Sets which tool calls need approval by a person. Default: none.
    #[must_use]
    pub fn approval(self, approval: Approval<ApprovalRequest>) -> Self {
        Self { approval, ..self }
    }

    fn form(&self, question: &str) -> String {
        let tool = |tool: &AnyTool| {
            let ToolSpec { name, description, parameters, .. } = tool.spec();
            format!("- {name}: {description} Arguments: {parameters}")
        };
        let tools: Vec<String> = self.tools.iter().map(tool).collect();
        format!(
            "Plan how to gather the evidence for an answer, without answering. For each step write two lines:\n\
             Plan: what is to be found out\n#E1 = tool[{{\"argument\": \"...\"}}]\n\
             Number the evidence #E1, #E2 and so on; later arguments may hold earlier evidence.\n\n\
             Tools:\n{}\n\nQuestion: {question}",
            tools.join("\n")
        )
    }

    /// The arguments as an object; plain text is the argument of a tool with one parameter.
    fn args(&self, tool: &str, text: &str) -> Value {
        let parsed = serde_json::from_str::<Value>(text).ok();
        if let Some(object @ Value::Object(_)) = parsed {
            return object;
        }
        let spec = self.tools.iter().map(Tool::spec).find(|spec| spec.name == *tool);
        let properties = spec.and_then(|spec| spec.parameters.get("properties")?.as_object());
        let only = properties.filter(|all| all.len() == 1).and_then(|all| all.keys().next());
        let value = parsed.unwrap_or_else(|| Value::from(text));
        only.map_or_else(|| Value::from(text), |name| json!({name.as_str(): value}))
    }
}

impl Agent for Rewoo {
    fn name(&self) -> &Name {
        &self.name
    }

    fn sub_agents(&self) -> Vec<SubAgent> {
        vec![SubAgent::of(&self.planner), SubAgent::of(&self.solver)]
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let question = turn.message().text().into_owned();
        let plan = turn.ask(&self.planner, self.form(&question)).await?.text().into_owned();
        let steps = steps(&plan, self.max_steps);
        if steps.len() > self.max_steps {
            let (planner, most) = (self.planner.name(), counted(self.max_steps as u64, "step"));
            return Err(Error::agent(format!("the plan of `{planner}` has more than {most}")));
        }
        let begun = turn.transcript().turns_begun_by(turn.me());
        let mut evidence: BTreeMap<String, Value> = BTreeMap::new();
        let mut gathered = String::new();
        let mut ids = CallIds { turn: begun, used: BTreeMap::new() };
        for Step { plan, label, tool, args } in steps {
            let mut space = MAX_ARGUMENTS;
            let args = filled(self.args(&tool, &args), &evidence, &mut space);
            let call = ToolCall { id: ids.next(&label), tool, args };
            let runner = Runner { tools: &self.tools, approval: &self.approval, searches: false };
            let outcome = match runner.run(turn, &self.name, &[call]).await? {
                ControlFlow::Continue(finished) => finished.into_iter().next().map(|call| call.outcome),
                ControlFlow::Break(act) => return Ok(act),
            };
            let outcome = outcome.unwrap_or_else(ToolResult::unknown);
            let found = returned(&outcome);
            // Arguments get the plain value; text from outside is marked where the model reads it.
            let text = match outcome.outside {
                Some(_) => polylogue_core::text_of(&outcome.for_model()).into_owned(),
                None => of_json(&found),
            };
            gathered.push_str(&format!("Plan: {plan}\n{label}: {text}\n\n"));
            evidence.insert(label, found);
        }
        let task = format!("Answer the question from this evidence.\n\n{gathered}Question: {question}");
        Ok(Act::Say(turn.ask(&self.solver, task).await?.parts))
    }
}

/// The ids of the calls of a turn, by the labels of a plan: a model may use one twice.
struct CallIds {
    turn: u64,
    used: BTreeMap<String, u64>,
}

impl CallIds {
    /// The id of the next call with this label.
    fn next(&mut self, label: &str) -> String {
        let used = self.used.entry(label.to_owned()).or_default();
        *used += 1;
        let id = format!("{}-{}", self.turn, label.trim_start_matches('#'));
        if *used == 1 { id } else { format!("{id}-{used}") }
    }
}

struct Step {
    plan: String,
    label: String,
    tool: String,
    args: String,
}

/// The steps of a plan; of one with more than `most`, the first `most` and one more.
fn steps(plan: &str, most: usize) -> Vec<Step> {
    let (mut steps, mut rest) = (Vec::new(), plan);
    while steps.len() <= most
        && let Some((before, from)) = rest.split_once("#E")
    {
        rest = from;
        let digits = from.len() - from.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, behind) = from.split_at(digits);
        let Some(call) = behind.trim_start().strip_prefix('=').filter(|_| digits > 0) else { continue };
        let Some((tool, args)) = tool_and_args(call) else { continue };
        let end = closing(args).unwrap_or_else(|| args.find('\n').unwrap_or(args.len()));
        let plan = before.rsplit_once("Plan:").map_or("", |(_, plan)| plan).trim();
        let args_text = args.get(..end).unwrap_or(args).trim().to_owned();
        steps.push(Step {
            plan: plan.to_owned(),
            label: format!("#E{number}"),
            tool: tool.to_owned(),
            args: args_text,
        });
        rest = args.get(end..).unwrap_or_default();
    }
    steps
}

/// The name before the first bracket, and the text after it.
fn tool_and_args(call: &str) -> Option<(&str, &str)> {
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let (name, rest) = call.split_at(call.find(|c: char| !is_of_name(c) && !c.is_whitespace())?);
    let name = name.trim();
    let is_name = !name.is_empty() && name.chars().all(is_of_name);
    Some((name, rest.strip_prefix('[')?)).filter(|_| is_name)
}

/// The end of the bracket that was open before, skipping JSON strings and nested lists.
fn closing(args: &str) -> Option<usize> {
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    for (at, c) in args.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if in_text => escaped = true,
            '"' => in_text = !in_text,
            _ if in_text => {}
            '[' => depth += 1,
            ']' if depth == 0 => return Some(at),
            ']' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Limit on bytes of evidence in the arguments of a call: a short plan can repeat the same evidence very often.
const MAX_ARGUMENTS: usize = 1 << 20;

/// Replaces evidence beyond the limit.
const LEFT_OUT: &str = "(left out: the arguments would be too long)";

/// `args` with its labels replaced by evidence, up to `space` bytes.
fn filled(args: Value, evidence: &BTreeMap<String, Value>, space: &mut usize) -> Value {
    match args {
        Value::String(text) => match evidence.get(text.trim()) {
            Some(value) if takes(space, value) => value.clone(),
            Some(_) => LEFT_OUT.into(),
            None => within(&text, evidence, space).into(),
        },
        Value::Array(items) => items.into_iter().map(|item| filled(item, evidence, space)).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(key, value)| (key, filled(value, evidence, space))).collect()
        }
        value => value,
    }
}

/// Whether `value` fits, which then uses up the space.
fn takes(space: &mut usize, value: &Value) -> bool {
    let left = space.checked_sub(value.as_str().map_or_else(|| value.to_string().len(), str::len));
    *space = left.unwrap_or(*space);
    left.is_some()
}

/// `text` with its labels replaced by evidence. Labels within evidence are not replaced.
fn within(text: &str, evidence: &BTreeMap<String, Value>, space: &mut usize) -> String {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, from)) = rest.split_once("#E") {
        let digits = from.len() - from.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, behind) = from.split_at(digits);
        let label = format!("#E{number}");
        filled.push_str(before);
        match evidence.get(&label) {
            None => filled.push_str(&label),
            Some(value) if takes(space, value) => filled.push_str(&of_json(value)),
            Some(_) => filled.push_str(LEFT_OUT),
        }
        rest = behind;
    }
    filled + rest
}

fn returned(outcome: &ToolResult) -> Value {
    match &*outcome.parts {
        [Part::Data(value)] => value.clone(),
        _ => Value::from(outcome.text()),
    }
}
