//! How much of its bound the worst run of each shipped team reaches.

use std::sync::Mutex;

use polylogue_team::{Agent, Team, ToolEntry};

use super::adversary::{Adversary, Behavior};
use super::stage::{OPEN, Played, Stage};
use super::sweep::{flaw, setting, shipped};

/// The behaviors that reach most of a bound.
const EXPENSIVE: [Behavior; 8] = [
    Behavior::Worst,
    Behavior::Waiting,
    Behavior::Mistaken,
    Behavior::Longest,
    Behavior::Sparse,
    Behavior::Coder,
    Behavior::EndlessCalls,
    Behavior::NeverDone,
];

/// Prints the bound of each shipped team, its worst run, and what share of the bound that is, which is the tightness of the bounds.
/// `POLYLOGUE_SEEDS` adds so many random models; without it, teams that run programs or take seconds are left out.
#[test]
fn tightness() {
    let seeds = setting("POLYLOGUE_SEEDS");
    let only = std::env::var("POLYLOGUE_TEAM").ok();
    let is_wanted = |name: &String| match &only {
        Some(only) => only == name,
        None => seeds.is_some() || QUICK.contains(&name.as_str()),
    };
    let teams: Vec<_> = shipped().into_iter().filter(|(name, _)| is_wanted(name)).collect();
    let count = teams.len();
    assert!(count > 0, "no team is played");
    println!("{HEADER}");
    let (left, done) = (Mutex::new(teams), Mutex::new(Vec::new()));
    let play = || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        loop {
            let Some((name, team)) = left.lock().unwrap().pop() else { break };
            let row = runtime.block_on(worst_run(name, team, seeds.unwrap_or(0)));
            println!("{}", row.text);
            done.lock().unwrap().push(row);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from).min(count) {
            scope.spawn(play);
        }
    });
    let rows = done.into_inner().unwrap();
    let half = rows.iter().filter(|row| row.share >= 50).count();
    println!("{half} of {count} at 50 % or more");
    let flaws: Vec<&String> = rows.iter().flat_map(|row| &row.flaws).collect();
    assert!(flaws.is_empty(), "{flaws:#?}");
    // Some teams alone say nothing about most of them.
    assert!(only.is_some() || half * 5 >= count * 4, "{half} of {count} reach half of their bound");
}

const HEADER: &str = "                         bound                worst run           percent of
team                      calls        tokens  calls        tokens   calls tokens money   model, and how its run ended";

/// A line of the table.
struct Row {
    text: String,
    /// The largest share of the bound in money, in percent.
    share: u64,
    flaws: Vec<String>,
}

async fn worst_run(name: String, team: Team, random: u64) -> Row {
    let place = tempfile::tempdir().unwrap();
    let is_heavy = uses_tools(&team, &|_| true);
    let output = match is_heavy {
        true if uses_tools(&team, &|tool| !TERSE.contains(&tool)) => SHORT,
        true => MEDIUM,
        false => Adversary::default().output,
    };
    let mut stage = Stage::with_loud_tools(name, team, place.path());
    let mut row = Row { text: String::new(), share: 0, flaws: Vec::new() };
    for model in expensive(random, is_heavy) {
        let model = Adversary { output, ..model };
        let played = stage.play(model, OPEN).await;
        let found = flaw(&played, model.behavior);
        row.flaws.extend(found.map(|flaw| format!("{}, {model:?}: {flaw}", stage.name)));
        let shares = shares(&played);
        if shares[2] > row.share || row.text.is_empty() {
            (row.share, row.text) = (shares[2], line(&stage.name, &model, &played));
        }
    }
    row
}

/// The shares of the bound that were reached, in whole percent: calls, tokens, money.
fn shares(played: &Played) -> [u64; 3] {
    let used = &played.used;
    let used = [used.counted_calls(), used.counted_tokens(), used.counted_cost().picodollars];
    [0, 1, 2].map(|at| used[at] * 100 / played.most[at].max(1))
}

fn line(name: &str, model: &Adversary, played: &Played) -> String {
    let ([most_calls, most_tokens, _], [calls, tokens, money]) = (played.most, shares(played));
    let (used_calls, used_tokens) = (played.used.counted_calls(), played.used.counted_tokens());
    let Adversary { behavior, seed, pieces, swift, .. } = model;
    let code = played.code();
    format!(
        "{name:22} {most_calls:8} {most_tokens:13} {used_calls:6} {used_tokens:13} {calls:7} {tokens:6} {money:5}   \
         {behavior:?} {seed} {pieces} {swift}, {code}"
    )
}

/// The longest reply of models in teams with tools, where results are what is long: longer ones can call more tools at once, and take
/// longer to play. With tools of short results it is longer.
const SHORT: u64 = 16;
const MEDIUM: u64 = 48;

/// Tools whose results are always short.
const TERSE: [&str; 3] = ["calculator", "chess", "high_low"];

/// Whether models of `team` call tools such as `counts`, several at once. The code of a message has one result.
fn uses_tools(team: &Team, counts: &impl Fn(&str) -> bool) -> bool {
    let has_tools = |agent: &Agent| {
        let keys = agent.model();
        let named = |tool: &ToolEntry| match tool {
            ToolEntry::Own(own) => counts(&own.tool),
            ToolEntry::Mcp(_) => true,
        };
        keys.is_some_and(|keys| keys.tools.iter().any(|tool| named(tool)) || keys.memory.on().is_some())
            || agent.executes_tools.iter().any(|given| counts(&given.tool))
    };
    team.agents.iter().any(has_tools) || team.teams.iter().any(|sub| uses_tools(&sub.team, counts))
}

/// The models that play for the table, with so many random ones. Long histories are played by few.
fn expensive(random: u64, is_heavy: bool) -> Vec<Adversary> {
    let seeded =
        |behavior, seeds: std::ops::Range<u64>| seeds.map(move |seed| Adversary::new(behavior, seed));
    let whole = if is_heavy { &HEAVY[..] } else { &EXPENSIVE[..] };
    let mut all: Vec<Adversary> = whole.iter().map(|behavior| Adversary::new(*behavior, 0)).collect();
    for pieces in [1, 2] {
        all.extend(
            [Behavior::Coder, Behavior::Worst].map(|of| Adversary { pieces, ..Adversary::new(of, 0) }),
        );
    }
    let one = |only| Adversary { pieces: 1, only: Some(only), ..Adversary::new(Behavior::Worst, 0) };
    all.extend((0..6).map(one));
    for swift in SWIFT {
        all.extend(
            [Behavior::Worst, Behavior::Mistaken].map(|of| Adversary { swift, ..Adversary::new(of, 0) }),
        );
    }
    all.extend([1, 2].map(|pieces| Adversary { pieces, ..Adversary::new(Behavior::Coder, 1) }));
    all.extend(seeded(Behavior::Formal, if is_heavy { 10..11 } else { 0..24 }));
    if !is_heavy {
        all.extend(seeded(Behavior::Late, 0..8).chain(seeded(Behavior::Word, 0..7)));
        all.extend(seeded(Behavior::Any, 1..random + 1));
    }
    all
}

/// How many turns are swift, of conversations that a limit on calls ends.
const SWIFT: [u64; 3] = [4, 8, 16];

/// Those of them whose results of tools and programs are long.
const HEAVY: [Behavior; 4] = [Behavior::Worst, Behavior::Mistaken, Behavior::Coder, Behavior::Sparse];

/// Shipped teams whose worst conversations take no second.
const QUICK: [&str; 6] =
    ["amusement-park", "arithmetic-sequence", "blogger", "council", "counting", "writer-critic"];
