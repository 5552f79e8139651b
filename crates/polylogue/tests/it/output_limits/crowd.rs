//! Fifty agents at the same time, whose processes die.

use std::collections::BTreeSet;
use std::sync::Arc;

use polylogue::{Chat, Limits, Log, Name, Step, Transcript};
use polylogue_core::{Body, Event, Path, StopReason, TurnRequest};

use crate::common::{counts_within, lived, name};
use crate::output_limits::server::Server;
use crate::output_limits::{agent, cents, spend};

/// The limits of all levels, in cents.
#[derive(Debug, Clone, Copy)]
struct Cents {
    run: u64,
    budget: u64,
    outer: u64,
    inner: u64,
    agent: u64,
}

fn steps(names: Vec<Name>) -> impl Fn(&Transcript) -> Step + Send + Sync + 'static {
    let turns: Vec<TurnRequest> = names.into_iter().map(TurnRequest::to_all).collect();
    move |chat: &Transcript| match chat.turns() {
        begun if begun < 2 * turns.len() as u64 => Step::Parallel(turns.clone()),
        _ => Step::close(StopReason::Finished, chat),
    }
}

/// 44 agents and a chat of six, all at the same time.
fn team(server: &Server, limits: &Cents) -> Chat {
    let crowd = |called: &str, agents: u64| -> Vec<Name> {
        (0..agents).map(|number| name(&format!("{called}{number}"))).collect()
    };
    let mut inner = Chat::builder("inner").limits(spend(limits.inner));
    for name in crowd("inner", 6) {
        inner = inner.participant(agent(name.as_str(), server));
    }
    let inner = inner.policy(steps(crowd("inner", 6))).build().unwrap();
    let mut outer = Chat::builder("outer").limits(spend(limits.outer)).max_turns(200);
    let mut names = crowd("A", 44);
    for name in &names {
        outer = outer.participant(agent(name.as_str(), server));
    }
    names.push(name("inner"));
    outer.participant(inner).policy(steps(names)).build().unwrap()
}

/// Runs the team in processes that die. Returns the events.
async fn lived_under(server: &Server, limits: &Cents) -> Vec<Arc<Event>> {
    let agents = ["A0", "A1"].map(|who| (name(who), spend(limits.agent)));
    let run = Limits { cost: Some(cents(limits.run)), ..Limits::default() };
    let opened = |log: Log| log.limits(run).agent_limits(agents.clone());
    lived(&team(server, limits), cents(limits.budget), || server.sent().len(), &server.random, opened).await
}

#[tokio::test]
async fn fifty_agents_at_the_same_time_never_spend_more_than_any_level_may() {
    let (mut by, mut cut, mut calls) = (BTreeSet::new(), 0_u64, 0_u64);
    for seed in 1..=200 {
        let server = Server::seeded(seed);
        let some = |least: u64, most: u64| least + server.random.roll(most - least);
        let limits = Cents {
            run: some(1_000, 90_000),
            budget: some(1_000, 90_000),
            outer: some(1_000, 90_000),
            inner: some(300, 9_000),
            agent: some(300, 9_000),
        };
        let events = lived_under(&server, &limits).await;
        let is_inner = |at: &Path, nth: u64| at.as_str() == format!("/inner.{nth}");
        let levels = [
            ("run", server.cents(|_, _| true), limits.run),
            ("budget", server.cents(|_, _| true), limits.budget),
            ("outer", server.cents(|_, _| true), limits.outer),
            ("inner 1", server.cents(|at, _| is_inner(at, 1)), limits.inner),
            ("inner 2", server.cents(|at, _| is_inner(at, 2)), limits.inner),
            ("A0", server.cents(|_, who| who.as_str() == "A0"), limits.agent),
            ("A1", server.cents(|_, who| who.as_str() == "A1"), limits.agent),
        ];
        for (level, spent, limit) in levels {
            assert!(spent <= limit, "seed {seed}: {level} spent {spent} of {limit} cents; {limits:?}");
        }
        counts_within(&events, cents(limits.run), cents(limits.budget)).await;
        for event in &events {
            match &event.body {
                Body::OutputLimited(limit) => {
                    let text = limit.to_string();
                    by.insert(text.rsplit_once(" of ").unwrap().1.to_owned());
                    calls += 1;
                }
                Body::Closed { reason, .. } => {
                    cut += u64::from(reason.to_string().contains("was cut off at"))
                }
                _ => {}
            }
        }
    }
    for level in ["the batch", "the agent `A0`", "the chat `inner`", "the chat `outer`"] {
        assert!(by.contains(level), "no seed lowered a call to what {level} left: {by:?}");
    }
    assert!(by.iter().any(|of| of.starts_with('$')), "no seed lowered a call to what the run left: {by:?}");
    assert!(cut > 20 && calls > 200, "{cut} replies cut off, {calls} calls lowered");
}
