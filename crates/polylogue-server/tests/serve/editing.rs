//! Checking and replacing team files, and comparing conversations: S14, S97.

use std::net::TcpListener;
use std::time::Duration;

use polylogue_server::{NewToken, Scope};
use serde_json::{Value, json};

use crate::client::{Request, Response};
use crate::conversations::{begin, begin_until, events, position, until};
use crate::isolation::{named, token_of};
use crate::world::World;

const CHECK: &str = "/api/v1/teams/check";
const PATH: &str = "/api/v1/conversations";

async fn check(world: &World, body: Value) -> Value {
    let response = world.post(CHECK, &body).await;
    assert_eq!(response.status, 200, "{}", response.body);
    response.json()
}

#[tokio::test]
async fn a_check_quotes_no_files_but_those_of_teams() {
    let world = World::new().await;
    let secret = "a-secret-word";
    let settings = format!("password: {secret}\nname: [{secret}]\nmodel: {secret}\n");
    std::fs::write(world.dir.path().join("settings.yaml"), settings).unwrap();
    let text = "name: a\nteams: [{name: Sub, file: settings.yaml}]\nchat: {participants: [Sub], pattern: sequential}\n";
    let checked = check(&world, json!({"text": text, "team": "talk"})).await;
    let problem = json!({
        "severity": "error",
        "code": checked["problems"][0]["code"],
        "message": "the file has errors",
        "file": "settings.yaml",
        "hint": "`polylogue check` shows them on its machine",
    });
    assert_eq!((&checked["ok"], &checked["problems"]), (&json!(false), &json!([problem])));
    // Those of the text itself, and of a team, are shown.
    std::fs::write(world.dir.path().join("short.yaml"), "name: [broken]\n").unwrap();
    let text = text.replace("settings.yaml", "short.yaml").replace("pattern:", "patern:");
    let checked = check(&world, json!({"text": text, "team": "talk"})).await.to_string();
    assert!(checked.contains("name: [broken]") && checked.contains("patern: sequential"), "{checked}");
}

#[tokio::test]
async fn s14_checking_starts_no_process_opens_no_socket_and_reads_nothing_outside() {
    let world = World::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mark = world.dir.path().join("started");
    let touch = format!("touch, '{}'", mark.display());
    let text = format!(
        "
name: hostile
endpoints: {{own: {{api: chat_completions, base_url: '{url}/v1'}}}}
mcp: {{local: {{command: touch, args: ['{}']}}, remote: {{url: '{url}/mcp'}}}}
commands: [{{name: mark, description: Marks., command: [{touch}]}}]
agents:
  - {{name: Ann, model: 'own:x', tools: [mark, {{mcp: local}}, {{mcp: remote}}]}}
chat: {{participants: [Ann], pattern: sequential}}
task: Go.
",
        mark.display()
    );
    let checked = check(&world, json!({"text": text, "team": "talk"})).await;
    assert_eq!((&checked["ok"], &checked["team"]["name"]), (&json!(true), &json!("hostile")), "{checked}");
    assert!(!mark.exists());
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);

    // Files are read next to the team only, whatever leads elsewhere, and a client cannot tell which there are.
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret.yaml");
    std::fs::write(&secret, "name: secret-words").unwrap();
    std::os::unix::fs::symlink(&secret, world.dir.path().join("link.yaml")).unwrap();
    std::os::unix::fs::symlink(outside.path(), world.dir.path().join("folder")).unwrap();
    let missing = outside.path().join("missing.yaml");
    let named = [
        "link.yaml".to_owned(),
        "folder/secret.yaml".into(),
        secret.display().to_string(),
        missing.display().to_string(),
        format!("../{}/secret.yaml", outside.path().file_name().unwrap().to_str().unwrap()),
    ];
    for file in named {
        let text = format!(
            "name: a\ntask: x\nteams: [{{name: Sub, file: '{file}'}}]\nchat: {{participants: [Sub]}}\n"
        );
        let checked = check(&world, json!({"text": text, "team": "talk"})).await.to_string();
        assert!(checked.contains("\"ok\":false") && !checked.contains("secret-words"), "{checked}");
        assert!(!checked.contains("does not exist"), "{checked}");
    }
    let text = "name: a\ntask: x\nteams: [{name: Sub, file: short.yaml}]\nchat: {participants: [Sub], pattern: sequential}\n";
    let next_to_it = check(&world, json!({"text": text, "team": "talk"})).await;
    assert_eq!(next_to_it["ok"], true, "{next_to_it}");
    assert_eq!(check(&world, json!({"text": text})).await["ok"], false, "of no file, it can name none");
}

