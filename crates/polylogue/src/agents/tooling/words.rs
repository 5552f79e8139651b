//! The prompts for models that call tools by text.

use polylogue_core::ToolSpec;
use serde_json::{Map, Value};

use crate::agents::prompted::PromptedTool;
pub(super) use crate::json_schema::form;

/// Sent when the limit on tool calls per turn is reached.
pub(super) const NO_MORE_TOOLS: &str =
    "You have used all tool calls of this turn. Answer now with what you know, without calling a tool.";

/// Sent when an answer was neither yes nor no.
pub(super) const YES_OR_NO: &str = "Answer with the one word `yes` or the one word `no`.";

/// The start of [`object`].
const OBJECTS: &str = "You can use these tools:\n";

/// The end of [`define`] and [`define_all`].
const NOT_YET: &str = "Do not solve the task yet.";

/// Whether a prompt starts tool calls by objects.
pub(super) fn begins_objects(text: &str) -> bool {
    text.starts_with(OBJECTS)
}

/// Whether a prompt starts a dialog.
pub(super) fn begins_text(text: &str) -> bool {
    text.ends_with(NOT_YET)
}

/// Asked before an optional tool.
pub(super) const USE_IT: &str = "To summarize in one word: will you use it? Answer only `yes` or `no`.";

/// Asked after the calls so far.
pub(super) const ANOTHER: &str =
    "Do you need another tool call, of the same tool or of another, to solve the task? Say why, or why not.";

/// Asked after [`ANOTHER`], for a decision.
pub(super) const CALL_AGAIN: &str =
    "To summarize in one word: is another tool call needed? Answer only `yes` or `no`.";

/// Yacana's first generation writes this to a full history before the calls, if there are several tools.
pub(super) const SHOULD_USE: &str = "I should use tools related to the task to solve it correctly.";

/// The same if there is one tool.
pub(super) fn can_use(tool: &str) -> String {
    format!("I can use the tool '{tool}' related to the task to solve it correctly.")
}

/// What it writes there before the arguments of a call.
pub(super) fn output_json(tool: &str) -> String {
    format!("Output the tool '{tool}' as valid JSON.")
}

/// What it writes there as the result of a tool without output.
pub(super) fn success(tool: &str) -> String {
    format!("Tool {tool} was called successfully. It didn't return anything.")
}

/// Describes the tool and asks the model to confirm.
pub(super) fn define(spec: &ToolSpec, must: bool) -> String {
    let may = if must { "must" } else { "may" };
    format!(
        "There is a tool named `{}` that you {may} use to solve the task. What it does: {}\n\nIf you understand, say so in \
         one sentence. {NOT_YET}",
        spec.name, spec.description
    )
}

/// Describes all tools and asks the model to confirm.
pub(super) fn define_all<'s>(specs: impl Iterator<Item = &'s ToolSpec>) -> String {
    let list: Vec<String> = specs.map(|spec| format!("- `{}`: {}", spec.name, spec.description)).collect();
    format!(
        "These tools are available:\n{}\n\nIf you understand, say so in one sentence. {NOT_YET}",
        list.join("\n")
    )
}

/// How arguments are written.
pub(super) fn how(spec: &ToolSpec, prompted: Option<&PromptedTool>) -> String {
    let name = &spec.name;
    let mut text = format!(
        "To use the tool `{name}`, write its arguments as one JSON object, like this:\n{}{}",
        skeleton(spec),
        arguments(spec)
    );
    for (request, args) in prompted.iter().flat_map(|prompted| prompted.examples()) {
        text.push_str(&format!("\n\nFor example, to `{request}` you would write:\n{args}"));
    }
    text
}

/// As [`how`], and asks the model to confirm.
pub(super) fn how_alone(spec: &ToolSpec, prompted: Option<&PromptedTool>) -> String {
    format!("{}\n\nIf you understand, say so in one sentence. Do not use it yet.", how(spec, prompted))
}

/// Asks whether the tool helps.
pub(super) fn relevant(spec: &ToolSpec, task: &str) -> String {
    let name = &spec.name;
    format!("Would the tool `{name}` help you to solve this task, and why?\n{}", tagged(task))
}

/// Asks whether any of the tools helps.
pub(super) fn any_relevant(task: &str) -> String {
    format!("Would any of the tools help you to solve this task, and why?\n{}", tagged(task))
}

/// Asks for the arguments, after `how` if it was not sent before.
pub(super) fn call(spec: &ToolSpec, how: Option<String>, task: &str) -> String {
    let how = how.map(|how| format!("{how}\n\n")).unwrap_or_default();
    format!(
        "{how}The task is:\n{}\n\nOutput the arguments with which the tool `{}` is to be called for it, as one JSON object \
         and nothing else.",
        tagged(task),
        spec.name
    )
}

