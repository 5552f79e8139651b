//! A server that follows conversations which other processes run, over one database: W18 and W39 to W42. The other processes are nodes in this
//! one: each has a store, a secret and an internal stream of its own.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;
use polylogue_core::{Delta, LogId, Store as _, Update};
use polylogue_models::Env;
use polylogue_runtime::database::DatabaseAddress;
use polylogue_runtime::{
    Access, Conversation, ModelOptions, OpenOptions, Prepared, RunOptions, Runtime, StoreLocation,
};
use polylogue_server::{LiveNode, LiveOptions, Scope, ServerLimits, ServerOptions};
use polylogue_team::{Grant, Overrides};
use polylogue_test::postgres::PostgresServer;
use polylogue_test::server::{Answer, Behavior, PieceGate, Playbook, Quirk, Server as ModelServer};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::client::{Request, Stream};
use crate::tails::{next_piece, next_text};
use crate::world::{World, generous, loopback, place};

/// Nothing here takes nearly as long: what does hangs.
const PATIENCE: Duration = Duration::from_secs(120);

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn team(turns: usize) -> String {
    format!(
        "
name: talk
task: Talk.
agents: [{{name: Ann, model: 'openai:gpt-4o-mini'}}, {{name: Bob, model: 'openai:gpt-4o-mini'}}]
chat: {{participants: [Ann, Bob], pattern: round_robin, max_turns: 1000, stop: {{max_turns: {turns}}}, loop_detection: off}}
limits: {{calls: 2000}}
"
    )
}

/// What is said in each turn is another text, the same however often it is asked for.
fn answer(body: &str, pieces: usize, pace: Duration) -> Answer {
    let turn = body.len();
    let text: Vec<String> = (0..pieces).map(|piece| format!("{turn}.{piece}")).collect();
    Answer::text(text.join(" ")).pieces(pieces).with(Quirk::Pace(pace))
}

pub(crate) fn model(latency: Duration, pieces: usize, pace: Duration) -> ModelServer {
    let book = Playbook::new(move |received, _| answer(&received.body.to_string(), pieces, pace));
    let behavior = Behavior::from(book).latency(latency).forgetful();
    ModelServer::bind(loopback(), behavior).unwrap()
}

/// The task of conversations whose replies are not held.
const OTHERS: &str = "Chatter.";

/// The replies of one conversation, each of which stops after its first pieces until its turn may end.
#[derive(Clone, Default)]
struct HeldTurns(Arc<Mutex<Gates>>);

#[derive(Default)]
struct Gates {
    /// By the length of the request, which is the same when another process makes it again.
    of_turns: HashMap<usize, PieceGate>,
    are_lifted: bool,
}

impl HeldTurns {
    /// How many chunks of a reply come at once. The first one has no text.
    const CHUNKS: usize = 4;

    fn model(&self, latency: Duration) -> ModelServer {
        let turns = self.clone();
        let book = Playbook::new(move |received, _| {
            let body = received.body.to_string();
            let answer = answer(&body, 12, Duration::from_millis(15));
            if body.contains(OTHERS) { answer } else { answer.gated(&turns.gate(body.len())) }
        });
        let behavior = Behavior::from(book).latency(latency).forgetful();
        ModelServer::bind(loopback(), behavior).unwrap()
    }

    fn gate(&self, turn: usize) -> PieceGate {
        let mut gates = self.0.lock().unwrap();
        let chunks = if gates.are_lifted { usize::MAX } else { Self::CHUNKS };
        let new = || {
            let gate = PieceGate::new();
            gate.open_until(chunks);
            gate
        };
        gates.of_turns.entry(turn).or_insert_with(new).clone()
    }

    /// Lets the turns end that have begun.
    fn pass(&self) {
        self.0.lock().unwrap().of_turns.values().for_each(PieceGate::lift);
    }

    /// Lets all turns end.
    fn lift(&self) {
        self.0.lock().unwrap().are_lifted = true;
        self.pass();
    }
}

/// A process that runs conversations.
pub(crate) struct Node {
    live: LiveNode,
    runtime: Runtime,
    prepared: Prepared,
}

