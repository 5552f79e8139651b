//! A model that selects the next speaker.

use std::sync::Arc;

use polylogue_core::{
    Act, Agent, AnyModel, ModelCall, Name, NameError, Params, PromptRole, Reply, Result, Turn, ViewOptions,
    Window,
};
use serde_json::{Value, json};

use super::answer::Answer;
use super::candidates::Candidates;
use super::mention::{Mention, mention};
use crate::agents::compaction::ask_shorter;
use crate::agents::tooling::ModelSettings;

/// A model that selects the next speaker, asked in private turns by a [`Group`](super::Group).
///
/// Its model reads the candidates and their descriptions as the system message, then the conversation, then a prompt.
/// Its own selections are in the log, but not in its view: every request has only the conversation. If its provider refuses that as too long, the
/// latest part of it is sent instead, once for each request.
///
/// The reply is searched for a name (or see [`constrained`](Self::constrained)). With no name, or several, the model
/// receives the error and is asked again; after [`attempts`](Self::attempts) replies the order of the participants
/// decides, and the log says why.
///
/// In the prompts `{roles}` stands for names and descriptions of the candidates, one per line, and `{agentlist}` for
/// their names. Other braces are plain text.
#[derive(Clone, Debug)]
#[must_use]
pub struct Selector {
    name: Name,
    model: AnyModel,
    system: Arc<str>,
    prompt: Arc<str>,
    several: Arc<str>,
    none: Arc<str>,
    attempts: u32,
    constrained: bool,
    params: Params,
    view: ViewOptions,
}

const SYSTEM: &str = "You moderate a conversation among these participants:\n{roles}\n\nRead what was said, then decide \
    which of them should speak next. Answer with one name and nothing else.";
const PROMPT: &str =
    "Who of the participants should speak next? One of: {agentlist}. Answer with the name only.";
const SEVERAL: &str = "You named more than one participant. Choose the one who should speak next: the first whose help is \
    needed now. One of: {agentlist}. Answer with that name only.";
const NONE: &str = "You named none of those who may speak now. Choose one of: {agentlist}. Write the name exactly as it \
    stands there, and nothing else.";

impl Selector {
    /// Default limit on replies per selection: two corrections, as in AutoGen.
    pub const DEFAULT_ATTEMPTS: u32 = 3;

    /// Creates a selector named `name` that asks `model`.
    ///
    /// ```
    /// # fn example(model: polylogue::AnyModel) -> Result<(), polylogue::kernel::data::NameError> {
    /// use polylogue::Group;
    /// use polylogue::policies::Selector;
    ///
    /// let selector = Selector::new("selector", model)?
    ///     .system("Select who speaks next:\n{roles}\n\nThe tester speaks only after the coder.")
    ///     .constrained();
    /// let group = Group::select_by(selector);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the name is illegal.
    pub fn new(name: impl AsRef<str>, model: impl Into<AnyModel>) -> Result<Self, NameError> {
        Ok(Self {
            name: Name::new(name)?,
            model: model.into(),
            system: SYSTEM.into(),
            prompt: PROMPT.into(),
            several: SEVERAL.into(),
            none: NONE.into(),
            attempts: Self::DEFAULT_ATTEMPTS,
            constrained: false,
            params: Params::default(),
            view: ViewOptions { forget_private_turns: true, ..ViewOptions::default() },
        })
    }

    /// Sets the system message.
    pub fn system(self, text: impl Into<Arc<str>>) -> Self {
        Self { system: text.into(), ..self }
    }

    /// Sets the prompt after the conversation; empty for none.
    pub fn prompt(self, text: impl Into<Arc<str>>) -> Self {
        Self { prompt: text.into(), ..self }
    }

    /// Sets the correction after a reply with several names.
    pub fn when_several(self, text: impl Into<Arc<str>>) -> Self {
        Self { several: text.into(), ..self }
    }

    /// Sets the correction after a reply without a valid name.
    pub fn when_none(self, text: impl Into<Arc<str>>) -> Self {
        Self { none: text.into(), ..self }
    }

    /// Sets the limit on replies per selection, at least 1.
    pub fn attempts(self, attempts: u32) -> Self {
        Self { attempts: attempts.max(1), ..self }
    }

