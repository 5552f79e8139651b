//! What a command is, as data.

use indexmap::IndexMap;
use polylogue_core::{Money, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The arguments of a tool, by name, in the order in which they were declared: models write them in this order.
pub type Arguments = IndexMap<String, Argument>;

/// The declaration of a command as a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Declaration {
    /// The name of the tool: 1 to 64 ASCII letters, digits, `_` and `-`
    pub name: String,
    /// The description for the model: what it does, and when to use it
    pub description: String,
    /// The program and its words; `{name}` in a word is the argument of that name
    pub command: Vec<Words>,
    /// The arguments, by name
    #[serde(default)]
    pub arguments: Arguments,
    /// Whether a call that was in flight when the process died can be repeated
    #[serde(default)]
    pub repeatable: bool,
    /// The maximum cost of a call, in dollars
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<f64>,
}

/// Words of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Words {
    /// One word.
    One(String),
    /// Words that are there only when an argument was given, and is not `false`.
    When {
        /// The argument
        when: String,
        /// The words
        words: Vec<String>,
    },
}

/// An argument of a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Argument {
    /// The type
    #[serde(rename = "type")]
    pub kind: Kind,
    /// The description for the model
    #[serde(default)]
    pub description: String,
    /// The default value
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// Whether the argument is optional, without a default
    #[serde(default)]
    pub optional: bool,
    /// The allowed values; empty for any
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Value>,
    /// The minimum of a number
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<f64>,
    /// The maximum of a number
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<f64>,
    /// Whether it may begin with `-`, so that programs take it for an option
    #[serde(default)]
    pub may_be_option: bool,
}

/// The type of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
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

impl Declaration {
    /// Returns the program and its words as they are declared, arguments by their names in braces.
    pub fn in_words(&self) -> String {
        let words = self.command.iter().flat_map(|words| match words {
            Words::One(word) => std::slice::from_ref(word),
            Words::When { words, .. } => words,
        });
        words.map(String::as_str).collect::<Vec<_>>().join(" ")
    }

    /// Description for models.
    pub(super) fn spec(&self) -> ToolSpec {
        let parameters = schema_of(&self.arguments);
        let spec = ToolSpec::new(self.name.clone(), self.description.clone(), parameters);
        let spec = if self.repeatable { spec.repeatable() } else { spec };
        ToolSpec { max_cost: self.max_cost.map(Money::dollars), ..spec }
    }

    /// What contradicts itself, words aside.
    pub(super) fn check(&self) -> Result<(), String> {
        check_named(&self.name, &self.arguments)
    }
}

/// The JSON Schema of `arguments`.
pub(crate) fn schema_of(arguments: &Arguments) -> Value {
    let properties: Map<String, Value> =
        arguments.iter().map(|(name, argument)| (name.clone(), argument.schema())).collect();
    let needed = arguments.iter().filter(|(_, argument)| argument.is_required());
    let required: Vec<&String> = needed.map(|(name, _)| name).collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// The error for a place of the argument `name`, which is not declared.
pub(crate) fn undeclared(name: &str, arguments: &Arguments) -> String {
    if arguments.is_empty() {
        return format!("there is no argument `{name}`; declare it in `arguments`");
    }
    let known: Vec<String> = arguments.keys().map(|known| format!("`{known}`")).collect();
    format!("there is no argument `{name}`; there is {}", known.join(", "))
}

/// Whether a tool can have this name, and these arguments.
pub(crate) fn check_named(name: &str, arguments: &Arguments) -> Result<(), String> {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > 64 || !name.chars().all(legal) {
        return Err("a name is 1 to 64 ASCII letters, digits, `_` and `-`".into());
    }
    arguments.iter().try_for_each(|(name, argument)| argument.check(name))
}

impl Argument {
    /// Creates a required argument.
    pub fn new(kind: Kind, description: impl Into<String>) -> Self {
        Self {
            kind,
            description: description.into(),
            default: None,
            optional: false,
            choices: Vec::new(),
            minimum: None,
            maximum: None,
            may_be_option: false,
        }
    }

    const fn is_required(&self) -> bool {
        self.default.is_none() && !self.optional
    }

    fn schema(&self) -> Value {
        let mut schema = match self.kind {
            Kind::String => json!({"type": "string"}),
            Kind::Integer => json!({"type": "integer"}),
            Kind::Number => json!({"type": "number"}),
            Kind::Boolean => json!({"type": "boolean"}),
            Kind::Strings => json!({"type": "array", "items": {"type": "string"}}),
        };
        let more = [
            ("description", Some(json!(self.description)).filter(|_| !self.description.is_empty())),
            ("default", self.default.clone()),
            ("minimum", self.minimum.map(number)),
            ("maximum", self.maximum.map(number)),
        ];
        if let Some(schema) = schema.as_object_mut() {
            schema.extend(more.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
            if !self.choices.is_empty() && self.kind != Kind::Strings {
                schema.insert("enum".into(), json!(self.choices));
            }
        }
        // Of a list, each text is one of the choices.
        if let (Kind::Strings, false, Some(items)) =
            (self.kind, self.choices.is_empty(), schema.get_mut("items").and_then(Value::as_object_mut))
        {
            items.insert("enum".into(), json!(self.choices));
        }
        schema
    }

    fn check(&self, name: &str) -> Result<(), String> {
        let item = if self.kind == Kind::Strings { Kind::String } else { self.kind };
        if let Some(choice) = self.choices.iter().find(|choice| !item.fits(choice)) {
            return Err(format!("`{name}` is {}, and the choice {choice} is not", item.named()));
        }
        let is_number = matches!(self.kind, Kind::Integer | Kind::Number);
        if !is_number && (self.minimum.is_some() || self.maximum.is_some()) {
            return Err(format!("`{name}` is not a number, and has no minimum or maximum"));
        }
        match &self.default {
            Some(default) => self.accept(name, default).map_err(|wrong| format!("the default of {wrong}")),
            None => Ok(()),
        }
    }

    /// Checks whether the argument `name` may be `value`: its type, its range, and its choices.
    ///
    /// # Errors
    /// What is wrong with the value, for the one who gave it.
    pub fn accept(&self, name: &str, value: &Value) -> Result<(), String> {
        if !self.kind.fits(value) {
            return Err(format!("`{name}` must be {}, not {value}", self.kind.named()));
        }
        let number = value.as_f64().unwrap_or_default();
        if let Some(least) = self.minimum.filter(|least| number < *least) {
            return Err(format!("`{name}` must be at least {least}"));
        }
        if let Some(most) = self.maximum.filter(|most| number > *most) {
            return Err(format!("`{name}` must be at most {most}"));
        }
        let is_choice = |value: &Value| self.choices.is_empty() || self.choices.contains(value);
        let fits = value.as_array().map_or_else(|| is_choice(value), |items| items.iter().all(is_choice));
        if fits {
            return Ok(());
        }
        let choices: Vec<String> = self.choices.iter().map(Value::to_string).collect();
        Err(format!("`{name}` must be one of {}", choices.join(", ")))
    }
}

/// A bound, without a fraction if it has none.
fn number(value: f64) -> Value {
    format!("{value}").parse::<i64>().map_or_else(|_| json!(value), |whole| json!(whole))
}

impl Kind {
    const fn named(self) -> &'static str {
        match self {
            Self::String => "a text",
            Self::Integer => "a whole number",
            Self::Number => "a number",
            Self::Boolean => "`true` or `false`",
            Self::Strings => "a list of texts",
        }
    }

    fn fits(self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::Strings => value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
        }
    }
}
