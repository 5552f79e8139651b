//! A team that is ready to run: its models, tools, MCP servers, sandbox and memory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polylogue::runs::batch::BatchStart;
use polylogue_core::{
    Allowance, AnyModel, AnyStore, Budget, Chat, Event, LimitOverrides, Limits, LogId, Media, Part, Price,
};
use polylogue_mcp::Catalog;
use polylogue_team::{Grant, Loaded, Team, Usage};

use crate::memory::{TeamMemory, memory_of_others};
use crate::models::{LocalModelInfo, ModelChoice, TeamModels, UnsupportedMedia};
use crate::servers::{TeamServers, server_names};
use crate::stored::{StoredTeam, fresh_id};
use crate::{Access, Error, ModelOptions, Result, StoreLocation};

/// The options of a run, besides what the team file says.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// The options of its models.
    pub models: ModelOptions,
    /// The user's own document of MCP servers, a JSON file with `mcpServers`.
    pub servers: Option<PathBuf>,
    /// A folder of the user's in which programs and files of agents work, instead of a work directory of the conversation: a
    /// whole path.
    pub dir: Option<PathBuf>,
    /// The limits of each conversation, over those of the team.
    pub limits: LimitOverrides,
    /// Whether all conversations share a budget: models of unknown price are then refused, as under a limit on cost.
    pub shared_budget: bool,
    /// Whether the conversation has begun before: a recording is then continued.
    pub resumed: bool,
}

impl RunOptions {
    /// Returns how the team is used, as far as that decides which permissions it asks for.
    ///
    /// # Errors
    /// When the user's document of MCP servers cannot be read.
    pub fn usage(&self) -> Result<Usage> {
        let own_servers = server_names(self.servers.as_deref())?;
        Ok(Usage { offline: self.models.is_offline(), own_servers, prices: self.models.prices.clone() })
    }

    /// Whether the conversations of `team` have a limit on cost.
    pub(crate) fn has_budget(&self, team: &Team) -> bool {
        self.shared_budget || self.limits.cost.is_some() || team.limits_cost()
    }
}

/// A team that is prepared once and has any number of conversations: its models are chosen, its MCP servers run.
///
/// Dropping it ends its MCP servers.
pub struct Prepared {
    place: StoreLocation,
    team: Team,
    digest: String,
    options: RunOptions,
    usage: Usage,
    access: Access,
    pub(crate) models: TeamModels,
    servers: TeamServers,
    memory: TeamMemory,
    /// The memory that other teams have written to.
    of_others: Mutex<BTreeSet<String>>,
    /// The id under which a server serves it.
    served_as: Option<String>,
}

impl Prepared {
    /// Prepares `team`, whose content is identified by `digest`, to run at `place` with what `access` allows: chooses
    /// its models, starts its MCP servers and builds its agents once, so that mistakes show before a conversation
    /// begins. No store is created.
    ///
    /// # Errors
    /// When a model, a server, a tool or the sandbox that it needs is missing or was not allowed.
    pub async fn new(
        place: &StoreLocation,
        mut team: Team,
        digest: impl Into<String>,
        access: Access,
        options: RunOptions,
    ) -> Result<Self> {
        let (digest, usage) = (digest.into(), options.usage()?);
        let choosing = ModelChoice {
            options: &options.models,
            budget: options.has_budget(&team) && !access.grants.contains(&Grant::UnknownPrice),
            resumed: options.resumed,
            access: &access,
            cluster: place.cluster_limits()?,
        };
        let models = TeamModels::choose(&mut team, &choosing).await?.of_tenant(place.tenant());
        models.check_media(&team)?;
        models.check_prices(&team)?;
        let servers = TeamServers::start(&team, options.servers.as_deref(), &access).await?;
        let memory = TeamMemory::of(&team, place, &models)?;
        let of_others = Mutex::new(memory_of_others(&team, place, &digest).await?);
        let place = place.clone();
        let prepared = Self {
            place,
            team,
            digest,
            options,
            usage,
            access,
            models,
            servers,
            memory,
            of_others,
            served_as: None,
        };
        prepared.run().chat(&fresh_id())?;
        Ok(prepared)
    }

