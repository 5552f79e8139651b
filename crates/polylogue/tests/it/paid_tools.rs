//! Tools that cost money: what a call costs at most is reserved before it, and counts in the same limits as model calls do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use polylogue::policies::with_termination;
use polylogue::runs::Report;
use polylogue::stop::{max_cost, max_turns};
use polylogue::{
    Act, Agent, Chat, Error, Function, Limits, Name, Status, Tool, Turn, round_robin, sequential,
};
use polylogue_core::{
    Allowance, AnyAgent, AnyTool, Body, Budget, ChargeReason, Event, LimitOverrides, Money, RunOutcome,
    StopReason, ToolCall, ToolCx, ToolError, ToolResult, ToolSpec,
};

use crate::common::cents::cents;
use crate::common::seeker::Seeker;
use crate::common::{cut_everywhere, into_reason, log_of, until_dead};

/// A tool of which a call costs at most ten cents, if it declares that.
#[derive(Clone)]
struct Search {
    spec: ToolSpec,
    /// The cents that a call costs, if it says so.
    reports: Option<u64>,
    fails: bool,
    hangs: bool,
    calls: Arc<AtomicU64>,
}

impl Search {
    fn declared() -> Self {
        let search = Self::free();
        Self { spec: search.spec.max_cost(cents(10)), ..search }
    }

    fn free() -> Self {
        let spec = ToolSpec::new("search", "Searches.", serde_json::json!({"type": "object"}));
        Self { spec, reports: None, fails: false, hangs: false, calls: Arc::default() }
    }

    fn reporting(self, cents: u64) -> Self {
        Self { reports: Some(cents), ..self }
    }

    fn made(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }
}

impl Tool for Search {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }
    async fn call(&self, _: serde_json::Value, _: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        tokio::task::yield_now().await;
        if self.hangs {
            std::future::pending::<()>().await;
        }
        if self.fails {
            return Err("the service is down".into());
        }
        let hit = ToolResult::done("a hit");
        Ok(match self.reports {
            Some(amount) => hit.with_cost(cents(amount)),
            None => hit,
        })
    }
}

fn chat(tool: &Search, calls: usize) -> Chat {
    let seeker = Seeker::new("Ann", AnyTool::new(tool.clone()), calls);
    Chat::builder("shop").participant(seeker).policy(sequential()).build().unwrap()
}

fn limit(most: u64) -> Limits {
    Limits { cost: Some(cents(most)), ..Limits::default() }
}

fn result(status: Status) -> String {
    let Status::Closed { reason, summary } = status else { panic!("{status:?}") };
    assert_eq!(reason.outcome(), RunOutcome::Done, "{reason}");
    summary.to_string()
}

#[tokio::test]
async fn calls_at_the_same_time_spend_no_more_than_is_allowed() {
    let tool = Search::declared();
    let mut log = log_of(&[]).await.limits(limit(25));
    let status = chat(&tool, 5).run_in(&mut log, "go").await.unwrap().status;
    let refused = StopReason::Cost { limit: cents(25), spent: cents(20), next: Some(cents(10)), cut: None };
    assert_eq!((into_reason(status), tool.made(), log.reserved()), (refused, 2, Money::default()));
    // What a call says that it cost frees the rest of what was reserved.
    let tool = Search::declared().reporting(4);
    let mut log = log_of(&[]).await.limits(limit(26));
    let status = chat(&tool, 5).run_in(&mut log, "go").await.unwrap().status;
    assert_eq!((result(status).as_str(), tool.made()), ("5 of 5", 5));
    assert_eq!(log.usage().await.counted_cost(), cents(20));
}

