//! The typed client against a real server: what it reads is what the server writes.

use std::time::Duration;

use polylogue_client::wire::calls::CallKind;
use polylogue_client::wire::conversation::{
    Continuation, Conversation, ConversationState, Fork, NewConversation, Outcome, Resume, When,
};
use polylogue_client::wire::team::{Check, Listed};
use polylogue_client::wire::token::{DailyBudget, NewToken};
use polylogue_client::{Client, ListFilter, Tail, TailItem};
use polylogue_core::{Delta, Event, LimitOverrides, LogId};
use polylogue_http::{Key, Proxies};
use polylogue_server::Scope;

use crate::conversations::{events, said};
use crate::world::{Gate, World, generous};

pub(crate) fn client(world: &World) -> Client {
    client_with(world, &world.token)
}

fn client_with(world: &World, token: &str) -> Client {
    Client::new(&world.url, &Key::new(token).unwrap(), &Proxies::none()).unwrap()
}

fn of(team: &str) -> NewConversation {
    NewConversation { team: team.into(), ..NewConversation::default() }
}

/// Follows a conversation until it is in this state; returns the events.
async fn until(tail: &mut Tail<'_>, state: ConversationState) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(item) = tail.next().await.unwrap() {
        match item {
            TailItem::Event(event) => events.push(*event),
            TailItem::Status(status) | TailItem::End(status) if status.state == state => return events,
            _ => {}
        }
    }
    panic!("it is not {state:?}");
}

async fn closed(client: &Client, id: &LogId) -> Conversation {
    until(&mut client.tail(id, 0), ConversationState::Closed).await;
    client.conversation(id).await.unwrap()
}

#[tokio::test]
async fn the_client_begins_follows_reads_and_compares() {
    let world = World::new().await;
    let client = client(&world);
    let teams = client.teams().await.unwrap().teams;
    assert_eq!(teams.len(), 4);
    assert!(teams.iter().all(|team| matches!(team, Listed::Served(_))));
    let team = client.team("talk").await.unwrap();
    assert_eq!((team.name.as_str(), team.inputs[0].default.as_str(), team.scripted), ("talk", "calm", true));
    let new = NewConversation { title: Some("first".into()), ..of("talk") };
    let begun = client.begin(&new).await.unwrap();
    assert_eq!((begun.title.as_deref(), begun.team_name.as_str()), (Some("first"), "talk"));
    // It may be fast.
    assert!(matches!(begun.state, ConversationState::Running | ConversationState::Closed), "{begun:?}");
    let mut tail = client.tail(&begun.id, 0);
    let followed = until(&mut tail, ConversationState::Closed).await;
    assert_eq!(followed, client.all_events(&begun.id, 0).await.unwrap());
    let conversation = client.conversation(&begun.id).await.unwrap();
    assert_eq!((conversation.seq, &*conversation.task), (followed.len() as u64, "Count."));
    assert_eq!(conversation.ended.as_ref().map(|ended| ended.word), Some(Outcome::Done));
    let calls = client.calls(&begun.id, 0).await.unwrap().calls;
    assert!(matches!(calls[0].kind, CallKind::Model { call: 1, .. }), "{calls:?}");
    let view = client.view(&begun.id, "Ann", Some(2)).await.unwrap();
    assert_eq!((view.call, view.calls, view.exact), (2, 2, true));
    let graph = client.graph(&begun.id).await.unwrap();
    assert_eq!(graph, client.team_graph("talk").await.unwrap());
    assert!(graph.to_string().contains("Ann"), "{graph}");
    let other = client.begin(&of("talk")).await.unwrap();
    closed(&client, &other.id).await;
    let compared = client.compare(&begun.id, &other.id).await.unwrap();
    assert!(compared.messages.is_empty() && compared.common == followed.len(), "{compared:?}");
    let one_of_many =
        Conversation { imported: None, node: None, bound: None, bound_ended: None, ..conversation };
    assert_eq!(client.compare(&begun.id, &begun.id).await.unwrap().a, one_of_many);
}