/// Asks for the arguments again.
pub(super) fn call_again(spec: &ToolSpec, error: &str, is_of_form: bool) -> String {
    let reminder = if is_of_form {
        format!("\nThe arguments look like this:\n{}{}", skeleton(spec), arguments(spec))
    } else {
        String::new()
    };
    format!(
        "The tool `{}` could not be used: {error}{reminder}\n\nCorrect the arguments. Output the whole JSON object and \
         nothing else.",
        spec.name
    )
}

/// Asks which tool is next.
pub(super) fn choose(names: &[&str]) -> String {
    format!(
        "Which tool do you use next? Answer with exactly one of these names and nothing else: {}",
        list(names)
    )
}

/// Asks again.
pub(super) fn choose_again(names: &[&str], several: bool) -> String {
    let what = if several { "That named more than one tool." } else { "That named none of the tools." };
    format!("{what} Answer with exactly one of these names and nothing else: {}", list(names))
}

/// The result of a call, before the dialog continues.
pub(super) fn result(tool: &str, outcome: &str) -> String {
    format!("The tool `{tool}` returned:\n{outcome}")
}

/// Asks for the answer.
pub(super) fn solve(task: &str) -> String {
    format!("Now solve the task with what you know, without any further tool. The task is:\n{}", tagged(task))
}

/// Asks for the answer without any tool.
pub(super) fn solve_without(task: &str) -> String {
    format!("Then solve the task without a tool. The task is:\n{}", tagged(task))
}

/// Asks for a mandatory tool call.
pub(super) fn must_call(tool: &str) -> String {
    format!("Call the tool `{tool}` before you answer: the task asks for it.")
}

/// Describes the tools and the reply format to a model with a schema.
pub(super) fn object<'s>(tools: impl Iterator<Item = (&'s ToolSpec, Option<&'s PromptedTool>)>) -> String {
    let tool = |(spec, prompted): (&ToolSpec, Option<&PromptedTool>)| {
        let mut text = format!(
            "- `{}`: {}\n  Arguments, as a JSON Schema: {}",
            spec.name, spec.description, spec.parameters
        );
        for (request, args) in prompted.iter().flat_map(|prompted| prompted.examples()) {
            text.push_str(&format!("\n  For example, to `{request}`: {args}"));
        }
        text
    };
    let tools: Vec<String> = tools.map(tool).collect();
    format!(
        "{OBJECTS}{}\n\nReply with one JSON object and nothing else. To use a tool:\n{}\nYou are then told \
         what it returned. To answer:\n{}",
        tools.join("\n"),
        r#"{"say": null, "call": {"tool": "its name", "args": {}}}"#,
        r#"{"say": "your answer", "call": null}"#,
    )
}

/// The error of a reply that should be such an object.
pub(super) fn object_again(error: &str) -> String {
    format!(
        "That could not be used: {error}\n\nReply with one corrected JSON object of the form you were told, and nothing else."
    )
}

/// Asks a model without other context to repair an answer.
pub(super) fn repair(schema: &Value, reply: &str, error: &str) -> String {
    format!(
        "This was to be JSON that satisfies this JSON Schema:\n{schema}\n\nIt is:\n{reply}\n\nWhat is wrong with it: \
         {error}\n\nWrite the corrected JSON and nothing else."
    )
}

fn list(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn tagged(task: &str) -> String {
    format!("<task>\n{task}\n</task>")
}

fn properties(spec: &ToolSpec) -> impl Iterator<Item = (&String, &Value)> {
    spec.parameters.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// Whether the tool takes no arguments.
pub(super) fn is_without_arguments(spec: &ToolSpec) -> bool {
    let open = spec.parameters.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false));
    spec.parameters.get("properties").is_some() && properties(spec).next().is_none() && !open
}

/// `{"secret": "<integer>", "note": "<string>"}`.
fn skeleton(spec: &ToolSpec) -> Value {
    let place =
        |(name, schema): (&String, &Value)| (name.clone(), Value::String(format!("<{}>", kind(schema))));
    Value::Object(properties(spec).map(place).collect::<Map<_, _>>())
}

fn kind(schema: &Value) -> String {
    match schema.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => "value".to_owned(),
    }
}

/// The meaning of the arguments, one a line.
fn arguments(spec: &ToolSpec) -> String {
    let required = spec.parameters.get("required").and_then(Value::as_array);
    let line = |(name, schema): (&String, &Value)| {
        let needed = required.is_some_and(|names| names.iter().any(|needed| needed == name));
        let needed = if needed { "" } else { ", may be left out" };
        let about = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let about = if about.is_empty() { String::new() } else { format!(": {about}") };
        format!("\n- `{name}` ({}{needed}){about}", kind(schema))
    };
    properties(spec).map(line).collect()
}