#[tokio::test]
async fn what_does_not_say_what_it_cost_counts_as_declared_also_if_it_fails() {
    for (tool, spent) in [
        (Search::declared(), 10),
        (Search { fails: true, ..Search::declared() }, 10),
        (Search::declared().reporting(0), 0),
        // It cost more than it was to cost at most.
        (Search::declared().reporting(30), 30),
        (Search::free(), 0),
        (Search::free().reporting(7), 7),
    ] {
        let budget = Budget::new("batch", cents(100));
        let mut log = log_of(&[]).await.budget(budget.clone());
        chat(&tool, 1).run_in(&mut log, "go").await.unwrap();
        let events = log.events().await;
        let report = Report::of_all_runs(&events);
        assert_eq!((report.usage.counted_cost(), budget.used().cost), (cents(spent), cents(spent)));
        assert_eq!((report.usage.unpriced, report.usage.unmetered, report.usage.calls), (0, 0, 0));
        let by = events.iter().find_map(|event| match &event.body {
            Body::ToolReturned { result: outcome, .. } => {
                outcome.used.first().map(|used| used.model.to_string())
            }
            _ => None,
        });
        assert_eq!(
            by.as_deref(),
            (tool.reports.is_some() || tool.spec.max_cost.is_some()).then_some("tool:search")
        );
        // The log alone says the same.
        let again = Budget::new("batch", cents(100));
        again.count_events(events.iter().map(|event| &**event));
        assert_eq!((again.used(), budget.reserved()), (budget.used(), Money::default()));
    }
}

#[tokio::test]
async fn a_run_that_a_tool_made_exceed_its_limit_does_not_end_as_done() {
    let tool = Search::free().reporting(30);
    let mut log = log_of(&[]).await.limits(limit(25));
    let status = chat(&tool, 1).run_in(&mut log, "go").await.unwrap().status;
    assert_eq!(
        into_reason(status),
        StopReason::Cost { limit: cents(25), spent: cents(30), next: None, cut: None }
    );
}

#[tokio::test]
async fn a_call_that_was_refused_is_made_when_the_limit_is_raised_and_none_is_repeated() {
    let tool = Search::declared();
    let mut log = log_of(&[]).await.limits(limit(25));
    chat(&tool, 5).run_in(&mut log, "go").await.unwrap();
    let called = |events: &[Arc<Event>]| {
        events.iter().filter(|event| matches!(event.body, Body::ToolCalled { .. })).count()
    };
    assert_eq!(called(&log.events().await), 2, "what was refused has not begun");
    log.reopen_for(LimitOverrides { cost: Some(cents(40)), ..LimitOverrides::default() }).await.unwrap();
    let mut log = log_of(&log.events().await).await.limits(limit(60));
    let status = chat(&tool, 5).resume(&mut log).await.unwrap().status;
    assert_eq!((result(status).as_str(), tool.made()), ("5 of 5", 5));
    assert_eq!((called(&log.events().await), log.usage().await.counted_cost()), (5, cents(50)));
}

#[tokio::test]
async fn the_limits_of_agents_and_budgets_pay_for_tools() {
    let own = Allowance { cost: Some(cents(15)), ..Allowance::default() };
    let tool = Search::declared();
    let mut log = log_of(&[]).await.agent_limits([(Name::new("Ann").unwrap(), own)]);
    let why = into_reason(chat(&tool, 3).run_in(&mut log, "go").await.unwrap().status).to_string();
    let words = "has reached the limit of $0.15 ($0.10 spent, and the next call could cost up to $0.10)";
    assert_eq!((why, tool.made()), (format!("the agent `Ann` {words}"), 1));
    let (tool, budget) = (Search::declared(), Budget::new("batch", cents(15)));
    let mut log = log_of(&[]).await.budget(budget.clone());
    let why = into_reason(chat(&tool, 3).run_in(&mut log, "go").await.unwrap().status).to_string();
    assert_eq!((why, tool.made()), (format!("the batch {words}"), 1));
    assert_eq!((budget.used().cost, budget.reserved()), (cents(10), Money::default()));
}

