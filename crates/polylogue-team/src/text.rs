//! Texts of a team file with a meaning: names, templates, addresses, conditions.

use polylogue_config::types::{Kind, Text, Type, Variables};
use polylogue_config::yaml::Node;
use polylogue_config::{Config, Cx, Filled, Illegal, Leaf, NameKind, NewName, Ref, TextKind, Verbatim};
use polylogue_core::Name;
use polylogue_models::Endpoint;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::condition::{CallCondition, CodeCondition, Condition, NoCondition};
use crate::secret;
use crate::vars::{self, Piece};

/// A text that may quote the task of the chat in which it is used, as `{{task}}`.
///
/// The other variables of a team file are filled when it is read; the task is known only when a chat runs. The text
/// is kept as the pieces between its tasks, so that braces that came with a variable's value are plain text.
///
/// ```
/// use polylogue_team::Template;
/// let template = Template::new("Never forget the task: {{task}}");
/// assert_eq!(template.fill("{{count}} to three"), "Never forget the task: {{count}} to three");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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

    /// The text with every `{{task}}` replaced by `task`.
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

    fn push(&mut self, plain: &str) {
        if let Some(last) = self.pieces.last_mut() {
            last.push_str(plain);
        }
    }

    fn push_task(&mut self) {
        self.pieces.push(String::new());
    }
}

impl Default for Template {
    fn default() -> Self {
        Self { pieces: vec![String::new()] }
    }
}

impl Config for Template {
    fn ty() -> &'static Type {
        const TEXT: Text = Text { format: "template", ..Text::PLAIN };
        const { &Type { name: "", doc: "", kind: Kind::Text(TEXT) } }
    }

    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        let mut template = Self::default();
        let Some(written) = polylogue_config::text(node, Self::ty(), Variables::None, cx) else {
            return template;
        };
        for piece in cx.pieces(&written, &node.span).unwrap_or_default() {
            match piece {
                Filled::Text(text) => template.push(&text),
                Filled::Deferred(_) => template.push_task(),
            }
        }
        template
    }

    fn hole() -> Self {
        Self::default()
    }

    fn write(&self) -> Value {
        Value::String(self.fill("{{task}}"))
    }
}

/// Whatever takes part in chats: an agent, a chat or a team.
pub(crate) struct Participant;

/// The name of a participant, where it is defined.
pub(crate) type NewParticipant = NewName<Participant>;
/// The name of a participant that is defined elsewhere.
pub(crate) type ParticipantRef = Ref<Participant>;

const NAME: Text = Text {
    format: "name",
    pattern: "^(?=.{1,64}$)\\p{Alphabetic}[\\p{Alphabetic}\\p{M}\\p{N}_'’·-]*( [\\p{Alphabetic}\\p{M}\\p{N}_'’·-]+)*$",
    examples: &[],
    variables: Variables::None,
};

fn name(text: &str) -> Result<Name, Illegal> {
    match Name::new(text) {
        // Names are compared as they are written here, and conditions compare them so, too.
        Ok(name) if name != *text => {
            let message = format!("the name `{name}` is written with separate accents (not in the form NFC)");
            Err(Illegal::new(message).hint(format!("type it anew, or copy it from here: `{name}`")))
        }
        Ok(name) => Ok(name),
        Err(error) => {
            let illegal = Illegal::new(error.to_string());
            Err(match error.suggestion() {
                Some(name) => illegal.hint(format!("use `{name}`")),
                None => illegal,
            })
        }
    }
}

impl NameKind for Participant {
    type Name = Name;
    const KIND: &'static str = "agent, chat or team";
    const TEXT: Text = NAME;

    fn parse(text: &str) -> Result<Name, Illegal> {
        name(text)
    }

    fn hole() -> Name {
        Name::user()
    }
}

/// The value of a variable, in the notation of the file.
pub(crate) type VarText = Verbatim;