#[tokio::test]
async fn the_client_finds_lists_and_removes() {
    let world = World::new().await;
    let client = client(&world);
    let error = client.find("last").await.unwrap_err();
    assert!(error.is_usage(), "{error}");
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(client.begin(&of("talk")).await.unwrap().id);
    }
    for id in &ids {
        closed(&client, id).await;
    }
    let asking = client.begin(&of("ask")).await.unwrap().id;
    until(&mut client.tail(&asking, 0), ConversationState::Waiting).await;
    assert_eq!(client.find("last").await.unwrap().id, asking);
    assert_eq!(client.find(ids[1].as_str()).await.unwrap().id, ids[1]);
    assert_eq!(client.find(&ids[1].as_str()[..ids[1].as_str().len() - 1]).await.unwrap().id, ids[1]);
    let filter =
        ListFilter { states: vec!["ended".into(), "done".into()], limit: Some(2), ..ListFilter::default() };
    let page = client.list(&filter).await.unwrap();
    assert_eq!(page.conversations.len(), 2);
    let rest = ListFilter { cursor: page.next_cursor, ..filter };
    let rest = client.list(&rest).await.unwrap();
    assert_eq!((rest.conversations.len(), rest.next_cursor), (1, None));
    let waiting = ListFilter { states: vec!["waiting".into()], ..ListFilter::default() };
    let waiting = client.list(&waiting).await.unwrap().conversations;
    assert_eq!(waiting.iter().map(|one| &one.id).collect::<Vec<_>>(), [&asking]);
    assert_eq!(waiting[0].questions[0].who.as_str(), "Pat");
    let since = waiting[0].created_ms;
    let late = ListFilter { since: Some(polylogue_core::Timestamp(since.0 + 1)), ..ListFilter::default() };
    assert_eq!(client.list(&late).await.unwrap().conversations, []);
    assert!(client.remove(&asking).await.unwrap().removed);
    for id in ids.split_off(1) {
        client.remove(&id).await.unwrap();
    }
    // The only id begins with an empty text, which names none.
    assert_eq!(client.find(&ids[0].as_str()[..4]).await.unwrap().id, ids[0]);
    assert!(client.find("").await.unwrap_err().is_usage());
    assert_eq!(client.conversation(&asking).await.unwrap_err().problem().unwrap().word(), "not-found");
}

#[tokio::test]
async fn the_client_answers_sends_and_learns_what_continues() {
    let world = World::new().await;
    let client = client(&world);
    let id = client.begin(&of("ask")).await.unwrap().id;
    let mut tail = client.tail(&id, 0);
    until(&mut tail, ConversationState::Waiting).await;
    let question = client.conversation(&id).await.unwrap().questions[0].question;
    assert_eq!(
        client.continuation(&id).await.unwrap(),
        Continuation { resumes: true, ..Continuation::default() }
    );
    let accepted = client.answer(&id, question, "I am stuck.").await.unwrap();
    until(&mut tail, ConversationState::Closed).await;
    assert!(accepted.seq.is_some_and(|seq| seq > question));
    let again = client.answer(&id, question, "Again.").await.unwrap_err();
    assert_eq!(again.problem().unwrap().word(), "answered");
    let way = client.continuation(&id).await.unwrap();
    assert_eq!((way.resumes, way.message.as_deref()), (false, Some("Continue.")));
    let before = client.conversation(&id).await.unwrap().seq;
    client.send(&id, "And now?").await.unwrap();
    let mut rest = client.tail(&id, before);
    until(&mut rest, ConversationState::Waiting).await;
    assert!(said(&events(&world, id.as_str()).await).contains(&"And now?".to_owned()));
    // A limit says by how much.
    let short = client.begin(&of("short")).await.unwrap().id;
    closed(&client, &short).await;
    let way = client.continuation(&short).await.unwrap();
    let more = LimitOverrides { calls: Some(3), ..LimitOverrides::default() };
    assert_eq!(way, Continuation { resumes: false, limits: Some(more), message: None });
    let seq = client.conversation(&short).await.unwrap().seq;
    client.resume(&short, &Resume { limits: more }).await.unwrap();
    let rest = until(&mut client.tail(&short, seq), ConversationState::Closed).await;
    assert!(rest.iter().any(|event| matches!(event.body, polylogue_core::Body::Message(_))));
    let over = client.resume(&short, &Resume::default()).await.unwrap_err();
    assert_eq!(over.problem().unwrap().word(), "over");
}

