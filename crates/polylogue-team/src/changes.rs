//! What differs between two versions of a team.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use polylogue_config::Config as _;
use serde_json::{Map, Value};

use crate::Diagnostics;
use crate::load::{Loaded, load, read_text};
use crate::team::Team;

/// Keys whose change has no effect on a conversation that has begun: what people read in lists, the task, which is in the
/// log, the speed of a demonstration, prices, which count what it costs, but for [`LIMITS`], and variables, whose effects are changes of
/// the texts in which they are used. What describes a team within another one is read by the agents of that one.
const HARMLESS: [&str; 5] = ["description", "task", "script_pace", "prices", "vars"];

/// Keys of a price on which requests depend: histories are compacted by the window, and replies have a limit.
const LIMITS: [&str; 2] = ["window", "max_output"];

/// The most characters of a value that are shown.
const SHOWN: usize = 40;

/// A difference between two versions of a team, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamChange {
    /// The place and the change, such as "agent `Ann`: `system` has changed".
    pub text: String,
    /// Whether the change has no effect on a conversation that has begun.
    pub is_harmless: bool,
}

impl fmt::Display for TeamChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Team {
    /// Returns the file of the team, as its caller named it; empty if it is from none.
    pub fn file(&self) -> &str {
        &self.sources.file
    }

    /// Returns the path of the file of the team: as its caller named it, or an absolute one if the current folder is not that of the caller.
    pub fn path(&self) -> PathBuf {
        let (file, folder) = (&self.sources.file, &self.sources.folder);
        match std::env::current_dir() {
            Ok(here) if here == *folder => PathBuf::from(file),
            _ => folder.join(file),
        }
    }

    /// Reads the file of the team again, with the values that its caller gave then. `None` if the team is not from a file, its file is
    /// gone, or another file is gone that it names, such as a picture, and those that are there are what they were: what has not changed
    /// needs no file. What is there and cannot be read, such as a folder or a pipe, has changed.
    ///
    /// # Errors
    /// Mistakes in the file, such as another file that it names and that is gone.
    pub fn reload(&self) -> Option<Result<Loaded, Diagnostics>> {
        let (sources, path) = (&self.sources, self.path());
        if sources.is_empty() || !path.is_file() {
            return None;
        }
        // As teams are read: what became of a file can be of any size, and a pipe would wait for its writer.
        let differs =
            |path: PathBuf, text: &str| path.exists() && !read_text(&path).is_ok_and(|now| now == text);
        let has_changed =
            sources.files.iter().any(|(path, text)| differs(sources.folder.join(path), text.as_str()));
        let mut all = sources.files.keys().chain(sources.media.keys());
        let is_whole = all.all(|path| sources.folder.join(path).is_file());
        (has_changed || is_whole).then(|| load(path, &sources.overrides))
    }

    /// Reads another version of the team from `file`, with the values that its caller gave when it was loaded.
    ///
    /// # Errors
    /// Mistakes in the file.
    pub fn load_version(&self, file: impl AsRef<Path>) -> Result<Loaded, Diagnostics> {
        load(file, &self.sources.overrides)
    }

    /// Lists the differences in `newer`: keys first, then files that the team brings along.
    ///
    /// ```
    /// use polylogue_team::{Overrides, parse};
    /// let team = |turns| {
    ///     let text = format!("{{name: t, agents: [{{name: Ann}}], chat: {{participants: [Ann], stop: {{max_turns: {turns}}}}}}}");
    ///     parse(&text, "t.yaml", &Overrides::default()).map(|loaded| loaded.team)
    /// };
    /// let changes = team(4)?.changes_to(&team(6)?);
    /// assert_eq!(changes[0].to_string(), "`chat.stop.max_turns`: 4 -> 6");
    /// # Ok::<(), polylogue_team::Diagnostics>(())
    /// ```
    pub fn changes_to(&self, newer: &Self) -> Vec<TeamChange> {
        let mut changes = Vec::new();
        compare(self, newer, "", &mut changes);
        let [old, new] = [self, newer].map(Self::other_files);
        for path in old.union(&new).map(|(path, _)| path).collect::<BTreeSet<_>>() {
            let [old, new] = [&old, &new].map(|files| files.iter().find(|(other, _)| other == path));
            if let Some(how) = how(old, new) {
                let path = path.strip_prefix(&newer.sources.folder).unwrap_or(path).display();
                changes.push(TeamChange { text: format!("the file `{path}` {how}"), is_harmless: false });
            }
        }
        changes
    }

    /// The files of the team and the teams within it that are no team files, with their contents, by absolute paths: one
    /// version can be read by a relative path, and the other by an absolute one.
    fn other_files(&self) -> BTreeSet<(PathBuf, &str)> {
        let mut teams = vec![PathBuf::from(&self.sources.file)];
        let mut rest: Vec<&Self> = vec![self];
        while let Some(team) = rest.pop() {
            teams.extend(team.teams.iter().map(|sub| PathBuf::from(sub.file.as_str())));
            rest.extend(team.teams.iter().map(|sub| &*sub.team));
        }
        let is_team = |path: &PathBuf| teams.iter().any(|team| path.ends_with(team));
        let files = self.sources.files.iter().filter(|(path, _)| !is_team(path));
        let media = self.sources.media.iter().map(|(path, media)| (path, &*media.url));
        let all = files.map(|(path, text)| (path, text.as_str())).chain(media);
        all.map(|(path, content)| (self.sources.folder.join(path), content)).collect()
    }
}

