//! A team that is built once, and plays many conversations with models that behave badly.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use polylogue::tools::memory::AnyMemory;
use polylogue::{AnyModel, Chat, Limits, Log};
use polylogue_core::{
    AnyTool, Audience, Body, BoundException, ChargeReason, RunBound, Status, Tool, ToolCx, ToolError,
    ToolResult, ToolSpec, TotalUsage,
};
use polylogue_mcp::{Catalog, Servers};
use polylogue_models::{Fallback, model_names};
use polylogue_store::Facts;
use polylogue_team::{Amount, AttachedSize, BuildContext, Grant, Team, TeamBound};
use serde_json::{Value, json};

use super::adversary::{Adversary, Broken, Switched};
use super::reasons::{Others, untrue};

/// The answers that people give in one conversation.
const ANSWERS: usize = 400;

/// The bytes of each.
const ANSWER: usize = 4_000;

/// A tool that returns as much as the one within it may. No two results are alike, so that they are no loop.
struct LoudTool(AnyTool);

impl Tool for LoudTool {
    fn spec(&self) -> &ToolSpec {
        self.0.spec()
    }

    async fn call(&self, _: Value, cx: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        static NTH: AtomicU64 = AtomicU64::new(0);
        let begin = format!("{} {} ", cx.id, NTH.fetch_add(1, Ordering::Relaxed));
        let most = self.spec().max_bytes;
        let rest = most.saturating_sub(begin.len());
        Ok(ToolResult::done((begin + &"x".repeat(rest)).get(..most).unwrap_or_default()))
    }
}

/// On what a bound rests besides the team and the length of replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Setting {
    pub(super) window: Option<u64>,
    /// The limit on model calls; that of the team without one.
    pub(super) calls: Option<u64>,
    /// After how many answers people say `exit`; never without one.
    pub(super) exit: Option<usize>,
}

/// No more limits than those of the team, and people who stay.
pub(super) const OPEN: Setting = Setting { window: None, calls: None, exit: None };

pub(super) struct Stage {
    pub(super) name: String,
    team: Team,
    chat: Chat,
    model: Switched,
    tools: Catalog,
    bounds: BTreeMap<(Setting, u64), TeamBound>,
}

/// A conversation that was played.
pub(super) struct Played {
    pub(super) used: TotalUsage,
    pub(super) end: Result<Status, String>,
    pub(super) exception: Option<BoundException>,
    /// The shares of the bound that it reached, in percent: calls, tokens, money.
    pub(super) shares: [u64; 3],
    /// That bound: calls, tokens, money.
    pub(super) most: [u64; 3],
    /// Whether people are asked.
    pub(super) asks: bool,
    /// Whether a participant said anything.
    pub(super) has_output: bool,
    /// The limit on model calls.
    pub(super) max_calls: u64,
    /// The turns of all chats.
    pub(super) turns: u64,
    /// Which stop reason of its log is not true, if one is not.
    pub(super) untrue: Option<String>,
    /// What else spoke than models.
    pub(super) others: Others,
    /// Whether requests were sent again: the bound with all retries applies then.
    retried: bool,
}

impl Played {
    /// The code of the reason for its end.
    pub(super) fn code(&self) -> String {
        match &self.end {
            Ok(Status::Closed { reason, .. }) => reason.code().to_owned(),
            Ok(_) => "(waits for a person)".to_owned(),
            Err(_) => "(failed)".to_owned(),
        }
    }
}

impl Stage {
    /// `team`, with files in `place`.
    pub(super) fn new(name: String, team: Team, place: &Path) -> Self {
        Self::with(name, team, place, |context| context)
    }

    /// The same with tools that do nothing and return as much as they may, as those of a server can.
    pub(super) fn with_loud_tools(name: String, team: Team, place: &Path) -> Self {
        Self::with(name, team, place, loud)
    }

    fn with(name: String, team: Team, place: &Path, and: impl Fn(BuildContext) -> BuildContext) -> Self {
        let model = Switched::default();
        let facts = place.join(format!("{name}.db"));
        let memory = AnyMemory::new(Facts::open(facts).unwrap());
        let tools = served(&team);
        let context = BuildContext::at(place).grant(Grant::ALL).with_memory(memory).with_tools(tools.clone());
        let context = if is_described(&team) { loud(and(context)) } else { and(context) };
        let provide = |names: &str| Ok(provided(&model, names));
        let chat = team.build_at(&provide, &context).unwrap_or_else(|e| panic!("{name}: {e}"));
        Self { name, team, chat, model, tools, bounds: BTreeMap::new() }
    }

    fn limits(&self, setting: Setting) -> Limits {
        let limits = self.team.limits();
        Limits { calls: setting.calls.or(limits.calls), ..limits }
    }

    fn bound(&mut self, setting: Setting, output: u64) -> TeamBound {
        let limits = self.limits(setting);
        let (team, model) = (&self.team, &self.model);
        let provide = |names: &str| Ok(provided(model, names));
        let of = || team.bound_with(&provide, &limits, self.tools.clone(), AttachedSize::default()).unwrap();
        // No bound rests on when people leave.
        let setting = Setting { exit: None, ..setting };
        self.bounds.entry((setting, output)).or_insert_with(of).clone()
    }

