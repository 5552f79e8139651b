//! Messages that are sent into a conversation from outside, while it runs and while it waits.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{log_of, name, pair_chat, run_or_resume};
use futures_util::future::{Either, join, select};
use polylogue::policies::{sequential, with_late_joiner, with_termination};
use polylogue::stop::{max_turns, says};
use polylogue::{Assistant, Function, parallel, round_robin};
use polylogue_core::{
    Act, Agent, AnyAgent, AnyModel, AnyStore, AnyTool, Body, Chat, Claim, Confirmation, DefaultAnswer,
    DeltaRef, DeltaSink, Error, Event, InputRequest, Instruction, JoinHistory, LimitOverrides, Limits, Log,
    LogHandle, LogId, Message, Model, ModelError, Name, OpenQuestion, Path, Policy, Reply, Request,
    Responder, Result, Status, Step, StopReason, Store, StoreError, StoreWrapper, Summary, TeamChanged,
    Timestamp, Tool, ToolCall, ToolCx, ToolError, ToolResult, ToolSpec, Transcript, Turn, TurnRequest,
    Update, View, ViewOptions,
};
use polylogue_store::Memory;

/// Where an agent of the test finds the log that it sends to.
type Outside = Arc<Mutex<Option<LogHandle>>>;

/// Says how many messages it sees. In its first turn, someone outside sends a message, if there is an outside.
struct Counter(Name, Option<Outside>);

impl Agent for Counter {
    fn name(&self) -> &Name {
        &self.0
    }
    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        if turn.transcript().turns_of(&self.0) == 0
            && let Some(outside) = &self.1
        {
            let outside = outside.lock().unwrap();
            outside.as_ref().unwrap().send(Message::new(Name::user(), "wait, DONE is not enough"));
        }
        let seen = turn.transcript().messages().count();
        Ok(Act::say(format!("I see {seen}")))
    }
}

/// Asks a person in its turn.
struct Asking(Name);

impl Agent for Asking {
    fn name(&self) -> &Name {
        &self.0
    }
    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        Ok(match turn.answer() {
            Some(answer) => Act::say(answer),
            None => Act::Ask("what now?".into()),
        })
    }
}

/// Takes turns four times.
fn in_turn(chat: &Transcript) -> Step {
    match chat.turns() {
        turns if turns >= 4 => Step::close(StopReason::Turns { limit: 4, next: None }, chat),
        turns => {
            let who = &chat.participants()[usize::try_from(turns).unwrap() % chat.participants().len()];
            Step::Turn(TurnRequest::to_all(who.clone()))
        }
    }
}

fn counters(outside: &Outside) -> Chat {
    let (a, b) = (Counter(name("A"), Some(Arc::clone(outside))), Counter(name("B"), None));
    Chat::builder("count").participant(a).participant(b).policy(in_turn).build().unwrap()
}

async fn play(prefix: &[Arc<Event>]) -> Vec<Arc<Event>> {
    let outside = Outside::default();
    let mut log = log_of(prefix).await;
    *outside.lock().unwrap() = Some(log.handle());
    let chat = counters(&outside);
    let status = run_or_resume(&chat, &mut log, "go").await.unwrap().status;
    assert!(matches!(status, Status::Closed { .. }), "{status:?}");
    log.events().await
}

fn kinds(events: &[Arc<Event>]) -> Vec<String> {
    let text = |message: &Message| message.text().into_owned();
    let kind = |event: &Arc<Event>| match &event.body {
        Body::Message(message) => format!("{}: {}", message.from, text(message)),
        Body::Sent(message) => format!("sent: {}", text(message)),
        _ => String::new(),
    };
    events.iter().map(kind).filter(|kind| !kind.is_empty()).collect()
}

#[tokio::test]
async fn a_message_to_a_running_conversation_is_seen_from_the_next_turn_on() {
    let events = play(&[]).await;
    // The task, then the message of A and the one from outside, then one more with each turn.
    assert_eq!(
        kinds(&events),
        ["A: I see 1", "sent: wait, DONE is not enough", "B: I see 3", "A: I see 4", "B: I see 5"]
    );
    let chat = Transcript::from_events(&Path::root(), &events).unwrap();
    assert_eq!(chat.turns(), 4, "it is not a turn");
    let view = View::of(&chat, &name("B"), ViewOptions::default());
    let whole = serde_json::to_string(&view.entries()).unwrap();
    assert!(whole.find("I see 1").unwrap() < whole.find("DONE is not enough").unwrap(), "{whole}");
}