#[tokio::test]
async fn mistakes_in_a_text_are_shown_at_their_places() {
    let world = World::new().await;
    let text = "name: a\ntask: x\nagents: [{name: Ann, sytem: x}]\nchat: {participants: [Ann]}\n";
    let checked = check(&world, json!({"text": text, "team": "talk"})).await;
    let problem = &checked["problems"][0];
    assert_eq!((&checked["ok"], &problem["severity"]), (&json!(false), &json!("error")), "{checked}");
    assert_eq!((&problem["file"], &problem["place"]["line"]), (&json!("talk.yaml"), &json!(3)), "{checked}");
    assert_eq!(problem["hint"], "did you mean `system`?");
    assert_eq!(world.post(CHECK, &json!({"text": text, "team": "none"})).await.status, 404);
    assert_eq!(world.post(CHECK, &json!({})).await.status, 400);
    let schema = world.get("/api/v1/schema").await.json();
    assert!(schema["properties"]["agents"].is_object(), "{schema}");
    let (_, token) = world.new_token("local", &[Scope::Read, Scope::Run]);
    let request = Request::new("POST", CHECK).token(&token).json(&json!({"text": text}));
    assert_eq!(request.send(world.address).await.status, 403);
}

#[tokio::test]
async fn two_conversations_are_compared_from_where_they_differ() {
    let world = World::new().await;
    let a = begin_until(&world, "talk", "closed").await;
    let source = events(&world, &a).await;
    let second = position(&source, "two");
    let body = json!({"seq": second, "text": "deux", "run": true});
    let b = world.post(&format!("{PATH}/{a}/fork"), &body).await.json()["id"].as_str().unwrap().to_owned();
    until(&world, &b, "closed").await;
    let compared = world.get(&format!("/api/v1/compare?a={a}&b={b}")).await.json();
    assert_eq!((&compared["common"], &compared["has_more"]), (&json!(second), &json!(false)), "{compared}");
    assert_eq!((&compared["a"]["id"], &compared["b"]["id"]), (&json!(a), &json!(b)));
    let first = &compared["messages"][0];
    assert_eq!((&first["a"]["text"], &first["b"]["text"]), (&json!("two"), &json!("deux")), "{compared}");
    assert_eq!(first["a"]["who"], "Bob");
    assert_eq!(compared["difference"]["turns"], 0, "{compared}");
    let same = world.get(&format!("/api/v1/compare?a={a}&b={a}")).await.json();
    assert_eq!((&same["common"], &same["messages"]), (&json!(source.len()), &json!([])));
    for (query, status) in [("a=x1", 404), ("", 400)] {
        assert_eq!(world.get(&format!("/api/v1/compare?{query}")).await.status, status, "{query}");
    }
}

/// Replaces the text of the file of `talk`.
async fn put(world: &World, version: Option<&str>, text: &str) -> Response {
    let request = world.request("PUT", "/api/v1/teams/talk").json(&json!({"text": text}));
    world
        .send(version.into_iter().fold(request, |request, version| request.header("If-Match", version)))
        .await
}

