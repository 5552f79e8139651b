//! Options that several commands have.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::num::IntErrorKind;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use polylogue_core::{Allowance, Budget, Capabilities, Capability, LimitOverrides, Money};
use polylogue_runtime::Runtime;
use polylogue_team::{Grant, Time};

use super::folder::Folder;
use super::piped::Piped;

/// Headings of the help, in which options of the same kind stand together.
const MODELS: &str = "Models";
const PERMISSIONS: &str = "Permissions";
const LIMITS: &str = "Limits";
const BUDGETS: &str = "Budgets";
const OUTPUT: &str = "Output";
pub(super) const WORKERS: &str = "Workers";
pub(super) const GLOBAL: &str = "Options of every command";

/// Reads a whole number of at least 1.
pub(crate) fn count<T: TryFrom<u64>>(given: &str) -> Result<T, String> {
    match given.parse::<u64>() {
        Ok(number @ 1..) => T::try_from(number).map_err(|_| "the number is too large".to_owned()),
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => Err("the number is too large".to_owned()),
        _ => Err("it must be a whole number of at least 1".to_owned()),
    }
}

/// In which layout a conversation is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Style {
    #[default]
    Usual,
    Autogen,
}

/// Options of the commands that run teams: with which models, permissions and limits.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TeamOptions {
    #[command(flatten)]
    pub(crate) models: Models,

    #[command(flatten)]
    pub(crate) allowed: Allowed,

    #[command(flatten)]
    pub(crate) limits: Limits,
}

impl TeamOptions {
    /// Those of a command that sets no limits: each conversation has its own.
    pub(crate) fn without_limits(models: &Models, allowed: &Allowed) -> Self {
        Self { models: models.clone(), allowed: allowed.clone(), limits: Limits::default() }
    }
}

/// Options of the commands that run one conversation for a person: those of its team, where agents work, who answers, and what is
/// written.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RunOptions {
    #[command(flatten)]
    pub(crate) team: TeamOptions,

    #[command(flatten)]
    pub(crate) folder: Folder,

    #[command(flatten)]
    pub(crate) piped: Piped,

    #[command(flatten)]
    pub(crate) output: Output,
}

/// What the team may do and use beyond what the sandbox gives it.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Allowed {
    #[command(flatten)]
    pub(crate) permits: Permits,

    /// MCP servers for agents that name them: a JSON file with `mcpServers`
    #[arg(long, value_name = "FILE", help_heading = PERMISSIONS)]
    pub(crate) mcp: Option<PathBuf>,
}

/// What a team file gets of what it asks for. `polylogue check` lists that.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Permits {
    /// Allow what the team file asks for, for this run: `unsafe-host` (no sandbox at all), `network` (its hosts), `readable`
    /// (its paths), `mcp` (its MCP servers), `endpoints` (its addresses of models), `env` (environment variables it sends),
    /// `memory` (what other teams remember), `outside-files` (team files of other folders), `dotenv` (addresses in `.env`),
    /// `prices` (prices below the list prices), and `unknown-price` (models of unknown price under a limit on cost; their calls count as free)
    #[arg(long = "allow", value_name = "WHAT", value_delimiter = ',', value_parser = grant, help_heading = PERMISSIONS)]
    pub(crate) grants: Vec<Grant>,

    /// Trust the team file: allow all that it asks for, now and while its content is unchanged
    #[arg(long, help_heading = PERMISSIONS)]
    pub(crate) trust: bool,
}

fn grant(text: &str) -> Result<Grant, String> {
    let known = || Grant::ALL.map(Grant::word).join(", ");
    Grant::of_word(text).ok_or_else(|| format!("expected one of {}", known()))
}

