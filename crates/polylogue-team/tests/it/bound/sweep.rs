//! No model makes a run exceed its bound.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use polylogue::tools::memory::AnyMemory;
use polylogue::{Log, Status};
use polylogue_core::{BoundException, Money, RunBound, StopReason, TotalUsage};
use polylogue_store::Facts;
use polylogue_team::{BuildContext, Grant, Overrides, Team, TeamBound, load, parse};

use super::adversary::{Adversary, Behavior};

/// The answers that people give in one conversation.
const ANSWERS: usize = 400;

/// The bytes of each.
const ANSWER: usize = 4_000;

/// Runs `team` by `model`; people answer as much as a bound assumes. Returns what it used, and why it ended.
async fn run(
    team: &Team,
    model: Adversary,
    place: &Path,
    most: RunBound,
) -> (TotalUsage, Option<StopReason>) {
    let model = model.model();
    let memory = AnyMemory::new(Facts::open(place.join("facts.db")).unwrap());
    let context = BuildContext::at(place).grant(Grant::ALL).with_memory(memory);
    let chat =
        team.build_at(&|_| Ok(model.clone()), &context).unwrap_or_else(|e| panic!("{}: {e}", team.name));
    let mut log = Log::in_memory().limits(team.limits()).bound(most);
    let mut run = chat.run_in(&mut log, team.task.as_deref().unwrap_or("Begin")).await;
    for nth in 0..ANSWERS {
        let Ok(Status::Waiting(questions)) = run.as_ref().map(|run| &run.status) else { break };
        let (at, who) = (questions[0].0.clone(), questions[0].1.who.clone());
        let text = format!("{nth} {}", "x".repeat(ANSWER - 8));
        if log.answer(&at, &who, text.as_str()).await.is_err() && log.answer(&at, &who, "yes").await.is_err()
        {
            break;
        }
        run = chat.resume(&mut log).await;
    }
    let reason = match run.map(|run| run.status) {
        Ok(Status::Closed { reason, .. }) => Some(reason),
        _ => None,
    };
    (log.usage().await, reason)
}

/// The teams that ship, by name.
fn shipped() -> BTreeMap<String, Team> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../teams");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|is| is == "yaml"));
    let named = |path: PathBuf| {
        let mut team = load(&path, &Overrides::default()).unwrap_or_else(|e| panic!("{e}")).team;
        team.use_model("adversary:model");
        (path.file_stem().unwrap().to_string_lossy().into_owned(), team)
    };
    files.map(named).collect()
}

/// Chats of the patterns that no shipped team plays to the end.
const PATTERNS: [&str; 9] = [
    "participants: [A, B], max_turns: 9",
    "participants: [A, B], max_turns: 9, pattern: {group: {select: {model: {attempts: 2}}}}",
    "participants: [A, B], pattern: parallel, summary: {reflect: {}}",
    "participants: [A, B], max_turns: 7, pattern: {graph: {start: A, edges: {A: [{to: A, says: again}, {to: B, otherwise: true}]}}}",
    "participants: [A, B], pattern: {debate: {options: [x, y], rounds: 2, tie: {again: 2}}}",
    "participants: [B], pattern: {orchestrator: {planner: A, max_turns: 4, max_plans: 2}}",
    "participants: [A, B], pattern: {state_machine: {start: A, after: {A: [{when: turns < 5, then: B}, {then: end}], B: A}}}",
    "participants: [A, B], pattern: {dag: {B: A}}",
    "participants: [A, B], pattern: {role_play: {user: A, assistant: B, max_rounds: 4}}",
];

/// Agents of these.
const AGENTS: [&str; 5] = [
    "{name: A}, {name: B}",
    "{name: A, tools: [calculator], max_tool_rounds: 4}, {name: B, tools: [calculator], max_tool_rounds: 2}",
    "{name: A, output_schema: {type: object, required: [x], properties: {x: {type: integer}}}}, {name: B, view: {window: {messages: 3}}}",
    "{name: A, reasoning: {refine: {rounds: 2}}}, {name: B, reasoning: plan_and_solve}",
    "{name: A, agent_tools: [{who: B, description: Helps.}]}, {name: B, human_input: terminate}",
];

