//! What a team file says of two roles that do a task by talking.

use polylogue_core::Name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reasoning::ChoiceTexts;
use crate::text::{NameText, OptionText, Template};

/// Two roles that do a task by talking: one instructs, the other solves, as in CAMEL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Society {
    /// Who instructs: an agent, or a mapping that says more of the role.
    pub user: Player,
    /// Who solves: an agent, or a mapping that says more of the role.
    pub assistant: Player,
    /// Who makes a definite task of the idea, before all else; nobody when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub specifier: Option<Specifier>,
    /// Who divides the task as it was specified; nobody when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<NameText>")]
    pub planner: Option<Name>,
    /// Who chooses among several proposals, for each message of both roles; nobody when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub critic: Option<Critic>,
    /// The language in which everybody writes, such as `French`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OptionText>")]
    pub language: Option<String>,
    /// Texts instead of the usual ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub texts: Option<RolePlayTexts>,
    /// What the user role writes when the task is done, and nothing else: `<CAMEL_TASK_DONE>` when left out. A mapping says
    /// that it also counts within a message.
    #[serde(default, skip_serializing_if = "Done::is_default")]
    pub done: Done,
    /// How many rounds there are at most, each of an instruction and a solution; 50 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_rounds: Option<u64>,
    /// How many messages the two write at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_messages: Option<u64>,
    /// After how many messages in a row in which the user role gives no instruction it is over, 3 when left out; 0 for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub uninstructed: Option<u32>,
    /// After how many messages in a row in which the assistant role gives an instruction it is over, 1 when left out; 0 for
    /// never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub flips: Option<u32>,
    /// Whether it is left to the models how random they are, where an agent does not say it. Else the temperature of the
    /// specifier is 1, and that of everybody else 0.2.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_temperatures: bool,
}

/// Fixed texts of a role-play; `{{task}}` in them is the task as it is known by then.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RolePlayTexts {
    /// What the user role receives at the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opening: Option<Template>,
    /// What the specifier is asked; the number of words is not added to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub specifier: Option<Template>,
    /// What the planner is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planner: Option<Template>,
    /// The rules of the critic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub critic: Option<Template>,
}

/// Who plays a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "PlayerForm")]
#[schemars(inline, with = "PlayerForm")]
pub struct Player {
    /// An agent that speaks by a model.
    pub who: Name,
    /// What the role is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The rules of the role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<Template>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum PlayerForm {
    Name(#[schemars(with = "NameText")] Name),
    Full(FullPlayer),
}

/// Who plays a role, and how.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Player")]
struct FullPlayer {
    /// An agent that speaks by a model.
    #[schemars(with = "NameText")]
    who: Name,
    /// What the role is called, in the rules of both; the name of the agent, with a space for every `_`, when left out.
    #[serde(default)]
    #[schemars(with = "Option<OptionText>")]
    role: Option<String>,
    /// The rules of the role, in place of the usual ones; `{{task}}` in them is the task as it was specified, with its plan.
    #[serde(default)]
    rules: Option<Template>,
}

impl From<PlayerForm> for Player {
    fn from(form: PlayerForm) -> Self {
        match form {
            PlayerForm::Name(who) => Self { who, role: None, rules: None },
            PlayerForm::Full(FullPlayer { who, role, rules }) => Self { who, role, rules },
        }
    }
}

/// Who makes a definite task of an idea.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "SpecifierForm")]
#[schemars(inline, with = "SpecifierForm")]
pub struct Specifier {
    /// An agent that speaks by a model.
    pub who: Name,
    /// In how many words it is to write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum SpecifierForm {
    Name(#[schemars(with = "NameText")] Name),
    Full(FullSpecifier),
}

/// Who makes a definite task of an idea, and how.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Specifier")]
struct FullSpecifier {
    /// An agent that speaks by a model.
    #[schemars(with = "NameText")]
    who: Name,
    /// In how many words it is asked to write, 50 when left out.
    #[serde(default)]
    #[schemars(range(min = 1, max = 100_000))]
    words: Option<u32>,
}

impl From<SpecifierForm> for Specifier {
    fn from(form: SpecifierForm) -> Self {
        match form {
            SpecifierForm::Name(who) => Self { who, words: None },
            SpecifierForm::Full(FullSpecifier { who, words }) => Self { who, words },
        }
    }
}

/// Who chooses among several proposals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Critic {
    /// An agent that speaks by a model, or a person.
    #[schemars(with = "NameText")]
    pub who: Name,
    /// How often the role is asked for a proposal, 3 when left out; of one, nobody is asked.
    #[serde(default = "three")]
    #[schemars(range(min = 1, max = 100))]
    pub options: u32,
    /// By what it chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OptionText>")]
    pub criteria: Option<String>,
    /// How often it is asked again when it chooses none of them, 2 when left out. Then the first is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub retries: Option<u32>,
    /// The texts in which the proposals are shown to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub texts: Option<ChoiceTexts>,
}

const fn three() -> u32 {
    3
}

/// What says that a task is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "DoneForm")]
#[schemars(inline, with = "DoneForm")]
pub struct Done {
    /// The marker.
    pub text: String,
    /// Whether it counts within a message, too.
    pub anywhere: bool,
}

impl Default for Done {
    fn default() -> Self {
        Self::of(polylogue::Society::DEFAULT_DONE.to_owned())
    }
}

impl Done {
    fn of(text: String) -> Self {
        Self { text, anywhere: false }
    }

    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum DoneForm {
    Text(#[schemars(with = "OptionText")] String),
    Full(FullDone),
}

/// What says that a task is done, and where.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Done")]
struct FullDone {
    /// The marker; `<CAMEL_TASK_DONE>` when left out.
    #[serde(default = "usual_marker")]
    #[schemars(with = "OptionText")]
    text: String,
    /// Whether it counts within a message, too.
    #[serde(default)]
    anywhere: bool,
}

fn usual_marker() -> String {
    polylogue::Society::DEFAULT_DONE.to_owned()
}

impl From<DoneForm> for Done {
    fn from(form: DoneForm) -> Self {
        match form {
            DoneForm::Text(text) => Self::of(text),
            DoneForm::Full(FullDone { text, anywhere }) => Self { text, anywhere },
        }
    }
}

impl Society {
    /// Those who are asked beside the two.
    pub(crate) fn beside(&self) -> impl Iterator<Item = &Name> {
        let specifier = self.specifier.iter().map(|specifier| &specifier.who);
        specifier.chain(&self.planner).chain(self.critic.iter().map(|critic| &critic.who))
    }
}
