//! A server whose conversations are in Postgres.

use std::path::Path;
use std::time::Duration;

use polylogue_core::{Instruction, LogId};
use polylogue_runtime::database::DatabaseAddress;
use polylogue_runtime::{Runtime, StoreLocation};
use polylogue_server::{Scope, ServerOptions, ask_server};
use polylogue_test::postgres::PostgresServer;
use serde_json::{Value, json};

use crate::client::Request;
use crate::conversations::{PATH, begin, begin_until, events, said, until};
use crate::tails::asked;
use crate::world::{World, generous, loopback, place};

#[tokio::test]
async fn tenants_of_one_database_see_only_their_own_conversations() {
    let Some(server) = PostgresServer::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let address = DatabaseAddress::parse(&server.url()).unwrap();
    let place = StoreLocation::postgres(address, place(dir.path()).path());
    let world =
        World::start(dir, ServerOptions { limits: generous(), ..ServerOptions::new(loopback(), place) })
            .await;
    let own = begin_until(&world, "talk", "closed").await;
    let (_, other) = world.new_token("other", &Scope::ALL);
    let request = |method: &str, path: &str| Request::new(method, path).token(&other);
    let begun = request("POST", PATH).json(&json!({"team": "talk"})).send(world.address).await;
    assert_eq!(begun.status, 201, "{}", begun.body);
    let theirs = begun.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(request("GET", &format!("{PATH}/{own}")).send(world.address).await.status, 404);
    assert_eq!(world.get(&format!("{PATH}/{theirs}")).await.status, 404);
    let ids = |list: Value| {
        list["conversations"].as_array().unwrap().iter().map(|one| one["id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(world.get(PATH).await.json()), [json!(own)]);
    assert_eq!(ids(request("GET", PATH).send(world.address).await.json()), [json!(theirs)]);
    world.stop().await;
    // Nothing was made in the file system, and nothing is claimed any more.
    let tenants =
        server.sql("SELECT string_agg(tenant, ' ' ORDER BY tenant) FROM polylogue.logs WHERE holder IS NULL");
    assert_eq!(tenants, "local other");
}

#[tokio::test]
async fn a_server_does_not_start_without_its_database() {
    let dir = tempfile::tempdir().unwrap();
    let address = DatabaseAddress::parse("postgres://ann:s3cret@127.0.0.1:1/chats").unwrap();
    let place = StoreLocation::postgres(address, place(dir.path()).path());
    let files = crate::world::files(&dir, None);
    let refused = polylogue_server::Server::bind(ServerOptions::new(loopback(), place), files).await;
    let error = refused.err().unwrap();
    assert!(error.to_string().starts_with("postgres://ann@127.0.0.1:1/chats cannot be reached"), "{error}");
    assert!(error.hint().is_some() && !format!("{error:?}").contains("s3cret"));
}

/// Waits until so many servers hear what commands ask them.
async fn hear(database: &PostgresServer, servers: usize) {
    let hearing =
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock' AND granted";
    while database.sql(hearing) != servers.to_string() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The folders of processes in which it is noted that a conversation is to run.
fn noted_in(dir: &Path) -> usize {
    let entries = std::fs::read_dir(dir.join("data/conversations.db.server/running")).unwrap();
    entries.filter(|entry| entry.as_ref().unwrap().path().is_dir()).count()
}

/// Both servers are of machines of their own, and have no worker.
#[tokio::test]
async fn s40_what_another_program_answers_in_a_database_continues_at_one_of_its_servers() {
    let Some(database) = PostgresServer::start() else { return };
    let at = |dir: &Path| {
        let address = DatabaseAddress::parse(&database.url()).unwrap();
        StoreLocation::postgres(address, place(dir).path())
    };
    let server = async || {
        let dir = tempfile::tempdir().unwrap();
        let options = ServerOptions { limits: generous(), ..ServerOptions::new(loopback(), at(dir.path())) };
        World::start(dir, options).await
    };
    let (first, second) = (server().await, server().await);
    hear(&database, 2).await;
    let id = begin(&first, &json!({"team": "ask"})).await;
    let other = begin(&first, &json!({"team": "ask"})).await;
    let dir = tempfile::tempdir().unwrap();
    let program = Runtime::open_at(at(dir.path())).unwrap();
    let answer = async |world: &World, id: &str| {
        let (question, log) = (asked(world, id).await.as_u64().unwrap(), LogId::new(id).unwrap());
        while program.is_claimed(&log).await.unwrap() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let answer = Instruction::Answer { question, text: "Hm.".into(), by: None };
        program.steer(&log, answer).await.unwrap();
        ask_server(&program, &log).await.unwrap()
    };
    assert!(answer(&first, &id).await);
    until(&first, &id, "closed").await;
    assert_eq!(said(&events(&second, &id).await), ["Hm.", "Thanks."]);
    asked(&first, &other).await;
    let first = first.stop().await;
    hear(&database, 1).await;
    assert!(answer(&second, &other).await, "the other one has begun it");
    until(&second, &other, "closed").await;
    let second = second.stop().await;
    for dir in [first, second] {
        assert_eq!(noted_in(dir.path()), 0, "a restart continues neither");
    }
    hear(&database, 0).await;
    assert!(!ask_server(&program, &LogId::new(&id).unwrap()).await.unwrap(), "no server runs");
}
