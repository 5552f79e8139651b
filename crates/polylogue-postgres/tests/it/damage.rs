//! Logs that something else has changed in the database.

use polylogue_core::chain::Link;
use polylogue_core::{
    AnyStore, Error, InboxMessage, Instruction, ListQuery, Log, LogState, Meta, Store, StoreError, Summary,
    Timestamp,
};
use serde_json::json;

use crate::support::{assert_events, id, open, opened, some};

#[tokio::test]
async fn what_was_changed_in_the_database_is_noticed_and_repaired() {
    let Some((server, store)) = opened() else { return };
    let changes = [
        (
            "changed",
            "UPDATE polylogue.events SET json = replace(json, '\"3\"', '\"4\"')",
            3,
            "event 3 is not what was written",
        ),
        ("missing", "DELETE FROM polylogue.events WHERE seq = 2", 2, "event 2 is missing"),
        ("cut", "DELETE FROM polylogue.events WHERE seq = 4", 4, "4 events, and 5 were acknowledged"),
        ("forged", "UPDATE polylogue.logs SET events = 4", 5, "5 events, of which 4 were appended"),
        ("renamed", "UPDATE polylogue.logs SET title = '\"another\"'", 5, "title, time, team or name"),
        ("teamless", "UPDATE polylogue.teams SET json = '{}'", 5, "title, time, team or name"),
    ];
    for (name, change, intact, why) in changes {
        let meta = Meta { title: name.into(), team: json!({ "of": name }), ..Meta::default() };
        let claim = store.create(&id(name), &meta).await.unwrap();
        store.append(&claim, &some(0, 5)).await.unwrap();
        store.release(claim).await.unwrap();
        let of = match change.contains("polylogue.teams") {
            true => format!("digest = (SELECT team FROM polylogue.logs WHERE id = '{name}')"),
            false if change.contains("polylogue.logs") => format!("id = '{name}'"),
            false => format!("log = (SELECT nr FROM polylogue.logs WHERE id = '{name}')"),
        };
        let and = if change.contains("WHERE") { "AND" } else { "WHERE" };
        let _ = server.sql(&format!("{change} {and} {of}"));
        let found = store.read_intact(&id(name)).await.unwrap();
        let Some(StoreError::Damaged { why: said, intact: count, place }) = &found.damage else {
            panic!("{name}: {found:?}")
        };
        assert!(
            said.contains(why) && *count == intact && place.contains("postgres://"),
            "{name}: {:?}",
            found.damage
        );
        let is_meta = ["renamed", "teamless"].contains(&name);
        assert_eq!(store.meta(&id(name)).await.is_err(), is_meta, "{name}");
        assert_eq!(store.read(&id(name), 0).await.is_err(), !is_meta, "{name}");
        // Two events before the damage, and all of them.
        assert_events(&store.read_range(&id(name), 0..2).await.unwrap(), 2);
        assert_eq!(store.read_range(&id(name), 0..5).await.is_err(), !is_meta, "{name}");
        assert_eq!(store.repair(&id(name)).await, Ok(intact), "{name}");
        assert_events(&store.read(&id(name), 0).await.unwrap(), intact);
        assert_eq!(store.repair(&id(name)).await, Ok(intact), "{name} is intact");
        let claim = store.claim(&id(name)).await.unwrap();
        store.append(&claim, &some(intact, intact + 1)).await.unwrap();
        assert_events(&store.read(&id(name), 0).await.unwrap(), intact + 1);
        store.release(claim).await.unwrap();
    }
    // What was behind the damage is set aside.
    assert_eq!(server.sql("SELECT count(*) FROM polylogue.set_aside WHERE id = 'changed'"), "2");
}

#[tokio::test]
async fn a_summary_that_was_changed_is_made_of_the_log() {
    let Some((server, store)) = opened() else { return };
    let claim = store.create(&id("a"), &Meta::default()).await.unwrap();
    store.append(&claim, &some(0, 3)).await.unwrap();
    let _ = server.sql("UPDATE polylogue.logs SET summary = '{}'");
    let listed = store.list(&ListQuery::default()).await.unwrap().logs;
    let events = store.read(&id("a"), 0).await.unwrap();
    assert_eq!(
        listed.iter().map(|listing| &listing.summary).collect::<Vec<_>>(),
        [&Summary::of(&events, false)]
    );
    assert_eq!(listed[0].state(), LogState::Open);
}

