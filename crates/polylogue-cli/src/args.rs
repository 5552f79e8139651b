//! The command line.

pub(crate) mod batch;
pub(crate) mod change;
pub(crate) mod chat;
pub(crate) mod config;
pub(crate) mod dashes;
pub(crate) mod dev;
pub(crate) mod files;
pub(crate) mod fmt;
pub(crate) mod folder;
pub(crate) mod guessed;
pub(crate) mod keeping;
pub(crate) mod memory;
pub(crate) mod models;
pub(crate) mod new;
pub(crate) mod piped;
pub(crate) mod runs;
pub(crate) mod serve;
mod shared;
pub(crate) mod steer;
pub(crate) mod trust;
pub(crate) mod uses;
pub(crate) mod verify;
pub(crate) mod worker;

use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use polylogue_server::Token;

use crate::attachments::Attach;
use crate::place::NamedStore;
use crate::shipped::team_file;
pub(crate) use shared::{Allowed, Budgets, Limits, Models, Output, Permits, RunOptions, Style, TeamOptions};
use shared::{GLOBAL, count, variable};

/// Conversations among language-model agents, tools and people
#[derive(Debug, Parser)]
#[command(name = "polylogue", version, arg_required_else_help = true, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// The store of conversations: a file for SQLite, a folder for JSON lines, `postgres://USER@HOST/DATABASE`
    #[arg(long, global = true, display_order = LAST, help_heading = GLOBAL, value_name = "PATH", env = "POLYLOGUE_STORE", hide_env_values = true, value_parser = path())]
    pub(crate) store: Option<PathBuf>,

    /// Use the conversations of this server, such as `http://127.0.0.1:8787`, instead of the store. Its token is in `POLYLOGUE_TOKEN`, or in `~/.config/polylogue/servers.yaml`
    #[arg(long, global = true, display_order = LAST, help_heading = GLOBAL, value_name = "URL", env = "POLYLOGUE_SERVER", hide_env_values = true)]
    pub(crate) server: Option<String>,

    /// Your configuration file. Default: `~/.config/polylogue/config.yaml`
    #[arg(long, global = true, display_order = LAST, help_heading = GLOBAL, value_name = "FILE", env = "POLYLOGUE_CONFIG", hide_env_values = true, value_parser = path())]
    pub(crate) config: Option<PathBuf>,

    /// Log to standard error, and show prompts, private replies and tool results in full; `-vv` logs more, `RUST_LOG` filters
    #[arg(short, long, global = true, display_order = LAST, help_heading = GLOBAL, action = ArgAction::Count)]
    pub(crate) verbose: u8,

    /// When to use colors; without them, as with `NO_COLOR`, nothing is redrawn, and replies appear when they are complete
    #[arg(long, global = true, display_order = LAST, help_heading = GLOBAL, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
}

impl Cli {
    /// The store that is named, and whose conversations in it the command is about.
    pub(crate) fn named_store(&self) -> NamedStore {
        let tenant = self.command.tenant().filter(|tenant| *tenant != Token::LOCAL);
        NamedStore { store: self.store.clone(), tenant: tenant.map(str::to_owned) }
    }

    /// The configuration file that is named; a variable without a value names none.
    pub(crate) fn config(&self) -> Option<&Path> {
        self.config.as_deref().filter(|path| !path.as_os_str().is_empty())
    }
}

/// Behind the options that its own command has.
const LAST: usize = 100;

/// Exit codes, and what a newcomer does first. The first steps are the last lines: the help is longer than most screens, and its end is what
/// a terminal shows.
const AFTER_HELP: &str = "Exit codes:
  0  done, also by `max_turns` in `stop`
  1  failed
  2  bad usage or team file
  3  a limit on turns, calls, time or depth, or a loop
  4  a limit on tokens or cost
  5  waiting for a person
  6  stopped by you, or a person has left
  7  no output: no participant said anything
  8  done, but the result is truncated

