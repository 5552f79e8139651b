//! The user's configuration: environment variables, and below them the file `config.yaml`. Team files and the options of a
//! command override both.

mod edit;
mod model;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use polylogue_config::diagnostic::Report;
use polylogue_config::source::Source;
use polylogue_config::types::{Key, Kind};
use polylogue_config::yaml::{Data, Entry, Node};
use polylogue_config::{Config, Cx, Vars, suggest};
use polylogue_core::Money;
use polylogue_core::text::of_json;
use polylogue_team::secret::looks_like_key;
use polylogue_team::{Diagnostics, parse_yaml};
use serde_json::{Map, Value};

use self::model::ModelText;
use crate::error::CliError;
use crate::{args, place};

/// Settings of the user.
#[derive(Config)]
struct Settings {
    /// Model of agents for which the team file names none, as `provider:model`.
    #[key(as = Option<ModelText>, none = "none")]
    model: Option<String>,
    /// Maximum cost in dollars of a conversation that `run`, `chat` or `mcp` begins, and of a `batch` in all, where the command
    /// line gives none. A lower limit of the team file counts instead.
    #[key(none = "none", range = 0..=1_000_000)]
    max_cost: Option<f64>,
}

/// What the environment variable of each setting begins with.
const PREFIX: &str = "POLYLOGUE_";

/// A setting, by its key in the file.
#[derive(Clone, Copy)]
pub(crate) struct Setting(&'static Key);

impl Setting {
    /// All of them.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let keys = match &Settings::ty().kind {
            Kind::Struct(of) => of.all(),
            _ => Vec::new(),
        };
        keys.into_iter().map(Self)
    }

    /// The setting called `name`.
    pub(crate) fn find(name: &str) -> Result<Self, CliError> {
        let names = || Self::all().map(Self::name);
        let unknown = || match is_secret_name(name) {
            true => secret(),
            false => CliError::usage(format!("there is no setting `{name}`"))
                .hint(suggest::hint(name, names().collect::<Vec<_>>())),
        };
        Self::all().find(|setting| setting.name() == name).ok_or_else(unknown)
    }

    pub(crate) const fn name(self) -> &'static str {
        self.0.name
    }

    pub(crate) fn about(self) -> &'static str {
        self.0.doc.trim_end_matches('.')
    }

    /// The environment variable that overrides the file.
    pub(crate) fn variable(self) -> String {
        format!("{PREFIX}{}", self.name().to_uppercase())
    }
}

/// A setting's value and where it comes from.
#[derive(Debug, Clone)]
pub(crate) struct SettingValue {
    pub(crate) value: String,
    pub(crate) origin: Origin,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Variable(String),
    File(PathBuf),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => f.write_str(name),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// The file with the user's settings.
pub(crate) struct UserConfig {
    path: PathBuf,
    text: String,
    values: Map<String, Value>,
}

impl UserConfig {
    /// The file that `given` names; by default, the one in the user's configuration folder, which need not be there.
    pub(crate) fn read(given: Option<&Path>) -> Result<Self, CliError> {
        let (config, exists) = Self::found(given)?;
        if given.is_some() && !exists {
            let what = format!("there is no configuration file `{}`", config.path.display());
            return Err(CliError::usage(what).hint("`polylogue config set` makes one"));
        }
        Ok(config)
    }

    /// The same, where the file that is named can be missing, too. Says whether it is there.
    fn found(given: Option<&Path>) -> Result<(Self, bool), CliError> {
        let path = path(given)?;
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                let what = format!("your configuration `{}` cannot be read: {error}", path.display());
                return Err(CliError::usage(what));
            }
        };
        let exists = text.is_some();
        let text = text.unwrap_or_default();
        let values = values(&text, &path.display().to_string())?;
        Ok((Self { path, text, values }, exists))
    }

    /// The value in the file.
    fn value(&self, setting: Setting) -> Option<SettingValue> {
        let value = self.values.get(setting.name())?;
        Some(SettingValue { value: of_json(value), origin: Origin::File(self.path.clone()) })
    }
}

/// The path of the file; `given` is what the command line names.
pub(crate) fn path(given: Option<&Path>) -> Result<PathBuf, CliError> {
    given.map(Path::to_owned).or_else(place::of_config).ok_or_else(|| {
        CliError::usage("no home directory was found for your configuration")
            .hint("set a path with `--config`")
    })
}

/// The value of `setting` that counts: that of the environment variable, or else that of the file.
pub(crate) fn value(given: Option<&Path>, setting: Setting) -> Result<Option<SettingValue>, CliError> {
    let variable = setting.variable();
    match std::env::var(&variable).ok().filter(|value| !value.is_empty()) {
        Some(value) => {
            checked(setting, &value).map_err(|wrong| wrong.about(&variable))?;
            Ok(Some(SettingValue { value, origin: Origin::Variable(variable) }))
        }
        None => Ok(UserConfig::read(given)?.value(setting)),
    }
}

