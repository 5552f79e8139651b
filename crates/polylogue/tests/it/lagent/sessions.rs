//! Sessions: what is loaded again, what hooks leave in memories, and what is left when one is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use polylogue::agents::session::State;
use polylogue::layers::AnswerTimeout;
use polylogue::layers::hook::MessageHooks;
use polylogue::runs::Report;
use polylogue::{Act, Agent, AnyModel, Assistant, Error, Human, Limits, Message, Name, Session, Turn};
use polylogue_core::{AnyStore, Body, Interrupt, LogId, SubAgent, Timestamp};
use polylogue_store::Memory;

use crate::common::log_of;
use crate::lagent::parts::{Blogger, agent, session};
use crate::stage::{Spy, name, script};

/// Asks a helper that it does not tell of as a layer, as the coder of the documentation asks its executor.
#[derive(Clone)]
struct Quiet {
    name: Name,
    inner: Assistant,
    helper: Assistant,
}

impl Quiet {
    fn new(model: &AnyModel) -> Self {
        Self { name: name("quiet"), inner: agent("inner", model), helper: agent("helper", model) }
    }
}

impl Agent for Quiet {
    fn name(&self) -> &Name {
        &self.name
    }
    fn sub_agents(&self) -> Vec<SubAgent> {
        vec![SubAgent::labeled("agent", &self.inner)]
    }
    async fn act(&self, turn: &mut Turn<'_>) -> polylogue::Result<Act> {
        let said = turn.ask_as("agent", &self.inner, turn.message()).await?;
        Ok(Act::Say(turn.ask(&self.helper, said).await?.parts))
    }
}

