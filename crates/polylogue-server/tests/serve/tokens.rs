//! Who may use a server: S1 to S7, S10, S11.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use polylogue_core::Money;
use polylogue_server::{DailyBudget, NewToken, Scope, Server, ServerError, ServerOptions};
use serde_json::{Value, json};

use crate::client::Request;
use crate::conversations::{PATH, begin};
use crate::openai::{COMPLETIONS, complete, user};
use crate::world::{World, files, generous, loopback, place};

#[tokio::test]
async fn s1_a_server_on_port_0_says_where_it_is() {
    let world = World::new().await;
    assert_eq!(world.url, format!("http://127.0.0.1:{}", world.address.port()));
    assert!(world.address.ip().is_loopback() && world.address.port() != 0);
    let healthy = Request::new("GET", "/healthz").send(world.address).await;
    assert_eq!((healthy.status, healthy.json()), (200, json!({"status": "ok"})));
    assert_eq!(Request::new("GET", "/readyz").send(world.address).await.status, 200);
    let teams = world.get("/api/v1/teams").await.json();
    assert_eq!(teams["teams"][2]["id"], "talk");
    assert_eq!(teams["teams"][2]["inputs"], json!([{"name": "tone", "default": "calm"}]));
    let head = world.send(world.request("HEAD", "/api/v1/teams")).await;
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert_eq!(head.header("server"), None, "no banner");
    let dir = world.stop().await;
    assert!(dir.path().exists());
}

#[tokio::test]
async fn s2_without_a_token_only_the_open_routes_answer() {
    let world = World::new().await;
    for (method, path, scope, takes_body) in world.routes().await {
        for wrong in [None, Some("ply_wrong"), Some("")] {
            let mut request = Request::new(&method, &path);
            if takes_body {
                request = request.json(&json!({}));
            }
            if let Some(wrong) = wrong {
                request = request.token(wrong).header("x-api-key", wrong);
            }
            let response = request.send(world.address).await;
            match scope {
                Some(_) => {
                    assert_eq!(response.status, 401, "{method} {path}");
                    assert_eq!(response.problem()["type"], "/problems/unauthorized");
                }
                // What logs in is open, and refuses an empty body.
                None => assert_eq!(response.status, if takes_body { 400 } else { 200 }, "{method} {path}"),
            }
        }
    }
    // What there is not says so to those with a token only.
    assert_eq!(Request::new("GET", "/nothing").send(world.address).await.status, 401);
    assert_eq!(Request::new("PUT", "/healthz").send(world.address).await.status, 401);
}

#[tokio::test]
async fn s3_other_names_and_pages_of_other_sites_are_refused_everywhere() {
    let world = World::new().await;
    let id = begin(&world, &json!({"team": "talk"})).await;
    let routes = world.routes().await;
    let routes = routes.iter().map(|(method, path, ..)| world.request(method, path).json(&json!({})));
    // The page, an event stream, and what there is not.
    let files = ["/", "/page/app.js", "/page/base.css", "/page/vendor/htm-3.1.1.js", "/nothing"];
    let files = files.map(|path| world.request("GET", path));
    for request in routes.chain(files).chain([world.tail_request(&id, 0)]) {
        let (method, path) = (&request.method, &request.path);
        let response = world.send(request.clone().header("Host", "evil.test")).await;
        assert_eq!(response.status, 421, "{method} {path}");
        assert_eq!(response.problem()["type"], "/problems/wrong-host");
        for origin in ["http://evil.test", "null", "http://localhost.evil.test"] {
            let response = world.send(request.clone().header("Origin", origin)).await;
            assert_eq!(response.status, 403, "{method} {path} {origin}");
            assert_eq!(response.problem()["type"], "/problems/foreign-origin");
        }
    }
    let own = world.request("GET", "/api/v1/teams").header("Origin", "http://localhost");
    assert_eq!(world.send(own.clone()).await.status, 200);
    // A second header counts as well, and so does the host of the target.
    for (name, value, status) in [("Host", "evil.test", 421), ("Origin", "http://evil.test", 403)] {
        let mut twice = own.clone();
        twice.headers.push((name.into(), value.into()));
        assert_eq!(world.send(twice).await.status, status, "{name}");
    }
    for (host, status) in [("localhost", 200), ("evil.test", 421)] {
        let target = world.request("GET", &format!("http://{host}/api/v1/teams"));
        assert_eq!(world.send(target).await.status, status, "{host}");
    }
}