First steps:
  polylogue run demo:trading-bot        a demonstration, without a model
  polylogue chat -m ollama:llama3.2     a chat with one model
  polylogue new                         writes a team file, `team.yaml`
  polylogue run team.yaml \"YOUR TASK\"   runs the team on a task
  polylogue show last                   shows the last conversation again";

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a commented team file to begin with
    New(new::New),
    /// Run a team on a task
    Run(Run),
    /// Chat with a model or a team, line by line
    Chat(chat::Chat),
    /// Run a team on many tasks, each in its own conversation
    Batch(batch::Batch),
    /// Resume a conversation; with a message, also one that has ended
    Resume(Resume),
    /// List conversations with their state, cost and task
    Runs(runs::Runs),
    /// Show a conversation, what it cost, or the exact requests to a model
    Show(Show),
    /// Send a message to a conversation, running or not
    Send(steer::Send),
    /// Stop a running conversation; `resume` continues it
    Cancel(steer::Cancel),
    /// Pause a conversation after its turn; `resume` continues it
    Pause(steer::Pause),
    /// Choose the next speaker of a conversation
    Next(steer::Next),
    /// Raise the limits of a conversation, also while it runs
    Raise(steer::Raise),
    /// List the questions of all conversations that wait for people
    Waiting(steer::Waiting),
    /// Answer a question of a conversation, running or not
    Answer(steer::Answer),
    /// Fork a conversation: begin a new one with a copy of its first events
    Fork(change::Fork),
    /// Move a conversation to another version of its team
    Move(change::Move),
    /// List the files that the agents of a conversation have written, or copy them
    Files(files::Files),
    /// Check that stored conversations are unaltered
    Verify(verify::Verify),
    /// Compress stored conversations, in Postgres and SQLite
    Archive(keeping::Archive),
    /// Remove conversations
    Rm(Rm),
    /// List, find and delete the long-term memory of agents
    Memory(memory::Memory),
    /// Check a team file, and list the permissions it asks for
    Check(Check),
    /// Format team files; comments stay
    Fmt(fmt::Fmt),
    /// List and revoke your trust in team files
    Trust(trust::Trust),
    /// Convert an AutoGen definition to a team file
    Import(Import),
    /// Serve teams as tools for MCP hosts, over standard input and output
    Mcp(Mcp),
    /// Serve teams over HTTP, with a web page
    Serve(serve::Serve),
    /// Make, list and revoke the tokens of a server
    Token(serve::Token),
    /// Run conversations that other commands hand over with `--detach`
    Worker(worker::Worker),
    /// Show the workers of a store, what they run, and what waits for them
    Cluster(worker::Cluster),
    /// Migrate a Postgres database of an earlier version to this one
    Migrate,
    /// Run a cluster on this machine, for development: a database, workers, and a server
    Dev(dev::Dev),
    /// Show and change your settings, such as the default model
    Config(config::Config),
    /// List the models of a provider, with limits, capabilities and prices
    Models(models::List),
    /// Count the tokens of a text
    Count(models::Count),
    /// Check this machine: keys of models, local servers, the sandbox, the store
    Doctor(Doctor),
    /// Print the JSON Schema of team files, for editors
    Schema,
    /// Print completions for a shell
    Completions(new::Completions),
    /// Print the manual page, for `man`
    Man(new::Man),
}

impl Command {
    /// The tenant whose conversations it is about, if it has the option.
    fn tenant(&self) -> Option<&str> {
        let of = match self {
            Self::Resume(args) => &args.of,
            Self::Runs(args) => &args.of,
            Self::Send(args) => &args.of,
            Self::Cancel(args) => &args.of,
            Self::Pause(args) => &args.of,
            Self::Next(args) => &args.of,
            Self::Raise(args) => &args.of,
            Self::Waiting(args) => &args.of,
            Self::Answer(args) => &args.of,
            Self::Fork(args) => &args.of,
            Self::Move(args) => &args.of,
            Self::Show(args) => &args.of,
            Self::Files(args) => &args.of,
            Self::Verify(args) => &args.of,
            Self::Archive(args) => &args.of,
            Self::Rm(args) => &args.of,
            Self::Worker(args) => &args.of,
            Self::Cluster(args) => &args.of,
            _ => return None,
        };
        Some(&of.tenant)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The team file, or `demo:NAME` for a built-in demo
    #[arg(value_parser = team_file())]
    pub(crate) team: PathBuf,

    /// The task. Default: that of the team file. `@FILE` reads it from a file, `-` from standard input, and `@@` begins a text with `@`
    pub(crate) task: Option<String>,

    #[command(flatten)]
    pub(crate) attach: Attach,

    /// Set a variable of the team file
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) vars: Vec<(String, String)>,