impl Node {
    pub(crate) async fn new(cluster: &Cluster, turns: usize, advertise: Option<&str>) -> Self {
        let options = LiveOptions { advertise: advertise.map(str::to_owned), ..LiveOptions::default() };
        let live = LiveNode::bind(&options).await.unwrap();
        let point = live.point().unwrap();
        let place = cluster.place().with_live(Some(point.clone()));
        let runtime = Runtime::open_at(place.clone()).unwrap();
        live.offer(&point, &runtime);
        let loaded = polylogue_team::parse(&team(turns), "talk.yaml", &Overrides::default()).unwrap();
        let url = cluster.model.base_url();
        let env = Env::of([("OPENAI_API_KEY", "key"), ("OPENAI_BASE_URL", url.as_str())]);
        let mut access = Access::new(env, loaded.digest.as_str());
        access.grants.insert(Grant::Network);
        let models = ModelOptions { stream: true, ..ModelOptions::default() };
        let options = RunOptions { models, ..RunOptions::default() };
        let prepared = Prepared::new(&place, loaded.team, loaded.digest, access, options).await.unwrap();
        Self { live, runtime, prepared }
    }

    pub(crate) async fn begin(&self) -> Conversation {
        self.runtime.begin(&self.prepared.run()).await.unwrap()
    }

    async fn begin_about(&self, task: &str) -> Conversation {
        self.runtime.begin(&self.prepared.run().with_task(task)).await.unwrap()
    }

    /// Opens a conversation that is free, or that another process is about to lose.
    async fn open(&self, id: &LogId, cluster: &Cluster, takes_over: bool) -> Conversation {
        let begun = Instant::now();
        loop {
            // Its holder has a lease again when it appends before it is taken over.
            if takes_over {
                cluster.expire();
            }
            match self.runtime.open(id, &self.prepared, OpenOptions::default()).await {
                Ok(conversation) => return conversation,
                Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
            }
        }
    }
}

/// A run, in a task.
type Running = JoinHandle<()>;

pub(crate) fn run(conversation: &Conversation) -> Running {
    let conversation = conversation.clone();
    tokio::spawn(async move {
        // It is cancelled, or has lost its claim.
        drop(conversation.run().await);
    })
}

/// A database, a model, and a server that runs nothing.
pub(crate) struct Cluster {
    pub(crate) database: PostgresServer,
    model: ModelServer,
    pub(crate) front: World,
}

impl Cluster {
    pub(crate) async fn new(settings: &[&str], model: ModelServer) -> Option<Self> {
        let database = PostgresServer::start_with(settings)?;
        let dir = tempfile::tempdir().unwrap();
        let limits = ServerLimits {
            connections: 5000,
            connections_per_address: 5000,
            streams_per_token: 5000,
            ..generous()
        };
        let options = ServerOptions { limits, ..ServerOptions::new(loopback(), at(&database, &dir)) };
        let front = World::start(dir, options).await;
        Some(Self { database, model, front })
    }

    fn place(&self) -> StoreLocation {
        at(&self.database, &self.front.dir)
    }

    /// As if the process that has them hung.
    fn expire(&self) {
        let _ = self
            .database
            .sql("UPDATE polylogue.logs SET lease = now() - interval '2 minutes' WHERE holder IS NOT NULL");
    }
}

fn at(database: &PostgresServer, dir: &tempfile::TempDir) -> StoreLocation {
    StoreLocation::postgres(DatabaseAddress::parse(&database.url()).unwrap(), place(dir.path()).path())
}

fn now_ms() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// How far a client is.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    /// Bytes that it shows of replies that have not ended.
    shown: usize,
    /// Replies that were stored or interrupted, or begin again.
    over: usize,
    /// Replies that are stored.
    stored: usize,
}

/// Waits until a client is so far.
async fn until(client: &mut watch::Receiver<Progress>, is_so_far: impl FnMut(&Progress) -> bool) -> Progress {
    *tokio::time::timeout(PATIENCE, client.wait_for(is_so_far)).await.unwrap().unwrap()
}

