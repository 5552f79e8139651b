//! Texts of a team file with a meaning: names, templates, addresses, conditions.

use polylogue_config::source::Span;
use polylogue_config::types::{Kind, Text, Type, Variables};
use polylogue_config::yaml::Node;
use polylogue_config::{At, Config, Cx, Filled, Illegal, Leaf, NameKind, Names, Ref, TextKind, Verbatim};
use polylogue_core::{ConfigError, Name};
use polylogue_http::host_of;
use polylogue_models::{Endpoint, known_provider};
use serde_json::{Map, Value};

use crate::condition::{CallCondition, CodeCondition, Condition, NoCondition};
use crate::json_schema::check_schema;
use crate::secret;
use crate::suggest;
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// Never empty; the task goes between two of them.
    pieces: Vec<String>,
}

impl Template {
    /// Creates a template of `text`, in which `{{task}}` is the task and everything else is plain.
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

    /// Returns the text with every `{{task}}` replaced by `task`.
    pub fn fill(&self, task: &str) -> String {
        self.pieces.join(task)
    }

    /// Returns whether it quotes the task.
    pub fn quotes_task(&self) -> bool {
        self.pieces.len() > 1
    }

    /// Returns whether there is nothing in it.
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

/// A JSON Schema that replies must satisfy.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema(pub Map<String, Value>);

impl Config for Schema {
    fn ty() -> &'static Type {
        <Map<String, Value> as Config>::ty()
    }

    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        check_schema(node, cx.report);
        Self(Map::read(node, cx))
    }

    fn hole() -> Self {
        Self(Map::new())
    }

    fn write(&self) -> Value {
        self.0.write()
    }
}

/// Kinds of names of what takes part in chats. Those of a file must differ, whatever they name.
macro_rules! name_kinds {
    ($($(#[$doc:meta])* $kind:ident: $of:expr, $noun:literal, $before:literal $after:literal $(, $item:item)*;)*) => {$(
        $(#[$doc])*
        pub(crate) struct $kind;

        impl NameKind for $kind {
            type Name = Name;
            const KIND: &'static str = $of;
            const NOUN: &'static str = $noun;
            const TEXT: Text = NAME;
            $($item)*

            fn parse(text: &str) -> Result<Name, Illegal> {
                name(text)
            }

            fn hole() -> Name {
                Name::user()
            }

            fn unknown(name: &str) -> String {
                format!("{}`{name}`{}", $before, $after)
            }

            fn hint(name: &str, names: &[&str]) -> String {
                advice(Self::KIND, name, names)
            }
        }
    )*};
}

/// What to do about a name of this kind that is not defined, by those that are.
fn advice(kind: &str, name: &str, names: &[&str]) -> String {
    match kind {
        PARTICIPANT if names.is_empty() => "define it in `agents`".to_owned(),
        CHAT if names.is_empty() => "define it in `chats`".to_owned(),
        // The two nodes that every graph of LangGraph has.
        MEMBER if matches!(name, "END" | "__end__") && !names.contains(&END) => {
            "leave it out: a graph ends where no edge leads on".to_owned()
        }
        MEMBER if matches!(name, "START" | "__start__") => {
            "the key `start` names who speaks first".to_owned()
        }
        _ => suggest::hint(name, names.iter().copied()),
    }
}

const PARTICIPANT: &str = "participant";
const CHAT: &str = "chat";
const OUTERMOST: &str = "outermost chat";
/// A participant of a chat.
const MEMBER: &str = "member";

name_kinds! {
    /// The name of an agent, where it is defined.
    OfAgent: PARTICIPANT, "an agent", "there is no agent " "";
    /// The name of a chat, where it is defined.
    OfChat: CHAT, "a chat", "there is no chat " "",
        const MEANS: &'static [&'static str] = &[PARTICIPANT];,
        fn define(names: &mut Names, name: &str, span: &Span) {
            names.define::<Self>(name, span);
            names.define::<InChats>(name, span);
        };
    /// A chat as one of those that take part in chats.
    InChats: PARTICIPANT, "a chat", "" "";
    /// The name of a team, where it is defined.
    OfTeam: PARTICIPANT, "a team", "there is no team " "";
    /// The name of the team in this file, which is that of the outermost chat.
    OfOutermost: OUTERMOST, "the outermost chat", "" "";
    /// A participant that is defined elsewhere.
    Participant: PARTICIPANT, "a participant", "there is no agent, chat or team " "";
    /// A participant, or `user` for the person who gives the task.
    ParticipantOrUser: PARTICIPANT, "a participant", "there is no agent, chat or team " "",
        const WORDS: &'static [&'static str] = &["user"];;
    /// One of the participants of a chat, where they are listed.
    Listed: PARTICIPANT, "a participant", "there is no agent, chat or team " "",
        const MEANS: &'static [&'static str] = &[PARTICIPANT, OUTERMOST];,
        fn define(names: &mut Names, name: &str, span: &Span) {
            names.refer::<Self>(name, span);
            names.define::<Member>(name, span);
        };
    /// A participant of the same chat.
    Member: MEMBER, "a participant", "" " does not take part in this chat", const SCOPED: bool = true;;
    /// A participant of the same chat, or `user`.
    MemberOrUser: MEMBER, "a participant", "" " does not take part in this chat",
        const SCOPED: bool = true;, const WORDS: &'static [&'static str] = &["user"];;
    /// A participant of the same chat, or `end`.
    MemberOrEnd: MEMBER, "a participant", "" " does not take part in this chat",
        const SCOPED: bool = true;, const WORDS: &'static [&'static str] = &[END];;
    /// A participant of the same chat, `stay` or `end`.
    MemberOrStay: MEMBER, "a participant", "" " does not take part in this chat",
        const SCOPED: bool = true;, const WORDS: &'static [&'static str] = &[STAY, END];;
    /// Who says something: a participant of the chat or of the team, whichever it is about, or `user`.
    Speaker: PARTICIPANT, "a participant", "" "",
        fn refer(names: &mut Names, name: &str, span: &Span) {
            if names.in_scope() {
                names.refer::<MemberOrUser>(name, span);
            } else {
                names.refer::<ParticipantOrUser>(name, span);
            }
        };
    /// A participant of a chat of which this is one, too; a check looks at it.
    Neighbor: PARTICIPANT, "a participant", "" "",
        fn refer(_: &mut Names, _: &str, _: &Span) {};
}

