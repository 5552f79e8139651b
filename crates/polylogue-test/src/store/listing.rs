//! Logs are listed, with summaries, in pages, by queries.

use std::sync::Arc;

use polylogue_core::{
    AnyStore, Body, Event, Failure, ListQuery, Listing, LogId, LogState, Message, Meta, ModelReply, Name,
    Opening, Parent, Path, Question, StopReason, Store, Summary, Timestamp,
};
use serde_json::json;

use super::support::{Report, Verdict, begin, done, id, meta, same, some};

pub(super) async fn check(make: &impl Fn() -> AnyStore, report: &mut Report) {
    report.check("an empty store lists nothing", empty(make())).await;
    report.check("logs are listed newest first, with their summaries", listed(make())).await;
    report.check("the summary is that of all events after every append", summarized(make())).await;
    report.check("the list follows what happens", follows(make())).await;
    report.check("every legal id and title is kept", ids(make())).await;
    report.check("pages continue at their cursors", pages(make())).await;
    report.check("a query lists what matches it", filtered(make())).await;
    report.check("looking whether it can be written changes nothing", checked(make())).await;
}

async fn list(store: &AnyStore) -> Result<Vec<Listing>, String> {
    Ok(done("list", store.list(&ListQuery::default()).await)?.logs)
}

async fn empty(store: AnyStore) -> Verdict {
    same("the number of logs", &done("count", store.count().await)?, &0)?;
    same("the list", &list(&store).await?, &Vec::new())
}

async fn checked(store: AnyStore) -> Verdict {
    let (id, claim) = (id("a")?, begin(&store, "a").await?);
    done("append", store.append(&claim, &some(0, 2)).await)?;
    let before = (list(&store).await?, done("read", store.read(&id, 0).await)?);
    for _ in 0..3 {
        done("check_writable", store.check_writable().await)?;
    }
    same("the store", &(list(&store).await?, done("read", store.read(&id, 0).await)?), &before)
}

fn summary_of(events: &[Arc<Event>]) -> Summary {
    Summary::of(events.iter().map(AsRef::as_ref), true)
}

async fn listed(store: AnyStore) -> Verdict {
    let mut wanted = Vec::new();
    let other = id("a")?;
    for (name, created, events) in [("b", 20, 3), ("d", 40, 0), ("a", 10, 1), ("c", 30, 2)] {
        let parent = (name == "c").then(|| Parent { id: other.clone(), event: 1, edited: false });
        let (id, meta) = (id(name)?, Meta { parent, ..meta(&format!("title of {name}"), created) });
        let claim = done("create", store.create(&id, &meta).await)?;
        let batch = some(0, events);
        done("append", store.append(&claim, &batch).await)?;
        same("its meta", &done("meta", store.meta(&id).await)?, &meta)?;
        let Meta { title, created, team, parent } = meta;
        let summary = summary_of(&batch);
        let (has_team, is_damaged, is_archived) = (!team.is_null(), false, false);
        wanted.push(Listing { id, title, created, has_team, parent, summary, is_damaged, is_archived });
    }
    wanted.sort_by_key(|listing| std::cmp::Reverse(listing.created));
    same("the number of logs", &done("count", store.count().await)?, &4)?;
    same("the list", &list(&store).await?, &wanted)
}

/// A conversation in which everything happens that a summary tells.
fn story() -> Vec<Arc<Event>> {
    let name = |name: &str| Name::new(name).unwrap_or_else(|_| Name::user());
    let (ann, task) = (name("Ann"), "Plan the week. ".repeat(100));
    let reply: Option<ModelReply> = serde_json::from_value(json!({
        "who": "Ann", "model": "m", "request": "0".repeat(32), "parts": [], "finish": "stop",
        "usage": {"input": 7, "output": 5}, "cost": 9,
    }))
    .ok();
    let failure: Option<Failure> =
        serde_json::from_value(json!({"fault": "provider", "message": "no\nnet"})).ok();
    let ask = |text: &str| Body::InputRequired(Question::new(ann.clone(), text));
    let bodies = [
        Some(Body::Opened(Opening {
            participants: vec![ann.clone()],
            task: task.into(),
            ..Opening::default()
        })),
        reply.map(Body::ModelReplied),
        Some(Body::Message(Message::new(ann.clone(), "Monday?"))),
        failure.map(|error| Body::Failed { who: ann.clone(), error }),
        Some(Body::Cancelled { now: false }),
        Some(ask("Which day?")),
        Some(Body::Sent(Message::new(Name::user(), "Hurry."))),
        Some(Body::InputProvided { to: ann.clone(), text: "Monday.".into(), by: Default::default() }),
        Some(Body::Closed { reason: StopReason::Finished, summary: "Monday.".into() }),
    ];
    let event = |(seq, body)| {
        Arc::new(Event {
            seq,
            chat: Path::root(),
            time: Timestamp(1_763_712_000_000 + seq),
            ran_ms: seq,
            inbox: None,
            body,
        })
    };
    (0..).zip(bodies.into_iter().flatten()).map(event).collect()
}

