//! What a team file says of programs: where they run, whose code is run, what else is a tool.

use polylogue_core::Name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::approve::Approve;
use crate::duration::Time;
use crate::text::{HostText, NameText, OptionText, PathText};

/// Where programs run, and what they may use. What is left out is the safest there is: enclosed, without a network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Sandbox")]
pub struct SandboxSettings {
    /// Where programs run.
    #[serde(skip_serializing_if = "Place::is_enclosed")]
    pub place: Place,
    /// The image that programs run in, in a container; the engine has to have it already.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OptionText>")]
    pub image: Option<String>,
    /// The hosts that enclosed programs may reach: `example.org`, `*.example.org`, `example.org:8080`. Has to be allowed on
    /// the command line as well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<HostText>", extend("uniqueItems" = true))]
    pub network: Vec<String>,
    /// Files and folders that programs may read besides those of the system and of the work directory, by whole paths. Has to
    /// be allowed on the command line as well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<PathText>", extend("uniqueItems" = true))]
    pub readable: Vec<String>,
    /// How long a program may run; a minute when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
    /// MiB of memory; 1024 when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 16, max = 1_048_576))]
    pub memory_mib: Option<u32>,
    /// MiB of all that is in the work directory; 1024 when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_048_576))]
    pub disk_mib: Option<u32>,
    /// Processes and threads at the same time; 128 when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65_536))]
    pub processes: Option<u32>,
}

impl SandboxSettings {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Where programs run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "SandboxPlace")]
pub enum Place {
    /// On this machine, enclosed by its kernel.
    #[default]
    Enclosed,
    /// In containers of Docker.
    Docker,
    /// In containers of Podman.
    Podman,
    /// On this machine, with all rights of whoever runs the team. Has to be allowed on the command line as well.
    UnsafeHost,
}

impl Place {
    fn is_enclosed(&self) -> bool {
        *self == Self::Enclosed
    }
}

/// A language that is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    /// Python, by `python3`.
    Python,
    /// Shell, by `bash` or `sh`.
    Shell,
    /// JavaScript, by `node`.
    #[serde(rename = "javascript")]
    JavaScript,
}

impl Language {
    pub(crate) const ALL: [Self; 3] = [Self::Python, Self::Shell, Self::JavaScript];
}

/// Whether an agent runs the code in what it hears, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "RunsCodeForm")]
#[schemars(inline, with = "RunsCodeForm")]
pub struct RunsCode {
    /// The languages it runs; it runs nothing when there is none.
    pub languages: Vec<Language>,
    /// Further languages whose code it saves to files, without running it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub saves: Vec<String>,
    /// When a person is asked before code is run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approve: Option<Approve>,
    /// How many of the latest messages it looks at; those since it spoke last when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<u32>,
    /// How long one block may run; as the sandbox has it when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
}

impl RunsCode {
    /// Whether it runs nothing.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.languages.is_empty()
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum RunsCodeForm {
    /// Whether it runs Python, shell and JavaScript.
    Switch(bool),
    /// How it does.
    Full(FullRunsCode),
}

/// Which code an agent runs, and how.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RunsCode")]
struct FullRunsCode {
    /// The languages it runs; Python, shell and JavaScript when left out.
    #[serde(default)]
    #[schemars(length(min = 1), extend("uniqueItems" = true))]
    languages: Option<Vec<Language>>,
    /// Further languages, by their tags such as `html`, whose code it saves to files without running it.
    #[serde(default)]
    #[schemars(with = "Vec<OptionText>", extend("uniqueItems" = true))]
    saves: Vec<String>,
    /// When a person is asked before code is run: never when left out, but always for code that nothing encloses.
    #[serde(default)]
    approve: Option<Approve>,
    /// How many of the latest messages it looks at, whoever spoke since; those since it spoke last when left out.
    #[serde(default)]
    #[schemars(range(min = 1))]
    last: Option<u32>,
    /// How long one block may run; as the sandbox has it when left out.
    #[serde(default)]
    time: Option<Time>,
}

impl From<RunsCodeForm> for RunsCode {
    fn from(form: RunsCodeForm) -> Self {
        match form {
            RunsCodeForm::Switch(false) => Self::default(),
            RunsCodeForm::Switch(true) => Self { languages: Language::ALL.to_vec(), ..Self::default() },
            RunsCodeForm::Full(FullRunsCode { languages, saves, approve, last, time }) => {
                let languages = languages.unwrap_or_else(|| Language::ALL.to_vec());
                Self { languages, saves, approve, last, time }
            }
        }
    }
}

/// An agent, a chat or a team that an agent may ask as it calls a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "ConsultForm")]
#[schemars(inline, with = "ConsultForm")]
pub struct Consult {
    /// Who is asked.
    pub who: Name,
    /// The name of the tool; that of who is asked when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What the model is told of it; the description of who is asked when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// How often it is asked in one turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum ConsultForm {
    Name(#[schemars(with = "NameText")] Name),
    Full(FullConsult),
}

/// Who is asked as a tool, and how.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Consult")]
struct FullConsult {
    /// Who is asked: an agent, a chat or a team.
    #[schemars(with = "NameText")]
    who: Name,
    /// The name of the tool: ASCII letters, digits, `_` and `-`. Default: that of who is asked, in these characters.
    #[serde(default)]
    #[schemars(with = "Option<NameText>")]
    tool: Option<String>,
    /// What the model is told of it: what it does, and when to ask it. The description of who is asked when left out.
    #[serde(default)]
    #[schemars(with = "Option<OptionText>")]
    about: Option<String>,
    /// How often it is asked in one turn, 8 when left out; a call beyond that fails.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    at_most: Option<u32>,
}

impl From<ConsultForm> for Consult {
    fn from(form: ConsultForm) -> Self {
        match form {
            ConsultForm::Name(who) => Self { who, tool: None, about: None, at_most: None },
            ConsultForm::Full(FullConsult { who, tool, about, at_most }) => {
                Self { who, tool, about, at_most }
            }
        }
    }
}

/// A file that is in the work directory when a conversation begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, with = "PathText")]
pub struct WorkFile {
    /// Where it was read from, seen from the team file's folder.
    pub file: String,
    /// What is in it.
    pub content: String,
}

impl WorkFile {
    /// Its name in the work directory.
    #[must_use]
    pub fn name(&self) -> &str {
        base_name(&self.file)
    }
}

/// The last name of a path.
pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}
