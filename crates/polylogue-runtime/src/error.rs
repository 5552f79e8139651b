//! Errors of preparing teams and of running their conversations.

mod files_place;
mod fork;

use std::path::PathBuf;

use polylogue_core::{Fault, Features, LogId, ModelError, Name, StoreError};
use polylogue_models::CassetteError;
use polylogue_team::Diagnostics;

pub use self::files_place::FilesPlace;
pub use self::fork::ForkError;
use crate::RequestedPermission;
use crate::permission_text::{flags, list};

/// A result with the runtime's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a team could not be prepared, or a conversation not be opened, changed or run. [`fault`](Self::fault) says
/// who can fix it, [`hint`](Self::hint) how.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A run failed, or a team cannot be built.
    #[error(transparent)]
    Run(#[from] polylogue_core::Error),
    /// A model that the team needs cannot be used.
    #[error("{0}")]
    Model(ModelError),
    /// A recording of model calls cannot be read or written.
    #[error(transparent)]
    Recording(#[from] CassetteError),
    /// The team file has mistakes.
    #[error("{0}")]
    Team(Diagnostics),
    /// Agents of the team have no model, and it has no script.
    #[error("no model is set for {}: `{team}` names none and has no script, and there is no default model", listed(.who))]
    NoModel {
        /// The team.
        team: Name,
        /// The agents without a model.
        who: Vec<Name>,
    },
    /// The team's script was asked for, and there is none.
    #[error("`{team}` has no script")]
    NoScript {
        /// The team.
        team: Name,
    },
    /// The team asks for more than it was allowed.
    #[error("`{team}` requests permissions that were not granted:\n{}", list(.missing))]
    NotAllowed {
        /// The team.
        team: Name,
        /// What was not allowed.
        missing: Vec<RequestedPermission>,
    },
    /// MCP servers of the team were not allowed.
    #[error("the MCP servers of `{team}` are not allowed")]
    ServersNotAllowed {
        /// The team.
        team: Name,
    },
    /// An agent needs an MCP server that neither the team nor the user declares.
    #[error("`{team}` needs the MCP server `{server}`, which is not declared")]
    ServerMissing {
        /// The team.
        team: Name,
        /// The server.
        server: String,
    },
    /// The user declares MCP servers, and no agent uses any.
    #[error("no agent of `{team}` has tools of MCP servers")]
    ServersUnused {
        /// The team.
        team: Name,
    },
    /// The user's document of MCP servers cannot be used.
    #[error("no MCP servers are in `{}`: {why}", .file.display())]
    BadServers {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Values of variables change an MCP server, which all conversations of the prepared team share.
    #[error("a variable changes an MCP server of `{team}`, which all its conversations share")]
    ServersChanged {
        /// The team.
        team: Name,
    },
    /// The team file was changed after the team was prepared.
    #[error("the team file of `{team}` was changed since it was read")]
    TeamChanged {
        /// The team.
        team: Name,
    },
    /// The value of a variable of the team is wrong.
    #[error("the inputs of `{team}`: {why}")]
    Inputs {
        /// The team.
        team: Name,
        /// All that is wrong.
        why: String,
    },
    /// Conversations in JSON lines and in Postgres have no long-term memory next to them.
    #[error("`{place}` keeps conversations {form}, which have no memory")]
    NoMemory {
        /// The folder or the database.
        place: String,
        /// The format in which conversations are kept there.
        form: &'static str,
    },
    /// The long-term memory of agents cannot be read.
    #[error("{why}")]
    Memory {
        /// The error message of the memory.
        why: String,
    },
    /// The store has no conversation yet, or none of a tenant.
    #[error("{}", empty(.tenant.as_deref()))]
    Empty {
        /// The tenant, unless it is that of the command line.
        tenant: Option<String>,
    },
    /// No conversation has this id, or an id that begins with this text.
    #[error("there is no conversation `{text}`")]
    Unknown {
        /// The id, or its beginning.
        text: String,
    },
    /// Several ids begin with this text.
    #[error("`{text}` is the beginning of several: {}", quoted(.ids))]
    Ambiguous {
        /// The beginning.
        text: String,
        /// Some of the ids.
        ids: Vec<LogId>,
    },
    /// The conversation was not begun by a team: only the program that began it knows its agents.
    #[error("the conversation `{id}` was started by a program with the library, which defines its agents")]
    NoTeam {
        /// The conversation.
        id: LogId,
    },
    /// The team that is stored with a conversation cannot be read.
    #[error("the team of the conversation `{id}` cannot be read: {why}")]
    BadTeam {
        /// The conversation.
        id: LogId,
        /// What is wrong with it.
        why: String,
    },
    /// No model speaks for an agent.
    #[error("no model speaks for `{agent}`")]
    NoModelFor {
        /// The name, as it was given.
        agent: String,
        /// The agents with a model.
        agents: Vec<Name>,
    },
    /// An agent has not made a model call with this number.
    #[error("`{who}` has made {calls} model call{}", if *.calls == 1 { "" } else { "s" })]
    NoCall {
        /// The agent.
        who: Name,
        /// The number of calls that it has made.
        calls: u64,
    },
    /// An agent's request cannot be made again: the team does not have the agent any more.
    #[error("what `{who}` was sent cannot be shown: the team has changed and has no such agent")]
    NoSuchAgentNow {
        /// The agent.
        who: Name,
    },
    /// The conversation is a copy from elsewhere, which can only be read.
    #[error("the conversation `{id}` was imported, and can only be read")]
    Imported {
        /// The conversation.
        id: LogId,
    },
    /// A text is not a log that can be imported.
    #[error("the log cannot be imported: {why}")]
    BadImport {
        /// What is wrong with it.
        why: String,
    },
    /// A closed conversation is needed, and this one is not.
    #[error("the conversation `{id}` is not over")]
    NotClosed {
        /// The conversation.
        id: LogId,
        /// The participant that waits for a person's answer, if anyone does.
        asks: Option<Name>,
    },
    /// The conversation has not begun.
    #[error("the conversation `{id}` has not begun{}", if *.is_queued { ": it waits for a worker" } else { "" })]
    NotBegun {
        /// The conversation.
        id: LogId,
        /// Whether a worker is to begin it.
        is_queued: bool,
    },
    /// This process has released the conversation.
    #[error("the conversation `{id}` was released")]
    Released {
        /// The conversation.
        id: LogId,
    },
    /// A message is not in the log: the log could not be written.
    #[error("the message to `{id}` was not sent: its log could not be written")]
    NotSent {
        /// The conversation.
        id: LogId,
    },
    /// The conversation asks nothing.
    #[error("there is no open question in `{id}`")]
    NoQuestion {
        /// The conversation.
        id: LogId,
    },
    /// A conversation cannot be forked at this event.
    #[error("`{id}` cannot be forked before event {event}: {why}")]
    BadFork {
        /// The conversation.
        id: LogId,
        /// The first event that would not be copied.
        event: u64,
        /// The reason.
        why: ForkError,
    },
    /// A conversation cannot continue with a team.
    #[error("`{id}` cannot continue with `{team}`, which has no `{who}`")]
    BadMove {
        /// The conversation.
        id: LogId,
        /// The team.
        team: Name,
        /// The agent that is needed: a participant, or an agent whose turn is open.
        who: Name,
    },
    /// The store is no queue.
    #[error("the conversations in `{place}` cannot be shared by workers")]
    NoQueue {
        /// The store.
        place: String,
    },
    /// This process does not offer what the conversation needs.
    #[error("`{id}` needs {missing}, which this machine does not offer")]
    NotOffered {
        /// The conversation.
        id: LogId,
        /// The features that are not offered.
        missing: Features,
    },
    /// The folder in which all machines have the files of conversations is not there.
    #[error("`{}`, in which all machines have the files of conversations, is no folder here", .0.display())]
    NoVolume(PathBuf),
    /// The folder of the user's in which the agents of a conversation work is not there any more.
    #[error("the folder `{}`, in which the agents work, does not exist", .0.display())]
    NoProject(PathBuf),
    /// The files of a conversation are in a volume, or on a machine, that is not the one of this process.
    #[error("the files of `{id}` are {place}")]
    FilesElsewhere {
        /// The conversation.
        id: LogId,
        /// Where they are.
        place: FilesPlace,
    },
    /// The store is of one machine, and has no budgets that processes share.
    #[error("the conversations in `{place}` have no shared budgets")]
    NoSharedBudgets {
        /// The store.
        place: String,
    },
    /// There is no shared budget of this name.
    #[error("there is no shared budget `{name}`")]
    UnknownBudget {
        /// The name.
        name: String,
    },
    /// A worker cannot prepare the team of a conversation.
    #[error("the team of `{id}` cannot be prepared: {why}")]
    Unprepared {
        /// The conversation.
        id: LogId,
        /// The reason, with what can be done.
        why: String,
    },
    /// A file or folder cannot be read or written.
    #[error("`{}` cannot be {what}: {why}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was tried: `made`, `copied`, `removed`, `read`, `restored`.
        what: &'static str,
        /// The system's error message.
        why: String,
    },
}

impl Error {
    /// The hint on how to use a real model.
    pub const MODEL_HINT: &str = "use `--model openai:gpt-4o-mini` with `OPENAI_API_KEY` set, or `--model ollama:llama3.2` with Ollama running";

    /// Returns who can fix the error.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Run(error) => error.fault(),
            Self::Model(error) => error.fault(),
            Self::Recording(error) => error.fault(),
            Self::BadTeam { .. } | Self::Memory { .. } | Self::Io { .. } | Self::NotSent { .. } => {
                Fault::System
            }
            _ => Fault::Config,
        }
    }

    /// Returns how to fix the error.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Run(error) => return error.hint(),
            Self::Model(error) => return polylogue_core::Error::Model(error.clone()).hint(),
            Self::Recording(error) => return error.hint(),
            Self::NoModel { .. } => {
                format!("{}; `polylogue config set model openai:gpt-4o-mini` sets a default", Self::MODEL_HINT)
            }
            Self::NoScript { .. } => "add a `script`, or leave out `--offline` and use a model".into(),
            Self::NotAllowed { missing, .. } => flags(missing),
            Self::ServersNotAllowed { .. } => {
                "if you trust it, add `--allow mcp,env`, or `--trust` to remember it".into()
            }
            Self::ServerMissing { .. } => "name a file that declares it, with `--mcp FILE`".into(),
            Self::ServersUnused { .. } => {
                "add `{mcp: NAME}` to the `tools` of an agent, or leave out `--mcp`".into()
            }
            Self::ServersChanged { .. } => "give that server in the team file, without variables".into(),
            Self::Inputs { .. } => "the team file lists them under `vars`".into(),
            Self::TeamChanged { .. } => "prepare it again: restart the program that runs it".into(),
            Self::NoMemory { .. } => "name a file for SQLite with `--store`".into(),
            Self::NoQueue { .. } => "name a SQLite file or a database with `--store`: `runs.db`, or `postgres://USER@HOST/DATABASE`".into(),
            Self::NotOffered { .. } => "run it where it is, or name what this machine has with `--offers`".into(),
            Self::BadMove { id, who, .. } => {
                format!(
                    "keep `{who}` in the team file; `polylogue fork {id}` begins another conversation with its past"
                )
            }
            Self::NoVolume(_) => "mount it, or make it; its path is the same on all machines".into(),
            Self::NoProject(_) => "put it back at this path, or name another one with `--dir`".into(),
            Self::FilesElsewhere { id, place } => place.hint(id),
            Self::NoSharedBudgets { .. } => {
                "name a database with `--store`, or give the budget of this process alone, without a name"
                    .into()
            }
            Self::UnknownBudget { .. } => {
                "`polylogue cluster` lists them; `--budget NAME=20` makes one of 20 dollars".into()
            }
            Self::Empty { tenant } => beginner(tenant.as_deref()),
            Self::Unknown { .. } => "`polylogue runs` lists them".into(),
            Self::NoTeam { id } => format!("`polylogue show {id}` shows what was said"),
            Self::Imported { .. } => {
                "its log may not be what a team has said and done; begin a new run".into()
            }
            Self::BadImport { .. } => "export it again where it was made".into(),
            Self::NoModelFor { agents, .. } => {
                let names: Vec<_> = agents.iter().map(|name| format!("`{name}`")).collect();
                let verb = if names.len() == 1 { "is" } else { "are" };
                format!("there {verb} {}", names.join(", "))
            }
            Self::NoSuchAgentNow { .. } => {
                "`--json` without `--as` has its replies, and `--cost` what it cost".into()
            }
            Self::NotClosed { id, asks: Some(who) } => {
                format!("`polylogue resume {id} --answer TEXT` answers for {who}, who is asked")
            }
            Self::NotClosed { id, asks: None } => {
                format!("`polylogue resume {id}` continues it; say more when it has ended")
            }
            Self::NotBegun { id, is_queued: false } => format!("`polylogue resume {id}` begins it"),
            Self::NotBegun { id, is_queued: true } => format!(
                "give it this when a worker has begun it, which `polylogue cluster` shows; `polylogue cancel {id}` takes it back"
            ),
            Self::Released { .. } => "open it again".into(),
            Self::Io { what: "made", .. } => "choose another place with `--store`".into(),
            Self::BadFork { id, why, .. } => return why.hint(id),
            _ => return None,
        })
    }

    /// Returns whether the request is wrong, and not what was done about it: the exit code 2 of the program, 4xx of a server.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Run(_) => false,
            Self::Model(_) => true,
            _ => matches!(self.fault(), Fault::Config),
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Run(error.into())
    }
}

impl From<ModelError> for Error {
    fn from(error: ModelError) -> Self {
        Self::Model(error)
    }
}

impl From<Diagnostics> for Error {
    fn from(error: Diagnostics) -> Self {
        Self::Team(error)
    }
}

/// Who begins conversations of the tenant.
fn beginner(tenant: Option<&str>) -> String {
    match tenant {
        None => "`polylogue run` begins one".to_owned(),
        Some(tenant) => format!(
            "a server begins conversations of other tenants, for their tokens: `polylogue token new NAME --tenant {tenant}` makes one"
        ),
    }
}

fn empty(tenant: Option<&str>) -> String {
    tenant.map_or_else(
        || "there are no conversations yet".into(),
        |tenant| format!("the tenant `{tenant}` has no conversations"),
    )
}

fn quoted(ids: &[LogId]) -> String {
    ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ")
}

/// `Ann`, `Bob` and how many more there are.
fn listed(who: &[Name]) -> String {
    const SHOWN: usize = 3;
    let shown = who.iter().take(SHOWN).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    match who.len().checked_sub(SHOWN) {
        None | Some(0) => shown,
        Some(more) => format!("{shown} and {more} more"),
    }
}