#[tokio::test]
async fn a_log_that_was_cut_anywhere_continues_as_it_went() {
    let whole = play(&[]).await;
    let sent = whole.iter().position(|event| matches!(event.body, Body::Sent(_))).unwrap();
    for cut in 1..whole.len() {
        let again = play(&whole[..cut]).await;
        let bodies =
            |events: &[Arc<Event>]| events.iter().map(|event| event.body.clone()).collect::<Vec<_>>();
        match cut == sent {
            // It was not in the log yet and is not sent again: the conversation does not have it.
            true => assert_eq!(kinds(&again), ["A: I see 1", "B: I see 2", "A: I see 3", "B: I see 4"]),
            false => assert_eq!(bodies(&whole), bodies(&again), "cut before event {cut}"),
        }
    }
}

#[tokio::test]
async fn a_message_to_a_waiting_conversation_takes_effect_when_the_turn_is_over() {
    let chat = || {
        let (a, b) = (Asking(name("A")), Counter(name("B"), None));
        Chat::builder("ask").participant(a).participant(b).policy(in_turn).build().unwrap()
    };
    let mut log = log_of(&[]).await;
    let Status::Waiting(questions) = chat().run_in(&mut log, "go").await.unwrap().status else {
        panic!("not waiting")
    };
    log.send(Message::new(Name::user(), "hurry")).await.unwrap();
    let within = log.transcript().await.unwrap();
    assert_eq!(within.messages().count(), 1, "the turn is open");
    let before = log.events().await;
    // Another process continues it.
    drop(log);
    let mut log = log_of(&before).await;
    let (at, question) = &questions[0];
    log.answer(at, &question.who, "nothing").await.unwrap();
    let result = chat().resume(&mut log).await.unwrap();
    assert!(matches!(result.status, Status::Waiting(_)), "{result}");
    let said: Vec<_> = result.messages().map(|message| message.text()).collect();
    assert_eq!(said, ["go", "hurry", "nothing", "I see 3"], "as it was said");
    let events = log.events().await;
    assert_eq!(kinds(&events), ["sent: hurry", "A: nothing", "B: I see 3"]);
    let lines: Vec<String> = log
        .transcript()
        .await
        .unwrap()
        .all_messages()
        .iter()
        .map(|line| line.message.text().into_owned())
        .collect();
    assert_eq!(lines, ["go", "nothing", "hurry", "I see 3"]);
}

#[tokio::test]
async fn a_message_to_a_closed_conversation_reopens_it_and_one_that_has_not_begun_takes_none() {
    let mut log = log_of(&play(&[]).await).await;
    log.send(Message::new(Name::user(), "more")).await.unwrap();
    assert!(matches!(&log.events().await.last().unwrap().body, Body::Reopened { message: Some(_), .. }));
    let error = log_of(&[]).await.send(Message::new(Name::user(), "hello")).await.unwrap_err();
    assert_eq!(error.to_string(), "the conversation `test` has not begun");
}

/// In its first turn, gives these instructions from outside; says its name in every turn.
struct Steered(Name, Vec<Instruction>, Outside);

impl Agent for Steered {
    fn name(&self) -> &Name {
        &self.0
    }
    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        if turn.transcript().turns_of(&self.0) == 0
            && let Some(outside) = self.2.lock().unwrap().as_ref()
        {
            self.1.iter().for_each(|instruction| drop(outside.instruct(instruction.clone())));
        }
        Ok(Act::say(self.0.as_str()))
    }
}

fn steered(policy: impl Policy, instructions: Vec<Instruction>, outside: &Outside) -> Chat {
    let [a, b, c] = [("A", instructions), ("B", Vec::new()), ("C", Vec::new())]
        .map(|(who, instructions)| Steered(name(who), instructions, Arc::clone(outside)));
    let chat = Chat::builder("steered").participant(a).participant(b).participant(c);
    chat.policy(with_termination(policy, max_turns(4))).build().unwrap()
}

/// Runs the chat, with who continues it when it is paused.
async fn run_steered(chat: &Chat, log: &mut Log, outside: &Outside) -> Status {
    let handle = log.handle();
    *outside.lock().unwrap() = Some(handle.clone());
    let mut updates = handle.subscribe().await;
    let resumes = async {
        while let Some(update) = updates.next().await {
            if matches!(&update, Update::Event(event) if event.body == Body::Paused) {
                handle.instruct(Instruction::Resume).confirmed().await.unwrap();
            }
        }
    };
    match select(pin!(run_or_resume(chat, log, "go")), pin!(resumes)).await {
        Either::Left((run, _)) => run.unwrap().status,
        Either::Right(_) => panic!("the log is gone"),
    }
}

