//! Conversations of a prepared team: shared, forked, listed.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use polylogue_core::{
    AnyStore, Body, Claim, Event, InboxMessage, Instruction, LimitOverrides, ListQuery, LogId, LogState,
    Message, Meta, Name, Path, RecoveredEvents, Responder, Status, Store, StoreError, StoreWrapper,
    StoredResult, Timestamp, ToolCall, ToolResult, Update,
};
use polylogue_models::Env;
use polylogue_runtime::fork::{Fork, ForkPoint, ForkedFiles};
use polylogue_runtime::steering::Steered;
use polylogue_runtime::stored::fresh_id;
use polylogue_runtime::{
    Access, Error, FilesPolicy, ModelOptions, OpenOptions, Prepared, Resumed, RunOptions, Runtime,
    StoreLocation,
};
use polylogue_store::Memory;

const TALK: &str = "
name: talk
task: Count.
agents: [{name: Ann}, {name: Bob}]
chat: {participants: [Ann, Bob], pattern: round_robin, stop: {max_turns: 4}}
script: [{Ann: one}, {Bob: two}, {Ann: three}, {Bob: four}, {Ann: five}, {Bob: six}, {Ann: seven}, {Bob: eight}]
";

const ASK: &str = "
name: ask
task: Help.
agents: [{name: Ann}, {name: Pat, human: true}]
chat: {participants: [Pat, Ann], pattern: sequential}
script: [{Ann: Thanks.}]
";

pub(crate) struct World {
    _dir: tempfile::TempDir,
    pub(crate) runtime: Runtime,
    pub(crate) team: Prepared,
}

pub(crate) async fn world(team: &str) -> World {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("team.yaml");
    std::fs::write(&file, team).unwrap();
    let place = StoreLocation::new(dir.path().join("conversations.db"));
    let team = prepared(&file, &place).await;
    World { _dir: dir, runtime: Runtime::open_at(place).unwrap(), team }
}

async fn prepared(file: &std::path::Path, place: &StoreLocation) -> Prepared {
    let loaded = polylogue_team::load(file, &Default::default()).unwrap();
    let access = Access::new(Env::of::<String, String>([]), loaded.digest.as_str());
    let models = ModelOptions { offline: true, ..ModelOptions::default() };
    let options = RunOptions { models, ..RunOptions::default() };
    Prepared::new(place, loaded.team, loaded.digest, access, options).await.unwrap()
}