#[tokio::test]
async fn s4_a_body_that_is_not_called_json_changes_nothing() {
    let world = World::new().await;
    let body = json!({"name": "new", "scopes": ["read"]});
    for (method, path, _, takes_body) in world.routes().await {
        // A form of another site can send nothing else without a preflight.
        assert!(takes_body || !["POST", "PUT", "PATCH"].contains(&method.as_str()), "{method} {path}");
        if !takes_body {
            continue;
        }
        // Bodies that would have an effect.
        let body = match path.as_str() {
            PATH => json!({"team": "talk"}),
            COMPLETIONS => json!({"model": "talk", "messages": [user("Count.")]}),
            _ => body.clone(),
        };
        let request = world.request(&method, &path).json(&body);
        for media in ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data", ""] {
            let response = world.send(request.clone().header("Content-Type", media)).await;
            assert_eq!(response.status, 415, "{method} {path} {media}");
            response.problem();
        }
        let compressed = world.send(request.clone().header("Content-Encoding", "gzip")).await;
        assert_eq!(compressed.status, 415, "{method} {path}");
        let mut without = request.clone();
        without.headers.retain(|(name, _)| name != "Content-Type");
        assert_eq!(world.send(without).await.status, 415, "{method} {path}");
    }
    assert_eq!(world.tokens().all().unwrap().len(), 1);
    assert_eq!(world.get(PATH).await.json()["conversations"], json!([]));
    assert_eq!(world.post("/api/v1/tokens", &body).await.status, 201);
    assert_eq!(world.tokens().all().unwrap().len(), 2);
    complete(&world, "talk", json!([user("Count.")])).await;
    begin(&world, &json!({"team": "talk"})).await;
    assert_eq!(world.get(PATH).await.json()["conversations"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn s5_other_machines_need_a_token_that_was_made_on_purpose() {
    let dir = tempfile::tempdir().unwrap();
    let options = ServerOptions::new("0.0.0.0:0".parse().unwrap(), place(dir.path()));
    let Err(error) = Server::bind(options, files(&dir, None)).await else { panic!("it starts") };
    assert!(matches!(error, ServerError::NoToken(_)), "{error}");
    assert!(error.hint().unwrap().contains("polylogue token new"));
}

#[tokio::test]
async fn s6_only_a_configured_origin_passes_a_preflight() {
    let dir = tempfile::tempdir().unwrap();
    let options = ServerOptions {
        origins: vec!["https://app.example".into()],
        ..ServerOptions::new(loopback(), place(dir.path()))
    };
    let world = World::start(dir, options).await;
    let preflight = |origin| {
        let request = Request::new("OPTIONS", "/api/v1/tokens").header("Origin", origin);
        request.header("Access-Control-Request-Method", "POST")
    };
    let response = preflight("https://app.example").send(world.address).await;
    assert_eq!(response.header("access-control-allow-origin"), Some("https://app.example"));
    assert_eq!(response.header("access-control-allow-credentials"), None);
    let response = preflight("https://evil.test").send(world.address).await;
    assert_eq!((response.status, response.header("access-control-allow-origin")), (403, None));
    let wrong = ServerOptions {
        origins: vec!["*".into()],
        ..ServerOptions::new(loopback(), place(world.dir.path()))
    };
    let Err(error) = Server::bind(wrong, files(&world.dir, None)).await else { panic!("it starts") };
    assert!(matches!(error, ServerError::Origin(_)), "{error}");
}

#[tokio::test]
async fn s7_a_token_does_what_its_scopes_say_by_either_header() {
    let world = World::new().await;
    let routes = world.routes().await;
    assert!(routes.iter().any(|(method, ..)| method != "GET"));
    for has in Scope::ALL {
        let (_, token) = world.new_token("local", &[has]);
        for (method, path, scope, _) in &routes {
            let Some(scope) = scope.filter(|scope| *scope != has) else { continue };
            let request = Request::new(method, path).json(&json!({}));
            for request in [request.clone().token(&token), request.header("x-api-key", &token)] {
                let response = request.send(world.address).await;
                assert_eq!(response.status, 403, "{method} {path} with {has}");
                let problem = response.problem();
                assert!(problem["hint"].as_str().unwrap().contains(scope.word()), "{problem}");
            }
        }
        // What it may use is refused for other reasons, if at all.
        for (method, path, ..) in routes.iter().filter(|(_, _, scope, _)| *scope == Some(has)) {
            let request = Request::new(method, path).json(&json!({}));
            for request in [request.clone().token(&token), request.header("x-api-key", &token)] {
                let status = request.open(world.address).await.status;
                assert!(![401, 403].contains(&status), "{method} {path} with {has}: {status}");
            }
        }
    }
    let two = world.request("GET", "/api/v1/teams").header("x-api-key", "ply_other");
    assert_eq!(world.send(two).await.status, 400, "two tokens");
    let both = world.request("GET", "/api/v1/teams").header("x-api-key", &world.token);
    assert_eq!(world.send(both).await.status, 200);
}

#[tokio::test]
async fn s10_no_file_has_the_text_of_a_token() {
    let world = World::new().await;
    let made = world.post("/api/v1/tokens", &json!({"name": "n", "scopes": ["read"]})).await.json();
    let text = made["token"].as_str().unwrap().to_owned();
    assert_eq!(Request::new("GET", "/api/v1/teams").token(&text).send(world.address).await.status, 200);
    // A link, that of a session that is logged in, and the session.
    let [unused, used] = ["unused", "used"].map(|name| {
        let link = world.tokens().create_link(NewToken::local(name)).unwrap();
        link.reveal().to_owned()
    });
    let login = Request::new("POST", "/api/v1/session").header("Sec-Fetch-Site", "same-origin");
    let login = login.json(&json!({"code": used})).send(world.address).await;
    let cookie = login.header("set-cookie").unwrap().split(';').next().unwrap();
    let session = cookie.split_once('=').unwrap().1.to_owned();
    let teams = Request::new("GET", "/api/v1/teams").header("Cookie", cookie);
    assert_eq!(teams.send(world.address).await.status, 200);
    begin(&world, &json!({"team": "talk"})).await;
    let listed = world.get("/api/v1/tokens").await.body;
    let texts = [text, unused, used, session, world.token.clone()];
    let dir = world.stop().await;
    let files = files_below(dir.path());
    for path in &files {
        let bytes = std::fs::read(path).unwrap();
        for token in &texts {
            let found = bytes.windows(token.len()).any(|part| part == token.as_bytes());
            assert!(!found, "{}", path.display());
        }
    }
    assert!(files.len() >= 3, "{files:?}");
    assert!(texts.iter().all(|text| !listed.contains(text)) && !listed.contains("digest"), "{listed}");
}

/// The files in a folder and in those within it.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(files_below(&path)),
            false => files.push(path),
        }
    }
    files
}

