//! Agents.

mod model;

use polylogue_config::{At, Config, NewName, Switch};
use polylogue_core::Name;

use crate::approval::ApprovalRule;
use crate::human_input::{DefaultAnswer, HumanInputMode, TerminateOn};
use crate::limits::UsageLimits;
use crate::memory::AgentMemory;
use crate::nested_chats::NestedChat;
use crate::output_blocks::RunsOutputBlocks;
use crate::text::OfAgent;
use crate::tooling::{RunTool, ToolLimits};
use crate::working::CodeExecution;
pub use model::{ModelKeys, View};

/// An agent: a participant that replies by a model, a person or a program.
#[derive(Debug, Clone, PartialEq, Config)]
pub struct Agent {
    /// Name of the agent, in any script: a letter, then letters, digits, `_`, `-`, `'`, `’`, `·` and single spaces; at
    /// most 64 characters.
    #[key(as = At<NewName<OfAgent>>)]
    pub name: At<Name>,
    /// One-line description of what the agent is for. Other participants and model-based speaker selection see it.
    #[key(default = String::new())]
    pub description: String,
    /// Who replies: a model, a person or neither.
    #[key(flatten)]
    pub kind: AgentKind,
    /// Limits of the agent in the whole run: on its model calls and all within its turns. When one is reached, the chat
    /// ends in which the agent has its turn.
    #[key(default = UsageLimits::default())]
    pub limits: At<UsageLimits>,
    /// Limits on each call of the agent's tools.
    #[key(default = ToolLimits::default())]
    pub tool_limits: At<ToolLimits>,
    /// Tools that the agent executes when other agents call them (see `suggests_tools`).
    #[key(unique)]
    pub executes_tools: Vec<RunTool>,
    /// Output blocks of received messages that the agent executes.
    #[key(none = "none")]
    pub runs_output_blocks: Option<RunsOutputBlocks>,
    /// Executes code blocks in received messages. `true` executes Python, shell and JavaScript.
    pub code_execution: Switch<CodeExecution>,
    /// Condition under which a person must approve a tool call before the agent executes it, for itself or for others.
    #[key(none = "never; always for tools that run programs without a sandbox")]
    pub approval: Option<At<ApprovalRule>>,
    /// When a person is asked for input before the agent replies.
    #[key(none = "never")]
    pub human_input: Option<HumanInputMode>,
    /// Answer that counts when the agent's person has not answered in time. For questions for approval it counts only if it
    /// rejects, such as `no`, or ends the conversation, as `exit` does.
    #[key(none = "none: a question waits without a limit")]
    pub default_answer: Option<At<DefaultAnswer>>,
    /// Maximum number of consecutive replies without human input.
    #[key(none = "100 with `human_input` or `terminate_on`, otherwise none", range = 0..=1_000_000)]
    pub max_auto_replies: Option<u32>,
    /// Received message that ends the chat, unless the agent's person continues it. A text alone must be the whole
    /// message.
    #[key(none = "`TERMINATE` with `human_input` or `max_auto_replies`", nonempty)]
    pub terminate_on: Option<TerminateOn>,
    /// Reply if nothing else produces one. An empty text says nothing, and the chat continues, as in AutoGen. Without
    /// this key, the chat ends when an agent without a model and without a person has no reply.
    #[key(none = "none")]
    pub default_reply: Option<String>,
    /// Lets the agent's person clear histories with `clear history`, `clear history NAME` and `clear history 5`.
    #[key(default = false)]
    pub clear_command: At<bool>,
    /// Nested chats that reply for the agent. The first whose `when` matches the message replies.
    #[key(nonempty)]
    pub nested_chats: Vec<NestedChat>,
}

/// Who replies for an agent.
#[derive(Debug, Clone, PartialEq, Config)]
pub enum AgentKind {
    /// A model.
    #[when(noun = "an agent with a model")]
    Model(Box<ModelKeys>),
    /// A person.
    #[when(human = true, noun = "a person", hint = "`human_input` lets a person reply for a model")]
    Human(HumanKeys),
    /// Neither: it executes tools and code of others, or begins nested chats.
    #[when(model = "none", noun = "an agent without a model")]
    Executor(ExecutorKeys),
}

