//! Files to teams, teams within teams included.

mod contents;
mod file;
mod mcp;
mod media;
mod pages;
mod stored;
mod work;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use polylogue_config::{At, Config as _, Cx, Names};
use polylogue_core::text::excerpt;
use polylogue_core::{Media, Name};

use crate::built_in::{FILES, known_tool_names};
use crate::check;
use crate::codes;
use crate::diagnostic::{Diagnostic, Diagnostics, Report, Severity};
use crate::foreign::FOREIGN;
use crate::masking::parse_yaml;
use crate::source::Source;
use crate::sources::{Overrides, Sources};
use crate::suggest;
use crate::team::Team;
use crate::tooling::ToolKind;
use crate::vars::{self, Vars};
use crate::yaml::{Entry, Node};
use contents::Contents;
use file::{BelowFolder, Files, NoFiles, OnDisk, Unreadable};

/// Maximum depth of teams within teams.
const DEEPEST: usize = 8;
/// Maximum number of files of a team. A file that is named twice counts twice.
const MOST_FILES: usize = 64;

/// How much is shown of the name of a variable that a caller gives, in characters.
const LONGEST_NAME: usize = 48;

/// What to do about a team file that is elsewhere.
const OUTSIDE: &str = "move it below that folder, or add `--allow outside-files` if you trust the team";

/// A team without mistakes.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The team, with its variables filled in and the teams within it.
    pub team: Team,
    /// Warnings.
    pub warnings: Diagnostics,
    /// Identifies the content of the file and of all files that it includes: the team files, files and pages that it brings along,
    /// descriptions of services and MCP servers, and the programs in its folder that are MCP servers. Values that a caller gives
    /// are not in it.
    pub digest: String,
    /// The team files outside the folder of the outermost one, as they are named.
    pub outside: Vec<String>,
}

/// Reads the team file at `path` and the files it names.
///
/// # Errors
/// All mistakes in the files at once: a file is missing, larger than 4 MiB, not UTF-8 or not YAML; keys, types, values
/// and names are unknown or invalid; a team contains itself.
pub fn load(path: impl AsRef<Path>, overrides: &Overrides) -> Result<Loaded, Diagnostics> {
    let path = path.as_ref();
    let text = read_text(path)?;
    Loader::new(&OnDisk, overrides).outermost(&text, &path.display().to_string(), OnDisk.identity(path))
}

/// The text of a team file.
pub(crate) fn read_text(path: &Path) -> Result<String, Diagnostics> {
    let shown = path.display().to_string();
    let bytes = OnDisk.read(path).map_err(|Unreadable { why, hint }| {
        let message = format!("the team file cannot be read: {why}");
        let mut found = Diagnostics::default();
        found.push(Diagnostic::new(Severity::Error, codes::FILE, &shown, None, &message, hint.as_deref()));
        found
    })?;
    String::from_utf8(bytes).map_err(|error| file::not_utf8(error.as_bytes(), &error.utf8_error(), &shown))
}

/// Reads a team from the text of a file; errors call the file `file_name`. The text may name no further files.
///
/// # Errors
/// All mistakes in the text at once.
///
/// ```
/// use polylogue_team::{Overrides, parse};
/// let text = "
/// name: greeting
/// agents:
///   - {name: Ann, sytem: You are Ann}
/// chat: {participants: [Anne], stop: {max_turns: 2}}
/// ";
/// let errors = parse(text, "greeting.yaml", &Overrides::default()).unwrap_err();
/// assert_eq!(errors.errors(), 2);
/// assert_eq!(errors.to_string(), "\
/// error: unknown key `sytem`
///  --> greeting.yaml:4:17
///   |
/// 4 |   - {name: Ann, sytem: You are Ann}
///   |                 ^^^^^
/// hint: did you mean `system`?
///
/// error: there is no agent, chat or team `Anne`
///  --> greeting.yaml:5:23
///   |
/// 5 | chat: {participants: [Anne], stop: {max_turns: 2}}
///   |                       ^^^^
/// hint: did you mean `Ann`?
/// ");
/// ```
pub fn parse(text: &str, file_name: &str, overrides: &Overrides) -> Result<Loaded, Diagnostics> {
    Loader::new(&NoFiles, overrides).outermost(text, file_name, PathBuf::from(file_name))
}

/// Reads a team from `text` as if it were the content of the file at `path`, which need not exist. Whatever the text names, only files in the folder of
/// `path` are read, and links do not lead out of it: for texts from elsewhere, such as those of an editor. The files `hidden` are not read either:
/// the text finds the same as if they did not exist.
///
/// # Errors
/// As [`load`]. When the folder does not exist, the text may name no files.
pub fn parse_at(
    text: &str,
    path: impl AsRef<Path>,
    hidden: &[PathBuf],
    overrides: &Overrides,
) -> Result<Loaded, Diagnostics> {
    let path = path.as_ref();
    let shown = path.display().to_string();
    let overrides = Overrides { outside_files: false, ..overrides.clone() };
    match BelowFolder::of(path, hidden) {
        Some(files) => Loader::new(&files, &overrides).outermost(text, &shown, files.identity(path)),
        None => parse(text, &shown, &overrides),
    }
}