#[tokio::test]
async fn s11_ids_are_no_paths() {
    let world = World::new().await;
    let long = "a".repeat(300);
    // Next to the folder of the store, by paths from there and from the root.
    let outside = world.dir.path().join("outside.yaml");
    std::fs::write(&outside, "name: secret-words\n").unwrap();
    let whole = outside.with_extension("").display().to_string().replace('/', "%2f");
    let ids = ["..", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "%00", "%E2%80%A5", "talk.yaml", "%ff"];
    let ids = ids.into_iter().chain(["..%2foutside", "..%2foutside.yaml", "%2e%2e%5coutside"]);
    let before = outside_of_store(&world);
    for id in ids.chain([long.as_str(), &whole, &format!("{whole}.yaml")]) {
        for (method, path, scope, takes_body) in world.routes().await {
            if scope.is_none() || !path.contains("x1") {
                continue;
            }
            let mut request = world.request(&method, &path.replace("x1", id));
            if takes_body {
                request = request.json(&json!({}));
            }
            let response = world.send(request).await;
            assert!([400, 404].contains(&response.status), "{method} {path} {id}: {}", response.status);
            assert!(!response.body.contains("secret-words"), "{method} {path} {id}: {}", response.body);
            response.problem();
        }
    }
    assert_eq!(outside_of_store(&world), before);
}

/// The files that are not in the folder of the store, with their contents.
fn outside_of_store(world: &World) -> BTreeMap<PathBuf, Vec<u8>> {
    let store = world.dir.path().join("data");
    let files = files_below(world.dir.path()).into_iter().filter(|file| !file.starts_with(&store));
    files.map(|file| (file.clone(), std::fs::read(file).unwrap())).collect()
}

