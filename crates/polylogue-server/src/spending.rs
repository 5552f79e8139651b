//! What tokens spend in a day. A file says from which event on a token pays for a conversation, and what the run has used that followed, once
//! that has ended. What a process was running that died is counted from the logs, so that no process, however it ends, can lose or repeat what
//! was spent; and it stays counted, whichever program removes a log: what a dead process has left is noted before. Servers with one database share
//! budgets in it instead.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use polylogue_core::{
    Allowance, AnyStore, Budget, CountedUsage, Event, LogId, StopReason, Store as _, StoreError, Summary,
    TotalUsage,
};
use polylogue_files::private_options;
use polylogue_runtime::Runtime;
use polylogue_runtime::database::token_budget;
use polylogue_wire::token::DailyBudget;
use serde::{Deserialize, Serialize};
use tracing::warn;

use crate::line_file;
use crate::problem::Problem;
use crate::tenants::{Tenants, server_of, spending_in};
use crate::token::{DAY_MS, DailyLimit, Token};
use crate::token_file::{now_ms, today};

/// What tokens with budgets have spent today.
pub(crate) struct Spending {
    file: PathBuf,
    /// The day on which it was written last.
    written: AtomicU64,
    /// Whether budgets are in the database, for all servers with it.
    is_shared: bool,
    /// By id of the token.
    accounts: Mutex<HashMap<String, Arc<Account>>>,
}

/// The budget of a token for one day. A run counts toward the day on which it was begun or continued.
pub(crate) struct Account {
    /// Days since 1970, in UTC.
    day: u64,
    budget: Budget,
}

/// Who pays for a run: the token whose request began or continued it.
#[derive(Clone, Default)]
pub(crate) struct Payer {
    /// The budgets of the token and of the tokens that made it, in this process.
    accounts: Vec<Arc<Account>>,
    /// The same budgets where servers share them in a database instead: their names, and their limits.
    daily: Vec<(String, Allowance)>,
    pub(crate) noted: NotedPayer,
}

/// A payer, noted for the next process with its budgets: they hold also when the token does not exist any more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NotedPayer {
    /// The id of the token.
    pub(crate) token: String,
    /// Its budget and those of the tokens that made it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) limits: Vec<DailyLimit>,
}

/// A line of the file: from the event `from` on, a token pays for the run on `day`, until a later line about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Line {
    day: u64,
    #[serde(flatten)]
    payer: NotedPayer,
    tenant: String,
    run: LogId,
    from: u64,
    /// What it pays for, in a line that replaces the one from before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    used: Option<TotalUsage>,
}

/// A run for which a token with a budget pays, until it is [settled](Spending::settle).
pub(crate) struct PaidRun(Line);

impl Line {
    /// Whether it says of a token with a budget that it pays, and not how much.
    fn is_left(&self) -> bool {
        self.used.is_none() && !self.payer.limits.is_empty()
    }
}

/// Removes the conversation `id` and its work directory as [`Runtime::remove`] does, from a store that servers may have. What their tokens have
/// spent in it today stays spent: what a server has not noted that was killed is noted before, from the log.
///
/// # Errors
/// When a process runs it, the store cannot be written, or it cannot be noted what was spent. Then it is not removed.
pub async fn remove_conversation(runtime: &Runtime, id: &LogId) -> polylogue_runtime::Result<()> {
    let place = runtime.place();
    let (folder, tenant) = server_of(place);
    let spending = Spending::at(spending_in(&folder), place.is_shared());
    spending.settle_left(&tenant, runtime.store(), id).await?;
    runtime.remove(id).await
}

impl Account {
    fn new(per_day: DailyBudget, day: u64) -> Self {
        Self { day, budget: Budget::new("daily budget of the token", allowance(per_day)) }
    }

    /// Spends all of it.
    fn exhaust(&self) {
        let Allowance { cost, tokens, .. } = self.budget.limits();
        let (cost, tokens) = (cost.unwrap_or_default(), tokens.unwrap_or_default());
        self.budget.spend(CountedUsage { calls: 0, tokens, cost });
    }

    /// What of it is spent, in words.
    fn spent(&self) -> Option<String> {
        spent(self.budget.reached()?, self.budget.limits(), self.budget.used())
    }
}

const fn allowance(DailyBudget { cost, tokens }: DailyBudget) -> Allowance {
    Allowance { cost, tokens, calls: None, time_ms: None }
}

