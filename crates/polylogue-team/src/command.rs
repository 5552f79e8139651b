//! Commands that are tools.

use indexmap::IndexMap;
use polylogue_config::{As, Config};
use polylogue_tools::command::{Argument, Declaration, Kind, Words};
use serde_json::Value;

/// A command that agents can call as a tool.
#[derive(Config)]
#[config(name = "Command")]
pub(crate) struct CommandKeys {
    /// Name of the tool: 1 to 64 ASCII letters, digits, `_` and `-`.
    name: String,
    /// Description of the tool for the model: what it does and when to call it.
    description: String,
    /// Program and its command-line arguments. `{name}` is replaced by the tool argument of that name.
    #[key(required)]
    command: Vec<WordsKeys>,
    /// Arguments of the tool by name.
    #[key(as = IndexMap<String, ArgumentKeys>)]
    arguments: IndexMap<String, Argument>,
    /// Allows a call that was in flight when the process died to be repeated on resume.
    #[key(default = false)]
    repeatable: bool,
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
#[config(name = "Argument")]
pub(crate) struct ArgumentKeys {
    /// Type of the argument.
    #[key(name = "type")]
    kind: ArgumentKind,
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

/// Type of an argument.
#[derive(Config)]
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

impl As<Declaration> for CommandKeys {
    fn into_value(self) -> Declaration {
        let Self { name, description, command, arguments, repeatable } = self;
        let words = |words| match words {
            WordsKeys::One(word) => Words::One(word),
            WordsKeys::When(WordsWhen { when, words }) => Words::When { when, words },
        };
        let command = command.into_iter().map(words).collect();
        Declaration { name, description, command, arguments, repeatable }
    }

    fn from_value(value: &Declaration) -> Self {
        let Declaration { name, description, command, arguments, repeatable } = value.clone();
        let words = |words| match words {
            Words::One(word) => WordsKeys::One(word),
            Words::When { when, words } => WordsKeys::When(WordsWhen { when, words }),
        };
        let command = command.into_iter().map(words).collect();
        Self { name, description, command, arguments, repeatable }
    }
}

impl As<Argument> for ArgumentKeys {
    fn into_value(self) -> Argument {
        let Self { kind, description, default, optional, choices, minimum, maximum, may_be_option } = self;
        let kind = match kind {
            ArgumentKind::String => Kind::String,
            ArgumentKind::Integer => Kind::Integer,
            ArgumentKind::Number => Kind::Number,
            ArgumentKind::Boolean => Kind::Boolean,
            ArgumentKind::Strings => Kind::Strings,
        };
        Argument { kind, description, default, optional, choices, minimum, maximum, may_be_option }
    }

    fn from_value(value: &Argument) -> Self {
        let Argument { kind, description, default, optional, choices, minimum, maximum, may_be_option } =
            value.clone();
        let kind = match kind {
            Kind::String => ArgumentKind::String,
            Kind::Integer => ArgumentKind::Integer,
            Kind::Number => ArgumentKind::Number,
            Kind::Boolean => ArgumentKind::Boolean,
            Kind::Strings => ArgumentKind::Strings,
        };
        Self { kind, description, default, optional, choices, minimum, maximum, may_be_option }
    }
}
