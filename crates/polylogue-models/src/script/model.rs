//! The model that replies by a script.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use polylogue_core::text::excerpt;
use polylogue_core::{
    AnyModel, Capabilities, DeltaSink, Entry, FinishReason, Model, ModelError, ModelErrorKind, Money, Name,
    Part, Price, Reply, Request, ToolCall, Usage, text_of,
};
use polylogue_http::Redactor;

use super::pieces::stream;
use super::steps::{Expectation, Script, ScriptError, ScriptStep};
use crate::unsupported::judged;

/// A model that replies by a script. Cloning shares it.
///
/// The step that answers a request depends on the request alone: the nth model call of an agent gets its nth step. So
/// a conversation that is resumed in another process continues where it was, and any number of conversations can
/// share one script. A failing step counts as a call; a request that does not meet the
/// expectation of its step does not, and the step answers the next one.
///
/// Every request is validated by [`Request::check`].
#[derive(Debug, Clone)]
pub struct Scripted {
    name: Arc<str>,
    steps: Arc<BTreeMap<Name, Vec<ScriptStep>>>,
    /// How many steps of each agent were played, for [`Scripted::finish`]; replies do not depend on it.
    played: Arc<Mutex<BTreeMap<Name, u64>>>,
    capabilities: Capabilities,
}

/// Creates a model that replies by the script `json`, without a network: for tests and demonstrations. See [`Script`].
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let model = polylogue_models::scripted(r#"[{"user": "Because blue light scatters most."}]"#)?;
/// assert_eq!(model.ask("Why is the sky blue?").await?.text(), "Because blue light scatters most.");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When the script is invalid.
pub fn scripted(json: &str) -> serde_json::Result<AnyModel> {
    serde_json::from_str::<Script>(json).map(|script| script.model("demo").into())
}

impl Script {
    /// Creates a model named `script:NAME` that replies by this script.
    pub fn model(&self, name: &str) -> Scripted {
        Scripted::new(self, name)
    }
}

impl Scripted {
    pub(super) fn new(script: &Script, name: &str) -> Self {
        let mut steps: BTreeMap<Name, Vec<ScriptStep>> = BTreeMap::new();
        for step in script.steps() {
            steps.entry(step.who.clone()).or_default().push(step.clone());
        }
        Self {
            name: format!("script:{name}").into(),
            steps: Arc::new(steps),
            played: Arc::default(),
            capabilities: Capabilities::default(),
        }
    }

    /// Sets the declared capabilities. The steps are played regardless.
    #[must_use]
    pub fn with_capabilities(self, capabilities: Capabilities) -> Self {
        Self { capabilities, ..self }
    }

    /// Checks that every step was played, by this model or a clone of it. For the end of a test.
    ///
    /// # Errors
    /// Names the remaining steps.
    pub fn finish(&self) -> Result<(), Unconsumed> {
        let played = self.played.lock().unwrap_or_else(PoisonError::into_inner);
        let script: Script = self.steps.values().flatten().cloned().collect();
        let steps: Vec<ScriptStep> = script.unconsumed(&played).into_iter().cloned().collect();
        if steps.is_empty() { Ok(()) } else { Err(Unconsumed { steps }) }
    }

    /// The step that answers `request`.
    fn step(&self, request: &Request<'_>) -> Result<&ScriptStep, ModelError> {
        request.check().map_err(|flaw| self.error(ModelErrorKind::Bug, flaw))?;
        let origin = request.origin;
        let steps = self.steps.get(origin.who).map_or(&[][..], Vec::as_slice);
        let step = usize::try_from(origin.nth).ok().and_then(|nth| steps.get(nth));
        let step = step.ok_or_else(|| self.no_step(request, steps.len()))?;
        if let Some(Err(flaw)) = step.expect.as_ref().map(|expect| expect.check(request)) {
            let message =
                format!("call {} of `{}` is not as the script expects: {flaw}", origin.nth + 1, origin.who);
            let hint =
                "change `expect` of the step, or use a model: a script knows only its own conversation";
            return Err(self.error(ModelErrorKind::Script, message).hint(hint));
        }
        Ok(step)
    }

    fn count(&self, request: &Request<'_>) {
        let mut played = self.played.lock().unwrap_or_else(PoisonError::into_inner);
        let count = played.entry(request.origin.who.clone()).or_default();
        *count = (*count).max(request.origin.nth.saturating_add(1));
    }

    fn error(&self, kind: ModelErrorKind, message: impl Into<String>) -> ModelError {
        ModelError::new(kind, &*self.name, message)
    }

    fn no_step(&self, request: &Request<'_>, steps: usize) -> ModelError {
        let who = request.origin.who;
        let has = match steps {
            0 => "no steps".to_owned(),
            1 => "1 step".to_owned(),
            n => format!("{n} steps"),
        };
        let call = request.origin.nth.saturating_add(1);
        let last = request.entries.last().map(last_text).unwrap_or_default();
        let message = format!(
            "the script has {has} for `{who}`, and this is call {call} of it; the last it read is `{last}`"
        );
        let hint = format!("add a step `- {who}: ...` to the script, or use a model");
        self.error(ModelErrorKind::Script, message).hint(hint)
    }

    fn failure(&self, error: &ScriptError, request: &Request<'_>) -> ModelError {
        // As in the error of a provider.
        let message = Redactor::default().with_key_formats().clean(&error.message);
        let failure = self.error(kind_of(error.status), message);
        judged(ModelError { status: error.status, ..failure }, request)
    }
}

impl From<Scripted> for AnyModel {
    fn from(model: Scripted) -> Self {
        Self::new(model)
    }
}

impl Model for Scripted {
    fn name(&self) -> &str {
        &self.name
    }

    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let step = self.step(request)?;
        self.count(request);
        stream(step, deltas).await;
        match &step.error {
            Some(error) => Err(self.failure(error, request)),
            None => Ok(reply(step, request.origin.nth)),
        }
    }

    fn cost(&self, usage: &Usage) -> Option<Money> {
        Price::FREE.of(usage)
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }
}