pub(crate) fn messages(events: &[Arc<Event>]) -> Vec<String> {
    let text = |event: &Arc<Event>| match &event.body {
        Body::Message(message) | Body::Sent(message) => Some(message.text().into_owned()),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

#[tokio::test]
async fn one_task_runs_while_others_watch_and_send() {
    let world = world(TALK).await;
    let conversation = world.runtime.begin(&world.team.run()).await.unwrap();
    let mut watch = world.runtime.subscribe(conversation.id()).await.unwrap();
    let runner = tokio::spawn({
        let conversation = conversation.clone();
        async move { conversation.run().await }
    });
    // A second handle, as a request to a server would have it.
    let other = world.runtime.get(conversation.id()).unwrap();
    while let Some(update) = watch.next().await {
        if matches!(&update, Update::Event(event) if matches!(event.body, Body::TurnStarted { .. })) {
            other.send(Message::new(Name::user(), "louder")).await.unwrap();
            break;
        }
    }
    let status = runner.await.unwrap().unwrap();
    assert!(matches!(status, Status::Closed { .. }), "{status:?}");
    let events = conversation.events().await;
    assert!(messages(&events).contains(&"louder".to_owned()) || reopened(&events), "{events:?}");
    assert_eq!(conversation.turns().await, if reopened(&events) { 8 } else { 4 });
}

fn reopened(events: &[Arc<Event>]) -> bool {
    events.iter().any(|event| matches!(event.body, Body::Reopened { .. }))
}

#[tokio::test]
async fn one_that_waits_is_answered_by_another_handle_and_continues() {
    let world = world(ASK).await;
    let conversation = world.runtime.begin(&world.team.run()).await.unwrap();
    let id = conversation.id().clone();
    let Status::Waiting(questions) = conversation.run().await.unwrap() else { panic!("not waiting") };
    let unfinished = world.runtime.list(&ListQuery::unfinished()).await.unwrap();
    assert_eq!(unfinished.logs.len(), 0, "it waits");
    let unknown = Name::new("Unknown").unwrap();
    let wrong = world.runtime.answer(&id, &Path::root(), &unknown, "hello", Responder::Unnamed).await;
    assert!(matches!(wrong, Err(Error::NoQuestion { .. })), "{wrong:?}");
    let (at, question) = &questions[0];
    world.runtime.answer(&id, at, &question.who, "I am stuck", Responder::Unnamed).await.unwrap();
    let Status::Closed { summary, .. } = conversation.run().await.unwrap() else { panic!("not closed") };
    assert_eq!(&*summary, "Thanks.");
    assert!(matches!(conversation.resume(None).await.unwrap(), Resumed::Done(_)));
    assert!(!conversation.questions().await.iter().any(|_| true));
}

#[tokio::test]
async fn no_answer_is_waited_for_when_no_question_is_open() {
    let world = world(ASK).await;
    let conversation = world.runtime.begin(&world.team.run()).await.unwrap();
    conversation.answered_elsewhere().await.unwrap();
    let Status::Waiting(_) = conversation.run().await.unwrap() else { panic!("not waiting") };
    conversation.cancellation().cancel_after_step();
    conversation.answered_elsewhere().await.unwrap();
}

#[tokio::test]
async fn a_released_or_dropped_conversation_can_be_opened_again() {
    let world = world(TALK).await;
    let conversation = world.runtime.begin(&world.team.run()).await.unwrap();
    let id = conversation.id().clone();
    conversation.run().await.unwrap();
    let busy = world.runtime.store().claim(&id).await;
    assert!(matches!(busy, Err(StoreError::Busy { .. })), "{busy:?}");
    drop(conversation);
    assert!(world.runtime.get(&id).is_none());
    let again = world.runtime.open(&id, &world.team, OpenOptions::default()).await.unwrap();
    again.release().await.unwrap();
    let claim = world.runtime.store().claim(&id).await.unwrap();
    world.runtime.store().release(claim).await.unwrap();
    assert!(matches!(again.run().await, Err(Error::Released { .. })));
}

#[tokio::test]
async fn a_raise_that_waits_when_it_is_opened_raises_the_limits_that_it_has() {
    let world = world(TALK).await;
    let turns = |turns| LimitOverrides { turns: Some(turns), ..LimitOverrides::default() };
    let conversation = world.runtime.begin(&world.team.run().with_limits(turns(2))).await.unwrap();
    let id = conversation.id().clone();
    conversation.run().await.unwrap();
    drop(conversation);
    let instruction = Instruction::RaiseLimits { more: turns(1), by: None };
    let message = InboxMessage { key: "more".into(), request: None, posted: Timestamp(0), instruction };
    world.runtime.store().post(&id, &message).await.unwrap();
    let again = world.runtime.open(&id, &world.team, OpenOptions::default()).await.unwrap();
    assert_eq!(again.limits().turns, Some(3));
    assert!(matches!(again.resume(None).await.unwrap(), Resumed::Continues));
    again.run().await.unwrap();
    assert_eq!(again.turns().await, 3);
}

#[tokio::test]
async fn a_raise_of_an_agent_that_waits_when_it_is_opened_counts() {
    let world = world(&TALK.replace("{name: Ann}", "{name: Ann, limits: {calls: 1}}")).await;
    let conversation = world.runtime.begin(&world.team.run()).await.unwrap();
    let id = conversation.id().clone();
    conversation.run().await.unwrap();
    assert_eq!(conversation.turns().await, 2);
    drop(conversation);
    let more = LimitOverrides { calls: Some(1), ..LimitOverrides::default() };
    let instruction = Instruction::RaiseAgentLimits { who: Name::new("Ann").unwrap(), more, by: None };
    let message = InboxMessage { key: "more".into(), request: None, posted: Timestamp(0), instruction };
    world.runtime.store().post(&id, &message).await.unwrap();
    let again = world.runtime.open(&id, &world.team, OpenOptions::default()).await.unwrap();
    assert!(matches!(again.resume(None).await.unwrap(), Resumed::Continues));
    again.run().await.unwrap();
    assert_eq!(again.turns().await, 4);
}

/// The chat at which the run stopped is known by its path and its participants, in whatever process.
#[tokio::test]
async fn a_raise_of_a_chat_within_counts_before_the_chat_runs() {
    let office = "
name: office
task: Count.
limits: {calls: 1}
agents: [{name: Ann}, {name: Bob}, {name: Chair, nested_chats: [{chat: desk, when: {from: user}}, {chat: bench, when: {from: Ann}}]}]
chat: {participants: [Chair], pattern: sequential}
chats:
  - {name: desk, participants: [Ann, Bob], limits: {calls: 2}, stop: {max_turns: 4}}
  - {name: bench, participants: [Bob], limits: {calls: 1}, stop: {max_turns: 1}}
script: [{Ann: one}, {Bob: two}, {Ann: three}, {Bob: four}]
";
    let world = world(office).await;
    let conversation = world.runtime.begin(&world.team.run()).await.unwrap();
    let id = conversation.id().clone();
    conversation.run().await.unwrap();
    drop(conversation);
    let more = LimitOverrides { calls: Some(3), ..LimitOverrides::default() };
    let raise = |chat: &str| Instruction::RaiseChatLimits { chat: chat.into(), more, by: None };
    let closed = world.runtime.steer(&id, raise("bench")).await.unwrap();
    assert!(matches!(&closed, Steered::Refused(why) if why.ends_with("open are: `desk`")), "{closed:?}");
    assert!(matches!(world.runtime.steer(&id, raise("desk")).await.unwrap(), Steered::Done { .. }));
    let options = OpenOptions { more, ..OpenOptions::default() };
    let again = world.runtime.open(&id, &world.team, options).await.unwrap();
    assert!(matches!(again.resume(None).await.unwrap(), Resumed::Continues));
    again.run().await.unwrap();
    assert_eq!(messages(&again.events().await).last().unwrap(), "four");
}

#[tokio::test]
async fn one_that_has_not_begun_is_opened_before_its_limits_change() {
    let world = world(TALK).await;
    let conversation = world.runtime.begin(&world.team.run()).await.unwrap();
    let id = conversation.id().clone();
    drop(conversation);
    let more = LimitOverrides { turns: Some(5), ..LimitOverrides::default() };
    let options = OpenOptions { more, ..OpenOptions::default() };
    let conversation = world.runtime.open(&id, &world.team, options).await.unwrap();
    assert_eq!(conversation.resume(None).await.unwrap(), Resumed::Continues);
    conversation.release().await.unwrap();
    let louder = Instruction::Send(Message::new(Name::user(), "louder"));
    assert!(matches!(world.runtime.steer(&id, louder).await.unwrap(), Steered::Done { .. }));
    let events = world.runtime.store().read(&id, 0).await.unwrap();
    let bodies: Vec<&Body> = events.iter().map(|event| &event.body).collect();
    assert!(matches!(bodies[..], [Body::Opened(_), Body::LimitsChanged { .. }, Body::Sent(_)]), "{bodies:?}");
    let conversation = world.runtime.open(&id, &world.team, OpenOptions::default()).await.unwrap();
    let status = conversation.run().await.unwrap();
    assert!(matches!(status, Status::Closed { .. }), "{status:?}");
    assert_eq!((conversation.turns().await, conversation.limits().turns), (4, Some(5)));
}

#[tokio::test]
async fn a_fork_continues_alone_and_its_parent_is_in_the_list() {
    let world = world(TALK).await;
    let conversation = world.runtime.begin(&world.team.run()).await.unwrap();
    let id = conversation.id().clone();
    conversation.run().await.unwrap();
    let whole = conversation.events().await;
    let second =
        whole.iter().find(|event| matches!(&event.body, Body::Message(m) if m.text() == "two")).unwrap();
    let point = ForkPoint { event: Some(second.seq), text: Some("zwei".into()), is_edited: false };
    let Fork { id: fork, files } = world.runtime.fork(&id, &point).await.unwrap();
    assert_eq!(files, ForkedFiles::None);
    let forked = world.runtime.open(&fork, &world.team, OpenOptions::default()).await.unwrap();
    forked.run().await.unwrap();
    let said = messages(&forked.events().await);
    assert_eq!(&said[..2], ["one", "zwei"]);
    assert_eq!(said.len(), 4);
    assert_eq!(messages(&conversation.events().await), ["one", "two", "three", "four"], "the original");
    let query = ListQuery { parent: Some(id.clone()), ..ListQuery::default() };
    let forks = world.runtime.list(&query).await.unwrap().logs;
    let parents: Vec<_> = forks.iter().map(|listing| listing.parent.clone().unwrap()).collect();
    assert_eq!(
        parents.iter().map(|parent| (&parent.id, parent.event, parent.edited)).collect::<Vec<_>>(),
        [(&id, second.seq, true)]
    );
    // Text without a point is said to the fork of the whole conversation.
    let said = ForkPoint { text: Some("again".into()), ..ForkPoint::default() };
    let fork = world.runtime.fork(&id, &said).await.unwrap().id;
    assert!(!world.runtime.store().meta(&fork).await.unwrap().parent.unwrap().edited, "it only continues");
    let last = world.runtime.store().read(&fork, 0).await.unwrap().pop().unwrap();
    assert!(matches!(&last.body, Body::Reopened { message: Some(message), .. } if message.text() == "again"));
}

/// Another team did not spend what the past of the fork cost, and counts no longer texts than its agents write.
#[tokio::test]
async fn a_fork_has_a_bound_only_if_that_counts_its_past() {
    let world = world(TALK).await;
    let conversation = world.runtime.begin(&world.team.run()).await.unwrap();
    let id = conversation.id().clone();
    conversation.run().await.unwrap();
    let whole = conversation.events().await;
    let is_second = |event: &&Arc<Event>| matches!(&event.body, Body::Message(m) if m.text() == "two");
    let second = whole.iter().find(is_second).unwrap().seq;
    for (event, text, is_other_team, has_bound) in [
        (None, None, false, true),
        (None, None, true, false),
        (Some(1), None, true, true),
        (Some(second), Some("2"), false, true),
        (Some(second), Some("zwei"), false, false),
    ] {
        let point = ForkPoint { event, text: text.map(str::to_owned), is_edited: false };
        let team = is_other_team.then_some(&world.team);
        let fork = world.runtime.fork_as(&id, &point, fresh_id(), team).await.unwrap().id;
        let meta = world.runtime.store().meta(&fork).await.unwrap();
        assert_eq!(!meta.team["bound"].is_null(), has_bound, "{point:?} {is_other_team}");
    }
}

/// Counts how often logs are read.
struct Counting(AnyStore, Arc<AtomicUsize>);

impl StoreWrapper for Counting {
    fn inner(&self) -> &AnyStore {
        &self.0
    }
    async fn read(&self, id: &LogId, from: u64) -> Result<Vec<Event>, StoreError> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.read(id, from).await
    }
    async fn read_intact(&self, id: &LogId) -> Result<RecoveredEvents, StoreError> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.read_intact(id).await
    }
}

