//! Appended events are stored unchanged.

use std::sync::Arc;

use polylogue_core::{AnyStore, Body, Event, Path, Store, StoreError, Timestamp};
use serde_json::{Value, json};

use super::support::{Report, Verdict, begin, done, id, keeps, refused, said, same, some};

pub(super) async fn check(make: &impl Fn() -> AnyStore, report: &mut Report) {
    report.check("events are kept in order", in_order(make())).await;
    report.check("reading begins at the given event", read_from(make())).await;
    report.check("a range is a part of the log", ranges(make())).await;
    report.check("a log in pages is the whole log", pages(make())).await;
    report.check("a sound log is intact", intact(make())).await;
    report.check("an empty batch changes nothing", nothing(make())).await;
    report.check("events without gaps are kept, others refused as a whole", gaps(make())).await;
    report.check("every kind of event is kept", every_kind(make())).await;
    report.check("every character is kept", every_character(make())).await;
    report.check("every number is kept", every_number(make())).await;
    report.check("an event of a megabyte is kept", big(make())).await;
    report.check("ten thousand events are kept", many(make())).await;
}

async fn in_order(store: AnyStore) -> Verdict {
    let claim = begin(&store, "a").await?;
    for batch in [some(0, 1), some(1, 4), some(4, 5)] {
        done("append", store.append(&claim, &batch).await)?;
    }
    keeps("the log", &store, &claim.id, &some(0, 5)).await
}

async fn read_from(store: AnyStore) -> Verdict {
    let claim = begin(&store, "a").await?;
    done("append", store.append(&claim, &some(0, 5)).await)?;
    for from in [0, 1, 4, 5, 6, u64::from(u32::MAX), u64::MAX] {
        let found = done("read", store.read(&claim.id, from).await)?;
        let seqs: Vec<u64> = found.iter().map(|event| event.seq).collect();
        same(&format!("reading from {from}"), &seqs, &(from..5).collect())?;
    }
    Ok(())
}

async fn ranges(store: AnyStore) -> Verdict {
    let claim = begin(&store, "a").await?;
    for kept in [0, 5] {
        done("append", store.append(&claim, &some(0, kept)).await)?;
        let all = done("read", store.read(&claim.id, 0).await)?;
        for from in [0, 1, 3, 5, 6, u64::MAX] {
            for to in [0, 1, 3, 4, 5, 6, u64::MAX] {
                let found = done("read_range", store.read_range(&claim.id, from..to).await)?;
                let part: Vec<Event> =
                    all.iter().filter(|event| (from..to).contains(&event.seq)).cloned().collect();
                same(&format!("events {from}..{to} of {kept}"), &found, &part)?;
            }
        }
    }
    match store.read_range(&id("none")?, 0..3).await {
        Err(StoreError::NotFound { .. }) => Ok(()),
        other => Err(format!("a range of no log: {other:?} instead of `NotFound`")),
    }
}

async fn pages(store: AnyStore) -> Verdict {
    let claim = begin(&store, "a").await?;
    let events = some(0, 250);
    done("append", store.append(&claim, &events).await)?;
    let mut read: Vec<Event> = Vec::new();
    for from in (0..250).step_by(50) {
        let page = done("read_range", store.read_range(&claim.id, from..from + 50).await)?;
        same("the events of a page", &page.len(), &50)?;
        read.extend(page);
        // The log grows while it is read.
        let next = 250 + from / 50;
        done("append", store.append(&claim, &some(next, next + 1)).await)?;
    }
    read.extend(done("read_range", store.read_range(&claim.id, 250..300).await)?);
    same("the pages", &read.iter().map(|event| event.seq).collect::<Vec<_>>(), &(0..255).collect())
}

async fn intact(store: AnyStore) -> Verdict {
    let claim = begin(&store, "a").await?;
    for kept in [0, 4] {
        done("append", store.append(&claim, &some(0, kept)).await)?;
        let found = done("read_intact", store.read_intact(&claim.id).await)?;
        same("the damage", &found.damage, &None)?;
        same("the events", &found.events, &done("read", store.read(&claim.id, 0).await)?)?;
        same("their number", &(found.events.len() as u64), &kept)?;
    }
    Ok(())
}

async fn nothing(store: AnyStore) -> Verdict {
    let claim = begin(&store, "a").await?;
    done("appending nothing", store.append(&claim, &[]).await)?;
    done("append", store.append(&claim, &some(0, 2)).await)?;
    done("appending nothing", store.append(&claim, &[]).await)?;
    keeps("the log", &store, &claim.id, &some(0, 2)).await
}

async fn gaps(store: AnyStore) -> Verdict {
    let claim = begin(&store, "a").await?;
    let gap = |kept, given| StoreError::Gap { id: claim.id.clone(), kept, given };
    refused("beginning with event 1", store.append(&claim, &some(1, 2)).await, &gap(0, 1))?;
    done("append", store.append(&claim, &some(0, 3)).await)?;
    refused("leaving one out", store.append(&claim, &some(4, 6)).await, &gap(3, 4))?;
    refused("repeating one", store.append(&claim, &some(2, 4)).await, &gap(3, 2))?;
    let within = [some(3, 5), some(6, 7)].concat();
    match store.append(&claim, &within).await {
        Err(StoreError::Gap { given: 6, .. }) => {}
        other => return Err(format!("leaving one out within a batch: {other:?} instead of `Gap`")),
    }
    keeps("the log", &store, &claim.id, &some(0, 3)).await?;
    done("append", store.append(&claim, &some(3, 4)).await)?;
    keeps("the log", &store, &claim.id, &some(0, 4)).await
}

