//! Teams.

mod limits;
mod models;
mod permission;
mod reach;
mod received_media;
mod uses;
mod work_dir;

use std::collections::BTreeMap;

use polylogue::layers::parse::ToolBlocks;
use polylogue_config::{At, Config, NewName, Switch};
use polylogue_core::{Name, TaskFrom};
use polylogue_models::{DatedPrices, FailureClass, FallbackReturn, Prices, Script};
use polylogue_tools::command::Declaration;
use polylogue_tools::http;

use crate::agent::Agent;
use crate::at_name::AtName;
use crate::calls::{ApiDocument, CallKeys};
use crate::chat::{Chat, InnerChat, TaskFromKey};
use crate::command::CommandKeys;
use crate::compaction::CompactionKeys;
use crate::endpoint::Endpoint;
use crate::limits::Limits;
use crate::mcp::McpServers;
use crate::memory::TeamMemory;
use crate::model_list::{FailureKey, ModelList, ReturnText};
use crate::outline::Outline;
use crate::output_blocks::OutputBlock;
use crate::pattern::{Media, Pattern};
use crate::price::PriceKey;
use crate::reasoning::Example;
use crate::sandbox::SandboxSettings;
use crate::script::Steps;
use crate::sources::Sources;
use crate::text::{OfOutermost, OfTeam, PathText, Template, VarText};
use crate::web::Web;
use crate::working::WorkFile;
pub use permission::Usage;
pub use received_media::ReceivedMedia;

/// A team: its agents, its chats, and the task.
///
/// Texts can contain `{{name}}` for the variables of `vars`. System messages, prompts and openings can also contain
/// `{{task}}`, the task of the chat in which they are used.
#[derive(Debug, Clone, PartialEq, Config)]
pub struct Team {
    /// Name of the team and of its outermost chat.
    #[key(as = NewName<OfOutermost>)]
    pub name: Name,
    /// One-line description for lists of teams.
    #[key(default = String::new())]
    pub description: String,
    /// Task of the team. A task on the command line replaces it.
    #[key(none = "none: the command line must give one")]
    pub task: Option<String>,
    /// Model of every agent that sets none, as `provider:model`, or a list: the first, and those asked when it fails.
    /// `--model` replaces it and the model of every agent.
    #[key(as = Option<At<ModelList>>, none = "`--model`, or the script", nonempty, unique)]
    pub model: Option<At<String>>,
    /// Failures after which the next model of a list is asked, once the model's own retries are used up. The key of a
    /// team within a team is ignored.
    #[key(as = At<Vec<FailureKey>>, default = FailureClass::DEFAULT.to_vec(), unique)]
    pub fallback: At<Vec<FailureClass>>,
    /// When the first model of a list is asked again after another one replied: in the next `turn` of the agent, `never` in this
    /// conversation, or in a turn that begins a time such as `10 min` after the first reply of another model. The other model keeps
    /// the conversation in its prompt cache. The key of a team within a team is ignored.
    #[key(as = At<ReturnText>, default = FallbackReturn::Turn)]
    pub fallback_return: At<FallbackReturn>,
    /// When and how histories of agents that set no `compaction` are replaced by a summary. A team within a team has its own.
    #[key(none = "at 80 % of the context window, if it is known")]
    pub compaction: Option<At<Switch<CompactionKeys>>>,
    /// File in which replies of models are kept, for development: the reply to exactly the same request is taken from
    /// it and costs nothing. It lies below the folder of this file, and is created by the first run. `--cache` replaces
    /// it. The key of a team within a team is ignored.
    #[key(as = Option<At<PathText>>, none = "replies are not kept")]
    pub cache: Option<At<String>>,
    /// Variables by name. `{{name}}` in a text of this file is replaced by the value, once and literally. `--var
    /// NAME=VALUE` replaces a value.
    #[key(as = BTreeMap<String, At<VarText>>)]
    pub vars: BTreeMap<String, At<String>>,
    /// Model endpoints by name. The name of a custom endpoint is the provider before the `:` of a model; the name of a
    /// known provider changes the settings of that provider.
    pub endpoints: BTreeMap<String, At<Endpoint>>,
    /// Model prices by `provider:model`. They count toward cost limits, and replace lower list prices.
    #[key(as = BTreeMap<String, PriceKey>)]
    pub prices: BTreeMap<String, DatedPrices>,
    /// Agents of the team. A team that consists of other teams needs none.
    pub agents: Vec<Agent>,
    /// Outermost chat, with which a run begins. Its summary is the result of the run.
    pub chat: Chat,
    /// Inner chats. Each takes part in other chats like an agent and replies with its summary.
    pub chats: Vec<InnerChat>,
    /// Teams in other files. Each takes part in chats like an agent and replies with its summary.
    pub teams: Vec<SubTeam>,
    /// Sandbox for code and `commands`, with its limits.
    pub sandbox: SandboxSettings,
    /// Files that are copied into the work directory when a conversation begins. Paths are relative to the folder of
    /// this file and must lie below it, and not be hidden as `.env` is.
    #[key(unique)]
    pub files: Vec<At<WorkFile>>,
    /// Commands that agents can call as tools. They run in the sandbox, without a shell.
    #[key(as = Vec<AtName<CommandKeys>>)]
    pub commands: Vec<At<Declaration>>,
    /// MCP servers by name, or the path of a JSON document with `mcpServers`. Agents use their tools with `tools:
    /// [{mcp: NAME}]`. Local servers run outside the sandbox; every server must also be allowed on the command line.
    #[key(default = McpServers::default())]
    pub mcp: At<McpServers>,
    /// HTTP requests that agents can call as tools. Their hosts must also be allowed on the command line.
    #[key(as = Vec<AtName<CallKeys>>)]
    pub calls: Vec<At<http::Declaration>>,
    /// OpenAPI services by name. Their operations are tools. Their hosts must also be allowed on the command line.
    pub openapi: BTreeMap<String, At<ApiDocument>>,
    /// Pages, search engine and fetch settings of the tools `web_search` and `web_fetch`.
    pub web: Web,
    /// Long-term memory of agents that set `memory`.
    pub memory: At<TeamMemory>,
    /// Limits of the whole run. Those of a team within a team hold for each run of that team, but for its `depth` and what
    /// people are asked at a limit, which are ignored.
    pub limits: Limits,
    /// Scripted model replies, which replace the models in tests and demonstrations. The nth step of an agent is the
    /// reply to its nth model call.
    #[key(as = Steps)]
    pub script: Script,
    /// Speed of scripted replies in words per second. `0` prints them at once.
    #[key(none = "0", range = 0..=10_000)]
    pub script_pace: Option<f64>,
    /// What it was read from.
    #[key(skip)]
    pub(crate) sources: Sources,
}

