//! A server that runs, and its teams.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use futures_util::future::BoxFuture;
use polylogue_core::{AnyStore, Budget, LogId};
use polylogue_models::Env;
use polylogue_runtime::stored::StoredDocument;
use polylogue_runtime::{Access, ModelOptions, Prepared, RunOptions, Runtime, StoreLocation};
use polylogue_server::{
    ChatOptions, NewToken, Scope, Server, ServerError, ServerLimits, ServerOptions, SourceError, TeamSource,
    Token, TokenFile, tokens_at,
};
use polylogue_team::{Diagnostics, Grant, Loaded, Overrides, Team};
use polylogue_test::server::{Answer, Playbook, Server as ModelServer};
use polylogue_test::teams::WHISPER;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::client::{Request, Response, Stream};

const TALK: &str = "
name: talk
description: Two agents who count.
task: Count.
vars: {tone: calm}
agents: [{name: Ann, system: 'Be {{tone}}.'}, {name: Bob}]
chat: {participants: [Ann, Bob], pattern: round_robin, stop: {max_turns: 4}}
script: [{Ann: one}, {Bob: two}, {Ann: three}, {Bob: four}, {Ann: five}, {Bob: six}, {Ann: seven}, {Bob: eight}]
";

const ASK: &str = "
name: ask
task: Help.
agents: [{name: Ann}, {name: Pat, human: true}]
chat: {participants: [Pat, Ann], pattern: sequential}
script: [{Ann: Thanks.}, {Ann: Well.}]
";

const SHORT: &str = "
name: short
task: Count.
agents: [{name: Ann}, {name: Bob}]
chat: {participants: [Ann, Bob], pattern: round_robin}
limits: {calls: 3}
script: [{Ann: one}, {Bob: two}, {Ann: three}, {Bob: four}, {Ann: five}, {Bob: six}]
";

/// Its model is a server, so that it can be stopped while it talks.
pub(crate) const LONG: &str = "
name: long
task: Talk.
agents: [{name: Ann, model: 'openai:gpt-4o-mini'}, {name: Bob, model: 'openai:gpt-4o-mini'}]
chat: {participants: [Ann, Bob], pattern: round_robin, stop: {max_turns: 12}}
";

const TEAMS: &[(&str, &str)] = &[("talk", TALK), ("ask", ASK), ("short", SHORT), ("whisper", WHISPER)];

/// Which requests a model replies to; others wait.
pub(crate) struct Gate {
    open: Mutex<usize>,
    changed: Condvar,
}

impl Gate {
    pub(crate) fn open() -> Self {
        Self::until(usize::MAX)
    }

    /// Lets the first `open` requests through.
    pub(crate) fn until(open: usize) -> Self {
        Self { open: Mutex::new(open), changed: Condvar::new() }
    }

    /// Lets all requests through.
    pub(crate) fn lift(&self) {
        self.open_until(usize::MAX);
    }

    /// Lets the first `open` requests through.
    pub(crate) fn open_until(&self, open: usize) {
        *self.open.lock().unwrap() = open;
        self.changed.notify_all();
    }

    /// Waits in the thread of the model.
    pub(crate) fn pass(&self, number: usize) {
        drop(self.changed.wait_while(self.open.lock().unwrap(), |open| number >= *open).unwrap());
    }
}

/// A gate that is lifted when a test ends, however it ends.
struct LiftedGate(Arc<Gate>);

impl Drop for LiftedGate {
    fn drop(&mut self) {
        self.0.lift();
    }
}

/// Teams in files: scripted, or with the model of a server.
pub(crate) struct Files {
    files: Mutex<BTreeMap<String, PathBuf>>,
    /// As they were read last.
    texts: Mutex<BTreeMap<String, String>>,
    model_url: Option<String>,
    /// How often the team of a stored conversation was prepared.
    prepared_stored: AtomicUsize,
    /// Whether preparing one panics.
    panics: AtomicBool,
}

impl Files {
    /// The file of a team.
    fn path(&self, team: &str) -> PathBuf {
        self.files.lock().unwrap()[team].clone()
    }

    async fn prepared(
        &self,
        team: Team,
        digest: String,
        place: &StoreLocation,
    ) -> Result<Prepared, SourceError> {
        let is_scripted = !team.models().iter().any(|model| model.starts_with("openai:"));
        let url = self.model_url.clone().unwrap_or_default();
        let env = Env::of([("OPENAI_API_KEY", "key"), ("OPENAI_BASE_URL", url.as_str())]);
        let mut access = Access::new(env, digest.as_str());
        access.grants.insert(Grant::Network);
        let models =
            ModelOptions { offline: is_scripted, stream: true, paced: true, ..ModelOptions::default() };
        let options = RunOptions { models, ..RunOptions::default() };
        // Only of a text that a test has changed.
        let prepared = Prepared::new(place, team, digest, access, options).await;
        prepared.map_err(|error| SourceError { what: error.to_string(), hint: error.hint(), is_usage: true })
    }
}

