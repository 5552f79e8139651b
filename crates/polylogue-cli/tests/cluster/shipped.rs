//! W17: two workers are killed in turn while a model call of every team that ships is in flight.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use polylogue_test::postgres::PostgresServer;
use polylogue_test::random::Random;
use serde_json::Value;

use crate::live::Client;
use crate::place::{PATIENCE, Place, expire, held_by, number, of_type};
use crate::scripts::{KILLS, Script, Scripts, key};

/// What the people of teams answer, in the order in which they are asked.
const ANSWERS: [(&str, &[&str]); 4] = [
    ("two-people", &["It gets stronger.", "But a ship is heavier.", "About eight meters.", "The shape!"]),
    ("human-feedback-code", &["Add the change in percent.", ""]),
    ("continual-learning", &["2024-03-01 48.00", "2024-03-08 51.00", "END"]),
    ("data-stream", &["17, 18, 19", "27 and 29, both in the rush hour", "END"]),
];

/// It needs a memory, which conversations in Postgres do not have.
const NEEDS_MEMORY: &str = "remembers";

/// One team has a server of MCP.
pub(crate) const ALLOW: [&str; 2] = ["--allow", "mcp"];

/// A team that ships.
pub(crate) struct Team {
    name: String,
    pub(crate) file: String,
    answers: &'static [&'static str],
    /// The log of a run that nothing disturbed.
    undisturbed: Vec<Value>,
    /// The agents by their system texts, if some are asked at the same time.
    agents: Option<BTreeMap<String, String>>,
}

impl Team {
    /// The team in a file, after a run in `alone`.
    fn of(file: &Path, alone: &Place) -> Self {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let answers = ANSWERS.iter().find(|(team, _)| *team == name);
        let answers = answers.map(|(_, answers)| *answers).unwrap_or_default();
        let file = file.display().to_string();
        // 5: it waits for a person.
        let exit = |given: usize| if given < answers.len() { 5 } else { 0 };
        let args = [&["run", &file, "--offline", "--json"][..], &ALLOW].concat();
        let id = alone.run(&args, exit(0)).lines()[0]["id"].as_str().unwrap().to_owned();
        for (nth, answer) in answers.iter().enumerate() {
            alone.run(&["answer", &id, answer], 0);
            alone.run(&["resume", &id], exit(nth + 1));
        }
        let undisturbed = alone.events(&id);
        let agents = works_at_once(&undisturbed).then(|| agents(alone, &id, &undisturbed));
        Self { name, file, answers, undisturbed, agents }
    }

    /// The name of the model that speaks for it.
    pub(crate) fn model(&self) -> String {
        format!("test-{}", self.name)
    }

    /// Whether one model call follows the other, no person is asked, and no turn of the outermost chat takes long: nor does a drain.
    pub(crate) fn is_steady(&self) -> bool {
        let is_turn = |event: &Value| event["type"] == "turn_started" && event.get("chat").is_none();
        let turns = self.undisturbed.split(is_turn);
        let longest = turns.map(|events| of_type(events, "model_replied").len()).max();
        self.agents.is_none() && self.answers.is_empty() && longest <= Some(4)
    }

    /// What its agents say, in order.
    pub(crate) fn replies(&self) -> Vec<Value> {
        of_type(&self.undisturbed, "model_replied").into_iter().cloned().collect()
    }

    /// Its script, which stops twice: the second time not before the first one.
    fn script(&self, chance: &mut Chance) -> Script {
        let replies = self.replies();
        let first = chance.below(replies.len());
        let second = first + chance.below(replies.len() - first);
        Script::new(replies, self.agents.clone(), [first, second])
    }
}

/// Whether several agents work at the same time.
fn works_at_once(events: &[Value]) -> bool {
    let turns = |event: &&Value| event["turns"].as_array().unwrap().len();
    let several = of_type(events, "turn_started").iter().any(|event| turns(event) > 1);
    several || !of_type(events, "background_started").is_empty()
}

