//! Property tests: in any chat, a view is a valid request, grows only at its end, and keeps within its window.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::Message;
use crate::{
    Audience, ExecutedCall, HistoryEntry, JoinHistory, ModelReply, Opening, Origin, Path, Request, Timestamp,
    TurnRequest,
};

#[path = "seal_tests.rs"]
mod seals;

const NAMES: [&str; 3] = ["A", "B", "C"];

fn name(index: usize) -> Name {
    Name::new(NAMES[index % 3]).unwrap()
}

/// A step of a random chat.
#[derive(Debug, Clone)]
struct Move {
    who: usize,
    to: Audience,
    prompt: Option<String>,
    replies: Vec<Reply>,
    end: End,
}

#[derive(Debug, Clone)]
struct Reply {
    text: String,
    thought: bool,
    calls: usize,
    answered: usize,
    prompted: bool,
    /// Whether the calls without results are in the message, for others to execute.
    asks_others: bool,
    clears: Option<usize>,
}

#[derive(Debug, Clone)]
enum End {
    Say(String),
    Pass,
    Leave,
    /// Executes so many calls of others, in any order.
    Answer(usize, String),
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), Just("  ".into()), "[a-zé ]{1,12}", Just("{{task}} {\"a\": 1}".into())]
}

fn audience() -> impl Strategy<Value = Audience> {
    prop_oneof![
        3 => Just(Audience::All),
        1 => Just(Audience::private()),
        1 => (0..3usize).prop_map(|who| Audience::Only(vec![name(who)])),
    ]
}

fn said(who: usize, parts: Vec<Part>) -> Body {
    Body::Message(Message { parts, ..Message::new(name(who), "") })
}

fn turn_started(who: usize) -> Body {
    Body::TurnStarted { turns: vec![TurnRequest::to_all(name(who))] }
}

#[test]
fn a_result_that_comes_after_another_turn_of_the_caller_is_shown_in_words() {
    let call = ToolCall { id: "c1".into(), tool: "look".into(), args: json!({}) };
    let answer =
        ExecutedCall { to: name(0), id: "c1".into(), tool: "look".into(), result: ToolResult::done("a cat") };
    let opening = Opening {
        participants: vec![name(0), name(1)],
        messages: vec![Message::new(name(1), "Look.")],
        late_joiners: Vec::new(),
        introduction: None,
        task: "t".into(),
        inherited: 0,
    };
    let bodies = [
        Body::Opened(opening),
        turn_started(0),
        said(0, vec![Part::ToolCall(call)]),
        turn_started(0),
        said(0, vec![Part::text("I wait.")]),
        turn_started(1),
        said(1, vec![Part::ToolResult(answer.clone())]),
        turn_started(1),
        said(1, vec![Part::ToolResult(answer)]),
        turn_started(0),
    ];
    let mut view = View::new(name(0), ViewOptions::default());
    for (seq, body) in (0..).zip(bodies) {
        view.see(&Event { seq, chat: Path::root(), time: Timestamp(0), ran_ms: 0, inbox: None, body });
    }
    let texts: Vec<String> =
        view.entries().iter().map(|entry| crate::text_of(entry.parts()).into_owned()).collect();
    let late = "(`look` returned: a cat)";
    assert_eq!(texts, ["Look.", "", "This call was not made.", "I wait.", late, late]);
}

fn reply() -> impl Strategy<Value = Reply> {
    let clears = prop_oneof![9 => Just(None), 1 => (0..4usize).prop_map(Some)];
    (text(), any::<bool>(), 0..3usize, 0..3usize, any::<bool>(), any::<bool>(), clears).prop_map(
        |(text, thought, calls, answered, prompted, asks_others, clears)| Reply {
            text,
            thought,
            calls,
            answered,
            prompted,
            asks_others,
            clears,
        },
    )
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let end = prop_oneof![5 => text().prop_map(End::Say), 1 => Just(End::Pass), 1 => Just(End::Leave),
        2 => (0..3usize, text()).prop_map(|(calls, text)| End::Answer(calls, text))];
    let one =
        (0..3usize, audience(), proptest::option::of(text()), proptest::collection::vec(reply(), 0..4), end)
            .prop_map(|(who, to, prompt, replies, end)| Move { who, to, prompt, replies, end });
    proptest::collection::vec(one, 0..20)
}

/// The events of a chat with these `moves`.
fn events(opening: &[(usize, Audience, String)], participants: usize, moves: &[Move]) -> Vec<Event> {
    events_from(0, opening, participants, moves)
}

