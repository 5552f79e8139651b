//! Which conversation continues the history that a client sends: no table keeps it, since the log has what was said.

use polylogue_core::{Body, Event, ListQuery, LogId, Store as _, Summary};
use polylogue_runtime::asked::Received;
use polylogue_runtime::is_imported;

use super::pictures;
use super::request::{ChatMessage, ChatRequest, Role};
use super::voice::content_of;
use crate::chat_options::ChatShow;
use crate::problem::Problem;
use crate::stretch::content;
use crate::tenants::Tenant;

/// How many of the newest conversations of a team are looked at.
const NEWEST: usize = 200;

/// What a history is to a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Continuation {
    /// It is what was said last: the next message continues it.
    Tip { id: LogId },
    /// The conversation went another way after this many events: a fork of it continues. `is_edited`: with another message than the
    /// one that follows there, as when a person edits it; the same message asks for another reply.
    Earlier { id: LogId, events: u64, is_edited: bool },
}

/// What is said in a conversation, as a client sees it: by the caller and by the team in turns.
#[derive(Debug, Default)]
struct Dialogue {
    /// Each with the number of events after it.
    lines: Vec<(ChatMessage, u64)>,
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

/// The conversation that the history before the last message of the request belongs to, of those of its team, which has this name.
pub(super) async fn find(
    tenant: &Tenant,
    name: String,
    request: &ChatRequest,
) -> Result<Option<Continuation>, Problem> {
    let messages = request.messages.as_slice();
    if !messages.iter().any(|message| message.role == Role::Assistant) {
        return Ok(None);
    }
    let query = ListQuery { team: Some(name), limit: Some(NEWEST), ..ListQuery::default() };
    let mut earlier = None;
    for listing in tenant.runtime.list(&query).await?.logs {
        let begins = |at: &usize| {
            let task: String =
                task(messages.get(..=*at).unwrap_or_default()).chars().take(Summary::TASK_CHARS).collect();
            *listing.summary.task == *task
        };
        let users = users(messages);
        if !users.iter().any(begins) {
            continue;
        }
        // Another team can have this name.
        if tenant.team_of(&listing).await.is_none_or(|(team, _)| team != request.model) {
            continue;
        }
        // What was imported does not continue.
        if is_imported(&tenant.runtime.store().meta(&listing.id).await?) {
            continue;
        }
        let events = tenant.runtime.store().read(&listing.id, 0).await?;
        let dialogue = Dialogue::of(&events, request.show);
        match dialogue.continued(messages) {
            Some(true) => return Ok(Some(Continuation::Tip { id: listing.id })),
            // One that went on with the same message is nearer than one that was edited, and then the newest.
            Some(false) if !matches!(earlier, Some(Continuation::Earlier { is_edited: false, .. })) => {
                let end = users.iter().find_map(|at| dialogue.end_of(messages, *at));
                let found = end.filter(|(_, is_edited)| earlier.is_none() || !is_edited);
                let found = found.map(|(events, is_edited)| Continuation::Earlier {
                    id: listing.id,
                    events,
                    is_edited,
                });
                earlier = found.or(earlier);
            }
            _ => {}
        }
    }
    Ok(earlier)
}

/// Whether the history before the last message of the request is what was said last in a conversation.
pub(super) async fn is_tip(tenant: &Tenant, id: &LogId, request: &ChatRequest) -> Result<bool, Problem> {
    let events = tenant.runtime.store().read(id, 0).await?;
    Ok(Dialogue::of(&events, request.show).continued(&request.messages) == Some(true))
}

/// How many events there are until a person says something.
fn until_said(events: &[Event]) -> usize {
    let is_said = |event: &&Event| matches!(event.body, Body::InputProvided { .. } | Body::Sent(_));
    events.iter().take_while(|event| !is_said(event)).count()
}

/// Where the user speaks, but for the last message.
fn users(messages: &[ChatMessage]) -> Vec<usize> {
    let last = messages.len().saturating_sub(1);
    let users = messages.iter().enumerate().take(last).filter(|(_, message)| message.role == Role::User);
    users.map(|(at, _)| at).collect()
}

impl Dialogue {
    /// The dialogue of clients to which this was shown.
    fn of(events: &[Event], show: ChatShow) -> Self {
        let mut dialogue = Self::default();
        // Of the events since the caller spoke last.
        let mut from = 0;
        let mut received = Received::default();
        for (nth, event) in events.iter().enumerate() {
            received.add(event);
            if !event.at.is_root() {
                continue;
            }
            let (role, text, pictures) = match &event.body {
                Body::Opened(opening) => {
                    (Role::User, opening.task.to_string(), pictures::of_opening(opening))
                }
                Body::Closed { reason, summary } => (Role::Assistant, content(reason, summary), Vec::new()),
                Body::InputRequired(question) => {
                    (Role::Assistant, received.text(&event.at, question), Vec::new())
                }
                Body::InputProvided { text, .. } => (Role::User, text.to_string(), Vec::new()),
                Body::Sent(said) | Body::Reopened { message: Some(said), .. } => {
                    (Role::User, said.as_text().into_owned(), pictures::of_message(said))
                }
                _ => continue,
            };
            let end = match &event.body {
                // A response that asks ends when the run waits: other turns of the step may have ended after the question.
                Body::InputRequired(_) => nth + 1 + until_said(events.get(nth + 1..).unwrap_or_default()),
                _ => nth + 1,
            };
            let text = match role {
                Role::Assistant => content_of(show, events.get(from..end).unwrap_or_default(), text.trim()),
                _ => text,
            };
            from = end;
            let message = ChatMessage { role, text: text.trim().to_owned(), pictures };
            dialogue.lines.push((message, event.seq.saturating_add(1)));
        }
        dialogue
    }