/// What of a budget is spent, in words, if this limit of it is reached.
fn spent(reached: StopReason, most: Allowance, used: CountedUsage) -> Option<String> {
    let StopReason::Allowance { limit, .. } = reached else { return None };
    Some(match (*limit, most) {
        (StopReason::Cost { .. }, Allowance { cost: Some(most), .. }) => format!("{} of {most}", used.cost),
        (StopReason::Tokens { .. }, Allowance { tokens: Some(most), .. }) => {
            format!("{} of {most} tokens", used.tokens)
        }
        (reason, _) => reason.to_string(),
    })
}

impl Payer {
    /// The budgets from all of which its model calls are reserved.
    pub(crate) fn budgets(&self) -> Vec<Budget> {
        self.accounts.iter().map(|account| account.budget.clone()).collect()
    }

    /// Those of them that servers share, by name, with their limits.
    pub(crate) fn daily(&self) -> Vec<(String, Allowance)> {
        self.daily.clone()
    }

    /// What of its budgets is spent, in words.
    async fn spent(&self, tenants: &Tenants, tenant: &str) -> Result<Option<String>, Problem> {
        if self.daily.is_empty() {
            return Ok(self.accounts.iter().find_map(|account| account.spent()));
        }
        let names = self.daily.iter().map(|(name, _)| name.as_str());
        let reached = tenants.get(tenant)?.runtime.reached_budget(names).await?;
        Ok(reached.and_then(|(reached, most, used)| spent(reached, most, used)))
    }
}

impl Spending {
    pub(crate) fn at(file: PathBuf, is_shared: bool) -> Self {
        Self { file, written: AtomicU64::new(today()), is_shared, accounts: Mutex::default() }
    }

    fn accounts(&self) -> MutexGuard<'_, HashMap<String, Arc<Account>>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who pays for what `token` begins or continues now.
    pub(crate) fn payer(&self, token: &Token) -> Payer {
        self.payer_of(NotedPayer { token: token.id.clone(), limits: token.daily_limits() })
    }

    /// Who pays for what continues now, as an earlier process has noted it.
    pub(crate) fn payer_of(&self, noted: NotedPayer) -> Payer {
        let day = today();
        if self.is_shared {
            let daily = |limit: &DailyLimit| (token_budget(&limit.token, day), allowance(limit.per_day));
            return Payer { accounts: Vec::new(), daily: noted.limits.iter().map(daily).collect(), noted };
        }
        Payer { accounts: self.accounts_of(&noted.limits, day), daily: Vec::new(), noted }
    }

    fn accounts_of(&self, limits: &[DailyLimit], day: u64) -> Vec<Arc<Account>> {
        let mut accounts = self.accounts();
        accounts.retain(|_, account| account.day >= day);
        let account = |limit: &DailyLimit| {
            let account = accounts.entry(limit.token.clone());
            Arc::clone(account.or_insert_with(|| Arc::new(Account::new(limit.per_day, day))))
        };
        limits.iter().map(account).collect()
    }

    /// Who pays for what `token` begins or continues now, unless its budget is spent.
    ///
    /// # Errors
    /// `budget-spent`, until midnight; or when the database that has the budgets cannot be read.
    pub(crate) async fn admit(&self, token: &Token, tenants: &Tenants) -> Result<Payer, Problem> {
        self.admit_payer(self.payer(token), tenants, &token.tenant).await
    }

    /// Who pays for what continues now, unless the budget is spent; the token may not exist any more.
    ///
    /// # Errors
    /// As [`admit`](Self::admit).
    pub(crate) async fn admit_payer(
        &self,
        payer: Payer,
        tenants: &Tenants,
        tenant: &str,
    ) -> Result<Payer, Problem> {
        let Some(spent) = payer.spent(tenants, tenant).await? else { return Ok(payer) };
        let left = DAY_MS - now_ms() % DAY_MS;
        Err(Problem::budget_spent(format!("the token has spent its budget of today: {spent}"))
            .hint("it is renewed at midnight UTC; `polylogue token new --cost-per-day` makes one with more")
            .retry_after(Duration::from_millis(left)))
    }

    /// What was spent today of the own budgets of those of `tokens` that have one, by their ids.
    ///
    /// # Errors
    /// When the database that has the budgets cannot be read.
    pub(crate) async fn usage_today(
        &self,
        tokens: &[&Token],
        runtime: &Runtime,
    ) -> Result<HashMap<String, CountedUsage>, Problem> {
        let day = today();
        let shared = if self.is_shared { runtime.shared_budgets().await? } else { Vec::new() };
        let accounts = self.accounts();
        let spent = |token: &Token| match self.is_shared {
            true => {
                let name = token_budget(&token.id, day);
                shared.iter().find(|budget| budget.name == name).map(|budget| budget.spent)
            }
            false => {
                let account = accounts.get(&token.id).filter(|account| account.day == day);
                account.map(|account| account.budget.used())
            }
        };
        let bounded = tokens.iter().filter(|token| !token.per_day.is_unlimited());
        Ok(bounded.map(|token| (token.id.clone(), spent(token).unwrap_or_default())).collect())
    }