    /// Makes this the team `id` of a server, which is stored with its conversations: [`served_as`](crate::stored::served_as).
    #[must_use]
    pub fn served_as(self, id: impl Into<String>) -> Self {
        Self { served_as: Some(id.into()), ..self }
    }

    /// Returns the team, in which every agent has a model.
    pub const fn team(&self) -> &Team {
        &self.team
    }

    /// Returns the digest of the content of its files; values of the caller's are not in it.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns the location of the store of its conversations.
    pub const fn place(&self) -> &StoreLocation {
        &self.place
    }

    /// Returns what the team may use.
    pub const fn access(&self) -> &Access {
        &self.access
    }

    /// Returns the limits of a new conversation.
    pub fn limits(&self) -> Limits {
        self.options.limits.apply_to(self.limits_of(&self.team))
    }

    /// The limits that `team`, which is its team with values of its caller, sets.
    pub(crate) fn limits_of(&self, team: &Team) -> Limits {
        let allow_unknown_price = self.access.grants.contains(&Grant::UnknownPrice);
        Limits { allow_unknown_price, ..team.limits() }
    }

    /// Returns the limits that its team sets, without those of the caller.
    pub fn team_limits(&self) -> Limits {
        self.limits_of(&self.team)
    }

    /// Returns whether the team's script speaks instead of models.
    pub const fn is_scripted(&self) -> bool {
        self.models.is_scripted()
    }

    /// Returns why the team's script speaks, unless that was asked for.
    pub fn why_scripted(&self) -> Option<&str> {
        self.models.why_scripted()
    }

    /// Returns the models with a price and no known limit on the length of a reply. Under a budget their calls are made one
    /// after the other, and the last one can exceed it.
    pub fn unbounded_models(&self) -> Vec<String> {
        self.models.unbounded(&self.team)
    }

    /// Returns the models of the team in this process, and what they take of this machine: known before their weights are loaded.
    pub fn local_models(&self) -> Vec<(String, LocalModelInfo)> {
        self.models.local_models()
    }

    /// Returns the first model of the team that is known not to read `media`, and why; `None` if every one may read it.
    pub fn unsupported_media(&self, media: &Media) -> Option<UnsupportedMedia> {
        let mut names = self.team.models().into_iter().filter(|_| !self.is_scripted());
        names.find_map(|name| self.models.unsupported_by(name, media))
    }

    /// Returns the MCP servers, which all its conversations share.
    pub const fn servers(&self) -> &TeamServers {
        &self.servers
    }

    /// Returns the same, to take their progress reports.
    pub const fn servers_mut(&mut self) -> &mut TeamServers {
        &mut self.servers
    }

    /// Returns the team as it was prepared, for one conversation.
    pub fn run(&self) -> TeamRun<'_> {
        TeamRun {
            prepared: self,
            team: self.team.clone(),
            script: None,
            limits: self.options.limits,
            budgets: Vec::new(),
            daily: Vec::new(),
            attached: Vec::new(),
        }
    }

    /// Returns the same team with another task and other values of its variables, for one conversation.
    ///
    /// # Errors
    /// When its content is another one, it asks for more than was allowed, or its variables change an MCP server.
    pub fn run_of(&self, loaded: Loaded) -> Result<TeamRun<'_>> {
        let Loaded { team, digest, .. } = loaded;
        if digest != self.digest {
            return Err(Error::TeamChanged { team: team.name });
        }
        self.run_as(team)
    }

    /// Returns the same team with other values of its variables, from the texts that it was prepared from.
    ///
    /// # Errors
    /// As [`run_of`](Self::run_of), and when a value is wrong.
    pub fn run_with(&self, vars: BTreeMap<String, String>) -> Result<TeamRun<'_>> {
        let team = self.team.with_vars(vars);
        self.run_as(
            team.map_err(|errors| Error::Inputs { team: self.team.name.clone(), why: errors.to_string() })?,
        )
    }

    fn run_as(&self, mut team: Team) -> Result<TeamRun<'_>> {
        self.access.check(&team, &self.usage, &self.of_others())?;
        let script = self.models.cast(&mut team);
        if team.mcp_document() != self.team.mcp_document() {
            return Err(Error::ServersChanged { team: team.name });
        }
        Ok(TeamRun {
            prepared: self,
            team,
            script,
            limits: self.options.limits,
            budgets: Vec::new(),
            daily: Vec::new(),
            attached: Vec::new(),
        })
    }

    /// Reads again which memory other teams have written to. For a team that has been prepared for a long time.
    ///
    /// # Errors
    /// When the memory cannot be read.
    pub async fn reread_memory(&self) -> Result<()> {
        let found = memory_of_others(&self.team, &self.place, &self.digest).await?;
        *self.of_others() = found;
        Ok(())
    }

    fn of_others(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.of_others.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) const fn models(&self) -> &TeamModels {
        &self.models
    }
}

