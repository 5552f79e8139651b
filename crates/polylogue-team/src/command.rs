//! Commands that are tools.

use indexmap::IndexMap;
use polylogue_config::{As, Config};
use polylogue_tools::command::{Argument, Declaration, Kind, Words};
use serde_json::Value;

/// A command that is a tool.
#[derive(Config)]
#[config(name = "Command")]
pub(crate) struct CommandKeys {
    /// Its name as a tool: 1 to 64 ASCII letters, digits, `_` and `-`.
    name: String,
    /// What it does and when to use it, for the model.
    description: String,
    /// The program and its words. `{name}` in a word is the argument of that name.
    #[key(required)]
    command: Vec<WordsKeys>,
    /// The arguments, by name.
    #[key(as = IndexMap<String, ArgumentKeys>)]
    arguments: IndexMap<String, Argument>,
    /// Whether a call that was in flight when the process died can be repeated.
    #[key(default = false)]
    repeatable: bool,
}

/// A word of a command, or words that depend on an argument.
#[derive(Config)]
#[config(name = "CommandWords", by_shape)]
enum WordsKeys {
    /// One word.
    One(String),
    /// Words that are there only if an argument is given and is not `false`.
    When(WordsWhen),
}

/// Words that are there only if an argument is given and is not `false`.
#[derive(Config)]
#[config(name = "OptionalWords")]
struct WordsWhen {
    /// The argument.
    when: String,
    /// The words.
    #[key(required)]
    words: Vec<String>,
}

/// An argument of a command or a call.
#[derive(Config)]
#[config(name = "Argument")]
pub(crate) struct ArgumentKeys {
    /// Its type.
    #[key(name = "type")]
    kind: ArgumentKind,
    /// What it is for, for the model.
    #[key(default = String::new())]
    description: String,
    /// Its value if the model gives none.
    #[key(none = "none")]
    default: Option<Value>,
    /// Whether it can be missing without a default.
    #[key(default = false)]
    optional: bool,
    /// Its legal values.
    #[key(none = "any")]
    choices: Vec<Value>,
    /// The least value of a number.
    #[key(none = "none")]
    minimum: Option<f64>,
    /// The greatest value of a number.
    #[key(none = "none")]
    maximum: Option<f64>,
    /// Whether it can begin with `-`, so that programs read it as an option.
    #[key(default = false)]
    may_be_option: bool,
}

/// The type of an argument.
#[derive(Config)]
enum ArgumentKind {
    /// A text.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A list of texts.
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
