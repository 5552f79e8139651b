//! What the tenants of a server do not share.
use std::path::Path;

use polylogue_models::Env;
use polylogue_runtime::{Access, Prepared, RunOptions, Runtime, StoreLocation};
use polylogue_store::Memory;
use polylogue_team::Loaded;
use polylogue_test::server::{Answer, Behavior, Playbook, Server};

const TEAM: &str = "
name: t
task: Count.
model: openai-chat:gpt-4o
cache: replies.jsonl
agents: [{name: Ann}]
chat: {participants: [Ann], pattern: sequential}
";

const KEY: &str = "sk-test-7f3a9c51d2";

/// Runs the team in `file` at `place`, with the model of `server`.
async fn run(place: StoreLocation, file: &Path, server: &Server) {
    let Loaded { team, digest, .. } = polylogue_team::load(file, &Default::default()).unwrap();
    let address = server.base_url();
    let env = Env::of([("OPENAI_API_KEY", KEY), ("OPENAI_BASE_URL", address.as_str())]);
    let access = Access::new(env, digest.as_str());
    let prepared = Prepared::new(&place, team, digest, access, RunOptions::default()).await.unwrap();
    let runtime = Runtime::with_store(place, Memory::new().into());
    runtime.begin(&prepared.run()).await.unwrap().run().await.unwrap();
}

/// They run the same team with the same file of replies; what one has asked shows to no other.
#[tokio::test]
async fn a_tenant_receives_no_cached_reply_of_another() {
    let server = Server::start(Behavior::from(Playbook::always(Answer::text("One."))).key(KEY)).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.yaml");
    std::fs::write(&file, TEAM).unwrap();
    let local = StoreLocation::new(folder.path().join("store.db"));
    let of = |tenant: &str| local.of_tenant(tenant, folder.path().join(tenant).join("store.db"));
    let mut asked = Vec::new();
    for place in [local.clone(), of("acme"), of("globex"), of("acme"), local.clone()] {
        run(place, &file, &server).await;
        asked.push(server.count());
    }
    assert_eq!(asked, [1, 2, 3, 3, 3]);
}