#[tokio::test]
async fn s97_a_file_is_replaced_in_the_version_that_was_read_and_in_no_other() {
    let world = World::new().await;
    let file = world.dir.path().join("talk.yaml");
    let source = async || world.get("/api/v1/teams/talk/source").await;
    let read = source().await;
    let (version, text) =
        (read.header("etag").unwrap().to_owned(), read.json()["text"].as_str().unwrap().to_owned());
    assert_eq!(read.json()["version"], version);
    let running = begin(&world, &json!({"team": "talk"})).await;
    let edited = text.replace("task: Count.", "task: Count down.").replace("max_turns: 4", "max_turns: 2");
    for wrong in [None, Some("*")] {
        let refused = put(&world, wrong, &edited).await;
        assert_eq!(
            (refused.status, &refused.problem()["type"]),
            (428, &json!("/problems/precondition-required"))
        );
    }
    let written = put(&world, Some(&version), &edited).await;
    assert_eq!(written.status, 200, "{}", written.body);
    assert_eq!((&written.json()["task"], &written.json()["changed"]), (&json!("Count down."), &Value::Null));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), edited);
    assert_eq!(source().await.header("etag"), written.header("etag"));
    // New conversations have it at once, and the one before keeps its own.
    let new = begin(&world, &json!({"team": "talk"})).await;
    let (new, old) = (until(&world, &new, "closed").await, until(&world, &running, "closed").await);
    assert_eq!((&new["turns"], &old["turns"]), (&json!(2), &json!(4)));
    // Someone else's text is not overwritten.
    let conflict = put(&world, Some(&version), &text).await;
    assert_eq!((conflict.status, &conflict.problem()["type"]), (412, &json!("/problems/changed")));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), edited);
    // A text with errors changes nothing, and says where they are.
    let version = written.header("etag").unwrap();
    let bad = put(&world, Some(version), &edited.replace("round_robin", "round_robbin")).await;
    let problem = bad.problem();
    assert_eq!((bad.status, &problem["type"]), (422, &json!("/problems/bad-team")), "{problem}");
    assert_eq!(problem["problems"][0]["file"], "talk.yaml", "{problem}");
    assert!(problem["problems"][0]["place"]["line"].is_u64(), "{problem}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), edited);
    // Of equal requests at the same time, one is carried out.
    let texts: Vec<String> = (0..5).map(|n| format!("{edited}\n# {n}\n")).collect();
    let all = futures_util::future::join_all(texts.iter().map(|text| put(&world, Some(version), text))).await;
    assert_eq!(all.iter().filter(|response| response.status == 200).count(), 1);
    assert_eq!(all.iter().filter(|response| response.status == 412).count(), 4);
    let (_, token) = world.new_token("local", &[Scope::Read, Scope::Run]);
    let request = Request::new("PUT", "/api/v1/teams/talk").token(&token).json(&json!({"text": text}));
    assert_eq!(request.send(world.address).await.status, 403);
    assert_eq!(
        world.send(world.request("PUT", "/api/v1/teams/none").json(&json!({"text": ""}))).await.status,
        404
    );
}

// Row "validating, building or testing posted configuration executed it" of section 13.
/// A server in whose folder a team file appears that has an error.
pub(crate) async fn with_broken(text: &str) -> World {
    let world = World::new().await;
    world.add_team("flawed", text);
    // The server looks at its folder from time to time.
    while world.get("/api/v1/teams/flawed").await.status != 400 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    world
}

/// A team of Ann and another one.
pub(crate) fn talk(other: &str) -> String {
    format!(
        "name: flawed\ntask: Count.\nagents: [{{name: Ann}}, {other}]\n\
         chat: {{participants: [Ann, Bob], max_turns: 2}}\nscript: [{{Ann: one}}, {{Bob: two}}]\n"
    )
}

#[tokio::test]
async fn a_file_that_cannot_be_served_is_repaired() {
    const PATH: &str = "/api/v1/teams/flawed";
    let text = talk("{name: Bob}");
    let broken = text.replace("task:", "tsk:");
    let world = with_broken(&broken).await;
    let read = world.get(&format!("{PATH}/source")).await;
    assert_eq!((read.status, read.json()["text"].as_str()), (200, Some(&*broken)), "{}", read.body);
    let version = read.header("etag").unwrap().to_owned();
    let (_, token) = world.new_token("other", &[Scope::Read, Scope::Edit]);
    let theirs = Request::new("GET", &format!("{PATH}/source")).token(&token).send(world.address).await;
    assert_eq!(theirs.status, 400, "only the tenant that can replace it: {}", theirs.body);
    let put = async |text: &str| {
        let request = world.request("PUT", PATH).json(&json!({"text": text}));
        world.send(request.header("If-Match", &version)).await
    };
    // What it was to allow is not known.
    let refused = put(&talk("{name: Bob, tools: [shell]}")).await;
    assert_eq!((refused.status, &refused.problem()["type"]), (403, &json!("/problems/more-rights")));
    let written = put(&text).await;
    assert_eq!(written.status, 200, "{}", written.body);
    assert_eq!(std::fs::read_to_string(world.dir.path().join("flawed.yaml")).unwrap(), text);
    assert_eq!(world.get(PATH).await.status, 200);
}

