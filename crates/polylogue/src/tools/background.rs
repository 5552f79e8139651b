//! Background tasks: an agent or a chat as a tool whose calls return at once.
//!
//! [`AgentTool::background`](super::AgentTool::background) makes an agent or a chat work next to the conversation: a call returns the
//! id of a task, the agent's turn and the chat continue, and the result is posted for the agent between two steps, so that its model
//! receives it in its next turn. With the first such tool the model gets three more: `list_tasks`, `wait_for_task` and `cancel_task`.
//!
//! A task is in the log, below the chat in which it was started: it is paid for by the agent that started it, by its chat and by the
//! run; it continues when the run is resumed, and its finished calls are not repeated. It ends with that chat: a chat that would end as
//! completed waits for it ([`OpenBackground`](polylogue_core::OpenBackground)), and gives the agent one more turn for the result, where
//! the policy can; a chat that ends for another reason cancels it. Each task begins without memory of earlier ones.
//!
//! # Limits
//! [`Assistant::max_background`](crate::Assistant::max_background) for an agent,
//! [`ChatBuilder::max_background`](polylogue_core::ChatBuilder::max_background) for a chat, and
//! [`Limits::background`](polylogue_core::Limits::background) for a run; nesting counts as for every chat.
//!
//! ```
//! # fn example(research: polylogue::Chat, model: polylogue::AnyModel) -> polylogue::Result<()> {
//! use polylogue::Assistant;
//! use polylogue::tools::agent_tool::AgentTool;
//!
//! let host = Assistant::new("Host", model)?
//!     .agent_tool(AgentTool::chat(research).description("Finds out what is known of a subject.").background())
//!     .max_background(2);
//! # Ok(())
//! # }
//! ```

use polylogue_core::{
    BackgroundResult, BackgroundStart, BackgroundStatus, BackgroundTaskState, Part, Result, ToolCall,
    ToolResult, ToolSpec, ToolStatus, Turn, text,
};
use serde_json::{Value, json};

/// The default limit on open background tasks of an agent.
pub const DEFAULT_MAX_BACKGROUND: usize = 4;

/// The tool that lists the tasks of an agent.
const LIST: &str = "list_tasks";
/// The tool that waits for tasks.
const WAIT: &str = "wait_for_task";
/// The tool that cancels a task.
const CANCEL: &str = "cancel_task";

/// The tools that agents with background tasks get.
pub const TASK_TOOLS: [&str; 3] = [LIST, WAIT, CANCEL];

/// Those of them that return the result of a task: that of each task is returned once.
pub const RESULT_TOOLS: [&str; 2] = [WAIT, CANCEL];

/// The most bytes of what these return besides results of tasks, and of what a call returns that starts a task. The bound of a run
/// is computed with it.
pub const MAX_NOTICE_BYTES: usize = 1_200;

/// The most bytes of a list of tasks.
const MAX_LIST_BYTES: usize = 2_000;

/// The definitions of these tools.
pub(crate) fn specs() -> [ToolSpec; 3] {
    let task = |description: &str, required: &[&str]| {
        json!({
            "type": "object",
            "properties": {"task": {"type": "string", "description": description}},
            "required": required,
            "additionalProperties": false,
        })
    };
    let nothing = json!({"type": "object", "properties": {}, "additionalProperties": false});
    // What they did is in the log, and a repeated call finds it there.
    [
        ToolSpec::new(LIST, "Lists your background tasks, and which of them are running.", nothing)
            .repeatable()
            .max_bytes(MAX_LIST_BYTES),
        ToolSpec::new(
            WAIT,
            "Waits for a background task and returns its result. Call it only if you cannot continue without the result, \
             which is otherwise posted to you.",
            task("The id of the task. Default: all that are running", &[]),
        )
        .repeatable(),
        ToolSpec::new(CANCEL, "Cancels a background task.", task("The id of the task", &["task"])).repeatable(),
    ]
}

/// Starts a task of `target`, unless `max` are open.
pub(crate) async fn start(turn: &mut Turn<'_>, target: &str, task: &str, max: usize) -> Result<ToolResult> {
    Ok(match turn.start_background(target, task, max).await? {
        BackgroundStart::Started(id) => ToolResult::done(format!(
            "Background task `{id}` has started. Its result is posted to you when it is there. Continue with other work, \
             or end your turn."
        )),
        BackgroundStart::Refused(why) => ToolResult::failed(format!("No background task was started: {why}")),
    })
}