/// What a client has received of a conversation.
#[derive(Default)]
struct Watched {
    progress: Progress,
    entries: Vec<Value>,
    /// The text of each agent's reply that is not stored yet.
    replies: BTreeMap<String, String>,
    /// How many messages were received live, whole.
    live: usize,
    pieces: usize,
    restarts: usize,
    /// How long after it was stored each event came, in milliseconds.
    delays: Vec<u64>,
}

impl Watched {
    /// Reads a tail to its end. What was shown live of a reply is its beginning when it is stored or interrupted, or was restarted.
    async fn read(mut tail: Stream, client: watch::Sender<Progress>) -> Self {
        let mut seen = Self::default();
        while let Some(frame) = tail.frame().await {
            let data = frame.json();
            match frame.event.as_str() {
                "entry" => seen.entry(data),
                "delta" => seen.piece(&data),
                "end" => return seen,
                "missed" => seen.replies.clear(),
                "state" | "retry" | "comment" => {}
                other => panic!("an error for the client: {other} {data}"),
            }
            seen.progress.shown = seen.replies.values().map(String::len).sum();
            client.send_replace(seen.progress);
        }
        panic!("the stream ended without `end`");
    }

    fn entry(&mut self, event: Value) {
        self.delays.push(now_ms().saturating_sub(event["time_ms"].as_u64().unwrap()));
        match event["type"].as_str().unwrap() {
            "model_replied" => self.ended(&event, &event["parts"][0]["text"]),
            "reply_interrupted" => self.ended(&event, &event["text"]),
            _ => {}
        }
        self.entries.push(event);
    }

    /// A reply has ended with this text.
    fn ended(&mut self, event: &Value, text: &Value) {
        let live = self.replies.remove(event["who"].as_str().unwrap()).unwrap_or_default();
        // A stored reply may overtake its last pieces.
        let text = text.as_str().unwrap();
        assert!(text.starts_with(&live), "{live}: {event}");
        self.progress.over += 1;
        if event["type"] == "model_replied" {
            self.live += usize::from(live == text);
            self.progress.stored += 1;
        }
    }

    fn piece(&mut self, piece: &Value) {
        let who = piece["who"].as_str().unwrap().to_owned();
        match piece["type"].as_str().unwrap() {
            "text" => {
                self.pieces += 1;
                self.replies.entry(who).or_default().push_str(piece["text"].as_str().unwrap());
            }
            "restart" => {
                self.restarts += 1;
                self.progress.over += 1;
                self.replies.remove(&who);
            }
            _ => {}
        }
    }

    /// The log as the store has it, each event once and in order, and no finished call twice.
    async fn assert_whole(&self, cluster: &Cluster, id: &LogId, turns: usize) {
        let stored = cluster.place().open().unwrap().read(id, 0).await.unwrap();
        assert_eq!(serde_json::to_value(&stored).unwrap(), Value::from(self.entries.clone()));
        let seqs: Vec<u64> = self.entries.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
        assert_eq!(seqs, (0..seqs.len() as u64).collect::<Vec<_>>());
        let mut replies: Vec<&str> = self
            .entries
            .iter()
            .filter(|event| event["type"] == "model_replied")
            .map(|event| event["parts"][0]["text"].as_str().unwrap())
            .collect();
        assert_eq!(replies.len(), turns, "no turn is lost");
        replies.sort_unstable();
        replies.dedup();
        assert_eq!(replies.len(), turns, "no finished call is repeated");
    }

    fn summary(&self) -> String {
        let (events, delays) = (self.entries.len(), percentiles(self.delays.clone()));
        let Self { live, pieces, restarts, .. } = self;
        format!(
            "{events} events after {delays}; {live} messages whole live, {pieces} pieces, {restarts} restarts"
        )
    }
}

fn percentiles(mut times: Vec<u64>) -> String {
    times.sort_unstable();
    let at = |share: usize| times.get((times.len() * share / 100).min(times.len().saturating_sub(1)));
    format!(
        "p50 {:?}, p99 {:?}, most {:?} ms",
        at(50).unwrap_or(&0),
        at(99).unwrap_or(&0),
        times.last().unwrap_or(&0)
    )
}

