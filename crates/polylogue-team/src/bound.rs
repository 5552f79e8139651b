//! The bound: what a run of a team takes at most, computed from its file before the first call.

mod added;
mod amount;
mod asked;
mod case;
mod chat;
mod model;
mod open_loops;
mod orchestrator;
mod participant;
mod paths;
mod pattern;
mod reach;
mod reasoning;
mod role_play;
mod scene;
mod speaker;
mod summaries;
mod task;
mod walk;

use std::collections::{BTreeMap, BTreeSet};

use polylogue::{Limits, Result};
use polylogue_core::{Allowance, Bound, Capabilities, Capability, Model as _, Money, OnLimit, RunBound};
use polylogue_mcp::Catalog;
use polylogue_models::KnownModel;
use serde::Serialize;

pub use self::amount::Amount;
use self::amount::NO_LIMIT;
use self::case::{BYTES_PER_TOKEN, Case, PERSON, SEAL_BYTES, SEAL_BYTES_PER_TOKEN};
pub use self::open_loops::{LoopKind, OpenLoop};
use self::reach::Reach;
use self::speaker::Speaker;
use self::walk::{Computed, Walk};
use crate::agent::{Agent, ModelKeys};
use crate::build::{AgentBuilder, Provide};
use crate::build_context::BuildContext;
use crate::built_in::SESSION;
use crate::source::Source;
use crate::team::Team;
use crate::tooling::ToolEntry;

/// What a run of a team takes at most.
///
/// It counts every turn that the patterns of the team allow, nested chats, rounds of tools, selections of speakers,
/// summaries, questions about tasks, repairs of replies, compactions and retries, within the limits of the run.
/// Requests grow with the history: each byte of a request counts as a token, each reply is as long as its model can
/// write, and prices are those of the built-in table, without discounts for caches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TeamBound {
    /// At most, if no request has to be sent again.
    pub at_most: Amount,
    /// At most, if every request is sent as often as failures allow.
    pub with_retries: Amount,
    /// What a run usually takes: short replies, few rounds of tools, and chats that end early. Not a bound.
    pub typical: Amount,
    /// The parts of the bound, by chat and agent, the most expensive first. Where any of several agents can speak, each
    /// of them counts as if it was the one: their sum is then more than the bound.
    pub rows: Vec<BoundRow>,
    /// The settings on which the bound rests, as sentences.
    pub rests_on: Vec<String>,
    /// Why there is no bound on tokens and money, as sentences; empty if there is one.
    pub unbounded: Vec<String>,
    /// Chats that only the default limit on turns ends, and agents whose replies nothing limits.
    pub open_loops: Vec<OpenLoop>,
    /// Models whose price is unknown: they are not in the amounts of money.
    pub unpriced: BTreeSet<String>,
    /// The date of the table of prices, as `YYYY-MM-DD`.
    pub price_date: String,
    /// The most bytes of the task and the messages with which it begins, with the tokens of what is attached, but for pages.
    #[serde(skip)]
    opening: u64,
    /// The most pages of documents in these.
    #[serde(skip)]
    opening_pages: u64,
    /// The capabilities that its models are expected to have.
    #[serde(skip)]
    expects: Capabilities,
    /// Whether none of its models is expected to return seals.
    #[serde(skip)]
    expects_no_seals: bool,
}

/// The part of one agent in one chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BoundRow {
    /// The chat.
    pub chat: String,
    /// The agent.
    pub agent: String,
    /// At most, if no request has to be sent again.
    pub at_most: Amount,
    /// What it usually takes.
    pub typical: Amount,
}

/// The capabilities on which `speakers` rest, and these in words, for each model.
fn expected_by<'a>(speakers: impl Iterator<Item = &'a Speaker>) -> (Capabilities, Vec<String>) {
    let mut all = Capabilities::default();
    let mut by_model: BTreeMap<&str, BTreeSet<Capability>> = BTreeMap::new();
    for speaker in speakers {
        for capability in [Capability::Tools, Capability::Schema] {
            if speaker.expects().has(capability) == Some(true) {
                all = all.with(capability);
                by_model.entry(speaker.model.name()).or_default().insert(capability);
            }
        }
    }
    let in_words = |(model, capabilities): (&str, BTreeSet<Capability>)| {
        let names: Vec<String> = capabilities.iter().map(Capability::to_string).collect();
        format!("`{model}` supports {}", names.join(" and "))
    };
    (all, by_model.into_iter().map(in_words).collect())
}

