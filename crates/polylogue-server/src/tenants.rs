//! The conversations of each tenant: a store of its own, so that no query can reach those of others.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polylogue_core::{Budget, Listing, LogId, Store as _, StoreError};
use polylogue_files::behind_links;
use polylogue_runtime::database::{LivePoint, PostgresAsked};
use polylogue_runtime::stored::served_as;
use polylogue_runtime::{Prepared, Runtime, StoreLocation};
use tokio::sync::OnceCell;
use tracing::{info, warn};

use crate::live::LiveNode;
use crate::live::follower::Follower;
use crate::running::Runs;
use crate::source::{SourceError, TeamSource};
use crate::store_metrics::StoreMetrics;
use crate::stored_teams::StoredTeams;
use crate::token::Token;
use crate::totals::Meters;

/// Of so many conversations it is remembered under which ids their teams were served.
const REMEMBERED: usize = 10_000;

/// The folder of a server with the stores of other tenants than [`Token::LOCAL`].
const TENANTS: &str = "tenants";

/// The conversations of one tenant, and the teams that are prepared for them.
pub(crate) struct Tenant {
    pub(crate) name: String,
    pub(crate) runtime: Runtime,
    pub(crate) runs: Runs,
    /// What its conversations have taken.
    pub(crate) meters: Meters,
    /// Follows what other processes run, where a store is one that processes share.
    pub(crate) follower: Option<Follower>,
    /// The teams of its conversations that run.
    pub(crate) stored_teams: StoredTeams<Prepared>,
    /// By id.
    teams: Mutex<BTreeMap<String, Arc<ServedTeam>>>,
    /// Under which ids the teams of conversations were served when these began, which is stored with them.
    served_as: Mutex<HashMap<LogId, Option<Arc<str>>>>,
    /// Whether its teams were prepared.
    is_prepared: OnceCell<()>,
}

/// A team that is served to a tenant.
#[derive(Default)]
struct ServedTeam {
    /// Prepared when a conversation of it begins.
    prepared: OnceCell<Arc<Prepared>>,
    /// Why its file, which has changed since, is not used.
    refused: Mutex<Option<SourceError>>,
}

impl ServedTeam {
    /// Its name, if it is prepared.
    fn name(&self) -> Option<&str> {
        Some(self.prepared.get()?.team().name.as_str())
    }
}

impl Tenant {
    fn teams(&self) -> MutexGuard<'_, BTreeMap<String, Arc<ServedTeam>>> {
        self.teams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The team `id`, prepared once.
    pub(crate) async fn team(
        &self,
        source: &dyn TeamSource,
        id: &str,
    ) -> Option<Result<Arc<Prepared>, SourceError>> {
        let served = self.teams().get(id).cloned()?;
        Some(served.prepared.get_or_try_init(|| self.prepared(source, id)).await.cloned())
    }

    async fn prepared(&self, source: &dyn TeamSource, id: &str) -> Result<Arc<Prepared>, SourceError> {
        let prepared = source.prepare(id, self.runtime.place()).await?.served_as(id);
        let name = prepared.team().name.as_str();
        let has_name =
            |(other, served): &(&String, &Arc<ServedTeam>)| *other != id && served.name() == Some(name);
        if let Some((other, _)) = self.teams().iter().find(has_name) {
            warn!(
                team = id,
                other, name, "two teams have one name: conversations of the command line are of neither"
            );
        }
        Ok(Arc::new(prepared))
    }

    /// Prepares its teams, once: conversations from before a restart are known as theirs by their names. What is wrong with one shows
    /// when it is used.
    pub(crate) async fn prepare(&self, source: &dyn TeamSource) {
        let prepare = || async {
            for id in source.ids() {
                drop(self.team(source, &id).await);
            }
        };
        self.is_prepared.get_or_init(prepare).await;
    }