#[tokio::test]
async fn a_page_of_fifty_of_two_thousand_reads_no_log() {
    let reads = Arc::new(AtomicUsize::new(0));
    let store = AnyStore::new(Counting(Memory::new().into(), Arc::clone(&reads)));
    for number in 0..2_000_u64 {
        let title = if number % 2 == 0 { "even" } else { "odd" };
        let meta = Meta { title: title.into(), created: Timestamp(number / 3), ..Meta::default() };
        let claim = store.create(&LogId::new(&format!("c{number:04}")).unwrap(), &meta).await.unwrap();
        let body = Body::Failed {
            who: Name::user(),
            error: serde_json::from_str(r#"{"fault": "provider", "message": "m"}"#).unwrap(),
        };
        let event = Event { seq: 0, chat: Path::root(), time: Timestamp(0), ran_ms: 0, inbox: None, body };
        if number % 4 == 0 {
            store.append(&claim, &[Arc::new(event)]).await.unwrap();
        }
    }
    let runtime = Runtime::with_store(StoreLocation::new("nowhere"), store);
    let mut query = ListQuery { limit: Some(50), team: Some("even".into()), ..ListQuery::default() };
    let mut all = Vec::new();
    loop {
        let page = runtime.list(&query).await.unwrap();
        all.extend(page.logs.into_iter().map(|listing| listing.id));
        let Some(next) = page.next else { break };
        query.after = polylogue_core::Cursor::parse(&next.to_text());
        assert!(query.after.is_some());
    }
    assert_eq!(all.len(), 1_000);
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 1_000, "each is on one page");
    query = ListQuery { states: vec![LogState::Failed], since: Some(Timestamp(600)), ..ListQuery::default() };
    assert_eq!(runtime.list(&query).await.unwrap().logs.len(), 50);
    assert_eq!(reads.load(Ordering::Relaxed), 0);
}

