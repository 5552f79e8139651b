//! Scripts as JSON files.

use serde::Deserialize;
use serde_json::Value;

use super::{Answer, Playbook, Quirk};

/// A script file: answers in the order of requests, or answers of each agent.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a script is a list of answers, or an object with `agents`")]
enum ScriptFile {
    List(Vec<Line>),
    Agents { agents: Vec<AgentLines> },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentLines {
    /// Found in the agent's system message.
    system: String,
    answers: Vec<Line>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "an answer is a text or an object with fields of an answer")]
enum Line {
    Text(String),
    Fields(Box<Fields>),
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Fields {
    text: String,
    think: String,
    calls: Vec<CallLine>,
    usage: Option<UsageLine>,
    finish: Option<String>,
    pieces: Option<usize>,
    status: Option<u16>,
    message: Option<String>,
    retry_after_secs: Option<u64>,
    misbehave: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallLine {
    id: Option<String>,
    tool: String,
    #[serde(default)]
    args: Value,
    /// The text of the arguments, when it is to be no JSON.
    raw: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UsageLine {
    input: u64,
    output: u64,
}

impl Playbook {
    /// Reads a script: a list of answers, given in the order of requests, or `{"agents": [{"system": "You are the
    /// critic", "answers": [..]}]}`, given as by [`Playbook::by_agent`].
    ///
    /// An answer is a text, or an object with any of `text`, `think`, `calls` (`[{"tool", "args", "id"}]`, or
    /// `[{"tool", "raw"}]` for arguments that need not be JSON), `usage` (`{"input", "output"}`), `finish`, `pieces`,
    /// `status`, `message`, `retry_after_secs` and `misbehave` (names of [`Quirk`]s).
    ///
    /// ```
    /// use polylogue_test::server::Playbook;
    /// let script = r#"["Hello.", {"text": "Bye.", "pieces": 4, "misbehave": ["crlf", "stall=100"]}]"#;
    /// assert!(Playbook::from_script(script).is_ok());
    /// assert!(Playbook::from_script(r#"[{"txt": "Hello."}]"#).is_err());
    /// ```
    ///
    /// # Errors
    /// Says what is not a script, or which misbehavior there is not.
    pub fn from_script(json: &str) -> Result<Self, String> {
        match serde_json::from_str(json).map_err(|error| error.to_string())? {
            ScriptFile::List(lines) => Ok(Self::list(answers(lines)?)),
            ScriptFile::Agents { agents } => {
                let agents: Result<Vec<_>, String> =
                    agents.into_iter().map(|agent| Ok((agent.system, answers(agent.answers)?))).collect();
                Ok(Self::by_agent(agents?))
            }
        }
    }
}

fn answers(lines: Vec<Line>) -> Result<Vec<Answer>, String> {
    lines.into_iter().map(answer).collect()
}

fn answer(line: Line) -> Result<Answer, String> {
    let fields = match line {
        Line::Text(text) => return Ok(Answer::text(text)),
        Line::Fields(fields) => fields,
    };
    let mut answer = match (fields.status, fields.message) {
        (Some(status), Some(message)) => Answer::error(status, message),
        (Some(status), None) => Answer::status(status),
        (None, Some(_)) => return Err("`message` needs a `status`".into()),
        (None, None) => Answer::text(fields.text),
    };
    answer = answer.think(fields.think);
    for call in fields.calls {
        answer = match (call.raw, call.id) {
            (Some(raw), None) => answer.call_raw(call.tool, raw),
            (Some(_), Some(_)) => return Err("a call has `raw` or an `id`".into()),
            (None, Some(id)) => answer.call_as(id, call.tool, call.args),
            (None, None) => answer.call(call.tool, call.args),
        };
    }
    if let Some(usage) = fields.usage {
        answer = answer.usage(usage.input, usage.output);
    }
    if let Some(finish) = fields.finish {
        answer = answer.finish(finish);
    }
    if let Some(pieces) = fields.pieces {
        answer = answer.pieces(pieces);
    }
    if let Some(secs) = fields.retry_after_secs {
        answer = answer.retry_after_secs(secs);
    }
    fields.misbehave.iter().try_fold(answer, |answer, name| Ok(answer.with(name.parse::<Quirk>()?)))
}