/// The same, with ids of calls after the first so many.
fn events_from(
    mut ids: usize,
    opening: &[(usize, Audience, String)],
    participants: usize,
    moves: &[Move],
) -> Vec<Event> {
    let mut bodies = vec![Body::Opened(Opening {
        participants: (0..participants).map(name).collect(),
        late_joiners: Vec::new(),
        introduction: None,
        task: "t".into(),
        messages: opening
            .iter()
            .map(|(who, to, text)| Message::new(name(*who), &**text).to(to.clone()))
            .collect(),
        inherited: 0,
    })];
    let mut open: Vec<(Name, ToolCall)> = Vec::new();
    for step in moves {
        let who = name(step.who);
        let prompt = step.prompt.as_deref().map(Into::into);
        bodies.push(Body::TurnStarted {
            turns: vec![TurnRequest { who: who.clone(), prompt, to: step.to.clone(), choice: None }],
        });
        if bodies.iter().filter(|body| matches!(body, Body::TurnStarted { .. })).count() % 5 == 4 {
            let sees = if ids.is_multiple_of(2) { JoinHistory::All } else { JoinHistory::New };
            bodies.insert(bodies.len() - 1, Body::Joined { who: who.clone(), sees });
        }
        let mut asked: Vec<ToolCall> = Vec::new();
        for reply in &step.replies {
            let before = ids;
            bodies.extend(model_replied(&who, reply, &mut ids));
            let unanswered = before + reply.answered.min(reply.calls)..ids;
            asked = if reply.asks_others && !reply.prompted {
                unanswered
                    .map(|id| ToolCall { id: format!("c{}", id + 1), tool: "t".into(), args: json!({}) })
                    .collect()
            } else {
                Vec::new()
            };
        }
        bodies.push(match &step.end {
            End::Answer(count, text) => {
                let count = (*count).min(open.len());
                let answer = |(to, call): (Name, ToolCall)| {
                    let outcome = ToolResult::done(&**text);
                    Part::ToolResult(ExecutedCall { to, id: call.id, tool: call.tool, result: outcome })
                };
                let mut parts: Vec<Part> = open.drain(..count).rev().map(answer).collect();
                parts.push(Part::text(&**text));
                Body::Message(Message { parts, ..Message::new(who, "").to(step.to.clone()) })
            }
            End::Say(text) => {
                let mut parts = vec![Part::text(&**text)];
                parts.extend(asked.iter().cloned().map(Part::ToolCall));
                open.extend(asked.into_iter().map(|call| (who.clone(), call)));
                Body::Message(Message { parts, ..Message::new(who, "").to(step.to.clone()) })
            }
            End::Pass => Body::Passed { who },
            End::Leave => Body::Left { who, why: "tired".into() },
        });
    }
    let event =
        |(seq, body)| Event { seq, chat: Path::root(), time: Timestamp(0), ran_ms: 0, inbox: None, body };
    (0..).zip(bodies).map(event).collect()
}

fn model_replied(who: &Name, reply: &Reply, ids: &mut usize) -> Vec<Body> {
    let mut parts = vec![Part::text(&*reply.text)];
    if reply.thought {
        parts.insert(0, Part::Thought("hm".into()));
        parts.push(Part::Note(json!({"for": "programs"})));
    }
    let calls: Vec<ToolCall> = (0..reply.calls)
        .map(|_| {
            *ids += 1;
            ToolCall { id: format!("c{ids}"), tool: "t".into(), args: json!({}) }
        })
        .collect();
    parts.extend(calls.iter().cloned().map(Part::ToolCall));
    let mut bodies = vec![Body::ModelReplied(ModelReply::new(who.clone(), "m", Digest([0; 16]), parts))];
    for call in calls.iter().take(reply.answered) {
        bodies.push(Body::ToolCalled { who: who.clone(), call: call.clone() });
    }
    // Results come in any order.
    for call in calls.iter().take(reply.answered).rev() {
        bodies.push(Body::ToolReturned {
            who: who.clone(),
            id: call.id.clone(),
            result: ToolResult::done(""),
        });
    }
    if let Some(2) = reply.clears {
        let remembered = vec![
            HistoryEntry::Sent("I did".into()),
            HistoryEntry::Received("you did".into()),
            HistoryEntry::Sent(" ".into()),
        ];
        bodies.push(Body::Remembered { who: who.clone(), entries: remembered });
    }
    if let Some(keep) = reply.clears {
        bodies.push(Body::Cleared { who: who.clone(), of: None, keep });
    }
    if reply.prompted {
        bodies.push(Body::Prompted { who: who.clone(), text: "again".into() });
    }
    bodies
}