/// W18, W39: a conversation moves in the middle of its messages, in turn by a release and because its process has lost it. The gap of the
/// live stream is counted in replies, and there is none: the reply in which it has moved is held until the client shows some of what the next
/// process receives of it. Meanwhile other conversations run on the same nodes and database. `POLYLOGUE_MOVES` says how often it moves,
/// `POLYLOGUE_LOAD` how many others there are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w18_w39_a_conversation_that_moves_is_one_stream_for_its_client() {
    let (moves, held_turns) = (number("POLYLOGUE_MOVES", 20), HeldTurns::default());
    let turns = moves + 4;
    let Some(cluster) = Cluster::new(&[], held_turns.model(Duration::from_millis(150))).await else { return };
    let mut nodes = Vec::new();
    for _ in 0..3 {
        nodes.push(Node::new(&cluster, turns, None).await);
    }
    let mut held = nodes[0].begin().await;
    let (id, progress) = (held.id().clone(), watch::Sender::<Progress>::default());
    let mut client = progress.subscribe();
    let watching = tokio::spawn(Watched::read(cluster.front.tail(id.as_str(), 0).await, progress));
    let (mut running, mut load, mut gaps) = (run(&held), Vec::new(), Vec::new());
    for other in 0..number("POLYLOGUE_LOAD", 6) {
        let conversation = nodes[other % nodes.len()].begin_about(OTHERS).await;
        load.push((run(&conversation), conversation));
    }
    for moved in 1..=moves {
        // Its process waits for the rest of a reply.
        let before = until(&mut client, |now| now.shown > 0).await;
        let takes_over = moved % 2 == 0;
        let zombie = if takes_over {
            // It continues until it appends, which is refused.
            Some((held, running))
        } else {
            held.cancellation().cancel_now();
            running.await.unwrap();
            held.release().await.unwrap();
            None
        };
        held = nodes[moved % nodes.len()].open(&id, &cluster, takes_over).await;
        running = run(&held);
        let begun = Instant::now();
        let after = until(&mut client, |now| now.over > before.over && now.shown > 0).await;
        gaps.push(u64::try_from(begun.elapsed().as_millis()).unwrap());
        assert_eq!(after.stored, before.stored, "move {moved}: no reply is stored before it is live");
        held_turns.pass();
        until(&mut client, |now| now.stored > after.stored).await;
        // One that is open is not opened again.
        if let Some((zombie, running)) = zombie {
            running.await.unwrap();
            drop(zombie);
        }
    }
    held_turns.lift();
    running.await.unwrap();
    held.release().await.unwrap();
    let others = load.len();
    for (running, other) in load {
        other.cancellation().cancel_now();
        running.await.unwrap();
        other.release().await.unwrap();
    }
    let seen = tokio::time::timeout(PATIENCE, watching).await.unwrap().unwrap();
    seen.assert_whole(&cluster, &id, turns).await;
    assert!(seen.live > 0 && seen.progress.over >= turns + moves, "{} live, {:?}", seen.live, seen.progress);
    println!(
        "{moves} moves next to {others} others: live text again after {}; {}",
        percentiles(gaps),
        seen.summary()
    );
}

/// W39: a client that comes in the middle of a reply has its beginning, also where others of the server follow the conversation already.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w39_a_client_that_comes_in_the_middle_of_a_reply_has_its_beginning() {
    const WHOLE: &str = "alpha beta gamma";
    let gate = PieceGate::new();
    let first = gate.clone();
    let book = Playbook::new(move |_, number| match number {
        0 => Answer::text(WHOLE).pieces(3).gated(&first),
        _ => Answer::text("more"),
    });
    let model = ModelServer::bind(loopback(), Behavior::from(book)).unwrap();
    let Some(cluster) = Cluster::new(&[], model).await else { return };
    let node = Node::new(&cluster, 2, None).await;
    let conversation = node.begin().await;
    let id = conversation.id().as_str();
    let mut early = cluster.front.tail(id, 0).await;
    let running = run(&conversation);
    let both = async {
        // The first chunk has no text.
        gate.open_until(2);
        let begun = next_text(&mut early).await;
        let mut late = cluster.front.tail(id, 0).await;
        assert_eq!(next_piece(&mut late).await["type"], "restart");
        assert_eq!(next_text(&mut late).await, begun, "at once, although nothing new is written");
        gate.open_until(3);
        let more = next_text(&mut early).await;
        assert_eq!(next_text(&mut late).await, more, "and what follows once");
        let both = format!("{begun}{more}");
        assert!(WHOLE.starts_with(&both) && both.len() < WHOLE.len(), "{both}");
    };
    tokio::time::timeout(PATIENCE, both).await.unwrap();
    gate.lift();
    running.await.unwrap();
}

