//! Two roles that solve a task by talking.

use polylogue::tasks::RolePlay as Library;
use polylogue_config::{At, Config};
use polylogue_core::Name;

use crate::reasoning::ChoiceTexts;
use crate::text::{AgentRef, MemberRef, Template};

/// Role-play as in CAMEL: two roles solve a task by talking; one instructs, the other solves.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "RolePlay")]
pub struct RolePlay {
    /// Role that instructs: an agent, or a mapping.
    pub user: Player,
    /// Role that solves: an agent, or a mapping.
    pub assistant: Player,
    /// Agent that turns the idea into a specific task before the chat begins.
    #[key(none = "none: the task is used unchanged")]
    pub specifier: Option<Specifier>,
    /// Agent that divides the specified task into steps.
    #[key(as = Option<AgentRef>, none = "no plan")]
    pub planner: Option<At<Name>>,
    /// Agent or person that selects one of several proposals for each message of both roles.
    #[key(none = "one proposal")]
    pub critic: Option<Critic>,
    /// Language in which all agents write, such as `French`.
    #[key(none = "the language of the models", nonempty)]
    pub language: Option<String>,
    /// Texts that replace the built-in ones.
    #[key(none = "built-in texts")]
    pub texts: Option<RolePlayTexts>,
    /// Marker with which the user role ends the chat when the task is done. It must be the whole message; a mapping can
    /// allow it anywhere in a message.
    #[key(default = Done::default())]
    pub done: Done,
    /// Maximum number of rounds. A round is an instruction and a solution.
    #[key(default = Library::DEFAULT_MAX_ROUNDS, range = 1..=1_000_000)]
    pub max_rounds: u64,
    /// Maximum number of messages of the two roles together.
    #[key(none = "none", range = 1..=1_000_000)]
    pub max_messages: Option<u64>,
    /// Number of consecutive messages of the user role without an instruction after which the chat ends. `0` for never.
    #[key(default = Library::DEFAULT_UNINSTRUCTED, range = 0..=1_000_000)]
    pub uninstructed: usize,
    /// Number of consecutive messages of the assistant role with an instruction after which the chat ends. `0` for
    /// never.
    #[key(none = "1", range = 0..=1_000_000)]
    pub flips: Option<usize>,
    /// Agents without a temperature use the default of their model. Otherwise the specifier uses 1, and all others 0.2.
    #[key(default = false)]
    pub own_temperatures: bool,
}

/// Texts of a role-play. `{{task}}` is replaced by the current form of the task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Config)]
pub struct RolePlayTexts {
    /// First message to the user role.
    #[key(none = "a built-in text")]
    pub opening: Option<Template>,
    /// Prompt of the specifier. The word limit is not appended to it.
    #[key(none = "a built-in text")]
    pub specifier: Option<Template>,
    /// Prompt of the planner.
    #[key(none = "a built-in text")]
    pub planner: Option<Template>,
    /// System message of the critic.
    #[key(none = "built-in texts")]
    pub critic: Option<Template>,
}

/// A role, and the agent that plays it.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(shorthand = "who")]
pub struct Player {
    /// Agent that plays the role. It must have a model.
    #[key(as = At<MemberRef>)]
    pub who: At<Name>,
    /// Name of the role in the system messages of both agents.
    #[key(none = "the agent's name with spaces for `_`", nonempty)]
    pub role: Option<String>,
    /// System message of the role. `{{task}}` is replaced by the specified task with its plan.
    #[key(none = "built-in texts")]
    pub rules: Option<Template>,
}

/// Agent that turns an idea into a specific task.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(shorthand = "who")]
pub struct Specifier {
    /// Name of the agent. It must have a model.
    #[key(as = AgentRef)]
    pub who: At<Name>,
    /// Word limit that the prompt states.
    #[key(default = Library::DEFAULT_WORD_LIMIT, range = 1..=100_000)]
    pub words: u32,
}

/// Agent or person that selects one of several proposals.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
pub struct Critic {
    /// Agent with a model, or a person.
    #[key(as = AgentRef)]
    pub who: At<Name>,
    /// Number of proposals per message. With 1, the critic is not asked.
    #[key(default = 3, range = 1..=100)]
    pub options: usize,
    /// Criteria for the selection.
    #[key(none = "built-in criteria", nonempty)]
    pub criteria: Option<String>,
    /// Maximum number of retries after an answer that selects no proposal. Then the first proposal is taken.
    #[key(default = polylogue::agents::reason::Best::DEFAULT_RETRIES, range = 0..=100)]
    pub retries: u32,
    /// Texts that present the proposals to the critic.
    #[key(none = "built-in texts")]
    pub texts: Option<ChoiceTexts>,
}

/// Marker of a completed task.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(shorthand = "text")]
pub struct Done {
    /// Text of the marker.
    #[key(default = Library::DEFAULT_DONE.to_owned(), nonempty)]
    pub text: At<String>,
    /// Accepts the marker anywhere in a message.
    #[key(default = false)]
    pub anywhere: bool,
}

impl Default for Done {
    fn default() -> Self {
        Self::absent()
    }
}

impl RolePlay {
    /// Agents besides the two roles.
    pub(crate) fn beside(&self) -> impl Iterator<Item = &Name> {
        let specifier = self.specifier.iter().map(|specifier| &specifier.who);
        let all = specifier.chain(&self.planner).chain(self.critic.iter().map(|critic| &critic.who));
        all.map(|name| &name.value)
    }
}
