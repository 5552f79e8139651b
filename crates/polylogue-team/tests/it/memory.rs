//! Teams that remember things from one conversation to the next.

use polylogue::tools::memory::{AnyMemory, Fact, Memory, MemoryError, Note, Query, Recalled, Scope};
use polylogue::{AnyModel, Log, Status, Tool as _};
use polylogue_core::{AnyStore, LogId};
use polylogue_store::{Facts, Memory as Logs};
use polylogue_team::{AgentMemory, BuildContext, Overrides, Team, parse};
use polylogue_test::print::transcript;

use crate::common::{team, wrong};

const PAIR: &str = "
name: pair
memory: {scope: tea room}
agents:
  - {name: Ann, memory: true}
  - {name: Bob, memory: {private: true, auto_recall: 1}}
  - {name: Cy, memory: {tools: false}}
  - {name: Dee}
chat: {participants: [Ann, Bob, Cy, Dee], stop: {max_turns: 4}}
script:
  - Ann: {calls: [{tool: remember, args: {text: Guests like green tea.}}]}
  - Ann: Noted.
  - Bob: {calls: [{tool: remember, args: {text: Bob likes black tea.}}, {tool: recall, args: {query: green tea}}]}
  - Bob: Black tea.
  - Cy: Tea?
  - Dee: No.
";

/// Runs the team as the conversation `id` and returns what happened, as text.
async fn run(team: &Team, memory: &AnyMemory, id: &str, task: &str) -> String {
    let place = BuildContext::none().with_memory(memory.clone());
    let mut team = team.clone();
    team.use_model("script");
    let model = AnyModel::new(team.script.model("script"));
    let chat = team.build_at(&|_| Ok(model.clone()), &place).unwrap();
    let store = AnyStore::new(Logs::new());
    let mut log = Log::create(store, LogId::new(id).unwrap()).await.unwrap();
    assert!(matches!(chat.run_in(&mut log, task).await.unwrap().status, Status::Closed { .. }));
    transcript(&log.events().await)
}

#[tokio::test]
async fn agents_share_the_teams_memory_or_have_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let memory = AnyMemory::new(Facts::open(dir.path().join("facts.db")).unwrap());
    let team = team(PAIR);
    assert!(team.needs_memory());
    assert_eq!(
        team.agents[0].model().unwrap().memory.on().unwrap(),
        &AgentMemory { tools: true, auto_recall: 5, private: false }
    );
    let first = run(&team, &memory, "one", "Who likes green tea?").await;
    // Bob, whose memory is his own, finds what he wrote in the same reply: not what Ann wrote.
    assert!(first.contains("Remembered as #1.") && first.contains("Remembered as #2."), "{first}");
    let facts = memory.list(None, 9).await.unwrap();
    let kept: Vec<_> = facts.iter().map(|fact| (fact.scope.as_str(), fact.text.as_str())).collect();
    assert_eq!(kept, [("tea room/Bob", "Bob likes black tea."), ("tea room", "Guests like green tea.")]);
    // Cy received a message about tea, and a reminder of what Ann wrote in the same conversation; Dee has no memory.
    let shown = |said: &str, who: &str| said.lines().any(|line| line.contains(&format!("{who} is prompted")));
    assert!(!shown(&first, "Dee"), "{first}");
    let second = run(&team, &memory, "two", "Who likes green tea?").await;
    for (who, fact) in [("Ann", "Guests like green tea."), ("Cy", "Guests like green tea.")] {
        let at = second.find(&format!("{who} is prompted: ")).unwrap_or_else(|| panic!("{who}\n{second}"));
        assert!(second[at..].lines().take(3).any(|line| line.contains(fact)), "{second}");
    }
}

/// A memory that takes longer to write than to read.
struct Slow(AnyMemory);

impl Memory for Slow {
    async fn remember(&self, note: &Note) -> Result<Fact, MemoryError> {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        self.0.remember(note).await
    }

    async fn recall(&self, query: &Query) -> Result<Recalled, MemoryError> {
        self.0.recall(query).await
    }

    async fn forget(&self, scope: &Scope, id: u64) -> Result<bool, MemoryError> {
        self.0.forget(scope, id).await
    }

    async fn list(&self, scope: Option<&Scope>, limit: usize) -> Result<Vec<Fact>, MemoryError> {
        self.0.list(scope, limit).await
    }
}