#[tokio::test]
async fn a_repaired_file_that_cannot_be_served_yet_is_written_and_the_response_says_why() {
    const PATH: &str = "/api/v1/teams/flawed";
    let text = talk("{name: Bob, model: 'openai:gpt-4o-mini'}")
        .replace("{name: Ann}", "{name: Ann, model: 'anthropic:claude-sonnet-4-5'}")
        .replace("script: [{Ann: one}, {Bob: two}]\n", "");
    let world = with_broken(&text.replace("task:", "tsk:")).await;
    let read = world.get(&format!("{PATH}/source")).await;
    let request = world.request("PUT", PATH).json(&json!({"text": text}));
    let written = world.send(request.header("If-Match", read.header("etag").unwrap())).await;
    assert_eq!(written.status, 200, "{}", written.body);
    assert_eq!(std::fs::read_to_string(world.dir.path().join("flawed.yaml")).unwrap(), text);
    let document = written.json();
    let error = document["error"].as_str().unwrap();
    assert!(error.contains("anthropic"), "there is no key for it: {document}");
    assert_eq!(document["version"].as_str(), written.header("etag"));
    let read = world.get(&format!("{PATH}/source")).await;
    assert_eq!(read.header("etag"), written.header("etag"), "the next edit is one of this version");
    assert_eq!(world.get(PATH).await.problem()["detail"], error);
}

