//! How every command prepares a team: what the command line says, what the user trusts, then the runtime.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use polylogue_core::LimitOverrides;
use polylogue_models::{LearnedCapabilities, Prices};
use polylogue_runtime::memory::memory_of_others;
use polylogue_runtime::models::check_parameters;
use polylogue_runtime::{ModelOptions, Prepared, RequestedPermission, RunOptions, StoreLocation};
use polylogue_team::{Loaded, Team};

use crate::error::CliError;
use crate::screen::{ColorChoice, Output, OutputStyle, Settings};
use crate::stderr::{print_note_wrapped, print_warnings};
use crate::trust::pins::{self, Consent};
use crate::trust::{self, PermissionRequest};
use crate::user_config::{SettingValue, default_cost};
use crate::{args, place, user_prices, work_dir};

/// A team that is about to be prepared, and how.
pub(crate) struct Launch<'a> {
    pub(crate) team: Team,
    /// Identifies its content.
    pub(crate) digest: String,
    /// Identifies the content that is trusted: that of the stored team, where its own is not sealed.
    pub(crate) trusted: String,
    /// Where it is, for a person.
    pub(crate) file: String,
    /// Team files outside its folder.
    pub(crate) outside: Vec<String>,
    pub(crate) models: &'a args::Models,
    pub(crate) permits: &'a args::Permits,
    /// The user's own document of MCP servers.
    pub(crate) servers: Option<PathBuf>,
    /// The user's own folder in which agents work.
    pub(crate) dir: Option<PathBuf>,
    pub(crate) limits: LimitOverrides,
    pub(crate) shared_budget: bool,
    /// What the conversation was allowed when it began.
    pub(crate) before: Vec<RequestedPermission>,
    pub(crate) resumed: bool,
    /// Whether there may be a person to ask.
    pub(crate) asks: bool,
    /// How the conversation is shown; `None` for one that no person watches.
    pub(crate) shown: Option<&'a Settings>,
}

impl<'a> Launch<'a> {
    /// The launch of a team file that was just read.
    pub(crate) fn of(loaded: Loaded, file: &Path, options: &'a args::TeamOptions) -> Self {
        let args::TeamOptions { models, allowed, limits } = options;
        let Loaded { team, warnings, digest, outside } = loaded;
        print_warnings(&warnings);
        Self {
            team,
            trusted: digest.clone(),
            digest,
            file: file.display().to_string(),
            outside,
            models,
            permits: &allowed.permits,
            servers: allowed.mcp.clone(),
            dir: None,
            limits: limits.overrides(),
            shared_budget: false,
            before: Vec::new(),
            resumed: false,
            asks: true,
            shown: None,
        }
    }

    /// Limits the cost as the user's settings say, where the command line does not and the team allows more.
    pub(crate) fn with_default_cost(mut self, cli: &args::Cli) -> Result<Self, CliError> {
        if self.limits.cost.is_none() {
            self.limits.cost = default_cost(cli, self.models, self.team.limits().cost)?;
        }
        Ok(self)
    }

    /// Asks for the user's trust where that is needed, and prepares the team to run at `place`.
    pub(crate) async fn prepare(self, place: &StoreLocation) -> Result<Prepared, CliError> {
        if self.dir.is_some() && !self.team.needs_workplace() {
            let what = format!("no agent of `{}` runs programs or works with files", self.team.name);
            return Err(CliError::usage(what).hint("give an agent `tools: [files]`, or leave out `--dir`"));
        }
        let options = self.options(user_prices::read()?);
        let shows_permissions = self.shown.is_none_or(|settings| settings.output.is_conversation());
        let of_others = memory_of_others(&self.team, place, &self.digest).await?;
        let scopes = self.team.memory_scopes().into_iter().map(|scope| scope.as_str().to_owned());
        let request = PermissionRequest {
            team: &self.team,
            digest: &self.trusted,
            file: &self.file,
            outside: &self.outside,
            usage: options.usage()?,
            permits: self.permits,
            before: self.before,
            memory: scopes.filter(|scope| of_others.contains(scope)).collect(),
            asks: self.asks,
            shows_permissions,
        };
        let access = request.resolve(trust::of_folder(place)?).await?;
        if !self.resumed {
            let found = check_parameters(&self.team, &access, &options.models);
            if found.errors() > 0 {
                return Err(found.into());
            }
            print_warnings(&found);
        }
        if shows_permissions {
            work_dir::warn_of_refused_programs(&self.team);
        }
        let prepared = Prepared::new(place, self.team, self.digest, access, options).await?;
        pins::check(&prepared, Consent { permits: self.permits, asks: self.asks }).await?;
        Ok(prepared)
    }