/// Refuses every append after the first few.
struct Full(AnyStore, AtomicUsize);

impl StoreWrapper for Full {
    fn inner(&self) -> &AnyStore {
        &self.0
    }
    async fn append(&self, claim: &Claim, batch: &[Arc<Event>]) -> Result<(), StoreError> {
        match self.1.fetch_sub(1, Ordering::Relaxed) {
            0 => {
                self.1.store(0, Ordering::Relaxed);
                Err(StoreError::Full { place: "here".into() })
            }
            _ => self.0.append(claim, batch).await,
        }
    }
}

#[tokio::test]
async fn a_message_is_acknowledged_when_it_is_in_the_log_and_not_before() {
    let dir = tempfile::tempdir().unwrap();
    let place = StoreLocation::new(dir.path().join("conversations.db"));
    let file = dir.path().join("team.yaml");
    std::fs::write(&file, TALK).unwrap();
    let team = prepared(&file, &place).await;
    for room in 3..9 {
        let store = AnyStore::new(Full(Memory::new().into(), AtomicUsize::new(room)));
        let runtime = Runtime::with_store(place.clone(), store);
        let conversation = runtime.begin(&team.run()).await.unwrap();
        let id = conversation.id().clone();
        let mut watch = runtime.subscribe(&id).await.unwrap();
        let runner = tokio::spawn({
            let conversation = conversation.clone();
            async move { conversation.run().await }
        });
        while let Some(update) = watch.next().await {
            if matches!(&update, Update::Event(event) if matches!(event.body, Body::TurnStarted { .. })) {
                break;
            }
        }
        let sent = conversation.send(Message::new(Name::user(), "louder")).await;
        // As another process would find it if this one died now.
        let stored = runtime.store().read(&id, 0).await.unwrap();
        let stored: Vec<Arc<Event>> = stored.into_iter().map(Arc::new).collect();
        let is_stored = messages(&stored).contains(&"louder".to_owned()) || reopened(&stored);
        assert_eq!(sent.is_ok(), is_stored, "{room}: {sent:?}");
        let _ = runner.await.unwrap();
    }
}