/// W41: the server cannot reach the process that runs the conversation. It has all events, and no live text.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w41_a_process_that_cannot_be_reached_is_followed_in_the_store() {
    let Some(cluster) =
        Cluster::new(&[], model(Duration::from_millis(50), 3, Duration::from_millis(5))).await
    else {
        return;
    };
    let node = Node::new(&cluster, 12, Some("127.0.0.1:1")).await;
    let conversation = node.begin().await;
    let path = format!("/api/v1/conversations/{}", conversation.id());
    let about = cluster.front.get(&path).await.json();
    assert_eq!(about["node"], polylogue_store::parts::this_process(), "{about}");
    let tail = cluster.front.tail(conversation.id().as_str(), 0).await;
    let watching = tokio::spawn(Watched::read(tail, watch::Sender::default()));
    run(&conversation).await.unwrap();
    conversation.release().await.unwrap();
    let about = cluster.front.get(&path).await.json();
    assert!(about.get("node").is_none(), "no process runs it: {about}");
    let seen = tokio::time::timeout(PATIENCE, watching).await.unwrap().unwrap();
    seen.assert_whole(&cluster, conversation.id(), 12).await;
    assert_eq!((seen.pieces, seen.restarts), (0, 0));
    println!("not reached: {} events after {}", seen.entries.len(), percentiles(seen.delays.clone()));
    let mut delays = seen.delays;
    delays.sort_unstable();
    assert!(delays[delays.len() / 2] < 1000, "half of the events come within a second: {delays:?}");
}

/// W40: live text takes no statements of the database, however much there is of it. `POLYLOGUE_WATCHED` says how many conversations
/// are followed. How long pieces take to the client is printed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w40_live_text_takes_no_statements() {
    const SECONDS: u64 = 4;
    let watched = number("POLYLOGUE_WATCHED", 60);
    // First nothing comes for a while, then 20 pieces a second, for minutes: not more, because the model server holds the whole reply.
    let silence = Duration::from_secs(10 + watched as u64 / 20);
    let model = model(silence, 20 * 150, Duration::from_millis(50));
    let Some(cluster) = Cluster::new(&[], model).await else { return };
    let pieces = Arc::new(AtomicUsize::new(0));
    let (mut nodes, mut conversations, mut readers) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..3 {
        nodes.push(Node::new(&cluster, 2, None).await);
    }
    let times = PieceTimes::default();
    for number in 0..watched {
        let conversation = nodes[number % nodes.len()].begin().await;
        let id = conversation.id().clone();
        let tail = cluster.front.tail(id.as_str(), 0).await;
        let is_measured = number < PieceTimes::MEASURED;
        if is_measured {
            readers.push(tokio::spawn(times.clone().sent(conversation.clone())));
        }
        let measured = is_measured.then(|| (id, times.clone()));
        readers.push(tokio::spawn(count(tail, Arc::clone(&pieces), measured)));
        conversations.push(conversation);
    }
    let runs: Vec<Running> = conversations.iter().map(run).collect();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let silent = statements_in(&cluster, SECONDS).await;
    assert_eq!(pieces.load(Ordering::Relaxed), 0, "the model was to be silent");
    // Until all of them write.
    let begun = Instant::now();
    while pieces.load(Ordering::Relaxed) < 10 * watched {
        assert!(begun.elapsed() < PATIENCE, "no live text comes");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let before = pieces.load(Ordering::Relaxed);
    let live = statements_in(&cluster, SECONDS).await;
    let came = pieces.load(Ordering::Relaxed) - before;
    println!(
        "{watched} watched, {SECONDS} s: {silent} statements without live text; {live} with {came} pieces, which came after {}",
        percentiles(times.taken())
    );
    let more = live.saturating_sub(silent);
    assert!(came as u64 > 10 * more, "{silent} and {live} statements, {came} pieces");
    conversations.iter().for_each(|conversation| conversation.cancellation().cancel_now());
    drop(join_all(runs).await);
    readers.iter().for_each(JoinHandle::abort);
}

