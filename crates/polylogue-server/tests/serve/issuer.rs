//! Tokens of an authorization server: S80.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use polylogue_http::Proxies;
use polylogue_server::{IssuerOptions, ServerOptions};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::client::{Request, Response};
use crate::mcp_client;
use crate::world::{World, generous, loopback, place};

const RESOURCE: &str = "https://teams.example";
const TEAMS: &str = "/api/v1/teams";
const PATH: &str = "/api/v1/conversations";

/// A key that signs, with its id.
struct Signer(EncodingKey, &'static str);

impl Signer {
    fn new(id: &'static str) -> Self {
        let key =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
        Self(EncodingKey::from_ec_der(key.as_ref()), id)
    }

    fn public(&self) -> Value {
        let mut key = Jwk::from_encoding_key(&self.0, Algorithm::ES256).unwrap();
        key.common.key_id = Some(self.1.into());
        json!(key)
    }

    fn sign(&self, claims: &Value) -> String {
        let header = Header { kid: Some(self.1.into()), ..Header::new(Algorithm::ES256) };
        encode(&header, claims, &self.0).unwrap()
    }
}

/// An authorization server: its metadata and its keys, and how often it was asked.
struct Issuer {
    url: String,
    signer: Signer,
    asked: Arc<AtomicUsize>,
    /// Whether it leaves requests without a response.
    is_silent: Arc<AtomicBool>,
}

impl Issuer {
    async fn start() -> Self {
        let (signer, asked) = (Signer::new("k1"), Arc::new(AtomicUsize::new(0)));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/realm", listener.local_addr().unwrap());
        let (keys, count) = (json!({"keys": [signer.public()]}), Arc::clone(&asked));
        let metadata = json!({"issuer": url, "jwks_uri": format!("{url}/keys")});
        let (is_silent, mut unanswered) = (Arc::new(AtomicBool::new(false)), Vec::new());
        let silent = Arc::clone(&is_silent);
        tokio::spawn(async move {
            loop {
                let (mut socket, _) = listener.accept().await.unwrap();
                count.fetch_add(1, Ordering::SeqCst);
                if silent.load(Ordering::SeqCst) {
                    unanswered.push(socket);
                    continue;
                }
                let mut head = [0; 4096];
                let read = socket.read(&mut head).await.unwrap();
                let head = String::from_utf8_lossy(&head[..read]).into_owned();
                let (status, body) = match head.split(' ').nth(1) {
                    Some("/realm/.well-known/openid-configuration") => ("200 OK", metadata.to_string()),
                    Some("/realm/keys") => ("200 OK", keys.to_string()),
                    _ => ("404 Not Found", String::new()),
                };
                let length = body.len();
                let text = format!(
                    "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
                );
                let _ = socket.write_all(text.as_bytes()).await;
            }
        });
        Self { url, signer, asked, is_silent }
    }

    /// The claims of a good token with `scope`.
    fn claims(&self, scope: &str) -> Value {
        json!({"iss": self.url, "aud": RESOURCE, "sub": "ann@example.org", "exp": now() + 600, "scope": scope})
    }

    fn token(&self, scope: &str) -> String {
        self.signer.sign(&self.claims(scope))
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

async fn world(issuer: &str) -> World {
    let dir = tempfile::tempdir().unwrap();
    let options =
        IssuerOptions { url: issuer.into(), audience: Some(RESOURCE.into()), proxies: Proxies::none() };
    let options = ServerOptions {
        limits: generous(),
        issuer: Some(options),
        ..ServerOptions::new(loopback(), place(dir.path()))
    };
    World::start(dir, options).await
}

async fn ask(world: &World, method: &str, path: &str, token: &str) -> Response {
    let request = Request::new(method, path).token(token);
    let request =
        if method == "POST" { request.json(&json!({"team": "talk", "message": "Go."})) } else { request };
    request.send(world.address).await
}

fn challenge(response: &Response) -> &str {
    response.header("www-authenticate").unwrap_or_else(|| panic!("no challenge: {}", response.body))
}

#[tokio::test]
async fn s80_tokens_of_the_issuer_do_what_their_scopes_allow() {
    let issuer = Issuer::start().await;
    let world = world(&issuer.url).await;
    let token = issuer.token("read run admin openid");
    assert_eq!(ask(&world, "GET", TEAMS, &token).await.status, 200);
    assert_eq!(ask(&world, "POST", PATH, &token).await.status, 201);
    let list = mcp_client::request(&world, "tools/list", json!({}), &json!({})).token(&token);
    assert!(mcp_client::result(&list.send(world.address).await)["tools"].is_array());
    // A list of scopes, and the address of MCP as the audience.
    let mut claims = issuer.claims("");
    claims["scp"] = json!(["read"]);
    claims["aud"] = json!(["other", format!("{RESOURCE}/mcp")]);
    let reading = issuer.signer.sign(&claims);
    assert_eq!(ask(&world, "GET", TEAMS, &reading).await.status, 200);
    let refused = ask(&world, "POST", PATH, &reading).await;
    let expected = format!(
        "Bearer resource_metadata=\"{RESOURCE}/.well-known/oauth-protected-resource\", error=\"insufficient_scope\", scope=\"run\""
    );
    assert_eq!((refused.status, challenge(&refused)), (403, expected.as_str()));
    // Tokens that last are made on the machine of the server.
    assert_eq!(ask(&world, "GET", "/api/v1/tokens", &token).await.status, 403);
    // Those of the server are as good as before.
    assert_eq!(world.get(TEAMS).await.status, 200);
    assert_eq!(issuer.asked.load(Ordering::SeqCst), 3, "the keys are kept");
}

#[tokio::test]
async fn s80_what_is_wrong_with_a_token_of_the_issuer_is_401_and_said() {
    let issuer = Issuer::start().await;
    let world = world(&issuer.url).await;
    let with = |field: &str, value: Value| {
        let mut claims = issuer.claims("read");
        match value {
            Value::Null => drop(claims.as_object_mut().unwrap().shift_remove(field)),
            value => claims[field] = value,
        }
        issuer.signer.sign(&claims)
    };
    let stranger = Signer::new("k1");
    let good = issuer.token("read");
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let unsigned = format!("eyJhbGciOiJub25lIn0.{}.AA", good.split('.').nth(1).unwrap());
    // Signed with the public key as a secret.
    let public = issuer.signer.public()["x"].as_str().unwrap().to_owned();
    let header = Header { kid: Some("k1".into()), ..Header::new(Algorithm::HS256) };
    let by_secret =
        encode(&header, &issuer.claims("read"), &EncodingKey::from_secret(public.as_bytes())).unwrap();
    for (token, why) in [
        (with("aud", json!("https://other.example")), "is for another server"),
        (with("aud", json!(format!("{RESOURCE}.evil.example"))), "is for another server"),
        (with("aud", Value::Null), "lacks one of"),
        (with("iss", json!("https://other.example")), "is of another authorization server"),
        (with("exp", json!(now() - 3600)), "has expired"),
        (with("exp", Value::Null), "is not valid"),
        (with("nbf", json!(now() + 3600)), "is not valid yet"),
        (with("sub", Value::Null), "is not valid"),
        (stranger.sign(&issuer.claims("read")), "is not valid"),
        (Signer::new("k2").sign(&issuer.claims("read")), "is signed with an unknown key"),
        (format!("{signed}.{}", signature.chars().rev().collect::<String>()), "is not valid"),
        (by_secret, "is not valid"),
        (unsigned, "is not"),
        ("a.b.c".to_owned(), "is not readable"),
    ] {
        let refused = ask(&world, "GET", TEAMS, &token).await;
        let detail = refused.problem()["detail"].as_str().unwrap().to_owned();
        assert_eq!(refused.status, 401, "{why}: {detail}");
        assert!(detail.contains(why), "{why}: {detail}");
        assert!(challenge(&refused).contains("error=\"invalid_token\""), "{why}");
        assert!(!refused.body.contains(&token), "the token is shown");
    }
    let none = Request::new("POST", "/mcp").json(&json!({})).send(world.address).await;
    let expected = format!(
        "Bearer resource_metadata=\"{RESOURCE}/.well-known/oauth-protected-resource/mcp\", scope=\"run\""
    );
    assert_eq!((none.status, challenge(&none)), (401, expected.as_str()));
    assert_eq!(issuer.asked.load(Ordering::SeqCst), 3, "wrong tokens cause no requests");
}

#[tokio::test]
async fn s80_clients_find_the_issuer() {
    let issuer = Issuer::start().await;
    let world = world(&issuer.url).await;
    for (path, resource) in [
        ("oauth-protected-resource", RESOURCE.to_owned()),
        ("oauth-protected-resource/mcp", format!("{RESOURCE}/mcp")),
        ("oauth-protected-resource/mcp/talk", format!("{RESOURCE}/mcp")),
    ] {
        let response = Request::new("GET", &format!("/.well-known/{path}")).send(world.address).await;
        let document = response.json();
        assert_eq!((response.status, &document["resource"]), (200, &json!(resource)), "{path}");
        assert_eq!(document["authorization_servers"], json!([issuer.url]), "{path}");
        assert!(!document["scopes_supported"].to_string().contains("admin"), "{path}");
    }
    for path in [
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
        "/.well-known/oauth-protected-resource/other",
        "/.well-known/oauth-protected-resourceful",
        "/mcp/.well-known/oauth-protected-resource",
    ] {
        let response = Request::new("GET", path).send(world.address).await;
        assert_eq!(response.status, 404, "{path}");
        assert!(response.problem()["hint"].is_string(), "{path}");
    }
}

#[tokio::test]
async fn an_issuer_without_keys_is_503_and_one_that_cannot_be_trusted_does_not_start() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let world = world(&url).await;
    let token = Signer::new("k1").sign(&json!({"iss": url, "aud": RESOURCE, "sub": "x", "exp": now() + 60}));
    for _ in 0..2 {
        let refused = ask(&world, "GET", TEAMS, &token).await;
        assert_eq!(refused.status, 503, "{}", refused.body);
        assert!(refused.problem()["hint"].is_string() && refused.header("retry-after").is_some());
    }
    for (url, audience) in [
        ("http://login.example", Some(RESOURCE)),
        ("login.example", Some(RESOURCE)),
        ("https://login.example", None),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let issuer = IssuerOptions {
            url: url.into(),
            audience: audience.map(str::to_owned),
            proxies: Proxies::none(),
        };
        let options =
            ServerOptions { issuer: Some(issuer), ..ServerOptions::new(loopback(), place(dir.path())) };
        let error = World::refused(&dir, options).await;
        assert!(error.to_string().starts_with("the issuer: ") && error.hint().is_some(), "{url}: {error}");
    }
}

/// Has so much time pass at once.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[tokio::test]
async fn a_token_with_a_known_key_does_not_wait_for_the_keys_of_others() {
    let issuer = Issuer::start().await;
    let world = world(&issuer.url).await;
    assert_eq!(ask(&world, "GET", TEAMS, &issuer.token("read")).await.status, 200);
    let asked = issuer.asked.load(Ordering::SeqCst);
    issuer.is_silent.store(true, Ordering::SeqCst);
    // Until then, an unknown key causes no request.
    pass(Duration::from_secs(31)).await;
    let (unknown, address) = (Signer::new("k2").sign(&issuer.claims("read")), world.address);
    let waiting =
        tokio::spawn(async move { Request::new("GET", TEAMS).token(&unknown).send(address).await.status });
    while issuer.asked.load(Ordering::SeqCst) == asked {
        tokio::task::yield_now().await;
    }
    assert_eq!(ask(&world, "GET", TEAMS, &issuer.token("read")).await.status, 200);
    assert!(!waiting.is_finished(), "the other one has waited for the keys");
    waiting.abort();
}

#[tokio::test]
async fn a_stream_ends_when_the_token_of_the_issuer_has_expired() {
    let issuer = Issuer::start().await;
    let world = world(&issuer.url).await;
    let begun = world.post(PATH, &json!({"team": "ask", "message": "Go."})).await.json();
    let mut claims = issuer.claims("read");
    // It is accepted for a minute more, as clocks differ.
    claims["exp"] = json!(now() - 57);
    let path = format!("{PATH}/{}/events", begun["id"].as_str().unwrap());
    let tail =
        Request::new("GET", &path).header("Accept", "text/event-stream").token(&issuer.signer.sign(&claims));
    let mut tail = tail.open(world.address).await;
    let ended = async { while tail.frame().await.is_some() {} };
    tokio::time::timeout(Duration::from_secs(60), ended).await.expect("it does not end");
    assert_eq!(world.get(TEAMS).await.status, 200);
}
