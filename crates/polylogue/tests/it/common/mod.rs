//! What the tests of this crate share.

pub(crate) mod cents;
pub(crate) mod seeker;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use polylogue::policies::with_termination;
use polylogue::stop::max_turns;
use polylogue::{Agent, Chat, Log, Message, Name, Status, Transcript, round_robin};
use polylogue_core::{
    AnyStore, Body, Budget, Digest, Event, FailedAttempt, LogId, Meta, ModelError, ModelErrorKind,
    ModelReply, Money, Opening, Part, Path, Request, RunResult, StopReason, Store, Timestamp, ToolCall,
    ToolResult, TurnRequest, Usage,
};
use polylogue_models::Script;
use polylogue_store::Memory;
use polylogue_test::cut::{Calls, Cut};

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub(crate) fn script(json: &str) -> Script {
    serde_json::from_str(json).unwrap()
}

/// A log in memory, whose clock stands still.
pub(crate) async fn log() -> Log {
    log_in(AnyStore::new(Memory::default()), "test").await
}

pub(crate) async fn log_in(store: AnyStore, id: &str) -> Log {
    Log::create(store, LogId::new(id).unwrap()).await.unwrap().clock(|| Timestamp(0))
}

/// A log of these events, as the next process finds it; its clock stands still.
pub(crate) async fn log_of(events: &[Arc<Event>]) -> Log {
    stored(AnyStore::new(Memory::default()), "test", events).await
}

/// The same in `store`.
pub(crate) async fn stored(store: AnyStore, id: &str, events: &[Arc<Event>]) -> Log {
    let id = LogId::new(id).unwrap();
    let claim = store.create(&id, &Meta::default()).await.unwrap();
    if !events.is_empty() {
        store.append(&claim, events).await.unwrap();
    }
    store.release(claim).await.unwrap();
    Log::open(store, id).await.unwrap().clock(|| Timestamp(0))
}

/// Runs `chat`, or resumes it if it has begun in `log`.
pub(crate) async fn run_or_resume(chat: &Chat, log: &mut Log, task: &str) -> polylogue::Result<RunResult> {
    match log.has_begun().await? {
        true => chat.resume(log).await,
        false => chat.run_in(log, task).await,
    }
}

/// Does `work` in a process that dies when `is_dead`. Returns its result, unless the process died before.
pub(crate) async fn until_dead<T>(work: impl Future<Output = T>, is_dead: impl Fn() -> bool) -> Option<T> {
    let death = async {
        while !is_dead() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        result = work => Some(result),
        () = death => None,
    }
}

/// A chat of one agent, who has so many turns.
pub(crate) fn solo_chat(called: &str, agent: impl Agent, turns: u64) -> Chat {
    let chat = Chat::builder(called).participant(agent);
    chat.policy(with_termination(round_robin(), max_turns(turns))).build().unwrap()
}

/// A chat of two, who have so many turns together.
pub(crate) fn pair_chat(called: &str, one: impl Agent, other: impl Agent, turns: u64) -> Chat {
    let chat = Chat::builder(called).participant(one).participant(other);
    chat.policy(with_termination(round_robin(), max_turns(turns))).build().unwrap()
}

/// Why a run has closed its chat.
pub(crate) fn reason(status: &Status) -> &StopReason {
    let Status::Closed { reason, .. } = status else { panic!("{status:?}") };
    reason
}

/// The same, of a status that is not needed any more.
pub(crate) fn into_reason(status: Status) -> StopReason {
    let Status::Closed { reason, .. } = status else { panic!("{status:?}") };
    reason
}

/// Runs `chat` to its end. Returns why it ended, its summary and its events.
pub(crate) async fn run_to_end(chat: &Chat, task: &str) -> (StopReason, String, Vec<Arc<Event>>) {
    let mut log = log().await;
    match chat.run_in(&mut log, task).await.unwrap().status {
        Status::Closed { reason, summary } => (reason, summary.to_string(), log.events().await),
        other => panic!("it is not over: {other:?}"),
    }
}

/// The events of a conversation in memory that is the same wherever its log is cut, and asks no one.
pub(crate) async fn cut_everywhere(task: &str, chat: impl Fn(&Calls) -> Chat) -> Vec<Arc<Event>> {
    cut_with_answers(task, chat, &[]).await
}

/// The same of one that asks people, with one of their answers after the other.
pub(crate) async fn cut_with_answers(
    task: &str,
    chat: impl Fn(&Calls) -> Chat,
    answers: &[&str],
) -> Vec<Arc<Event>> {
    let cut = Cut {
        task,
        chat: &chat,
        store: &|| AnyStore::new(Memory::default()),
        answer: &|_, question, nth| {
            let answer = answers.get(usize::try_from(nth).unwrap());
            (*answer.unwrap_or_else(|| panic!("no question was expected: {question:?}"))).to_owned()
        },
    };
    cut.everywhere().await.unwrap_or_else(|flaw| panic!("{flaw}"))
}

/// Random numbers from a seed. Clones continue the same ones.
#[derive(Clone, Default)]
pub(crate) struct Random(Arc<AtomicU64>);

impl Random {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(Arc::new(AtomicU64::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)))
    }

    /// The next one below `below`.
    pub(crate) fn roll(&self, below: u64) -> u64 {
        let mut x = self.0.load(Ordering::SeqCst);
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.0.store(x, Ordering::SeqCst);
        (x >> 11) % below
    }
}