#[tokio::test]
async fn a_fork_has_the_files_only_if_they_are_those_of_that_point() {
    let world = world(TALK).await;
    let conversation = world.runtime.begin(&world.team.run()).await.unwrap();
    let id = conversation.id().clone();
    conversation.run().await.unwrap();
    let place = world.runtime.place().clone();
    let work = place.work_dir(&id).unwrap();
    std::fs::create_dir_all(work.join("data")).unwrap();
    std::fs::write(work.join("data/a.txt"), "one").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("data/a.txt", work.join("link")).unwrap();
    let whole = ForkPoint::default();
    let in_use = world.runtime.fork(&id, &whole).await.unwrap();
    assert_eq!(in_use.files, ForkedFiles::InUse, "this process has it open");
    assert!(!place.work_dir(&in_use.id).unwrap().exists());
    conversation.release().await.unwrap();
    let copied = world.runtime.fork(&id, &whole).await.unwrap();
    let copy = place.work_dir(&copied.id).unwrap();
    assert_eq!(copied.files, ForkedFiles::Copied);
    assert_eq!(std::fs::read_to_string(copy.join("data/a.txt")).unwrap(), "one");
    #[cfg(unix)]
    assert_eq!(std::fs::read_link(copy.join("link")).unwrap().to_str(), Some("data/a.txt"));
    // A tool call after the point may have changed the files.
    let claim = world.runtime.store().claim(&id).await.unwrap();
    let seq = world.runtime.store().read(&id, 0).await.unwrap().len() as u64;
    let who = Name::new("Ann").unwrap();
    let call = ToolCall { id: "1".into(), tool: "shell".into(), args: serde_json::json!({}) };
    let bodies = [
        Body::ToolCalled { who: who.clone(), call },
        Body::ToolReturned { who, id: "1".into(), result: ToolResult::done("ok") },
    ];
    let event = |(seq, body)| {
        Arc::new(Event { seq, chat: Path::root(), time: Timestamp(0), ran_ms: 0, inbox: None, body })
    };
    let events: Vec<Arc<Event>> = (seq..).zip(bodies).map(event).collect();
    world.runtime.store().append(&claim, &events).await.unwrap();
    world.runtime.store().release(claim).await.unwrap();
    let before = ForkPoint { event: Some(seq), ..ForkPoint::default() };
    assert_eq!(world.runtime.fork(&id, &before).await.unwrap().files, ForkedFiles::Changed { event: seq });
    assert_eq!(world.runtime.fork(&id, &whole).await.unwrap().files, ForkedFiles::Copied);
}

