//! Agents of AutoGen 0.2 that run code, and what an assistant is told of it.

use serde_json::Value;

use super::classic::Kind;
use super::cursor::{At, Fields};
use super::draft::Draft;

/// What is said of an agent that runs code.
pub(super) const CODE_BLOCKS: &str =
    "left out, so that nothing runs unasked: `runs_code: true` lets an agent run blocks of code in a sandbox";

/// The system text of an assistant that has none of its own, in short.
const USUAL: &str =
    "You are a helpful assistant. Solve the task step by step. When everything is done, reply TERMINATE.";

/// The same for an assistant whose code is run by another agent.
const USUAL_WITH_CODE: &str = "\
You are a helpful assistant. Solve the task step by step. Where code helps, to find something out or to do a part of the task, \
write Python (```python) or shell (```sh) in a fenced code block: it is run for you, and the next message holds its output.

- Write one code block in an answer, and make it complete: nobody changes it or fills anything in before it is run.
- Print what you need to know. Do not ask for output to be copied and pasted.
- To have the code saved in a file, make `# filename: NAME` the first line of the block.
- When the code fails, correct it and write all of it again. When it runs and the task is not solved, check your assumptions \
and try another way.

Verify the answer, with evidence where there is any. When everything is done, reply TERMINATE.";

/// The system text of an assistant that has none of its own; `with_code` when another agent runs code.
pub(super) fn usual(path: &str, with_code: bool, draft: &mut Draft) -> String {
    let (text, how) = match with_code {
        true => (USUAL_WITH_CODE, "with its instructions for code, which another agent runs in AutoGen"),
        false => (USUAL, "without what it says of code"),
    };
    draft.note(path, format!("its usual long system text is put in short, {how}"));
    text.to_owned()
}

/// Whether a `code_execution_config` switches code on.
pub(super) fn is_on(config: &Value) -> bool {
    !matches!(config, Value::Null | Value::Bool(false))
}

/// The name of an agent that runs code. User proxies do, where nothing is said.
pub(super) fn runner<'a>(at: &At<'a>) -> Option<&'a str> {
    let own = at.value.get("config").unwrap_or(at.value);
    let name = own.get("name")?.as_str()?;
    let config = own.get("code_execution_config").filter(|config| !config.is_null());
    let is_usual = || Kind::of(class_of(at).unwrap_or_default(), name) == Kind::Proxy;
    config.map_or_else(is_usual, is_on).then_some(name)
}

/// What the class of an agent is called.
pub(super) fn class_of<'a>(at: &At<'a>) -> Option<&'a str> {
    ["class", "type", "agent_type"].iter().find_map(|key| at.value.get(key)?.as_str())
}

/// Says what becomes of the code that an agent runs.
pub(super) fn note(fields: &mut Fields<'_>, kind: Kind, draft: &mut Draft) {
    match fields.take("code_execution_config") {
        Some(at) if is_on(at.value) => draft.note(&at.path, CODE_BLOCKS),
        None if kind == Kind::Proxy => {
            let what = format!("it runs code in AutoGen, where nothing else is said: {CODE_BLOCKS}");
            draft.note(&fields.at.path, what);
        }
        _ => {}
    }
}
