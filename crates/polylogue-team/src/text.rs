//! Texts of a team file that are more than texts: names, and templates of what is said.

use std::borrow::Cow;

use polylogue_core::Name;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::vars::{self, Piece};

/// A text that may quote the task of the chat in which it is used, as `{{task}}`.
///
/// The other variables of a team file are filled when it is read; the task is known only when a chat runs. The text
/// is kept as the pieces between its tasks, so that braces that came with a variable's value stay what they are.
///
/// ```
/// use polylogue_team::Template;
/// let template = Template::new("Never forget the task: {{task}}");
/// assert_eq!(template.fill("{{count}} to three"), "Never forget the task: {{count}} to three");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// Never empty; the task goes between two of them.
    pieces: Vec<String>,
}

impl Template {
    /// A template of `text`, in which `{{task}}` is the task and everything else is plain.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut template = Self { pieces: vec![String::new()] };
        for piece in vars::pieces(text) {
            match piece {
                Piece::Var(vars::TASK, _) => template.push_task(),
                Piece::Plain(plain) | Piece::Var(_, plain) => template.push(plain),
            }
        }
        template
    }

    /// The text with `task` in place of every `{{task}}`.
    #[must_use]
    pub fn fill(&self, task: &str) -> String {
        self.pieces.join(task)
    }

    /// Whether it quotes the task.
    #[must_use]
    pub fn quotes_task(&self) -> bool {
        self.pieces.len() > 1
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.quotes_task() && self.pieces.iter().all(String::is_empty)
    }

    pub(crate) fn push(&mut self, plain: &str) {
        if let Some(last) = self.pieces.last_mut() {
            last.push_str(plain);
        }
    }

    pub(crate) fn push_task(&mut self) {
        self.pieces.push(String::new());
    }
}

impl Default for Template {
    fn default() -> Self {
        Self { pieces: vec![String::new()] }
    }
}

/// As a text where that reads back as the same, else as the list of its pieces.
impl Serialize for Template {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.fill("{{task}}");
        if Self::new(&text) == *self { text.serialize(serializer) } else { self.pieces.serialize(serializer) }
    }
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Text(String),
            Pieces(Vec<String>),
        }
        Ok(match Form::deserialize(deserializer)? {
            Form::Text(text) => Self::new(&text),
            Form::Pieces(pieces) if pieces.is_empty() => Self::default(),
            Form::Pieces(pieces) => Self { pieces },
        })
    }
}

/// In a file a template is a text.
impl JsonSchema for Template {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Template".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "template" })
    }
}

/// One name or a list of names; nobody when left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "NamesForm")]
#[schemars(inline)]
pub struct Names(#[schemars(with = "NamesForm")] pub Vec<Name>);

impl Names {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum NamesForm {
    One(#[schemars(with = "NameText")] Name),
    Many(#[schemars(with = "Vec<NameText>")] Vec<Name>),
}

impl From<NamesForm> for Names {
    fn from(form: NamesForm) -> Self {
        match form {
            NamesForm::One(name) => Self(vec![name]),
            NamesForm::Many(names) => Self(names),
        }
    }
}

/// Names a kind of text in the schema. Its `format` says how the reader checks it and what is filled in.
macro_rules! text_kinds {
    ($($(#[$doc:meta])* $kind:ident: $schema:tt;)*) => {$(
        $(#[$doc])*
        pub(crate) struct $kind;

        impl JsonSchema for $kind {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                stringify!($kind).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )*};
}

text_kinds! {
    /// A [`Name`].
    NameText: { "type": "string", "format": "name", "pattern": "^(?=.{1,64}$)\\p{Alphabetic}[\\p{Alphabetic}\\p{M}\\p{N}_'’·-]*( [\\p{Alphabetic}\\p{M}\\p{N}_'’·-]+)*$" };
    /// A model as `provider:model`.
    ModelText: { "type": "string", "format": "model", "examples": ["openai:gpt-4o-mini", "ollama:llama3.2"] };
    /// A model as `provider:model`, or `none`.
    OwnModelText: { "type": "string", "format": "own model", "examples": ["openai:gpt-4o-mini", "none"] };
    /// The path of a file.
    PathText: { "type": "string", "format": "path", "minLength": 1 };
    /// The address of an endpoint.
    UrlText: { "type": "string", "format": "url", "minLength": 1, "examples": ["http://127.0.0.1:8000/v1"] };
    /// Where a picture, sound or document is.
    MediaText: { "type": "string", "format": "media", "minLength": 1, "examples": ["https://example.org/map.png"] };
    /// The name of an environment variable.
    VariableText: { "type": "string", "format": "variable", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$", "examples": ["HOUSE_API_KEY"] };
    /// The value of a header.
    HeaderText: { "type": "string", "format": "header", "minLength": 1 };
    /// A time with its unit.
    DurationText: { "type": "string", "format": "duration", "minLength": 1, "examples": ["500 ms", "10 s", "2 min"] };
    /// A regular expression.
    RegexText: { "type": "string", "format": "regex", "minLength": 1 };
    /// A condition on a conversation, in CEL.
    ConditionText: { "type": "string", "format": "condition", "minLength": 1, "examples": ["last.text.contains('DONE')", "turns > 6"] };
    /// A condition on a block of code, in CEL.
    CodeConditionText: { "type": "string", "format": "code condition", "minLength": 1, "examples": ["code.contains('remove')", "language == 'sh'"] };
    /// A condition on a call of a tool, in CEL.
    CallConditionText: { "type": "string", "format": "call condition", "minLength": 1, "examples": ["tool == 'write_file'", "args.path != 'draft.txt'"] };
    /// A host of the network.
    HostText: { "type": "string", "format": "host", "minLength": 1, "examples": ["example.org", "*.example.org", "example.org:8080"] };
    /// A text that is not empty.
    OptionText: { "type": "string", "minLength": 1 };
    /// The name of a tool.
    ToolText: { "type": "string", "format": "tool" };
    /// The value of a variable: it is kept as it is written.
    VarText: { "type": ["string", "number", "boolean"], "format": "verbatim" };
    /// What a scripted model says: a name between braces that is no variable is part of it.
    ScriptText: { "type": "string", "format": "script" };
}