#[tokio::test]
async fn a_condition_on_money_counts_what_tools_cost_also_in_nested_chats() {
    for nested in [false, true] {
        let tool = Search::declared();
        let seeker = Seeker::new("Ann", AnyTool::new(tool.clone()), 1);
        let shop = Chat::builder("shop");
        let shop = match nested {
            true => {
                let inner = Chat::builder("inner").participant(seeker).policy(sequential());
                shop.participant(inner.build().unwrap())
            }
            false => shop.participant(seeker),
        };
        let ends = max_cost(cents(15)) | max_turns(5);
        let shop = shop.policy(with_termination(round_robin(), ends)).build().unwrap();
        let mut log = log_of(&[]).await;
        let why = into_reason(shop.run_in(&mut log, "go").await.unwrap().status);
        let spent = StopReason::Cost { limit: cents(15), spent: cents(20), next: None, cut: None };
        assert_eq!((why, tool.made()), (spent, 2), "nested: {nested}");
        let transcript = log.transcript().await.unwrap();
        assert_eq!(*transcript.usage(), log.usage().await, "nested: {nested}");
    }
}

/// Makes a paid call, and fails.
#[derive(Clone)]
struct Failing(Name, AnyTool);

impl Agent for Failing {
    fn name(&self) -> &Name {
        &self.0
    }
    async fn act(&self, turn: &mut Turn<'_>) -> polylogue::Result<Act> {
        let call = ToolCall { id: "c".into(), tool: "search".into(), args: serde_json::json!({}) };
        turn.call_tools(std::slice::from_ref(&self.1), &[call]).await?;
        Err(Error::agent("no ink"))
    }
}

/// What a call of an agent cost that its caller survives counts, though the call is rolled back.
#[tokio::test]
async fn a_condition_on_money_counts_what_tools_cost_in_calls_that_failed() {
    let tool = Search::declared();
    let failing = AnyAgent::new(Failing(Name::new("Ann").unwrap(), AnyTool::new(tool.clone())));
    let host = Function::calling("Host", [failing.clone()], move |turn| {
        let failing = failing.clone();
        Box::pin(async move {
            turn.ask(&failing, "Look.").await.unwrap_err();
            turn.prompt("It failed.").await?;
            Ok(Act::say("nothing"))
        })
    });
    let ends = max_cost(cents(15)) | max_turns(5);
    let chat = Chat::builder("shop").participant(host.unwrap()).policy(with_termination(round_robin(), ends));
    let mut log = log_of(&[]).await;
    let why = into_reason(chat.build().unwrap().run_in(&mut log, "go").await.unwrap().status);
    let spent = StopReason::Cost { limit: cents(15), spent: cents(20), next: None, cut: None };
    assert_eq!((why, tool.made()), (spent, 2));
    let events = log.events().await;
    assert_eq!(events.iter().filter(|event| matches!(event.body, Body::RolledBack { .. })).count(), 2);
}

#[tokio::test]
async fn a_call_in_flight_at_a_death_counts_at_what_it_costs_at_most() {
    let hangs = Search { hangs: true, ..Search::declared() };
    let mut log = log_of(&[]).await.limits(limit(25));
    let ended = until_dead(chat(&hangs, 1).run_in(&mut log, "go"), || hangs.made() >= 1).await;
    assert!(ended.is_none(), "it ends");
    let tool = Search::declared();
    let mut log = log_of(&log.events().await).await.limits(limit(25));
    let status = chat(&tool, 1).resume(&mut log).await.unwrap().status;
    assert_eq!((result(status).as_str(), tool.made()), ("0 of 1", 0), "it may have been done");
    assert_eq!(log.usage().await.counted_cost(), cents(10));
    let crashed = |event: &&Arc<Event>| match &event.body {
        Body::Charged(charge) => charge.why == ChargeReason::Crashed,
        _ => false,
    };
    assert_eq!(log.events().await.iter().filter(crashed).count(), 1);
}

#[tokio::test]
async fn a_conversation_with_paid_tools_can_be_cut_anywhere() {
    let tool = Search { spec: Search::declared().spec.repeatable(), ..Search::declared() };
    let events = cut_everywhere("go", |_| chat(&tool, 3)).await;
    let is = |of: fn(&Body) -> bool| events.iter().filter(|event| of(&event.body)).count();
    assert_eq!(is(|body| matches!(body, Body::Charged(_))), 3);
    assert_eq!(is(|body| matches!(body, Body::ToolReturned { .. })), 3);
}
