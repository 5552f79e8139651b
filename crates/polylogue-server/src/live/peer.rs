//! Processes that are followed: one connection for all conversations of a store there.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use blake3::Hash;
use polylogue_core::LogId;
use polylogue_runtime::database::LivePoint;
use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tracing::{debug, warn};

use super::news::{News, NewsChannel};
use super::wire::{
    ALIVE, Broken, FRAME_BYTES, HANDSHAKE, Hello, Knock, Lines, Of, Request, Sent, Side, VERSION, Welcome,
    line_of, proof, random, send,
};

/// A process that could not be reached is not tried again sooner.
const PAUSE: Duration = Duration::from_secs(5);

/// A connection with nothing to follow is closed.
const IDLE: Duration = Duration::from_secs(60);

/// Where news of a conversation go.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) news: Arc<NewsChannel>,
    /// Whether nothing more comes.
    pub(super) has_ended: Arc<AtomicBool>,
}

impl Target {
    fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
        self.news.send(News::Broken);
    }
}

enum Command {
    Follow { id: LogId, number: u64, target: Target },
    Leave { number: u64 },
}

/// The processes that are followed.
#[derive(Debug)]
pub(super) struct Peers {
    all: Mutex<HashMap<String, Peer>>,
    numbers: AtomicU64,
    /// Woken when something has ended.
    wake: Arc<Notify>,
    tried: Arc<Tried>,
}

/// The addresses to which a connection was tried.
#[derive(Debug, Default)]
struct Tried(Mutex<HashSet<String>>);

impl Tried {
    /// So many are remembered: a process that is started again has another address.
    const MOST: usize = 1000;

    /// Notes an address. Returns whether it is the first try.
    fn is_first(&self, address: &str) -> bool {
        let mut tried = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tried.len() >= Self::MOST {
            tried.clear();
        }
        tried.insert(address.to_owned())
    }
}

#[derive(Debug)]
struct Peer {
    commands: mpsc::UnboundedSender<Command>,
    begun: Instant,
}

impl Peers {
    pub(super) fn new(wake: Arc<Notify>) -> Self {
        Self { all: Mutex::default(), numbers: AtomicU64::new(0), wake, tried: Arc::default() }
    }

    /// Follows a conversation at a point, under the number that is returned; `None` while it cannot be reached.
    pub(super) fn follow(&self, point: &LivePoint, id: &LogId, target: Target) -> Option<u64> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, peer| !peer.commands.is_closed() || peer.begun.elapsed() < PAUSE);
        let peer = all.entry(point.address.clone()).or_insert_with(|| {
            let (commands, received) = mpsc::unbounded_channel();
            tokio::spawn(run(point.clone(), received, Arc::clone(&self.wake), Arc::clone(&self.tried)));
            Peer { commands, begun: Instant::now() }
        });
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let follow = Command::Follow { id: id.clone(), number, target };
        peer.commands.send(follow).ok().map(|()| number)
    }

    /// Follows it no longer.
    pub(super) fn leave(&self, address: &str, number: u64) {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        // A connection that has ended has left already.
        let _ = all.get(address).map(|peer| peer.commands.send(Command::Leave { number }));
    }
}

/// Connects to a point, and follows what is asked for until the connection ends. Logs once that a process cannot be reached: otherwise no one
/// learns why there is no live text of what it runs.
async fn run(
    point: LivePoint,
    mut commands: mpsc::UnboundedReceiver<Command>,
    wake: Arc<Notify>,
    tried: Arc<Tried>,
) {
    let mut targets = HashMap::new();
    let connected = timeout(HANDSHAKE, connect(&point)).await.unwrap_or(Err(Broken::Silent));
    let is_first = tried.is_first(&point.address);
    let followed = match connected {
        Ok(connected) => follow(connected, &mut commands, &mut targets).await,
        Err(error) => {
            if is_first {
                // Without the key.
                let address = point.address.split('/').next().unwrap_or_default();
                warn!(address, %error, "a process cannot be reached: there is no live text of what it runs; its `--internal-listen` sets the address");
            }
            Err(error)
        }
    };
    if let Err(error) = followed {
        debug!(%error, "another process cannot be followed: its events are read from the store");
    }
    commands.close();
    while let Some(command) = commands.recv().await {
        if let Command::Follow { target, .. } = command {
            target.end();
        }
    }
    targets.values().for_each(Target::end);
    wake.notify_one();
}

async fn follow(
    (mut lines, mut writer): Connected,
    commands: &mut mpsc::UnboundedReceiver<Command>,
    targets: &mut HashMap<u64, Target>,
) -> Result<(), Broken> {
    let (mut alive, mut used) = (interval(ALIVE), Instant::now());
    alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            sent = lines.next::<Sent>() => take(targets, sent?),
            command = commands.recv() => {
                let Some(command) = command else { return Ok(()) };
                used = Instant::now();
                send(&mut writer, &line_of(&request(targets, command))).await?;
            }
            _ = alive.tick() => {
                if targets.is_empty() && used.elapsed() > IDLE {
                    return Ok(());
                }
                send(&mut writer, b"\n").await?;
            }
        }
    }
}

fn request(targets: &mut HashMap<u64, Target>, command: Command) -> Request {
    match command {
        Command::Follow { id, number, target } => {
            targets.insert(number, target);
            Request::Follow { id, number }
        }
        Command::Leave { number } => {
            targets.remove(&number);
            Request::Leave { number }
        }
    }
}

/// Passes on what has come.
fn take(targets: &mut HashMap<u64, Target>, Sent { number, news }: Sent) {
    let Some(target) = targets.get(&number) else { return };
    let news = match news {
        Of::Stored { seq, ends } => News::Stored { seq, ends: ends.into() },
        Of::Piece(piece) => News::Piece(Arc::new(piece)),
        Of::Missed => News::Missed,
        Of::Ended => {
            target.end();
            targets.remove(&number);
            return;
        }
    };
    target.news.send(news);
}

type Connected = (Lines<BufReader<OwnedReadHalf>>, OwnedWriteHalf);

/// Connects to a point. Each side proves that it knows the secret, which is not sent.
async fn connect(point: &LivePoint) -> Result<Connected, Broken> {
    let (address, key) = point.address.rsplit_once('/').ok_or(Broken::Unknown)?;
    let socket = TcpStream::connect(address).await?;
    socket.set_nodelay(true)?;
    let (reader, mut writer) = socket.into_split();
    let mut lines = Lines::new(BufReader::new(reader), 2 * FRAME_BYTES);
    let hello: Hello = lines.first().await?;
    if hello.polylogue_live != VERSION {
        return Err(Broken::Unknown);
    }
    let challenge = Hash::from_hex(&hello.challenge).map_err(|_| Broken::Unknown)?;
    let nonce = Hash::from_bytes(random()?);
    let own = proof(point, Side::Follower, &challenge, &nonce);
    let knock = Knock { key: key.into(), nonce: nonce.to_hex().to_string(), proof: own.to_hex().to_string() };
    send(&mut writer, &line_of(&knock)).await?;
    let welcome: Welcome = lines.first().await?;
    let theirs = Hash::from_hex(&welcome.proof).map_err(|_| Broken::Unknown)?;
    match theirs == proof(point, Side::Holder, &challenge, &nonce) {
        true => Ok((lines, writer)),
        false => Err(Broken::Stranger),
    }
}