    /// Why the file of the team `id`, which has changed since it was prepared, is not used.
    pub(crate) fn refused(&self, id: &str) -> Option<SourceError> {
        self.teams().get(id)?.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Serves the teams `ids` from now on, and prepares those that have `changed` and were prepared before. What runs keeps the team
    /// that it began with; a team that cannot be prepared stays unchanged, and the reason is kept.
    async fn reload(&self, source: &dyn TeamSource, ids: &[String], changed: &[String]) {
        self.serve(ids);
        for id in changed {
            let Some(before) = self.teams().get(id).cloned() else { continue };
            if !before.prepared.initialized() {
                continue;
            }
            match self.prepared(source, id).await {
                Ok(prepared) => {
                    info!(team = id, "the team was read again");
                    let (prepared, refused) = (OnceCell::new_with(Some(prepared)), Mutex::default());
                    self.teams().insert(id.clone(), Arc::new(ServedTeam { prepared, refused }));
                }
                Err(error) => {
                    warn!(team = id, %error, "the changed team file is not used");
                    *before.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
            }
        }
    }

    /// Serves the teams `ids`, and no others.
    fn serve(&self, ids: &[String]) {
        let mut teams = self.teams();
        teams.retain(|id, _| ids.contains(id));
        for id in ids {
            if !teams.contains_key(id) {
                teams.insert(id.clone(), Arc::default());
            }
        }
    }
}

impl Tenant {
    /// The id of the team that the conversation is of, if that is served, and its own title in lists.
    ///
    /// The id is stored with what a server began. Of other conversations, such as those of the command line, only the name of the team is known:
    /// they are of the team with this name, if only one has it.
    pub(crate) async fn team_of<'l>(&self, listing: &'l Listing) -> Option<(String, &'l str)> {
        // Of what cannot be read, the team is unknown.
        let stored = self.stored_id(&listing.id).await.ok()?;
        let teams = self.teams();
        let title = listing.title.as_str();
        if let Some(id) = stored {
            let own = after_name(title, teams.get(&*id)?.name().unwrap_or_default());
            // The team has another name by now.
            let own = own.unwrap_or_else(|| title.split_once(' ').map_or("", |(_, own)| own));
            return Some((id.to_string(), own));
        }
        let mut named =
            teams.iter().filter_map(|(id, served)| Some((id, after_name(title, served.name()?)?)));
        let (id, own) = named.next()?;
        named.next().is_none().then(|| (id.clone(), own))
    }

    /// The id under which a server served the team of the conversation when it began.
    async fn stored_id(&self, id: &LogId) -> Result<Option<Arc<str>>, StoreError> {
        if let Some(known) = self.served_as().get(id) {
            return Ok(known.clone());
        }
        let meta = self.runtime.store().meta(id).await?;
        let stored: Option<Arc<str>> = served_as(&meta).map(Into::into);
        let mut known = self.served_as();
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(id.clone(), stored.clone());
        Ok(stored)
    }

    fn served_as(&self) -> MutexGuard<'_, HashMap<LogId, Option<Arc<str>>>> {
        self.served_as.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes a conversation.
    pub(crate) async fn remove(&self, id: &LogId) -> polylogue_runtime::Result<()> {
        self.runtime.remove(id).await?;
        self.served_as().remove(id);
        Ok(())
    }

    /// The name of the team `id` in lists, if it is prepared.
    pub(crate) fn name_of_team(&self, id: &str) -> Option<String> {
        self.teams().get(id)?.name().map(str::to_owned)
    }
}

/// What follows the `name` of a team in a title; `None` if it does not begin with that.
fn after_name<'t>(title: &'t str, name: &str) -> Option<&'t str> {
    let rest = title.strip_prefix(name)?;
    (rest.is_empty() || rest.starts_with(' ')).then(|| rest.trim_start())
}

/// The tenants of a server that have been used since it started.
pub(crate) struct Tenants {
    /// The store of [`Token::LOCAL`], which the command line uses, too.
    place: StoreLocation,
    /// What all their conversations share.
    budget: Option<Budget>,
    /// The names of the budgets that they share with other processes.
    shared_budgets: Vec<String>,
    /// Offers what this process runs to others.
    live: Option<LiveNode>,
    /// How long their stores take, and what happens to claims.
    pub(crate) store_metrics: StoreMetrics,
    /// The ids of the teams.
    ids: Mutex<Vec<String>>,
    used: Mutex<HashMap<String, Arc<Tenant>>>,
    /// Held while teams are read again, so that one that waits for it finds them read.
    reloading: tokio::sync::Mutex<()>,
}

