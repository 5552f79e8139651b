//! A model that chooses the next speaker.

use std::fmt;
use std::sync::Arc;

use polylogue_core::{
    Act, Agent, AnyModel, ModelCall, Name, NameError, Params, PromptRole, Reply, Result, Turn, ViewOptions,
    Window,
};
use serde_json::{Value, json};

use super::answer::Answer;
use super::candidates::Candidates;
use super::mention::{Mention, mention};
use crate::tooling::Asks;

/// A model that chooses the next speaker: an agent to be asked aside by a [`Group`](super::Group).
///
/// Its model reads who may speak and what they are good at as the system text, then the conversation, then a prompt. What it
/// chose and said is in the log, and out of its own sight when it chooses again: every request is the conversation and
/// nothing else.
///
/// The reply is read for a name (see [`constrained`](Self::constrained) for the other way). If it has none, or several, the
/// model is told so and asked again; after [`attempts`](Self::attempts) replies the order of the members decides, and the
/// log says why.
///
/// In the texts `{roles}` stands for names and descriptions of those who may speak, one a line, and `{agentlist}` for
/// their names. Other braces are just text.
#[derive(Clone)]
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
    lens: ViewOptions,
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
    /// How many replies it gives at most for one choice, unless it is told otherwise: two corrections, as AutoGen has.
    pub const DEFAULT_ATTEMPTS: u32 = 3;

    /// A selector `name` that chooses by `model`.
    ///
    /// # Errors
    /// When the name is illegal.
    pub fn new(name: &str, model: AnyModel) -> Result<Self, NameError> {
        Ok(Self {
            name: Name::new(name)?,
            model,
            system: SYSTEM.into(),
            prompt: PROMPT.into(),
            several: SEVERAL.into(),
            none: NONE.into(),
            attempts: Self::DEFAULT_ATTEMPTS,
            constrained: false,
            params: Params::default(),
            lens: ViewOptions { forget_private_turns: true, ..ViewOptions::default() },
        })
    }

    /// Sets the system text.
    #[must_use]
    pub fn system(self, text: impl Into<Arc<str>>) -> Self {
        Self { system: text.into(), ..self }
    }

    /// Sets what stands after the conversation. With an empty text, nothing does.
    #[must_use]
    pub fn prompt(self, text: impl Into<Arc<str>>) -> Self {
        Self { prompt: text.into(), ..self }
    }

    /// Sets what the model is told when it named several.
    #[must_use]
    pub fn when_several(self, text: impl Into<Arc<str>>) -> Self {
        Self { several: text.into(), ..self }
    }

    /// Sets what the model is told when it named nobody who may speak.
    #[must_use]
    pub fn when_none(self, text: impl Into<Arc<str>>) -> Self {
        Self { none: text.into(), ..self }
    }

    /// Sets how many replies it gives at most for one choice, at least 1.
    #[must_use]
    pub fn attempts(self, attempts: u32) -> Self {
        Self { attempts: attempts.max(1), ..self }
    }

    /// Sets whether the model is made to reply with one of the names, as JSON by a schema. For models that can: it saves
    /// corrections. A reply that does not keep to it is read for a name all the same.
    #[must_use]
    pub fn constrained(self, constrained: bool) -> Self {
        Self { constrained, ..self }
    }

    /// Sets in which role the prompt and the corrections are sent. `User`, the default, is taken by every model.
    #[must_use]
    pub fn role(mut self, role: PromptRole) -> Self {
        self.lens.prompt_role = role;
        self
    }

    /// Sets how much of the conversation it reads.
    #[must_use]
    pub fn window(mut self, window: Window) -> Self {
        self.lens.window = window;
        self
    }

    /// Sets temperature and the like.
    #[must_use]
    pub fn params(self, params: Params) -> Self {
        Self { params, ..self }
    }

    /// How it sees the room.
    #[must_use]
    pub const fn sees(&self) -> &ViewOptions {
        &self.lens
    }

    /// The system text as its model gets it when it chooses among these, each a name and what it is good at.
    #[must_use]
    pub fn system_for(&self, candidates: &[(&Name, &str)]) -> String {
        Candidates::of(candidates).fill(&self.system)
    }

    /// How its model writes when it chooses among `names`.
    #[must_use]
    pub fn sampling_for(&self, names: &[Name]) -> Params {
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

    /// How it asks its model when it chooses among `names`, apart from what was said and its system text.
    #[must_use]
    pub fn asks_for(&self, names: &[Name]) -> Asks {
        Asks { tools: Vec::new(), params: self.sampling_for(names), lens: self.lens.clone() }
    }

    /// What the model named.
    fn read(&self, reply: &Reply, of: &[Name], members: &[Name]) -> Mention {
        let text = reply.plain();
        let speaker = serde_json::from_str::<Value>(&text).ok();
        let speaker = speaker.as_ref().and_then(|value| value.get("speaker")).and_then(Value::as_str);
        mention(speaker.filter(|_| self.constrained).unwrap_or(&text), of, members)
    }

    fn failed(&self, last: &Mention) -> Answer {
        let named = if *last == Mention::Several { "several" } else { "nobody who may speak" };
        let tries = if self.attempts == 1 { "1 reply".into() } else { format!("{} replies", self.attempts) };
        Answer::Failed(format!("`{}` chose nobody in {tries}; the last named {named}", self.name))
    }
}

impl fmt::Debug for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Selector")
            .field("name", &self.name)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

impl Agent for Selector {
    fn name(&self) -> &Name {
        &self.name
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let candidates = Candidates::in_turn(turn);
        let of = candidates.names();
        let (system, params) = (candidates.fill(&self.system), self.sampling_for(of));
        if !self.prompt.trim().is_empty() {
            turn.prompt(candidates.fill(&self.prompt)).await?;
        }
        let mut attempt = 1;
        loop {
            let Self { model, lens, .. } = self;
            let system = Some(&*system);
            let reply =
                turn.ask_model(ModelCall { model, system, tools: &[], params: &params, view: lens }).await?;
            let found = self.read(&reply, of, turn.transcript().participants());
            let correction = match &found {
                Mention::One(name) => return Ok(Answer::Picked(name.clone()).said(&reply.plain())),
                Mention::Several => &self.several,
                Mention::Nobody => &self.none,
            };
            if attempt >= self.attempts {
                return Ok(self.failed(&found).said(&reply.plain()));
            }
            turn.prompt(candidates.fill(correction)).await?;
            attempt += 1;
        }
    }
}
