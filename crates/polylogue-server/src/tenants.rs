//! The conversations of each tenant: a store of its own, so that no query can reach those of others.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use polylogue_runtime::{Prepared, Runtime, StoreLocation};
use tokio::sync::OnceCell;

use crate::running::Runs;
use crate::source::{SourceError, TeamSource};
use crate::token::Token;
use crate::totals::Meters;

/// The conversations of one tenant, and the teams that are prepared for them.
pub(crate) struct Tenant {
    pub(crate) name: String,
    pub(crate) runtime: Runtime,
    pub(crate) runs: Runs,
    /// What its conversations have taken.
    pub(crate) meters: Meters,
    /// By id; prepared when a conversation of them begins.
    teams: HashMap<String, OnceCell<Arc<Prepared>>>,
}

impl Tenant {
    /// The team `id`, prepared once.
    pub(crate) async fn team(
        &self,
        source: &dyn TeamSource,
        id: &str,
    ) -> Option<Result<&Arc<Prepared>, SourceError>> {
        let cell = self.teams.get(id)?;
        let place = self.runtime.place();
        let prepare = || async { source.prepare(id, place).await.map(Arc::new) };
        Some(cell.get_or_try_init(prepare).await)
    }
}

impl Tenant {
    /// The id of the team whose conversations have this title in lists, and what follows its name there.
    pub(crate) fn team_of_title<'t>(&self, title: &'t str) -> Option<(&str, &'t str)> {
        let found = self.teams.iter().filter_map(|(id, cell)| {
            let rest = title.strip_prefix(cell.get()?.team().name.as_str())?;
            (rest.is_empty() || rest.starts_with(' ')).then_some((id, rest.trim_start()))
        });
        found.min_by_key(|(_, rest)| rest.len()).map(|(id, rest)| (id.as_str(), rest))
    }

    /// The name of the team `id` in lists, if it is prepared.
    pub(crate) fn name_of_team(&self, id: &str) -> Option<String> {
        Some(self.teams.get(id)?.get()?.team().name.to_string())
    }
}

/// The tenants of a server that have been used since it started.
pub(crate) struct Tenants {
    /// The store of [`Token::LOCAL`], which the command line uses, too.
    place: StoreLocation,
    folder: PathBuf,
    ids: Vec<String>,
    used: Mutex<HashMap<String, Arc<Tenant>>>,
}

impl Tenants {
    pub(crate) fn new(place: StoreLocation, ids: Vec<String>) -> Self {
        let folder = server_folder(&place).join("tenants");
        Self { place, folder, ids, used: Mutex::default() }
    }

    /// Where it is noted which conversations run.
    pub(crate) fn running_folder(&self) -> PathBuf {
        server_folder(&self.place).join("running")
    }

    /// Those that have been used since the server started.
    pub(crate) fn used(&self) -> Vec<Arc<Tenant>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// The tenant of this name, whose store is created if it does not exist. The name was checked when its token was made.
    pub(crate) fn get(&self, name: &str) -> Result<Arc<Tenant>, Box<polylogue_runtime::Error>> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tenant) = used.get(name) {
            return Ok(Arc::clone(tenant));
        }
        let place = match name {
            Token::LOCAL => self.place.clone(),
            name => StoreLocation::new(self.folder.join(name).join("conversations.db")),
        };
        let runtime = Runtime::open_at(place).map_err(Box::new)?;
        let teams = self.ids.iter().map(|id| (id.clone(), OnceCell::new())).collect();
        let tenant = Arc::new(Tenant {
            name: name.to_owned(),
            runtime,
            runs: Runs::new(),
            meters: Meters::default(),
            teams,
        });
        used.insert(name.to_owned(), Arc::clone(&tenant));
        Ok(tenant)
    }
}

/// What a server keeps besides conversations, next to the store at `place`: tokens, and the stores of other tenants.
pub(crate) fn server_folder(place: &StoreLocation) -> PathBuf {
    // A folder may be written with a slash at its end, which belongs to no name.
    let mut name = place.path().components().as_path().as_os_str().to_owned();
    name.push(".server");
    PathBuf::from(name)
}