fn check(view: &View) -> Result<(), String> {
    let (at, params) = (Path::root(), Params::default());
    let origin = Origin::new(&at, &view.me, 0);
    let entries = view.entries();
    Request {
        origin,
        system: None,
        entries,
        tools: &[],
        params: &params,
        encoded: view.encoded(),
        reserved: None,
    }
    .check()
}

/// Whether a model could be called right after `body`.
fn is_called_after(body: &Body, me: &Name) -> bool {
    match body {
        Body::TurnStarted { turns: requests } => requests.iter().any(|turn_started| turn_started.who == *me),
        Body::Prompted { who, .. } => who == me,
        _ => false,
    }
}

fn opening() -> impl Strategy<Value = Vec<(usize, Audience, String)>> {
    proptest::collection::vec((0..3usize, audience(), text()), 0..3)
}

proptest! {
    #[test]
    fn every_view_is_a_legal_request_when_its_agent_is_asked(
        opening in opening(), participants in 1..=3usize, moves in moves(), window in 1..12usize,
        tokens in any::<bool>(),
        forget_private_turns in any::<bool>(), system in any::<bool>(),
    ) {
        let prompt_role = if system { PromptRole::System } else { PromptRole::User };
        let events = events(&opening, participants, &moves);
        let window = if tokens { Window::Tokens(window * 10) } else { Window::Messages(window) };
        for window in [Window::All, window] {
            for me in 0..3 {
                let options = ViewOptions { window, forget_private_turns, prompt_role, ..ViewOptions::default() };
                let mut view = View::new(name(me), options);
                for event in &events {
                    view.see(event);
                    if is_called_after(&event.body, &name(me)) {
                        prop_assert_eq!(check(&view), Ok(()), "{:#?}", view.entries());
                    }
                }
            }
        }
    }

    #[test]
    fn a_view_of_a_chat_that_continues_another_is_legal_wherever_the_other_ended(
        before in moves(), moves in moves(), participants in 1..=3usize, window in 1..12usize, tokens in any::<bool>(),
        in_words in any::<bool>(), system in any::<bool>(),
    ) {
        let prompt_role = if system { PromptRole::System } else { PromptRole::User };
        let window = if tokens { Window::Tokens(window * 10) } else { Window::Messages(window) };
        let (before, mut events) = (events(&[], participants, &before), events_from(1000, &[], participants, &moves));
        let said = before.into_iter().filter_map(|event| match event.body {
            Body::Message(message) if !message.to.is_private() => Some(message),
            _ => None,
        });
        let Body::Opened(opening) = &mut events[0].body else { unreachable!("a chat is opened first") };
        opening.messages = said.collect();
        opening.inherited = opening.messages.len() as u64;
        for window in [Window::All, window] {
            for me in 0..3 {
                let options = ViewOptions { window, prompt_role, calls_as_text: in_words, ..ViewOptions::default() };
                let mut view = View::new(name(me), options);
                for event in &events {
                    view.see(event);
                    if is_called_after(&event.body, &name(me)) {
                        prop_assert_eq!(check(&view), Ok(()), "{:#?}", view.entries());
                    }
                }
            }
        }
    }

    #[test]
    fn the_most_tokens_of_a_view_are_those_of_its_entries(
        opening in opening(), participants in 1..=3usize, moves in moves(), window in 1..12usize,
        forget_private_turns in any::<bool>(),
    ) {
        let events = events(&opening, participants, &moves);
        for window in [Window::All, Window::Messages(window)] {
            let options = ViewOptions { window, forget_private_turns, ..ViewOptions::default() };
            let mut view = View::new(name(0), options);
            for event in &events {
                view.see(event);
                let most = view.entries().iter().map(Entry::most_tokens).fold(InputTokens::default(), InputTokens::and);
                prop_assert_eq!(view.most_tokens(), most, "{:#?}", view.entries());
            }
        }
    }

    #[test]
    fn without_a_window_a_view_only_grows_at_its_end(
        opening in opening(), participants in 1..=3usize, moves in moves(),
    ) {
        let is_kept = |event: &Event| !matches!(event.body, Body::Cleared { .. } | Body::Remembered { .. });
        let events: Vec<Event> = events(&opening, participants, &moves).into_iter().filter(is_kept).collect();
        for me in 0..3 {
            let mut view = View::new(name(me), ViewOptions::default());
            let mut asked: Vec<Entry> = Vec::new();
            for event in &events {
                view.see(event);
                if is_called_after(&event.body, &name(me)) {
                    prop_assert!(view.entries().starts_with(&asked), "{:#?}", (asked, view.entries()));
                    asked = view.entries().to_vec();
                }
            }
        }
    }

    #[test]
    fn a_window_is_respected_except_for_the_opening_and_the_last_exchange(
        opening in opening(), moves in moves(), limit in 2..12usize,
    ) {
        let is_kept = |event: &Event| !matches!(event.body, Body::Cleared { .. });
        let events: Vec<Event> = events(&opening, 2, &moves).into_iter().filter(is_kept).collect();
        let mut view = View::new(name(0), ViewOptions { window: Window::Messages(limit), ..ViewOptions::default() });
        for event in &events {
            view.see(event);
            let longest_exchange = 1 + 2;
            prop_assert!(view.entries().len() <= limit.max(view.pinned + 1 + longest_exchange), "{:#?}", view.entries());
        }
    }
}

