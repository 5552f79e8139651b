//! The bound: what a run of a team takes at most, computed from its file before the first call.

mod amount;
mod asked;
mod attached;
mod case;
mod chat;
mod limited;
mod model;
mod open_loops;
mod orchestrator;
mod participant;
mod parts;
mod paths;
mod pattern;
mod reach;
mod reasoning;
mod role_play;
mod scene;
mod speaker;
mod summaries;
mod task;
mod typical;
mod visits;
mod walk;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use polylogue::{Limits, Name, Result};
use polylogue_core::text::enumerated;
use polylogue_core::{Allowance, Bound, Capabilities, Capability, Model as _, Money, OnLimit, RunBound};
use polylogue_mcp::{Allowed, Catalog};
use polylogue_models::KnownModel;
use serde::Serialize;

pub use self::amount::Amount;
use self::amount::{NO_LIMIT, Sum};
pub use self::attached::AttachedSize;
use self::case::{BYTES_PER_TOKEN, CALL_TOKENS, Case, PERSON, SEAL_BYTES, SEAL_BYTES_PER_TOKEN};
use self::limited::{AtLimit, Limited};
pub use self::open_loops::{LoopKind, OpenLoop};
use self::reach::Reach;
use self::speaker::Speaker;
use self::walk::{Computed, Walk};
use crate::agent::Agent;
use crate::build::{AgentBuilder, Provide};
use crate::build_context::BuildContext;
use crate::built_in::SESSION;
use crate::source::Source;
use crate::team::Team;
use crate::tooling::ToolEntry;

/// The bound of a run of a team: the most that it takes.
///
/// It counts every turn that the patterns of the team allow, nested chats, rounds of tools, selections of speakers,
/// summaries, questions about tasks, repairs of replies, compactions and retries, and what tools declare to cost, within the limits of the run
/// and of its agents.
/// Requests grow with the history: each byte of a request counts as a token, each reply is as long as its model can
/// write, and prices are those of the built-in table, without discounts for caches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TeamBound {
    /// The maximum if no request has to be sent again.
    pub at_most: Amount,
    /// The maximum if every request is sent as often as failures allow.
    pub with_retries: Amount,
    /// The usual usage of a run: short replies, few rounds of tools, and chats that end early. Not a bound.
    pub typical: Amount,
    /// The parts of the bound, by chat and agent, the most expensive first. Where any of several agents can speak, each
    /// of them counts as if it was the one: their sum is then more than the bound. Those of the usual usage add up to it.
    pub rows: Vec<BoundRow>,
    /// The settings on which the bound rests, as sentences.
    pub rests_on: Vec<String>,
    /// The reasons why there is no bound on tokens and money, as sentences; empty if there is one.
    pub unbounded: Vec<String>,
    /// Chats that only the default limit on turns ends, and agents whose replies nothing limits.
    pub open_loops: Vec<OpenLoop>,
    /// Models whose price is unknown: they are not in the amounts of money.
    pub unpriced: BTreeSet<String>,
    /// The date of the table of prices, as `YYYY-MM-DD`.
    pub price_date: String,
    /// Which limits make `at_most` no more.
    #[serde(skip)]
    at_limit: AtLimit,
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
    /// The maximum if no request has to be sent again.
    pub at_most: Amount,
    /// The usual usage.
    pub typical: Amount,
}

/// A chat and an agent.
type RowKey = (String, String);

/// What a walk through a team found.
struct Walked {
    sum: Sum,
    rows: BTreeMap<RowKey, Sum>,
    reach: Option<Reach>,
    is_typical: bool,
    /// The most bytes of the task and the messages with which it begins, without the pages of documents, and how many of these.
    opening: u64,
    opening_pages: u64,
    /// Models without a known price, models whose replies can have seals, and models without a known length of replies.
    unpriced: BTreeSet<String>,
    sealing: BTreeSet<String>,
    unlimited: BTreeSet<String>,
    /// Agents whose replies have no known length, by team.
    unlimited_agents: BTreeMap<Name, BTreeSet<Name>>,
    has_people: bool,
}

