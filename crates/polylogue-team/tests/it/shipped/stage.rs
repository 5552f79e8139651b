//! A team, its script, and what its agents' models were asked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use polylogue_core::{
    AnyModel, AnyStore, Body, Chat, DeltaSink, Entry, Event, Log, LogId, Model, ModelError, Name, Question,
    Reply, Request, Status, StopReason, Timestamp, text_of,
};
use polylogue_memory::AnyMemory;
use polylogue_models::{Script, Scripted};
use polylogue_store::{Facts, Memory};
use polylogue_team::{BuildContext, Overrides, Team, load};
use polylogue_test::skip::{can_enclose, has_python};
use polylogue_tools::code::what_is_enforced;

/// The files of the teams that ship, in the order of their names.
pub(crate) fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../teams");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut teams: Vec<PathBuf> =
        files.filter(|file| file.extension().is_some_and(|end| end == "yaml")).collect();
    teams.sort();
    assert!(teams.len() >= 3, "{teams:?}");
    teams
}

/// A team that ships, with everything in place so that its script can speak.
pub(crate) fn team(file: &Path, overrides: &Overrides) -> Team {
    let mut team = load(file, overrides).unwrap_or_else(|flaws| panic!("{flaws}")).team;
    team.use_model("script");
    team
}

/// The team `name`, which ships, with another script.
pub(crate) fn team_with(name: &str, script: &str) -> Team {
    let file = files().into_iter().find(|file| file.file_stem().is_some_and(|stem| stem == name)).unwrap();
    let mut team = team(&file, &Overrides::default());
    team.script = serde_json::from_str(script).unwrap();
    team
}

/// A new work directory with the files of `team`; none for a team that runs nothing. An empty memory for one that remembers.
pub(crate) fn build_context(team: &Team) -> BuildContext {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let nth = COUNT.fetch_add(1, Ordering::Relaxed);
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{}-{nth}", team.name, process::id()));
    if team.needs_memory() {
        let _ = std::fs::remove_file(&dir);
        return BuildContext::none().with_memory(AnyMemory::new(Facts::open(&dir).unwrap()));
    }
    if !team.needs_workplace() {
        return BuildContext::none();
    }
    // Of a process of the same number, long ago.
    let _ = std::fs::remove_dir_all(&dir);
    team.prepare(&dir).unwrap();
    BuildContext::at(dir)
}

/// Whether the programs of `team` can run on this machine; if they cannot, says why.
pub(crate) fn can_run(team: &Team) -> bool {
    if !team.mcp_wanted().is_empty() {
        let why = format!("{}: it has MCP servers, and the tests of the program run it", team.name);
        polylogue_test::skip::skipped(&why);
        return false;
    }
    if !team.needs_workplace() {
        return true;
    }
    let missing = what_is_enforced().into_iter().find(|measure| measure.required && !measure.holds);
    can_enclose(missing.as_ref().map(|missing| &*missing.detail)) && has_python()
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// The model of all agents of `team`: its script, at once.
pub(crate) fn model(team: &Team) -> Scripted {
    team.script.clone().paced(0.0).model(team.name.as_str())
}

/// What a model was asked.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) who: Name,
    pub(crate) system: String,
    pub(crate) entries: Vec<Entry>,
    /// Whether nothing was asked for but text: no tools, no form.
    pub(crate) for_text: bool,
}

impl Asked {
    /// The roles of the entries, a letter each: `u`ser, `a`ssistant, `t`ool.
    pub(crate) fn roles(&self) -> String {
        let role = |entry: &Entry| match entry {
            Entry::User { .. } => 'u',
            Entry::System { .. } => 's',
            Entry::Assistant { .. } => 'a',
            Entry::Tool { .. } => 't',
        };
        self.entries.iter().map(role).collect()
    }

    /// The texts of the entries.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.entries.iter().map(|entry| text_of(entry.parts()).into_owned()).collect()
    }
}

/// A model that remembers what it was asked.
struct Remembering {
    model: AnyModel,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Model for Remembering {
    fn name(&self) -> &str {
        self.model.name()
    }
    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let asked = Asked {
            who: request.origin.who.clone(),
            system: request.system.unwrap_or_default().to_owned(),
            entries: request.entries.to_vec(),
            for_text: request.tools.is_empty() && request.params.schema.is_none() && !request.params.json,
        };
        self.asked.lock().unwrap().push(asked);
        self.model.complete(request, deltas).await
    }
}

/// A whole run of a team.
pub(crate) struct Played {
    pub(crate) events: Vec<Arc<Event>>,
    pub(crate) asked: Vec<Asked>,
    pub(crate) reason: StopReason,
    pub(crate) summary: String,
    /// Steps of the script that were not played.
    pub(crate) unconsumed: Vec<String>,
}