fn how<T: PartialEq>(old: Option<T>, new: Option<T>) -> Option<&'static str> {
    match (old, new) {
        (Some(old), Some(new)) => (old != new).then_some("has changed"),
        (Some(_), None) => Some("was removed"),
        (None, Some(_)) => Some("was added"),
        (None, None) => None,
    }
}

/// Compares two teams and the teams within them, at `place`.
fn compare(old: &Team, new: &Team, place: &str, changes: &mut Vec<TeamChange>) {
    let [written_old, written_new] = [old, new].map(|team| match team.write() {
        Value::Object(keys) => keys,
        _ => Map::new(),
    });
    for key in keys(&written_old, &written_new) {
        let mut found = Vec::new();
        let [old, new] = [&written_old, &written_new].map(|keys| keys.get(key));
        values(old, new, &Position { place: place.to_owned(), keys: key.clone() }, &mut found);
        changes.extend(found.into_iter().map(|found| {
            let is_read = match key.as_str() {
                "description" => !place.is_empty(),
                "prices" => found.is_of_limits(),
                _ => false,
            };
            let is_harmless = HARMLESS.contains(&key.as_str()) && !is_read;
            TeamChange { text: found.text, is_harmless }
        }));
    }
    for sub in &old.teams {
        if let Some(other) = new.teams.iter().find(|other| other.name == sub.name) {
            compare(&sub.team, &other.team, &format!("{place}team `{}`: ", sub.name), changes);
        }
    }
}

/// Where a value is: in which named parts, and under which keys.
struct Position {
    place: String,
    keys: String,
}

impl Position {
    fn key(&self, key: &str) -> Self {
        let keys = if self.keys.is_empty() { key.to_owned() } else { format!("{}.{key}", self.keys) };
        Self { place: self.place.clone(), keys }
    }

    /// A part with a name, such as an agent of `agents`.
    fn part(&self, name: &str) -> Self {
        let noun = self.keys.strip_suffix('s').unwrap_or(&self.keys);
        Self { place: format!("{}{noun} `{name}`: ", self.place), keys: String::new() }
    }

    fn says(&self, how: &str) -> String {
        let Self { place, keys } = self;
        match keys.is_empty() {
            true => format!("{} {how}", place.trim_end_matches(": ")),
            false => format!("{place}`{keys}`{}{how}", if how.starts_with(':') { "" } else { " " }),
        }
    }
}

/// A difference between two values.
struct Difference<'v> {
    text: String,
    /// The keys under which they are.
    keys: String,
    values: [Option<&'v Value>; 2],
}

impl<'v> Difference<'v> {
    fn new(at: &Position, how: &str, values: [Option<&'v Value>; 2]) -> Self {
        Self { text: at.says(how), keys: at.keys.clone(), values }
    }

    /// Whether, in a price, a limit of the model can be what differs.
    fn is_of_limits(&self) -> bool {
        fn has_any(value: &Value) -> bool {
            match value {
                Value::Object(keys) => LIMITS.iter().any(|key| keys.contains_key(*key)),
                Value::Array(items) => items.iter().any(has_any),
                _ => false,
            }
        }
        let key = self.keys.rsplit('.').next().unwrap_or_default();
        LIMITS.contains(&key) || self.values.into_iter().flatten().any(has_any)
    }
}

fn values<'v>(
    old: Option<&'v Value>,
    new: Option<&'v Value>,
    at: &Position,
    found: &mut Vec<Difference<'v>>,
) {
    match (old, new) {
        (old, new) if old == new => {}
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            for key in keys(old, new) {
                values(old.get(key), new.get(key), &at.key(key), found);
            }
        }
        (old, new) if named(old).is_some() || named(new).is_some() => {
            let [old, new] = [old, new].map(|list| named(list).unwrap_or_default());
            let names = old.iter().chain(new.iter()).map(|(name, _)| *name);
            for name in names.collect::<BTreeSet<_>>() {
                let [old, new] = [&old, &new]
                    .map(|list| list.iter().find(|(other, _)| *other == name).map(|(_, one)| *one));
                match how(old, new) {
                    Some("has changed") => values(old, new, &at.part(name), found),
                    Some(how) => found.push(Difference::new(&at.part(name), how, [old, new])),
                    None => {}
                }
            }
        }
        (Some(old), Some(new)) => {
            let how = match short(old).zip(short(new)) {
                Some((old, new)) => format!(": {old} -> {new}"),
                None => "has changed".to_owned(),
            };
            found.push(Difference::new(at, &how, [Some(old), Some(new)]));
        }
        (old, new) => found.extend(how(old, new).map(|how| Difference::new(at, how, [old, new]))),
    }
}

fn keys<'v>(old: &'v Map<String, Value>, new: &'v Map<String, Value>) -> Vec<&'v String> {
    let added = new.keys().filter(|key| !old.contains_key(*key));
    old.keys().chain(added).collect()
}

/// The items of a list by their names, if all have one.
fn named(list: Option<&Value>) -> Option<Vec<(&str, &Value)>> {
    let items = list?.as_array().filter(|items| !items.is_empty())?;
    items.iter().map(|item| Some((item.get("name")?.as_str()?, item))).collect()
}

/// A value that is short enough to be shown.
fn short(value: &Value) -> Option<String> {
    let text = match value {
        Value::Object(_) | Value::Array(_) => return None,
        Value::String(text) => format!("\"{text}\""),
        other => other.to_string(),
    };
    (text.chars().count() <= SHOWN && !text.contains('\n')).then_some(text)
}
