//! One team that is served: what it takes, and how a conversation of it begins.

use std::path::{Path, PathBuf};

use polylogue::{AnyStore, ToolSpec};
use polylogue_team::{Grant, Loaded, Overrides, Team, load};
use serde_json::{Map, Value, json};

use super::super::remote::{self, Remote, Wanted};
use super::super::run::{create, limits, manner, settings};
use super::super::{Kept, work};
use super::talk::Talk;
use crate::crew::Crew;
use crate::play::tell;
use crate::remembered::Remembered;
use crate::trouble::Trouble;
use crate::{args, place};

/// The argument that is the task.
const TASK: &str = "task";

/// The longest name of a tool that every host accepts.
const MAX_NAME: usize = 64;

/// A team that is served.
pub(super) struct Offer {
    pub(super) spec: ToolSpec,
    file: PathBuf,
    /// The team without a task or values of the caller's.
    team: Team,
    crew: Crew,
    servers: Remote,
    memory: Remembered,
    args: args::Mcp,
    /// The store, as the command line names it: work directories are beside it.
    store: Option<PathBuf>,
}

impl Offer {
    /// Reads the team, and finds out what is wrong with it before anybody calls it.
    pub(super) async fn prepare(cli: &args::Cli, args: &args::Mcp, file: &Path) -> Result<Self, Trouble> {
        let given = Overrides { model: args.models.model.clone(), ..Overrides::default() };
        let Loaded { mut team, warnings } = load(file, &given)?;
        warnings.iter().for_each(|warning| tell(&warning.to_string()));
        let spec = spec(&team);
        let settings = settings(cli.color, args::Output { no_stream: true, ..args::Output::default() });
        let budget = limits(&team, &args.limits).cost.is_some();
        let mut manner = manner(&args.models, &settings, budget, false);
        manner.watched = false;
        let crew = Crew::choose(&mut team, &manner).await?;
        let grants = &*args.allowed.grants;
        work::check(&team, grants, true)?;
        let servers = Wanted { file: args.allowed.mcp.as_deref(), grants, tells: true };
        let servers = Remote::start(&team, &servers).await?;
        let (file, args, store) = (file.to_owned(), args.clone(), cli.store.clone());
        let memory = Remembered::of(&team, store.as_deref(), &crew)?;
        let offer = Self { spec, file, team, crew, servers, memory, args, store };
        offer.built(&offer.team, &place::fresh_id()?, &|name| offer.crew.model(name))?;
        Ok(offer)
    }

    /// Begins a conversation about what the caller gave.
    pub(super) async fn begin(&self, store: &AnyStore, given: Map<String, Value>) -> Result<Talk, Trouble> {
        let given = Overrides { model: self.args.models.model.clone(), ..overrides(&given)? };
        let mut team = load(&self.file, &given)?.team;
        if team.mcp_document() != self.team.mcp_document() {
            return Err(Trouble::usage("the MCP servers of a team cannot be changed by its variables"));
        }
        if team.task.as_deref().is_none_or(|task| task.trim().is_empty()) {
            return Err(Trouble::usage("there is no `task`"));
        }
        let provide = self.crew.cast(&mut team);
        let task = team.task.clone().unwrap_or_default();
        let allowed = work::words(&self.args.allowed);
        let (mcp, remote_tools) = (remote::kept(self.args.allowed.mcp.as_deref())?, self.servers.described());
        let (offline, skills) = (self.crew.is_scripted(), self.args.models.skills);
        let kept = Kept { team, offline, skills, allowed, mcp, remote_tools };
        // Whatever is wrong shows before there is a conversation.
        self.built(&kept.team, &place::fresh_id()?, &provide)?;
        let log = create(store.clone(), &kept).await?.limits(limits(&kept.team, &self.args.limits));
        let chat = self.built(&kept.team, log.id(), &provide)?;
        work::prepare(&kept.team, self.store.as_deref(), log.id())?;
        Ok(Talk { chat, log, task })
    }

    fn built(
        &self,
        team: &Team,
        id: &polylogue::LogId,
        provide: polylogue_team::Provide<'_>,
    ) -> Result<polylogue::Chat, Trouble> {
        let grants: Vec<Grant> = self.args.allowed.grants.clone();
        let place = work::place_of(team, self.store.as_deref(), id, grants)?;
        Ok(team.build_at(provide, &self.memory.furnish(self.servers.furnish(place)))?)
    }
}

/// What hosts are told of `team`.
fn spec(team: &Team) -> ToolSpec {
    let mut properties = Map::new();
    let about = match &team.task {
        Some(task) => format!("What the team is to do. When left out: {task}"),
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
    let name = team.name.as_str().chars().take(MAX_NAME);
    let legal = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    ToolSpec::new(name.map(legal).collect::<String>(), about, parameters)
}

/// The arguments of a call, in place of what the team file says.
fn overrides(given: &Map<String, Value>) -> Result<Overrides, Trouble> {
    let mut overrides = Overrides::default();
    for (name, value) in given {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            // Some hosts send what is left out.
            Value::Null => continue,
            _ => return Err(Trouble::usage(format!("`{name}` has to be a text"))),
        };
        match name.as_str() {
            TASK => overrides.task = Some(text),
            _ => drop(overrides.vars.insert(name.clone(), text)),
        }
    }
    Ok(overrides)
}