/// Runs a call of one of the tools.
pub(crate) async fn run(turn: &mut Turn<'_>, call: &ToolCall) -> Result<ToolResult> {
    let id = call.args.get("task").and_then(Value::as_str).map(str::trim).filter(|id| !id.is_empty());
    match (call.tool.as_str(), id) {
        (LIST, _) => Ok(listed(&turn.background_tasks())),
        (WAIT, id) => wait(turn, id).await,
        (_, Some(id)) => {
            let result = turn.cancel_background(id).await?;
            Ok(result.map_or_else(|| unknown(turn, id), |result| outcome(&[result])))
        }
        (_, None) => Ok(ToolResult::failed("`task` must be the id of a background task")),
    }
}

async fn wait(turn: &mut Turn<'_>, id: Option<&str>) -> Result<ToolResult> {
    let ids: Vec<String> = match id {
        Some(id) => vec![id.to_owned()],
        None => open(&turn.background_tasks()).map(|own| own.task.id.to_string()).collect(),
    };
    if ids.is_empty() {
        return Ok(ToolResult::failed("no background task is running"));
    }
    let (mut results, mut missing) = (Vec::new(), None);
    for id in ids {
        match turn.wait_for_background(&id).await? {
            Some(result) => results.push(result),
            // It ended with the chat, which was reopened since. The results of others are not posted.
            None => missing = Some(id),
        }
    }
    Ok(match missing.filter(|_| results.is_empty()) {
        Some(id) => unknown(turn, &id),
        None => outcome(&results),
    })
}

/// The results of tasks, as that of a call.
fn outcome(results: &[BackgroundResult]) -> ToolResult {
    let parts: Vec<Part> = results.iter().flat_map(BackgroundResult::for_model).collect();
    let is_failed = results.iter().all(|result| result.status == BackgroundStatus::Failed);
    let status = if is_failed { ToolStatus::Failed } else { ToolStatus::Done };
    ToolResult::new(status, parts).truncated()
}

fn open(own: &[BackgroundTaskState]) -> impl Iterator<Item = &BackgroundTaskState> {
    own.iter().filter(|own| own.status.is_none())
}

/// The tasks `own`, in order. Of those that have ended, only the latest are listed where all are too many.
fn listed(own: &[BackgroundTaskState]) -> ToolResult {
    let line = |own: &BackgroundTaskState| {
        let status = own.status.map_or("running", BackgroundStatus::as_str);
        let text = text::excerpt(&own.task.task, TASK_CHARS);
        (own.status.is_none(), format!("- {}: {status}. Task: {text}", own.task.id))
    };
    let mut lines: Vec<(bool, String)> = own.iter().map(line).collect();
    let mut bytes: usize = lines.iter().map(|(_, line)| line.len() + 1).sum();
    let most = MAX_LIST_BYTES - EARLIER.len();
    let all = lines.len();
    lines.retain(|(is_open, line)| {
        let is_listed = *is_open || bytes <= most;
        bytes -= if is_listed { 0 } else { line.len() + 1 };
        is_listed
    });
    let note = if lines.len() < all { EARLIER } else { "" };
    let lines: Vec<String> = lines.into_iter().map(|(_, line)| line).collect();
    ToolResult::done(if all == 0 {
        "You have started no background task.".to_owned()
    } else {
        format!("{note}{}", lines.join("\n"))
    })
}

/// What precedes a list of tasks that lacks some.
const EARLIER: &str = "Earlier tasks, which have ended, are not listed.\n";

/// Characters of a task in the list of tasks.
const TASK_CHARS: usize = 100;

/// How many running tasks are named where another one is looked for.
const MAX_NAMED: usize = 8;

fn unknown(turn: &Turn<'_>, id: &str) -> ToolResult {
    let own = turn.background_tasks();
    let mut running: Vec<String> =
        open(&own).take(MAX_NAMED).map(|own| format!("`{}`", own.task.id)).collect();
    match open(&own).count().saturating_sub(MAX_NAMED) {
        0 if running.is_empty() => running.push("none".to_owned()),
        0 => {}
        more => running.push(format!("{more} more")),
    }
    let (id, running) = (text::excerpt(id, TASK_CHARS), running.join(", "));
    ToolResult::failed(format!("no background task `{id}` is running; running: {running}"))
        .truncated_to(MAX_NOTICE_BYTES)
}