#[tokio::test]
async fn s11_ids_in_bodies_and_queries_are_no_paths() {
    let world = World::new().await;
    let run = begin(&world, &json!({"team": "talk"})).await;
    let outside = world.dir.path().join("outside.yaml");
    std::fs::write(&outside, "name: secret-words\n").unwrap();
    let (whole, long) = (outside.with_extension("").display().to_string(), "a".repeat(300));
    let (before, history) = (outside_of_store(&world), json!([user("Count.")]));
    for id in ["..", "../outside", "../outside.yaml", "..\\outside", "\u{0}", "\u{2025}", &whole, &long] {
        let encoded: String = id.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let get = |path: String| world.request("GET", &path);
        let post = |path: &str, body: Value| world.request("POST", path).json(&body);
        let named = json!({"conversation": id});
        let requests = [
            post(PATH, json!({"team": id})),
            post("/api/v1/teams/check", json!({"team": id, "text": "name: a"})),
            post("/api/v1/imports", json!({"team": id, "log": "x"})),
            post(&format!("{PATH}/{run}/fork"), json!({"team": id, "seq": 0})),
            post(COMPLETIONS, json!({"model": id, "messages": history})),
            post(COMPLETIONS, json!({"model": "talk", "messages": history, "metadata": named})),
            get(format!("/api/v1/compare?a={encoded}&b={run}")),
            get(format!("/api/v1/feed?follow={encoded}")),
            get(format!("{PATH}?parent={encoded}")),
            get(format!("{PATH}/{run}/files/content?path={encoded}")),
        ];
        for request in requests {
            let path = request.path.clone();
            let response = world.send(request).await;
            assert_eq!(response.status, 404, "{path} {id:?}: {}", response.body);
            assert!(!response.body.contains("secret-words"), "{path} {id:?}: {}", response.body);
            response.problem();
        }
    }
    assert_eq!(outside_of_store(&world), before);
}

#[tokio::test]
async fn a_token_makes_none_that_may_do_more_and_sees_no_other_tenant() {
    let world = World::with(generous()).await;
    let (_, admin) = world.new_token("local", &[Scope::Admin, Scope::Read]);
    let make = |body| Request::new("POST", "/api/v1/tokens").token(&admin).json(&body);
    let more = make(json!({"name": "n", "scopes": ["read", "run"]})).send(world.address).await;
    assert_eq!((more.status, &more.problem()["errors"][0]["pointer"]), (403, &json!("/scopes")));
    let unknown = make(json!({"name": "n", "scope": ["read"]})).send(world.address).await;
    assert_eq!((unknown.status, &unknown.problem()["errors"][0]["pointer"]), (400, &json!("/scope")));
    assert_eq!(unknown.json()["hint"], "did you mean `scopes`?");
    let (other, of_other) = world.new_token("other", &Scope::ALL);
    let listed = Request::new("GET", "/api/v1/tokens").token(&of_other).send(world.address).await.json();
    assert_eq!(listed["tokens"].as_array().unwrap().len(), 1, "{listed}");
    let path = format!("/api/v1/tokens/{}", other.id);
    assert_eq!(world.send(world.request("DELETE", &path)).await.status, 404, "of another tenant");
    let gone = Request::new("DELETE", &path).token(&of_other);
    assert_eq!(gone.send(world.address).await.status, 200);
    assert_eq!(gone.send(world.address).await.status, 401, "it is revoked at once");
}