/// What is assumed of the seals of replies of these models; `None` if there are none.
fn seals_in_words(models: &BTreeSet<String>) -> Option<String> {
    let names: Vec<String> = models.iter().map(|name| format!("`{name}`")).collect();
    let most = format!("{SEAL_BYTES} bytes and {SEAL_BYTES_PER_TOKEN} more for each token of a reply");
    (!names.is_empty()).then(|| format!("sealed reasoning of {} has {most}", names.join(" and ")))
}

/// What answers to `on_limit: ask` can do to the bound; `None` if no one is asked.
fn raises_in_words(limits: &Limits) -> Option<String> {
    let Allowance { calls, tokens, cost, time_ms: _ } = limits.raise.ceiling;
    let most = [
        cost.map(|cost| cost.to_string()),
        calls.map(|calls| format!("{calls} model calls")),
        tokens.map(|tokens| format!("{tokens} tokens")),
    ];
    let most: Vec<String> = most.into_iter().flatten().collect();
    let after = match most.is_empty() {
        true => "the bound does not hold: no `ceiling` limits calls, tokens or money".to_owned(),
        false => format!("a run can take more than the bound, up to the `ceiling` of {}", most.join(" and ")),
    };
    let asks = limits.on_limit == OnLimit::Ask;
    asks.then(|| format!("no person raises a limit when asked (`on_limit: ask`): after that {after}"))
}

impl Team {
    /// Computes what a run takes at most within `limits`, with models that `provide` gives by name. Nothing is sent.
    ///
    /// ```
    /// use polylogue::{AnyModel, Limits};
    /// use polylogue_models::{Env, Models};
    /// use polylogue_team::{Overrides, parse};
    /// let text = "{name: t, model: 'openai:gpt-4o-mini', agents: [{name: Ann, parameters: {max_tokens: 100}}], \
    ///     task: hi, chat: {participants: [Ann], max_turns: 3}}";
    /// let team = parse(text, "t.yaml", &Overrides::default())?.team;
    /// let models = Models::new(Env::default());
    /// let bound = team.bound(&|name| Ok(AnyModel::from(models.model(name)?)), &Limits::default())?;
    /// assert_eq!(bound.at_most.calls(), Some(3));
    /// assert_eq!(bound.at_most.output(), Some(300));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When an agent has no model, or the team cannot be built.
    pub fn bound(&self, provide: Provide<'_>, limits: &Limits) -> Result<TeamBound> {
        self.bound_with(provide, limits, Catalog::default())
    }

