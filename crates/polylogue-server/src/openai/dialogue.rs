//! What is said in a conversation, as a client of chat completions sees it, and which part of it a history is: a pure fold of the log.

use polylogue_core::{Body, CallPurpose, Event, LogId, RunOutcome, StopReason, text_of};
use polylogue_runtime::question_text::LastMessages;

use super::pictures;
use super::request::{ChatMessage, Role, of_assistant};
use super::voice::content_of;
use crate::chat_options::ChatShow;
use crate::stretch::content;
use crate::waiting::has_left;

/// What a history is to a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Continuation {
    /// It is what was said last: the next message continues it.
    Tip { id: LogId },
    /// The conversation went another way after this many events: a fork of it continues. `is_edited`: with another message than the
    /// one that follows there, as when a person edits it; the same message asks for another reply.
    Earlier { id: LogId, events: u64, is_edited: bool },
}

impl Continuation {
    /// How far it is from what the history asks for. One that continued with the same message is nearer than one that was edited.
    pub(super) const fn distance(&self) -> u8 {
        match self {
            Self::Tip { .. } => 0,
            Self::Earlier { is_edited, .. } => 1 + *is_edited as u8,
        }
    }
}

/// What is said in a conversation, as a client sees it: by the caller and by the team in turns.
#[derive(Debug, Default)]
pub(super) struct Dialogue {
    lines: Vec<Line>,
    /// Whether the client that received the last response [has left](has_left).
    pub(super) has_left: bool,
}

/// What the caller or the team says.
#[derive(Debug)]
struct Line {
    message: ChatMessage,
    /// What a participant said last before its end, as far as it came.
    said: String,
    /// Whether it is a response without a result: it was stopped, has failed, or continues.
    is_unfinished: bool,
    /// What clients were sent of it that disconnected before its end. Another reply may have followed, after a restart.
    received: Vec<String>,
    /// The number of events until its end.
    end: u64,
}

/// The lines of a dialogue that are a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Matched {
    /// How many.
    lines: usize,
    /// Whether the client has cut a response off: the history has only its beginning.
    pub(super) is_cut: bool,
}