#[tokio::test]
async fn a_fork_has_the_large_results_to_which_its_events_refer() {
    let world = world(TALK).await;
    let conversation = world.runtime.begin(&world.team.run()).await.unwrap();
    let id = conversation.id().clone();
    conversation.run().await.unwrap();
    let begun = conversation.events().await.len() as u64;
    conversation.release().await.unwrap();
    let store = world.runtime.store();
    let (text, ann) = ("a large result ".repeat(1_000), Name::new("Ann").unwrap());
    let stored = StoredResult::of(&text);
    let outcome = ToolResult::done(text.as_str()).shortened(100, stored.clone());
    let call = ToolCall { id: "c".into(), tool: "look".into(), args: serde_json::json!({}) };
    let bodies = [
        Body::ToolCalled { who: ann.clone(), call },
        Body::ToolReturned { who: ann, id: "c".into(), result: outcome },
    ];
    let event = |(seq, body)| {
        Arc::new(Event { seq, chat: Path::root(), time: Timestamp(0), ran_ms: 0, inbox: None, body })
    };
    let events: Vec<Arc<Event>> = (begun..).zip(bodies).map(event).collect();
    let claim = store.claim(&id).await.unwrap();
    store.store_blob(&id, &stored.id, text.as_bytes()).await.unwrap();
    store.append(&claim, &events).await.unwrap();
    store.release(claim).await.unwrap();
    for (event, expected) in [(None, Some(text.as_bytes())), (Some(begun), None)] {
        let point = ForkPoint { event, ..ForkPoint::default() };
        let fork = world.runtime.fork(&id, &point).await.unwrap().id;
        let found = store.stored_blob(&fork, &stored.id).await.unwrap();
        assert_eq!(found.as_deref(), expected, "{event:?}");
    }
}

const WRITES: &str = "
name: writes
task: Write.
agents: [{name: Ann, tools: [write_file, read_file]}]
chat: {participants: [Ann], pattern: round_robin, stop: {max_turns: 1}}
script:
  - Ann: {calls: [{tool: write_file, args: {path: a.txt, content: one}}]}
  - Ann: {calls: [{tool: write_file, args: {path: b/c.txt, content: two}}]}
  - Ann: written
  - Ann: {calls: [{tool: read_file, args: {path: b/c.txt}}]}
  - Ann: read
";

/// The work directory that a process has which continues the conversation on another machine.
async fn elsewhere(policy: FilesPolicy) -> (Vec<String>, String) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("team.yaml");
    std::fs::write(&file, WRITES).unwrap();
    let place = StoreLocation::new(dir.path().join("conversations.db")).with_files(policy);
    let team = prepared(&file, &place).await;
    let runtime = Runtime::open_at(place.clone()).unwrap();
    let conversation = runtime.begin(&team.run()).await.unwrap();
    let id = conversation.id().clone();
    assert!(matches!(conversation.run().await.unwrap(), Status::Closed { .. }));
    conversation.release().await.unwrap();
    drop((conversation, runtime));
    // As on another machine, where a call that did not finish was under way.
    let work = place.work_dir(&id).unwrap();
    std::fs::remove_dir_all(&work).unwrap();
    std::fs::create_dir_all(&work).unwrap();
    std::fs::write(work.join("half.txt"), "half").unwrap();
    let runtime = Runtime::open_at(place.clone()).unwrap();
    let conversation = runtime.open(&id, &team, OpenOptions::default()).await.unwrap();
    let mut names: Vec<String> = std::fs::read_dir(&work)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    conversation.send(Message::new(Name::user(), "Read it.")).await.unwrap();
    conversation.run().await.unwrap();
    let read = conversation.events().await.iter().rev().find_map(|event| match &event.body {
        Body::ToolReturned { result: outcome, .. } => Some(outcome.text().into_owned()),
        _ => None,
    });
    (names, read.unwrap())
}