#[tokio::test]
async fn the_client_stops_resumes_and_forks() {
    let gate = std::sync::Arc::new(Gate::until(2));
    let world = World::with_gate("one two three", generous(), std::sync::Arc::clone(&gate)).await;
    let client = client(&world);
    let id = client.begin(&of("long")).await.unwrap().id;
    let mut tail = client.tail(&id, 0);
    let mut text = String::new();
    let mut messages = 0;
    while messages < 2 {
        match tail.next().await.unwrap().unwrap() {
            TailItem::Delta { delta: Delta::Text(piece), .. } => text += &piece,
            TailItem::Event(event) => {
                messages += u32::from(matches!(event.body, polylogue_core::Body::Message(_)))
            }
            _ => {}
        }
    }
    // What was said before the tail was there is in the events.
    assert!("one two three".repeat(2).ends_with(&text), "{text}");
    assert!(client.stop(&id, When::Now).await.unwrap().stopped);
    until(&mut tail, ConversationState::Halted).await;
    gate.lift();
    client.resume(&id, &Resume::default()).await.unwrap();
    until(&mut tail, ConversationState::Closed).await;
    let fork = Fork { text: Some("Go on.".into()), run: true, ..Fork::default() };
    let fork = client.fork(&id, &fork).await.unwrap();
    assert_eq!(fork.parent.as_ref().map(|parent| &parent.id), Some(&id));
    closed(&client, &fork.id).await;
}

#[tokio::test]
async fn s19_s20_a_tail_of_the_client_goes_through_a_restart_without_a_gap() {
    let gate = std::sync::Arc::new(Gate::until(3));
    let world = World::with_gate("one two three", generous(), std::sync::Arc::clone(&gate)).await;
    let client = client(&world).with_patience(Duration::from_secs(60));
    let id = client.begin(&of("long")).await.unwrap().id;
    let mut tail = client.tail(&id, 0);
    let mut followed = Vec::new();
    let is_third = |events: &[Event]| {
        events.iter().filter(|event| matches!(event.body, polylogue_core::Body::Message(_))).count() == 3
    };
    while !is_third(&followed) {
        if let Some(TailItem::Event(event)) = tail.next().await.unwrap() {
            followed.push(*event);
        }
    }
    gate.lift();
    let world = world.restart_here().await;
    let mut was_lost = false;
    while let Some(item) = tail.next().await.unwrap() {
        match item {
            TailItem::Event(event) => followed.push(*event),
            TailItem::Lost(_) => was_lost = true,
            _ => {}
        }
    }
    assert!(was_lost);
    assert_eq!(
        serde_json::to_value(&followed).unwrap(),
        serde_json::Value::from(events(&world, id.as_str()).await)
    );
}

#[tokio::test]
async fn the_client_checks_texts_and_makes_and_revokes_tokens() {
    let world = World::new().await;
    let client = client(&world);
    let source = client.team_source("talk").await.unwrap();
    let check = |text: &str| Check { text: text.into(), team: None };
    let checked = client.check(&check(&source.text)).await.unwrap();
    assert_eq!((checked.ok, checked.team.unwrap().agents), (true, 2));
    let checked = client.check(&check("name: [")).await.unwrap();
    assert!(!checked.ok && !checked.problems.as_array().unwrap().is_empty());
    assert_eq!(client.schema().await.unwrap()["type"], "object");
    let new = NewToken {
        name: "reader".into(),
        scopes: vec![Scope::Read],
        teams: None,
        per_day: DailyBudget::default(),
        expires_ms: None,
    };
    let made = client.new_token(&new).await.unwrap();
    assert!(!format!("{made:?}").contains(made.token.reveal()));
    let reader = client_with(&world, made.token.reveal());
    assert!(reader.teams().await.is_ok());
    let refused = reader.begin(&of("talk")).await.unwrap_err();
    assert_eq!((refused.problem().unwrap().word(), refused.is_usage()), ("forbidden", true));
    let tokens = client.tokens().await.unwrap().tokens;
    // It was used meanwhile.
    let listed = tokens.iter().find(|token| token.id == made.about.id).unwrap();
    assert!(listed.last_used_ms.is_some() && made.about.last_used_ms.is_none(), "{tokens:?}");
    assert_eq!(polylogue_client::wire::token::Token { last_used_ms: None, ..listed.clone() }, made.about);
    assert_eq!(tokens.len(), 2);
    assert!(client.revoke_token(&made.about.id).await.unwrap().revoked);
    assert_eq!(reader.teams().await.unwrap_err().problem().unwrap().status, 401);
}