async fn count(mut tail: Stream, pieces: Arc<AtomicUsize>, measured: Option<(LogId, PieceTimes)>) {
    while let Some(frame) = tail.frame().await {
        if frame.event == "delta" {
            pieces.fetch_add(1, Ordering::Relaxed);
            if let Some((id, times)) = &measured {
                times.received(id, &frame.json());
            }
        }
    }
}

/// How long pieces take from the process that runs their conversation to a client of the server.
#[derive(Clone, Default)]
struct PieceTimes {
    /// By conversation and text: each piece has another one.
    sent: Arc<Mutex<HashMap<(LogId, String), Instant>>>,
    taken: Arc<Mutex<Vec<u64>>>,
}

impl PieceTimes {
    /// Of how many conversations.
    const MEASURED: usize = 20;

    /// Notes when pieces come from the model.
    async fn sent(self, conversation: Conversation) {
        let mut updates = conversation.subscribe().await;
        while let Some(update) = updates.next().await {
            if let Update::Delta { delta: Delta::Text(text), .. } = update {
                let piece = (conversation.id().clone(), text);
                self.sent.lock().unwrap().entry(piece).or_insert_with(Instant::now);
            }
        }
    }

    fn received(&self, id: &LogId, piece: &Value) {
        let text = piece["text"].as_str().unwrap_or_default().to_owned();
        if let Some(sent) = self.sent.lock().unwrap().get(&(id.clone(), text)) {
            self.taken.lock().unwrap().push(u64::try_from(sent.elapsed().as_millis()).unwrap());
        }
    }

    fn taken(&self) -> Vec<u64> {
        self.taken.lock().unwrap().clone()
    }
}

/// How many transactions, of which each is one statement, the database has in so many seconds.
async fn statements_in(cluster: &Cluster, seconds: u64) -> u64 {
    let count = || {
        let sql = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = 'polylogue'";
        cluster.database.sql(sql).parse::<u64>().unwrap()
    };
    // Figures are up to a second old.
    let before = count();
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    count() - before
}

/// What `socket` says until it is closed.
async fn said(socket: &mut BufReader<TcpStream>) -> String {
    let mut text = Vec::new();
    // It is closed, or reset.
    let _ = tokio::time::timeout(PATIENCE, socket.read_to_end(&mut text)).await.unwrap();
    String::from_utf8_lossy(&text).into_owned()
}

/// Connects to a point with this secret; the socket after the first reply.
async fn knock(address: &str, secret: &[u8; 32]) -> (BufReader<TcpStream>, String) {
    let (place, key) = address.rsplit_once('/').unwrap();
    let mut socket = BufReader::new(TcpStream::connect(place).await.unwrap());
    let mut line = String::new();
    socket.read_line(&mut line).await.unwrap();
    let hello: Value = serde_json::from_str(&line).unwrap();
    let challenge = blake3::Hash::from_hex(hello["challenge"].as_str().unwrap()).unwrap();
    let nonce = [7; 32];
    let text = [&b"polylogue live follower"[..], challenge.as_bytes(), &nonce, address.as_bytes()].concat();
    let proof = blake3::keyed_hash(secret, &text).to_hex().to_string();
    let nonce = blake3::Hash::from_bytes(nonce).to_hex().to_string();
    let knock = json!({"key": key, "nonce": nonce, "proof": proof});
    socket.write_all(format!("{knock}\n").as_bytes()).await.unwrap();
    let mut line = String::new();
    socket.read_line(&mut line).await.unwrap();
    (socket, line)
}