impl Played {
    /// What was said in the chat `at`, by whom, that of the opening first.
    pub(crate) fn said(&self, at: &str) -> Vec<(String, String)> {
        let mut said = Vec::new();
        for event in self.events.iter().filter(|event| event.chat.as_str() == at) {
            let messages = match &event.body {
                Body::Opened(opening) => opening.messages.clone(),
                Body::Message(message) if !message.to.is_private() => vec![message.clone()],
                _ => Vec::new(),
            };
            said.extend(messages.iter().map(|m| (m.from.to_string(), m.text().into_owned())));
        }
        said
    }

    /// What was asked of the model of `who`, in order.
    pub(crate) fn asked_of(&self, who: &str) -> Vec<&Asked> {
        self.asked.iter().filter(|asked| asked.who.as_str() == who).collect()
    }

    /// Why the chat `at` ended, and its summary.
    pub(crate) fn end_of(&self, at: &str) -> (&StopReason, &str) {
        let ends =
            self.events.iter().filter(|event| event.chat.as_str() == at).find_map(|event| {
                match &event.body {
                    Body::Closed { reason, summary } => Some((reason, &**summary)),
                    _ => None,
                }
            });
        ends.unwrap_or_else(|| panic!("the chat `{at}` has no end"))
    }
}

/// The chat of `team`, and what its models will have been asked.
pub(crate) fn chat(team: &Team) -> (Chat, Scripted, Arc<Mutex<Vec<Asked>>>) {
    chat_through(team, AnyModel::new)
}

/// The same, with what `through` makes of the script as the model.
fn chat_through(
    team: &Team,
    through: impl FnOnce(Scripted) -> AnyModel,
) -> (Chat, Scripted, Arc<Mutex<Vec<Asked>>>) {
    let (script, asked) = (model(team), Arc::default());
    let model = through(script.clone());
    let remembering =
        |_: &str| Ok(AnyModel::new(Remembering { model: model.clone(), asked: Arc::clone(&asked) }));
    let chat = team.build_at(&remembering, &build_context(team)).unwrap();
    (chat, script, asked)
}

/// A new conversation in memory, whose clock stands still.
pub(crate) async fn log() -> Log {
    let (store, id) = (AnyStore::new(Memory::default()), LogId::new("test").unwrap());
    let log = Log::create(store, id).await.unwrap();
    log.clock(|| Timestamp(0))
}

/// What the people of a team that ships answer, in the order in which they are asked.
const ANSWERS: [(&str, &[&str]); 4] = [
    (
        "two-people",
        &[
            "It wants to come up again.",
            "It gets stronger, I think. But a ship is far heavier.",
            "About eight meters, until it has pushed aside ten thousand tonnes of water.",
            "The shape! Iron as a lump sinks.",
        ],
    ),
    ("human-feedback-code", &["Add the change in percent, and put the largest first.", ""]),
    ("continual-learning", &["2024-03-01 48.00", "2024-03-08 51.00", "END"]),
    ("data-stream", &["17, 18, 19", "27 and 29, both in the rush hour", "END"]),
];

/// What is answered to the question that comes after so many others in a run of `team`.
pub(crate) fn answer(team: &Team, question: &Question, answered: usize) -> String {
    let answers = ANSWERS.iter().find(|(name, _)| team.name == *name).map_or(&[][..], |(_, answers)| answers);
    let answer = answers.get(answered);
    answer
        .unwrap_or_else(|| panic!("`{}` of {} asks: {}", question.who, team.name, question.text))
        .to_string()
}

/// Runs `team` on its own task.
pub(crate) async fn play(team: &Team) -> Played {
    play_through(team, AnyModel::new).await
}

/// Runs `team` on its own task, with what `through` makes of its script as the model.
pub(crate) async fn play_through(team: &Team, through: impl FnOnce(Scripted) -> AnyModel) -> Played {
    let (chat, script, asked) = chat_through(team, through);
    let mut log = log().await.limits(team.limits());
    let mut status =
        chat.run_in(&mut log, team.task.as_deref().unwrap_or_default()).await.map(|run| run.status);
    let mut answered = 0;
    while let Ok(Status::Waiting(questions)) = &status {
        let (at, question) = &questions[0];
        log.answer(at, &question.who, answer(team, question, answered)).await.unwrap();
        answered += 1;
        status = chat.resume(&mut log).await.map(|run| run.status);
    }
    let Status::Closed { reason, summary } = status.unwrap_or_else(|error| panic!("{}: {error}", team.name))
    else {
        panic!("{}: a script plays to its end without a person", team.name)
    };
    let unconsumed = |script: &Script, finished: &BTreeMap<Name, u64>| -> Vec<String> {
        script.unconsumed(finished).into_iter().map(ToString::to_string).collect()
    };
    let finished = log.calls().await;
    let unconsumed = unconsumed(&team.script, &finished);
    // The model's own count and that of the log agree.
    assert_eq!(script.finish().is_ok(), unconsumed.is_empty(), "{unconsumed:?}");
    let asked = asked.lock().unwrap().clone();
    Played { events: log.events().await, asked, reason, summary: summary.to_string(), unconsumed }
}