/// A prepared team with the task and the variables of one conversation.
pub struct TeamRun<'p> {
    pub(crate) prepared: &'p Prepared,
    team: Team,
    /// Speaks for all agents, if a script does that is not the one of the prepared team.
    script: Option<AnyModel>,
    /// Over those of the team.
    limits: LimitOverrides,
    budgets: Vec<Budget>,
    daily: Vec<(String, Allowance)>,
    /// What is attached to its first message.
    attached: Vec<Part>,
}

impl TeamRun<'_> {
    /// Returns the team.
    pub const fn team(&self) -> &Team {
        &self.team
    }

    /// Returns the task; empty if there is none.
    pub fn task(&self) -> &str {
        self.team.task.as_deref().unwrap_or_default()
    }

    /// Sets another task.
    #[must_use]
    pub fn with_task(mut self, task: impl Into<String>) -> Self {
        self.team.set_task(task.into());
        self
    }

    /// Sets limits, over those it has.
    #[must_use]
    pub fn with_limits(mut self, limits: LimitOverrides) -> Self {
        self.limits = limits.or(self.limits);
        self
    }

    /// Adds budgets that pay for its calls, next to its own limits and the budgets of the runtime.
    #[must_use]
    pub fn with_budgets(mut self, budgets: impl IntoIterator<Item = Budget>) -> Self {
        self.budgets.extend(budgets);
        self
    }

    /// Sets the shared budgets of a day that pay for it, as in [`OpenOptions::daily`](crate::OpenOptions::daily).
    #[must_use]
    pub fn with_daily(mut self, daily: impl IntoIterator<Item = (String, Allowance)>) -> Self {
        self.daily.extend(daily);
        self
    }

    /// Attaches parts, such as pictures, to the message with the task. Its bound counts them.
    #[must_use]
    pub fn with_attached(mut self, parts: impl IntoIterator<Item = Part>) -> Self {
        self.attached.extend(parts);
        self
    }

    pub(crate) fn attached(&self) -> &[Part] {
        &self.attached
    }

    pub(crate) fn daily(&self) -> &[(String, Allowance)] {
        &self.daily
    }

    pub(crate) fn budgets(&self) -> &[Budget] {
        &self.budgets
    }

    /// Builds the agents for the conversation `id`.
    ///
    /// # Errors
    /// When the team cannot be built.
    pub fn chat(&self, id: &LogId) -> Result<Chat> {
        let Prepared { place, access, models, servers, memory, .. } = self.prepared;
        let context = memory.add_resources(servers.add_resources(place.context(
            &self.team,
            id,
            access,
            self.project(),
        )?));
        Ok(self.team.build_at(&|name| models.model_or(self.script.as_ref(), name), &context)?)
    }

    /// Returns the limits of its conversation.
    pub fn limits(&self) -> Limits {
        self.limits.apply_to(self.prepared.limits_of(&self.team))
    }

    /// Refuses models of unknown price if what one conversation may use, `limits` and all that pays for it, has a limit on cost. When the
    /// team was prepared, only the limits of all its conversations were known.
    pub(crate) fn check_prices(
        &self,
        limits: &Limits,
        mut budgets: impl Iterator<Item = Budget>,
        daily: &[(String, Allowance)],
    ) -> Result<()> {
        let has_limit = limits.cost.is_some()
            || budgets.any(|budget| budget.limits().cost.is_some())
            || daily.iter().any(|(_, of_day)| of_day.cost.is_some());
        if has_limit { self.require_prices() } else { Ok(()) }
    }

    /// Refuses models of unknown price, unless the user allows them.
    pub(crate) fn require_prices(&self) -> Result<()> {
        match self.prepared.access.grants.contains(&Grant::UnknownPrice) {
            true => Ok(()),
            false => self.prepared.models.require_prices(&self.team),
        }
    }

    /// The model called `name`.
    pub(crate) fn model(&self, name: &str) -> polylogue::Result<AnyModel> {
        self.prepared.models.model_or(self.script.as_ref(), name)
    }

    /// What its models cost, as far as that is known.
    pub(crate) fn prices(&self) -> BTreeMap<String, Price> {
        self.prepared.models.prices_of(&self.team)
    }

    /// The tools of its MCP servers.
    pub(crate) fn server_tools(&self) -> Catalog {
        self.prepared.servers.catalog()
    }

    /// What is stored with its conversation.
    ///
    /// # Errors
    /// When the path of the user's document of MCP servers is unknown.
    pub(crate) fn stored(&self) -> Result<StoredTeam> {
        let Prepared { digest, options, access, models, servers, served_as, .. } = self.prepared;
        let stored = StoredTeam {
            team: self.team.clone(),
            offline: models.is_scripted(),
            capabilities: options.models.capabilities,
            digest: digest.clone(),
            allowed: access.stored(&self.team, &options.models.prices),
            mcp: options.servers.as_deref().map(absolute).transpose()?,
            remote_tools: servers.described(),
            served_as: served_as.clone(),
            limits: self.limits,
            dir: options.dir.clone(),
            imported: false,
            bound: self.stored_bound(1),
            seal: None,
        };
        Ok(stored.sealed(access.sealer.as_ref()))
    }

    /// Checks that the folder is there in which the work directory is made.
    pub(crate) fn check_work_dir(&self) -> Result<()> {
        match self.project() {
            Some(folder) => self.check_project(folder),
            None if self.team.needs_workplace() => self.prepared.place.check_volume(),
            None => Ok(()),
        }
    }

    /// Checks that the user's `folder` is there in which agents work: their programs would make an empty one.
    fn check_project(&self, folder: &Path) -> Result<()> {
        if self.team.needs_workplace() && !folder.is_dir() {
            return Err(Error::NoProject(folder.to_owned()));
        }
        Ok(())
    }

    /// Makes the work directory of the conversation `id`, unless it works in a folder of the user's.
    pub(crate) fn make_work_dir(&self, id: &LogId) -> Result<()> {
        match self.project() {
            Some(folder) => self.check_project(folder),
            None => self.prepared.place.make_work_dir(&self.team, id),
        }
    }

    /// Makes the work directory of the conversation `id` what a process begins with that continues it after `events`.
    pub(crate) async fn restore_work_dir(
        &self,
        id: &LogId,
        store: &AnyStore,
        events: &[Arc<Event>],
    ) -> Result<()> {
        match self.project() {
            Some(_) => Ok(()),
            None => self.prepared.place.restore_work_dir(&self.team, id, store, events).await,
        }
    }

    /// Removes the work directory of the conversation `id`, of which `events` are the log, if its files are stored elsewhere. Returns whether it did.
    pub(crate) async fn remove_stored_work_dir(&self, id: &LogId, events: &[Arc<Event>]) -> Result<bool> {
        match self.project() {
            Some(_) => Ok(false),
            None => self.prepared.place.remove_stored_work_dir(&self.team, id, events).await,
        }
    }

    fn project(&self) -> Option<&Path> {
        self.prepared.options.dir.as_deref()
    }

    /// Returns the beginning of a conversation with a known `id`, for a [`Batch`](polylogue::runs::batch::Batch). Makes its
    /// work directory.
    ///
    /// # Errors
    /// When the team cannot be built, or the work directory not be made.
    pub fn batch_start(&self, id: LogId, title: String) -> Result<BatchStart> {
        self.make_work_dir(&id)?;
        let (chat, stored) = (self.chat(&id)?, self.stored()?);
        let meta = stored.meta(title)?;
        let bound = stored.bound.map(|bound| bound.most).unwrap_or_default();
        Ok(BatchStart { id, meta, chat, task: self.task().to_owned(), bound })
    }
}

/// The whole path of a file, to be found again from another folder.
fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| Error::Io {
        path: path.to_owned(),
        what: "found",
        why: error.to_string(),
    })
}