#[tokio::test]
async fn a_token_makes_none_that_outlives_it() {
    let world = World::new().await;
    let end = SystemTime::now() + Duration::from_secs(3600);
    let end = u64::try_from(end.duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
    let new = NewToken { expires_ms: Some(end), ..NewToken::local("for an hour") };
    let hour = world.tokens().create(new).unwrap().1.reveal().to_owned();
    let make = async |token: &str, expires: Value| {
        let mut body = json!({"name": "n", "scopes": ["admin", "read"]});
        body.as_object_mut().unwrap().extend(expires.as_object().unwrap().clone());
        Request::new("POST", "/api/v1/tokens").token(token).json(&body).send(world.address).await
    };
    for (wanted, made) in [(json!({}), end), (json!({"expires_ms": end - 1}), end - 1)] {
        let response = make(&hour, wanted).await;
        assert_eq!(
            (response.status, &response.json()["expires_ms"]),
            (201, &json!(made)),
            "{}",
            response.body
        );
    }
    let later = make(&hour, json!({"expires_ms": end + 1})).await;
    assert_eq!((later.status, &later.problem()["errors"][0]["pointer"]), (403, &json!("/expires_ms")));
    assert_eq!(make(&world.token, json!({})).await.json()["expires_ms"], Value::Null, "that one never ends");
}

#[tokio::test]
async fn a_token_lists_and_revokes_only_those_that_can_do_no_more() {
    let world = World::new().await;
    let make = |name: &str, scopes: &[Scope], teams: Option<&[&str]>, cost: Option<f64>| {
        let teams = teams.map(|teams| teams.iter().map(|team| (*team).to_owned()).collect());
        let per_day = DailyBudget { cost: cost.map(Money::dollars), tokens: None };
        let new = NewToken { scopes: scopes.to_vec(), teams, per_day, ..NewToken::local(name) };
        let (token, text) = world.tokens().create(new).unwrap();
        (token.id, text.reveal().to_owned())
    };
    let own = [Scope::Read, Scope::Admin];
    let (id, admin) = make("own", &own, Some(&["talk"]), Some(2.0));
    let (less, _) = make("less", &[Scope::Read], Some(&["talk"]), Some(1.0));
    let more = [
        make("all teams", &own, None, Some(1.0)),
        make("another team", &own, Some(&["talk", "ask"]), Some(1.0)),
        make("another scope", &[Scope::Read, Scope::Run], Some(&["talk"]), Some(1.0)),
        make("a larger budget", &own, Some(&["talk"]), Some(3.0)),
        make("no budget", &own, Some(&["talk"]), None),
    ];
    let request = |method: &str, path: &str| Request::new(method, path).token(&admin);
    let listed = request("GET", "/api/v1/tokens").send(world.address).await.json();
    let ids: Vec<&Value> = listed["tokens"].as_array().unwrap().iter().map(|token| &token["id"]).collect();
    assert_eq!(ids, [&json!(id), &json!(less)], "{listed}");
    for (other, text) in &more {
        let refused = request("DELETE", &format!("/api/v1/tokens/{other}")).send(world.address).await;
        assert_eq!(refused.status, 404, "{}", refused.body);
        let read = Request::new("GET", "/api/v1/teams").token(text);
        assert_eq!(read.send(world.address).await.status, 200, "it is valid");
    }
    let revoked = request("DELETE", &format!("/api/v1/tokens/{less}")).send(world.address).await;
    assert_eq!(revoked.status, 200, "{}", revoked.body);
    let all = world.get("/api/v1/tokens").await.json();
    assert_eq!(all["tokens"].as_array().unwrap().len(), 2 + more.len(), "{all}");
}

#[tokio::test]
async fn a_token_that_no_one_could_use_or_find_is_refused() {
    let world = World::new().await;
    for (change, pointer) in [
        (json!({"name": ""}), "/name"),
        (json!({"name": " "}), "/name"),
        (json!({"name": "two\nlines"}), "/name"),
        (json!({"scopes": []}), "/scopes"),
        (json!({"scopes": ["raed"]}), "/scopes/0"),
        (json!({"teams": []}), "/teams"),
        (json!({"teams": ["talk", "tolk"]}), "/teams/1"),
        (json!({"expires_ms": 1}), "/expires_ms"),
        (json!({"expires_ms": -1}), "/expires_ms"),
    ] {
        let mut body = json!({"name": "n", "scopes": ["read"]});
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let refused = world.post("/api/v1/tokens", &body).await;
        let problem = refused.problem();
        assert_eq!((refused.status, &problem["errors"][0]["pointer"]), (400, &json!(pointer)), "{problem}");
    }
    assert_eq!(world.tokens().all().unwrap().len(), 1, "the first token");
    let body = json!({"name": "n", "scopes": ["read"], "teams": ["talk"]});
    assert_eq!(world.post("/api/v1/tokens", &body).await.status, 201);
}

#[tokio::test]
async fn a_public_address_has_the_scheme_of_a_server_and_no_path() {
    let dir = tempfile::tempdir().unwrap();
    for wrong in ["foo", "teams.example:8080", "ftp://teams.example", "https://teams.example/a", ""] {
        let options = ServerOptions {
            public_url: Some(wrong.into()),
            ..ServerOptions::new(loopback(), place(dir.path()))
        };
        let error = World::refused(&dir, options).await;
        assert!(matches!(error, ServerError::PublicUrl(_)), "{wrong}: {error}");
        assert!(error.hint().unwrap().contains("https://"), "{error}");
    }
}