/// How many files a team and the teams within it can still attach, and how large they can be together. They are kept with every
/// conversation.
struct MediaLeft {
    files: usize,
    bytes: u64,
}

impl MediaLeft {
    const MOST_FILES: usize = 64;
}

impl Default for MediaLeft {
    fn default() -> Self {
        Self { files: Self::MOST_FILES, bytes: Media::MAX_BYTES }
    }
}

/// Loads a file and the files it names.
struct Loader<'a> {
    files: &'a dyn Files,
    overrides: &'a Overrides,
    tools: Vec<String>,
    found: Diagnostics,
    /// The files that are being read, each named by the one before: what they are, and what they are called.
    around: Vec<(PathBuf, String)>,
    count: usize,
    /// All that was read.
    contents: Contents,
    /// What is kept of it.
    sources: RefCell<Sources>,
    /// The team files outside the folder of the outermost one.
    outside: Vec<String>,
    /// What can still be attached.
    media_left: MediaLeft,
}

impl<'a> Loader<'a> {
    fn new(files: &'a dyn Files, overrides: &'a Overrides) -> Self {
        let tools = known_tool_names();
        let tools = tools.chain([FILES.to_owned()]).chain(overrides.tools.iter().cloned()).collect();
        Self {
            files,
            overrides,
            tools,
            found: Diagnostics::default(),
            around: Vec::new(),
            count: 0,
            contents: Contents::default(),
            sources: RefCell::default(),
            outside: Vec::new(),
            media_left: MediaLeft::default(),
        }
    }

    fn outermost(mut self, text: &str, shown: &str, identity: PathBuf) -> Result<Loaded, Diagnostics> {
        self.contents = Contents::of(Path::new(shown), text);
        let folder = self.files.absolute(Path::new("."));
        self.sources = Sources::of(shown, text, folder, self.overrides).into();
        let team = self.file(text, shown, identity, &self.overrides.vars);
        let Some(mut team) = team.filter(|_| self.found.errors() == 0) else { return Err(self.found) };
        if let Some(task) = &self.overrides.task {
            team.task = Some(task.clone());
        }
        team.sources = self.sources.into_inner();
        team.use_default_model();
        if let Some(model) = &self.overrides.model {
            team.use_model(model);
        }
        let digest = self.contents.digest();
        Ok(Loaded { team, warnings: self.found, digest, outside: self.outside })
    }

    /// The team of one file; nothing when there is an error in it.
    fn file(
        &mut self,
        text: &str,
        shown: &str,
        identity: PathBuf,
        given: &BTreeMap<String, String>,
    ) -> Option<Team> {
        let source = Source::new(shown, text);
        let mut report = Report::new(&source);
        let root = parse_yaml(&mut report);
        self.around.push((identity, shown.to_owned()));
        let team = root.and_then(|root| self.team(&root, given, &mut report));
        self.around.pop();
        self.found.append(report.finish());
        team
    }

    fn team(
        &mut self,
        root: &Node,
        given: &BTreeMap<String, String>,
        report: &mut Report<'_>,
    ) -> Option<Team> {
        check::hide_secrets(root, report);
        let mut vars = variables(root, given, report);
        let (mut team, mut names) = read_team(root, &mut vars, report);
        self.read_documents(&mut team, report);
        names.know::<ToolKind>(self.tools.iter().cloned().chain(team.declared_tools()));
        names.report(report);
        let teams: Vec<_> = team.teams.iter().map(|sub| self.team_within(&sub.file, report)).collect();
        self.read_work_files(&mut team, report);
        self.read_media(&mut team, report);
        self.read_venv(&mut team, report);
        self.check_cache(&team, report);
        self.read_pages(&mut team, report);
        self.put_servers(&mut team, report);
        self.note_programs(&team, report);
        let answering_models = answering_models(&team, &teams);
        let around = check::Around {
            teams: &teams,
            answering_models: answering_models.as_deref(),
            model: self.overrides.model.as_deref(),
            is_included: self.around.len() > 1,
        };
        check::check(root, &team, around, report);
        check::check_teams(&team, &teams, report);
        if report.failed() || teams.iter().any(Option::is_none) {
            return None;
        }
        warn_of_unused(&team, &vars, report);
        for (entry, sub) in team.teams.iter_mut().zip(teams) {
            entry.team = sub.map(Box::new).unwrap_or_default();
        }
        check::check_built(&team, self.overrides.model.as_deref(), report);
        (!report.failed()).then_some(team)
    }