#[tokio::test]
async fn a_conversation_that_cannot_be_begun_is_not_in_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("team.yaml");
    std::fs::write(&file, WRITES).unwrap();
    let place = StoreLocation::new(dir.path().join("conversations.db"));
    let team = prepared(&file, &place).await;
    let runtime = Runtime::open_at(place).unwrap();
    // A file is where the folder of work directories would be.
    std::fs::write(dir.path().join("conversations.db.work"), "").unwrap();
    let refused = runtime.begin(&team.run()).await.err();
    assert!(matches!(refused, Some(Error::Io { what: "made", .. })), "{refused:?}");
    let listed = runtime.list(&ListQuery::default()).await.unwrap().logs;
    assert!(listed.is_empty(), "{listed:?}");
}

#[tokio::test]
async fn kept_files_follow_a_conversation_and_others_do_not() {
    let (names, read) = elsewhere(FilesPolicy::Kept).await;
    assert_eq!((names.as_slice(), &*read), (["a.txt".to_owned(), "b".to_owned()].as_slice(), "two"));
    let (names, read) = elsewhere(FilesPolicy::Local).await;
    assert_eq!((names.as_slice(), &*read), (["half.txt".to_owned()].as_slice(), "there is no `b/c.txt`"));
    let (names, read) = elsewhere(FilesPolicy::None).await;
    assert_eq!((names.len(), &*read), (0, "there is no `b/c.txt`"));
}

#[tokio::test]
async fn files_of_a_call_that_never_finished_are_gone() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("team.yaml");
    std::fs::write(&file, WRITES).unwrap();
    let place = StoreLocation::new(dir.path().join("conversations.db")).with_files(FilesPolicy::Kept);
    let team = prepared(&file, &place).await;
    let runtime = Runtime::open_at(place.clone()).unwrap();
    let conversation = runtime.begin(&team.run()).await.unwrap();
    let id = conversation.id().clone();
    let work = place.work_dir(&id).unwrap();
    std::fs::write(work.join("half.txt"), "half").unwrap();
    conversation.release().await.unwrap();
    drop(conversation);
    let conversation = runtime.open(&id, &team, OpenOptions::default()).await.unwrap();
    assert_eq!(std::fs::read_dir(&work).unwrap().count(), 0);
    conversation.release().await.unwrap();
}

/// Results of tools that change no files say nothing about the directory; those of tools that do were not kept, and leave it unchanged.
#[tokio::test]
async fn files_are_kept_that_no_process_has_stored_unless_only_calls_without_a_result_can_have_made_them() {
    const READS: &str = "
name: reads
task: Read.
agents: [{name: Ann, tools: [write_file, read_file]}]
chat: {participants: [Ann], pattern: round_robin, stop: {max_turns: 1}}
script:
  - Ann: {calls: [{tool: read_file, args: {path: a.txt}}]}
  - Ann: read
";
    for (text, left) in [(READS, 0), (WRITES, 3)] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("team.yaml");
        std::fs::write(&file, text).unwrap();
        let place = |policy| StoreLocation::new(dir.path().join("conversations.db")).with_files(policy);
        let local = place(FilesPolicy::Local);
        let team = prepared(&file, &local).await;
        let runtime = Runtime::open_at(local).unwrap();
        let conversation = runtime.begin(&team.run()).await.unwrap();
        let id = conversation.id().clone();
        assert!(matches!(conversation.run().await.unwrap(), Status::Closed { .. }));
        conversation.release().await.unwrap();
        drop((conversation, runtime, team));
        let kept = place(FilesPolicy::Kept);
        let work = kept.work_dir(&id).unwrap();
        std::fs::write(work.join("half.txt"), "half").unwrap();
        let team = prepared(&file, &kept).await;
        let runtime = Runtime::open_at(kept).unwrap();
        let conversation = runtime.open(&id, &team, OpenOptions::default()).await.unwrap();
        // `half.txt`, `a.txt` and `b`.
        assert_eq!(std::fs::read_dir(&work).unwrap().count(), left, "{text}");
        conversation.release().await.unwrap();
    }
}

