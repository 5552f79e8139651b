//! A subset of team files as types.

use std::collections::BTreeMap;
use std::time::Duration;

use polylogue_config::diagnostic::Report;
use polylogue_config::source::Source;
use polylogue_config::types::{Text, Variables};
use polylogue_config::{
    At, Config, Cx, Foreign, Illegal, Leaf, NameKind, NewName, OneOrMany, Ref, Switch, TextKind, Vars, yaml,
};
use serde_json::{Map, Value};

/// A team.
#[derive(Config, Debug, PartialEq)]
pub(crate) struct Team {
    /// The team's name.
    pub(crate) name: At<NewName<TeamName>>,
    /// Variables.
    pub(crate) vars: BTreeMap<String, Value>,
    /// The agents.
    #[key(nonempty)]
    pub(crate) agents: Vec<Agent>,
    /// The chat.
    pub(crate) chat: Chat,
    /// The header that holds a key.
    #[key(none = "no header", secret)]
    pub(crate) header: Option<String>,
}

/// An agent.
#[derive(Config, Debug, PartialEq)]
pub(crate) enum Agent {
    /// A person.
    #[when(human = true, noun = "a person")]
    Person(Person),
    /// An agent that a model speaks for.
    #[when(noun = "an agent with a model")]
    Model(Box<Model>),
}

/// What all agents have.
#[derive(Config, Debug, PartialEq)]
pub(crate) struct Common {
    /// Its name.
    pub(crate) name: NewName<AgentName>,
    /// One line about it.
    #[key(default = String::new())]
    pub(crate) description: String,
    /// Whether it is a person.
    #[key(default = false)]
    pub(crate) human: bool,
}

/// A person.
#[derive(Config, Debug, PartialEq)]
pub(crate) struct Person {
    #[key(flatten)]
    pub(crate) common: Common,
    /// How long an answer can take.
    #[key(as = Option<Leaf<Time>>, none = "any time")]
    pub(crate) timeout: Option<Time>,
}

/// An agent that a model speaks for.
#[derive(Config, Debug, PartialEq)]
pub(crate) struct Model {
    #[key(flatten)]
    pub(crate) common: Common,
    /// Its system message.
    #[key(none = "no system message", nonempty)]
    pub(crate) system: Option<String>,
    /// Its tools.
    #[key(unique)]
    pub(crate) tools: Vec<Tool>,
    /// How it reasons.
    #[key(none = "it replies at once")]
    pub(crate) reasoning: Option<Reasoning>,
    /// Its memory.
    pub(crate) memory: Switch<Memory>,
    /// How its model writes.
    pub(crate) parameters: Parameters,
    /// Tools that are included.
    #[key(excludes = "exclude")]
    pub(crate) include: Vec<String>,
    /// Tools that are excluded.
    pub(crate) exclude: Vec<String>,
    /// The schema of its replies.
    #[key(nonempty)]
    pub(crate) output_schema: Map<String, Value>,
    /// How often a reply that does not fit is repaired.
    #[key(default = 3, range = 0..=100, requires = "output_schema")]
    pub(crate) output_retries: u32,
}

/// How a model writes.
#[derive(Config, Debug, PartialEq)]
pub(crate) struct Parameters {
    /// Randomness.
    #[key(none = "the provider's", range = 0..=2)]
    pub(crate) temperature: Option<f64>,
    /// Texts that end a reply.
    pub(crate) stop: OneOrMany<String>,
}

/// A tool.
#[derive(Config, Debug, PartialEq)]
#[config(by_shape)]
pub(crate) enum Tool {
    /// A tool and how its use is prompted.
    Own(OwnTool),
    /// The tools of a server.
    Mcp(McpTools),
}

/// A tool and how its use is prompted.
#[derive(Config, Debug, PartialEq)]
#[config(shorthand = "tool")]
pub(crate) struct OwnTool {
    /// Its name.
    #[key(nonempty)]
    pub(crate) tool: String,
    /// Whether it must be used in every turn.
    #[key(default = false)]
    pub(crate) mandatory: bool,
}

/// The tools of a server.
#[derive(Config, Debug, PartialEq)]
pub(crate) struct McpTools {
    /// The server.
    pub(crate) mcp: String,
    /// Tools that are left out.
    pub(crate) without: Vec<String>,
}

/// How an agent reasons.
#[derive(Config, Debug, PartialEq)]
pub(crate) enum Reasoning {
    /// It calls tools in rounds.
    React(React),
    /// It drafts and revises.
    Refine(Box<Refine>),
    /// It is asked several times.
    Best(Best),
    /// It replies at once.
    Direct,
}

/// Rounds of tool calls.
#[derive(Config, Debug, PartialEq)]
pub(crate) struct React {
    /// Maximum number of rounds.
    #[key(default = 8, range = 1..=10_000)]
    pub(crate) max_rounds: u32,
}

/// Drafts and critique.
#[derive(Config, Debug, PartialEq)]
pub(crate) struct Refine {
    /// The critic.
    #[key(none = "the agent itself")]
    pub(crate) critic: Option<Ref<AgentName>>,
    /// Maximum number of rounds.
    #[key(default = 3, range = 0..=10_000)]
    pub(crate) rounds: u32,
    /// How the critic reasons.
    #[key(none = "it replies at once")]
    pub(crate) inner: Option<Box<Reasoning>>,
}