/// The word for the end of a chat, where a participant can be next.
pub(crate) const END: &str = "end";
/// The word for the last speaker.
pub(crate) const STAY: &str = "stay";

/// The names without their positions.
pub(crate) fn values(names: &[At<Name>]) -> impl Iterator<Item = Name> {
    names.iter().map(|name| name.value.clone())
}

/// The names that are checked further, with their positions.
pub(crate) type ParticipantRef = At<Ref<Participant>>;
pub(crate) type AgentRef = At<Ref<OfAgent>>;
pub(crate) type ChatRef = At<Ref<OfChat>>;
pub(crate) type MemberRef = Ref<Member>;
pub(crate) type SpeakerRef = Ref<Speaker>;
pub(crate) type NeighborRef = At<Ref<Neighbor>>;

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
            Err(Illegal::new(message).hint(format!("type it again, or copy it from here: `{name}`")))
        }
        Ok(name) => Ok(name),
        Err(error) => {
            let illegal = Illegal::new(error.to_string());
            Err(match error.hint() {
                Some(hint) => illegal.hint(hint),
                None => illegal,
            })
        }
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

/// What to do with a secret.
pub(crate) const KEEP_SECRET: &str =
    "put it into an environment variable or into `.env`, and the variable's name here";

fn not_empty(text: &str) -> Result<(), Illegal> {
    if text.is_empty() { Err(Illegal::new("the path is empty")) } else { Ok(()) }
}

fn model(text: &str) -> Result<(), Illegal> {
    let (provider, model) = text.split_once([':', '/']).unwrap_or((text, ""));
    if provider.is_empty() || model.is_empty() || text.contains(char::is_whitespace) || text.contains(',') {
        let hint = match known_provider(text) {
            _ if text.contains(',') => {
                "write several models as a list: `[openai:gpt-4o-mini, ollama:llama3.2]`".to_owned()
            }
            Some(provider) => format!("write `{provider}:{text}`"),
            None => "write `provider:model`, such as `openai:gpt-4o-mini`".to_owned(),
        };
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
        .map_err(|error| Illegal::new(error.message).hint(error.hint.unwrap_or_default()))?;
    check_host_is_plain(text)
}

/// Refuses an address that a reader takes for another one: `http:/evil.example/?x=://api.example` leads to `evil.example`.
fn check_host_is_plain(text: &str) -> Result<(), Illegal> {
    let Some(host) = host_of(text) else { return Err(Illegal::new("the address names no host")) };
    let lower = text.trim().to_ascii_lowercase();
    let schemes = ["http://", "https://"];
    if schemes.iter().any(|scheme| lower.strip_prefix(scheme).is_some_and(|rest| rest.starts_with(&host))) {
        return Ok(());
    }
    let hint = format!("write `http://` or `https://`, and then the host in this form: `{host}`");
    Err(Illegal::new(format!("the address does not begin with its host, which is `{host}`")).hint(hint))
}

fn media(text: &str) -> Result<(), Illegal> {
    if text.starts_with("https:") || text.starts_with("data:") {
        return Ok(());
    }
    let hint =
        "name a file with `file`, put it on the web, or into the address, as `data:image/png;base64,...`";
    Err(Illegal::new("`url` must begin with `https:` or `data:`").hint(hint))
}

/// The text itself is in no message: it may be a key.
fn variable(text: &str) -> Result<(), Illegal> {
    if secret::looks_like_key(text) || !is_variable(text) {
        let hint = format!("keys are not allowed in team files: {KEEP_SECRET}, such as `HOUSE_API_KEY`");
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
        let message = "keys are not allowed in team files, and the value of this header looks like one";
        return Err(Illegal::new(message).hint(format!("{KEEP_SECRET}: `{{env: NAME}}`")));
    }
    Ok(())
}

/// The regular expression `pattern`.
pub(crate) fn compile_regex(pattern: &str) -> polylogue::Result<regex::Regex> {
    regex::Regex::new(pattern).map_err(|error| invalid_regex(&error).into())
}

/// The error of a regular expression that was not checked, because its team was not read from a file.
pub(crate) fn invalid_regex(error: &regex::Error) -> ConfigError {
    ConfigError::invalid("the regular expression", error.to_string())
}

fn regex(text: &str) -> Result<(), Illegal> {
    regex::Regex::new(text).map(|_| ()).map_err(|error| {
        // The last line of the error says what is wrong; those before it show the expression.
        let error = error.to_string();
        let why = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
        Illegal::new(format!("`{text}` is not a valid regular expression: {why}"))
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