    /// Plays a conversation within its bound.
    pub(super) async fn play(&mut self, adversary: Adversary, setting: Setting) -> Played {
        self.model.play(adversary);
        let bound = self.bound(setting, adversary.output);
        let played = self.run(self.limits(setting), bound.to_enforce(), setting.exit).await;
        let bound = if played.retried { bound.with_retries } else { bound.at_most };
        let most = [bound.calls(), bound.tokens(), cost_of(&bound)].map(Option::unwrap_or_default);
        Played { shares: shares(&played.used, &bound), most, ..played }
    }

    /// Plays a conversation within another bound.
    pub(super) async fn play_within(&mut self, adversary: Adversary, most: RunBound) -> Played {
        self.model.play(adversary);
        self.run(self.team.limits(), most, None).await
    }

    /// People answer as much as a bound assumes, and leave after `exit` answers.
    async fn run(&self, limits: Limits, most: RunBound, exit: Option<usize>) -> Played {
        let log = Log::in_memory().limits(limits).agent_limits(self.team.agent_limits());
        let mut log = log.bound(most);
        let mut run = self.chat.run_in(&mut log, self.team.task.as_deref().unwrap_or("Begin")).await;
        let mut asks = false;
        for nth in 0..ANSWERS {
            let Ok(Status::Waiting(questions)) = run.as_ref().map(|run| &run.status) else { break };
            asks = true;
            let (at, who) = (questions[0].0.clone(), questions[0].1.who.clone());
            let text = match exit.is_some_and(|exit| nth >= exit) {
                true => "exit".to_owned(),
                false => format!("{nth} {}", "x".repeat(ANSWER - 8)),
            };
            if log.answer(&at, &who, text.as_str()).await.is_err()
                && log.answer(&at, &who, "yes").await.is_err()
            {
                break;
            }
            run = self.chat.resume(&mut log).await;
        }
        // What selectors and voters say is private.
        let says = |body: &Body| match body {
            Body::Message(message) => message.to == Audience::All && !message.text().trim().is_empty(),
            _ => false,
        };
        let events = log.events().await;
        let is_failed =
            |body: &Body| matches!(body, Body::Charged(charge) if charge.why == ChargeReason::Failed);
        Played {
            retried: events.iter().any(|event| is_failed(&event.body)),
            untrue: untrue(&self.team, &events),
            others: Others::of(&self.team, &events),
            used: log.usage().await,
            end: run.map(|run| run.status).map_err(|error| error.to_string()),
            exception: log.bound_exception().await,
            shares: [0; 3],
            most: [0; 3],
            max_calls: limits.max_calls(),
            turns: log.turns().await,
            asks,
            has_output: events.iter().any(|event| event.chat.is_root() && says(&event.body)),
        }
    }
}

/// All tools are loud.
fn loud(context: BuildContext) -> BuildContext {
    context.wrapping_tools(|tool| AnyTool::new(LoudTool(tool)))
}

/// Whether the MCP server of `team` is none, and its tools are [`described`].
fn is_described(team: &Team) -> bool {
    team.mcp_declared().values().any(|server| server.command.as_deref() == Some("described"))
}

/// Tools as a server could describe them: long, and one that costs a billionth of a dollar.
fn described() -> Catalog {
    let about = format!("Finds the number of words. {}", "word ".repeat(60));
    let parameters = json!({"type": "object", "properties": {"words": {"type": "string"}}});
    let tool = |name: String, cost: Value| {
        let spec = json!({"name": format!("x_{name}"), "description": about, "parameters": parameters, "max_cost": cost});
        serde_json::from_value(json!({"server": "x", "tool": name, "spec": spec})).unwrap()
    };
    let free = (0..11).map(|nth| tool(format!("find{nth}"), Value::Null));
    Catalog::of_described(free.chain([tool("buy".to_owned(), json!(1_000))]))
}

/// The tools of the MCP servers of `team`, as the servers describe them. The servers do not run any more.
fn served(team: &Team) -> Catalog {
    if is_described(team) {
        return described();
    }
    let names: Vec<String> = team.mcp_wanted().into_iter().map(str::to_owned).collect();
    if names.is_empty() {
        return Catalog::default();
    }
    let servers = Servers::from_json(&team.mcp_document().to_string()).unwrap();
    // The clock of a test does not wait for a process.
    let list = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let catalog = runtime.block_on(servers.catalog(names.iter().map(String::as_str))).unwrap();
        catalog.described()
    };
    Catalog::of_described(std::thread::spawn(list).join().unwrap())
}

/// The model called `names`: of several, the first one always fails.
fn provided(model: &Switched, names: &str) -> AnyModel {
    match model_names(names).count() {
        0 | 1 => AnyModel::new(model.clone()),
        _ => Fallback::new([AnyModel::new(Broken(model.clone())), AnyModel::new(model.clone())]).into(),
    }
}

fn cost_of(bound: &Amount) -> Option<u64> {
    bound.picodollars().and_then(|cost| u64::try_from(cost).ok())
}

fn shares(used: &TotalUsage, bound: &Amount) -> [u64; 3] {
    let of =
        |used: u64, most: Option<u64>| most.map_or(0, |most| used.saturating_mul(100).div_ceil(most.max(1)));
    [
        of(used.counted_calls(), bound.calls()),
        of(used.counted_tokens(), bound.tokens()),
        of(used.counted_cost().picodollars, cost_of(bound)),
    ]
}
