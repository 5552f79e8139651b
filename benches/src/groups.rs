//! Many groups at the same time, with functions as models: the cost of Polylogue itself.

use futures_util::future::try_join_all;
use polylogue::kernel::data::{DeltaSink, LogId, ModelError, Reply};
use polylogue::kernel::log::AnyStore;
use polylogue::kernel::model::{Model, Request};
use polylogue::policies::{Selector, with_termination};
use polylogue::stop::LibraryStopReason;
use polylogue::stop::max_turns;
use polylogue::{AnyModel, Assistant, Chat, Group, Log, Name, Status};
use polylogue_store::Memory;

use crate::bare::{SYSTEM, TASK};
use crate::chats::Parrot;
use crate::job::{Cost, Result};
use crate::meter::Meter;

const MEMBERS: [&str; 4] = ["Ann", "Bob", "Cid", "Dan"];

/// Runs a number of groups at the same time, each for a number of rounds; `picked` if a model selects each speaker.
pub(crate) async fn crowd(groups: u64, rounds: u64, picked: bool) -> Result<Cost> {
    let store = AnyStore::new(Memory::new());
    let chat = group(rounds, picked)?;
    let meter = Meter::start();
    try_join_all((0..groups).map(|id| run(&store, &chat, id, rounds))).await?;
    Ok(meter.stop())
}

fn group(rounds: u64, picked: bool) -> Result<Chat> {
    let model = AnyModel::new(Parrot { yields: true });
    let rule = if picked { Group::select_by_name(Name::new("selector")?) } else { Group::round_robin() };
    let mut chat = Chat::builder("group");
    for name in MEMBERS {
        chat = chat.participant(Assistant::new(name, model.clone())?.system(SYSTEM).description("talks"));
    }
    if picked {
        chat = chat.private_agent(Selector::new("selector", AnyModel::new(Picker))?);
    }
    Ok(chat.policy(with_termination(rule, max_turns(rounds))).build()?)
}

async fn run(store: &AnyStore, chat: &Chat, id: u64, rounds: u64) -> Result<()> {
    let id = LogId::new(&format!("group-{id}"))?;
    let mut log = Log::create(store.clone(), id).await?;
    match chat.run_in(&mut log, TASK).await?.status {
        Status::Closed { reason, .. } if matches!(LibraryStopReason::of(&reason), Some(LibraryStopReason::CountReached { count, .. }) if count == rounds) => {
            Ok(())
        }
        other => Err(format!("a group ended otherwise than it should: {other:?}").into()),
    }
}

/// Names the participants one after the other.
struct Picker;

impl Model for Picker {
    fn name(&self) -> &str {
        "bench:picker"
    }

    async fn complete(
        &self,
        request: &Request<'_>,
        _: &mut dyn DeltaSink,
    ) -> std::result::Result<Reply, ModelError> {
        tokio::task::yield_now().await;
        let nth = usize::try_from(request.origin.nth).unwrap_or_default();
        let name = MEMBERS.get(nth % MEMBERS.len()).copied().unwrap_or_default();
        Ok(Reply::new(name))
    }
}