/// The best of several replies.
#[derive(Config, Debug, PartialEq)]
pub(crate) struct Best {
    /// Who chooses.
    pub(crate) critic: Ref<AgentName>,
}

/// Long-term memory.
#[derive(Config, Debug, PartialEq)]
pub(crate) struct Memory {
    /// How many facts are recalled before a turn.
    #[key(default = 5, range = 0..=50)]
    pub(crate) auto_recall: u8,
}

/// A chat.
#[derive(Config, Debug, PartialEq)]
pub(crate) struct Chat {
    /// Who takes part.
    #[key(nonempty, unique)]
    pub(crate) participants: Vec<Ref<AgentName>>,
    /// Limit on turns.
    #[key(default = 100, range = 1..=1_000_000)]
    pub(crate) max_turns: u64,
}

#[derive(Debug, PartialEq)]
pub(crate) struct TeamName;
#[derive(Debug, PartialEq)]
pub(crate) struct AgentName;

const NAME: Text = Text {
    format: "name",
    pattern: "^[A-Za-z][A-Za-z0-9_]{0,63}$",
    examples: &["Critic"],
    variables: Variables::None,
};

fn parse_name(name: &str) -> Result<String, Illegal> {
    let legal = name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if legal {
        return Ok(name.to_owned());
    }
    Err(Illegal::new(format!("`{name}` is not a legal name")).hint("use letters, digits and `_`"))
}

impl NameKind for TeamName {
    const KIND: &'static str = "team";
    const NOUN: &'static str = "a team";
    type Name = String;
    const TEXT: Text = NAME;
    fn parse(name: &str) -> Result<String, Illegal> {
        parse_name(name)
    }
    fn hole() -> String {
        String::new()
    }
}

impl NameKind for AgentName {
    const KIND: &'static str = "agent";
    const NOUN: &'static str = "an agent";
    type Name = String;
    const TEXT: Text = NAME;
    fn parse(name: &str) -> Result<String, Illegal> {
        parse_name(name)
    }
    fn hole() -> String {
        String::new()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Time(pub(crate) Duration);

impl TextKind for Time {
    type Value = Self;
    const TEXT: Text =
        Text { format: "duration", pattern: "^[0-9]+ s$", examples: &["10 s"], variables: Variables::All };
    fn parse(text: &str) -> Result<Self, Illegal> {
        let seconds = text.strip_suffix(" s").filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
        seconds.and_then(|digits| digits.parse().ok()).map(|s| Self(Duration::from_secs(s))).ok_or_else(
            || {
                Illegal::new(format!("`{text}` is not a duration"))
                    .hint("write a number and its unit, such as `10 s`")
            },
        )
    }
    fn to_text(time: &Self) -> String {
        format!("{} s", time.0.as_secs())
    }
    fn hole() -> Self {
        Self(Duration::ZERO)
    }
}

pub(crate) const FOREIGN: [Foreign; 4] = [
    Foreign { system: "AutoGen", name: "system_message", value: "", within: "Agent", here: "`system`" },
    Foreign { system: "", name: "max_round", value: "9", within: "Chat", here: "`max_turns: 9`" },
    Foreign { system: "AutoGen", name: "max_round", value: "", within: "Chat", here: "`max_turns`" },
    Foreign { system: "CrewAI", name: "cot", value: "", within: "Reasoning", here: "`react`" },
];

/// Reads a file: the team, and its diagnostics as text.
pub(crate) fn read(text: &str) -> (Option<Team>, String) {
    let source = Source::new("team.yaml", text);
    let mut report = Report::new(&source);
    let mut vars = Vars::default();
    let Some(node) = yaml::parse(&mut report) else { return (None, report.finish().to_string()) };
    for entry in node.get("vars").entries() {
        vars.insert(entry.key.clone(), entry.value.text().unwrap_or_default().to_owned());
    }
    let mut cx = Cx::new("a team", &mut report, &mut vars).with_foreign(&FOREIGN).with_deferred(&["task"]);
    let team = Team::read(&node, &mut cx);
    cx.resolve();
    let failed = report.failed();
    ((!failed).then_some(team), report.finish().to_string())
}

/// Every key of the subset.
pub(crate) const WHOLE: &str = r#"
name: demo
vars: {style: terse}
header: "Bearer abc"
agents:
  - name: Ann
    description: "a {{style}} writer"
    system: "Be {{style}}."
    tools: [calculator, {tool: search, mandatory: true}, {mcp: files, without: [delete]}]
    reasoning: {refine: {critic: Bob, rounds: 2, inner: react}}
    memory: {auto_recall: 3}
    parameters: {temperature: 0.5, stop: END}
    exclude: [calculator]
    output_schema: {type: object, properties: {b: {}, a: {}}}
    output_retries: 1
  - {name: Bob, reasoning: direct, memory: true, parameters: {stop: [A, B]}}
  - {name: Cy, human: true, timeout: 10 s}
chat: {participants: [Ann, Bob, Cy], max_turns: 7}
"#;