/// The agents of a conversation by their system texts.
fn agents(place: &Place, id: &str, events: &[Value]) -> BTreeMap<String, String> {
    let names: BTreeSet<&str> =
        of_type(events, "model_replied").iter().map(|reply| reply["who"].as_str().unwrap()).collect();
    let of = |who: &&str| {
        let shown = place.run(&["show", id, "--as", who, "--json"], 0).lines();
        (shown[0]["system"].as_str().unwrap().to_owned(), (*who).to_owned())
    };
    let agents: BTreeMap<String, String> = names.iter().map(of).collect();
    assert_eq!(agents.len(), names.len(), "their system texts differ: {agents:?}");
    agents
}

/// Choices that follow from a seed.
struct Chance(Random);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.0.number() >> 33).unwrap() % limit
    }
}

/// The conversations of all teams in one database.
struct Cluster<'t> {
    database: &'t PostgresServer,
    place: &'t Place,
    teams: &'t [Team],
    /// The ids of their conversations, in their order.
    ids: Vec<String>,
    /// How many questions people have answered in each.
    answered: Vec<usize>,
}

impl<'t> Cluster<'t> {
    /// Hands a conversation of every team over to workers.
    fn new(database: &'t PostgresServer, place: &'t Place, teams: &'t [Team]) -> Self {
        let detach = |team: &Team| {
            let model = format!("openai:{}", team.model());
            place.detach(&[&[team.file.as_str(), "--model", &model][..], &ALLOW].concat())
        };
        let ids: Vec<String> = teams.iter().map(detach).collect();
        Self { database, place, teams, ids, answered: vec![0; teams.len()] }
    }

    /// The logs of all conversations, in the order of the teams.
    fn logs(&self) -> Vec<Vec<Value>> {
        let rows = self.database.sql(
            "SELECT id || ' ' || json FROM polylogue.events JOIN polylogue.logs ON log = nr ORDER BY log, seq",
        );
        let mut logs: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
        for (id, json) in rows.lines().map(|row| row.split_once(' ').unwrap()) {
            logs.entry(id).or_default().push(serde_json::from_str(json).unwrap());
        }
        self.ids.iter().map(|id| logs.remove(id.as_str()).unwrap_or_default()).collect()
    }