#[test]
fn names_are_shown_when_more_than_two_participate_and_to_outsiders() {
    let say = |who: usize, text: &str| Move {
        who,
        to: Audience::All,
        prompt: None,
        replies: Vec::new(),
        end: End::Say(text.into()),
    };
    let seen = |participants: usize, me: usize, options: ViewOptions| {
        let mut view = View::new(name(me), options);
        events(&[], participants, &[say(1, "hi")]).iter().for_each(|event| view.see(event));
        view.entries().first().map(|entry| crate::text_of(entry.parts()).into_owned()).unwrap()
    };
    assert_eq!(seen(2, 0, ViewOptions::default()), "hi");
    assert_eq!(seen(3, 0, ViewOptions::default()), "B: hi");
    assert_eq!(seen(2, 2, ViewOptions::default()), "B: hi");
    assert_eq!(seen(3, 0, ViewOptions { names: ShowNames::Never, ..ViewOptions::default() }), "hi");
    assert_eq!(seen(2, 0, ViewOptions { names: ShowNames::Always, ..ViewOptions::default() }), "B: hi");
    let prefix = [(name(1), "A draft:".to_owned())].into();
    assert_eq!(seen(3, 0, ViewOptions { prefix, ..ViewOptions::default() }), "A draft:\n\nhi");
}

#[test]
fn private_messages_are_seen_by_those_they_are_for() {
    let to = Audience::Only(vec![name(1)]);
    let step = Move { who: 0, to, prompt: None, replies: Vec::new(), end: End::Say("psst".into()) };
    let events = events(&[], 3, &[step]);
    let seen = |me: usize| {
        let mut view = View::new(name(me), ViewOptions::default());
        events.iter().for_each(|event| view.see(event));
        format!("{:?}", view.entries()).contains("psst")
    };
    assert_eq!([seen(0), seen(1), seen(2)], [true, true, false]);
}

#[test]
fn a_window_keeps_what_the_agent_is_working_on() {
    let reply = Reply {
        text: "look".into(),
        thought: false,
        calls: 1,
        answered: 1,
        prompted: false,
        asks_others: false,
        clears: None,
    };
    let say = |who: usize, text: &str, replies: Vec<Reply>| Move {
        who,
        to: Audience::All,
        prompt: None,
        replies,
        end: End::Say(text.into()),
    };
    let steps = [
        say(1, "old", vec![]),
        say(0, "yes", vec![]),
        say(1, "the work", vec![]),
        say(0, "done", vec![reply; 9]),
    ];
    let opening = [(1, Audience::All, "task".to_owned())];
    let options = ViewOptions { window: Window::Messages(6), ..ViewOptions::default() };
    let mut view = View::new(name(0), options);
    for event in events(&opening, 2, &steps) {
        view.see(&event);
        assert!(view.entries().len() <= 6, "{:#?}", view.entries());
        if event.seq > 7 {
            let texts: Vec<_> =
                view.entries().iter().map(|entry| crate::text_of(entry.parts()).into_owned()).collect();
            assert_eq!(texts[0], "task");
            assert!(texts.contains(&"the work".to_owned()), "{texts:?}");
            assert!(!texts.contains(&"old".to_owned()) || event.seq < 12, "{texts:?}");
        }
    }
}
