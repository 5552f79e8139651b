//! What a conversation that is handed over needs by its team: keys, MCP servers, the sandbox.

use polylogue_test::postgres::PostgresServer;
use polylogue_test::server::{Answer, Behavior, Playbook, Server};
use serde_json::Value;

use crate::commands::{TALK, WRITES};
use crate::place::{Place, of_type, until};

/// An agent whose tool is of a server that the user declares.
const READER: &str = "
name: reader
task: Read.
agents: [{name: Ann, tools: [{mcp: files}]}]
chat: {participants: [Ann], pattern: sequential}
script: [{Ann: Nothing.}]
";

/// A server of MCP.
const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../polylogue-mcp/tests/it/server.py");

/// An agent that runs programs.
const CODER: &str = "
name: coder
task: Compute.
agents: [{name: Ann, tools: [python]}]
chat: {participants: [Ann], pattern: sequential}
script: [{Ann: Two.}]
";

fn model() -> Server {
    let book = Playbook::new(|_, _| Answer::text("Hello."));
    Server::bind((std::net::Ipv4Addr::LOCALHOST, 0).into(), Behavior::from(book)).unwrap()
}

pub(crate) fn needs(place: &Place, id: &str) -> String {
    let (_, logs) = place.cluster();
    let log = logs.iter().find(|log| log["id"] == id).unwrap();
    let needs = log["needs"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
    needs.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_worker_without_the_key_never_claims_what_needs_it() {
    let Some(server) = PostgresServer::start() else { return };
    let model = model();
    let with_key = Place::new(&server.url()).with_model(&model);
    let without_key = Place::new(&server.url());
    with_key.file("team.yaml", TALK.split("script").next().unwrap());
    without_key.file("team.yaml", TALK);
    let id = with_key.detach(&["team.yaml", "--model", "openai:test", "--needs", "gpu"]);
    assert_eq!(needs(&with_key, &id), "gpu key:openai");
    // Handed over again, it needs the same, and of other words what is said then.
    with_key.run(&["resume", &id, "--detach"], 0);
    assert_eq!(needs(&with_key, &id), "gpu key:openai");
    let first = without_key.worker(&["--offers", "gpu"]);
    // It works, on what it can.
    let scripted = without_key.detach(&["team.yaml"]);
    until("the other one has ended", || of_type(&without_key.events(&scripted), "closed").len() == 1);
    let row = with_key.run(&["cluster"], 0).out;
    assert!(row.contains("needs gpu key:openai; no worker offers key:openai"), "{row}");
    assert!(!first.log().contains("is left to other workers"), "{}", first.log());
    let _second = with_key.worker(&["--offers", "gpu"]);
    until("it has ended", || of_type(&with_key.events(&id), "closed").len() == 1);
    assert_eq!(server.sql("SELECT max(takeovers) FROM polylogue.logs"), "0");
}

/// `serve --worker` takes what `worker` does.
#[test]
fn a_server_that_is_a_worker_offers_what_it_says_and_runs_as_many() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url()).with_team(TALK);
    let id = place.detach(&["team.yaml", "--needs", "gpu"]);
    let serve =
        ["serve", "team.yaml", "--listen", "127.0.0.1:0", "--worker", "--at-once", "3", "--offers", "gpu"];
    let _served = place.begin(&serve, "served");
    until("it has ended", || of_type(&place.events(&id), "closed").len() == 1);
    let (workers, _) = place.cluster();
    assert_eq!(workers[0]["at_once"], 3, "{workers:?}");
    assert!(workers[0]["offers"].to_string().contains("\"gpu\""), "{workers:?}");
}

#[test]
fn servers_of_the_user_and_the_sandbox_are_needed_where_the_team_uses_them() {
    let Some(server) = PostgresServer::start() else { return };
    let place = Place::new(&server.url());
    place.file("coder.yaml", CODER);
    place.file("talk.yaml", TALK);
    place.file("reader.yaml", READER);
    let args = serde_json::json!([SERVER, "fine", place.path("notes")]);
    let servers = serde_json::json!({"mcpServers": {"files": {"command": "python3", "args": args}}});
    place.file("servers.json", &servers.to_string());
    let (coder, talk) = (place.detach(&["coder.yaml"]), place.detach(&["talk.yaml"]));
    let reader = place.detach(&["reader.yaml", "--mcp", "servers.json"]);
    let found = [&coder, &talk, &reader].map(|id| needs(&place, id));
    assert_eq!(found, ["files-kept sandbox", "", "mcp:files"]);
    // One without the servers runs the others.
    let first = place.worker(&[]);
    until("the others have ended", || {
        [&coder, &talk].iter().all(|id| of_type(&place.events(id), "closed").len() == 1)
    });
    let row = place.run(&["cluster"], 0).out;
    assert!(row.contains("no worker offers mcp:files"), "{row}{}", first.log());
    let second = place.worker(&["--mcp", "servers.json"]);
    until("it has ended", || of_type(&place.events(&reader), "closed").len() == 1);
    let (workers, _) = place.cluster();
    assert!(
        workers.iter().any(|worker| worker["offers"].to_string().contains("\"mcp:files\"")),
        "{workers:?} {}",
        second.log()
    );
}