#[tokio::test]
async fn a_chosen_speaker_is_next_and_the_order_continues_after_them() {
    let outside = Outside::default();
    let next = || vec![Instruction::NextSpeaker { who: name("C") }];
    let mut log = log_of(&[]).await;
    run_steered(&steered(round_robin(), next(), &outside), &mut log, &outside).await;
    let whole = log.events().await;
    assert_eq!(kinds(&whole), ["A: A", "C: C", "A: A", "B: B"]);
    for cut in 1..whole.len() {
        let mut log = log_of(&whole[..cut]).await;
        let again = Outside::default();
        steered(round_robin(), Vec::new(), &again).resume(&mut log).await.unwrap();
        let chosen = whole[..cut].iter().any(|event| matches!(event.body, Body::NextSpeaker { .. }));
        let order = if chosen { ["A: A", "C: C", "A: A", "B: B"] } else { ["A: A", "B: B", "C: C", "A: A"] };
        assert_eq!(kinds(&log.events().await), order, "cut before event {cut}");
    }
}

#[tokio::test]
async fn a_late_joiner_whose_condition_holds_joins_before_a_chosen_speaker() {
    let outside = Outside::default();
    let chat = |instructions: Vec<Instruction>| {
        let steered = |who, instructions| Steered(name(who), instructions, Arc::clone(&outside));
        let (a, b, d) = (steered("A", instructions), steered("B", Vec::new()), steered("D", Vec::new()));
        let policy = with_late_joiner(round_robin(), name("D"), says("A"), JoinHistory::All);
        Chat::builder("late")
            .participant(a)
            .participant(b)
            .late_joiner(d)
            .policy(with_termination(policy, max_turns(3)))
            .build()
            .unwrap()
    };
    let mut log = log_of(&[]).await;
    let next = Instruction::NextSpeaker { who: name("A") };
    run_steered(&chat(vec![next]), &mut log, &outside).await;
    let whole = log.events().await;
    assert_eq!(kinds(&whole), ["A: A", "A: A", "B: B"]);
    *outside.lock().unwrap() = None;
    for cut in 1..=whole.len() {
        let mut log = log_of(&whole[..cut]).await;
        chat(Vec::new()).resume(&mut log).await.unwrap();
        let events = log.events().await;
        let turns = events.iter().filter(|event| matches!(event.body, Body::TurnStarted { .. }));
        let second = turns.map(|event| event.seq).nth(1).unwrap();
        let joined = events.iter().find(|event| matches!(event.body, Body::Joined { .. })).unwrap();
        assert!(joined.seq < second, "cut before event {cut}: {:?}", kinds(&events));
    }
}

#[tokio::test]
async fn a_next_speaker_is_refused_where_the_pattern_decides_or_no_participant_has_that_name() {
    let refused = |events: &[Arc<Event>]| {
        let why = events.iter().find_map(|event| match &event.body {
            Body::Refused { why, .. } => Some(why.to_string()),
            _ => None,
        });
        why.unwrap()
    };
    let outside = Outside::default();
    let next = |who| vec![Instruction::NextSpeaker { who: name(who) }];
    let mut log = log_of(&[]).await;
    run_steered(&steered(in_turn, next("C"), &outside), &mut log, &outside).await;
    let events = log.events().await;
    assert_eq!(refused(&events), "the pattern of this chat decides itself who speaks next");
    assert_eq!(kinds(&events), ["A: A", "B: B", "C: C", "A: A"]);
    let mut log = log_of(&[]).await;
    run_steered(&steered(round_robin(), next("Zoe"), &outside), &mut log, &outside).await;
    assert_eq!(refused(&log.events().await), "`Zoe` does not take part now; present: `A`, `B`, `C`");
}

#[tokio::test]
async fn in_a_sequence_one_who_has_not_spoken_can_be_next_and_the_others_follow() {
    let next = |who| Instruction::NextSpeaker { who: name(who) };
    let outside = Outside::default();
    let mut log = log_of(&[]).await;
    run_steered(&steered(sequential(), vec![next("C"), next("A")], &outside), &mut log, &outside).await;
    let whole = log.events().await;
    assert_eq!(kinds(&whole), ["A: A", "C: C", "B: B"]);
    let why = whole.iter().find_map(|event| match &event.body {
        Body::Refused { why, .. } => Some(why.to_string()),
        _ => None,
    });
    assert_eq!(why.as_deref(), Some("`A` has spoken, and every participant speaks once"));
}

/// What people and programs did to a conversation, in order.
fn instructed(events: &[Arc<Event>]) -> Vec<Body> {
    let is = |body: &Body| {
        matches!(
            body,
            Body::Sent(_)
                | Body::Paused
                | Body::Resumed
                | Body::NextSpeaker { .. }
                | Body::LimitsChanged { .. }
                | Body::Refused { .. }
                | Body::Cancelled { .. }
                | Body::TeamChanged(_)
        )
    };
    events.iter().map(|event| event.body.clone()).filter(is).collect()
}

