//! A team file under construction, with its notes.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use polylogue_config::vars::{Piece, pieces};
use polylogue_core::Name;

use crate::report::{ImportError, Note, Result};
use crate::yaml::{Entries, Yaml, document, is_printable};

/// The variable of a team file that is the task of a run.
const TASK: &str = "task";

/// How many agents and chats a definition can have: each chat of a group lists all agents of the group.
const MOST_NAMES: usize = 2_000;

/// A team file under construction.
#[derive(Default)]
pub(crate) struct Draft {
    file_name: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) task: Option<String>,
    pub(crate) endpoints: Entries,
    pub(crate) prices: Entries,
    pub(crate) agents: Vec<Entries>,
    pub(crate) chat: Entries,
    pub(crate) chats: Vec<Entries>,
    /// Whether a chat uses the group chat.
    pub(crate) has_group: bool,
    notes: Vec<Note>,
    noted: HashSet<Note>,
    variables: BTreeSet<String>,
    /// The names of participants: in the definition, and in the team file.
    names: BTreeMap<String, String>,
    used: BTreeSet<String>,
    /// The last number of each name that is taken: counting from the first one again would take quadratic time.
    numbers: BTreeMap<String, usize>,
}

impl Draft {
    pub(crate) fn new(file_name: &str) -> Self {
        Self { file_name: file_name.into(), used: BTreeSet::from(["user".to_owned()]), ..Self::default() }
    }

    pub(crate) fn note(&mut self, path: &str, what: impl Into<String>) {
        let note = Note { path: path.to_owned(), what: what.into() };
        if self.noted.insert(note.clone()) {
            self.notes.push(note);
        }
    }

    /// Adds an environment variable that must hold an API key.
    pub(crate) fn variable(&mut self, name: &str) {
        self.variables.insert(name.to_owned());
    }

    /// A legal, unique name for a new participant or the team.
    ///
    /// # Errors
    /// When there are too many.
    pub(crate) fn name(&mut self, wanted: &str, path: &str) -> Result<String> {
        // Besides, the name of the team and `user` are taken.
        if self.used.len() >= MOST_NAMES + 2 {
            let what = format!("there are more than {MOST_NAMES} agents and chats");
            return Err(ImportError::new(path, what));
        }
        let name = self.unique_name(wanted);
        if name != wanted {
            let why = match () {
                () if WORDS.contains(&wanted) => "it is a keyword of team files",
                () if legal(wanted) == wanted => "the name is taken",
                () => {
                    "a name begins with a letter and has letters, digits, single spaces, `_`, `-`, `'`, `’` and `·`"
                }
            };
            self.note(path, format!("renamed to `{name}`: {why}"));
        }
        Ok(name)
    }

    /// The name of an agent that the definition uses without defining it. That it differs is no note.
    pub(crate) fn undefined_name(&mut self, wanted: &str) -> String {
        self.unique_name(wanted)
    }

    fn unique_name(&mut self, wanted: &str) -> String {
        let legal = if WORDS.contains(&wanted) { capital(wanted) } else { legal(wanted) };
        let stem: String = legal.chars().take(Name::MAX_CHARS - 5).collect();
        let mut name = legal;
        while !self.used.insert(name.clone()) {
            let number = self.numbers.entry(stem.clone()).or_insert(1);
            *number += 1;
            name = format!("{stem}_{number}");
        }
        self.names.insert(wanted.to_owned(), name.clone());
        name
    }

    /// The name in the team file of the participant `wanted` of the definition.
    pub(crate) fn known(&self, wanted: &str) -> Option<&str> {
        self.names.get(wanted).map(String::as_str)
    }

    /// The entries of the agent `name`.
    pub(crate) fn agent(&mut self, name: &str) -> Option<&mut Entries> {
        let name = Yaml::text(name);
        self.agents.iter_mut().find(|agent| agent.first().is_some_and(|(_, is)| *is == name))
    }

    /// The same for a list. Unknown names become notes.
    pub(crate) fn all_known(&mut self, wanted: &[&str], path: &str) -> Vec<String> {
        let mut names = Vec::new();
        for name in wanted {
            match self.known(name) {
                Some(known) => names.push(known.to_owned()),
                None => self.note(path, format!("`{name}` is left out: there is no such participant")),
            }
        }
        names
    }

