//! No model makes a run exceed its bound: seeded conversations of all teams, and how much of their bounds the worst ones reach.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use polylogue::Log;
use polylogue_core::{BoundException, Money, RunBound, Status, StopReason};
use polylogue_team::{BuildContext, Overrides, Team, load, parse};

use super::adversary::{Adversary, Behavior, FAILS};
use super::reasons::misfit;
use super::stage::{OPEN, Played, Setting, Stage};

/// Conversations of a sweep, unless `POLYLOGUE_CONVERSATIONS` says how many.
const CONVERSATIONS: u64 = 20_000;

/// The window of models with one.
const WINDOW: u64 = 20_000;

/// The teams that ship, by name.
pub(super) fn shipped() -> BTreeMap<String, Team> {
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
const PATTERNS: [&str; 20] = [
    "participants: [A, B], max_turns: 9",
    "participants: [A, B], max_turns: 9, pattern: {group: {select: {model: {attempts: 2}}}}",
    "participants: [A, B], pattern: parallel, summary: {reflect: {}}",
    "participants: [A, B], max_turns: 7, pattern: {graph: {start: A, edges: {A: [{to: A, says: again}, {to: B, otherwise: true}]}}}",
    "participants: [A, B], pattern: {debate: {options: [x, y], rounds: 2, tie: {again: 2}}}",
    "participants: [B], pattern: {orchestrator: {planner: A, max_turns: 4, max_plans: 2}}",
    "participants: [A, B], pattern: {state_machine: {start: A, after: {A: [{when: turns < 5, then: B}, {then: end}], B: A}}}",
    "participants: [A, B], pattern: {dag: {B: A}}",
    "participants: [A, B], pattern: {role_play: {user: A, assistant: B, max_rounds: 4}}",
    "participants: [A, B], pattern: sequential",
    "participants: [A, B], max_turns: 8, background: {participants: [B]}",
    "participants: [A, B], pattern: {graph: {start: A, edges: {A: B}}}, background: {participants: [A]}, summary: {reflect: {}}",
    "participants: [A, B], max_turns: 6, pattern: {group: {select: {model: {}}}}, background: {participants: [A, B]}",
    "participants: [A, B], pattern: {tasks: [{who: A, prompt: Begin.}, {who: B, prompt: End.}]}",
    "participants: [A, B, C], max_turns: 8, summary: {reflect: {}}",
    "participants: [A, B], max_turns: 3, opening: {from: A, text: hello}",
    "participants: [A, B, C], max_turns: 5, opening: [{from: C, text: LONG}, {from: B, text: 'On {{task}}', to: A}], pattern: {group: {select: round_robin}}",
    "participants: [A, B, C], stop: {max_turns: 2}, pattern: {graph: {start: A, edges: {A: [{to: B, says: zzzz}, {to: C, otherwise: true}]}}}",
    "participants: [A, B, C], pattern: {graph: {start: A, edges: {A: B, B: [{to: A, when: turns < 6, max_uses: 2}, \
     {to: B, when: turns < 8, max_uses: 3}, {to: C, otherwise: true}]}}}",
    "participants: [A, B], pattern: {graph: {start: A, edges: {A: [{to: B, when: turns > 3}, {to: A, otherwise: true, max_uses: 4}]}}}",
];

/// Chats with chats within them.
const CHATS: [&str; 3] = [
    "chats: [{name: work, task: 'Of {{task}}', carryover: {context: [LONG, 'On {{task}}']}, participants: [A, B], max_turns: 4}], \
     chat: {participants: [work], pattern: sequential}",
    "chats: [{name: talk, task_from: task, continues: self, opening: [], participants: [A, B], max_turns: 3}], \
     chat: {participants: [talk, B], max_turns: 5}",
    "chats: [{name: aid, pattern: sequential, participants: [B, C]}], chat: {participants: [A], max_turns: 3}",
];

/// What stands for a long text in the teams.
const LONG: &str = "LONG";

/// Agents of these.
const AGENTS: [&str; 19] = [
    "{name: A}, {name: B}",
    "{name: A, tools: [calculator], max_tool_rounds: 4}, {name: B, tools: [calculator], max_tool_rounds: 2}",
    "{name: A, output_schema: {type: object, required: [x], properties: {x: {type: integer}}}}, {name: B, view: {window: {messages: 3}}}",
    "{name: A, reasoning: {refine: {rounds: 2}}}, {name: B, reasoning: plan_and_solve}",
    "{name: A, agent_tools: [{who: B, description: Helps.}]}, {name: B, human_input: terminate}",
    "{name: A, compaction: {at: {tokens: 300}}}, {name: B, compaction: {at: {messages: 4}, by: A}, parameters: {max_tokens: 20}}",
    "{name: A, tool_calling: text, tools: [calculator]}, {name: B, tool_calling: text, tools: [calculator, high_low], max_tool_rounds: 2, tool_history: full}",
    "{name: A, tool_calling: schema, tools: [calculator], max_tool_rounds: 2}, {name: B, tool_calling: text, output_schema: {type: object, required: [x], properties: {x: {type: string}}}}",
    "{name: A, system: 'Of {{task}}', compaction: {at: {messages: 4}, model: 'a:b', target: 0.9}}, {name: B, compaction: false}",
    "{name: A, agent_tools: [{who: B, description: Helps., max_calls: 1}], max_tool_rounds: 1, tool_limits: {max_output_bytes: 200}, parameters: {max_tokens: 48}}, \
     {name: B, system: 'Of {{task}}', tools: [calculator], max_tool_rounds: 2}, {name: C}",
    "{name: A, reasoning: {best: {critic: C, options: 2, retries: 1}}}, {name: B, view: {window: {messages: 1}}, reasoning: {best: {critic: C, options: 2}}}, \
     {name: C, system: 'Of {{task}}'}",
    "{name: A, reasoning: {refine: {rounds: 1, critic: C}}}, {name: B, reasoning: rewoo, tools: [calculator]}, \
     {name: C, agent_tools: [{who: B, description: Helps., max_calls: 1}], max_tool_rounds: 1}",
    "{name: A, reasoning: {react: {rounds: 1, summarize: true}}, tools: [calculator]}, {name: B, view: {window: {messages: 2}, names: always, prefix: {A: LONG}}}, \
     {name: C, view: {prefix: {B: LONG, user: LONG}}}",
    "{name: A}, {name: B, human: true}, {name: C}",
    "{name: A, human: true}, {name: B, parameters: {max_tokens: 9}}, {name: C, tools: [calculator], max_tool_rounds: 1}",
    "{name: A, agent_tools: [{who: aid, description: Helps., max_calls: 2}], max_tool_rounds: 1}, {name: B}, {name: C}",
    "{name: A, tools: [{mcp: x}], tool_search: {above: 5}, tool_limits: {max_output_bytes: 100}, max_tool_rounds: 3}, \
     {name: B, tools: [{mcp: x}], tool_search: {above: 5}, tool_calling: text, tool_limits: {max_output_bytes: 300}, max_tool_rounds: 1}, {name: C}",
    "{name: A, tools: [{mcp: x, include: [buy, find1]}], tool_limits: {max_output_bytes: 600}, max_tool_rounds: 2}, \
     {name: B, tools: [{mcp: x, include: [find2], max_cost: 0.000000002}], tool_limits: {max_output_bytes: 200}, reasoning: rewoo}, {name: C}",
    "{name: A, limits: {calls: 3}}, {name: B, limits: {calls: 2}, tools: [calculator], max_tool_rounds: 1}, {name: C}",
];

/// The server whose tools some of them have.
const SERVER: &str = ", mcp: {x: {command: described}}";

pub(super) fn patterns() -> BTreeMap<String, Team> {
    let chats = PATTERNS.iter().map(|chat| format!("chat: {{{chat}}}"));
    let chats: Vec<String> = chats.chain(CHATS.map(str::to_owned)).collect();
    let mut all = BTreeMap::new();
    for (nth, chat) in chats.iter().enumerate() {
        for (of, agents) in AGENTS.iter().enumerate() {
            // Which of several chats ends at the limit of an agent is not checked.
            if agents.contains("limits: {calls") && CHATS.contains(&chat.as_str()) {
                continue;
            }
            let server = if agents.contains("mcp: x") { SERVER } else { "" };
            let text = format!("{{name: t, model: 'a:b', task: hi, agents: [{agents}], {chat}{server}}}");
            let text = text.replace(LONG, &"word ".repeat(300));
            // Some agents cannot take part in some patterns.
            if let Ok(read) = parse(&text, "t.yaml", &Overrides::default()) {
                all.insert(format!("pattern {nth} of agents {of}"), read.team);
            }
        }
    }
    let has = |part: &str| all.keys().any(|name| name.starts_with(part) || name.ends_with(part));
    let unused = (0..chats.len()).map(|nth| format!("pattern {nth} of ")).find(|part| !has(part));
    let unused = unused.or((0..AGENTS.len()).map(|of| format!(" of agents {of}")).find(|part| !has(part)));
    assert_eq!(unused, None, "each is in a team");
    all
}

/// Teams that run programs, which take longer than all models together: the sweep plays one of them in [`RARE`] conversations.
const PROGRAMS: [&str; 6] = [
    "caller-executor", "coder-critic-executor", "data-visualizer", "human-feedback-code", "projection",
    "year-to-date",
];

/// In how many conversations there is one that takes long: a team that runs programs, or no limit on calls but that of the team.
const RARE: u64 = 1_000;

pub(super) fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// A number that depends on all bits of `seed`.
fn mixed(seed: u64) -> u64 {
    let mut state = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

/// What is played in the conversation `seed`.
fn drawn(seed: u64) -> (Adversary, Setting) {
    let mut state = mixed(seed);
    let mut below = |count: usize| {
        state = mixed(state);
        usize::try_from(state % count as u64).unwrap()
    };
    let behavior = match below(400) {
        0 => Behavior::Huge,
        _ => Behavior::ALL[below(Behavior::ALL.len())],
    };
    let window = [None, Some(WINDOW)][below(2)];
    // Nearly all are short, so that there are many.
    let calls = if below(200) == 0 { 40 } else { [2, 5][below(2)] };
    let calls = (!mixed(seed).is_multiple_of(4 * RARE)).then_some(calls);
    let exit = [None, None, Some(0), Some(3)][below(4)];
    // As often as endpoints send a request again, and less often.
    let fails = if below(16) == 0 { 1 + below(4) as u64 } else { 0 };
    (
        Adversary { output: 48, window, fails, ..Adversary::new(behavior, seed) },
        Setting { window, calls, exit },
    )
}

/// Why `played` is not as the bound of its team says.
pub(super) fn flaw(played: &Played, behavior: Behavior) -> Option<String> {
    if let Some(untrue) = &played.untrue {
        return Some(untrue.clone());
    }
    let reason = match &played.end {
        Err(error) => return Some(format!("it failed: {error}")),
        Ok(Status::Waiting(_)) if played.asks => return None,
        Ok(Status::Closed { reason, .. }) => reason,
        Ok(status) => return Some(format!("it did not end: {status:?}")),
    };
    let huge = behavior == Behavior::Huge && played.exception == Some(BoundException::LongReply);
    let is_wrong = match reason {
        StopReason::Bound { .. } => true,
        StopReason::Calls { limit } => played.max_calls != *limit || played.used.counted_calls() != *limit,
        StopReason::NoOutput { .. } => played.has_output,
        // Turns of nested chats count, too.
        StopReason::Turns { limit, next } => played.turns.saturating_add(next.unwrap_or(1)) <= *limit,
        StopReason::Tokens { limit, used, next, .. } => {
            *used != played.used.counted_tokens() || used.saturating_add(next.unwrap_or(1)) <= *limit
        }
        StopReason::Cost { limit, spent, next, .. } => {
            *spent != played.used.counted_cost()
                || *spent < *limit && *spent + next.unwrap_or_default() <= *limit
        }
        // No one stops it from outside, and all prices are known.
        StopReason::Stopped { .. } | StopReason::UnknownPrice { .. } => true,
        // They are checked by the log.
        _ => false,
    };
    if let Some(what) = misfit(behavior, reason, played.others) {
        return Some(what);
    }
    let is_over = played.shares.iter().any(|share| *share > 100) && !huge;
    let (shares, exception) = (played.shares, played.exception);
    (is_wrong || is_over || (exception.is_some() && !huge))
        .then(|| format!("{shares:?} %, {:?}, ends with {reason:?}, {exception:?}", played.used))
}

/// The tests among which the seeds are divided, so that they run at the same time.
const PARTS: u64 = 4;

/// Plays one conversation for each seed of a part, in turn with each team. `POLYLOGUE_CONVERSATIONS` sets how many all parts play,
/// `POLYLOGUE_SEED` the first seed, `POLYLOGUE_TEAM` the only team.
async fn play_seeds(part: u64) {
    let first = setting("POLYLOGUE_SEED").unwrap_or(1);
    let last = first + setting("POLYLOGUE_CONVERSATIONS").unwrap_or(CONVERSATIONS);
    let seeds: Vec<u64> = (first..last).filter(|seed| seed % PARTS == part).collect();
    let only = std::env::var("POLYLOGUE_TEAM").ok();
    let place = tempfile::tempdir().unwrap();
    let teams = shipped().into_iter().chain(patterns());
    let teams = teams.filter(|(name, _)| only.as_ref().is_none_or(|only| only == name));
    let stages = teams.map(|(name, team)| Stage::new(name, team, place.path()));
    let is_slow = |stage: &Stage| only.is_none() && PROGRAMS.contains(&stage.name.as_str());
    let (mut slow, mut quick): (Vec<Stage>, Vec<Stage>) = stages.partition(is_slow);
    assert!(!quick.is_empty(), "no such team");
    let count = slow.len() + quick.len();
    let (mut flaws, mut reasons) = (Vec::new(), BTreeMap::<String, u64>::new());
    for &seed in &seeds {
        let runs_programs = !slow.is_empty() && mixed(seed ^ RARE).is_multiple_of(RARE);
        let stages = if runs_programs { &mut slow } else { &mut quick };
        let at = usize::try_from(seed % stages.len() as u64).unwrap();
        let (model, setting) = drawn(seed);
        let played = stages[at].play(model, setting).await;
        if let Some(flaw) = flaw(&played, model.behavior) {
            flaws.push(format!(
                "POLYLOGUE_TEAM={:?} POLYLOGUE_SEED={seed}, {model:?}: {flaw}",
                stages[at].name
            ));
        }
        *reasons.entry(played.code()).or_default() += 1;
    }
    let of = format!("{} of the seeds {first} to {}", seeds.len(), last - 1);
    println!("{of}: as many conversations of {count} teams");
    for (reason, count) in reasons {
        println!("{count:9} {reason}");
    }
    assert!(flaws.is_empty(), "{} flaws:\n{}", flaws.len(), flaws[..flaws.len().min(20)].join("\n"));
}

/// Conversations of the sweep without a low limit on calls, unless `POLYLOGUE_WHOLE` says how many.
const WHOLE: u64 = 400;

/// The limit on calls of these.
const MANY_CALLS: u64 = 60;

/// Conversations of which most end by themselves, and not by the limit on calls: every team in turn, with one behavior after the other.
#[tokio::test(start_paused = true)]
async fn whole_conversations_end_for_true_reasons() {
    let place = tempfile::tempdir().unwrap();
    let teams = shipped().into_iter().chain(patterns());
    let teams = teams.filter(|(name, _)| !PROGRAMS.contains(&name.as_str()));
    let mut stages: Vec<Stage> = teams.map(|(name, team)| Stage::new(name, team, place.path())).collect();
    let (mut flaws, mut reasons) = (Vec::new(), BTreeMap::<String, u64>::new());
    let first = setting("POLYLOGUE_SEED").unwrap_or(1);
    for seed in first..first + setting("POLYLOGUE_WHOLE").unwrap_or(WHOLE) {
        let at = usize::try_from(seed % stages.len() as u64).unwrap();
        let nth = usize::try_from(mixed(seed) % Behavior::ALL.len() as u64).unwrap();
        let fails = if mixed(!seed).is_multiple_of(16) { FAILS } else { 0 };
        let model = Adversary { output: 48, fails, ..Adversary::new(Behavior::ALL[nth], seed) };
        let setting = Setting { calls: Some(MANY_CALLS), ..OPEN };
        let played = stages[at].play(model, setting).await;
        let flaw = flaw(&played, model.behavior);
        flaws
            .extend(flaw.map(|flaw| format!("{} POLYLOGUE_SEED={seed}, {model:?}: {flaw}", stages[at].name)));
        *reasons.entry(played.code()).or_default() += 1;
    }
    println!("{reasons:#?}");
    let cut = reasons.get("calls").copied().unwrap_or_default();
    assert!(cut * 2 < reasons.values().sum(), "most end by the limit on calls");
    assert!(flaws.is_empty(), "{} flaws:\n{}", flaws.len(), flaws[..flaws.len().min(20)].join("\n"));
}

#[tokio::test(start_paused = true)]
async fn seeded_conversations_end_within_their_bounds() {
    play_seeds(0).await;
}

#[tokio::test(start_paused = true)]
async fn seeded_conversations_end_within_their_bounds_second_part() {
    play_seeds(1).await;
}

#[tokio::test(start_paused = true)]
async fn seeded_conversations_end_within_their_bounds_third_part() {
    play_seeds(2).await;
}

#[tokio::test(start_paused = true)]
async fn seeded_conversations_end_within_their_bounds_fourth_part() {
    play_seeds(3).await;
}

/// The bounds of a broken analysis: a run ends before it exceeds them, and says which quantity it was.
#[tokio::test(start_paused = true)]
async fn a_run_stops_at_a_bound_that_is_too_low() {
    let place = tempfile::tempdir().unwrap();
    let limited = AGENTS.iter().position(|agents| agents.contains("limits: {calls")).unwrap();
    let limited = format!(" of agents {limited}");
    // What tools cost is in no bound that is enforced, and agents with limits of their own end before.
    let is_meant = |(name, team): &(String, Team)| team.mcp_wanted().is_empty() && !name.ends_with(&limited);
    for (name, team) in patterns().into_iter().filter(is_meant).step_by(5) {
        let mut stage = Stage::new(name, team, place.path());
        let model = Adversary { output: 48, ..Adversary::new(Behavior::Worst, 0) };
        let whole = stage.play_within(model, RunBound::default()).await.used;
        // Half would do for some: their last replies are shortened to what is left, and they end at their own limits.
        let third = whole.counted_cost().picodollars / 3;
        let (calls, tokens) = (whole.counted_calls() / 3, whole.counted_tokens() / 3);
        let none = RunBound::default();
        for most in [
            RunBound { calls: Some(calls), ..none },
            RunBound { tokens: Some(tokens), ..none },
            RunBound { cost: Some(Money { picodollars: third }), ..none },
        ] {
            let Played { used, end, .. } = stage.play_within(model, most).await;
            let name = &stage.name;
            assert!(
                matches!(&end, Ok(Status::Closed { reason: StopReason::Bound { .. }, .. })),
                "{name}: {end:?} with {most:?}"
            );
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