fn patterns() -> BTreeMap<String, Team> {
    let mut all = BTreeMap::new();
    for (nth, chat) in PATTERNS.iter().enumerate() {
        for (of, agents) in AGENTS.iter().enumerate() {
            let text = format!("{{name: t, model: 'a:b', task: hi, agents: [{agents}], chat: {{{chat}}}}}");
            // Some agents cannot take part in some patterns.
            if let Ok(read) = parse(&text, "t.yaml", &Overrides::default()) {
                all.insert(format!("pattern {nth} of agents {of}"), read.team);
            }
        }
    }
    assert!(all.len() >= 43, "{}", all.len());
    all
}

/// Teams whose conversations take seconds, or run programs: they are only played with `POLYLOGUE_SEEDS`.
const LONG: [&str; 12] = [
    "arithmetic-nested",
    "caller-executor",
    "chess",
    "coder-critic-executor",
    "continual-learning",
    "data-stream",
    "data-visualizer",
    "human-feedback-code",
    "nested-chess",
    "projection",
    "spare-parts",
    "year-to-date",
];

/// The highest shares of the bound that a run reached, in percent: calls, tokens, money.
type Shares = [u64; 3];

fn shares(used: &TotalUsage, bound: &TeamBound) -> Shares {
    let of =
        |used: u64, most: Option<u64>| most.map_or(0, |most| used.saturating_mul(100).div_ceil(most.max(1)));
    let cost = bound.at_most.picodollars().and_then(|cost| u64::try_from(cost).ok());
    [
        of(used.counted_calls(), bound.at_most.calls()),
        of(used.counted_tokens(), bound.at_most.tokens()),
        of(used.counted_cost().picodollars, cost),
    ]
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// The models of one team, the `nth`: with `POLYLOGUE_SEEDS`, every behavior and random ones from so many seeds; else one
/// behavior, another one for each team, with short replies.
fn models(nth: usize, window: Option<u64>) -> Vec<Adversary> {
    let model = |behavior, seed| Adversary { window, ..Adversary::new(behavior, seed) };
    let Some(seeds) = setting("POLYLOGUE_SEEDS") else {
        let behavior = Behavior::ALL[nth % Behavior::ALL.len()];
        return vec![Adversary { output: 48, ..model(behavior, nth as u64) }];
    };
    let first = setting("POLYLOGUE_SEED").unwrap_or(1);
    let random = (first..first + seeds).map(|seed| model(Behavior::Any, seed));
    Behavior::ALL.into_iter().map(|behavior| model(behavior, 0)).chain(random).collect()
}

/// What was found of one team.
#[derive(Default)]
struct Found {
    highest: Shares,
    played: u64,
    flaws: Vec<String>,
}

async fn play(name: &str, team: &Team, models: Vec<Adversary>, place: &Path) -> Found {
    let mut found = Found::default();
    for model in models {
        let priced = model.model();
        let bound = team.bound(&|_| Ok(priced.clone()), &team.limits()).unwrap();
        let (used, reason) = run(team, model, place, bound.to_enforce()).await;
        found.played += 1;
        let reached = shares(&used, &bound);
        let is_stopped = matches!(reason, Some(StopReason::Bound { .. }));
        if is_stopped || reached.iter().any(|share| *share > 100) {
            let most = bound.at_most;
            found.flaws.push(format!("{name}, {model:?}: {reached:?} of {most:?}, {used:?}, {reason:?}"));
        }
        found.highest = [0, 1, 2].map(|at| found.highest[at].max(reached[at]));
    }
    found
}

/// Plays teams, and prints the highest shares, which are the tightness of the bounds. `POLYLOGUE_TEAM` plays one alone.
async fn sweep(teams: BTreeMap<String, Team>, windows: &[Option<u64>]) {
    let only = std::env::var("POLYLOGUE_TEAM").ok();
    let place = tempfile::tempdir().unwrap();
    let (mut flaws, mut played, mut half, mut count) = (Vec::new(), 0_u64, 0, 0);
    let is_wanted = |name: &String| match &only {
        Some(only) => only == name,
        None => setting("POLYLOGUE_SEEDS").is_some() || !LONG.contains(&name.as_str()),
    };
    for (nth, (name, team)) in teams.into_iter().filter(|(name, _)| is_wanted(name)).enumerate() {
        let all = match setting("POLYLOGUE_SEEDS") {
            Some(_) => windows.iter().flat_map(|window| models(nth, *window)).collect(),
            None => models(nth, windows[nth / Behavior::ALL.len() % windows.len()]),
        };
        let found = play(&name, &team, all, place.path()).await;
        let [calls, tokens, money] = found.highest;
        println!("{name:30} calls {calls:3} %  tokens {tokens:3} %  money {money:3} %");
        played += found.played;
        count += 1;
        half += u64::from(money >= 50);
        flaws.extend(found.flaws);
    }
    println!("{played} conversations of {count} teams; {half} reach half of their bound");
    assert!(flaws.is_empty(), "{}", flaws.join("\n"));
    assert!(played > 0, "no team is played");
}

#[tokio::test(start_paused = true)]
async fn no_model_makes_a_shipped_team_exceed_its_bound() {
    sweep(shipped(), &[None, Some(20_000)]).await;
}

#[tokio::test(start_paused = true)]
async fn no_model_makes_a_pattern_exceed_its_bound() {
    sweep(patterns(), &[None, Some(10_000)]).await;
}

/// The bounds of a broken analysis: a run ends before it exceeds them, and says which quantity it was.
#[tokio::test(start_paused = true)]
async fn a_run_stops_at_a_bound_that_is_too_low() {
    let place = tempfile::tempdir().unwrap();
    for (name, team) in patterns().into_iter().step_by(5) {
        let model = Adversary { output: 48, ..Adversary::new(Behavior::Worst, 0) };
        let (whole, _) = run(&team, model, place.path(), RunBound::default()).await;
        let half = whole.counted_cost().picodollars / 2;
        let (calls, tokens) = (whole.counted_calls() / 2, whole.counted_tokens() / 2);
        let none = RunBound::default();
        for most in [
            RunBound { calls: Some(calls), ..none },
            RunBound { tokens: Some(tokens), ..none },
            RunBound { cost: Some(Money { picodollars: half }), ..none },
        ] {
            let (used, reason) = run(&team, model, place.path(), most).await;
            assert!(matches!(reason, Some(StopReason::Bound { .. })), "{name}: {reason:?} with {most:?}");
            assert!(most.calls.is_none_or(|most| used.counted_calls() <= most), "{name}: {used:?}");
            assert!(most.tokens.is_none_or(|most| used.counted_tokens() <= most), "{name}: {used:?}");
            assert!(most.cost.is_none_or(|most| used.counted_cost() <= most), "{name}: {used:?}");
        }
    }
}

/// A person writes more than a bound assumes: from then on it does not apply, and until then it does.
#[tokio::test(start_paused = true)]
async fn what_a_bound_does_not_rest_on_ends_its_enforcement() {
    let text = "{name: t, model: 'a:b', task: hi, agents: [{name: A, parameters: {max_tokens: 9}}, {name: P, human: true}], \
                chat: {participants: [A, P], max_turns: 4}}";
    let read = parse(text, "t.yaml", &Overrides::default()).unwrap();
    let model = Adversary::new(Behavior::Longest, 0).model();
    let chat = read.team.build_at(&|_| Ok(model.clone()), &BuildContext::none()).unwrap();
    for (bytes, exception, calls) in [(4_000, None, 1), (4_001, Some(BoundException::LongAnswer), 2)] {
        let mut log = Log::in_memory().bound(RunBound { calls: Some(1), ..RunBound::default() });
        let mut run = chat.run_in(&mut log, "hi").await.unwrap();
        while let Status::Waiting(questions) = &run.status {
            let (at, who) = (questions[0].0.clone(), questions[0].1.who.clone());
            log.answer(&at, &who, "x".repeat(bytes).as_str()).await.unwrap();
            run = chat.resume(&mut log).await.unwrap();
        }
        assert_eq!(log.bound_exception().await, exception, "{bytes} bytes");
        assert_eq!(log.usage().await.counted_calls(), calls, "{bytes} bytes");
    }
}