#[tokio::test]
async fn w43_an_event_that_only_a_later_version_knows_is_kept_and_refused() {
    let Some((server, store)) = opened() else { return };
    let claim = store.create(&id("a"), &Meta::default()).await.unwrap();
    store.append(&claim, &some(0, 3)).await.unwrap();
    store.release(claim).await.unwrap();
    let before = server.sql("SELECT encode(chain, 'hex') FROM polylogue.events WHERE seq = 1");
    let json = r#"{"seq":2,"time_ms":0,"type":"hologram_shown","of":"Ann"}"#;
    let link = Link::parse(before.as_bytes()).unwrap().next(json.as_bytes());
    let _ = server
        .sql(&format!("UPDATE polylogue.events SET json = '{json}', chain = '\\x{link}' WHERE seq = 2"));
    let _ = server.sql(&format!("UPDATE polylogue.logs SET chain = '\\x{link}'"));
    let refused = store.read(&id("a"), 0).await.unwrap_err();
    let StoreError::UnknownEvent { seq: 2, kind, place } = &refused else { panic!("{refused:?}") };
    assert!(kind == "hologram_shown" && place.contains("postgres://"), "{refused:?}");
    assert!(refused.hint().unwrap().contains("update Polylogue"), "{refused:?}");
    // It is neither run nor repaired: nothing of it changes.
    let store = AnyStore::new(store);
    let opened = Log::open(store.clone(), id("a")).await.map(drop);
    assert!(matches!(opened, Err(Error::Store(ref error)) if *error == refused), "{opened:?}");
    assert_eq!(store.repair(&id("a")).await, Err(refused));
    assert_eq!(server.sql("SELECT json FROM polylogue.events WHERE seq = 2"), json);
    assert_eq!(server.sql("SELECT count(*) FROM polylogue.set_aside"), "0");
    assert_eq!(server.sql("SELECT holder IS NULL FROM polylogue.logs"), "t");
}

#[tokio::test]
async fn w43_an_instruction_that_only_a_later_version_knows_is_kept_and_refused() {
    let Some((server, store)) = opened() else { return };
    let claim = store.create(&id("a"), &Meta::default()).await.unwrap();
    let _ = server.sql(
        r#"INSERT INTO polylogue.inbox(log, nr, key, json)
            SELECT nr, 1, '"later"', '{"key":"later","posted_ms":1,"instruction":{"dim":{"by":3}}}' FROM polylogue.logs;
            UPDATE polylogue.logs SET posted = 1"#,
    );
    let refused = store.inbox(&id("a"), 0).await.unwrap_err();
    let StoreError::UnknownInstruction { number: 1, kind, place } = &refused else { panic!("{refused:?}") };
    assert!(kind == "dim" && place.contains("postgres://"), "{refused:?}");
    assert!(refused.hint().unwrap().contains("update Polylogue"), "{refused:?}");
    let message = |key: &str| InboxMessage {
        key: key.into(),
        request: None,
        posted: Timestamp(1),
        instruction: Instruction::Pause,
    };
    assert_eq!(store.post(&claim.id, &message("later")).await, Ok(1), "its key is known");
    assert_eq!(store.post(&claim.id, &message("last")).await, Ok(2));
    assert_eq!(store.inbox(&id("a"), 1).await, Ok(vec![(2, message("last"))]));
}

/// One query counts the rows of the tenant: what no list can contain shows that none is made.
#[tokio::test]
async fn logs_are_counted_without_a_list() {
    let Some((server, store)) = opened() else { return };
    for name in ["a", "b"] {
        store.create(&id(name), &Meta::default()).await.unwrap();
    }
    let _ = server.sql("UPDATE polylogue.logs SET id = 'no id' WHERE id = 'a'");
    assert!(store.list(&ListQuery::default()).await.is_err());
    assert_eq!(store.count().await, Ok(2));
    assert_eq!(open(&server).of_tenant("acme").unwrap().count().await, Ok(0));
}