/// A request as a server takes it that charges for each one that it receives: after a while, and again as often as it breaks, if it
/// may. Returns what was charged last.
pub(crate) async fn received<T>(
    request: &Request<'_>,
    (random, may_break): (&Random, bool),
    charge: impl Fn() -> T,
) -> Result<T, ModelError> {
    let mut charged = charge();
    for _ in 0..random.roll(4) {
        tokio::task::yield_now().await;
    }
    while may_break && random.roll(6) == 0 {
        let reserved = request.reserved.unwrap();
        reserved.fail(FailedAttempt::Broken);
        if !reserved.again().await {
            return Err(ModelError::new(ModelErrorKind::Connection, "test:server", "it broke"));
        }
        charged = charge();
        tokio::task::yield_now().await;
    }
    Ok(charged)
}

/// Runs `chat` in one process after another, each of which dies after some more requests, under a budget that all share. `opened` sets
/// the limits of a log. Returns the events.
pub(crate) async fn lived(
    chat: &Chat,
    budget: Money,
    requests: impl Fn() -> usize,
    random: &Random,
    opened: impl Fn(Log) -> Log,
) -> Vec<Arc<Event>> {
    let mut events = Vec::new();
    for _ in 0..40 {
        let budget = Budget::new("batch", budget);
        let mut log = opened(log_of(&events).await).budget(budget.clone());
        budget.count_events(events.iter().map(|event| &**event));
        let last = requests() + 1 + usize::try_from(random.roll(60)).unwrap();
        let ended = until_dead(run_or_resume(chat, &mut log, "go"), || requests() >= last).await;
        assert_eq!(
            (log.reserved(), budget.reserved()),
            (Money::default(), Money::default()),
            "after {ended:?}"
        );
        // What was not written is lost with the process.
        events = log.events().await;
        if matches!(ended, Some(Ok(RunResult { status: Status::Closed { .. }, .. }))) {
            break;
        }
    }
    events
}

/// Asserts that no more counts than the limits of the run and of the budget of several allow, and that no limit at which something ended was
/// passed.
pub(crate) async fn counts_within(events: &[Arc<Event>], run: Money, budget: Money) {
    let used = log_of(events).await.usage().await.counted_cost();
    assert!(used <= run, "the run: {used} of {run}");
    let shared = Budget::new("batch", budget);
    shared.count_events(events.iter().map(|event| &**event));
    let used = shared.used().cost;
    assert!(used <= budget, "the batch: {used} of {budget}");
    for event in events {
        let Body::Closed { reason, .. } = &event.body else { continue };
        let reached = if let StopReason::Allowance { limit, .. } = reason { &**limit } else { reason };
        if let StopReason::Cost { limit, spent, .. } = reached {
            assert!(spent <= limit, "{reason}");
        }
    }
}

/// A transcript of lines; the first is the opening. See [`talk_of`].
pub(crate) fn talk(lines: &[(&str, &str)]) -> Transcript {
    let lines: Vec<_> = lines.iter().map(|(who, text)| (*who, *text, "")).collect();
    talk_of(&lines)
}

/// A transcript of lines: who, what, and what they thought. Each turn takes a second, uses 10 tokens and costs a cent;
/// a line that begins with `!` calls that tool as well.
pub(crate) fn talk_of(lines: &[(&str, &str, &str)]) -> Transcript {
    let (_, task, _) = lines[0];
    let opening = Opening {
        participants: vec![name("A"), name("B")],
        task: task.into(),
        messages: vec![Message::new(name(lines[0].0), task)],
        ..Opening::default()
    };
    let mut bodies = vec![(0, Body::Opened(opening))];
    for (turn, (who, text, thought)) in (1..).zip(&lines[1..]) {
        bodies.extend(turn_of(turn, &name(who), text, thought).into_iter().map(|body| (turn * 1000, body)));
    }
    let event = |(seq, (time, body))| {
        Arc::new(Event { seq, chat: Path::root(), time: Timestamp(time), ran_ms: time, inbox: None, body })
    };
    let events: Vec<_> = (0..).zip(bodies).map(event).collect();
    Transcript::from_events(&Path::root(), &events).unwrap()
}

fn turn_of(turn: u64, who: &Name, text: &str, thought: &str) -> Vec<Body> {
    let request = Digest::try_from("0".repeat(32)).unwrap();
    let sample = ModelReply {
        usage: Usage { input: Some(6), output: Some(4), ..Usage::default() },
        cost: Some(Money::dollars(0.01)),
        ..ModelReply::new(who.clone(), "test:m", request, vec![Part::text(text)])
    };
    let mut bodies =
        vec![Body::TurnStarted { turns: vec![TurnRequest::to_all(who.clone())] }, Body::ModelReplied(sample)];
    if let Some(tool) = text.strip_prefix('!') {
        let tool = tool.split(' ').next().unwrap().to_owned();
        let id = format!("c{turn}");
        let call = ToolCall { id: id.clone(), tool, args: serde_json::json!({"q": 1}) };
        bodies.push(Body::ToolCalled { who: who.clone(), call });
        bodies.push(Body::ToolReturned { who: who.clone(), id, result: ToolResult::done("ok") });
    }
    let parts = vec![Part::Thought(thought.into()), Part::text(text)];
    bodies.push(Body::Message(Message { parts, ..Message::new(who.clone(), "") }));
    bodies
}