#[tokio::test]
async fn a_log_with_every_kind_of_instruction_can_be_cut_anywhere() {
    let more = LimitOverrides { calls: Some(2_000), ..LimitOverrides::default() };
    let several = vec![
        Instruction::Send(Message::new(name("user"), "shorter, please")),
        Instruction::Pause,
        Instruction::NextSpeaker { who: name("C") },
        Instruction::NextSpeaker { who: name("Zoe") },
        Instruction::RaiseLimits { more, by: None },
    ];
    let kinds_of_several =
        ["Sent", "Paused", "Resumed", "NextSpeaker", "Refused", "LimitsChanged", "TeamChanged"];
    check_cuts(several, &kinds_of_several).await;
    check_cuts(vec![Instruction::Cancel { now: false }], &["Cancelled", "TeamChanged"]).await;
}

/// Runs a chat with these instructions, then with another version of its team, and cuts the log everywhere.
async fn check_cuts(instructions: Vec<Instruction>, expected: &[&str]) {
    let outside = Outside::default();
    let mut log = log_of(&[]).await;
    run_steered(&steered(round_robin(), instructions, &outside), &mut log, &outside).await;
    let changes = vec!["agent `A`: `system` has changed".into()];
    let team =
        TeamChanged { digest: "d".into(), changes, harmless: false, team: serde_json::json!({"name": "t"}) };
    log.change_team(team).await.unwrap();
    let chat = steered(round_robin(), Vec::new(), &Outside::default());
    let mut log = log_of(&log.events().await).await;
    chat.resume(&mut log).await.unwrap();
    let whole = log.events().await;
    let all = instructed(&whole);
    for kind in expected {
        assert!(all.iter().any(|body| format!("{body:?}").starts_with(kind)), "no {kind} in {all:?}");
    }
    for cut in 1..whole.len() {
        let mut log = log_of(&whole[..cut]).await;
        let status = chat.resume(&mut log).await.unwrap().status;
        assert!(matches!(status, Status::Closed { .. }), "cut before event {cut}: {status:?}");
        let events = log.events().await;
        assert_eq!(events[..cut], whole[..cut], "nothing before event {cut} is lost");
        // Nothing is instructed twice: a pause that was cut off ends, and that is all.
        let (before, mut after) = (instructed(&whole[..cut]), instructed(&events[cut..]));
        after.retain(|body| *body != Body::Resumed);
        assert_eq!(after, [], "cut before event {cut}");
        let chosen = before.iter().any(|body| matches!(body, Body::NextSpeaker { .. }));
        let order = if chosen { ["A: A", "C: C", "A: A", "B: B"] } else { ["A: A", "B: B", "C: C", "A: A"] };
        let said: Vec<String> = kinds(&events).into_iter().filter(|line| !line.contains("shorter")).collect();
        assert_eq!(said, order, "cut before event {cut}");
    }
}

#[tokio::test]
async fn a_paused_conversation_begins_no_turn_until_it_is_resumed_and_its_log_can_be_cut_anywhere() {
    let outside = Outside::default();
    let mut log = log_of(&[]).await;
    let status =
        run_steered(&steered(round_robin(), vec![Instruction::Pause], &outside), &mut log, &outside).await;
    assert!(matches!(status, Status::Closed { .. }), "{status:?}");
    let whole = log.events().await;
    let at = |body: &Body| whole.iter().position(|event| event.body == *body).unwrap();
    let between = &whole[at(&Body::Paused)..at(&Body::Resumed)];
    assert!(!between.iter().any(|event| matches!(event.body, Body::TurnStarted { .. })), "{between:?}");
    for cut in 1..whole.len() {
        let mut log = log_of(&whole[..cut]).await;
        steered(round_robin(), Vec::new(), &Outside::default()).resume(&mut log).await.unwrap();
        assert_eq!(kinds(&log.events().await), kinds(&whole), "cut before event {cut}");
        let paused = Summary::of(log.events().await.iter().map(Arc::as_ref), false).is_paused;
        assert!(!paused, "cut before event {cut}");
    }
}