/// A worker that treats files otherwise would continue without them, or store what is not to be stored.
#[test]
fn a_conversation_with_files_is_run_by_workers_that_treat_them_as_the_process_in_which_it_began() {
    let Some(server) = PostgresServer::start() else { return };
    let place = |files: &str| {
        let place = Place::new(&server.url()).with_var("POLYLOGUE_FILES", files).with_team(WRITES);
        place.file("plain.yaml", TALK);
        place
    };
    let (kept, local, none) = (place("kept"), place("local"), place("none"));
    let ids = [&kept, &none].map(|place| place.detach(&["team.yaml"]));
    let mut again = kept.command(&["resume", &ids[0], "--detach"]);
    assert!(again.env("POLYLOGUE_FILES", "local").status().unwrap().success());
    for (id, word) in ids.iter().zip(["files-kept", "files-none"]) {
        let needs = needs(&kept, id);
        assert!(needs.split(' ').any(|needed| needed == word), "{needs}");
    }
    let plain = local.detach(&["plain.yaml"]);
    let has_ended = |id: &str| of_type(&kept.events(id), "closed").len() == 1;
    let _local = local.worker(&[]);
    until("one without files has ended", || has_ended(&plain));
    assert!(ids.iter().all(|id| kept.events(id).is_empty()), "the others are not taken");
    let _kept = kept.worker(&[]);
    until("one whose files are stored has ended", || has_ended(&ids[0]));
    assert!(kept.events(&ids[1]).is_empty(), "the other one is not taken");
    let _none = none.worker(&[]);
    until("one whose files are not kept has ended", || has_ended(&ids[1]));
    let has_stored = |id: &String| {
        let blobs = "SELECT count(*) > 0 FROM polylogue.blobs JOIN polylogue.logs ON log = nr";
        server.sql(&format!("{blobs} WHERE logs.id = '{id}'"))
    };
    assert_eq!(ids.each_ref().map(has_stored), ["t", "f"]);
}

/// A key of Bedrock is credentials that can be found: a region alone is none.
#[test]
fn credentials_of_amazon_are_offered_where_they_can_be_found_and_needed_to_begin() {
    let Some(server) = PostgresServer::start() else { return };
    let place = || Place::new(&server.url()).with_var("AWS_REGION", "eu-west-1");
    let (bare, of_profile) = (place(), place());
    let by_variables =
        place().with_var("AWS_ACCESS_KEY_ID", "ID").with_var("AWS_SECRET_ACCESS_KEY", "secret");
    of_profile
        .file(".aws/credentials", "[default]\naws_access_key_id = ID\naws_secret_access_key = secret\n");
    for (place, has_credentials) in [(&bare, false), (&of_profile, true), (&by_variables, true)] {
        let worker = place.worker(&[]);
        let process = format!("process {} ", worker.id());
        let mut offers = String::new();
        until("the worker is seen", || {
            let workers = place.cluster().0;
            let is_own = |worker: &&Value| worker["worker"].as_str().unwrap().starts_with(&process);
            workers.iter().find(is_own).is_some_and(|worker| {
                offers = worker["offers"].to_string();
                true
            })
        });
        assert_eq!(offers.contains("\"key:bedrock\""), has_credentials, "{offers}");
        worker.kill();
        place.file("team.yaml", TALK.split("script").next().unwrap());
        let talk = ["team.yaml", "--model", "bedrock:amazon.nova-lite-v1:0"];
        if has_credentials {
            assert_eq!(needs(place, &place.detach(&talk)), "key:bedrock");
        } else {
            // As without the key of any provider.
            let refused = place.command(&[&["run", "--detach"], &talk[..]].concat()).output().unwrap();
            let error = String::from_utf8(refused.stderr).unwrap();
            assert_eq!(refused.status.code(), Some(2), "{error}");
            assert!(error.contains("there are no credentials") && error.contains("hint: "), "{error}");
        }
        let doctor = place.command(&["doctor"]).output().unwrap();
        let doctor = String::from_utf8(doctor.stdout).unwrap();
        let row = doctor.lines().find(|line| line.trim_start().starts_with("bedrock ")).unwrap();
        assert_eq!(
            row.contains("there are no credentials") && row.contains("AWS_BEARER_TOKEN_BEDROCK"),
            !has_credentials,
            "{row}"
        );
    }
}