    /// Requests the name as JSON with a schema, for models that support it: needs fewer corrections. Other replies are
    /// still searched for a name.
    pub fn constrained(self) -> Self {
        Self { constrained: true, ..self }
    }

    /// Sets the role of the prompt and the corrections. Every model accepts the default, `User`.
    pub fn role(mut self, role: PromptRole) -> Self {
        self.view.prompt_role = role;
        self
    }

    /// Sets how much of the conversation the selector sees. Default: all of it, or what fits after a refusal as too long.
    pub fn window(mut self, window: Window) -> Self {
        self.view.window = window;
        self
    }

    /// Sets sampling parameters, such as the temperature.
    pub fn params(self, params: Params) -> Self {
        Self { params, ..self }
    }

    /// Returns the system message for a selection among these names with their descriptions.
    pub fn system_for(&self, candidates: &[(&Name, &str)]) -> String {
        Candidates::of(candidates).fill(&self.system)
    }

    /// The sampling parameters for a selection among `names`.
    fn params_for(&self, names: &[Name]) -> Params {
        let schema = self.constrained.then(|| {
            json!({
                "type": "object",
                "properties": {"speaker": {"type": "string", "enum": names}},
                "required": ["speaker"],
                "additionalProperties": false
            })
        });
        Params { schema: schema.or_else(|| self.params.schema.clone()), ..self.params.clone() }
    }

    /// Returns the settings of the request for a selection among `names`: all but the conversation and the system message.
    pub fn request_settings(&self, names: &[Name]) -> ModelSettings {
        ModelSettings { tools: Vec::new(), params: self.params_for(names), view: self.view.clone() }
    }

    /// The latest part of the conversation, for a model that accepts `tokens` tokens. `None` if the window is set.
    fn latest_within(&self, tokens: u64) -> Option<ViewOptions> {
        // The system message and the prompt need space, too, and some texts have more tokens than is estimated.
        let window = Window::Tokens(usize::try_from(tokens / 5 * 3).unwrap_or(usize::MAX));
        (self.view.window == Window::All).then(|| ViewOptions { window, ..self.view.clone() })
    }

    /// The name in the reply of the model.
    fn read(&self, reply: &Reply, of: &[Name], participants: &[Name]) -> Mention {
        let text = reply.text();
        let speaker = serde_json::from_str::<Value>(&text).ok();
        let speaker = speaker.as_ref().and_then(|value| value.get("speaker")).and_then(Value::as_str);
        mention(speaker.filter(|_| self.constrained).unwrap_or(&text), of, participants)
    }

    fn failed(&self, last: &Mention) -> Answer {
        let named = if *last == Mention::Several { "several" } else { "no participant who may speak" };
        let tries = if self.attempts == 1 { "1 reply".into() } else { format!("{} replies", self.attempts) };
        Answer::Failed(format!("`{}` selected no participant in {tries}; the last named {named}", self.name))
    }
}

impl Agent for Selector {
    fn name(&self) -> &Name {
        &self.name
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let candidates = Candidates::in_turn(turn);
        let of = candidates.names();
        let (system, params) = (candidates.fill(&self.system), self.params_for(of));
        if !self.prompt.trim().is_empty() {
            turn.prompt(candidates.fill(&self.prompt)).await?;
        }
        let (mut attempt, mut view) = (1, self.view.clone());
        loop {
            let Self { model, view: whole, .. } = self;
            let system = Some(&*system);
            let call =
                ModelCall { model, system, tools: &[], params: &params, view: whole, compaction: None };
            let reply = ask_shorter(turn, call, &mut view, |tokens| self.latest_within(tokens)).await?;
            let found = self.read(&reply, of, turn.transcript().participants());
            let correction = match &found {
                Mention::One(name) => return Ok(Answer::Picked(name.clone()).said(&reply.text())),
                Mention::Several => &self.several,
                Mention::NoName => &self.none,
            };
            if attempt >= self.attempts {
                return Ok(self.failed(&found).said(&reply.text()));
            }
            turn.prompt(candidates.fill(correction)).await?;
            attempt += 1;
        }
    }
}
