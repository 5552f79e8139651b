//! The same chats with Polylogue.

use futures_util::future::try_join_all;
use polylogue::kernel::data::{DeltaSink, LogId, ModelError, NameError, Reply};
use polylogue::kernel::log::{AnyStore, Subscription};
use polylogue::kernel::model::{Model, Request};
use polylogue::policies::with_termination;
use polylogue::stop::max_turns;
use polylogue::{AnyModel, Assistant, Chat, Log, Status, Update, round_robin};
use polylogue_models::{Config, Endpoint};
use polylogue_store::{Memory, Sqlite};
use tempfile::TempDir;

use crate::bare::{SYSTEM, TASK};
use crate::dialect::Dialect;
use crate::job::{By, Cost, PIECES, Result};
use crate::meter::Meter;
use crate::server::WORDS;

/// The store of the chats.
struct Place {
    store: AnyStore,
    /// Removed with the database in it.
    _folder: Option<TempDir>,
}

impl Place {
    fn of(by: By) -> Result<Self> {
        if by != By::Sqlite {
            return Ok(Self { store: AnyStore::new(Memory::new()), _folder: None });
        }
        let folder = tempfile::tempdir()?;
        let store = AnyStore::new(Sqlite::open(folder.path().join("bench.polylogue.db"))?);
        Ok(Self { store, _folder: Some(folder) })
    }

    async fn log(&self, id: u64, calls: u64) -> Result<Log> {
        let id = LogId::new(&format!("chat-{id}"))?;
        let log = Log::create(self.store.clone(), id).await?;
        Ok(log.limits(polylogue::Limits { calls: Some(calls), ..polylogue::Limits::default() }))
    }
}

/// Runs a number of chats of a number of calls each, one after the other.
pub(crate) async fn calls(base_url: &str, by: By, chats: u64, calls: u64) -> Result<Cost> {
    self::chats(model(base_url, false)?, by, chats, calls).await
}

/// The same with any model.
pub(crate) async fn chats(model: AnyModel, by: By, chats: u64, calls: u64) -> Result<Cost> {
    let place = Place::of(by)?;
    run(&place, &pair(&model, 2)?, 0, 2).await?;
    let chat = pair(&model, calls)?;
    let meter = Meter::start();
    for id in 1..=chats {
        run(&place, &chat, id, calls).await?;
    }
    Ok(meter.stop())
}

/// Runs a number of chats by one API, one after the other.
pub(crate) async fn by_api(
    url: &str,
    dialect: Dialect,
    chats: u64,
    calls: u64,
    stream: bool,
) -> Result<Cost> {
    self::chats(dialect.model(url, stream)?, By::Memory, chats, calls).await
}

/// Runs a number of chats of one streamed reply each, with a subscriber to the deltas if `watched`.
pub(crate) async fn pieces(base_url: &str, by: By, chats: u64, watched: bool) -> Result<Cost> {
    let (place, model) = (Place::of(by)?, model(base_url, true)?);
    let chat = pair(&model, 1)?;
    run(&place, &chat, 0, 1).await?;
    let meter = Meter::start();
    for id in 1..=chats {
        let mut log = place.log(id, 1).await?;
        let counted = if watched { Some(tokio::spawn(count(log.subscribe().await))) } else { None };
        finish(&chat, &mut log).await?;
        drop(log);
        if let Some(counted) = counted {
            let seen = counted.await?;
            if seen != PIECES {
                return Err(format!("the watcher saw {seen} pieces").into());
            }
        }
    }
    Ok(meter.stop())
}

async fn count(mut watch: Subscription) -> usize {
    let mut pieces = 0;
    while let Some(signal) = watch.next().await {
        pieces += usize::from(matches!(signal, Update::Delta { .. }));
    }
    pieces
}

/// Runs a number of chats at the same time, each of a number of calls.
pub(crate) async fn crowd(base_url: &str, by: By, chats: u64, calls: u64) -> Result<Cost> {
    let (place, model) = (Place::of(by)?, model(base_url, false)?);
    let chat = pair(&model, calls)?;
    let meter = Meter::start();
    try_join_all((0..chats).map(|id| run(&place, &chat, id, calls))).await?;
    Ok(meter.stop())
}

/// Runs one chat of a number of messages, with a function as model.
pub(crate) async fn messages(count: u64) -> Result<Cost> {
    let place = Place::of(By::Memory)?;
    let chat = pair(&AnyModel::new(Parrot { yields: false }), count)?;
    let meter = Meter::start();
    run(&place, &chat, 0, count).await?;
    Ok(meter.stop())
}

fn model(base_url: &str, stream: bool) -> Result<AnyModel> {
    let endpoint = Endpoint::new(Config { stream, ..Config::new(base_url) })?;
    Ok(AnyModel::new(endpoint.model("bench")))
}

/// Two agents that speak in turn until `calls` replies were given.
fn pair(model: &AnyModel, calls: u64) -> Result<Chat> {
    let agent = |name| Ok::<_, NameError>(Assistant::new(name, model.clone())?.system(SYSTEM));
    Ok(Chat::builder("pair")
        .participant(agent("Ann")?)
        .participant(agent("Bob")?)
        .policy(with_termination(round_robin(), max_turns(calls)))
        .max_turns(calls + 1)
        .build()?)
}

async fn run(place: &Place, chat: &Chat, id: u64, calls: u64) -> Result<()> {
    finish(chat, &mut place.log(id, calls).await?).await
}

/// Runs the chat, which must reach its limit on turns.
async fn finish(chat: &Chat, log: &mut Log) -> Result<()> {
    match chat.run_in(log, TASK).await?.status {
        Status::Closed { reason, .. } if reason.code() == "count_reached" => Ok(()),
        other => Err(format!("a chat ended otherwise than it should: {other:?}").into()),
    }
}

/// Always gives the same reply.
pub(crate) struct Parrot {
    /// Whether it yields to all other tasks before.
    pub(crate) yields: bool,
}

impl Model for Parrot {
    fn name(&self) -> &str {
        "bench:parrot"
    }

    async fn complete(
        &self,
        _: &Request<'_>,
        _: &mut dyn DeltaSink,
    ) -> std::result::Result<Reply, ModelError> {
        if self.yields {
            tokio::task::yield_now().await;
        }
        Ok(Reply::new(WORDS))
    }
}