impl TeamSource for Files {
    fn ids(&self) -> Vec<String> {
        self.files.lock().unwrap().keys().cloned().collect()
    }

    fn rescan(&self, again: bool) -> Vec<String> {
        let mut texts = self.texts.lock().unwrap();
        let mut changed = Vec::new();
        for (id, file) in &*self.files.lock().unwrap() {
            let text = std::fs::read_to_string(file).unwrap();
            if texts.insert(id.clone(), text.clone()).is_some_and(|before| before != text) || again {
                changed.push(id.clone());
            }
        }
        changed
    }

    fn file(&self, team: &str) -> Option<PathBuf> {
        self.files.lock().unwrap().get(team).cloned()
    }

    fn check(&self, team: Option<&str>, text: &str, hidden: &[PathBuf]) -> Result<Loaded, Diagnostics> {
        match team {
            Some(team) => polylogue_team::parse_at(text, self.path(team), hidden, &Overrides::default()),
            None => polylogue_team::parse(text, "team.yaml", &Overrides::default()),
        }
    }

    fn prepare<'a>(
        &'a self,
        team: &'a str,
        place: &'a StoreLocation,
    ) -> BoxFuture<'a, Result<Prepared, SourceError>> {
        Box::pin(async move {
            assert!(!place.path().to_string_lossy().contains("tenants/panics"), "the mistake of a test");
            let loaded = polylogue_team::load(self.path(team), &Overrides::default());
            let loaded = loaded.map_err(|error| SourceError {
                what: error.to_string(),
                hint: None,
                is_usage: true,
            })?;
            self.prepared(loaded.team, loaded.digest, place).await
        })
    }

    fn prepare_stored<'a>(
        &'a self,
        runtime: &'a Runtime,
        _: &'a LogId,
        document: &'a StoredDocument,
    ) -> BoxFuture<'a, Result<Prepared, SourceError>> {
        Box::pin(async move {
            self.prepared_stored.fetch_add(1, Ordering::SeqCst);
            assert!(!self.panics.load(Ordering::SeqCst), "the mistake of a test");
            let stored = document.team().unwrap();
            self.prepared(stored.team, stored.digest, runtime.place()).await
        })
    }

    fn is_for_any_task(&self, _: &Prepared) -> bool {
        true
    }
}