    #[command(flatten)]
    pub(crate) options: RunOptions,

    #[command(flatten)]
    pub(crate) budgets: Budgets,

    #[command(flatten)]
    pub(crate) detach: worker::Detach,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Mcp {
    /// The team files: each is a tool with its task and variables as arguments
    #[arg(required = true, value_parser = team_file())]
    pub(crate) teams: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) options: TeamOptions,

    #[command(flatten)]
    pub(crate) budgets: Budgets,
}

#[derive(Debug, Args)]
#[command(after_help = RESUME)]
pub(crate) struct Resume {
    /// The conversation: its id, the beginning of its id, or `last`
    pub(crate) id: String,

    /// A message, which continues a conversation that has ended; `@FILE` reads it from a file, `-` from standard input
    pub(crate) message: Option<String>,

    /// Author of the message: a participant. Default: `user`
    #[arg(long = "as", value_name = "NAME", requires = "message")]
    pub(crate) speaker: Option<String>,

    #[command(flatten)]
    pub(crate) attach: Attach,

    /// Answer the open question, instead of asking at the terminal
    #[arg(long, value_name = "TEXT", conflicts_with = "message")]
    pub(crate) answer: Option<String>,

    /// Take over the conversation from a process that hangs or is suspended; possible 30 seconds after its last heartbeat
    #[arg(long)]
    pub(crate) take_over: bool,

    /// Continue with the current team file if it has changed since the conversation began
    #[arg(long, conflicts_with = "pinned")]
    pub(crate) accept_changes: bool,

    /// Continue with the stored team even if its file has changed: that of the beginning, or the last one that was accepted
    #[arg(long)]
    pub(crate) pinned: bool,

    #[command(flatten)]
    pub(crate) options: RunOptions,

    #[command(flatten)]
    pub(crate) budgets: Budgets,

    #[command(flatten)]
    pub(crate) detach: worker::Detach,

    #[command(flatten)]
    pub(crate) of: worker::OfTenant,
}

/// What `resume --help` says after the options.
const RESUME: &str = "Limits count from now on: `--max-turns 4` allows 4 more turns, also if `max_turns` or `max_messages` of the team file ended \
     the conversation; `--max-tokens` and `--max-cost` do the same for its `max_tokens` and `max_cost`. A limit that you do not \
     give stays unchanged. After a message, the limits of the team file count from 0 again.";

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The conversation: its id, the beginning of its id, or `last`
    pub(crate) id: String,

    /// Show exactly the last request that this agent's model received; for an agent of the patterns `group_solve` and `tasks`, all its prompts and replies
    #[arg(long = "as", value_name = "AGENT")]
    pub(crate) agent: Option<String>,

    /// With `--as`: which of its model calls, counted from 1. Default: the last
    #[arg(long, value_name = "N", requires = "agent", value_parser = count::<u64>)]
    pub(crate) call: Option<u64>,

    /// Print the events as JSON; with `--as`, `--history` or `--cost`, print what that option shows as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Print Markdown
    #[arg(long, conflicts_with_all = ["json", "agent"])]
    pub(crate) markdown: bool,

    /// Layout of the conversation
    #[arg(long, value_name = "STYLE", default_value = "usual", conflicts_with_all = ["json", "agent", "markdown"])]
    pub(crate) style: Style,

    /// Show the history of every agent, each from its own point of view; with `--as`, that of one agent
    #[arg(long, conflicts_with_all = ["markdown", "style", "call"])]
    pub(crate) history: bool,

    /// Print the Nth code block of the conversation and nothing else, counted from 1
    #[arg(long, value_name = "N", conflicts_with_all = ["json", "markdown", "style", "agent", "history", "cost", "side_by_side"], value_parser = count::<u64>)]
    pub(crate) code: Option<u64>,

    /// Show usage and cost by agent, purpose and model
    #[arg(long, conflicts_with_all = ["markdown", "style", "agent", "history", "side_by_side"])]
    pub(crate) cost: bool,

    /// Show the histories of all agents side by side
    #[arg(long, conflicts_with_all = ["json", "markdown", "style", "agent", "history"])]
    pub(crate) side_by_side: bool,

    #[command(flatten)]
    pub(crate) of: worker::OfTenant,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Nothing of a conversation is left in the store: events, messages, large results and stored files. Forks of it keep their copies."
)]
pub(crate) struct Rm {
    #[command(flatten)]
    pub(crate) which: keeping::Which,