    /// The same with tools of MCP servers, as far as these are known.
    ///
    /// # Errors
    /// As [`bound`](Self::bound).
    pub fn bound_with(&self, provide: Provide<'_>, limits: &Limits, tools: Catalog) -> Result<TeamBound> {
        let context = BuildContext::unused().with_tools(tools);
        let builder = AgentBuilder::of(self, &self.name, None, provide, &context);
        let mut computed = Computed::default();
        let task = self.task.as_deref().unwrap_or_default().len() as u128;
        let limited = (limits.max_calls(), limits.turns);
        let page_tokens = self.page_tokens(provide);
        let mut run = |case| -> Result<_> {
            let mut walk = Walk::new(self, case, limited, page_tokens, &mut computed);
            let effect = walk.chat(&builder, (&self.name, &self.chat), (task, 0), &[])?;
            let pages = walk.opening_pages;
            let of_pages = u128::from(pages) * u128::from(page_tokens);
            let bytes = walk.opening.unwrap_or_default().saturating_sub(of_pages);
            let opening = (u64::try_from(bytes).unwrap_or(u64::MAX), pages);
            let reach = Reach::of(self, &walk);
            let unlimited = (walk.unlimited, walk.unlimited_agents);
            let models = (walk.unpriced, walk.sealing);
            Ok((effect.sum, walk.rows, models, unlimited, (walk.has_people, opening, reach)))
        };
        let (worst, _, _, _, (.., reach_of_worst)) = run(Case::Worst)?;
        let (typical, typical_rows, ..) = run(Case::Typical)?;
        let (most, rows, (unpriced, sealing), (unlimited, unlimited_agents), (has_people, opening, reach)) =
            run(Case::WithoutFailures)?;
        let (opening, opening_pages) = opening;
        let calls = limits.max_calls().into();
        let all = computed.speakers.values().map(|speaker| &**speaker);
        let within_reach = |sum: amount::Sum, whole, reach: &Option<Reach>| {
            let reached = reach.as_ref().map(|reach| reach.within(sum, whole, calls, &all));
            limited_by(reached.unwrap_or_else(|| sum.within(calls)), limits)
        };
        let mut by_chat: BTreeMap<String, u128> = BTreeMap::new();
        for ((chat, _), sum) in &rows {
            let calls = by_chat.entry(chat.clone()).or_default();
            *calls = calls.saturating_add(sum.total.calls);
        }
        let within = |sum: amount::Sum| within_reach(sum, most, &reach);
        let mut rows: Vec<BoundRow> = rows
            .into_iter()
            .map(|((chat, agent), sum)| {
                let key = (chat, agent);
                let typical = typical_rows.get(&key).copied().unwrap_or_default();
                let (at_most, typical) = (within(sum), limited_by(typical.within(calls), limits));
                BoundRow { chat: key.0, agent: key.1, at_most, typical }
            })
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse((row.at_most.cost, row.at_most.calls)));
        let at_most = within(most);
        let mut rests_on = vec![self.calls_in_words(limits, most.total.calls, &by_chat)];
        rests_on.extend(self.in_words(has_people));
        let (expects, capabilities_in_words) = expected_by(computed.speakers.values().map(|of| &**of));
        rests_on.extend(capabilities_in_words);
        rests_on.extend(seals_in_words(&sealing));
        rests_on.extend(raises_in_words(limits));
        Ok(TeamBound {
            at_most,
            with_retries: within_reach(worst, worst, &reach_of_worst).max(at_most),
            typical: limited_by(typical.within(calls), limits),
            rows,
            rests_on,
            unbounded: reasons(&at_most, &unlimited),
            open_loops: open_loops::open_loops(self, limits, &unlimited_agents),
            unpriced,
            price_date: KnownModel::table_date().to_owned(),
            opening,
            opening_pages,
            expects,
            expects_no_seals: sealing.is_empty(),
        })
    }

    /// The limit on model calls, and where there are more of them: of `calls` in all, so many `by_chat`.
    fn calls_in_words(&self, limits: &Limits, calls: u128, by_chat: &BTreeMap<String, u128>) -> String {
        let limit = limits.max_calls();
        let what = match limits.calls {
            Some(_) => format!("the limit of {limit} model calls"),
            None => format!("the default limit of {limit} model calls"),
        };
        let longest = by_chat.iter().max_by_key(|(_, calls)| **calls);
        let Some((chat, most)) = longest.filter(|_| calls > limit.into()) else { return what };
        let line = self.line_of(chat).map(|line| format!(" (line {line})")).unwrap_or_default();
        match *most {
            NO_LIMIT => format!("{what}, without which nothing bounds the chat `{chat}`{line}"),
            most => format!(
                "{what}, which is below what the chats allow: most of it the chat `{chat}`{line}, up to {most} calls"
            ),
        }
    }

    /// The most tokens of a page of a document for any of its models.
    fn page_tokens(&self, provide: Provide<'_>) -> u64 {
        let of = |name| provide(name).map_or(Bound::PAGE_TOKENS, |model| model.page_tokens());
        self.models().into_iter().map(of).max().unwrap_or(Bound::PAGE_TOKENS)
    }

    /// The line of the outermost file with the chat called `name`, or with its participants.
    fn line_of(&self, name: &str) -> Option<usize> {
        let inner = self.chats.iter().find(|inner| inner.name.as_str() == name).map(|inner| &inner.name.span);
        let outermost = || (self.name.as_str() == name).then(|| self.chat.participants.key());
        let source = Source::new(&self.sources.file, self.text()?);
        Some(source.position(inner.or_else(outermost)?.start).line)
    }

    /// The assumptions in words.
    fn in_words(&self, has_people: bool) -> Vec<String> {
        let mut all = vec![format!(
            "a byte of a request counts as a token, and a token of a reply as {BYTES_PER_TOKEN} bytes when it is read again"
        )];
        if has_people {
            all.push(format!("people write at most {PERSON} bytes in each message"));
        }
        let uses_servers = |keys: &ModelKeys| keys.tools.iter().any(|tool| tool.mcp().is_some());
        if self.agents.iter().filter_map(Agent::model).any(uses_servers) {
            all.push("descriptions of tools of MCP servers count only when the servers run".to_owned());
        }
        if self.agents.iter().any(shows_pictures) {
            all.push("tools return no pictures or documents".to_owned());
        }
        if self.memory.embed.is_some() {
            all.push("embeddings of the memory are not counted".to_owned());
        }
        all
    }
}