async fn summarized(store: AnyStore) -> Verdict {
    let claim = begin(&store, "a").await?;
    let events = story();
    same("the number of events", &events.len(), &9)?;
    let mut states = Vec::new();
    for nth in 1..=events.len() {
        let (before, batch) = events.get(..nth).unwrap_or_default().split_at(nth - 1);
        done("append", store.append(&claim, batch).await)?;
        let found = list(&store).await?.pop().ok_or("the log is not in the list")?;
        same("its summary", &found.summary, &summary_of(&[before, batch].concat()))?;
        states.push(found.state());
    }
    use LogState::{Done, Failed, Open, Waiting};
    same("the states", &states, &vec![Open, Open, Open, Failed, Failed, Waiting, Waiting, Open, Done])?;
    let whole = begin(&store, "b").await?;
    done("append", store.append(&whole, &events).await)?;
    let found: Vec<Summary> = list(&store).await?.into_iter().map(|listing| listing.summary).collect();
    let [first, second] = &*found else { return Err(format!("{} logs are listed", found.len())) };
    same("the summary of one append", first, second)?;
    same("its usage", &(second.usage.tokens(), second.usage.cost.picodollars, second.turns), &(12, 9, 1))?;
    same("its task", &second.task.chars().count(), &Summary::TASK_CHARS)
}

async fn follows(store: AnyStore) -> Verdict {
    let (a, b) = (begin(&store, "a").await?, begin(&store, "b").await?);
    done("append", store.append(&a, &some(0, 2)).await)?;
    done("append", store.append(&a, &some(2, 3)).await)?;
    let find = |listings: Vec<Listing>, id: &LogId| listings.into_iter().find(|listing| listing.id == *id);
    let found = find(list(&store).await?, &a.id).ok_or("the log is not in the list")?;
    same("its length", &found.summary.events, &3)?;
    done("release", store.release(b.clone()).await)?;
    done("remove", store.remove(&b.id).await)?;
    same("the removed log in the list", &find(list(&store).await?, &b.id), &None)
}

async fn ids(store: AnyStore) -> Verdict {
    let long = "x".repeat(64);
    let titles = ["", "\0", "\"quoted\" \\ 'so'", "two\nlines", "翻译 👩‍👩‍👧", &"long ".repeat(2000), "%s $1 ?1"];
    let names = ["-", "_", "0", "A-b_3", &long, "-rf", "con"];
    for (created, (name, title)) in (0..).zip(names.iter().zip(titles)) {
        let meta = Meta { title: title.into(), created: Timestamp(created), ..Meta::default() };
        let claim = done("create", store.create(&id(name)?, &meta).await)?;
        done("append", store.append(&claim, &some(0, 1)).await)?;
        same("its meta", &done("meta", store.meta(&claim.id).await)?, &meta)?;
    }
    let mut found: Vec<String> = list(&store).await?.iter().map(|listing| listing.id.to_string()).collect();
    found.reverse();
    same("the ids", &found, &names.iter().map(ToString::to_string).collect())
}

async fn found(store: &AnyStore, query: &ListQuery) -> Result<Vec<String>, String> {
    let page = done("list", store.list(query).await)?;
    Ok(page.logs.iter().map(|listing| listing.id.to_string()).collect())
}

/// Creates a log without events.
async fn create(store: &AnyStore, name: &str, title: &str, created: u64) -> Verdict {
    done("create", store.create(&id(name)?, &meta(title, created)).await).map(drop)
}

async fn pages(store: AnyStore) -> Verdict {
    for (name, created) in [("a", 1), ("b", 2), ("c", 2), ("d", 2), ("e", 3), ("f", 4), ("g", 4)] {
        create(&store, name, "t", created).await?;
    }
    let mut query = ListQuery { limit: Some(3), ..ListQuery::default() };
    let first = done("list", store.list(&query).await)?;
    // Logs that are created or removed do not move the others to another page.
    create(&store, "new", "t", 9).await?;
    query.after = first.next;
    let second = done("list", store.list(&query).await)?;
    query.after.clone_from(&second.next);
    let third = done("list", store.list(&query).await)?;
    let names = |logs: &[Listing]| logs.iter().map(|log| log.id.to_string()).collect::<String>();
    let pages = [&first.logs, &second.logs, &third.logs].map(|logs| names(logs));
    same("the pages", &pages, &["gfe", "dcb", "a"].map(str::to_owned))?;
    same("the cursor of the last page", &third.next, &None)
}

async fn filtered(store: AnyStore) -> Verdict {
    for (name, title, created) in [("ab", "news 1", 1), ("ac", "newsroom", 2), ("b", "news", 3)] {
        create(&store, name, title, created).await?;
    }
    let fork = Meta { parent: Some(Parent { id: id("b")?, event: 2, edited: true }), ..meta("fork", 4) };
    let claim = done("create", store.create(&id("fork")?, &fork).await)?;
    done("append", store.append(&claim, story().get(..6).unwrap_or_default()).await)?;
    let all = ListQuery::default;
    let queries = [
        ("all", all(), "fork b ac ab"),
        ("an id", ListQuery { id: Some("a".into()), ..all() }, "ac ab"),
        ("a team", ListQuery { team: Some("news".into()), ..all() }, "b ab"),
        ("a time", ListQuery { since: Some(Timestamp(3)), ..all() }, "fork b"),
        ("a parent", ListQuery { parent: Some(id("b")?), ..all() }, "fork"),
        ("a task", ListQuery { task: Some("the WEEK".into()), ..all() }, "fork"),
        ("another task", ListQuery { task: Some("month".into()), ..all() }, ""),
        ("a state", ListQuery { states: vec![LogState::Waiting], ..all() }, "fork"),
        ("those to resume", ListQuery::unfinished(), "b ac ab"),
        ("a page of them", ListQuery { limit: Some(1), ..ListQuery::unfinished() }, "b"),
    ];
    for (what, query, wanted) in queries {
        same(what, &found(&store, &query).await?.join(" "), &wanted.to_owned())?;
    }
    Ok(())
}
