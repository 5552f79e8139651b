//! The budgets of other processes that pay for a conversation.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use polylogue_core::{Budget, Cancellation, Chat, CountedUsage, Log, LogId, Summary};
use polylogue_postgres::PostgresBudgets;

use crate::{Error, Result, StoreLocation};

/// Which shared budgets pay for all conversations of a runtime, besides those that paid for them before.
#[derive(Clone, Default)]
pub(crate) struct SharedBudgets {
    names: Vec<String>,
    /// Open from its first use on, until the runtime is dropped: then what was drawn is returned.
    pool: OnceLock<Arc<PostgresBudgets>>,
}

/// Budgets that pay for one log.
pub(crate) struct Paying {
    pool: Arc<PostgresBudgets>,
    budgets: Vec<(String, Budget)>,
}

impl SharedBudgets {
    pub(crate) fn new(names: Vec<String>, pool: Arc<PostgresBudgets>) -> Self {
        Self { names, pool: OnceLock::from(pool) }
    }

    /// Those that pay for a new conversation, or for the conversation `id`: those of this process, and those that paid for it before.
    pub(crate) async fn paying(&self, place: &StoreLocation, id: Option<&LogId>) -> Result<Option<Paying>> {
        let mut names: BTreeSet<String> = self.names.iter().cloned().collect();
        let pool = match self.pool.get() {
            Some(opened) => opened,
            None if id.is_some() => {
                let Some(opened) = place.shared_budgets()? else { return Ok(None) };
                self.pool.get_or_init(|| opened)
            }
            None => return Ok(None),
        };
        if let Some(id) = id {
            names.extend(pool.of_log(id).await?);
        }
        let mut budgets = Vec::with_capacity(names.len());
        for name in names {
            let budget =
                pool.budget(&name).await?.ok_or_else(|| Error::UnknownBudget { name: name.clone() })?;
            budgets.push((name, budget));
        }
        Ok((!budgets.is_empty()).then(|| Paying { pool: Arc::clone(pool), budgets }))
    }
}

impl Paying {
    /// Has them pay for a new conversation.
    pub(crate) async fn begin(self, log: Log) -> Result<Log> {
        let (log, handles) = self.attach(log);
        self.pay(log.id(), &handles, CountedUsage::default(), true).await?;
        Ok(log)
    }

    /// Has them pay for a conversation that is opened. A call that may have been in flight when its last process died is charged first, in
    /// its log: only then is it known what the log has used.
    pub(crate) async fn open(self, log: Log, chat: &Chat) -> Result<Log> {
        let (mut log, handles) = self.attach(log);
        if log.may_have_lost_calls().await? {
            let cancellation = Cancellation::default();
            cancellation.now();
            log = log.cancelled_by(cancellation);
            chat.resume(&mut log).await?;
            log = log.cancelled_by(Cancellation::default());
        }
        let events = log.events().await;
        let used = Summary::of(events.iter().map(|event| &**event), true).usage.counted();
        self.pay(log.id(), &handles, used, false).await?;
        Ok(log)
    }

    fn attach(&self, log: Log) -> (Log, Vec<Budget>) {
        let handles: Vec<Budget> = self.budgets.iter().map(|(_, budget)| budget.for_log(log.id())).collect();
        (handles.iter().cloned().fold(log, Log::budget), handles)
    }

    async fn pay(&self, id: &LogId, handles: &[Budget], used: CountedUsage, is_new: bool) -> Result<()> {
        for ((name, _), budget) in self.budgets.iter().zip(handles) {
            self.pool.pay((name, budget), id, used, is_new).await?;
        }
        Ok(())
    }
}