    /// The team of another file; nothing if it has mistakes.
    fn team_within(&mut self, file: &At<String>, report: &mut Report<'_>) -> Option<Team> {
        let named = file.sound()?;
        let (_, shown) = self.around.last()?;
        let path = Path::new(shown).parent().unwrap_or(Path::new("")).join(named);
        let identity = self.files.identity(&path);
        if let Some(message) = self.refusal(&identity) {
            report.error(&file.span, message);
            return None;
        }
        if self.is_outside(&path) {
            if !self.overrides.outside_files {
                let message = format!("the team file `{named}` is outside the folder of the team file");
                report.error_with_hint(&file.span, message, OUTSIDE);
                return None;
            }
            self.outside.push(path.display().to_string());
        }
        self.count += 1;
        let bytes = match self.read(&path) {
            Ok(bytes) => bytes,
            Err(Unreadable { why, hint }) => {
                let message = format!("the team file `{named}` cannot be read: {why}");
                report.code(codes::FILE);
                match hint {
                    Some(hint) => report.error_with_hint(&file.span, message, hint),
                    None => report.error(&file.span, message),
                }
                return None;
            }
        };
        let shown = path.display().to_string();
        match std::str::from_utf8(&bytes) {
            Ok(text) => self.file(text, &shown, identity, &BTreeMap::new()),
            Err(error) => {
                self.found.append(file::not_utf8(&bytes, &error, &shown));
                None
            }
        }
    }

    /// Reads a file, which becomes part of the team.
    fn read(&self, path: &Path) -> Result<Vec<u8>, Unreadable> {
        let bytes = self.files.read(path)?;
        self.contents.note(path, &bytes);
        self.sources.borrow_mut().keep(path, &bytes);
        Ok(bytes)
    }

    /// Whether a team file is outside the folder of the outermost one, by its name or by links.
    fn is_outside(&self, path: &Path) -> bool {
        let folder = self.contents.folder();
        let around = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let (identity, around) = (self.files.identity(path), self.files.identity(around));
        // One that is not there has no identity: it is where its name leads.
        if identity.starts_with(&around) && !identity.components().any(|part| part == Component::ParentDir) {
            return false;
        }
        identity != path || contents::leads_out(folder, path)
    }

    /// Why a file is refused.
    fn refusal(&self, identity: &Path) -> Option<String> {
        if let Some(first) = self.around.iter().position(|(outer, _)| outer == identity) {
            let files = || self.around.iter().skip(first).map(|(_, shown)| shown.as_str());
            let cycle: Vec<&str> = files().chain(files().take(1)).collect();
            return Some(format!("this team contains itself: {}", cycle.join(" > ")));
        }
        if self.around.len() >= DEEPEST {
            let files: Vec<&str> = self.around.iter().map(|(_, shown)| shown.as_str()).collect();
            return Some(format!("teams are nested more than {DEEPEST} deep here: {}", files.join(" > ")));
        }
        (self.count >= MOST_FILES).then(|| format!("a team is made of at most {MOST_FILES} files"))
    }
}

/// The speakers of the teams that a file includes; none if one of them has mistakes.
fn answering_models(team: &Team, teams: &[Option<Team>]) -> Option<Vec<Name>> {
    let named = team.teams.iter().zip(teams);
    let answering_models =
        named.map(|(sub, team)| Some(team.as_ref()?.answering_models_as(sub.name.sound()?)));
    answering_models.collect::<Option<Vec<_>>>().map(|answering_models| answering_models.concat())
}

/// The variables of a file, with the values of the caller.
fn variables(root: &Node, given: &BTreeMap<String, String>, report: &mut Report<'_>) -> Vars {
    let mut vars = Vars::default();
    for Entry { key, key_span, value } in root.get("vars").entries() {
        if key == vars::TASK {
            let hint = "the task is available as `{{task}}` anyway; set its default in `task`";
            report.error_with_hint(key_span, "no variable can be called `task`", hint);
        } else if !vars::is_name(key) {
            report.error_with_hint(key_span, format!("no variable can be called `{key}`"), vars::NAME_HINT);
        }
        let written = value.text().unwrap_or_else(|| report.source.slice(&value.span));
        vars.insert(key.clone(), given.get(key).map_or(written, String::as_str).to_owned());
    }
    let at = root.entry("vars").map_or(0..0, |entry| entry.key_span.clone());
    for name in given.keys().filter(|name| !vars.contains(name)) {
        let hint = if vars.names().next().is_none() {
            "it has none: leave the value out, or declare the variable under `vars`".to_owned()
        } else {
            suggest::hint(name, vars.names())
        };
        // The name of a column of rows can be any text.
        let name = excerpt(name, LONGEST_NAME);
        report.error_with_hint(
            &at,
            format!("a value is given for `{name}`, which is not a variable of this team"),
            hint,
        );
    }
    vars
}

fn warn_of_unused(team: &Team, vars: &Vars, report: &mut Report<'_>) {
    for (name, value) in team.vars.iter().filter(|(name, _)| !vars.is_used(name)) {
        let hint = format!("write `{{{{{name}}}}}` where it belongs, or leave it out");
        report.warning(codes::UNUSED, value.key(), format!("the variable `{name}` is not used"), hint);
    }
}

/// Reads the team, and the names that it defines and uses. It is meaningful only if the report has no error.
fn read_team(root: &Node, vars: &mut Vars, report: &mut Report<'_>) -> (Team, Names) {
    let mut cx = Cx::new("a team", report, vars).with_foreign(&FOREIGN).with_deferred(&[vars::TASK]);
    let team = Team::read(root, &mut cx);
    (team, cx.names)
}