/// One event of every kind.
fn kinds() -> Value {
    json!([
        {"type": "opened", "participants": ["a", "critic"], "task": "t", "messages": [{"from": "user", "parts": [{"text": "hi"}]}]},
        {"type": "turn_started", "turns": [{"who": "a"}, {"who": "a", "prompt": "only you", "to": {"only": ["critic"]}}]},
        {"type": "model_replied", "who": "a", "model": "p:m", "request": "00112233445566778899aabbccddeeff",
         "parts": [{"thought": "hm"}, {"text": "x"}, {"call": {"id": "1", "tool": "t", "args": {"n": [1, {}]}}}],
         "finish": "calls", "usage": {"input": 7, "output": 1, "cached": 0, "reasoning": 0}, "cost": 1500},
        {"type": "model_replied", "who": "a", "model": "p:m", "request": "ffffffffffffffffffffffffffffffff",
         "parts": [], "finish": "unknown"},
        {"type": "prompted", "who": "a", "text": "that was not JSON"},
        {"type": "tool_called", "who": "a", "call": {"id": "1", "tool": "t", "args": "not an object"}},
        {"type": "tool_returned", "who": "a", "id": "1", "result": {"status": "failed", "parts": [{"data": [null]}]}},
        {"type": "message", "from": "a", "to": {"only": []}, "parts": [{"media": {"type": "image/png", "url": "data:,"}}]},
        {"type": "passed", "who": "a"},
        {"type": "left", "who": "a", "why": "done"},
        {"type": "posted", "from": "a", "parts": []},
        {"type": "input_required", "who": "a", "text": "go on?"},
        {"type": "input_provided", "to": "a", "text": ""},
        {"type": "failed", "who": "a", "error": {"fault": "provider", "message": "m", "hint": "h"}},
        {"type": "closed", "reason": {"loop_detected": {"pattern": "calls", "text": "the same tool call repeatedly", "evidence": [1, 2]}}, "summary": "s"},
        {"type": "closed", "reason": "finished", "summary": ""},
        {"type": "reopened"},
    ])
}

async fn every_kind(store: AnyStore) -> Verdict {
    let bodies: Vec<Body> = serde_json::from_value(kinds()).map_err(|error| error.to_string())?;
    let name = polylogue_core::Name::new("critic").map_err(|error| error.to_string())?;
    let events = (0..).zip(bodies).map(|(seq, body)| {
        let at = if seq % 2 == 0 { Path::root() } else { Path::root().child(&name, seq) };
        Arc::new(Event { seq, chat: at, time: Timestamp(seq << 40), ran_ms: 0, inbox: None, body })
    });
    appended(&store, &events.collect::<Vec<_>>()).await
}

async fn appended(store: &AnyStore, events: &[Arc<Event>]) -> Verdict {
    let claim = begin(store, "a").await?;
    done("append", store.append(&claim, events).await)?;
    keeps("the log", store, &claim.id, events).await
}

async fn every_character(store: AnyStore) -> Verdict {
    let texts = [
        "\0\u{1}\u{7f}\u{85}",
        "a\nb\r\nc\rd\u{2028}e\u{2029}f",
        "\u{feff}\"\\/'`$()?1{}[]<>&;--",
        "Zwölf Boxkämpfer 翻译 עברית 👩‍👩‍👧 \u{10ffff}\u{fffd}\u{202e}",
        "",
        " \t ",
    ];
    let events: Vec<_> = (0..).zip(texts).map(|(seq, text)| said(seq, text)).collect();
    appended(&store, &events).await
}

async fn every_number(store: AnyStore) -> Verdict {
    let numbers = json!([
        0.1,
        -0.0,
        1e300,
        5e-324,
        1.797_693_134_862_315_7e308,
        9_007_199_254_740_993_u64,
        0.300_000_000_000_000_04,
        122.416_294_033_786_58,
        u64::MAX,
        i64::MIN,
        1.0
    ]);
    let body =
        json!({"type": "tool_called", "who": "a", "call": {"id": "1", "tool": "t", "args": {"n": numbers}}});
    let body: Body = serde_json::from_value(body).map_err(|error| error.to_string())?;
    let event = Event { seq: 0, chat: Path::root(), time: Timestamp(u64::MAX), ran_ms: 0, inbox: None, body };
    appended(&store, &[Arc::new(event)]).await
}

async fn big(store: AnyStore) -> Verdict {
    let text = "0123456789abcdé\n".repeat(1 << 16);
    appended(&store, &[said(0, "before"), said(1, &text), said(2, "after")]).await
}

async fn many(store: AnyStore) -> Verdict {
    const EVENTS: u64 = 10_000;
    let claim = begin(&store, "a").await?;
    let events = some(0, EVENTS);
    for batch in events.chunks(999) {
        done("append", store.append(&claim, batch).await)?;
    }
    keeps("the log", &store, &claim.id, &events).await?;
    same("the last ten", &done("read", store.read(&claim.id, EVENTS - 10).await)?.len(), &10)?;
    done("release", store.release(claim.clone()).await)?;
    let again = done("claim", store.claim(&claim.id).await)?;
    done("append", store.append(&again, &some(EVENTS, EVENTS + 1)).await)
}