/// W42: the internal stream tells nothing to those who do not know its secret, nothing of other tenants to those who do, and users do not see
/// where it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w42_the_internal_stream_is_for_processes_that_know_its_secret() {
    let Some(cluster) =
        Cluster::new(&[], model(Duration::from_millis(50), 600, Duration::from_millis(100))).await
    else {
        return;
    };
    let node = Node::new(&cluster, 2, None).await;
    let conversation = node.begin().await;
    let running = run(&conversation);
    let (front, id) = (&cluster.front, conversation.id().as_str());
    // The server runs one of another tenant.
    let (_, other) = front.new_token("other", &Scope::ALL);
    let begun = Request::new("POST", "/api/v1/conversations").token(&other).json(&json!({"team": "ask"}));
    let foreign = begun.send(front.address).await.json()["id"].as_str().unwrap().to_owned();
    let point = |which: &str| {
        let sql = format!(
            "SELECT live || ' ' || encode(live_secret, 'hex') FROM polylogue.nodes WHERE live {which}"
        );
        let text = cluster.database.sql(&sql);
        let (address, secret) = text.split_once(' ').unwrap();
        (address.to_owned(), *blake3::Hash::from_hex(secret).unwrap().as_bytes())
    };
    let own = node.live.point().unwrap().address;
    let place = own.split('/').next().unwrap();
    let (address, secret) = point(&format!("LIKE '{place}/%'"));
    // A user's token, bytes of any kind, too many of them, and a wrong secret.
    let token = format!("GET /{id} HTTP/1.1\r\nAuthorization: Bearer {}\r\n\r\n", front.token);
    let long = "x".repeat(100_000);
    for bytes in [
        token.as_bytes(),
        b"\0\xff\n\n\n{\"follow\":1}\n",
        long.as_bytes(),
        b"[[[[[[[[[[\n",
        b"{\"key\":\"\",\"nonce\":\"\",\"proof\":\"\"}\n",
    ] {
        let mut socket = BufReader::new(TcpStream::connect(place).await.unwrap());
        // It may be closed before all is written.
        let _ = socket.write_all(bytes).await;
        let said = said(&mut socket).await;
        assert!(said.lines().all(|line| line.starts_with("{\"polylogue_live\":1,\"challenge\":")), "{said}");
    }
    let (_, reply) = knock(&address, &[0; 32]).await;
    assert_eq!(reply, "", "a wrong secret");
    let (theirs, _) = point(&format!("NOT LIKE '{place}/%'"));
    let (_, reply) = knock(&theirs, &secret).await;
    assert_eq!(reply, "", "the secret of another store");
    // Who knows it follows conversations of this store, and no others.
    let (mut socket, reply) = knock(&address, &secret).await;
    assert!(reply.contains("proof"), "{reply}");
    let follow = format!(
        "{}\n{}\n",
        json!({"follow": {"id": foreign, "number": 1}}),
        json!({"follow": {"id": id, "number": 2}})
    );
    socket.write_all(follow.as_bytes()).await.unwrap();
    let mut kinds: HashMap<u64, Vec<String>> = HashMap::new();
    while !kinds.contains_key(&1) {
        let mut line = String::new();
        socket.read_line(&mut line).await.unwrap();
        if let Ok(news) = serde_json::from_str::<Value>(&line) {
            kinds.entry(news["number"].as_u64().unwrap()).or_default().push(line);
        }
    }
    assert_eq!(kinds[&1], ["{\"number\":1,\"ended\":null}\n"]);
    // Users do not see where it is.
    for (method, path, ..) in front.routes().await.into_iter().filter(|route| route.0 == "GET") {
        if path.contains("feed") || path.contains("mcp") {
            continue;
        }
        let body = front.send(front.request(&method, &path.replace("x1", id))).await.body;
        assert!(!body.contains(place), "{path}: {body}");
    }
    let busy = front.post(&format!("/api/v1/conversations/{id}/stop"), &json!({})).await;
    assert!(!busy.body.contains(place), "{}", busy.body);
    conversation.cancellation().cancel_now();
    running.await.unwrap();
}
