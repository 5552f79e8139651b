//! Commands that are tools.

use indexmap::IndexMap;
use polylogue_config::types::Type;
use polylogue_config::yaml::Node;
use polylogue_config::{As, Config, Cx};
use polylogue_tools::command::{Argument, Declaration, Kind, Words};
use serde_json::Value;

use crate::json_schema::check_argument;

/// A command that agents can call as a tool.
#[derive(Config)]
#[config(name = "Command", for = Declaration)]
pub(crate) struct CommandKeys {
    /// Name of the tool: 1 to 64 ASCII letters, digits, `_` and `-`.
    name: String,
    /// Description of the tool for the model: what it does and when to call it.
    description: String,
    /// Program and its command-line arguments. `{name}` is replaced by the tool argument of that name.
    #[key(as = Vec<WordsKeys>, required)]
    command: Vec<Words>,
    /// Arguments of the tool by name.
    #[key(as = IndexMap<String, DeclaredArgument>)]
    arguments: IndexMap<String, Argument>,
    /// Allows a call that was in flight when the process died to be repeated on resume.
    #[key(default = false)]
    repeatable: bool,
    /// Maximum cost of a call in US dollars. It is reserved before the call, and each call counts as much.
    #[key(none = "free", range = 0..=1_000_000)]
    max_cost: Option<f64>,
}

/// A command-line argument, or command-line arguments that depend on a tool argument.
#[derive(Config)]
#[config(name = "CommandWords", by_shape)]
enum WordsKeys {
    /// A command-line argument.
    One(String),
    /// Command-line arguments that are passed only if a tool argument is given and not `false`.
    When(WordsWhen),
}

/// Command-line arguments that are passed only if a tool argument is given and not `false`.
#[derive(Config)]
#[config(name = "OptionalWords")]
struct WordsWhen {
    /// Name of the tool argument.
    when: String,
    /// Command-line arguments to pass.
    #[key(required)]
    words: Vec<String>,
}

/// An argument of a command or an HTTP call.
#[derive(Config)]
#[config(name = "Argument", for = Argument)]
struct ArgumentKeys {
    /// Type of the argument.
    #[key(name = "type", as = ArgumentKind)]
    kind: Kind,
    /// Description of the argument for the model.
    #[key(default = String::new())]
    description: String,
    /// Value if the model omits the argument.
    #[key(none = "none")]
    default: Option<Value>,
    /// Lets the model omit the argument without a default.
    #[key(default = false)]
    optional: bool,
    /// Allowed values.
    #[key(none = "any")]
    choices: Vec<Value>,
    /// Minimum of a number.
    #[key(none = "none")]
    minimum: Option<f64>,
    /// Maximum of a number.
    #[key(none = "none")]
    maximum: Option<f64>,
    /// Allows values that begin with `-`, which programs read as options.
    #[key(default = false)]
    may_be_option: bool,
}

/// An argument whose keys do not contradict each other.
pub(crate) struct DeclaredArgument(Argument);

impl Config for DeclaredArgument {
    fn ty() -> &'static Type {
        ArgumentKeys::ty()
    }

    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        let argument = ArgumentKeys::read(node, cx).into_value();
        check_argument(node, &argument, cx.report);
        Self(argument)
    }

    fn hole() -> Self {
        Self(ArgumentKeys::hole().into_value())
    }

    fn write(&self) -> Value {
        ArgumentKeys::from_value(&self.0).write()
    }
}

impl As<Argument> for DeclaredArgument {
    fn into_value(self) -> Argument {
        self.0
    }

    fn from_value(argument: &Argument) -> Self {
        Self(argument.clone())
    }
}

/// Type of an argument.
#[derive(Config)]
#[config(for = Kind)]
enum ArgumentKind {
    /// A string.
    String,
    /// An integer.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A list of strings.
    Strings,
}

impl As<Words> for WordsKeys {
    fn into_value(self) -> Words {
        match self {
            Self::One(word) => Words::One(word),
            Self::When(WordsWhen { when, words }) => Words::When { when, words },
        }
    }

    fn from_value(value: &Words) -> Self {
        match value.clone() {
            Words::One(word) => Self::One(word),
            Words::When { when, words } => Self::When(WordsWhen { when, words }),
        }
    }
}