/// A team in another file. It takes part in chats like an agent.
#[derive(Debug, Clone, PartialEq, Config)]
#[config(name = "TeamFile")]
pub struct SubTeam {
    /// Name of the participant in this team.
    #[key(as = At<NewName<OfTeam>>)]
    pub name: At<Name>,
    /// Path of the team file, relative to the folder of this file.
    #[key(as = At<PathText>)]
    pub file: At<String>,
    /// Part of the surrounding conversation that becomes the team's task.
    #[key(as = TaskFromKey, default = TaskFrom::Last)]
    pub task_from: TaskFrom,
    /// The team of the file.
    #[key(skip)]
    pub team: Box<Team>,
}

/// A team without anything, which stands for one that could not be read.
impl Default for Team {
    fn default() -> Self {
        Self::hole()
    }
}

impl Team {
    /// Its participants by name.
    pub(crate) fn outline(&self) -> Outline<'_> {
        let (chats, teams) = (self.chats.iter(), self.teams.iter());
        Outline::of(&self.agents, chats.map(|chat| &chat.name), teams.map(|sub| &sub.name))
    }

    /// All chats with their names, the outermost first.
    pub(crate) fn all_chats(&self) -> impl Iterator<Item = (&Name, &Chat)> {
        self.chats_as(&self.name)
    }

    /// The inner chats whose names could be read.
    pub(crate) fn named_chats(&self) -> impl Iterator<Item = &InnerChat> {
        self.chats.iter().filter(|inner| inner.name.ok)
    }

    /// All chats but those whose names could not be read.
    pub(crate) fn checked_chats(&self) -> impl Iterator<Item = (&Name, &Chat)> {
        let inner = self.named_chats().map(|inner| (&*inner.name, &inner.chat));
        std::iter::once((&self.name, &self.chat)).chain(inner)
    }

    /// All chats when the outermost one is called `name`, as that of a team within a team is.
    pub(crate) fn chats_as<'t>(&'t self, name: &'t Name) -> impl Iterator<Item = (&'t Name, &'t Chat)> {
        let inner = self.chats.iter().map(|inner| (&*inner.name, &inner.chat));
        std::iter::once((name, &self.chat)).chain(inner)
    }

    /// The media of its chats, without those of the teams within it.
    pub(crate) fn media_mut(&mut self) -> impl Iterator<Item = &mut At<Media>> {
        let inner = self.chats.iter_mut().map(|inner| &mut inner.chat);
        std::iter::once(&mut self.chat).chain(inner).flat_map(Chat::media_mut)
    }

    /// Returns the prices of the file. One counts for all names of its model, as those of a user do ([`Prices::own`]).
    pub fn own_prices(&self) -> Prices {
        Prices::new(self.prices.clone())
    }

    /// Returns the name and description of every chat of the team, the outermost first: its participants and its pattern.
    ///
    /// ```
    /// use polylogue_team::{Overrides, parse};
    /// let text = "{name: t, agents: [{name: Ann}, {name: Bob}], chat: {participants: [Ann, Bob], stop: {max_turns: 4}}}";
    /// let team = parse(text, "t.yaml", &Overrides::default())?.team;
    /// let (chat, words) = &team.chats_in_words()[0];
    /// assert_eq!((chat.as_str(), words.as_str()), ("t", "Ann and Bob, in turn"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn chats_in_words(&self) -> Vec<(Name, String)> {
        self.all_chats().map(|(name, chat)| (name.clone(), chat.describe(name))).collect()
    }

    /// Returns the text of the outermost file that the team was read from.
    pub fn text(&self) -> Option<&str> {
        self.sources.files.get(std::path::Path::new(&self.sources.file)).map(String::as_str)
    }

    /// Gives the team another task, as that of the command line.
    pub fn set_task(&mut self, task: String) {
        self.sources.overrides.task = Some(task.clone());
        self.task = Some(task);
    }

    /// The texts of the messages before the first turn, which can quote the task: those of `opening`, and that of a role-play.
    ///
    /// ```
    /// use polylogue_team::{Overrides, parse};
    /// let text = "{name: t, agents: [{name: Ann}], chat: {participants: [Ann], opening: 'Begin: {{task}}', stop: {max_turns: 1}}}";
    /// let team = parse(text, "t.yaml", &Overrides::default())?.team;
    /// assert_eq!(team.opening_texts()[0].fill("count"), "Begin: count");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn opening_texts(&self) -> Vec<&Template> {
        let of_roles = match &self.chat.pattern {
            Pattern::RolePlay(roles) => roles.texts.as_ref().and_then(|texts| texts.opening.as_ref()),
            _ => None,
        };
        self.chat.opening.0.iter().map(|line| &line.text).chain(of_roles).collect()
    }

    /// Returns the examples that the model of the agent `name` reads before every conversation: what is asked, and what it says.
    pub fn examples_of(&self, name: &Name) -> Option<&[Example]> {
        let own = self
            .agents
            .iter()
            .find(|agent| agent.name == *name)
            .and_then(Agent::model)
            .map(|keys| &**keys.examples);
        own.or_else(|| self.teams.iter().find_map(|sub| sub.team.examples_of(name)))
    }

    /// Returns the parser of the output blocks of the agent `name`, by which its model receives what it wrote before; `None` if it
    /// has none.
    pub fn output_blocks_of(&self, name: &Name) -> Option<ToolBlocks> {
        let own = self.agents.iter().find(|agent| agent.name == *name).and_then(Agent::model);
        match own {
            Some(keys) if keys.output_blocks.is_empty() => None,
            Some(keys) => Some(ToolBlocks::new(keys.output_blocks.iter().map(OutputBlock::build))),
            None => self.teams.iter().find_map(|sub| sub.team.output_blocks_of(name)),
        }
    }

    /// What the agent, chat or team `name` is for, in the words of the file.
    pub(crate) fn description_of(&self, name: &Name) -> &str {
        let agents = self.agents.iter().map(|agent| (&*agent.name, &*agent.description));
        let chats = self.chats.iter().map(|chat| (&*chat.name, &*chat.description));
        let teams = self.teams.iter().map(|sub| (&*sub.name, &*sub.team.description));
        agents
            .chain(chats)
            .chain(teams)
            .find(|(of, _)| *of == name)
            .map_or("", |(_, description)| description)
    }
}
