//! What this process runs, for other processes that know the secret.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use blake3::Hash;
use polylogue_http::OwnAddress;
use polylogue_runtime::Runtime;
use polylogue_runtime::database::LivePoint;
use tokio::io::BufReader;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{MissedTickBehavior, interval, sleep};
use tracing::debug;

use super::relay::relay;
use super::wire::{
    ALIVE, Broken, HANDSHAKE, Hello, Knock, Lines, REQUEST_BYTES, Request, Side, VERSION, Welcome, line_of,
    proof, random, send,
};

/// Other processes that are connected at the same time.
const CONNECTIONS: usize = 1024;

/// Conversations that one of them follows at the same time.
const FOLLOWED: usize = 20_000;

/// Lines that wait until a connection takes them, for all its conversations. Behind them, pieces are dropped.
const WAITING: usize = 256;

/// The options for other processes that follow what this one runs.
#[derive(Debug, Clone)]
pub struct LiveOptions {
    /// The address to listen at. Default: a free port of the loopback interface, so that only processes of this machine reach it.
    pub listen: SocketAddr,
    /// The host and port by which the others reach it. Default: those that it listens on.
    pub advertise: Option<String>,
}

impl Default for LiveOptions {
    fn default() -> Self {
        Self { listen: SocketAddr::from(([127, 0, 0, 1], 0)), advertise: None }
    }
}

/// The reason why nothing is offered to other processes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The address cannot be used.
    #[error("nothing can listen on `{address}`: {why}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        why: std::io::Error,
    },
    /// The address to listen at is every address of this machine, of which others know none.
    #[error("other processes do not know by which address they reach `{0}`")]
    Unnamed(SocketAddr),
    /// The advertised address is not a host and a port.
    #[error("`{0}` is not a host and a port")]
    Advertised(String),
}

impl LiveError {
    /// Returns how to fix it.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Listen { .. } => "choose another address with `--internal-listen`; port 0 takes a free one",
            Self::Unnamed(_) => "name it with `--advertise HOST:PORT`",
            Self::Advertised(_) => "write it as `10.0.0.7:9100`",
        }
    }
}

/// Offers the conversations that this process runs to others, at an address of its own. Ends when it is dropped.
#[derive(Clone, derive_more::Debug)]
#[debug("LiveNode {{ address: {:?}, .. }}", self.0.address)]
pub struct LiveNode(Arc<Node>);

struct Node {
    /// The host and the port, as others reach them.
    address: String,
    stores: Stores,
    accepting: AbortHandle,
    /// Keeps the tools of agents from it.
    _own: OwnAddress,
}

/// The stores that are offered, by the keys of their points.
type Stores = Arc<Mutex<HashMap<String, Offered>>>;

#[derive(Clone)]
struct Offered {
    point: LivePoint,
    runtime: Runtime,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl LiveNode {
    /// Binds the address. Takes a tokio runtime.
    ///
    /// # Errors
    /// [`LiveError`].
    pub async fn bind(options: &LiveOptions) -> Result<Self, LiveError> {
        let LiveOptions { listen, advertise } = options;
        let is_host = |host: &str| !host.is_empty() && !host.contains('/');
        let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
        let named = |text: &String| match text.rsplit_once(':') {
            Some((host, port)) if is_host(host) && is_port(port) => Ok(text.clone()),
            _ => Err(LiveError::Advertised(text.clone())),
        };
        let advertised = advertise.as_ref().map(named).transpose()?;
        if advertised.is_none() && listen.ip().is_unspecified() {
            return Err(LiveError::Unnamed(*listen));
        }
        let bound = TcpListener::bind(listen).await.and_then(|socket| Ok((socket.local_addr()?, socket)));
        let (address, listener) = bound.map_err(|why| LiveError::Listen { address: *listen, why })?;
        let (stores, own) = (Stores::default(), OwnAddress::new(address));
        let accepting = tokio::spawn(accept(listener, Arc::clone(&stores))).abort_handle();
        let address = advertised.unwrap_or_else(|| address.to_string());
        Ok(Self(Arc::new(Node { address, stores, accepting, _own: own })))
    }

    /// Creates a point for one more store, whose processes are to know it.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn point(&self) -> std::io::Result<LivePoint> {
        let key = Hash::from_bytes(random()?).to_hex();
        let key: String = key.chars().take(16).collect();
        Ok(LivePoint { address: format!("{}/{key}", self.0.address), secret: random()? })
    }

    /// Offers the conversations that `runtime` has open to those who know `point`.
    pub fn offer(&self, point: &LivePoint, runtime: &Runtime) {
        let offered = Offered { point: point.clone(), runtime: runtime.clone() };
        if let Some((_, key)) = point.address.rsplit_once('/') {
            locked(&self.0.stores).insert(key.to_owned(), offered);
        }
    }
}