    /// Waits until `holds` of the log of every team. People answer what they are asked meanwhile.
    fn until(&mut self, what: &str, holds: impl Fn(&Team, &[Value]) -> bool) {
        let begun = Instant::now();
        loop {
            let logs = self.logs();
            self.answer(&logs);
            let missing = self.teams.iter().zip(&logs).filter(|(team, log)| !holds(team, log));
            let missing: Vec<&str> = missing.map(|(team, _)| team.name.as_str()).collect();
            if missing.is_empty() {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "not yet: {what}: {missing:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Answers each question once.
    fn answer(&mut self, logs: &[Vec<Value>]) {
        for (nth, log) in logs.iter().enumerate() {
            let given = self.answered[nth];
            if of_type(log, "input_required").len() > given {
                self.place.run(&["answer", &self.ids[nth], self.teams[nth].answers[given]], 0);
                self.answered[nth] += 1;
            }
        }
    }
}

/// Whether the outermost chat is closed.
fn has_ended(events: &[Value]) -> bool {
    of_type(events, "closed").iter().any(|event| event.get("chat").is_none())
}

/// What every chat of a log said, in its order: chats at the same time have no common one.
fn said(events: &[Value]) -> BTreeMap<String, Vec<Value>> {
    let mut said: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for kind in ["message", "posted", "closed"] {
        for event in of_type(events, kind) {
            let what = event.get("parts").or_else(|| event.get("reason")).cloned().unwrap_or_default();
            said.entry(event["chat"].to_string()).or_default().push(without_files(what));
        }
    }
    said
}

/// What is said, without the references to files, which only conversations in Postgres keep.
fn without_files(mut what: Value) -> Value {
    match &mut what {
        Value::Object(fields) => {
            fields.shift_remove("files");
            fields.values_mut().for_each(|value| *value = without_files(value.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_files(item.take())),
        _ => {}
    }
    what
}

/// The log has no gap, and nothing more or less happened than in the run that nothing disturbed.
#[track_caller]
pub(crate) fn assert_as_undisturbed(team: &Team, events: &[Value]) {
    let (name, undisturbed) = (&team.name, &team.undisturbed);
    let seqs: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (0..events.len() as u64).collect::<Vec<_>>(), "{name}");
    for kind in ["model_replied", "tool_called", "tool_returned", "input_required", "input_provided"] {
        assert_eq!(of_type(events, kind).len(), of_type(undisturbed, kind).len(), "{name}: {kind}");
    }
    assert_eq!(said(events), said(undisturbed), "{name}");
}

/// All teams that ship, each after a run in `alone`.
pub(crate) fn teams(alone: &Place) -> Vec<Team> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../teams");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_team = |file: &PathBuf| {
        file.extension().is_some_and(|end| end == "yaml")
            && file.file_stem().is_some_and(|name| name != NEEDS_MEMORY)
    };
    let mut files: Vec<_> = files.filter(is_team).collect();
    files.sort();
    files.iter().map(|file| Team::of(file, alone)).collect()
}

/// W17: `POLYLOGUE_SEED` chooses at which calls each team is interrupted. The first worker has received nothing of their replies when it is
/// killed, and the second one their beginnings.
#[test]
fn every_shipped_team_ends_the_same_though_its_workers_are_killed_in_turn() {
    const WORKER: &[&str] = &["--allow", "mcp", "--at-once", "100"];
    let Some(database) = PostgresServer::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let teams = teams(&Place::new(&dir.path().join("store.db").display().to_string()));
    let mut chance = Chance(Random::new(number("POLYLOGUE_SEED", 1) as u64));
    let scripts = teams.iter().map(|team| (team.model(), team.script(&mut chance))).collect();
    let scripts = Scripts::new(scripts);
    let model = scripts.serve(Duration::ZERO);
    let place = Place::new(&database.url()).with_model(&model);
    let mut cluster = Cluster::new(&database, &place, &teams);
    let token = place.run(&["token", "new", "client", "--scope", "read"], 0).out.trim().to_owned();
    // A client follows all of them, who asks for all at once.
    let limit = format!("request_burst={}", 2 * teams.len());
    let serve = ["serve", &teams[0].file, "--listen", "127.0.0.1:0", "--limit", &limit];
    let _server = place.begin(&serve, "served");
    let client = Client::of(&place, token, "served");
    let followed: Vec<_> = cluster.ids.iter().map(|id| client.follow(id, Arc::default())).collect();
    let machine = |nth| Place::new(&database.url()).with_model(&model).with_var("OPENAI_API_KEY", &key(nth));
    for nth in 0..KILLS {
        let machine = machine(nth);
        let worker = machine.worker(WORKER);
        cluster.until("a call of each is in flight", |team, events| {
            assert!(!has_ended(events), "{} ended before its worker was killed", team.name);
            scripts.is_in_flight(&team.model(), events)
        });
        assert_eq!(held_by(&database, &worker).len(), teams.len(), "{}", worker.log());
        let killed = worker.kill();
        scripts.killed();
        expire(&database, killed);
    }
    let machine = machine(KILLS);
    let worker = machine.worker(WORKER);
    cluster.until("all have ended", |_, events| has_ended(events));
    let followed: Vec<_> = followed.into_iter().map(|following| following.join().unwrap()).collect();
    let (mut calls, mut in_flight) = (0, 0);
    for ((team, events), (streamed, _)) in teams.iter().zip(cluster.logs()).zip(&followed) {
        assert_as_undisturbed(team, &events);
        assert_eq!(*streamed, events, "{}: a client has one stream", team.name);
        let asked = scripts.assert_finished_calls_are_made_once(&team.model());
        (calls, in_flight) = (calls + asked.0, in_flight + asked.1);
    }
    assert_eq!(model.violations(), [""; 0], "{}", worker.log());
    let others = format!("SELECT count(*) FROM polylogue.logs WHERE takeovers <> {KILLS}");
    assert_eq!(database.sql(&others), "0", "each was taken over from each worker that was killed");
    println!("{} teams, {calls} calls, {in_flight} of them in flight when a worker was killed", teams.len());
}