/// What a frozen process still writes is in no directory of the conversation.
#[tokio::test]
async fn while_a_call_may_still_run_elsewhere_its_directory_is_replaced() {
    use std::os::unix::fs::MetadataExt as _;

    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("team.yaml");
    std::fs::write(&file, WRITES).unwrap();
    let place = StoreLocation::new(dir.path().join("conversations.db")).with_files(FilesPolicy::Kept);
    let team = prepared(&file, &place).await;
    let runtime = Runtime::open_at(place.clone()).unwrap();
    let whole = runtime.begin(&team.run()).await.unwrap();
    whole.run().await.unwrap();
    whole.release().await.unwrap();
    let events = whole.events().await;
    let calls: Vec<usize> =
        (0..events.len()).filter(|seq| matches!(events[*seq].body, Body::ToolCalled { .. })).collect();
    let store = runtime.store();
    let meta = store.meta(whole.id()).await.unwrap();
    // After the first call, and in the second one.
    for (name, end, is_replaced) in [("after", calls[1], false), ("within", calls[1] + 1, true)] {
        let id = LogId::new(name).unwrap();
        let claim = store.create(&id, &meta).await.unwrap();
        store.append(&claim, &events[..end]).await.unwrap();
        store.release(claim).await.unwrap();
        store.copy_blobs(&events, whole.id(), (store, &id)).await.unwrap();
        let mut found = Vec::new();
        for _ in 0..2 {
            let conversation = runtime.open(&id, &team, OpenOptions::default()).await.unwrap();
            conversation.release().await.unwrap();
            let work = place.work_dir(&id).unwrap();
            assert_eq!(std::fs::read_to_string(work.join("a.txt")).unwrap(), "one");
            found.push(std::fs::metadata(&work).unwrap().ino());
        }
        assert_eq!(found[0] != found[1], is_replaced, "{name}");
    }
}

/// Each conversation has a folder of its own, whichever tenant it is of. A volume that is not mounted is an error, and nothing is made at its
/// place.
#[tokio::test]
async fn files_in_a_volume_are_those_of_all_machines() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("team.yaml");
    std::fs::write(&file, WRITES).unwrap();
    let volume = dir.path().join("volume");
    let place = StoreLocation::new(dir.path().join("conversations.db"))
        .with_files(FilesPolicy::Volume(volume.clone()));
    let team = prepared(&file, &place).await;
    let runtime = Runtime::open_at(place.clone()).unwrap();
    let unmounted = runtime.begin(&team.run()).await.err().unwrap();
    assert!(matches!(unmounted, Error::NoVolume(_)), "{unmounted:?}");
    assert!(unmounted.hint().unwrap().contains("mount it") && !volume.exists());
    assert!(runtime.list(&ListQuery::default()).await.unwrap().logs.is_empty(), "it leaves no conversation");
    std::fs::create_dir(&volume).unwrap();
    let conversation = runtime.begin(&team.run()).await.unwrap();
    let id = conversation.id().clone();
    conversation.run().await.unwrap();
    conversation.release().await.unwrap();
    drop((conversation, runtime));
    let read = std::fs::read_to_string(volume.join(id.as_str()).join("b/c.txt"));
    assert_eq!(read.unwrap(), "two");
    let runtime = Runtime::open_at(place.clone()).unwrap();
    let again = runtime.open(&id, &team, OpenOptions::default()).await.unwrap();
    again.send(Message::new(Name::user(), "Read it.")).await.unwrap();
    again.run().await.unwrap();
    let is_read = |event: &Arc<Event>| match &event.body {
        Body::ToolReturned { result: outcome, .. } => outcome.text() == "two",
        _ => false,
    };
    assert!(again.events().await.iter().any(is_read));
    again.release().await.unwrap();
    // A conversation of the name of a tenant has another folder than that tenant.
    let ann = place.of_tenant("ann", dir.path().join("ann"));
    let root = |place: &StoreLocation, name: &str| place.work_dir(&LogId::new(name).unwrap()).unwrap();
    assert!(!root(&ann, "a").starts_with(root(&place, "ann")) && root(&ann, "a").starts_with(&volume));
    std::fs::remove_dir_all(&volume).unwrap();
    let refused = runtime.open(&id, &team, OpenOptions::default()).await.err().unwrap();
    assert!(matches!(refused, Error::NoVolume(_)), "{refused:?}");
    let refused = runtime.files(&id).await.err().unwrap();
    let what = format!("the files of `{id}` are in the volume `{}`, which is not here", volume.display());
    assert_eq!(refused.to_string(), what);
}