    /// The text of the team file, the notes, and the environment variables that must be set.
    pub(crate) fn finish(mut self) -> (String, Vec<Note>, Vec<String>) {
        let mut body: Entries = Vec::new();
        body.push(("name".into(), Yaml::text(&self.name)));
        if !self.description.trim().is_empty() {
            body.push(("description".into(), Yaml::text(self.description.trim())));
        }
        body.extend(self.task.take().map(|task| ("task".into(), Yaml::text(task))));
        body.extend(self.common_model().map(|model| ("model".into(), model)));
        let agents = self.agents.drain(..).map(Yaml::Map).collect();
        let chats: Vec<Yaml> = self.chats.drain(..).map(Yaml::Map).collect();
        let mut rest: Entries = vec![("agents".into(), Yaml::List(agents))];
        rest.push(("chat".into(), Yaml::Map(std::mem::take(&mut self.chat))));
        if !chats.is_empty() {
            rest.push(("chats".into(), Yaml::List(chats)));
        }
        let vars = self.braces(&body, &rest);
        for (key, entries) in [
            ("vars", vars),
            ("endpoints", std::mem::take(&mut self.endpoints)),
            ("prices", std::mem::take(&mut self.prices)),
        ] {
            if !entries.is_empty() {
                body.push((key.into(), Yaml::Map(entries)));
            }
        }
        body.extend(rest);
        let yaml = format!("{}{}", self.header(), document(&body));
        (yaml, self.notes, self.variables.into_iter().collect())
    }

    /// Removes the model from all agents if they share it, and returns it.
    fn common_model(&mut self) -> Option<Yaml> {
        let none = Yaml::text("none");
        let entries = self.agents.iter().flatten();
        let mut models =
            entries.filter(|(key, value)| key == "model" && *value != none).map(|(_, value)| value);
        let only = models.next().filter(|first| models.all(|other| other == *first))?.clone();
        let is_it = |(key, value): &(String, Yaml)| key == "model" && *value == only;
        self.agents.iter_mut().for_each(|agent| agent.retain(|entry| !is_it(entry)));
        for chat in self.chats.iter_mut().chain([&mut self.chat]) {
            chat.iter_mut().for_each(|(_, value)| value.forget("model", &only));
        }
        Some(only)
    }

    /// Variables with themselves as values, for texts in double braces: team files replace those, AutoGen does not.
    fn braces(&mut self, body: &Entries, rest: &Entries) -> Entries {
        let mut texts = Vec::new();
        body.iter().chain(rest).for_each(|(_, value)| value.all_texts(&mut texts));
        let mut found: BTreeSet<&str> = texts.iter().flat_map(|text| braced(text)).collect();
        // The importer itself writes this one.
        let own = |text: &&&str| **text != "{{task}}";
        if texts.iter().filter(own).any(|text| braced(text).any(|name| name == TASK)) {
            self.note("$", "`{{task}}` in a text is the task here");
        }
        found.remove(TASK);
        found.iter().map(|name| ((*name).to_owned(), Yaml::text(format!("{{{{{name}}}}}")))).collect()
    }

    fn header(&self) -> String {
        let line =
            |text: &str| text.chars().map(|c| if is_printable(c) { c } else { ' ' }).collect::<String>();
        let mut header = format!("# Imported from {}.\n", line(&self.file_name));
        if !self.variables.is_empty() {
            let all: Vec<&str> = self.variables.iter().map(String::as_str).collect();
            let all = all.join(", ");
            header.push_str(&format!("# Keys are not allowed in team files; they are read from {all}.\n"));
        }
        if !self.notes.is_empty() {
            header.push_str("#\n# Not converted, or changed:\n");
        }
        for note in &self.notes {
            header.push_str(&format!("# - {}\n", line(&note.to_string())));
        }
        header.push('\n');
        header
    }
}

/// Keywords of team files, which cannot be names.
const WORDS: [&str; 5] = ["user", "end", "stay", "self", "none"];

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A legal name close to `wanted`.
pub(crate) fn legal(wanted: &str) -> String {
    match Name::new(wanted) {
        Ok(name) => name.into(),
        Err(error) => {
            let prefixed = || Name::new(format!("a_{wanted}")).map(String::from).ok();
            let again = || {
                Name::new(format!("a_{wanted}")).err().and_then(|error| error.suggestion().map(String::from))
            };
            error
                .suggestion()
                .map(String::from)
                .or_else(prefixed)
                .or_else(again)
                .unwrap_or_else(|| "agent".into())
        }
    }
}

/// Names between double braces.
fn braced(text: &str) -> impl Iterator<Item = &str> {
    pieces(text).into_iter().filter_map(|piece| match piece {
        Piece::Var(name, _) => Some(name),
        Piece::Plain(_) => None,
    })
}