/// Which models speak, and whether they show what they reason.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Models {
    /// The model of every agent, such as `openai:gpt-4o-mini` or `ollama:llama3.2`. In a list with commas, each model is the fallback of the one before it
    #[arg(short, long, value_name = "PROVIDER:MODEL", conflicts_with_all = ["offline", "replay"], help_heading = MODELS)]
    pub(crate) model: Option<String>,

    /// What the models support: a list of `tools`, `schema`, `json` and `vision`, or `text` for none of these; `no-system-role`, `no-null-content` and `no-user-after-tool` name forms of requests that they refuse. Default: detected by their first replies, except `vision`
    #[arg(long, value_name = "CAPABILITIES", conflicts_with_all = ["offline", "replay"], value_parser = capabilities, help_heading = MODELS)]
    pub(crate) capabilities: Option<Capabilities>,

    /// Take the replies of models from the team's script; no model is called
    #[arg(long, help_heading = MODELS)]
    pub(crate) offline: bool,

    /// Maximum duration of a model call in seconds. Default: 3 minutes to the first token, 1 minute between tokens, 10 minutes in total
    #[arg(long, value_name = "SECONDS", conflicts_with_all = ["offline", "replay"], value_parser = count::<u64>, help_heading = MODELS)]
    pub(crate) timeout: Option<u64>,

    /// Record every model call to a new file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["offline", "replay"], help_heading = MODELS)]
    pub(crate) record: Option<PathBuf>,

    /// Cache model replies in a file: an equal request gets the stored reply. For development
    #[arg(long, value_name = "FILE", conflicts_with_all = ["offline", "replay"], help_heading = MODELS)]
    pub(crate) cache: Option<PathBuf>,

    /// Take every model reply from a recording; no model is called
    #[arg(long, value_name = "FILE", conflicts_with = "offline", help_heading = MODELS)]
    pub(crate) replay: Option<PathBuf>,

    /// Show the reasoning of models; those that hide it are asked for a summary
    #[arg(long, help_heading = MODELS)]
    pub(crate) thoughts: bool,
}

/// What the whole run may consume. Kept with the conversation for `resume`.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct Limits {
    /// Maximum number of turns, in all chats together; parallel turns begin together or not at all
    #[arg(long, value_name = "N", value_parser = count::<u64>, help_heading = LIMITS)]
    pub(crate) max_turns: Option<u64>,

    /// Maximum cost in dollars; a call that could cost more than is left is not made, and models of unknown price are refused
    #[arg(long, value_name = "DOLLARS", value_parser = dollars, help_heading = LIMITS)]
    pub(crate) max_cost: Option<f64>,

    /// Maximum number of input and output tokens; a call that could take more than is left is not made
    #[arg(long, value_name = "N", value_parser = count::<u64>, help_heading = LIMITS)]
    pub(crate) max_tokens: Option<u64>,

    /// Maximum number of model calls
    #[arg(long, value_name = "N", value_parser = count::<u64>, help_heading = LIMITS)]
    pub(crate) max_calls: Option<u64>,

    /// Maximum running time, such as `90s`, `10min` or `1h`; waiting for people does not count. When it is up, calls in flight are aborted
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = LIMITS)]
    pub(crate) max_time: Option<Time>,

    /// What happens at a limit of the run, of an agent or of a chat: the run or the chat ends, or you are asked to raise the limit. Default: that of the team file
    #[arg(long, value_name = "WHAT", help_heading = LIMITS)]
    pub(crate) on_limit: Option<OnLimit>,
}

/// What several conversations may consume together.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Budgets {
    /// Maximum cost in dollars of all conversations of this command together; a call that could cost more than is left is not made, and models of unknown price are refused. `NAME=DOLLARS` is a budget that all processes with the same Postgres database share, and `NAME` an existing one
    #[arg(long, value_name = "[NAME=]DOLLARS", value_parser = named_dollars, help_heading = BUDGETS)]
    pub(crate) budget: Option<Named<f64>>,

    /// Maximum number of input and output tokens of all conversations of this command together; `NAME=N` is for a shared budget
    #[arg(long, value_name = "[NAME=]N", value_parser = named_count, help_heading = BUDGETS)]
    pub(crate) budget_tokens: Option<Named<u64>>,

    /// Maximum number of model calls of all conversations of this command together; `NAME=N` is for a shared budget
    #[arg(long, value_name = "[NAME=]N", value_parser = named_count, help_heading = BUDGETS)]
    pub(crate) budget_calls: Option<Named<u64>>,

    /// Maximum wall-clock time of all conversations of this command together, such as `90s`, `10min` or `1h`. When it is up, calls in flight are aborted
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = BUDGETS)]
    pub(crate) budget_time: Option<Time>,
}