#[tokio::test]
async fn a_text_that_could_do_more_is_refused_and_starts_nothing() {
    let world = World::new().await;
    let file = world.dir.path().join("talk.yaml");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mark = world.dir.path().join("started");
    let read = world.get("/api/v1/teams/talk/source").await;
    let (version, text) =
        (read.header("etag").unwrap().to_owned(), read.json()["text"].as_str().unwrap().to_owned());
    let ann = "{name: Ann, system: 'Be {{tone}}.'}";
    assert!(text.contains(ann));
    let with = |keys: &str, of_ann: &str| {
        format!("{}{keys}\n", text.replace(ann, &format!("{{name: Ann, system: x, {of_ann}}}")))
    };
    let touch = mark.display();
    let cases = [
        (
            with(
                &format!("commands: [{{name: mark, description: Marks., command: [touch, '{touch}']}}]"),
                "tools: [mark]",
            ),
            "agents.Ann.tools.mark",
        ),
        (
            with(&format!("mcp: {{local: {{command: touch, args: ['{touch}']}}}}"), "tools: [{mcp: local}]"),
            "mcp.local",
        ),
        (with(&format!("mcp: {{remote: {{url: '{url}/mcp'}}}}"), "tools: [{mcp: remote}]"), "mcp.remote"),
        (
            with(
                &format!("endpoints: {{own: {{api: chat_completions, base_url: '{url}/v1', key: SECRET}}}}"),
                "model: 'own:x'",
            ),
            "endpoints.own",
        ),
        (with("sandbox: {backend: none}", "tools: [shell]"), "sandbox"),
        (with("web: {fetch: true}", "tools: [web_fetch]"), "agents.Ann.tools.web_fetch"),
        (with("", "code_execution: true"), "agents.Ann.code_execution"),
        (with("cache: replies.jsonl", "description: x"), "cache"),
    ];
    for (edited, place) in cases {
        let refused = put(&world, Some(&version), &edited).await;
        let problem = refused.problem();
        assert_eq!(
            (refused.status, &problem["type"]),
            (403, &json!("/problems/more-rights")),
            "{place}: {problem}"
        );
        assert!(problem["detail"].as_str().unwrap().contains(place), "{place}: {problem}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text, "the file is unchanged");
    assert!(!mark.exists());
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    // A link is not followed.
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().join("talk.yaml");
    std::fs::rename(&file, &target).unwrap();
    std::os::unix::fs::symlink(&target, &file).unwrap();
    let refused = put(&world, Some(&version), &format!("{text}# more\n")).await;
    assert_eq!((refused.status, &refused.problem()["type"]), (409, &json!("/problems/refused")));
    assert_eq!(std::fs::read_to_string(&target).unwrap(), text);
}

#[tokio::test]
async fn a_token_of_some_teams_gives_no_team_the_name_of_another_one() {
    let teams = [("alpha", "alpha"), ("zeta", "payroll")].map(|(id, name)| (id.to_owned(), named(name)));
    let world = World::with_teams(&teams).await;
    let id = begin_until(&world, "zeta", "closed").await;
    let token = token_of(&world, "alpha");
    let request = |method: &str, path: &str, token: &str| Request::new(method, path).token(token);
    let seen = async || {
        let one = request("GET", &format!("{PATH}/{id}"), &token).send(world.address).await.status;
        let all = request("GET", PATH, &token).send(world.address).await.json();
        (one, all["conversations"].as_array().unwrap().len())
    };
    let rename = async |token: &str, from: &str, to: &str| {
        let read = request("GET", "/api/v1/teams/alpha/source", token).send(world.address).await;
        let text = read.json()["text"].as_str().unwrap().replace(from, to);
        let put = request("PUT", "/api/v1/teams/alpha", token).json(&json!({"text": text}));
        put.header("If-Match", read.header("etag").unwrap()).send(world.address).await
    };
    let refused = rename(&token, "name: alpha", "name: payroll").await;
    assert_eq!((refused.status, &refused.problem()["type"]), (403, &json!("/problems/more-rights")));
    let changed = rename(&token, "Count.", "Count down.").await;
    assert_eq!(changed.status, 200, "{}", changed.body);
    // A token of all teams can, and that shows no conversations to others.
    assert_eq!(rename(&world.token, "name: alpha", "name: payroll").await.status, 200);
    assert_eq!(seen().await, (404, 0));
}

#[tokio::test]
async fn a_token_of_some_teams_includes_no_file_of_another_one() {
    let teams = ["solo", "fast", "own"].map(|id| (id.to_owned(), named(id)));
    let world = World::with_teams(&teams).await;
    let file = world.dir.path().join("solo.yaml");
    let before = std::fs::read_to_string(&file).unwrap();
    let including = |file: &str| {
        format!(
            "name: solo\ntask: x\nteams: [{{name: T, file: {file}}}]\nchat: {{participants: [T], pattern: sequential}}\n"
        )
    };
    let new = NewToken {
        teams: Some(vec!["solo".into(), "own".into()]),
        scopes: vec![Scope::Read, Scope::Run, Scope::Edit],
        ..NewToken::local("some")
    };
    let token = world.tokens().create(new).unwrap().1.reveal().to_owned();
    let source = Request::new("GET", "/api/v1/teams/solo/source").token(&token).send(world.address).await;
    let put = Request::new("PUT", "/api/v1/teams/solo").token(&token);
    let put = put.header("If-Match", source.header("etag").unwrap());
    let check = async |token: &str, file: &str| {
        let body = json!({"text": including(file), "team": "solo"});
        Request::new("POST", CHECK).token(token).json(&body).send(world.address).await
    };
    let link = world.dir.path().join("link.yaml");
    std::os::unix::fs::symlink(world.dir.path().join("fast.yaml"), &link).unwrap();
    let missing = check(&token, "missing.yaml").await.body;
    for hidden in ["fast.yaml", "./fast.yaml", "link.yaml"] {
        let refused = put.clone().json(&json!({"text": including(hidden)})).send(world.address).await;
        assert_eq!(
            (refused.status, &refused.problem()["type"]),
            (422, &json!("/problems/bad-team")),
            "{hidden}"
        );
        let checked = check(&token, hidden).await;
        assert_eq!(checked.json()["ok"], false, "{}", checked.body);
    }
    // A client cannot tell whether there is such a file: neither has a hint with the names of others.
    let problem = |body: &str| serde_json::from_str::<Value>(body).unwrap()["problems"][0].clone();
    let (hidden, missing) = (problem(&check(&token, "fast.yaml").await.body), problem(&missing));
    let expected = missing["message"].as_str().unwrap().replace("missing.yaml", "fast.yaml");
    assert_eq!((&hidden["message"], &hidden["hint"]), (&json!(expected), &missing["hint"]));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before, "the file is unchanged");
    assert_eq!(check(&token, "own.yaml").await.json()["ok"], true, "a team that it sees");
    assert_eq!(check(&world.token, "fast.yaml").await.json()["ok"], true, "by a token of all teams");
}

#[tokio::test]
async fn a_token_of_another_tenant_replaces_no_team_file() {
    let world = World::new().await;
    let file = world.dir.path().join("talk.yaml");
    let before = std::fs::read_to_string(&file).unwrap();
    let (_, bob) = world.new_token("bob", &Scope::ALL);
    let source = Request::new("GET", "/api/v1/teams/talk/source").token(&bob).send(world.address).await;
    let edited = before.replace("task: Count.", "task: Obey Bob.");
    assert_ne!(edited, before);
    let put = Request::new("PUT", "/api/v1/teams/talk").json(&json!({"text": edited}));
    let put = put.header("If-Match", source.header("etag").unwrap());
    let refused = put.clone().token(&bob).send(world.address).await;
    let problem = refused.problem();
    assert_eq!((refused.status, &problem["type"]), (403, &json!("/problems/forbidden")), "{problem}");
    assert!(problem["hint"].as_str().unwrap().contains("--tenant"), "{problem}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before, "the file is unchanged");
    // The same request by a token of the tenant that the files belong to.
    assert_eq!(put.token(&world.token).send(world.address).await.status, 200);
}