impl TeamBound {
    /// Whether it has a bound on tokens.
    #[must_use]
    pub const fn is_finite(&self) -> bool {
        self.unbounded.is_empty()
    }

    /// What a run must not exceed, with all retries: to be enforced by [`Log::bound`](polylogue::Log::bound). Tokens without a
    /// limit and models of unknown price have no bound.
    #[must_use]
    pub fn to_enforce(&self) -> RunBound {
        let most = &self.with_retries;
        // Models that cost nothing have nothing to enforce.
        let cost = most.picodollars().filter(|cost| self.unpriced.is_empty() && *cost > 0);
        let cost = cost.and_then(|cost| u64::try_from(cost).ok()).map(|picodollars| Money { picodollars });
        let (opening, opening_pages) = (Some(self.opening), Some(self.opening_pages));
        let (calls, tokens) = (most.calls(), most.tokens());
        let (expects, expects_no_seals) = (self.expects, self.expects_no_seals);
        RunBound {
            calls,
            tokens,
            cost,
            opening,
            opening_pages,
            expects,
            expects_no_seals,
            is_repriced: false,
        }
    }

    /// The bound of `runs` runs.
    #[must_use]
    pub fn times(mut self, runs: u64) -> Self {
        let of = |amount: Amount| amount.times(runs.into());
        (self.at_most, self.with_retries, self.typical) =
            (of(self.at_most), of(self.with_retries), of(self.typical));
        for row in &mut self.rows {
            (row.at_most, row.typical) = (of(row.at_most), of(row.typical));
        }
        self
    }
}

/// Whether tools that `agent` calls or executes can return pictures.
fn shows_pictures(agent: &Agent) -> bool {
    let shows = |tool: &ToolEntry| tool.mcp().is_some() || tool.own().is_some_and(|own| *own.tool == SESSION);
    let keys = agent.model();
    keys.is_some_and(|keys| keys.tools.iter().any(|tool| shows(tool)))
        || agent.executes_tools.iter().any(|run| *run.tool == SESSION)
}

/// `amount` within the limits on tokens and money.
fn limited_by(amount: Amount, limits: &Limits) -> Amount {
    let tokens = limits.tokens.map_or(NO_LIMIT, u128::from);
    let cost = limits.cost.map_or(NO_LIMIT, |cost| cost.picodollars.into());
    amount.min(Amount { calls: NO_LIMIT, input: tokens, output: tokens, cost })
}

fn reasons(bound: &Amount, unlimited: &BTreeSet<String>) -> Vec<String> {
    if bound.tokens().is_some() {
        return Vec::new();
    }
    let names: Vec<String> = unlimited.iter().map(|name| format!("`{name}`")).collect();
    vec![format!(
        "the length of a reply of {} has no known limit: set `max_tokens` in `parameters`",
        names.join(", ")
    )]
}