impl Walked {
    /// What each agent takes in each chat, and all together, in a run that stays within its limits, with requests of any of `speakers`.
    fn within<'s>(
        &self,
        limited: &Limited<'_>,
        speakers: &(impl Iterator<Item = &'s Speaker> + Clone),
    ) -> (BTreeMap<RowKey, Amount>, Amount) {
        let calls = limited.calls();
        let within = |sum: Sum| match self.reach.as_ref().filter(|_| !self.is_typical) {
            Some(reach) => reach.within(sum, self.sum, calls, speakers),
            None => sum.within(calls),
        };
        let own = |(key, sum): (&RowKey, &Sum)| (key.clone(), limited.of_agent(within(*sum), *sum, &key.1));
        let rows: BTreeMap<RowKey, Amount> = self.rows.iter().map(own).collect();
        let parts = rows.iter().map(|((_, agent), amount)| (agent.as_str(), *amount));
        let whole = limited.of_parts(within(self.sum), parts);
        let rows = rows.into_iter().map(|(key, amount)| (key, limited.of_run(amount))).collect();
        let whole = limited.of_run(whole);
        if self.is_typical { shares(rows, whole) } else { (rows, whole) }
    }
}

/// The typical `rows`, which add up to the `whole` also where a limit ends the run before.
fn shares(rows: BTreeMap<RowKey, Amount>, whole: Amount) -> (BTreeMap<RowKey, Amount>, Amount) {
    let all = rows.values().copied().fold(Amount::default(), Amount::plus);
    let whole = whole.min(all);
    let mut until = Amount::default();
    let share = |(key, row): (RowKey, Amount)| {
        let before = until.share(whole, all);
        until = until.plus(row);
        (key, until.share(whole, all).less(before))
    };
    (rows.into_iter().map(share).collect(), whole)
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
        format!("`{model}` supports {}", enumerated(capabilities.iter().map(Capability::to_string)))
    };
    (all, by_model.into_iter().map(in_words).collect())
}