    fn options(&self, prices: Prices) -> RunOptions {
        let args::Models { model, capabilities, offline, timeout, record, cache, replay, thoughts } =
            self.models.clone();
        let models = ModelOptions {
            model,
            capabilities,
            offline,
            timeout: timeout.map(Duration::from_secs),
            record,
            replay,
            cache,
            thoughts,
            stream: self.shown.is_some_and(|settings| settings.stream),
            paced: self.shown.is_some_and(|settings| settings.paced),
            prices,
            learned: place::of_capabilities().map(LearnedCapabilities::at),
        };
        RunOptions {
            models,
            servers: self.servers.clone(),
            dir: self.dir.clone(),
            limits: self.limits,
            shared_budget: self.shared_budget,
            resumed: self.resumed,
        }
    }
}

/// Says that no model speaks, and why.
pub(crate) fn print_scripted(prepared: &Prepared, own_task: bool) {
    if !prepared.is_scripted() {
        return;
    }
    let why = prepared.why_scripted().map(|why| format!(", because {why}")).unwrap_or_default();
    print_note_wrapped(&format!("This is a demonstration: the agents speak by the team's script{why}."));
    if own_task {
        print_note_wrapped("The script does not know your task: it replies to the one it was written for.");
    }
    print_note_wrapped(&format!("For a real model, {}.", polylogue_runtime::Error::MODEL_HINT));
}

/// Says that agents speak by the user's default model, and where it is set.
pub(crate) fn print_default_model(prepared: &Prepared, default: Option<&SettingValue>) {
    let used = prepared.team().default_model();
    if let Some((model, given)) = used.zip(default).filter(|_| !prepared.is_scripted()) {
        print_note_wrapped(&format!(
            "Agents for which the team names no model use `{model}`, your default ({}).",
            given.origin
        ));
    }
}

/// Says what models in the process take of this machine, before their weights are loaded.
pub(crate) fn print_local_models(prepared: &Prepared) {
    for (name, info) in prepared.local_models() {
        print_note_wrapped(&format!("`{name}`: {info}"));
    }
}

/// Says which models have no known limit on what a call takes, under a budget.
pub(crate) fn warn_of_unbounded(prepared: &Prepared) {
    for name in prepared.unbounded_models() {
        print_note_wrapped(&format!(
            "`{name}` has no known limit on the length of a reply: its calls are made one after the other, and the last one can \
             pass the budget. Set `max_tokens` in `parameters` to bound it."
        ));
    }
}

/// How one is shown that no person watches: nothing is written here.
pub(crate) const UNWATCHED: Settings = Settings {
    output: Output::Json,
    looks: OutputStyle { color: false, live: false, terminal: false },
    stream: true,
    paced: false,
    thoughts: false,
    verbose: false,
};

/// How a conversation is shown.
pub(crate) fn settings(cli: &args::Cli, options: &args::RunOptions) -> Settings {
    let args::RunOptions { team, output, .. } = options;
    let what = match output {
        args::Output { json: true, .. } => Output::Json,
        args::Output { quiet: true, .. } => Output::Result,
        args::Output { style: args::Style::Autogen, .. } => Output::AutoGen,
        _ => Output::Talk,
    };
    let verbose = cli.verbose > 0;
    let looks = OutputStyle::of(wish(cli.color), &io::stdout());
    // The lines of the log would stand within those that change in place.
    let looks = OutputStyle { live: looks.live && !verbose, ..looks };
    let paced = what == Output::Talk && looks.live;
    Settings {
        output: what,
        looks,
        stream: !output.no_stream,
        paced,
        thoughts: team.models.thoughts,
        verbose,
    }
}

/// When colors are used.
pub(crate) const fn wish(color: args::Color) -> ColorChoice {
    match color {
        args::Color::Auto => ColorChoice::Auto,
        args::Color::Always => ColorChoice::Always,
        args::Color::Never => ColorChoice::Never,
    }
}