    /// With `--older-than`: also those that wait for a person or for a worker, or are paused
    #[arg(long, requires = "older_than", conflicts_with = "ids")]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) of: worker::OfTenant,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The team files, or `demo:NAME` for a built-in demo; `-` reads standard input
    #[arg(required = true, value_parser = team_file())]
    pub(crate) teams: Vec<PathBuf>,

    /// Set a variable of the team files
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) vars: Vec<(String, String)>,

    /// Print one line of JSON for each file: its contents, its mistakes, and the permissions it asks for
    #[arg(long)]
    pub(crate) json: bool,

    /// Print the findings in all files as one SARIF 2.1.0 document, for code hosts and editors
    #[arg(long, conflicts_with = "json")]
    pub(crate) sarif: bool,

    /// Exit with code 2 for warnings, too
    #[arg(long)]
    pub(crate) strict: bool,

    /// Print the most that a run can use, and an estimate: model calls, tokens and money, by agent and chat. Nothing is sent
    #[arg(long)]
    pub(crate) price: bool,

    /// With `--price`: the model of all agents, as `provider:model`
    #[arg(short, long, value_name = "PROVIDER:MODEL", requires = "price")]
    pub(crate) model: Option<String>,

    /// Draw the team: participants, who can speak after whom, nested chats, tools, people, and what ends each chat. `--graph` alone means `svg`
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "svg", conflicts_with_all = ["json", "sarif", "price"])]
    pub(crate) graph: Option<GraphFormat>,

    /// With `--graph`: the file to write. Default: standard output
    #[arg(short, long, value_name = "FILE", requires = "graph")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) permits: Permits,
}

/// How a team is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// A picture, for browsers and documents
    Svg,
    /// A flowchart in the language of Mermaid
    Mermaid,
    /// A graph in the language of Graphviz
    Dot,
}

#[derive(Debug, Args)]
pub(crate) struct Import {
    /// Component JSON of AutoGen Studio or AgentChat, or agents and chats of AutoGen 0.2 as JSON
    pub(crate) definition: PathBuf,

    /// The team file to write. Default: standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Overwrite an existing file
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// A team file: show its endpoints, too
    #[arg(value_parser = team_file())]
    pub(crate) team: Option<PathBuf>,

    /// Set a variable of the team file
    #[arg(long = "var", value_name = "NAME=VALUE", requires = "team", value_parser = variable)]
    pub(crate) vars: Vec<(String, String)>,

    /// Show the capabilities of this model, or of each in a list with commas
    #[arg(short, long, value_name = "PROVIDER:MODEL")]
    pub(crate) model: Option<String>,

    /// Test the capabilities of the model, or of each model of the team: three short calls, a few hundred tokens
    #[arg(long)]
    pub(crate) probe: bool,

    #[command(flatten)]
    pub(crate) permits: Permits,
}

/// Any path, the empty one too: an environment variable that is empty is as good as none.
fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}