    /// Whether the history before the last message ends with its last line; `None` if it is another one.
    fn continued(&self, messages: &[ChatMessage]) -> Option<bool> {
        users(messages).into_iter().find_map(|at| self.continued_by(messages, at))
    }

    /// Whether the history, whose first part up to `at` was its task, ends with its last line; `None` if it is another one.
    fn continued_by(&self, messages: &[ChatMessage], at: usize) -> Option<bool> {
        let matched = self.matched(messages, at)?;
        Some(matched == self.lines.len())
    }

    /// The number of events with which the history ends, and whether its last message is another one than the line that follows.
    fn end_of(&self, messages: &[ChatMessage], at: usize) -> Option<(u64, bool)> {
        let matched = self.matched(messages, at)?;
        let (_, end) = self.lines.get(matched.checked_sub(1)?)?;
        let following = self.lines.get(matched).map(|(line, _)| line);
        Some((*end, messages.last() != following))
    }

    /// How many lines the history before its last message is.
    fn matched(&self, messages: &[ChatMessage], at: usize) -> Option<usize> {
        let ((first, _), rest) = self.lines.split_first()?;
        let (begin, after) = messages.split_at_checked(at + 1)?;
        let (_, after) = after.split_last()?;
        let pictures = begin.iter().flat_map(|message| &message.pictures);
        let is_same = first.text == task(begin).trim()
            && first.pictures.iter().eq(pictures)
            && after.len() <= rest.len()
            && !after.is_empty()
            && after.iter().zip(rest).all(|(message, (line, _))| message == line);
        is_same.then_some(after.len() + 1)
    }
}

#[cfg(test)]
mod tests {
    use polylogue_core::{Message, Name, Opening, Path, Question, Responder, Timestamp, TurnRequest};

    use super::*;

    fn message(role: Role, text: &str) -> ChatMessage {
        ChatMessage { role, text: text.into(), pictures: Vec::new() }
    }

    #[test]
    fn s52_a_history_is_a_tip_an_earlier_point_or_unknown() {
        let (user, team) = (|text| message(Role::User, text), |text| message(Role::Assistant, text));
        let lines = vec![(user("Hi."), 1), (team("Hello."), 9), (user("More."), 10), (team("Bye."), 20)];
        let dialogue = Dialogue { lines };
        let at_tip = [user("Hi."), team("Hello."), user("More."), team("Bye."), user("Third.")];
        assert_eq!(dialogue.continued_by(&at_tip, 0), Some(true));
        let edited = [user("Hi."), team("Hello."), user("Else.")];
        let (continued, end) = (dialogue.continued_by(&edited, 0), dialogue.end_of(&edited, 0));
        assert_eq!((continued, end), (Some(false), Some((9, true))));
        // The same message asks for another reply, and edits nothing.
        assert_eq!(dialogue.end_of(&[user("Hi."), team("Hello."), user("More.")], 0), Some((9, false)));
        let unknown = [user("Hi."), team("Hallo."), user("More.")];
        assert_eq!(dialogue.continued_by(&unknown, 0), None);
        assert_eq!(dialogue.continued_by(&[user("Hi."), user("More.")], 0), None);
        // Another picture is another history.
        let mut with_picture = at_tip.clone();
        with_picture[2]
            .pictures
            .push(polylogue_core::Media { kind: "image/png".into(), url: "data:,".into() });
        assert_eq!(dialogue.continued_by(&with_picture, 0), None);
    }

    #[test]
    fn a_response_that_asks_has_what_others_have_said_by_then() {
        let [slow, pat] = ["Slow", "Pat"].map(|who| Name::new(who).unwrap());
        let turns = [&slow, &pat].map(|who| TurnRequest::to_all(who.clone())).to_vec();
        let bodies = [
            Body::Opened(Opening { task: "Hi.".into(), ..Opening::default() }),
            Body::TurnStarted { turns },
            Body::InputRequired(Question::new(pat.clone(), "Well?")),
            Body::Message(Message::text(slow, "At last.")),
            Body::InputProvided { to: pat, text: "Yes.".into(), by: Responder::default() },
        ];
        let event =
            |(seq, body)| Event { seq, at: Path::root(), time: Timestamp(0), ran_ms: 0, inbox: None, body };
        let events: Vec<Event> = (0..).zip(bodies).map(event).collect();
        for (show, said) in
            [(ChatShow::Transcript, "**Slow:** At last.\n\nWell?"), (ChatShow::Result, "Well?")]
        {
            let lines = Dialogue::of(&events, show).lines;
            let texts: Vec<&str> = lines.iter().map(|(line, _)| line.text.as_str()).collect();
            assert_eq!(texts, ["Hi.", said, "Yes."]);
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