/// What is assumed of the seals of replies of these models; `None` if there are none.
fn seals_in_words(models: &BTreeSet<String>) -> Option<String> {
    let names: Vec<String> = models.iter().map(|name| format!("`{name}`")).collect();
    let most = format!("{SEAL_BYTES} bytes and {SEAL_BYTES_PER_TOKEN} more for each token of a reply");
    (!names.is_empty()).then(|| format!("sealed reasoning of {} has {most}", enumerated(&names)))
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
        false => format!("a run can take more than the bound, up to the `ceiling` of {}", enumerated(&most)),
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
        self.bound_with(provide, limits, Catalog::default(), AttachedSize::default())
    }

    /// Computes the bound with tools of MCP servers, as far as these are known, and with what the caller attaches to the first message.
    ///
    /// # Errors
    /// As [`bound`](Self::bound).
    pub fn bound_with(
        &self,
        provide: Provide<'_>,
        limits: &Limits,
        tools: Catalog,
        attached: AttachedSize,
    ) -> Result<TeamBound> {
        let unknown = self.unknown_servers(&tools);
        let context = BuildContext::counted().with_tools(tools);
        let builder = AgentBuilder::of(self, &self.name, None, provide, &context);
        let mut computed = Computed::default();
        let page_tokens = self.page_tokens(provide);
        let mut walked = |case| self.walked(&builder, limits, (attached, page_tokens), case, &mut computed);
        let (worst, typical, most) =
            (walked(Case::Worst)?, walked(Case::Typical)?, walked(Case::WithoutFailures)?);
        let all = computed.speakers.values().map(|speaker| &**speaker);
        let limited = Limited::of(self, limits);
        let (rows, at_most) = most.within(&limited, &all);
        let (_, with_retries) = worst.within(&limited, &all);
        let (typical_rows, typical) = typical.within(&limited, &all);
        let typical_of = |key: &RowKey| typical_rows.get(key).copied().unwrap_or_default();
        let row = |(key, at_most): (RowKey, Amount)| {
            let typical = typical_of(&key);
            BoundRow { chat: key.0, agent: key.1, at_most, typical }
        };
        let mut rows: Vec<BoundRow> = rows.into_iter().map(row).collect();
        rows.sort_by_key(|row| std::cmp::Reverse((row.at_most.money(), row.at_most.calls)));
        let mut rests_on = vec![self.calls_in_words(limits, &most)];
        rests_on.extend(self.in_words(&most, &unknown));
        let (expects, capabilities_in_words) = expected_by(all);
        rests_on.extend(capabilities_in_words);
        rests_on.extend(seals_in_words(&most.sealing));
        rests_on.extend(raises_in_words(limits));
        Ok(TeamBound {
            at_most,
            with_retries: with_retries.max(at_most),
            typical,
            rows,
            rests_on,
            unbounded: reasons(&at_most, &most.unlimited),
            open_loops: open_loops::open_loops(self, limits, &most.unlimited_agents),
            unpriced: most.unpriced,
            price_date: KnownModel::table_date().to_owned(),
            at_limit: limited.reached(&at_most),
            opening: most.opening,
            opening_pages: most.opening_pages,
            expects,
            expects_no_seals: most.sealing.is_empty(),
        })
    }

    /// Walks through the team in `case`, with what the caller attaches.
    fn walked<'a>(
        &'a self,
        builder: &AgentBuilder<'a>,
        limits: &Limits,
        (attached, page_tokens): (AttachedSize, u64),
        case: Case,
        computed: &mut Computed,
    ) -> Result<Walked> {
        let task = self.task.as_deref().unwrap_or_default().len() as u128;
        let mut walk = Walk::new(self, case, (limits.max_calls(), limits.turns), page_tokens, computed);
        walk.by_caller = attached.input(case.is_typical());
        let effect = walk.chat(builder, (&self.name, &self.chat), (task, 0), &[])?;
        let pages = walk.opening_pages;
        let of_pages = u128::from(pages) * u128::from(page_tokens);
        let opening = walk.opening.unwrap_or_default().saturating_sub(of_pages);
        Ok(Walked {
            sum: effect.sum,
            reach: Reach::of(self, &walk),
            is_typical: case.is_typical(),
            opening: u64::try_from(opening).unwrap_or(u64::MAX),
            opening_pages: pages,
            rows: walk.rows,
            unpriced: walk.unpriced,
            sealing: walk.sealing,
            unlimited: walk.unlimited,
            unlimited_agents: walk.unlimited_agents,
            has_people: walk.has_people,
        })
    }

    /// The MCP servers whose tools the team has, and `tools` does not.
    fn unknown_servers(&self, tools: &Catalog) -> Vec<String> {
        let is_unknown = |name: &&str| tools.tools(name, &Allowed::All).is_err();
        self.mcp_wanted().into_iter().filter(is_unknown).map(|name| format!("`{name}`")).collect()
    }

    /// The limit on model calls, and where there are more of them in what was `walked`.
    fn calls_in_words(&self, limits: &Limits, walked: &Walked) -> String {
        let (calls, mut by_chat) = (walked.sum.total.calls, BTreeMap::<&str, u128>::new());
        for ((chat, _), sum) in &walked.rows {
            let calls = by_chat.entry(chat).or_default();
            *calls = calls.saturating_add(sum.total.calls);
        }
        let limit = limits.max_calls();
        let what = match limits.calls {
            Some(_) => format!("the limit of {limit} model calls"),
            None => format!("the default limit of {limit} model calls"),
        };
        let longest = by_chat.into_iter().max_by_key(|(_, calls)| *calls);
        let Some((chat, most)) = longest.filter(|_| calls > limit.into()) else { return what };
        let line = self.line_of(chat).map(|line| format!(" (line {line})")).unwrap_or_default();
        match most {
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

    /// The assumptions in words: those of what was `walked`, without the tools of `unknown` servers.
    fn in_words(&self, walked: &Walked, unknown: &[String]) -> Vec<String> {
        let mut all = vec![format!(
            "a byte of a request counts as a token, and a token of a reply as {BYTES_PER_TOKEN} bytes when it is read again"
        )];
        if walked.has_people {
            all.push(format!("people write at most {PERSON} bytes in each message"));
        }
        if walked.sum.total.tools > 0 {
            all.push(format!(
                "a call of a tool costs what its `max_cost` declares, and a reply has one for each {CALL_TOKENS} of its tokens"
            ));
        }
        if !unknown.is_empty() {
            all.push(format!(
                "the tools of MCP servers that do not run ({}) count without their descriptions, and cost what the team file says",
                unknown.join(", ")
            ));
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
    /// Returns whether there is a bound on tokens.
    pub const fn is_finite(&self) -> bool {
        self.unbounded.is_empty()
    }

    /// Returns the bound of a run, with all retries, to be enforced by [`Log::bound`](polylogue::Log::bound). Tokens without a
    /// limit and models of unknown price have no bound.
    pub fn to_enforce(&self) -> RunBound {
        let most = &self.with_retries;
        // Models that cost nothing have nothing to enforce, and what tools cost is in no call.
        let cost = most.model_picodollars().filter(|cost| self.unpriced.is_empty() && *cost > 0);
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

    /// Returns the bound of `runs` runs.
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