#[tokio::test]
async fn a_paused_conversation_that_is_resumed_while_it_is_held_begins_a_turn_when_it_is_held_no_more() {
    let outside = Outside::default();
    let log = log_of(&[]).await;
    let handle = log.handle();
    let holder = {
        let handle = handle.clone();
        async move {
            handle.rests().await;
            let hold = handle.hold().unwrap();
            handle.resumed().await;
            // Instructions are carried out meanwhile.
            let title = Instruction::ChangeTitle { title: "held".into() };
            handle.instruct(title).confirmed().await.unwrap();
            drop(hold);
            std::future::pending::<()>().await
        }
    };
    let chat = steered(round_robin(), vec![Instruction::Pause], &outside);
    let run = async {
        let mut log = log;
        run_steered(&chat, &mut log, &outside).await;
        log.events().await
    };
    let events = match select(pin!(run), pin!(holder)).await {
        Either::Left((events, _)) => events,
        Either::Right(_) => panic!("it holds nothing any more"),
    };
    let at = |is: fn(&Body) -> bool| events.iter().position(|event| is(&event.body)).unwrap();
    let (resumed, titled) =
        (at(|body| *body == Body::Resumed), at(|body| matches!(body, Body::TitleChanged { .. })));
    let between = &events[resumed..titled];
    assert!(resumed < titled && between.len() == 1, "{between:?}");
    let waits = events[titled].ran_ms - events[resumed].ran_ms;
    assert_eq!(waits, 0, "it is no running time");
    assert_eq!(kinds(&events), ["A: A", "B: B", "C: C", "A: A"]);
}

#[tokio::test]
async fn a_limit_that_is_raised_while_it_runs_counts_from_then_on() {
    let outside = Outside::default();
    let more = LimitOverrides { turns: Some(2), ..LimitOverrides::default() };
    for (instructions, turns) in [(Vec::new(), 1), (vec![Instruction::RaiseLimits { more, by: None }], 3)] {
        let limits = Limits { turns: Some(1), ..Limits::default() };
        let mut log = log_of(&[]).await.limits(limits);
        run_steered(&steered(round_robin(), instructions, &outside), &mut log, &outside).await;
        assert_eq!(kinds(&log.events().await).len(), turns);
    }
}

/// Streams half of a reply and gets no further, unless it is the second call.
struct Slow(Outside, AtomicUsize);

impl Model for Slow {
    fn name(&self) -> &str {
        "test:slow"
    }
    async fn complete(
        &self,
        _: &Request<'_>,
        deltas: &mut dyn DeltaSink,
    ) -> std::result::Result<Reply, ModelError> {
        if self.1.fetch_add(1, Ordering::Relaxed) > 0 {
            return Ok(Reply::new("the whole reply"));
        }
        deltas.push(DeltaRef::Text("half a "));
        drop(self.0.lock().unwrap().as_ref().unwrap().instruct(Instruction::Cancel { now: true }));
        std::future::pending().await
    }
}

#[tokio::test]
async fn what_had_arrived_of_a_cancelled_reply_is_kept_and_counts_as_said_if_its_turn_is_given_up() {
    let outside = Outside::default();
    let model = AnyModel::new(Slow(Arc::clone(&outside), AtomicUsize::new(0)));
    let agents = || ["Ann", "Bob"].map(|who| Assistant::new(who, model.clone()).unwrap());
    let chat = || {
        let [ann, bob] = agents();
        pair_chat("slow", ann, bob, 2)
    };
    let mut log = log_of(&[]).await;
    assert_eq!(run_steered(&chat(), &mut log, &outside).await, Status::Cancelled);
    let stopped = log.events().await;
    let has = |is: fn(&Body) -> bool| stopped.iter().filter(|event| is(&event.body)).count();
    assert_eq!(has(|body| matches!(body, Body::ReplyInterrupted { text, .. } if **text == *"half a ")), 1);
    assert_eq!(has(|body| matches!(body, Body::Cancelled { now: true })), 1);
    assert_eq!(has(|body| matches!(body, Body::Charged(_))), 1, "the aborted call is billed: {stopped:?}");
    // Running it again asks again.
    let mut resumed = log_of(&stopped).await;
    chat().resume(&mut resumed).await.unwrap();
    assert_eq!(kinds(&resumed.events().await), ["Ann: the whole reply", "Bob: the whole reply"]);
    // Giving the turn up keeps the half.
    let mut given_up = log_of(&stopped).await;
    chat().end_open_turns(&mut given_up).await.unwrap();
    chat().resume(&mut given_up).await.unwrap();
    let half = "Ann: half a [cut off by the user]";
    let said: Vec<String> =
        kinds(&given_up.events().await).iter().map(|line| line.replace('\n', "")).collect();
    assert_eq!(said, [half, "Bob: the whole reply"]);
    let transcript = given_up.transcript().await.unwrap();
    let entries =
        serde_json::to_string(&View::of(&transcript, &name("Bob"), ViewOptions::default()).entries())
            .unwrap();
    assert!(entries.contains("cut off by the user"), "{entries}");
}

/// Always replies the same.
struct Fixed;