/// A limit of the budget of this process, or of the shared one of this name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Named<T> {
    name: Option<String>,
    /// `None`: unchanged.
    most: Option<T>,
}

impl<T: Copy> Named<T> {
    /// The limit of the budget of this `name`.
    fn of(given: Option<&Self>, name: Option<&str>) -> Option<T> {
        given.filter(|given| given.name.as_deref() == name)?.most
    }
}

impl Budgets {
    /// The name of the budget of this process.
    pub(crate) const PROCESS: &str = "budget of this process";

    /// The limits that are given for this process alone.
    pub(crate) fn allowance(&self) -> Allowance {
        Allowance { time_ms: self.budget_time.map(Time::ms), ..self.of(None) }
    }

    fn of(&self, name: Option<&str>) -> Allowance {
        Allowance {
            calls: Named::of(self.budget_calls.as_ref(), name),
            tokens: Named::of(self.budget_tokens.as_ref(), name),
            cost: Named::of(self.budget.as_ref(), name).map(Money::dollars),
            time_ms: None,
        }
    }

    /// The budgets that are shared with other processes, and the limits that are given for them.
    pub(crate) fn shared(&self) -> Vec<(String, Allowance)> {
        let of_cost = self.budget.iter().flat_map(|given| given.name.iter());
        let of_tokens = self.budget_tokens.iter().flat_map(|given| given.name.iter());
        let of_calls = self.budget_calls.iter().flat_map(|given| given.name.iter());
        let names: BTreeSet<&String> = of_cost.chain(of_tokens).chain(of_calls).collect();
        names.into_iter().map(|name| (name.clone(), self.of(Some(name)))).collect()
    }

    /// Whether money may be limited.
    pub(crate) const fn limits_cost(&self) -> bool {
        self.budget.is_some()
    }

    /// A budget of the conversations of this process, if limits are given.
    pub(crate) fn of_process(&self) -> Option<Budget> {
        let most = self.allowance();
        (most != Allowance::default()).then(|| Budget::new(Self::PROCESS, most))
    }

    /// The same conversations, paid by these budgets.
    ///
    /// # Errors
    /// As [`Runtime::with_shared_budgets`].
    pub(crate) async fn pay_for(&self, runtime: Runtime) -> Result<Runtime, polylogue_runtime::Error> {
        runtime.with_budget(self.of_process()).with_shared_budgets(&self.shared()).await
    }
}

/// Reads `20`, `team=20`, or the name of a shared budget.
fn named_dollars(given: &str) -> Result<Named<f64>, String> {
    match given.split_once('=') {
        None if given.starts_with(char::is_alphabetic) => {
            Ok(Named { name: Some(budget_name(given)?), most: None })
        }
        _ => named(given, dollars),
    }
}

/// Reads `1000` or `team=1000`.
fn named_count(given: &str) -> Result<Named<u64>, String> {
    named(given, count)
}

fn named<T>(given: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Named<T>, String> {
    let (name, most) = match given.split_once('=') {
        Some((name, most)) => (Some(budget_name(name)?), most),
        None => (None, given),
    };
    Ok(Named { name, most: Some(read(most)?) })
}

/// A name of a budget: letters, digits and `._-`.
pub(super) fn budget_name(text: &str) -> Result<String, String> {
    let is_name = |text: &str| {
        text.len() <= 100
            && text.starts_with(char::is_alphabetic)
            && text.chars().all(|c| c.is_alphanumeric() || "._-".contains(c))
    };
    if is_name(text) {
        Ok(text.to_owned())
    } else {
        Err("the name of a budget is a letter, then letters, digits and `._-`".into())
    }
}

/// What happens at a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnLimit {
    Stop,
    Ask,
}