fn locked(stores: &Stores) -> MutexGuard<'_, HashMap<String, Offered>> {
    stores.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long the accept loop rests after an error of the system, such as too many open files.
const REST: Duration = Duration::from_millis(50);

async fn accept(listener: TcpListener, stores: Stores) {
    let (mut connections, open) = (JoinSet::new(), Arc::new(Semaphore::new(CONNECTIONS)));
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            sleep(REST).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        // More than the limit are closed at once.
        let Ok(permit) = Arc::clone(&open).try_acquire_owned() else { continue };
        let _ = socket.set_nodelay(true);
        let stores = Arc::clone(&stores);
        connections.spawn(async move {
            let _permit = permit;
            if let Err(error) = serve(socket, &stores).await {
                debug!(%error, "an internal stream has ended");
            }
        });
    }
}

/// Serves one connection, whose other side must know a secret before it learns anything.
async fn serve(socket: TcpStream, stores: &Stores) -> Result<(), Broken> {
    let (reader, mut writer) = socket.into_split();
    let mut lines = Lines::new(BufReader::new(reader), REQUEST_BYTES);
    let welcomed = tokio::time::timeout(HANDSHAKE, welcome(&mut lines, &mut writer, stores)).await;
    let runtime = welcomed.map_err(|_| Broken::Silent)??;
    let (news, waiting) = mpsc::channel(WAITING);
    tokio::select! {
        read = read_requests(lines, &runtime, news) => read,
        written = write_lines(writer, waiting) => written,
    }
}

/// The store of a point, if the other side knows its secret.
async fn welcome(
    lines: &mut Lines<BufReader<OwnedReadHalf>>,
    writer: &mut OwnedWriteHalf,
    stores: &Stores,
) -> Result<Runtime, Broken> {
    let challenge = Hash::from_bytes(random()?);
    let hello = Hello { polylogue_live: VERSION, challenge: challenge.to_hex().to_string() };
    send(writer, &line_of(&hello)).await?;
    let knock: Knock = lines.first().await?;
    let offered = locked(stores).get(&knock.key).cloned().ok_or(Broken::Stranger)?;
    let nonce = Hash::from_hex(&knock.nonce).map_err(|_| Broken::Unknown)?;
    let given = Hash::from_hex(&knock.proof).map_err(|_| Broken::Unknown)?;
    // Compared in constant time.
    if given != proof(&offered.point, Side::Follower, &challenge, &nonce) {
        return Err(Broken::Stranger);
    }
    let own = proof(&offered.point, Side::Holder, &challenge, &nonce).to_hex().to_string();
    send(writer, &line_of(&Welcome { proof: own })).await?;
    Ok(offered.runtime)
}

/// Begins and ends what is followed.
async fn read_requests(
    mut lines: Lines<BufReader<OwnedReadHalf>>,
    runtime: &Runtime,
    news: mpsc::Sender<Vec<u8>>,
) -> Result<(), Broken> {
    let (mut relays, mut followed) = (JoinSet::new(), HashMap::<u64, AbortHandle>::new());
    loop {
        let request = lines.next().await?;
        while relays.try_join_next().is_some() {}
        followed.retain(|_, relay| !relay.is_finished());
        match request {
            Request::Follow { id, number } if followed.len() < FOLLOWED => {
                let relay = relays.spawn(relay(runtime.clone(), id, number, news.clone()));
                followed.insert(number, relay).iter().for_each(AbortHandle::abort);
            }
            Request::Follow { .. } => return Err(Broken::Long),
            Request::Leave { number } => followed.remove(&number).iter().for_each(AbortHandle::abort),
        }
    }
}

/// Sends what waits, and that this process is well.
async fn write_lines(mut writer: OwnedWriteHalf, mut waiting: mpsc::Receiver<Vec<u8>>) -> Result<(), Broken> {
    let mut alive = interval(ALIVE);
    alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            line = waiting.recv() => match line {
                Some(line) => send(&mut writer, &together(line, &mut waiting)).await?,
                None => return Ok(()),
            },
            _ = alive.tick() => send(&mut writer, b"\n").await?,
        }
    }
}

/// What waits already is sent at once, up to a bound.
fn together(mut lines: Vec<u8>, waiting: &mut mpsc::Receiver<Vec<u8>>) -> Vec<u8> {
    while lines.len() < 16 * 1024
        && let Ok(line) = waiting.try_recv()
    {
        lines.extend(line);
    }
    lines
}