/// Kinds of texts that stand for themselves, and are checked.
macro_rules! text_kinds {
    ($($(#[$doc:meta])* $kind:ident: $format:literal, $pattern:literal, [$($example:literal),*], $variables:ident, $check:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $kind;

        impl TextKind for $kind {
            type Value = String;
            const TEXT: Text = Text {
                format: $format,
                pattern: $pattern,
                examples: &[$($example),*],
                variables: Variables::$variables,
            };

            fn parse(text: &str) -> Result<String, Illegal> {
                let check: fn(&str) -> Result<(), Illegal> = $check;
                check(text).map(|()| text.to_owned())
            }

            fn to_text(value: &String) -> String {
                value.clone()
            }

            fn hole() -> String {
                String::new()
            }
        }
    )*};
}

text_kinds! {
    /// A model as `provider:model`.
    Model: "model", "", ["openai:gpt-4o-mini", "ollama:llama3.2"], All, model;
    /// A model as `provider:model`, or `none`.
    OwnModel: "own model", "", ["openai:gpt-4o-mini", "none"], All, |text| if text == "none" { Ok(()) } else { model(text) };
    /// The path of a file.
    FilePath: "path", "", [], None, not_empty;
    /// The address of an endpoint.
    Url: "url", "", ["http://127.0.0.1:8000/v1"], All, url;
    /// The address of a picture, sound or document.
    MediaUrl: "media", "", ["https://example.org/map.png"], All, media;
    /// The name of an environment variable.
    Variable: "variable", "^[A-Za-z_][A-Za-z0-9_]*$", ["HOUSE_API_KEY"], None, variable;
    /// The value of a header.
    HeaderValue: "header", "", [], All, header;
    /// A regular expression.
    Regex: "regex", "", [], All, regex;
    /// A condition on a conversation, in CEL.
    When: "condition", "", ["last.text.contains('DONE')", "turns > 6"], All, |text| legal(text, Condition::new(text));
    /// A condition on a block of code, in CEL.
    WhenCode: "code condition", "", ["code.contains('remove')", "language == 'sh'"], All, |text| legal(text, CodeCondition::new(text));
    /// A condition on a call of a tool, in CEL.
    WhenCall: "call condition", "", ["tool == 'write_file'", "args.path != 'draft.txt'"], All, |text| legal(text, CallCondition::new(text));
    /// A host of the network.
    Host: "host", "", ["example.org", "*.example.org", "example.org:8080"], All, host;
    /// What a scripted model says: a name between braces that is not a variable is part of it.
    ScriptText: "", "", [], Known, |_| Ok(());
    /// The name of an agent as a tool.
    ToolName: "tool name", "^[A-Za-z0-9_-]{1,64}$", [], None, |_| Ok(());
}

/// The name of a tool.
pub(crate) struct ToolKind;
/// The name of a tool that an agent is given.
pub(crate) type ToolRef = Ref<ToolKind>;

impl NameKind for ToolKind {
    type Name = String;
    const KIND: &'static str = "tool";
    const TEXT: Text = Text { format: "tool", ..Text::PLAIN };

    fn parse(text: &str) -> Result<String, Illegal> {
        Ok(text.to_owned())
    }

    fn hole() -> String {
        String::new()
    }
}

/// What to do with a secret.
pub(crate) const KEEP_SECRET: &str =
    "put it into an environment variable or into `.env`, and the variable's name here";

fn not_empty(text: &str) -> Result<(), Illegal> {
    if text.is_empty() { Err(Illegal::new("the path is empty")) } else { Ok(()) }
}

fn model(text: &str) -> Result<(), Illegal> {
    let (provider, model) = text.split_once([':', '/']).unwrap_or((text, ""));
    if provider.is_empty() || model.is_empty() || text.contains(char::is_whitespace) {
        let hint = "write `provider:model`, such as `openai:gpt-4o-mini`";
        return Err(Illegal::new(format!("`{text}` is not a model")).hint(hint));
    }
    Ok(())
}

fn url(text: &str) -> Result<(), Illegal> {
    let rest = text.split_once("://").map(|(_, rest)| rest).unwrap_or_default();
    if let Some(what) = secret::secret_in_address(rest) {
        let hint = "remove it from the address; `key` and `headers` take secrets from environment variables";
        return Err(Illegal::new(format!("the address holds {what}")).hint(hint));
    }
    Endpoint::new(polylogue_models::Config::new(text))
        .map(|_| ())
        .map_err(|error| Illegal::new(error.message).hint(error.hint.unwrap_or_default()))
}

fn media(text: &str) -> Result<(), Illegal> {
    if text.starts_with("https:") || text.starts_with("data:") {
        return Ok(());
    }
    let hint = "files are not read: put it on the web, or into the address, as `data:image/png;base64,...`";
    Err(Illegal::new("`url` must begin with `https:` or `data:`").hint(hint))
}

/// The text itself is in no message: it may be a key.
fn variable(text: &str) -> Result<(), Illegal> {
    if secret::looks_like_key(text) || !is_variable(text) {
        let hint = format!("a key never stands in a team file: {KEEP_SECRET}, such as `HOUSE_API_KEY`");
        return Err(Illegal::new("this is not the name of an environment variable").hint(hint));
    }
    Ok(())
}

/// Whether `text` is a legal name of an environment variable.
pub(crate) fn is_variable(text: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.starts_with(|c: char| legal(c) && !c.is_ascii_digit()) && text.chars().all(legal)
}

fn header(text: &str) -> Result<(), Illegal> {
    if secret::looks_like_key(text) {
        let message = "a key never stands in a team file, and this header looks like one";
        return Err(Illegal::new(message).hint(format!("{KEEP_SECRET}: `{{env: NAME}}`")));
    }
    Ok(())
}

fn regex(text: &str) -> Result<(), Illegal> {
    regex::Regex::new(text).map(|_| ()).map_err(|error| {
        // The last line of the error says what is wrong; those before it show the expression.
        let error = error.to_string();
        let why = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
        Illegal::new(format!("`{text}` is not a regular expression: {why}"))
    })
}

fn legal<T>(text: &str, condition: Result<T, NoCondition>) -> Result<(), Illegal> {
    condition.map(|_| ()).map_err(|error| {
        let what =
            if text.trim_end().contains('\n') { "this".to_owned() } else { format!("`{}`", text.trim_end()) };
        let message = format!("{what} is not a condition: {}", error.why);
        Illegal { message, hint: error.hint, offset: error.at }
    })
}

fn host(text: &str) -> Result<(), Illegal> {
    let (host, port) = text.rsplit_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
    let name = host.strip_prefix("*.").unwrap_or(host);
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    if name.is_empty() || !name.chars().all(legal) || !is_port {
        let hint = "name a host, such as `example.org`, `*.example.org` or `example.org:8080`";
        return Err(Illegal::new(format!("`{text}` is not a host")).hint(hint));
    }
    Ok(())
}

/// A text in the notation of the file.
pub(crate) type ModelText = Leaf<Model>;
pub(crate) type OwnModelText = Leaf<OwnModel>;
pub(crate) type PathText = Leaf<FilePath>;
pub(crate) type UrlText = Leaf<Url>;
pub(crate) type MediaText = Leaf<MediaUrl>;
pub(crate) type VariableText = Leaf<Variable>;
pub(crate) type HeaderText = Leaf<HeaderValue>;
pub(crate) type RegexText = Leaf<Regex>;
pub(crate) type ConditionText = Leaf<When>;
pub(crate) type CodeConditionText = Leaf<WhenCode>;
pub(crate) type CallConditionText = Leaf<WhenCall>;
pub(crate) type HostText = Leaf<Host>;
pub(crate) type StepText = Leaf<ScriptText>;
pub(crate) type ToolNameText = Leaf<ToolName>;

/// A part of a team file, out of its text.
#[cfg(test)]
pub(crate) fn read<T: Config>(text: &str) -> T {
    let source = crate::source::Source::new("part.yaml", text);
    let mut report = crate::diagnostic::Report::new(&source);
    let node = crate::yaml::parse(&mut report).unwrap();
    let mut vars = vars::Vars::default();
    let value = T::read(&node, &mut Cx::new("a part", &mut report, &mut vars));
    assert!(!report.failed(), "{}", report.finish());
    value
}