impl Tenants {
    pub(crate) fn new(
        place: StoreLocation,
        ids: Vec<String>,
        (budget, shared_budgets): (Option<Budget>, Vec<String>),
        live: Option<LiveNode>,
    ) -> Self {
        Self {
            place,
            budget,
            shared_budgets,
            live,
            store_metrics: StoreMetrics::default(),
            ids: Mutex::new(ids),
            used: Mutex::default(),
            reloading: tokio::sync::Mutex::default(),
        }
    }

    /// Where it is noted which conversations run.
    pub(crate) fn running_folder(&self) -> PathBuf {
        running_in(&server_folder(&self.place))
    }

    /// Whether other processes have the same conversations.
    pub(crate) const fn are_shared(&self) -> bool {
        self.place.is_shared()
    }

    /// Hears what other programs ask servers to continue, if processes can share the store.
    pub(crate) fn asked(&self) -> Option<PostgresAsked> {
        self.place.asked()
    }

    /// Where it is noted who pays for what, unless others have the same conversations.
    pub(crate) fn spending_file(&self) -> PathBuf {
        spending_in(&server_folder(&self.place))
    }

    /// Where what requests for chat completions have begun is noted.
    pub(crate) fn requests_file(&self) -> PathBuf {
        server_folder(&self.place).join("requests.jsonl")
    }

    /// Where the key is that authenticates what clients send back.
    pub(crate) fn state_key_file(&self) -> PathBuf {
        server_folder(&self.place).join("state.key")
    }

    /// Those that have been used since the server started.
    pub(crate) fn used(&self) -> Vec<Arc<Tenant>> {
        self.by_name().values().cloned().collect()
    }

    /// The tenant of this name, if it has been used since the server started.
    pub(crate) fn known(&self, name: &str) -> Option<Arc<Tenant>> {
        self.by_name().get(name).cloned()
    }

    fn by_name(&self) -> MutexGuard<'_, HashMap<String, Arc<Tenant>>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The names of those whose conversations the store has, whether they are used or not: in a database, of conversations that workers run or that
    /// wait for them; elsewhere, each tenant has a folder.
    pub(crate) async fn stored(&self) -> polylogue_runtime::Result<Vec<String>> {
        let local = self.get(Token::LOCAL).map_err(|error| *error)?;
        let mut names = match &local.follower {
            Some(follower) => follower.watch().queued_tenants().await?,
            None => folders_in(&server_folder(&self.place).join(TENANTS)),
        };
        names.retain(|name| Token::is_tenant(name));
        Ok(names)
    }

    /// Reads the teams again that have changed, or all if `again`.
    pub(crate) async fn reload(&self, source: &dyn TeamSource, again: bool) {
        let _one = self.reloading.lock().await;
        let (changed, ids) = (source.rescan(again), source.ids());
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&ids);
        for tenant in self.used() {
            tenant.stored_teams.forget();
            tenant.reload(source, &ids, &changed).await;
        }
    }

    /// The tenant of this name, whose store is created if it does not exist. The name was checked when its token was made.
    pub(crate) fn get(&self, name: &str) -> Result<Arc<Tenant>, Box<polylogue_runtime::Error>> {
        if let Some(tenant) = self.known(name) {
            return Ok(tenant);
        }
        // Nothing is locked meanwhile: the store of one tenant may be slow, and the others do not wait for it.
        let (tenant, point) = self.open(name)?;
        let mut used = self.by_name();
        // Another request may have been faster.
        let tenant = used.entry(name.to_owned()).or_insert_with(|| {
            if let (Some(live), Some(point)) = (&self.live, &point) {
                live.offer(point, &tenant.runtime);
            }
            tenant.serve(&self.ids.lock().unwrap_or_else(PoisonError::into_inner));
            Arc::new(tenant)
        });
        Ok(Arc::clone(tenant))
    }

    /// Opens the store of the tenant of this name. Returns also where others would follow what it runs here.
    fn open(&self, name: &str) -> Result<(Tenant, Option<LivePoint>), Box<polylogue_runtime::Error>> {
        let place = tenant_place(&self.place, name);
        // Without random numbers nothing is offered.
        let point = self.live.as_ref().and_then(|live| live.point().ok());
        let follower = place.watch().map(|watch| Follower::new(watch, point.clone()));
        let place = place.with_live(point.clone());
        let inner = place.open().map_err(Box::new)?;
        let store = self.store_metrics.metered(inner);
        let runtime = Runtime::with_store(place, store).with_budget(self.budget.clone()).with_successors();
        let runtime = runtime.paid_by(self.shared_budgets.clone()).map_err(Box::new)?;
        let tenant = Tenant {
            name: name.to_owned(),
            runtime,
            runs: Runs::default(),
            meters: Meters::default(),
            follower,
            stored_teams: StoredTeams::default(),
            teams: Mutex::default(),
            served_as: Mutex::default(),
            is_prepared: OnceCell::new(),
        };
        Ok((tenant, point))
    }
}