#[tokio::test]
async fn a_state_with_those_who_are_no_layers_loads_whole() {
    let lines = r#"[{"inner": "i1"}, {"helper": "h1"}, {"inner": "i2"}, {"helper": "h2"}]"#;
    let (old, first, second) = (Spy::on(script(lines)), session().await, session().await);
    first.call(&Quiet::new(&old.model()), "a").await.unwrap();
    let json = serde_json::to_string(&first.state(&Quiet::new(&old.model())).await.unwrap()).unwrap();
    let state: State = serde_json::from_str(&json).unwrap();
    assert_eq!(state.keys().collect::<Vec<_>>(), ["memory", "agent.memory", "helper.memory"]);
    let new = Spy::on(script(r#"[{"inner": "i2"}, {"helper": "h2"}]"#));
    let unknown = second.load(&Quiet::new(&new.model()), &state).await.unwrap();
    assert_eq!(unknown, Vec::<String>::new());
    assert_eq!(second.state(&Quiet::new(&new.model())).await.unwrap(), state);
    first.call(&Quiet::new(&old.model()), "b").await.unwrap();
    second.call(&Quiet::new(&new.model()), "b").await.unwrap();
    let entries = |spy: &Spy| spy.asked().into_iter().map(|asked| asked.entries).collect::<Vec<_>>();
    assert_eq!(entries(&new), entries(&old)[2..]);
}

/// What a hook puts before a message is in the memory of the agent that it is around (`critic.critic.memory`). The memory of both
/// together (`critic.memory`) holds what was asked of them.
#[tokio::test]
async fn what_a_hook_puts_before_a_message_is_in_the_memory_of_its_agent_alone() {
    let spy = Spy::on(script(r#"[{"writer": "w1"}, {"critic": "c1"}]"#));
    let writer = agent("writer", &spy.model());
    let mut critic = MessageHooks::new(agent("critic", &spy.model()));
    critic.before(|message| {
        let text = format!("A draft: {}", message.text());
        Message::new(message.from, text)
    });
    let team = Pair { name: name("pair"), writer, critic };
    let session = session().await;
    session.call(&team, "go").await.unwrap();
    let state = session.state(&team).await.unwrap();
    let texts = |key: &str| -> Vec<String> {
        state.get(key).unwrap().iter().map(|message| message.text().into_owned()).collect()
    };
    assert_eq!(texts("critic.memory"), ["w1", "c1"], "what was asked of both");
    assert_eq!(texts("critic.critic.memory"), ["A draft: w1", "c1"], "what the agent itself received");
    assert_eq!(texts("writer.memory"), ["go", "w1"]);
    assert_eq!(texts("memory"), ["go", "c1"]);
    let sent = polylogue_core::text_of(spy.asked()[1].entries.last().unwrap().parts()).into_owned();
    assert_eq!(sent, "A draft: w1");
}

/// A writer, and a critic with a hook.
#[derive(Clone)]
struct Pair {
    name: Name,
    writer: Assistant,
    critic: MessageHooks,
}

impl Agent for Pair {
    fn name(&self) -> &Name {
        &self.name
    }
    fn sub_agents(&self) -> Vec<SubAgent> {
        vec![SubAgent::of(&self.writer), SubAgent::of(&self.critic)]
    }
    async fn act(&self, turn: &mut Turn<'_>) -> polylogue::Result<Act> {
        let draft = turn.ask(&self.writer, turn.message()).await?;
        Ok(Act::Say(turn.ask(&self.critic, draft).await?.parts))
    }
}

/// A session that is dropped leaves nothing locked, in whichever store.
#[tokio::test]
async fn a_session_that_is_dropped_can_be_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let stores = [
        AnyStore::new(Memory::new()),
        AnyStore::new(polylogue_store::Jsonl::open(dir.path().join("logs")).unwrap()),
        AnyStore::new(polylogue_store::Sqlite::open(dir.path().join("store.db")).unwrap()),
    ];
    for store in stores {
        let id = LogId::new("s").unwrap();
        let spy = Spy::on(script(r#"[{"bot": "one"}, {"bot": "two"}]"#));
        let bot = agent("bot", &spy.model());
        let session = Session::create(store.clone(), id.clone()).await.unwrap();
        session.call(&bot, "a").await.unwrap();
        assert!(Session::open(store.clone(), id.clone()).await.is_err(), "it is in use");
        drop(session);
        let again = Session::open(store.clone(), id.clone()).await.unwrap();
        assert_eq!(again.call(&bot, "b").await.unwrap().text(), "two");
        drop(again);
        Session::open(store, id).await.unwrap().into_log().release().await.unwrap();
    }
}

/// A writer and a critic who are never at a loss. One round takes three model calls, two take five.
fn bloggers() -> [Blogger; 2] {
    let lines: Vec<_> = (0..40)
        .flat_map(|nth| [("writer", nth), ("critic", nth)])
        .map(|(who, nth)| serde_json::json!({who: format!("{who} {nth}")}))
        .collect();
    let model = Spy::on(script(&serde_json::to_string(&lines).unwrap())).model();
    [Blogger::new("blogger", &model, 1), Blogger::new("blogger", &model, 2)]
}

async fn limited(limits: Limits) -> Session {
    Session::from_log(session().await.into_log().limits(limits))
}

#[tokio::test]
async fn the_default_limit_of_model_calls_is_for_each_call_of_a_session() {
    let session = limited(Limits { calls_per_run: 3, ..Limits::default() }).await;
    let [short, long] = bloggers();
    for nth in 1..=3 {
        session.call(&short, "go").await.unwrap();
        assert_eq!(session.log().usage().await.counted_calls(), 3 * nth);
    }
    let ended = session.call(&long, "go").await.unwrap_err().to_string();
    assert!(ended.contains("3 model calls"), "{ended}");
    assert_eq!(session.log().usage().await.counted_calls(), 12, "the call that would pass it is not sent");
    session.call(&short, "go").await.unwrap();
    assert_eq!(session.log().usage().await.counted_calls(), 15);
}

#[tokio::test]
async fn a_limit_of_model_calls_that_is_set_is_for_the_whole_session() {
    let session = limited(Limits { calls: Some(4), calls_per_run: 3, ..Limits::default() }).await;
    let [short, _] = bloggers();
    session.call(&short, "go").await.unwrap();
    let ended = session.call(&short, "go").await.unwrap_err().to_string();
    assert!(ended.contains("4 model calls"), "{ended}");
    assert_eq!(session.log().usage().await.counted_calls(), 4);
}

#[tokio::test]
async fn a_call_that_is_resumed_counts_its_model_calls_from_where_it_began() {
    let limits = Limits { calls_per_run: 3, ..Limits::default() };
    let session = limited(limits).await;
    let [short, long] = bloggers();
    session.call(&short, "go").await.unwrap();
    let first = session.log().events().await.len();
    session.call(&long, "go").await.unwrap_err();
    let events = session.log().events().await;
    let undone = events.iter().position(|event| matches!(event.body, Body::RolledBack { .. })).unwrap();
    assert!(undone > first + 3);
    for cut in first + 1..undone {
        let session = Session::from_log(log_of(&events[..cut]).await.limits(limits));
        let ended = session.resume(&long).await.unwrap_err().to_string();
        assert!(ended.contains("3 model calls"), "cut before event {cut}: {ended}");
        assert_eq!(session.log().usage().await.counted_calls(), 6, "cut before event {cut}");
    }
}

/// Fails this many times before it succeeds.
#[derive(Clone)]
struct Clumsy {
    name: Name,
    failures_left: Arc<AtomicUsize>,
}

impl Agent for Clumsy {
    fn name(&self) -> &Name {
        &self.name
    }
    async fn act(&self, _: &mut Turn<'_>) -> polylogue::Result<Act> {
        let left = self.failures_left.load(Ordering::Relaxed);
        self.failures_left.store(left.saturating_sub(1), Ordering::Relaxed);
        if left == 0 { Ok(Act::say("done")) } else { Err(Error::agent("dropped it")) }
    }
}

/// Each failed call is rolled back. The test would never end if the work of a rollback doubled with each one before it.
#[tokio::test]
async fn a_session_outlives_many_calls_that_fail() {
    const FAILURES: usize = 64;
    let clumsy = Clumsy { name: name("clumsy"), failures_left: Arc::new(AtomicUsize::new(FAILURES)) };
    let session = session().await;
    for _ in 0..FAILURES {
        session.call(&clumsy, "catch").await.unwrap_err();
    }
    assert_eq!(session.call(&clumsy, "catch").await.unwrap().text(), "done");
    let events = session.log().events().await;
    let undone = events.iter().filter(|event| matches!(event.body, Body::RolledBack { .. })).count();
    assert_eq!(undone, FAILURES);
    let state = session.state(&clumsy).await.unwrap();
    let memory: Vec<_> = state.get("memory").unwrap().iter().map(|message| message.text()).collect();
    assert_eq!(memory, ["catch", "done"], "nothing of the failed calls is left");
}

#[tokio::test]
async fn of_a_call_that_is_rolled_back_a_report_has_usage_and_errors_and_no_messages() {
    let session = limited(Limits { calls_per_run: 3, ..Limits::default() }).await;
    let [short, long] = bloggers();
    let reply = session.call(&short, "go").await.unwrap().text().into_owned();
    session.call(&long, "lost").await.unwrap_err();
    let clumsy = Clumsy { name: short.name.clone(), failures_left: Arc::new(AtomicUsize::new(1)) };
    session.call(&clumsy, "lost, too").await.unwrap_err();
    let (events, transcript) = (session.log().events().await, session.log().transcript().await.unwrap());
    let all = Report::of_all_runs(&events);
    assert_eq!(all.messages, transcript.messages().map(|line| line.message.clone()).collect::<Vec<_>>());
    let texts: Vec<_> = all.messages.iter().map(|message| message.text().into_owned()).collect();
    assert_eq!(texts, ["go", &*reply]);
    assert_eq!(
        (&*all.summary, all.reason.as_ref()),
        (&*reply, transcript.closed().map(|(reason, _)| reason))
    );
    assert_eq!((all.usage.counted_calls(), all.failures.len()), (6, 1));
    let last = Report::of_last_run(&events);
    assert_eq!((last.messages, last.reason, last.failures.len()), (Vec::new(), None, 1));
}

#[tokio::test]
async fn a_call_of_a_session_continues_with_the_default_answer_when_the_time_is_up() {
    let now = Arc::new(AtomicU64::new(0));
    let clock = Arc::clone(&now);
    let log = session().await.into_log().clock(move || Timestamp(clock.load(Ordering::Relaxed)));
    let session = Session::from_log(log);
    let pat = AnswerTimeout::new(Human::new("Pat").unwrap(), Duration::from_secs(60), "Go ahead.");
    let waits = |error: Error| matches!(error, Error::Interrupt(Interrupt::Waiting));
    assert!(waits(session.call(&pat, "May I?").await.unwrap_err()));
    now.store(59_999, Ordering::Relaxed);
    assert!(waits(session.resume(&pat).await.unwrap_err()));
    now.store(60_000, Ordering::Relaxed);
    assert_eq!(session.resume(&pat).await.unwrap().unwrap().text(), "Go ahead.");
}
