//! One team that is served: what it takes, and how a conversation of it begins.

use std::path::{Path, PathBuf};

use polylogue_core::ToolSpec;
use polylogue_runtime::{Prepared, Runtime};
use polylogue_team::{Overrides, Team};
use serde_json::{Map, Value, json};

use super::call::CallConversation;
use crate::error::CliError;
use crate::launch::Launch;
use crate::place::{self, PlaceOption};
use crate::user_config::default_model;
use crate::{args, trust};

/// The argument that is the task.
const TASK: &str = "task";

/// A team that is served.
pub(super) struct ServedTeam {
    pub(super) spec: ToolSpec,
    file: PathBuf,
    /// Without a task or values of the caller's.
    prepared: Prepared,
    default_model: Option<String>,
    args: args::Mcp,
    place: PlaceOption,
}

impl ServedTeam {
    /// Reads the team, and finds out what is wrong with it before it is called.
    pub(super) async fn prepare(cli: &args::Cli, args: &args::Mcp, file: &Path) -> Result<Self, CliError> {
        let default_model = default_model(cli, &args.options.models)?.map(|given| given.value);
        let model = args.options.models.model.clone();
        let given = Overrides { model, default_model: default_model.clone(), ..Overrides::default() };
        let loaded = trust::load(file, &given, &args.options.allowed.permits)?;
        let spec = spec(&loaded.team);
        let mut launch = Launch::of(loaded, file, &args.options).with_default_cost(cli)?;
        // The input and the output are the host's.
        launch.asks = false;
        launch.shared_budget = args.budgets.budget.is_some();
        let prepared = launch.prepare(&place::of(&cli.named_store())?).await?;
        let place = PlaceOption::of_store(&cli.named_store());
        Ok(Self { spec, file: file.to_owned(), prepared, default_model, args: args.clone(), place })
    }

    /// Begins a conversation about what the caller gave.
    pub(super) async fn begin(
        &self,
        runtime: &Runtime,
        given: Map<String, Value>,
    ) -> Result<CallConversation, CliError> {
        let (model, default_model) = (self.args.options.models.model.clone(), self.default_model.clone());
        let given = Overrides { model, default_model, ..overrides(&given)? };
        let loaded = trust::load(&self.file, &given, &self.args.options.allowed.permits)?;
        self.prepared.reread_memory().await?;
        let run = self.prepared.run_of(loaded)?;
        if run.task().trim().is_empty() {
            return Err(CliError::usage("there is no `task`"));
        }
        Ok(CallConversation { conversation: runtime.begin(&run).await?, place: self.place.clone() })
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
        properties
            .insert(name.clone(), json!({"type": "string", "default": value.value, "description": about}));
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
