//! Code execution of AutoGen 0.2, and the default system messages of assistants.

use serde_json::Value;

use super::definition::Kind;
use crate::cursor::{At, Fields};
use crate::draft::Draft;
use crate::report::Result;
use crate::yaml::{Entries, Yaml};

const WORK_DIR: &str =
    "left out: every conversation has its own work directory; `run --dir FOLDER` sets another";

/// A short version of AutoGen's default system message of assistants.
const USUAL: &str =
    "You are a helpful assistant. Solve the task step by step. When everything is done, reply TERMINATE.";

/// The same, with instructions for code that another agent runs.
const USUAL_WITH_CODE: &str = "\
You are a helpful assistant. Solve the task step by step. Where code helps, to find something out or to do a part of the task, \
write Python (```python) or shell (```sh) in a fenced code block: it is run for you, and the next message holds its output.

- Write one code block in an answer, and make it complete: nobody changes it or fills anything in before it is run.
- Print what you need to know. Do not ask for output to be copied and pasted.
- To have the code saved in a file, make `# filename: NAME` the first line of the block.
- When the code fails, correct it and write all of it again. When it runs and the task is not solved, check your assumptions \
and try another way.

Verify the answer, with evidence where there is any. When everything is done, reply TERMINATE.";

/// The default system message of an assistant; `with_code` if another agent runs code.
pub(super) fn usual(path: &str, with_code: bool, draft: &mut Draft) -> String {
    let (text, how) = match with_code {
        true => (USUAL_WITH_CODE, "with instructions for code that another agent runs"),
        false => (USUAL, "without instructions about code"),
    };
    draft.note(path, format!("AutoGen's default system message is replaced by a short one {how}"));
    text.to_owned()
}

/// Whether a `code_execution_config` switches code on.
pub(super) fn is_on(config: &Value) -> bool {
    !matches!(config, Value::Null | Value::Bool(false))
}

/// The name of an agent that runs code. User proxies do by default.
pub(super) fn runner<'a>(at: &At<'a>) -> Option<&'a str> {
    let own = at.value.get("config").unwrap_or(at.value);
    let name = own.get("name")?.as_str()?;
    let config = own.get("code_execution_config").filter(|config| !config.is_null());
    let is_usual = || Kind::of(class_of(at).unwrap_or_default(), name) == Kind::Proxy;
    config.map_or_else(is_usual, is_on).then_some(name)
}

/// The class of an agent.
pub(super) fn class_of<'a>(at: &At<'a>) -> Option<&'a str> {
    ["class", "type", "agent_type"].iter().find_map(|key| at.value.get(key)?.as_str())
}

/// Adds `code_execution`.
pub(super) fn runs(
    fields: &mut Fields<'_>,
    kind: Kind,
    entries: &mut Entries,
    draft: &mut Draft,
) -> Result<()> {
    let runs = match fields.take("code_execution_config") {
        Some(at) if at.value.get("last_n_messages").is_some_and(|last| *last == 0) => {
            draft.note(&at.path, "left out: an agent that looks at no message runs no code");
            return Ok(());
        }
        Some(at) if at.value.is_object() => settings(&at, draft)?,
        Some(at) if is_on(at.value) => return at.wrong("must be `false` or an object"),
        None if kind == Kind::Proxy => {
            let what = "it runs code in AutoGen, where nothing else is said, and so it does here, in the sandbox; \
                        without `code_execution` it runs none";
            draft.note(&fields.at.path, what);
            Vec::new()
        }
        _ => return Ok(()),
    };
    let runs = if runs.is_empty() { Yaml::plain(true) } else { Yaml::Map(runs) };
    entries.push(("code_execution".into(), runs));
    Ok(())
}

/// The timeout and the number of messages of a `code_execution_config`.
fn settings(at: &At<'_>, draft: &mut Draft) -> Result<Entries> {
    let mut fields = at.fields()?;
    let mut runs: Entries = Vec::new();
    if let Some(last) = fields.take("last_n_messages").filter(|last| last.value != "auto") {
        runs.push(("last".into(), Yaml::plain(last.count()?)));
    }
    let mut time = timeout(&mut fields, draft)?;
    fields.cannot("work_dir", WORK_DIR, draft);
    if let Some(docker) = fields.take("use_docker").filter(|docker| is_on(docker.value)) {
        let what = "left out: code runs in the sandbox of this machine; `sandbox: {backend: docker, image: IMAGE}` runs it in a container";
        draft.note(&docker.path, what);
    }
    if let Some(executor) = fields.take("executor") {
        let own = executed(&executor, &mut fields, draft)?;
        if own.is_some() && time.is_some() {
            draft.note(&format!("{}.timeout", at.path), "left out: that of the executor counts");
        }
        time = own.or(time);
    }
    runs.extend(time.map(|time| ("timeout".to_owned(), Yaml::text(time))));
    fields.rest(draft);
    Ok(runs)
}

/// The timeout of an executor: a name with settings next to it, or an object.
fn executed(executor: &At<'_>, outer: &mut Fields<'_>, draft: &mut Draft) -> Result<Option<String>> {
    let (name, settings) = match executor.value.as_str() {
        Some(name) => (name, outer.take(name)),
        None => {
            let mut fields = executor.fields()?;
            let name = fields.first(&["class", "type", "provider"]).map(|at| at.text()).transpose()?;
            (name.unwrap_or("commandline-local"), Some(executor.clone()))
        }
    };
    let class = name.rsplit('.').next().unwrap_or_default();
    if !["commandline-local", "LocalCommandLineCodeExecutor"].contains(&class) {
        let what = format!(
            "`{class}` is left out: every block is a separate program in the sandbox; the tool `python_session` keeps variables"
        );
        draft.note(&executor.path, what);
    }
    let Some(mut fields) = settings.map(|at| at.fields()).transpose()? else { return Ok(None) };
    fields.ignore(&["class", "type", "provider"]);
    let time = timeout(&mut fields, draft)?;
    fields.cannot("work_dir", WORK_DIR, draft);
    fields.rest(draft);
    Ok(time)
}

/// A timeout as a duration of team files.
fn timeout(fields: &mut Fields<'_>, draft: &mut Draft) -> Result<Option<String>> {
    let Some(time) = fields.take("timeout").filter(|time| time.value != "UNSPECIFIED") else {
        return Ok(None);
    };
    let wanted = time.number()? * 1000.0;
    let ms = wanted.clamp(1.0, 86_400_000.0).ceil() as u64;
    if !(1.0..=86_400_000.0).contains(&wanted) {
        draft.note(&time.path, "changed: a time is from 1 ms to 24 h here");
    }
    Ok(Some(if ms.is_multiple_of(1000) { format!("{} s", ms / 1000) } else { format!("{ms} ms") }))
}