/// The key of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Config)]
pub struct HumanKeys {
    /// Makes the agent a person, who is asked for input in each turn.
    #[key(none = "`false`")]
    pub human: bool,
}

/// The key of an agent without a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Config)]
pub struct ExecutorKeys {
    /// `none` for an agent without a model.
    pub model: NoModel,
}

/// The word `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Config)]
pub enum NoModel {
    /// The agent has no model.
    None,
}

impl Agent {
    /// Returns the keys that only an agent with a model has.
    pub const fn model(&self) -> Option<&ModelKeys> {
        match &self.kind {
            AgentKind::Model(keys) => Some(keys),
            AgentKind::Human(_) | AgentKind::Executor(_) => None,
        }
    }

    /// The settings of its memory, if it has one.
    pub(crate) fn memory(&self) -> Option<&AgentMemory> {
        self.model()?.memory.on().filter(|memory| memory.is_used())
    }

    /// Returns whether the agent is a person.
    pub const fn is_human(&self) -> bool {
        matches!(self.kind, AgentKind::Human(_))
    }

    /// The keys of what replies besides its model or its person, or ends the chat for it, each with whether it is given.
    fn layers(&self) -> [(&'static str, bool); 9] {
        [
            ("human_input", self.human_input.is_some()),
            ("max_auto_replies", self.max_auto_replies.is_some()),
            ("terminate_on", self.terminate_on.is_some()),
            ("executes_tools", !self.executes_tools.is_empty()),
            ("code_execution", self.code_execution.on().is_some()),
            ("runs_output_blocks", self.runs_output_blocks.is_some()),
            ("nested_chats", !self.nested_chats.is_empty()),
            ("default_reply", self.default_reply.is_some()),
            ("clear_command", *self.clear_command),
        ]
    }

    /// Whether it has several ways to reply.
    pub(crate) fn is_layered(&self) -> bool {
        self.layers().iter().any(|(_, given)| *given)
    }

    /// Whether it can leave a chat, which continues without it: a person who says `exit`. With other ways to reply, that ends the chat.
    pub(crate) fn can_leave(&self) -> bool {
        self.is_human() && !self.is_layered()
    }

    /// Whether it can start background tasks.
    pub(crate) fn starts_background(&self) -> bool {
        self.model().is_some_and(|keys| keys.agent_tools.iter().any(|tool| tool.background))
    }

    /// What only a model has, if it replies by nothing else and in one step.
    pub(crate) fn plain(&self) -> Option<&ModelKeys> {
        self.model().filter(|_| self.why_not_plain().is_none())
    }

    /// Why it cannot do what needs a reply by a model alone.
    pub(crate) fn why_not_plain(&self) -> Option<String> {
        let keys = match &self.kind {
            AgentKind::Model(keys) => keys,
            AgentKind::Human(_) => return Some("it is a person".to_owned()),
            AgentKind::Executor(_) => return Some("it has no model".to_owned()),
        };
        let own =
            [("reasoning", keys.reasoning.is_some()), ("output_blocks", !keys.output_blocks.is_empty())];
        let (key, _) = self.layers().into_iter().chain(own).find(|(_, given)| *given)?;
        Some(format!("its `{key}` can also reply"))
    }

    /// Whether a person is asked for input in its turns.
    pub(crate) fn asks_person(&self) -> bool {
        self.human_input.map_or(self.is_human(), |mode| mode != HumanInputMode::Never)
    }

    /// Whether it replies by tools, code, nested chats or a fixed text.
    pub(crate) fn replies_otherwise(&self) -> bool {
        let runs = !self.executes_tools.is_empty()
            || self.code_execution.on().is_some()
            || self.runs_output_blocks.is_some();
        runs || !self.nested_chats.is_empty() || self.default_reply.is_some()
    }
}