impl Model for Fixed {
    fn name(&self) -> &str {
        "test:fixed"
    }
    async fn complete(
        &self,
        _: &Request<'_>,
        _: &mut dyn DeltaSink,
    ) -> std::result::Result<Reply, ModelError> {
        Ok(Reply::new("42"))
    }
}

#[tokio::test]
async fn giving_up_turns_keeps_what_others_of_the_same_step_have_said() {
    for (failing, said) in [
        (&["Bob"][..], &["Ann: 42"][..]),
        // Its message is not logged before that of Ann.
        (&["Ann"], &["Bob: 42"]),
        (&["Ann", "Bob"], &[]),
    ] {
        let agent = |who: &str| match failing.contains(&who) {
            true => AnyAgent::new(Function::new(who, |_| Err(Error::agent("no ink"))).unwrap()),
            false => AnyAgent::new(Assistant::new(who, AnyModel::new(Fixed)).unwrap()),
        };
        let chat = Chat::builder("both").participant(agent("Ann")).participant(agent("Bob"));
        let chat = chat.policy(parallel()).build().unwrap();
        let mut log = log_of(&[]).await;
        chat.run_in(&mut log, "go").await.unwrap_err();
        chat.end_open_turns(&mut log).await.unwrap();
        let transcript = log.transcript().await.unwrap();
        assert_eq!(transcript.current_speakers().count(), 0, "{failing:?}");
        let lines: Vec<String> = transcript
            .replies()
            .map(|line| format!("{}: {}", line.message.from, line.message.text()))
            .collect();
        assert_eq!(lines, said, "{failing:?}");
        for who in ["Ann", "Bob"] {
            let view = View::of(&transcript, &name(who), ViewOptions::default());
            let text = serde_json::to_string(&view.entries()).unwrap();
            assert_eq!(text.contains("42"), !said.is_empty(), "{who}, {failing:?}: {text}");
        }
    }
}

/// A model that cancels its conversation this many times, and gets no further.
struct Canceling(Outside, usize);

impl Model for Canceling {
    fn name(&self) -> &str {
        "test:canceling"
    }
    async fn complete(
        &self,
        _: &Request<'_>,
        _: &mut dyn DeltaSink,
    ) -> std::result::Result<Reply, ModelError> {
        for _ in 0..self.1 {
            drop(self.0.lock().unwrap().as_ref().unwrap().instruct(Instruction::Cancel { now: true }));
        }
        std::future::pending().await
    }
}

/// A store whose appends are not done before they have been polled this many times.
struct Polled(AnyStore, usize);