/// The names of the folders in a folder; none if it cannot be read, such as one that was not needed yet.
fn folders_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

/// The place of the conversations of a tenant of the servers that have the conversations at `place`: those of [`Token::LOCAL`] are there. The name must be
/// [one of a tenant](Token::is_tenant).
pub fn tenant_place(place: &StoreLocation, tenant: &str) -> StoreLocation {
    match tenant {
        Token::LOCAL => place.clone(),
        name => place.of_tenant(name, server_folder(place).join(TENANTS).join(name).join("conversations.db")),
    }
}

/// Where the server whose folder this is notes who pays for what.
pub(crate) fn spending_in(folder: &Path) -> PathBuf {
    folder.join("spending.jsonl")
}

/// Where the server whose folder this is notes which conversations run.
pub(crate) fn running_in(folder: &Path) -> PathBuf {
    folder.join("running")
}

/// The folder of the server that would have the conversations at `place`, and their tenant there.
pub(crate) fn server_of(place: &StoreLocation) -> (PathBuf, String) {
    let of_tenant = || {
        let folder = place.path().parent()?;
        let tenants = folder.parent().filter(|tenants| tenants.ends_with(TENANTS))?;
        let server =
            tenants.parent().filter(|server| server.extension().is_some_and(|end| end == "server"))?;
        Some((server.to_owned(), folder.file_name()?.to_str()?.to_owned()))
    };
    of_tenant().unwrap_or_else(|| (server_folder(place), Token::LOCAL.to_owned()))
}

/// What a server keeps besides conversations, next to the store at `place`: tokens, and the stores of other tenants.
pub(crate) fn server_folder(place: &StoreLocation) -> PathBuf {
    // A folder may be written with a slash at its end, which belongs to no name.
    let mut name = behind_links(place.path().components().as_path()).into_os_string();
    name.push(".server");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::time::Duration;

    use tokio::task::spawn_blocking;
    use tokio::time::timeout;

    use super::*;

    /// Its database is a pipe, whose reader waits for a writer.
    #[cfg(unix)]
    #[tokio::test]
    async fn a_tenant_whose_store_opens_slowly_keeps_no_other_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let place = StoreLocation::new(dir.path().join("store.db"));
        let pipe = tenant_place(&place, "slow").path().to_owned();
        polylogue_files::make_private_folder(pipe.parent().unwrap()).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let tenants = Arc::new(Tenants::new(place, Vec::new(), (None, Vec::new()), None));
        let get = |name: &'static str| {
            let tenants = Arc::clone(&tenants);
            spawn_blocking(move || tenants.get(name).map(drop))
        };
        let slow = get("slow");
        // It opens when the other side reads.
        let writer = spawn_blocking(move || std::fs::File::options().write(true).open(pipe)).await;
        let fast = timeout(Duration::from_secs(10), get("fast")).await;
        writer.unwrap().unwrap().write_all(b"not a database").unwrap();
        assert!(slow.await.unwrap().is_err());
        fast.expect("it waits for the other one").unwrap().unwrap();
    }

    #[tokio::test]
    async fn tenants_of_files_are_found_by_their_folders() {
        let dir = tempfile::tempdir().unwrap();
        let place = StoreLocation::new(dir.path().join("store.db"));
        let tenants = || Tenants::new(place.clone(), Vec::new(), (None, Vec::new()), None);
        assert!(tenants().stored().await.unwrap().is_empty());
        drop(tenants().get("acme").unwrap());
        std::fs::create_dir(dir.path().join("store.db.server/tenants/no tenant")).unwrap();
        assert_eq!(tenants().stored().await.unwrap(), ["acme"]);
    }
}