    /// Notes that `payer` pays for the run `run` from its event `from` on. Returns what is to be settled when it has ended, if there is a budget.
    ///
    /// # Errors
    /// When the file cannot be written: then the run must not begin.
    pub(crate) fn note(
        &self,
        payer: &Payer,
        tenant: &str,
        run: &LogId,
        from: u64,
    ) -> io::Result<Option<PaidRun>> {
        if self.is_shared {
            return Ok(None);
        }
        let day = match payer.accounts.first() {
            Some(account) => account.day,
            // It ends what a token with a budget pays for, if there is one.
            None if self.file.exists() => today(),
            None => return Ok(None),
        };
        let (payer, tenant) = (payer.noted.clone(), tenant.to_owned());
        let line = Line { day, payer, tenant, run: run.clone(), from, used: None };
        self.append(&line)?;
        Ok(Some(line).filter(|line| !line.payer.limits.is_empty()).map(PaidRun))
    }

    /// Notes what a run has used that has ended, of a conversation with these `events`.
    ///
    /// # Errors
    /// When the file cannot be written: then it is counted from the log, if that is not removed.
    pub(crate) fn settle(&self, PaidRun(line): PaidRun, events: &[Arc<Event>]) -> io::Result<()> {
        let of_run = events.iter().map(|event| &**event).filter(|event| event.seq >= line.from);
        let used = Some(Summary::of(of_run, true).usage);
        self.append(&Line { used, ..line })
    }

    /// Notes what runs of the conversation `id` have used that no process has settled, such as that of a server that was killed. It is to be
    /// removed, and the next server could not count it.
    ///
    /// # Errors
    /// When a process runs it, or the log or the file cannot be read or written: then it must not be removed.
    pub(crate) async fn settle_left(
        &self,
        tenant: &str,
        store: &AnyStore,
        id: &LogId,
    ) -> Result<(), StoreError> {
        if self.is_shared {
            return Ok(());
        }
        let lines = self.lines_with(id.as_str()).map_err(|error| self.failed(&error))?;
        let is_of_run = |line: &Line| line.tenant == tenant && line.run == *id && line.day == today();
        let lines: Vec<Line> = lines.into_iter().filter(is_of_run).collect();
        if !lines.iter().any(Line::is_left) {
            return Ok(());
        }
        // What a living process runs, it settles itself. A log that is damaged is read without a claim.
        let claim = match store.claim(id).await {
            Err(error @ StoreError::Busy { .. }) => return Err(error),
            claimed => claimed.ok(),
        };
        let settled = self.settle_each(store, &lines).await;
        if let Some(claim) = claim {
            store.release(claim).await?;
        }
        settled
    }