impl StoreWrapper for Polled {
    fn inner(&self) -> &AnyStore {
        &self.0
    }
    async fn append(&self, claim: &Claim, batch: &[Arc<Event>]) -> std::result::Result<(), StoreError> {
        for _ in 0..self.1 {
            tokio::task::yield_now().await;
        }
        self.0.append(claim, batch).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_ends_while_further_instructions_are_being_carried_out() {
    for (times, polls) in (1..4).flat_map(|times| (0..4).map(move |polls| (times, polls))) {
        let store = AnyStore::new(Polled(Memory::default().into(), polls));
        let mut log = Log::create(store, LogId::new("sent").unwrap()).await.unwrap();
        let outside = Outside::default();
        *outside.lock().unwrap() = Some(log.handle());
        let ann = Assistant::new("Ann", AnyModel::new(Canceling(outside, times))).unwrap();
        let chat = Chat::builder("canceled").participant(ann).policy(round_robin()).build().unwrap();
        // A minute of virtual time, which passes only when nothing else can happen.
        let run = tokio::time::timeout(Duration::from_secs(60), chat.run_in(&mut log, "go"));
        let ended = run.await.unwrap_or_else(|_| panic!("canceled {times} times, {polls} polls: it hangs"));
        assert_eq!(ended.unwrap().status, Status::Cancelled);
        let events = log.events().await;
        let canceled = events.iter().filter(|event| matches!(event.body, Body::Cancelled { .. })).count();
        assert_eq!(canceled, times, "an instruction that was given is in the log");
    }
}

/// A store in which someone outside gives an instruction while a message is appended that the policy posts.
struct Instructing(Polled, Outside, Instruction);

impl StoreWrapper for Instructing {
    fn inner(&self) -> &AnyStore {
        self.0.inner()
    }
    async fn append(&self, claim: &Claim, batch: &[Arc<Event>]) -> std::result::Result<(), StoreError> {
        let is_posted = batch.iter().any(|event| matches!(event.body, Body::Posted(_)));
        let outside = self.1.lock().unwrap().take_if(|_| is_posted);
        if let Some(outside) = outside {
            drop(outside.instruct(self.2.clone()));
        }
        StoreWrapper::append(&self.0, claim, batch).await
    }
}

#[tokio::test]
async fn no_turn_begins_after_a_cancellation_or_a_pause_in_the_log() {
    let instructions = [Instruction::Cancel { now: false }, Instruction::Pause];
    for (given, polls) in instructions.iter().flat_map(|given| (0..4).map(move |polls| (given, polls))) {
        let (outside, polled) = (Outside::default(), Polled(Memory::default().into(), polls));
        let store = AnyStore::new(Instructing(polled, Arc::clone(&outside), given.clone()));
        let mut log = Log::create(store, LogId::new("sent").unwrap()).await.unwrap();
        let handle = log.handle();
        *outside.lock().unwrap() = Some(handle.clone());
        let policy = |chat: &Transcript| match (chat.turns(), chat.last()) {
            (0, Some(last)) if last.message.from == name("Host") => {
                Step::Turn(TurnRequest::to_all(name("Ann")))
            }
            (0, _) => Step::Post(Message::new(name("Host"), "Begin.")),
            _ => Step::close(StopReason::Finished, chat),
        };
        let chat = Chat::builder("solo").participant(Counter(name("Ann"), None)).policy(policy);
        let chat = chat.build().unwrap();
        let run = pin!(chat.run_in(&mut log, "go"));
        match select(run, pin!(handle.rests())).await {
            Either::Left((ended, _)) => assert_eq!(ended.unwrap().status, Status::Cancelled),
            Either::Right(_) => assert_eq!(*given, Instruction::Pause),
        }
        let events = handle.events().await;
        let is_begun = events.iter().any(|event| matches!(event.body, Body::TurnStarted { .. }));
        let summary = Summary::of(events.iter().map(|event| &**event), true);
        assert!(!is_begun && summary.is_stopped(), "{given}, {polls} polls: {events:?}");
    }
}

/// Says its name. In its first turn, someone outside sends a message and pauses the conversation.
struct Paused(Name, Outside);

impl Agent for Paused {
    fn name(&self) -> &Name {
        &self.0
    }
    async fn act(&self, _: &mut Turn<'_>) -> Result<Act> {
        let outside = self.1.lock().unwrap().take();
        if let Some(outside) = outside {
            drop(outside.send(Message::new(Name::user(), "And now?")));
            drop(outside.instruct(Instruction::Pause));
        }
        Ok(Act::say(self.0.as_str()))
    }
}

/// The message is for the outermost chat, whose turn is open: the nested chat rests all the same.
#[tokio::test]
async fn a_nested_chat_rests_in_a_pause_while_a_message_waits_for_the_next_step() {
    let outside = Outside::default();
    let inner = Chat::builder("inner").participant(Paused(name("Ann"), Arc::clone(&outside)));
    let inner = inner.participant(Counter(name("Bob"), None)).policy(sequential()).build().unwrap();
    let chat = Chat::builder("outer").participant(inner).policy(sequential()).build().unwrap();
    let mut log = log_of(&[]).await;
    let handle = log.handle();
    *outside.lock().unwrap() = Some(handle.clone());
    let resumed = async {
        handle.rests().await;
        drop(handle.instruct(Instruction::Resume));
    };
    // A run that does not rest takes all the time of its thread.
    let run = tokio::time::timeout(Duration::from_secs(10), join(chat.run_in(&mut log, "go"), resumed));
    let (ended, ()) = run.await.unwrap();
    assert!(matches!(ended.unwrap().status, Status::Closed { .. }));
    let events = log.events().await;
    assert!(events.iter().any(|event| matches!(event.body, Body::Sent(_))));
}

/// Asks a person who has a second to answer.
struct Hurried;

impl Agent for Hurried {
    fn name(&self) -> &Name {
        static NAME: std::sync::LazyLock<Name> = std::sync::LazyLock::new(|| Name::new("Pat").unwrap());
        &NAME
    }
    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        Ok(match turn.answer() {
            Some(answer) => Act::say(answer),
            None => {
                let default = Some(DefaultAnswer { after_ms: 1_000, text: "the first".into() });
                Act::Ask(InputRequest { default, ..InputRequest::from("which one?") })
            }
        })
    }
}

#[tokio::test]
async fn a_question_that_is_not_answered_in_time_gets_its_default_answer_once_also_after_a_restart() {
    let chat = || Chat::builder("ask").participant(Hurried).policy(sequential()).build().unwrap();
    let mut log = log_of(&[]).await;
    assert!(matches!(chat().run_in(&mut log, "go").await.unwrap().status, Status::Waiting(_)));
    let asked = log.events().await;
    let open = OpenQuestion::of(&asked);
    assert_eq!(open[0].until(), Some(Timestamp(1_000)));
    // Another process, in time and too late.
    let mut early = log_of(&asked).await.clock(|| Timestamp(999));
    assert!(matches!(chat().resume(&mut early).await.unwrap().status, Status::Waiting(_)));
    let mut late = log_of(&asked).await.clock(|| Timestamp(1_000));
    assert!(matches!(chat().resume(&mut late).await.unwrap().status, Status::Closed { .. }));
    let events = late.events().await;
    let answers: Vec<&Body> = events
        .iter()
        .map(|event| &event.body)
        .filter(|body| matches!(body, Body::InputProvided { .. }))
        .collect();
    let answer = Body::InputProvided { to: name("Pat"), text: "the first".into(), by: Responder::Timeout };
    assert_eq!(answers, [&answer]);
    assert_eq!(kinds(&events), ["Pat: the first"]);
}

/// Calls a tool, during which these instructions come.
struct Calling(Vec<Instruction>, Outside);

impl Agent for Calling {
    fn name(&self) -> &Name {
        static NAME: std::sync::LazyLock<Name> = std::sync::LazyLock::new(|| Name::new("A").unwrap());
        &NAME
    }
    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let call = ToolCall { id: "1".into(), tool: "wait".into(), args: serde_json::json!({}) };
        let (instructions, outside) = (self.0.clone(), Arc::clone(&self.1));
        let tool = AnyTool::new(Waits(
            ToolSpec::new("wait", "Waits.", serde_json::json!({"type": "object"})),
            instructions,
            outside,
        ));
        let outcomes = turn.call_tools(&[tool], &[call]).await?;
        Ok(Act::say(format!("{:?}", outcomes[0].status)))
    }
}

