//! The page over HTTP: its files, and logging in and out.

use polylogue_server::{NewToken, Scope};
use serde_json::json;

use crate::client::{Request, Response};
use crate::world::World;

const SESSION: &str = "/api/v1/session";

/// The cookie that a login sets.
async fn log_in(world: &World) -> String {
    let link = world.tokens().create_link(NewToken::local("page")).unwrap();
    let response = exchange(world, link.reveal()).await;
    assert_eq!(response.status, 201, "{}", response.body);
    let cookie = response.header("set-cookie").unwrap();
    assert!(cookie.contains("; HttpOnly; SameSite=Strict; Path=/"), "{cookie}");
    cookie.split(';').next().unwrap().to_owned()
}

async fn exchange(world: &World, code: &str) -> Response {
    let request = Request::new("POST", SESSION).header("Sec-Fetch-Site", "same-origin");
    request.json(&json!({"code": code})).send(world.address).await
}

#[tokio::test]
async fn s92_a_link_logs_in_once_and_logout_ends_the_session() {
    let world = World::new().await;
    let link = world.tokens().create_link(NewToken::local("page")).unwrap();
    assert_eq!(exchange(&world, link.reveal()).await.status, 201);
    let again = exchange(&world, link.reveal()).await;
    assert_eq!((again.status, again.header("set-cookie")), (401, None));
    again.problem();
    let cookie = log_in(&world).await;
    let get = |path| Request::new("GET", path).header("Cookie", &cookie);
    let own = get(SESSION).send(world.address).await.json();
    assert_eq!((&own["name"], &own["tenant"]), (&json!("page"), &json!("local")));
    assert_eq!(get("/api/v1/teams").send(world.address).await.status, 200);
    let (_, text) = cookie.split_once('=').unwrap();
    let as_key = Request::new("GET", SESSION).token(text).send(world.address).await;
    assert_eq!(as_key.status, 401, "a session is no key");
    let out = Request::new("DELETE", SESSION).header("Cookie", &cookie).header("Origin", "http://localhost");
    let out = out.send(world.address).await;
    assert_eq!(out.status, 200);
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert_eq!(get(SESSION).send(world.address).await.status, 401);
    let key = world.send(world.request("DELETE", SESSION)).await;
    assert_eq!(key.status, 400, "a key has no session");
    assert_eq!(world.get("/api/v1/teams").await.status, 200, "it is still valid");
}

#[tokio::test]
async fn the_cookie_works_for_the_page_only() {
    let world = World::new().await;
    let cookie = log_in(&world).await;
    let post = Request::new("POST", "/api/v1/conversations")
        .json(&json!({"team": "talk"}))
        .header("Cookie", &cookie);
    for (name, value) in
        [("Sec-Fetch-Site", "same-site"), ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Site", "none")]
    {
        let response = post.clone().header(name, value).send(world.address).await;
        assert_eq!((response.status, &response.problem()["type"]), (403, &json!("/problems/foreign-origin")));
    }
    assert_eq!(post.clone().send(world.address).await.status, 403, "no header of a browser");
    assert_eq!(post.header("Sec-Fetch-Site", "same-origin").send(world.address).await.status, 201);
    let link = world.tokens().create_link(NewToken::local("page")).unwrap();
    let login = Request::new("POST", SESSION).json(&json!({"code": link.reveal()}));
    assert_eq!(login.header("Sec-Fetch-Site", "cross-site").send(world.address).await.status, 403);
}

// Row "limits skipped by the other auth header" of section 13.
#[tokio::test]
async fn s7_a_session_does_what_the_scopes_of_its_link_say_and_ends_with_it() {
    let world = World::new().await;
    let new = NewToken { scopes: vec![Scope::Read], ..NewToken::local("page") };
    let link = world.tokens().create_link(new).unwrap();
    let login = exchange(&world, link.reveal()).await;
    let cookie = login.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let (mut refused, mut allowed) = (0, 0);
    for (method, path, scope, has_body) in world.routes().await {
        let Some(scope) = scope else { continue };
        // The feed does not end.
        if path.ends_with("/session") || path.ends_with("/feed") {
            continue;
        }
        let request =
            Request::new(&method, &path).header("Cookie", &cookie).header("Sec-Fetch-Site", "same-origin");
        let request = if has_body { request.json(&json!({})) } else { request };
        let status = request.send(world.address).await.status;
        match scope {
            Scope::Read => {
                assert_ne!(status, 403, "{method} {path}");
                allowed += 1;
            }
            _ => {
                assert_eq!(status, 403, "{method} {path}");
                refused += 1;
            }
        }
    }
    assert!(refused > 10 && allowed > 5, "{refused} {allowed}");
}

#[tokio::test]
async fn files_of_the_page_have_a_strict_policy_and_are_cached_by_digest() {
    let world = World::new().await;
    let get = |path| Request::new("GET", path);
    for path in ["/", "/page/app.js", "/page/base.css", "/page/vendor/htm-3.1.1.js"] {
        let plain = get(path).send(world.address).await;
        assert_eq!(plain.status, 200, "{path}");
        let policy = plain.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(plain.header(name), Some(value), "{path}");
        }
        let cache = plain.header("cache-control").unwrap();
        assert_eq!(cache.contains("immutable"), path.contains("vendor"), "{path}: {cache}");
        let etag = plain.header("etag").unwrap().to_owned();
        let same = get(path).header("If-None-Match", &etag).send(world.address).await;
        assert_eq!((same.status, same.body.as_str()), (304, ""));
        let other = get(path).header("Host", "evil.test").send(world.address).await;
        assert_eq!(other.status, 421, "{path}");
        let zipped = get(path).header("Accept-Encoding", "br, gzip").open(world.address).await;
        assert_eq!(zipped.status, 200);
        assert!(etag.starts_with("W/\""), "one tag of different bytes: {etag}");
    }
    assert_eq!(get("/page/nothing.js").send(world.address).await.status, 401);
}