    /// Notes what each of these `lines` that is [left](Line::is_left) pays for. All are of one conversation.
    async fn settle_each(&self, store: &AnyStore, lines: &[Line]) -> Result<(), StoreError> {
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.is_left()) {
            let later = lines.get(at + 1..).unwrap_or_default();
            let used = Some(used_by_log(store, line, later).await?);
            self.append(&Line { used, ..line.clone() }).map_err(|error| self.failed(&error))?;
        }
        Ok(())
    }

    fn failed(&self, error: &io::Error) -> StoreError {
        StoreError::Io { place: self.file.display().to_string(), why: error.to_string() }
    }

    fn append(&self, line: &Line) -> io::Result<()> {
        // Those of several runs come one after the other.
        let _one = self.accounts();
        if let Some(folder) = self.file.parent() {
            fs::create_dir_all(folder)?;
        }
        let _locked = self.locked()?;
        let day = today();
        if self.written.swap(day, Ordering::Relaxed) != day
            && let Err(error) = self.lines_of(day).and_then(|lines| line_file::rewrite(&self.file, &lines))
        {
            warn!(%error, "notes on what tokens have spent earlier stay");
        }
        line_file::append(&self.file, line)
    }

    /// Keeps other processes from writing the file while it exists.
    fn locked(&self) -> io::Result<File> {
        let lock = self.file.with_extension("lock");
        let lock = private_options().write(true).create(true).truncate(false).open(lock)?;
        lock.lock()?;
        Ok(lock)
    }

    /// Counts what earlier processes have spent today, and drops the lines of earlier days.
    pub(crate) async fn recover(&self, tenants: &Tenants) {
        if self.is_shared {
            return;
        }
        let day = today();
        let lines = self.lines_of(day).unwrap_or_else(|error| {
            warn!(%error, "what tokens have spent today is not known");
            Vec::new()
        });
        let mut counted = Vec::with_capacity(lines.len());
        for (at, line) in lines.iter().enumerate() {
            counted.push(self.count(tenants, line, lines.get(at + 1..).unwrap_or_default()).await);
        }
        if let Err(error) = self.keep(day, lines.into_iter().zip(counted)) {
            warn!(%error, "notes on what tokens have spent earlier stay");
        }
    }

    /// Drops the lines of other days than `day`, and notes what was `counted`, unless another process has noted more meanwhile.
    fn keep(&self, day: u64, counted: impl Iterator<Item = (Line, Option<TotalUsage>)>) -> io::Result<()> {
        if !self.file.exists() {
            return Ok(());
        }
        let _locked = self.locked()?;
        // Lines are only added: those that were counted are the first ones.
        let mut lines = self.lines_of(day)?;
        for (line, (before, used)) in lines.iter_mut().zip(counted) {
            if *line == before {
                line.used = used;
            }
        }
        line_file::rewrite(&self.file, &lines)
    }

    /// Counts what a line pays for, which `later` ones follow, toward its budgets. Returns it, if there are any and it is known.
    async fn count(&self, tenants: &Tenants, line: &Line, later: &[Line]) -> Option<TotalUsage> {
        let accounts = self.accounts_of(&line.payer.limits, line.day);
        if accounts.is_empty() {
            return None;
        }
        match used(tenants, line, later).await {
            Ok(used) => {
                accounts.iter().for_each(|account| account.budget.count_usage(&used));
                Some(used)
            }
            Err(problem) => {
                warn!(
                    conversation = %line.run, tenant = %line.tenant, %problem,
                    "what a conversation has spent is not known: nothing is left today of the budgets that pay for it"
                );
                accounts.iter().for_each(|account| account.exhaust());
                None
            }
        }
    }

    /// The lines of a day.
    fn lines_of(&self, day: u64) -> io::Result<Vec<Line>> {
        Ok(self.lines()?.into_iter().filter(|line| line.day == day).collect())
    }

    /// The lines that can be read, the last one of each run. Those of runs that did not begin can be torn.
    fn lines(&self) -> io::Result<Vec<Line>> {
        self.lines_with("")
    }

    /// Those of them that have `part` in their text.
    fn lines_with(&self, part: &str) -> io::Result<Vec<Line>> {
        let bytes = match fs::read(&self.file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            bytes => bytes?,
        };
        let text = String::from_utf8_lossy(&bytes);
        let mut lines: Vec<Line> = Vec::new();
        let mut places: HashMap<(String, LogId, u64), usize> = HashMap::new();
        let with_part = text.lines().filter(|line| line.contains(part));
        for line in with_part.filter_map(|line| serde_json::from_str::<Line>(line).ok()) {
            let run = (line.tenant.clone(), line.run.clone(), line.from);
            let place = places.get(&run).copied().unwrap_or(lines.len());
            match lines.get_mut(place) {
                Some(earlier) if earlier.used.is_none() || line.used.is_some() => *earlier = line,
                // After one that is settled, another run begins: of a conversation that has the id of a removed one.
                _ => {
                    places.insert(run, lines.len());
                    lines.push(line);
                }
            }
        }
        Ok(lines)
    }
}

/// What a line pays for, which `later` ones follow. A conversation that is damaged counts as far as it can be read.
async fn used(tenants: &Tenants, line: &Line, later: &[Line]) -> Result<TotalUsage, Problem> {
    if let Some(used) = line.used {
        return Ok(used);
    }
    let store = tenants.get(&line.tenant)?.runtime.store().clone();
    match used_by_log(&store, line, later).await {
        // The process that ran it has died, and its file was removed since.
        Err(StoreError::NotFound { .. }) => {
            warn!(conversation = %line.run, "a conversation is gone: what its last run has spent is not counted");
            Ok(TotalUsage::default())
        }
        used => Ok(used?),
    }
}

/// What a line pays for, which `later` ones follow, by the log in `store`.
async fn used_by_log(store: &AnyStore, line: &Line, later: &[Line]) -> Result<TotalUsage, StoreError> {
    let events = store.read_intact(&line.run).await?.events;
    let is_next = |later: &&Line| later.tenant == line.tenant && later.run == line.run;
    let until = later.iter().find(is_next).map(|later| later.from);
    let counts = |event: &&Event| event.seq >= line.from && until.is_none_or(|until| event.seq < until);
    Ok(Summary::of(events.iter().filter(counts), true).usage)
}

#[cfg(test)]
#[path = "spending_tests.rs"]
mod tests;
