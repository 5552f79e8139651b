//! One team that is served: what it takes, and how a conversation of it begins.

use std::path::{Path, PathBuf};

use polylogue::{AnyStore, ToolSpec};
use polylogue_team::{Loaded, Overrides, Team, Usage};
use serde_json::{Map, Value, json};

use super::super::remote::{self, Remote, Wanted};
use super::super::run::{create, has_budget, manner, settings, usage};
use super::super::{StoredRun, work};
use super::talk::Talk;
use crate::error::CliError;
use crate::model_builder::ModelBuilder;
use crate::runner::tell;
use crate::team_memory::TeamMemoryStore;
use crate::trust::pins::Asking;
use crate::trust::{self, Access, Request};
use crate::{args, place, team_memory};

/// The argument that is the task.
const TASK: &str = "task";

/// A team that is served.
pub(super) struct Offer {
    pub(super) spec: ToolSpec,
    file: PathBuf,
    /// The team without a task or values of the caller's.
    team: Team,
    /// Identifies its content.
    digest: String,
    usage: Usage,
    access: Access,
    crew: ModelBuilder,
    servers: Remote,
    memory: TeamMemoryStore,
    args: args::Mcp,
    /// The store, as the command line names it: work directories are beside it.
    store: Option<PathBuf>,
}

impl Offer {
    /// Reads the team, and finds out what is wrong with it before anybody calls it.
    pub(super) async fn prepare(cli: &args::Cli, args: &args::Mcp, file: &Path) -> Result<Self, CliError> {
        let given = Overrides { model: args.models.model.clone(), ..Overrides::default() };
        let permits = &args.allowed.permits;
        let Loaded { mut team, warnings, digest, outside } = trust::load(file, &given, permits)?;
        warnings.iter().for_each(|warning| tell(&warning.to_string()));
        let spec = spec(&team);
        let settings = settings(cli.color, args::Output { no_stream: true, ..args::Output::default() });
        let budget = has_budget(&team, args.limits.overrides());
        let own = args.allowed.mcp.as_deref();
        let usage = usage(&args.models, own)?;
        let request = Request {
            team: &team,
            digest: &digest,
            file: &file.display().to_string(),
            outside: &outside,
            usage: usage.clone(),
            permits,
            before: Vec::new(),
            memory: team_memory::of_others(&team, cli.store.as_deref(), &digest).await?,
            // The input and the output are the host's.
            asks: false,
            tells: true,
        };
        let access = request.pass(trust::of_folder(cli.store.as_deref())?).await?;
        let mut manner = manner(&args.models, &settings, budget, false, &access);
        manner.watched = false;
        let crew = ModelBuilder::choose(&mut team, &manner).await?;
        work::tell_refusals(&team);
        let servers = Remote::start(
            &team,
            &Wanted { file: own, access: &access, asking: Asking { permits, asks: false } },
        )
        .await?;
        let (file, args, store) = (file.to_owned(), args.clone(), cli.store.clone());
        let memory = TeamMemoryStore::of(&team, store.as_deref(), &crew)?;
        let offer = Self { spec, file, team, digest, usage, access, crew, servers, memory, args, store };
        offer.built(&offer.team, &place::fresh_id()?, &|name| offer.crew.model(name))?;
        Ok(offer)
    }

    /// Begins a conversation about what the caller gave.
    pub(super) async fn begin(&self, store: &AnyStore, given: Map<String, Value>) -> Result<Talk, CliError> {
        let given = Overrides { model: self.args.models.model.clone(), ..overrides(&given)? };
        let Loaded { mut team, digest, .. } = trust::load(&self.file, &given, &self.args.allowed.permits)?;
        if digest != self.digest {
            return Err(
                CliError::usage("the team file was changed since it is served").hint("serve it again")
            );
        }
        self.access.check(&team, &self.usage)?;
        let others = team_memory::of_others(&team, self.store.as_deref(), &digest).await?;
        self.access.check_memory(&team, &others.into_iter().collect())?;
        if team.mcp_document() != self.team.mcp_document() {
            return Err(CliError::usage("the MCP servers of a team cannot be changed by its variables"));
        }
        if team.task.as_deref().is_none_or(|task| task.trim().is_empty()) {
            return Err(CliError::usage("there is no `task`"));
        }
        let provide = self.crew.cast(&mut team);
        let task = team.task.clone().unwrap_or_default();
        let allowed = self.access.kept(&team);
        let (mcp, remote_tools) = (remote::kept(self.args.allowed.mcp.as_deref())?, self.servers.described());
        let (offline, capabilities) = (self.crew.is_scripted(), self.args.models.capabilities);
        let limits = self.args.limits.overrides();
        let kept =
            StoredRun { team, offline, capabilities, digest, allowed, mcp, remote_tools, limits, seal: None }
                .sealed();
        // Whatever is wrong shows before there is a conversation.
        self.built(&kept.team, &place::fresh_id()?, &provide)?;
        let log = create(store.clone(), &kept).await?.limits(limits.over(kept.team.limits()));
        let chat = self.built(&kept.team, log.id(), &provide)?;
        work::prepare(&kept.team, self.store.as_deref(), log.id())?;
        Ok(Talk { chat, log, task })
    }

    fn built(
        &self,
        team: &Team,
        id: &polylogue::LogId,
        provide: polylogue_team::Provide<'_>,
    ) -> Result<polylogue::Chat, CliError> {
        let place = work::place_of(team, self.store.as_deref(), id, &self.access)?;
        Ok(team.build_at(provide, &self.memory.furnish(self.servers.furnish(place)))?)
    }
}

/// The description of `team`, for hosts.
fn spec(team: &Team) -> ToolSpec {
    let mut properties = Map::new();
    let about = match &team.task {
        Some(task) => format!("What the team is to do. Default: {task}"),
        None => "What the team is to do".to_owned(),
    };
    properties.insert(TASK.to_owned(), json!({"type": "string", "description": about}));
    for (name, value) in &team.vars {
        let about = format!("{{{{{name}}}}} in the texts of the team");
        properties.insert(name.clone(), json!({"type": "string", "default": value, "description": about}));
    }
    let required: &[&str] = if team.task.is_some() { &[] } else { &[TASK] };
    let parameters = json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    });
    let about = match team.description.as_str() {
        "" => format!("The team `{}`: agents who work on a task by talking with one another.", team.name),
        about => about.to_owned(),
    };
    ToolSpec::new(team.name.tool_name(""), about, parameters)
}

/// The arguments of a call, which override the team file.
fn overrides(given: &Map<String, Value>) -> Result<Overrides, CliError> {
    let mut overrides = Overrides::default();
    for (name, value) in given {
        let text = match value {
            Value::String(text) => text.clone(),
            // Some hosts send what is left out.
            Value::Null => continue,
            _ => return Err(CliError::usage(format!("`{name}` must be a string"))),
        };
        match name.as_str() {
            TASK => overrides.task = Some(text),
            _ => drop(overrides.vars.insert(name.clone(), text)),
        }
    }
    Ok(overrides)
}