/// A server that runs in this process.
pub(crate) struct World {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) address: SocketAddr,
    pub(crate) url: String,
    /// With all scopes, of the tenant `local`.
    pub(crate) token: String,
    limits: ServerLimits,
    chat: ChatOptions,
    files: Arc<Files>,
    /// Before the model, which ends when no request of it waits.
    _gate: Option<LiftedGate>,
    model: Option<ModelServer>,
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

    /// With a further team.
    pub(crate) async fn with_team(name: &str, text: &str) -> Self {
        Self::with_teams(&[(name.to_owned(), text.to_owned())]).await
    }

    /// With further teams.
    pub(crate) async fn with_teams(teams: &[(String, String)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in teams {
            std::fs::write(dir.path().join(format!("{name}.yaml")), text).unwrap();
        }
        let options =
            ServerOptions { limits: generous(), ..ServerOptions::new(loopback(), place(dir.path())) };
        Self::start(dir, options).await
    }

    /// With a team whose model replies with `text`.
    pub(crate) async fn with_model(text: &'static str, limits: ServerLimits) -> Self {
        Self::with_gate(text, limits, Arc::new(Gate::open())).await
    }

    /// The same, where the model replies to the requests that `gate` lets through.
    pub(crate) async fn with_gate(text: &'static str, limits: ServerLimits, gate: Arc<Gate>) -> Self {
        Self::with_gate_in(tempfile::tempdir().unwrap(), text, limits, gate).await
    }

    /// The same with a gate of its own, which lets so many requests through.
    pub(crate) async fn gated(text: &'static str, limits: ServerLimits, passes: usize) -> (Arc<Gate>, Self) {
        let gate = Arc::new(Gate::until(passes));
        let world = Self::with_gate(text, limits, Arc::clone(&gate)).await;
        (gate, world)
    }

    /// The same with what is stored in `dir`.
    pub(crate) async fn with_gate_in(
        dir: tempfile::TempDir,
        text: &'static str,
        limits: ServerLimits,
        gate: Arc<Gate>,
    ) -> Self {
        let options = ServerOptions { limits, ..ServerOptions::new(loopback(), place(dir.path())) };
        let lifted = LiftedGate(Arc::clone(&gate));
        let reply = Playbook::new(move |_, number| {
            gate.pass(number);
            Answer::text(text).pieces(3)
        });
        let world = Self::start_at(dir, options, Some(ModelServer::start(reply).await), None).await;
        Self { _gate: Some(lifted), ..world }
    }

    /// With a team whose model replies as `play` says to each of its requests, by their number.
    pub(crate) async fn with_answers(play: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options =
            ServerOptions { limits: generous(), ..ServerOptions::new(loopback(), place(dir.path())) };
        let model = ModelServer::start(Playbook::new(move |_, number| play(number))).await;
        Self::start_at(dir, options, Some(model), None).await
    }

    /// With a team whose model replies with `text`, and a budget of all conversations.
    pub(crate) async fn with_budget(text: &'static str, budget: Budget) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = ServerOptions {
            limits: generous(),
            budget: Some(budget),
            ..ServerOptions::new(loopback(), place(dir.path()))
        };
        let model = ModelServer::start(Playbook::new(move |_, _| Answer::text(text))).await;
        Self::start_at(dir, options, Some(model), None).await
    }

    /// With the team `name` as well, whose model replies by `playbook`.
    pub(crate) async fn with_playbook(name: &str, text: &str, playbook: Playbook) -> Self {
        Self::with_playbook_and(name, text, playbook, generous()).await
    }

    pub(crate) async fn with_playbook_and(
        name: &str,
        text: &str,
        playbook: Playbook,
        limits: ServerLimits,
    ) -> Self {
        Self::with_playbook_in(tempfile::tempdir().unwrap(), (name, text), playbook, limits).await
    }

    /// The same with what is stored in `dir`.
    pub(crate) async fn with_playbook_in(
        dir: tempfile::TempDir,
        (name, text): (&str, &str),
        playbook: Playbook,
        limits: ServerLimits,
    ) -> Self {
        std::fs::write(dir.path().join(format!("{name}.yaml")), text).unwrap();
        let options = ServerOptions { limits, ..ServerOptions::new(loopback(), place(dir.path())) };
        Self::start_at(dir, options, Some(ModelServer::start(playbook).await), None).await
    }

    /// Another server with the same store and the same teams, as of another process, whose model replies by `playbook`.
    pub(crate) async fn twin(&self, playbook: Playbook) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (name, file) in &*self.files.files.lock().unwrap() {
            std::fs::copy(file, dir.path().join(format!("{name}.yaml"))).unwrap();
        }
        let place = place(self.dir.path());
        let options = ServerOptions { limits: self.limits.clone(), ..ServerOptions::new(loopback(), place) };
        let model = ModelServer::start(playbook).await;
        Self::start_at(dir, options, Some(model), Some(self.token.clone())).await
    }

    pub(crate) async fn start(dir: tempfile::TempDir, options: ServerOptions) -> Self {
        Self::start_at(dir, options, None, None).await
    }

    /// Why a server with these options does not start.
    pub(crate) async fn refused(dir: &tempfile::TempDir, options: ServerOptions) -> ServerError {
        match Server::bind(options, files(dir, None)).await {
            Ok(_) => panic!("it starts"),
            Err(error) => error,
        }
    }

    async fn start_at(
        dir: tempfile::TempDir,
        options: ServerOptions,
        model: Option<ModelServer>,
        token: Option<String>,
    ) -> Self {
        let (limits, chat, files) =
            (options.limits.clone(), options.chat.clone(), files(&dir, model.as_ref()));
        let mut server = Server::bind(options, Arc::clone(&files) as _).await.unwrap();
        let first = server.take_first_token().map(|token| token.reveal().to_owned());
        let (address, url, token) = (server.address(), server.url(), first.or(token).unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(server.run(async { drop(stopped.await) }));
        let stop = Some(stop);
        Self { dir, address, url, token, limits, chat, files, _gate: None, model, stop, serving }
    }

    /// Another server with the same store, as of another process, whose model replies to the requests that `gate` lets through.
    pub(crate) async fn second_server(&self, text: &'static str, gate: Arc<Gate>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let place = place(self.dir.path());
        let (limits, chat) = (self.limits.clone(), self.chat.clone());
        let options = ServerOptions { limits, chat, ..ServerOptions::new(loopback(), place) };
        let lifted = LiftedGate(Arc::clone(&gate));
        let reply = Playbook::new(move |_, number| {
            gate.pass(number);
            Answer::text(text)
        });
        let model = ModelServer::start(reply).await;
        let world = Self::start_at(dir, options, Some(model), Some(self.token.clone())).await;
        Self { _gate: Some(lifted), ..world }
    }

    /// Stops the server, and starts another one with the same store.
    pub(crate) async fn restart(self) -> Self {
        self.restart_after(|_| {}).await
    }

    /// The same after a `change` of what is stored.
    pub(crate) async fn restart_after(mut self, change: impl FnOnce(&Path)) -> Self {
        let (limits, model, token) = (self.limits.clone(), self.model.take(), self.token.clone());
        let dir = self.stop().await;
        change(dir.path());
        let options = ServerOptions { limits, ..ServerOptions::new(loopback(), place(dir.path())) };
        Self::start_at(dir, options, model, Some(token)).await
    }

    /// The same at the same address, to which its clients connect again.
    pub(crate) async fn restart_here(mut self) -> Self {
        let (limits, model, token, address) =
            (self.limits.clone(), self.model.take(), self.token.clone(), self.address);
        let dir = self.stop().await;
        let options = ServerOptions { limits, ..ServerOptions::new(address, place(dir.path())) };
        Self::start_at(dir, options, model, Some(token)).await
    }

    /// Puts a team file into the folder of a server that runs.
    pub(crate) fn add_team(&self, name: &str, text: &str) {
        let file = self.dir.path().join(format!("{name}.yaml"));
        std::fs::write(&file, text).unwrap();
        self.files.files.lock().unwrap().insert(name.to_owned(), file);
    }

    /// The store, as another process opens it.
    pub(crate) async fn store(&self) -> AnyStore {
        place(self.dir.path()).open().unwrap()
    }

    /// Changes the database of the store by SQL, as no program does.
    pub(crate) fn change_store(&self, sql: &str) {
        change_store(self.dir.path(), sql);
    }

    /// How often the team of a stored conversation was prepared.
    pub(crate) fn prepared_stored(&self) -> usize {
        self.files.prepared_stored.load(Ordering::SeqCst)
    }

    /// Has preparing the team of a stored conversation panic from now on, or not any more.
    pub(crate) fn have_stored_teams_panic(&self, panics: bool) {
        self.files.panics.store(panics, Ordering::SeqCst);
    }

    /// The bodies of the requests that the model has received.
    pub(crate) fn model_requests(&self) -> Vec<String> {
        let received = self.model.as_ref().map(ModelServer::requests).unwrap_or_default();
        received.iter().map(|request| request.body.to_string()).collect()
    }

    pub(crate) fn tail_request(&self, id: &str, from: u64) -> Request {
        let path = format!("/api/v1/conversations/{id}/events?from={from}");
        self.request("GET", &path).header("Accept", "text/event-stream")
    }

    /// The event stream of a conversation.
    pub(crate) async fn tail(&self, id: &str, from: u64) -> Stream {
        self.tail_request(id, from).open(self.address).await
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

    /// Tells the server to stop, and does not wait until it has.
    pub(crate) fn begin_stop(&mut self) {
        drop(self.stop.take());
    }

    /// Stops the server and waits until it has ended.
    pub(crate) async fn stop(mut self) -> tempfile::TempDir {
        self.begin_stop();
        self.serving.await.unwrap();
        self.dir
    }
}

/// Changes the database of the store in `dir` by SQL, as no program does.
pub(crate) fn change_store(dir: &Path, sql: &str) {
    let database = rusqlite::Connection::open(place(dir).path()).unwrap();
    assert!(database.execute(sql, []).unwrap() > 0, "{sql} changes nothing");
}

pub(crate) fn place(dir: &Path) -> StoreLocation {
    StoreLocation::new(dir.join("data/conversations.db"))
}

pub(crate) fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

pub(crate) fn files(dir: &tempfile::TempDir, model: Option<&ModelServer>) -> Arc<Files> {
    let mut files = BTreeMap::new();
    let long = model.map(|_| &("long", LONG));
    for (name, text) in TEAMS.iter().chain(long) {
        let file = dir.path().join(format!("{name}.yaml"));
        std::fs::write(&file, text).unwrap();
        files.insert((*name).to_owned(), file);
    }
    // Those that a test has put there.
    let entries = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    for file in entries.filter(|file| file.extension().is_some_and(|ending| ending == "yaml")) {
        files.insert(file.file_stem().unwrap().to_str().unwrap().to_owned(), file);
    }
    let text = |(id, file): (&String, &PathBuf)| (id.clone(), std::fs::read_to_string(file).unwrap());
    let texts = Mutex::new(files.iter().map(text).collect());
    let (model_url, prepared_stored) = (model.map(ModelServer::base_url), AtomicUsize::new(0));
    let (files, panics) = (Mutex::new(files), AtomicBool::new(false));
    Arc::new(Files { files, texts, model_url, prepared_stored, panics })
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