/// The task of a conversation that begins with `messages`: the last one, after what was said before and what the caller's system
/// messages say.
pub(super) fn task(messages: &[ChatMessage]) -> String {
    let system = messages.iter().filter(|message| message.role == Role::System);
    let mut paragraphs: Vec<String> = system.map(|message| message.text.clone()).collect();
    let said: Vec<&ChatMessage> =
        messages.iter().filter(|message| matches!(message.role, Role::User | Role::Assistant)).collect();
    if let Some((last, earlier)) = said.split_last() {
        let line = |message: &&ChatMessage| match message.role {
            Role::Assistant => format!("assistant: {}", message.text),
            _ => format!("user: {}", message.text),
        };
        paragraphs.extend(earlier.iter().map(line));
        paragraphs.push(last.text.clone());
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs.join("\n\n")
}

/// What a participant said last in the outermost chat, whole or as far as it came.
fn said_last(events: &[Event]) -> Option<String> {
    events.iter().rev().filter(|event| event.chat.is_root()).find_map(|event| match &event.body {
        Body::Message(message) if !message.to.is_private() => Some(message.to_text().trim().to_owned()),
        Body::ModelReplied(reply) if reply.purpose == CallPurpose::Turn && !reply.is_unparsed() => {
            Some(text_of(&reply.parts).trim().to_owned())
        }
        Body::ReplyInterrupted { text, .. } => Some(text.trim().to_owned()),
        _ => None,
    })
}

/// How many events there are until a person says something.
fn until_said(events: &[Event]) -> usize {
    let is_said = |event: &&Event| matches!(event.body, Body::InputProvided { .. } | Body::Sent(_));
    events.iter().take_while(|event| !is_said(event)).count()
}

/// Whether a closed chat continues with these events for a message that was sent before.
fn continues_for_sent(events: &[Event]) -> bool {
    let next = events.iter().find(|event| event.chat.is_root());
    next.is_some_and(|event| matches!(event.body, Body::Reopened { message: None, sent: true, .. }))
}

/// Where the user speaks, but for the last message.
pub(super) fn users(messages: &[ChatMessage]) -> Vec<usize> {
    let last = messages.len().saturating_sub(1);
    let users = messages.iter().enumerate().take(last).filter(|(_, message)| message.role == Role::User);
    users.map(|(at, _)| at).collect()
}

impl Dialogue {
    /// The dialogue of clients to which this was shown.
    pub(super) fn of(events: &[Event], show: ChatShow) -> Self {
        let mut dialogue = Self { has_left: has_left(events), ..Self::default() };
        // Of the events since the caller spoke last.
        let mut from = 0;
        let (mut received, mut lost) = (LastMessages::default(), Vec::new());
        for (nth, event) in events.iter().enumerate() {
            received.add(event);
            if !event.chat.is_root() {
                continue;
            }
            let (role, text, pictures) = match &event.body {
                Body::Opened(opening) => {
                    (Role::User, opening.task.to_string(), pictures::of_opening(opening))
                }
                // It continues for a message that has come before: the response to that is yet to come.
                Body::Closed { .. } if continues_for_sent(events.get(nth + 1..).unwrap_or_default()) => {
                    continue;
                }
                Body::Closed { reason, summary } => (Role::Assistant, content(reason, summary), Vec::new()),
                Body::InputRequired(question) => {
                    (Role::Assistant, received.text(&event.chat, question), Vec::new())
                }
                Body::InputProvided { text, .. } => (Role::User, text.to_string(), Vec::new()),
                Body::Sent(said) | Body::Reopened { message: Some(said), .. } => {
                    (Role::User, said.to_text().into_owned(), pictures::of_message(said))
                }
                Body::ClientDisconnected { received } => {
                    lost.push(of_assistant(received));
                    continue;
                }
                _ => continue,
            };
            let end = match &event.body {
                // A response that asks ends when the run waits: other turns of the step may have ended after the question.
                Body::InputRequired(_) => nth + 1 + until_said(events.get(nth + 1..).unwrap_or_default()),
                _ => nth + 1,
            };
            if role == Role::User {
                let response = events.get(from..nth).unwrap_or_default();
                dialogue.push_unfinished(show, response, event.seq, std::mem::take(&mut lost));
            }
            let of_response = events.get(from..end).unwrap_or_default();
            let (text, said) = match role {
                Role::Assistant => {
                    (content_of(show, of_response, text.trim()), said_last(of_response).unwrap_or_default())
                }
                _ => (text, String::new()),
            };
            from = end;
            let is_stopped = |reason: &StopReason| reason.outcome() == RunOutcome::Stopped;
            dialogue.lines.push(Line {
                message: ChatMessage { role, text: text.trim().to_owned(), pictures },
                said,
                is_unfinished: matches!(&event.body, Body::Closed { reason, .. } if is_stopped(reason)),
                received: std::mem::take(&mut lost),
                end: end as u64,
            });
        }
        let response = events.get(from..).unwrap_or_default();
        dialogue.push_unfinished(show, response, events.len() as u64, lost);
        dialogue
    }

    /// Adds a response without a result, if the caller has spoken last: what there is of it are these events. Clients that have disconnected
    /// were sent `lost` of it, or else of the last one.
    fn push_unfinished(&mut self, show: ChatShow, events: &[Event], end: u64, lost: Vec<String>) {
        if let Some(line) = self.lines.last_mut().filter(|line| line.message.role != Role::User) {
            line.received.extend(lost);
            return;
        }
        if self.lines.is_empty() {
            return;
        }
        let said = said_last(events).unwrap_or_default();
        // As a response says that ends without a result.
        let text = if said.is_empty() { "(stopped)" } else { said.as_str() };
        let text = content_of(show, events, text);
        let message = ChatMessage { role: Role::Assistant, text, pictures: Vec::new() };
        self.lines.push(Line { message, said, is_unfinished: true, received: lost, end });
    }

    /// Which lines the history before the last message is.
    pub(super) fn matched(&self, messages: &[ChatMessage]) -> Option<Matched> {
        users(messages).into_iter().find_map(|at| self.matched_from(messages, at))
    }

    /// Which lines the history before the last message is, if the messages up to `at` were the task.
    fn matched_from(&self, messages: &[ChatMessage], at: usize) -> Option<Matched> {
        let (first, rest) = self.lines.split_first()?;
        let (begin, after) = messages.split_at_checked(at + 1)?;
        let (_, after) = after.split_last()?;
        let pictures = begin.iter().flat_map(|message| &message.pictures);
        if after.is_empty()
            || first.message.text != task(begin).trim()
            || !first.message.pictures.iter().eq(pictures)
        {
            return None;
        }
        let (mut matched, mut rest) = (Matched { lines: 1, is_cut: false }, rest.iter());
        for message in after {
            let mut line = rest.next()?;
            matched.lines += 1;
            // A client can leave out a response that it has not received whole.
            if line.is_unfinished && message.role == Role::User {
                line = rest.next()?;
                matched.lines += 1;
            }
            matched.is_cut |= line.is_cut_in(message)?;
        }
        Some(matched)
    }

    /// Whether nothing was said after the matched lines, but for a response without a result.
    pub(super) fn ends_with(&self, matched: Matched) -> bool {
        let (before, after) = self.lines.split_at_checked(matched.lines).unwrap_or_default();
        let is_asked = before.last().is_some_and(|line| line.message.role == Role::User);
        after.is_empty() || (is_asked && matches!(after, [line] if line.is_unfinished))
    }

    /// Whether the history is all of it, but for how far its last response has come: another process may have sent more of that than is known
    /// here.
    pub(super) fn is_but_for_its_end(&self, messages: &[ChatMessage]) -> bool {
        let mut shorter = messages.to_vec();
        let said = shorter.iter_mut().rfind(|message| message.role == Role::Assistant);
        said.into_iter().for_each(|said| said.text.clear());
        self.matched(&shorter).is_some_and(|matched| matched.is_cut && self.ends_with(matched))
    }

    /// What the matched lines of the conversation `id` are for the history in `messages`.
    pub(super) fn continuation(
        &self,
        id: LogId,
        messages: &[ChatMessage],
        matched: Matched,
    ) -> Option<Continuation> {
        if self.ends_with(matched) {
            return Some(Continuation::Tip { id });
        }
        let events = self.lines.get(matched.lines.checked_sub(1)?)?.end;
        let following = self.lines.get(matched.lines).map(|line| &line.message);
        Some(Continuation::Earlier { id, events, is_edited: messages.last() != following })
    }
}

impl Line {
    /// Whether `message` is only the beginning of the line, or of a response without a result: the client has cut it off. `None`: it is
    /// another one.
    fn is_cut_in(&self, message: &ChatMessage) -> Option<bool> {
        if *message == self.message {
            return Some(self.is_unfinished);
        }
        let is_response = [self.message.role, message.role] == [Role::Assistant; 2];
        let is_beginning = match message.text.as_str() {
            "" => self.is_unfinished || !self.received.is_empty(),
            text => {
                let mut all = [&self.message.text, &self.said].into_iter().chain(&self.received);
                all.any(|whole| whole.starts_with(text))
            }
        };
        (is_response && is_beginning).then_some(true)
    }
}

#[cfg(test)]
mod tests {
    use polylogue_core::{Message, Name, Opening, Path, Question, Responder, Timestamp, TurnRequest};

    use super::*;

    fn message(role: Role, text: &str) -> ChatMessage {
        ChatMessage { role, text: text.into(), pictures: Vec::new() }
    }

    fn line(message: ChatMessage, end: u64) -> Line {
        Line { message, said: String::new(), is_unfinished: false, received: Vec::new(), end }
    }

    fn id() -> LogId {
        LogId::new("log").unwrap()
    }

    fn tip() -> Continuation {
        Continuation::Tip { id: id() }
    }

    fn earlier(events: u64, is_edited: bool) -> Continuation {
        Continuation::Earlier { id: id(), events, is_edited }
    }

    /// How a history continues the dialogue, and whether it has only the beginning of a response.
    fn continued(dialogue: &Dialogue, messages: &[ChatMessage]) -> Option<(bool, Continuation)> {
        let matched = dialogue.matched(messages)?;
        Some((matched.is_cut, dialogue.continuation(id(), messages, matched)?))
    }

    fn logged(bodies: Vec<Body>) -> Vec<Event> {
        let event =
            |(seq, body)| Event { seq, chat: Path::root(), time: Timestamp(0), ran_ms: 0, inbox: None, body };
        (0..).zip(bodies).map(event).collect()
    }

    #[test]
    fn s52_a_history_is_a_tip_an_earlier_point_or_unknown() {
        let (user, team) =
            (|text: &str| message(Role::User, text), |text: &str| message(Role::Assistant, text));
        let lines = [(user("Hi."), 1), (team("Hello."), 9), (user("More."), 10), (team("Bye."), 20)];
        let lines = lines.map(|(message, end)| line(message, end)).into();
        let dialogue = Dialogue { lines, has_left: false };
        let at_tip = [user("Hi."), team("Hello."), user("More."), team("Bye."), user("Third.")];
        assert_eq!(continued(&dialogue, &at_tip), Some((false, tip())));
        let edited = [user("Hi."), team("Hello."), user("Else.")];
        assert_eq!(continued(&dialogue, &edited), Some((false, earlier(9, true))));
        // The same message asks for another reply, and edits nothing.
        let same = [user("Hi."), team("Hello."), user("More.")];
        assert_eq!(continued(&dialogue, &same), Some((false, earlier(9, false))));
        let unknown = [user("Hi."), team("Hallo."), user("More.")];
        assert_eq!(continued(&dialogue, &unknown), None);
        assert_eq!(continued(&dialogue, &[user("Hi."), user("More.")]), None);
        // Another picture is another history.
        let mut with_picture = at_tip.clone();
        with_picture[2]
            .pictures
            .push(polylogue_core::Media { media_type: "image/png".into(), url: "data:,".into() });
        assert_eq!(continued(&dialogue, &with_picture), None);
        // Responses that the client has cut off, and one that it has left out.
        let cut = [user("Hi."), team("He"), user("More."), team("B"), user("Third.")];
        assert_eq!(continued(&dialogue, &cut), Some((true, tip())));
        assert_eq!(continued(&dialogue, &cut[..3]), Some((true, earlier(9, false))));
        assert_eq!(continued(&dialogue, &[user("Hi."), team(""), user("More.")]), None, "it had a result");
    }

    #[test]
    fn a_response_without_a_result_is_what_was_said_until_then() {
        let (user, team) =
            (|text: &str| message(Role::User, text), |text: &str| message(Role::Assistant, text));
        let ann = Name::new("Ann").unwrap();
        let cut = Body::ReplyInterrupted { who: ann.clone(), model: "".into(), text: "Once upon ".into() };
        let sent = Body::Sent(Message::new(Name::user(), "Shorter."));
        let bodies = |last: Option<Body>| {
            let opened = Body::Opened(Opening { task: "Tell.".into(), ..Opening::default() });
            let turns = vec![TurnRequest::to_all(ann.clone())];
            [opened, Body::TurnStarted { turns }].into_iter().chain(last).collect::<Vec<_>>()
        };
        let of = |bodies: Vec<Body>| Dialogue::of(&logged(bodies), ChatShow::Result);
        let running = of(bodies(None));
        assert_eq!(continued(&running, &[user("Tell."), team(""), user("x")]), Some((true, tip())));
        assert_eq!(continued(&running, &[user("Tell."), team("Once"), user("x")]), None);
        let stopped = of(bodies(Some(cut.clone())));
        for said in ["", "Once", "Once upon"] {
            let history = [user("Tell."), team(said), user("x")];
            assert!(continued(&stopped, &history).is_some_and(|(_, found)| found == tip()), "{said}");
        }
        assert_eq!(continued(&stopped, &[user("Tell."), team("One"), user("x")]), None);
        // Both histories lead to what was sent then, and beyond it to the end.
        let continues = of(bodies(Some(cut)).into_iter().chain([sent]).collect());
        let history = [user("Tell."), team("Once"), user("Shorter.")];
        assert_eq!(continued(&continues, &history), Some((true, earlier(3, false))));
        let history = [user("Tell."), team("Once"), user("Shorter."), team(""), user("x")];
        assert_eq!(continued(&continues, &history), Some((true, tip())));
        let transcript = Dialogue::of(
            &logged(bodies(Some(Body::Message(Message::new(ann.clone(), "One."))))),
            ChatShow::Transcript,
        );
        assert_eq!(
            continued(&transcript, &[user("Tell."), team("**Ann:** O"), user("x")]),
            Some((true, tip()))
        );
    }

    #[test]
    fn a_part_of_a_response_whose_client_has_disconnected_is_known_by_the_log_alone() {
        let (user, team) =
            (|text: &str| message(Role::User, text), |text: &str| message(Role::Assistant, text));
        let ann = Name::new("Ann").unwrap();
        let opened = || Body::Opened(Opening { task: "Tell.".into(), ..Opening::default() });
        let turn = || Body::TurnStarted { turns: vec![TurnRequest::to_all(ann.clone())] };
        let lost = |received: &str| Body::ClientDisconnected { received: received.into() };
        let of = |bodies: Vec<Body>| Dialogue::of(&logged(bodies), ChatShow::Result);
        let history = |said: &str| [user("Tell."), team(said), user("Shorter.")];
        let running = of(vec![opened(), turn(), lost("Once upon ")]);
        // A client can have received less than it was sent.
        for said in ["", "Once", "Once upon"] {
            assert_eq!(continued(&running, &history(said)), Some((true, tip())), "{said}");
        }
        assert_eq!(continued(&running, &history("One")), None);
        assert!(running.has_left && running.is_but_for_its_end(&history("One")));
        assert!(!running.is_but_for_its_end(&[user("Tell."), team("One"), user("x"), team("y"), user("z")]));
        // After a restart the response is another one.
        let summary = "A tale".into();
        let ended = [
            opened(),
            turn(),
            lost("Once upon "),
            Body::Message(Message::new(ann.clone(), "A tale")),
            Body::Closed { reason: StopReason::Finished, summary },
        ];
        for said in ["", "Once", "A tale"] {
            let found = continued(&of(ended.to_vec()), &history(said));
            assert_eq!(found, Some((said != "A tale", tip())), "{said}");
        }
        // One that the client has lost while its last events were stored.
        let [first, _, note, rest @ ..] = ended;
        let late = of([first].into_iter().chain(rest).chain([note]).collect());
        assert_eq!(continued(&late, &history("Once")), Some((true, tip())));
    }

    #[test]
    fn a_client_has_left_until_someone_continues_or_steers_the_conversation() {
        let lost = || Body::ClientDisconnected { received: "".into() };
        let sent = || Body::Sent(Message::new(Name::user(), "Louder."));
        let said = || Body::Message(Message::new(Name::new("Ann").unwrap(), "One."));
        for (bodies, left) in [
            (vec![sent()], false),
            (vec![sent(), lost()], true),
            (vec![sent(), lost(), said(), Body::TitleChanged { title: "A tale".into() }], true),
            (vec![lost(), sent()], false),
            (vec![lost(), Body::Cancelled { now: false }], false),
            (vec![lost(), Body::Paused, Body::Resumed], false),
            (vec![lost(), Body::Paused, lost()], true),
        ] {
            assert_eq!(has_left(&logged(bodies.clone())), left, "{bodies:?}");
        }
    }

    #[test]
    fn a_response_that_asks_has_what_others_have_said_by_then() {
        let [slow, pat] = ["Slow", "Pat"].map(|who| Name::new(who).unwrap());
        let turns = [&slow, &pat].map(|who| TurnRequest::to_all(who.clone())).to_vec();
        let bodies = [
            Body::Opened(Opening { task: "Hi.".into(), ..Opening::default() }),
            Body::TurnStarted { turns },
            Body::InputRequired(Question::new(pat.clone(), "Well?")),
            Body::Message(Message::new(slow, "At last.")),
            Body::InputProvided { to: pat, text: "Yes.".into(), by: Responder::default() },
        ];
        let events = logged(bodies.into());
        for (show, said) in
            [(ChatShow::Transcript, "**Slow:** At last.\n\nWell?"), (ChatShow::Result, "Well?")]
        {
            let lines = Dialogue::of(&events, show).lines;
            let texts: Vec<&str> = lines.iter().map(|line| line.message.text.as_str()).collect();
            assert_eq!(texts, ["Hi.", said, "Yes.", "(stopped)"]);
            // Another answer leaves nothing out that the response has.
            assert_eq!(lines[1].end, 4);
        }
    }

    #[test]
    fn a_task_has_what_was_said_before() {
        let messages = [
            message(Role::System, "Be brief."),
            message(Role::User, "Hi."),
            message(Role::Assistant, "Hello."),
            message(Role::User, "More."),
        ];
        assert_eq!(task(&messages), "Be brief.\n\nuser: Hi.\n\nassistant: Hello.\n\nMore.");
        assert_eq!(task(&messages[1..2]), "Hi.");
        assert_eq!(users(&messages), [1]);
    }
}