struct Waits(ToolSpec, Vec<Instruction>, Outside);

impl Tool for Waits {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }
    async fn call(&self, _: serde_json::Value, _: &ToolCx<'_>) -> std::result::Result<ToolResult, ToolError> {
        let outside = self.2.lock().unwrap().clone();
        let given: Vec<Confirmation> = outside
            .iter()
            .flat_map(|outside| self.1.iter().map(|given| outside.instruct(given.clone())))
            .collect();
        // What is carried out at once is in the log while the call runs.
        for (confirmation, instruction) in given.into_iter().zip(&self.1) {
            if !matches!(instruction, Instruction::Send(_)) {
                confirmation.confirmed().await.unwrap();
            }
        }
        Ok(ToolResult::done("waited"))
    }
}

#[tokio::test]
async fn instructions_during_a_tool_call_stand_in_the_log_where_it_can_be_cut_and_its_result_is_kept() {
    let more = LimitOverrides { calls: Some(2_000), ..LimitOverrides::default() };
    let sent = Instruction::Send(Message::new(Name::user(), "hurry"));
    let outside = Outside::default();
    let chat = |given: Vec<Instruction>| {
        let (a, b) = (Calling(given, Arc::clone(&outside)), Counter(name("B"), None));
        pair_chat("calls", a, b, 2)
    };
    let given =
        vec![sent, Instruction::RaiseLimits { more, by: None }, Instruction::Pause, Instruction::Resume];
    let mut log = log_of(&[]).await;
    *outside.lock().unwrap() = Some(log.handle());
    chat(given).run_in(&mut log, "go").await.unwrap();
    let whole = log.events().await;
    assert_eq!(kinds(&whole), ["A: Done", "sent: hurry", "B: I see 3"]);
    let at = |is: fn(&Body) -> bool| whole.iter().position(|event| is(&event.body)).unwrap();
    let within = at(|body| matches!(body, Body::ToolCalled { .. }))..at(|body| {
        matches!(body, Body::ToolReturned { .. })
    });
    for at in [
        at(|body| matches!(body, Body::LimitsChanged { .. })),
        at(|body| *body == Body::Paused),
        at(|body| *body == Body::Resumed),
    ] {
        assert!(within.contains(&at), "{whole:?}");
    }
    for cut in 1..whole.len() {
        *outside.lock().unwrap() = None;
        let mut log = log_of(&whole[..cut]).await;
        chat(Vec::new()).resume(&mut log).await.unwrap();
        let events = log.events().await;
        let was_called = whole[..cut].iter().any(|event| matches!(event.body, Body::ToolCalled { .. }));
        let was_sent = whole[..cut].iter().any(|event| matches!(event.body, Body::Sent(_)));
        let is_unknown = was_called && cut <= within.end;
        let said = if is_unknown { "A: Unknown" } else { "A: Done" };
        let seen = if was_sent { "B: I see 3" } else { "B: I see 2" };
        let wanted: Vec<&str> = if was_sent { vec![said, "sent: hurry", seen] } else { vec![said, seen] };
        assert_eq!(kinds(&events), wanted, "cut before event {cut}");
    }
}