/// The kind of error for a provider's `status`.
fn kind_of(status: Option<u16>) -> ModelErrorKind {
    match status {
        None => ModelErrorKind::Connection,
        Some(400 | 401 | 403 | 404 | 422) => ModelErrorKind::Config,
        Some(408 | 504) => ModelErrorKind::Timeout,
        Some(_) => ModelErrorKind::Unavailable,
    }
}

fn reply(step: &ScriptStep, nth: u64) -> Reply {
    let thought = step.think.clone().map(Part::Thought);
    // As with any model, an empty reply has no text part.
    let text = step.say.clone().filter(|text| !text.is_empty()).map(Part::Text);
    let calls = step.calls.iter().enumerate().map(|(index, call)| {
        let id = call.id.clone().unwrap_or_else(|| format!("{}-{nth}-{index}", step.who));
        Part::ToolCall(ToolCall { id, tool: call.tool.clone(), args: call.args.clone() })
    });
    let by_calls = if step.calls.is_empty() { FinishReason::Stop } else { FinishReason::Calls };
    Reply {
        parts: thought.into_iter().chain(text).chain(calls).collect(),
        finish: step.finish.clone().unwrap_or(by_calls),
        usage: step.usage,
        cached: false,
        verbatim: None,
        answered_by: None,
    }
}

/// The beginning of an entry's text.
fn last_text(entry: &Entry) -> String {
    excerpt(&text_of(entry.parts()), 200)
}

impl Expectation {
    /// Describes a condition that `request` does not meet.
    fn check(&self, request: &Request<'_>) -> Result<(), String> {
        if let (Some(expected), Some(last)) = (&self.last, request.entries.last())
            && !text_of(last.parts()).contains(&**expected)
        {
            return Err(format!(
                "the last message does not contain `{expected}`; it is `{}`",
                last_text(last)
            ));
        }
        let system = request.system.unwrap_or_default();
        if let Some(expected) = self.system.as_ref().filter(|expected| !system.contains(&***expected)) {
            return Err(format!(
                "the system message does not contain `{expected}`; it is `{}`",
                excerpt(system, 200)
            ));
        }
        self.tools.as_ref().map_or(Ok(()), |expected| check_tools(expected, request))
    }
}

fn check_tools(expected: &[String], request: &Request<'_>) -> Result<(), String> {
    let sorted = |names: &mut Vec<&str>| names.sort_unstable();
    let mut wanted: Vec<&str> = expected.iter().map(String::as_str).collect();
    let mut offered: Vec<&str> = request.tools.iter().map(|tool| &*tool.name).collect();
    sorted(&mut wanted);
    sorted(&mut offered);
    if wanted == offered {
        return Ok(());
    }
    let list = |names: &[&str]| {
        if names.is_empty() { "none".to_owned() } else { format!("`{}`", names.join("`, `")) }
    };
    Err(format!("the tools should be {}, but are {}", list(&wanted), list(&offered)))
}

/// Steps of a script that were not played.
#[derive(Debug, Clone, PartialEq)]
pub struct Unconsumed {
    /// The steps, grouped by agent.
    pub steps: Vec<ScriptStep>,
}

impl std::error::Error for Unconsumed {}

impl fmt::Display for Unconsumed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.steps.len();
        let (steps, were) = if count == 1 { ("step", "was") } else { ("steps", "were") };
        write!(f, "{count} {steps} of the script {were} not played: ")?;
        for (index, step) in self.steps.iter().take(5).enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{step}")?;
        }
        if count > 5 { write!(f, " and {} more", count - 5) } else { Ok(()) }
    }
}

impl fmt::Display for ScriptStep {
    /// The agent, and the beginning of what it does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = &self.who;
        match (&self.say, self.calls.first(), &self.error) {
            (Some(text), ..) => write!(f, "{who} says `{}`", excerpt(text, 40)),
            (None, Some(call), _) => write!(f, "{who} calls `{}`", call.tool),
            (None, None, Some(error)) => write!(f, "{who} fails with `{}`", excerpt(&error.message, 40)),
            (None, None, None) => write!(f, "{who} thinks"),
        }
    }
}
