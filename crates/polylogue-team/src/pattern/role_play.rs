//! Two roles that solve a task by talking.

use polylogue_config::Config;
use polylogue_core::Name;
use serde::{Deserialize, Serialize};

use crate::reasoning::ChoiceTexts;
use crate::text::{ParticipantRef, Template};

/// Two roles that solve a task by talking: one instructs, the other solves, as in CAMEL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(name = "RolePlay")]
pub struct RolePlay {
    /// The role that instructs: an agent, or a mapping.
    pub user: Player,
    /// The role that solves: an agent, or a mapping.
    pub assistant: Player,
    /// The agent that turns the idea into a specific task, before all else.
    #[key(none = "the task is used as given")]
    pub specifier: Option<Specifier>,
    /// The agent that divides the specified task into steps.
    #[key(as = Option<ParticipantRef>, none = "no plan")]
    pub planner: Option<Name>,
    /// The agent or person that chooses among several proposals, for each message of both roles.
    #[key(none = "one proposal")]
    pub critic: Option<Critic>,
    /// The language in which everybody writes, such as `French`.
    #[key(none = "the models'", nonempty)]
    pub language: Option<String>,
    /// Texts that replace the built-in ones.
    #[key(none = "the built-in ones")]
    pub texts: Option<RolePlayTexts>,
    /// The marker by which the user role says that the task is done. It must be the whole message; a mapping can allow it
    /// within a message.
    #[key(default = Done::default())]
    pub done: Done,
    /// Maximum number of rounds, each of an instruction and a solution.
    #[key(none = "50", range = 1..=1_000_000)]
    pub max_rounds: Option<u64>,
    /// Maximum number of messages of the two roles.
    #[key(none = "none", range = 1..=1_000_000)]
    pub max_messages: Option<u64>,
    /// After how many messages in a row without an instruction by the user role the chat ends; 0 for never.
    #[key(none = "3", range = 0..=1_000_000)]
    pub uninstructed: Option<u32>,
    /// After how many messages in a row with an instruction by the assistant role the chat ends; 0 for never.
    #[key(none = "1", range = 0..=1_000_000)]
    pub flips: Option<u32>,
    /// Whether agents without a temperature use their model's default. Otherwise the specifier uses 1, and everybody else 0.2.
    #[key(default = false)]
    pub own_temperatures: bool,
}

/// Texts of a role-play. `{{task}}` in them is the task as it is known by then.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, Config)]
pub struct RolePlayTexts {
    /// The first message to the user role.
    #[key(none = "the built-in one")]
    pub opening: Option<Template>,
    /// The prompt of the specifier. The number of words is not added to it.
    #[key(none = "the built-in one")]
    pub specifier: Option<Template>,
    /// The prompt of the planner.
    #[key(none = "the built-in one")]
    pub planner: Option<Template>,
    /// The rules of the critic.
    #[key(none = "the built-in ones")]
    pub critic: Option<Template>,
}

/// A role, and the agent that plays it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(shorthand = "who")]
pub struct Player {
    /// An agent with a model.
    #[key(as = ParticipantRef)]
    pub who: Name,
    /// The name of the role, in the rules of both.
    #[key(none = "the agent's name with spaces for `_`", nonempty)]
    pub role: Option<String>,
    /// The rules of the role. `{{task}}` in them is the specified task with its plan.
    #[key(none = "the built-in ones")]
    pub rules: Option<Template>,
}

/// The agent that turns an idea into a specific task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(shorthand = "who")]
pub struct Specifier {
    /// An agent with a model.
    #[key(as = ParticipantRef)]
    pub who: Name,
    /// Number of words that it is asked for.
    #[key(none = "50", range = 1..=100_000)]
    pub words: Option<u32>,
}

/// The agent or person that chooses among several proposals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Config)]
pub struct Critic {
    /// An agent with a model, or a person.
    #[key(as = ParticipantRef)]
    pub who: Name,
    /// Number of proposals that a role is asked for. With one, the critic is not asked.
    #[key(default = 3, range = 1..=100)]
    pub options: u32,
    /// Criteria of the choice.
    #[key(none = "built-in ones", nonempty)]
    pub criteria: Option<String>,
    /// How often it is asked again when it chooses none. Then the first proposal is taken.
    #[key(none = "2", range = 0..=100)]
    pub retries: Option<u32>,
    /// The texts in which the proposals are shown to it.
    #[key(none = "the built-in ones")]
    pub texts: Option<ChoiceTexts>,
}

/// The marker of a task that is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(shorthand = "text")]
pub struct Done {
    /// The marker.
    #[key(default = polylogue::RolePlay::DEFAULT_DONE.to_owned(), nonempty)]
    pub text: String,
    /// Whether it also counts within a message.
    #[key(default = false)]
    pub anywhere: bool,
}

impl Default for Done {
    fn default() -> Self {
        Self::absent()
    }
}

impl RolePlay {
    /// Those who are asked beside the two.
    pub(crate) fn beside(&self) -> impl Iterator<Item = &Name> {
        let specifier = self.specifier.iter().map(|specifier| &specifier.who);
        specifier.chain(&self.planner).chain(self.critic.iter().map(|critic| &critic.who))
    }
}