impl From<OnLimit> for polylogue_core::OnLimit {
    fn from(what: OnLimit) -> Self {
        match what {
            OnLimit::Stop => Self::Stop,
            OnLimit::Ask => Self::Ask,
        }
    }
}

impl Limits {
    /// The limits that are given.
    pub(crate) fn overrides(&self) -> LimitOverrides {
        let cost = self.max_cost.map(Money::dollars);
        LimitOverrides {
            turns: self.max_turns,
            calls: self.max_calls,
            tokens: self.max_tokens,
            cost,
            time_ms: self.max_time.map(Time::ms),
            reply_tokens: None,
            on_limit: self.on_limit.map(OnLimit::into),
        }
    }
}

/// What is written of a run.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct Output {
    /// Print every event as one line of JSON; the first line has the conversation's id, the last one the totals
    #[arg(long, conflicts_with = "quiet", help_heading = OUTPUT)]
    pub(crate) json: bool,

    /// Print only the result
    #[arg(short, long, help_heading = OUTPUT)]
    pub(crate) quiet: bool,

    /// Layout of the conversation; `autogen` prints complete messages, as AutoGen does
    #[arg(long, value_name = "STYLE", default_value = "usual", conflicts_with_all = ["json", "quiet"], help_heading = OUTPUT)]
    pub(crate) style: Style,

    /// Do not stream: request and show complete replies
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) no_stream: bool,
}

/// Reads an address to listen on. A port alone, and a name such as `localhost`, are answered with an address.
pub(super) fn address(given: &str) -> Result<SocketAddr, String> {
    given.parse().map_err(|_| {
        let port = given.rsplit_once(':').map_or(given, |(_, port)| port);
        let port = port.parse().unwrap_or(8787_u16);
        format!("it is not an address with a port: write `127.0.0.1:{port}`")
    })
}

pub(super) fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.trim().to_owned(), value.to_owned()))
}

fn capabilities(text: &str) -> Result<Capabilities, String> {
    let words: Vec<&str> = text.split(',').map(str::trim).collect();
    // Pictures are never found out, and the form of a request is not a capability: naming these alone says nothing of the others.
    let is_apart = |word: &&str| *word == "vision" || word.starts_with("no-");
    let base = if words.iter().all(is_apart) { Capabilities::default() } else { Capabilities::TEXT };
    words.iter().try_fold(base, |capabilities, word| match *word {
        "tools" => Ok(capabilities.with(Capability::Tools)),
        "schema" => Ok(capabilities.with(Capability::Schema)),
        "json" => Ok(capabilities.with(Capability::Json)),
        "vision" => Ok(capabilities.with(Capability::Vision)),
        "no-system-role" => Ok(capabilities.without(Capability::SystemRole)),
        "no-null-content" => Ok(capabilities.without(Capability::NullContent)),
        "no-user-after-tool" => Ok(capabilities.without(Capability::UserAfterTool)),
        "text" if !words.iter().any(|word| matches!(*word, "tools" | "schema" | "json" | "vision")) => Ok(capabilities),
        _ => Err("expected `text`, or some of `tools,schema,json,vision`, and `no-system-role`, `no-null-content` or `no-user-after-tool`".to_owned()),
    })
}

fn time(text: &str) -> Result<Time, String> {
    text.parse().map_err(|error| format!("{error}; write a number and its unit: `90s`, `10min` or `1h`"))
}

pub(super) fn dollars(text: &str) -> Result<f64, String> {
    let amount: f64 = text.trim_start_matches('$').parse().map_err(|_| "expected an amount such as 0.50")?;
    if amount.is_finite() && amount >= 0.0 {
        Ok(amount)
    } else {
        Err("expected an amount of 0 or more".into())
    }
}