/// The default model of a command with these options; none where it cannot count.
pub(crate) fn default_model(
    cli: &args::Cli,
    models: &args::Models,
) -> Result<Option<SettingValue>, CliError> {
    if models.offline || models.model.is_some() {
        return Ok(None);
    }
    given(cli, "model")
}

/// The user's limit on cost for a command with these models; none where nothing costs anything.
pub(crate) fn default_max_cost(cli: &args::Cli, models: &args::Models) -> Result<Option<Money>, CliError> {
    if models.offline || models.replay.is_some() {
        return Ok(None);
    }
    let given = given(cli, "max_cost")?.and_then(|setting| setting.value.parse().ok());
    Ok(given.map(Money::dollars))
}

/// The user's limit on the cost of a conversation of a team that allows `own`; none where the team allows no more.
pub(crate) fn default_cost(
    cli: &args::Cli,
    models: &args::Models,
    own: Option<Money>,
) -> Result<Option<Money>, CliError> {
    let most = default_max_cost(cli, models)?;
    Ok(most.filter(|most| own.is_none_or(|own| *most < own)))
}

fn given(cli: &args::Cli, name: &str) -> Result<Option<SettingValue>, CliError> {
    match Setting::all().find(|setting| setting.name() == name) {
        Some(setting) => value(cli.config(), setting),
        None => Ok(None),
    }
}

/// The value as the file has it. Refuses one that the file could not have.
fn checked(setting: Setting, value: &str) -> Result<Value, CliError> {
    if looks_like_key(value) {
        return Err(secret());
    }
    let text = format!("{}: {}\n", setting.name(), written(value));
    let diagnostics = match values(&text, setting.name()) {
        Ok(mut values) => return Ok(values.shift_remove(setting.name()).unwrap_or_default()),
        Err(diagnostics) => diagnostics,
    };
    let first = diagnostics.iter().next();
    let message = first.map(|one| one.message.clone()).unwrap_or_default();
    let error = CliError::usage(message);
    Err(match first.and_then(|one| one.hint.clone()) {
        Some(hint) => error.hint(hint),
        None => error,
    })
}

/// The values in the `text` of a file.
fn values(text: &str, file_name: &str) -> Result<Map<String, Value>, Diagnostics> {
    let source = Source::new(file_name, text);
    let mut report = Report::new(&source);
    let is_blank = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    if text.lines().all(is_blank) {
        return Ok(Map::new());
    }
    let Some(root) = parse_yaml(&mut report) else { return Err(report.finish()) };
    // A key that was put here by mistake is not shown.
    hide_secrets(&root, &mut report);
    let is_misplaced =
        |entry: &&Entry| is_secret_name(&entry.key) || entry.value.text().is_some_and(is_secret);
    // The lines of a `.env` file are one text.
    let of_env = root.text().filter(|text| is_secret(text)).map(|_| &root.span);
    for at in root.entries().iter().filter(is_misplaced).map(|entry| &entry.key_span).chain(of_env) {
        report.error_with_hint(at, "keys are not kept in this file", KEEP_SECRET);
    }
    let mut vars = Vars::default();
    let settings = Settings::read(&root, &mut Cx::new("a configuration", &mut report, &mut vars));
    if report.failed() {
        return Err(report.finish());
    }
    match settings.write() {
        Value::Object(values) => Ok(values),
        _ => Ok(Map::new()),
    }
}

/// Hides what may be a secret, wherever it is.
fn hide_secrets(node: &Node, report: &mut Report<'_>) {
    match &node.data {
        Data::Text(text) if is_secret(text) => report.hide(&node.span),
        Data::List(items) => items.iter().for_each(|item| hide_secrets(item, report)),
        Data::Map(entries) => {
            for entry in entries {
                if is_secret_name(&entry.key) {
                    report.hide(&entry.value.span);
                }
                hide_secrets(&entry.value, report);
            }
        }
        _ => {}
    }
}

/// Whether `text` may hold a secret: a key, or an assignment of one as in a `.env` file.
fn is_secret(text: &str) -> bool {
    let assigns = |word: &str| word.split_once('=').is_some_and(|(name, _)| is_secret_name(name));
    looks_like_key(text) || text.split_whitespace().any(assigns)
}

/// `value` in YAML: in quotes unless it is plain, or a number.
fn written(value: &str) -> String {
    if value.parse::<f64>().is_ok_and(f64::is_finite) {
        return value.to_owned();
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ":/._-".contains(c);
    let begins = value.starts_with(|c: char| c.is_ascii_alphabetic());
    match begins && value.chars().all(is_plain) && !value.ends_with(':') {
        true => value.to_owned(),
        false => Value::from(value).to_string(),
    }
}

/// What to do with a secret.
const KEEP_SECRET: &str = "set an environment variable, such as `OPENAI_API_KEY`, or write it to `.env`; `polylogue doctor` lists the variables";

fn secret() -> CliError {
    CliError::usage("keys and other secrets are not kept in the configuration").hint(KEEP_SECRET)
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_lowercase();
    ["key", "token", "secret", "password"].iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests;
