//! The budgets of other processes that pay for a conversation.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use polylogue_core::{Allowance, Budget, Chat, CountedUsage, Log, LogId, Summary};
use polylogue_postgres::{LogUsage, PostgresBudgets, is_daily};

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
    /// By their names.
    pub(crate) budgets: Vec<(String, Budget)>,
    /// The names of budgets of a day that have paid so far, and do so no longer.
    ended: Vec<String>,
}

impl SharedBudgets {
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    pub(crate) fn new(names: Vec<String>, pool: Arc<PostgresBudgets>) -> Self {
        Self { names, pool: OnceLock::from(pool) }
    }

    /// Those that pay for a new conversation, or for the conversation `id`: those of this process, and those that paid for it before. With
    /// `daily`, only these budgets of a day, which are made if they do not exist.
    pub(crate) async fn paying(
        &self,
        place: &StoreLocation,
        id: Option<&LogId>,
        daily: Option<&[(String, Allowance)]>,
    ) -> Result<Option<Paying>> {
        let mut names: BTreeSet<String> = self.names.iter().cloned().collect();
        let pool = match self.pool.get() {
            Some(opened) => opened,
            None if id.is_some() || daily.is_some_and(|daily| !daily.is_empty()) => {
                let Some(opened) = place.shared_budgets()? else { return Ok(None) };
                self.pool.get_or_init(|| opened)
            }
            None => return Ok(None),
        };
        let before = match id {
            Some(id) => pool.of_log(id).await?,
            None => Vec::new(),
        };
        let continues = |name: &str| {
            daily.is_none_or(|daily| !is_daily(name) || daily.iter().any(|(now, _)| now == name))
        };
        let (before, ended): (Vec<String>, Vec<String>) =
            before.into_iter().partition(|name| continues(name));
        names.extend(before);
        for (name, limits) in daily.unwrap_or_default() {
            pool.make_daily(name, *limits).await?;
            names.insert(name.clone());
        }
        let mut budgets = Vec::with_capacity(names.len());
        for name in names {
            let budget =
                pool.budget(&name).await?.ok_or_else(|| Error::UnknownBudget { name: name.clone() })?;
            budgets.push((name, budget));
        }
        let is_any = !budgets.is_empty() || !ended.is_empty();
        Ok(is_any.then(|| Paying { pool: Arc::clone(pool), budgets, ended }))
    }
}

impl Paying {
    /// Those of `paying`, if there are any.
    pub(crate) fn all(paying: Option<&Self>) -> impl Iterator<Item = Budget> {
        paying.into_iter().flat_map(|paying| paying.budgets.iter().map(|(_, budget)| budget.clone()))
    }

    /// Has them pay for a new conversation.
    pub(crate) async fn begin(self, log: Log) -> Result<Log> {
        let (log, handles) = self.attach(log);
        self.pay(log.id(), &handles, None).await?;
        Ok(log)
    }

    /// Has them pay for a conversation that is opened. A call that may have been in flight when its last process died is charged first, in
    /// its log: only then is it known what the log has used.
    pub(crate) async fn open(self, log: Log, chat: &Chat) -> Result<Log> {
        let (mut log, handles) = self.attach(log);
        let before = counted(&log).await;
        chat.charge_lost_calls(&mut log).await?;
        let used = counted(&log).await;
        let usage = LogUsage { used, lost: used.less(before) };
        let events = log.events().await.len() as u64;
        for name in &self.ended {
            self.pool.end(name, log.id(), events, usage).await?;
        }
        self.pay(log.id(), &handles, Some(usage)).await?;
        Ok(log)
    }

    fn attach(&self, log: Log) -> (Log, Vec<Budget>) {
        let handles: Vec<Budget> = self.budgets.iter().map(|(_, budget)| budget.for_log(log.id())).collect();
        (handles.iter().cloned().fold(log, Log::budget), handles)
    }

    async fn pay(&self, id: &LogId, handles: &[Budget], usage: Option<LogUsage>) -> Result<()> {
        for ((name, _), budget) in self.budgets.iter().zip(handles) {
            self.pool.pay((name, budget), id, usage).await?;
        }
        Ok(())
    }
}

/// What the conversation of `log` has used.
async fn counted(log: &Log) -> CountedUsage {
    let events = log.events().await;
    Summary::of(events.iter().map(|event| &**event), true).usage.counted()
}
