//! The calls that summarize histories, and from which size on they are made.

use polylogue::agents::compaction::{Compaction, CompactionLimit};
use polylogue::{Name, Result};
use polylogue_config::{At, Switch};
use polylogue_core::{AnyModel, Model as _, Params};

use super::amount::{Amount, NO_LIMIT};
use super::case::{self, Case, MESSAGE, REQUEST, SCHEMA};
use super::model;
use crate::agent::{Agent, ModelKeys};
use crate::build::AgentBuilder;
use crate::team::Team;

/// The most calls of a summarizing model for one compaction.
const CALLS: u128 = Compaction::MAX_CALLS as u128;

/// The window of a summarizing model if it is unknown, in tokens, as compactions assume it.
const UNKNOWN_WINDOW: u128 = 32_000;

/// Bytes of the prompts and the schema of a summary, and of the request for a better one.
const PROMPTS: u128 = 8_000 + REQUEST + SCHEMA + 3 * MESSAGE;

/// How the history of an agent is compacted.
#[derive(Debug, Clone)]
pub(super) struct Summaries {
    at: CompactionLimit,
    /// Whether the team says when or by whom: summaries can then be larger than what they replace.
    is_set: bool,
    author: Author,
}

/// What writes the summaries.
#[derive(Debug, Clone)]
struct Author {
    model: AnyModel,
    params: Params,
    /// Bytes of its own system message, and how often that quotes the task.
    system: u128,
    quotes: u128,
    attempts: u128,
}

impl Author {
    fn of(model: AnyModel, params: &Params, attempts: u128) -> Self {
        // A summary may have more tokens than a reply of the agent.
        let params = Params { max_tokens: None, schema: None, ..params.clone() };
        Self { model, params, system: 0, quotes: 0, attempts }
    }
}

impl Summaries {
    /// Those of an agent that sets nothing: by its own model, at 80 % of the window.
    pub(super) fn by_default(model: AnyModel, params: &Params, attempts: u128) -> Self {
        let at = CompactionLimit::Share(Compaction::DEFAULT_SHARE);
        Self { at, is_set: false, author: Author::of(model, params, attempts) }
    }

    /// Whether the team says when or by whom.
    pub(super) const fn is_set(&self) -> bool {
        self.is_set
    }

    /// The same, whose requests are sent at most `attempts` times.
    pub(super) fn with_attempts(mut self, attempts: u128) -> Self {
        self.author.attempts = attempts;
        self
    }

    /// The tokens of a request from which on a history with a window of `window` tokens can be compacted, when replies have
    /// `output` tokens.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share is between 0 and 1")]
    pub(super) fn limit(&self, window: u128, output: u128) -> u128 {
        match self.at {
            CompactionLimit::Messages(_) => 0,
            CompactionLimit::Tokens(tokens) => tokens.into(),
            CompactionLimit::Share(_) if window == NO_LIMIT => NO_LIMIT,
            CompactionLimit::Share(share) => {
                let percent = (share.clamp(0.0, 1.0) * 100.0).floor() as u128;
                let of_window = (window / 100).saturating_mul(percent);
                // By default the estimate of what a reply takes lowers it, too.
                let lowered = (window / 2).max(of_window.saturating_sub(output));
                lowered.min(of_window)
            }
        }
    }

    /// The bytes of a request whose history could have been compacted, of `context` bytes without that.
    pub(super) fn context(&self, context: u128) -> u128 {
        // A summary has at most four bytes for each of a share of the tokens of the request, which may be counted as one for each byte.
        if self.is_set { context.saturating_mul(4).saturating_add(4_096) } else { context }
    }

    /// The calls of one compaction of `context` bytes in a chat with a task of `task` bytes: each of them, and how many.
    pub(super) fn calls(&self, case: Case, (context, task): (u128, u128)) -> (Amount, u128) {
        let Author { model, params, system, quotes, attempts } = &self.author;
        let window = model.context_window().map_or(UNKNOWN_WINDOW, u128::from);
        let pieces = CALLS.min(2 + 2 * (context / (window / 2).max(1)));
        let quoted = quotes.saturating_add(2).saturating_mul(task);
        let reply = model.max_output(params).or_else(|| model.max_input()).map_or(NO_LIMIT, u128::from);
        let said = case.reply(reply).saturating_mul(case.bytes_per_token()).saturating_mul(2);
        let parts = [*system, quoted, said, PROMPTS, context.saturating_mul(2)];
        let request = parts.into_iter().fold(0, u128::saturating_add);
        let is_small = self.is_set || model.context_window().is_none();
        let request = if is_small { request } else { window };
        let request = if case.is_typical() { context } else { request };
        let attempts = if case == Case::Worst { attempts.saturating_mul(2) } else { 1 };
        (model::call_of(model, params, case, request), attempts.saturating_mul(pieces + 1))
    }

    /// The model that writes them, with the parameters of its requests.
    pub(super) const fn author(&self) -> (&AnyModel, &Params) {
        (&self.author.model, &self.author.params)
    }
}

/// How the history of an agent of the team `root`, or of one within it, is compacted where it sets nothing else than `by_default`; `None` if it never is.
pub(super) fn of_agent(
    root: &Team,
    builder: &AgentBuilder<'_>,
    (agent, keys): (&Agent, &ModelKeys),
    by_default: Summaries,
) -> Result<Option<Summaries>> {
    let set = match keys.compaction.as_ref().or(builder.team.compaction.as_ref()) {
        None => return Ok(Some(by_default)),
        Some(At { value: Switch::Off, .. }) => return Ok(None),
        Some(At { value: Switch::On(set), .. }) => set,
    };
    let author = match (&set.by, &set.model) {
        (Some(by), _) => summarizer(root, builder, by)?.unwrap_or(by_default.author),
        (None, Some(name)) => {
            let model = builder.model_of(&agent.name, Some(name))?;
            Author::of(model, &Params::default(), builder.attempts_of(root, Some(name)))
        }
        (None, None) => by_default.author,
    };
    Ok(Some(Summaries { at: set.at.unwrap_or(by_default.at), is_set: true, author }))
}

/// The agent `name` as it summarizes for others.
fn summarizer(root: &Team, builder: &AgentBuilder<'_>, name: &Name) -> Result<Option<Author>> {
    let agent = builder.team.agents.iter().find(|agent| agent.name == *name);
    let Some(keys) = agent.and_then(Agent::model) else { return Ok(None) };
    let (assistant, own) = (builder.summarizer(name)?, keys.model.as_ref().map(|model| model.as_str()));
    let length = |task: &str| assistant.system_for(task).map_or(0, |text| text.len() as u128);
    let examples = keys.examples.iter().map(case::example).sum::<u128>();
    let (system, quotes) = (length("").saturating_add(examples), length("x").saturating_sub(length("")));
    let attempts = builder.attempts_of(root, own);
    let author = Author::of(builder.model_of(name, own)?, assistant.model_params(), attempts);
    Ok(Some(Author { system, quotes, ..author }))
}