/// What one call writes down the next one finds, however long it takes.
#[tokio::test]
async fn calls_of_one_message_follow_one_another_in_the_memory() {
    let dir = tempfile::tempdir().unwrap();
    let facts = AnyMemory::new(Facts::open(dir.path().join("facts.db")).unwrap());
    let team = team(
        "
name: t
agents: [{name: A, memory: {auto_recall: 0}}]
chat: {participants: [A], pattern: sequential}
script:
  - A:
      calls:
        - {tool: recall, args: {query: tea}}
        - {tool: remember, args: {text: Guests like green tea.}}
        - {tool: recall, args: {query: tea}}
        - {tool: forget, args: {id: 1}}
        - {tool: recall, args: {query: tea}}
  - A: done
",
    );
    let shown = run(&team, &AnyMemory::new(Slow(facts.clone())), "one", "go").await;
    let came: Vec<&str> =
        shown.lines().filter_map(|line| line.split_once(" A gets #A-0-")?.1.get(3..)).collect();
    let (nothing, fact) = ("Nothing is remembered about that.", "Guests like green tea.");
    assert_eq!(
        [came[0], came[1], came[3], came[4]],
        [nothing, "Remembered as #1.", "#1 is forgotten.", nothing]
    );
    assert!(came.len() == 5 && came[2].ends_with(fact), "{shown}");
    assert!(facts.list(None, 9).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_team_without_its_memory_is_not_built_and_can_be_looked_at() {
    let mut team = team(PAIR);
    team.use_model("script");
    let model = AnyModel::new(team.script.model("script"));
    let error = team.build(&|_| Ok(model.clone())).unwrap_err();
    assert_eq!(error.to_string(), "`Ann` has no long-term memory");
    let assistants = team.assistants(&|_| Ok(model.clone())).unwrap();
    let tools: Vec<Vec<&str>> = assistants
        .iter()
        .map(|agent| agent.specs().iter().map(|spec| spec.name.as_str()).collect())
        .collect();
    let all = vec!["remember", "recall", "forget"];
    assert_eq!(tools, [all.clone(), all, Vec::new(), Vec::new()]);
}

#[test]
fn memory_settings_without_effect_are_reported() {
    let of = |memory: &str, agent: &str| {
        format!(
            "{{name: t, {memory}agents: [{{name: Ann, {agent}}}], chat: {{participants: [Ann], stop: {{max_turns: 1}}}}}}"
        )
    };
    let neither = wrong(&of("", "memory: {tools: false, auto_recall: 0}"));
    assert!(neither.contains("`Ann` neither has the tools nor is reminded of anything"), "{neither}");
    let scope = wrong(&of("memory: {scope: \"a\\nb\"}, ", "memory: true"));
    assert!(
        scope.contains("the scope of a memory must have 1 to 200 bytes") && scope.contains(":1:"),
        "{scope}"
    );
    let blank = wrong(&of("memory: {scope: \"\"}, ", "memory: true"));
    assert!(blank.contains("`scope` is empty"), "{blank}");
    let person = wrong(&of("", "human: true, memory: true"));
    assert!(person.contains("a person has no `memory`"), "{person}");
    let many = wrong(&of("", "memory: {auto_recall: 51}"));
    assert!(many.contains("`auto_recall`"), "{many}");
    let model = wrong(&of("memory: {embed: nomic}, ", "memory: true"));
    assert!(model.contains("provider"), "{model}");
    let alone = wrong(&of("memory: {dimensions: 256}, ", "memory: true"));
    assert!(alone.contains("`dimensions` has no effect without an embedding model"), "{alone}");
    let off = of("memory: {scope: x}, ", "memory: false");
    let loaded = parse(&off, "t.yaml", &Overrides::default()).unwrap();
    assert!(loaded.warnings.to_string().contains("no agent of the team has a memory"));
    assert!(!loaded.team.needs_memory());
}

#[test]
fn tools_of_the_memory_can_be_looked_up_by_name() {
    let names = ["remember", "recall", "forget"];
    let memory = AnyMemory::new(polylogue::tools::memory::Nothing);
    let memory = polylogue::tools::memory::LongTermMemory::new(
        memory,
        polylogue::tools::memory::Scope::new("t").unwrap(),
    );
    let tools: Vec<String> = memory.tools().iter().map(|tool| tool.spec().name.clone()).collect();
    assert_eq!(tools, names);
    assert!(memory.tools().iter().all(|tool| tool.spec().repeatable));
}
