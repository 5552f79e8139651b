//! A server that runs, and its teams.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use polylogue_models::Env;
use polylogue_runtime::{Access, ModelOptions, Prepared, RunOptions, StoreLocation};
use polylogue_server::{
    NewToken, Scope, Server, ServerLimits, ServerOptions, SourceError, TeamSource, Token, TokenFile,
    tokens_at,
};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::client::{Request, Response};

const TALK: &str = "
name: talk
description: Two agents who count.
task: Count.
vars: {tone: calm}
agents: [{name: Ann, system: 'Be {{tone}}.'}, {name: Bob}]
chat: {participants: [Ann, Bob], pattern: round_robin, stop: {max_turns: 4}}
script: [{Ann: one}, {Bob: two}, {Ann: three}, {Bob: four}, {Ann: five}, {Bob: six}, {Ann: seven}, {Bob: eight}]
";

const TEAMS: &[(&str, &str)] = &[("talk", TALK)];

/// Scripted teams in files.
pub(crate) struct Files(BTreeMap<String, PathBuf>);

impl TeamSource for Files {
    fn ids(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    fn prepare<'a>(
        &'a self,
        team: &'a str,
        place: &'a StoreLocation,
    ) -> BoxFuture<'a, Result<Prepared, SourceError>> {
        Box::pin(async move {
            assert!(!place.path().to_string_lossy().contains("tenants/panics"), "the mistake of a test");
            let loaded = polylogue_team::load(&self.0[team], &Default::default()).unwrap();
            let access = Access::new(Env::of::<String, String>([]), loaded.digest.as_str());
            let models = ModelOptions { offline: true, stream: true, ..ModelOptions::default() };
            let options = RunOptions { models, ..RunOptions::default() };
            Ok(Prepared::new(place, loaded.team, loaded.digest, access, options).await.unwrap())
        })
    }
}

/// A server that runs in this process.
pub(crate) struct World {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) address: SocketAddr,
    pub(crate) url: String,
    /// With all scopes, of the tenant `local`.
    pub(crate) token: String,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(generous()).await
    }

    pub(crate) async fn with(limits: ServerLimits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let place = place(dir.path());
        Self::start(dir, ServerOptions { limits, ..ServerOptions::new(loopback(), place) }).await
    }

    pub(crate) async fn start(dir: tempfile::TempDir, options: ServerOptions) -> Self {
        let mut server = Server::bind(options, files(&dir)).await.unwrap();
        let token = server.take_first_token().unwrap().reveal().to_owned();
        let (address, url) = (server.address(), server.url());
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(server.run(async { drop(stopped.await) }));
        Self { dir, address, url, token, stop: Some(stop), serving }
    }

    pub(crate) fn tokens(&self) -> TokenFile {
        TokenFile::at(tokens_at(&place(self.dir.path())))
    }

    /// The text of a new token.
    pub(crate) fn new_token(&self, tenant: &str, scopes: &[Scope]) -> (Token, String) {
        let new = NewToken { tenant: tenant.into(), scopes: scopes.to_vec(), ..NewToken::local("test") };
        let (token, text) = self.tokens().create(new).unwrap();
        (token, text.reveal().to_owned())
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> Request {
        Request::new(method, path).token(&self.token)
    }

    pub(crate) async fn send(&self, request: Request) -> Response {
        request.send(self.address).await
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.send(self.request("GET", path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Response {
        self.send(self.request("POST", path).json(body)).await
    }

    /// Every route, as the document of the API has it: method, a path without variable parts, its scope if it is not open, and
    /// whether it takes a body.
    pub(crate) async fn routes(&self) -> Vec<(String, String, Option<Scope>, bool)> {
        let document = self.get("/openapi.json").await.json();
        let mut routes = Vec::new();
        for (path, operations) in document["paths"].as_object().unwrap() {
            for (method, operation) in operations.as_object().unwrap() {
                let scope = operation["x-polylogue-scope"].as_str().map(|word| word.parse().unwrap());
                let concrete = path.split('/').map(|part| if part.starts_with('{') { "x1" } else { part });
                let concrete = concrete.collect::<Vec<_>>().join("/");
                routes.push((method.to_uppercase(), concrete, scope, operation["requestBody"].is_object()));
            }
        }
        assert!(routes.len() > 5, "{routes:?}");
        routes
    }

    /// Stops the server and waits until it has ended.
    pub(crate) async fn stop(mut self) -> tempfile::TempDir {
        drop(self.stop.take());
        self.serving.await.unwrap();
        self.dir
    }
}

pub(crate) fn place(dir: &std::path::Path) -> StoreLocation {
    StoreLocation::new(dir.join("data/conversations.db"))
}

pub(crate) fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

pub(crate) fn files(dir: &tempfile::TempDir) -> Arc<Files> {
    let mut files = BTreeMap::new();
    for (name, text) in TEAMS {
        let file = dir.path().join(format!("{name}.yaml"));
        std::fs::write(&file, text).unwrap();
        files.insert((*name).to_owned(), file);
    }
    Arc::new(Files(files))
}

/// Limits that no test reaches by accident.
pub(crate) fn generous() -> ServerLimits {
    ServerLimits {
        requests_per_second: 1000,
        request_burst: 10_000,
        failed_logins_per_minute: 1000,
        ..ServerLimits::default()
    }
}
