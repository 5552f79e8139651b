//! A server whose conversations are in Postgres.

use polylogue_runtime::StoreLocation;
use polylogue_runtime::database::DatabaseAddress;
use polylogue_server::{Scope, ServerOptions};
use polylogue_test::postgres::PostgresServer;
use serde_json::{Value, json};

use crate::client::Request;
use crate::conversations::{PATH, begin, until};
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
    let own = begin(&world, &json!({"team": "talk"})).await;
    until(&world, &own, "closed").await;
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
