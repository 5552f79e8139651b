//! When and by which model the histories of a team's agents are compacted.

use std::sync::Arc;

use expect_test::expect;
use polylogue::AnyModel;
use polylogue_core::{Body, CallPurpose, DeltaSink, Event, Log, Model, ModelError, Reply, Request};
use polylogue_team::{Overrides, parse};

use super::diagnostics::check;
use crate::common;

/// A model that says one word, and writes empty summaries.
struct Talker(String);

impl Model for Talker {
    fn name(&self) -> &str {
        &self.0
    }
    async fn complete(&self, request: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        if request.params.schema.is_none() {
            return Ok(Reply::new("Well."));
        }
        let system = request.system.unwrap_or_default();
        Ok(Reply::new(format!(
            r#"{{"task": "talk", "decisions": [], "facts": ["brief: {}"], "done": [], "open": [], "files": [], "outdated": []}}"#,
            system.starts_with("You are brief.")
        )))
    }
}

/// The conversation of a team with three talking agents.
async fn played(team: &str) -> Vec<Arc<Event>> {
    let text = format!(
        "name: t\nmodel: 'a:b'\nchat: {{participants: [Ann, Bob, Cy], stop: {{max_turns: 40}}}}\n{team}"
    );
    let loaded = parse(&text, "t.yaml", &Overrides::default()).unwrap_or_else(|e| panic!("{e}"));
    let chat = loaded.team.build(&|name| Ok(AnyModel::new(Talker(name.to_owned())))).unwrap();
    let mut log = Log::in_memory();
    chat.run_in(&mut log, "Talk.").await.unwrap();
    log.events().await
}

/// Who compacted, and by which model.
fn summaries(events: &[Arc<Event>]) -> Vec<(String, String)> {
    let summary = |event: &Arc<Event>| match &event.body {
        Body::ModelReplied(reply) if reply.purpose == CallPurpose::Compaction => {
            Some((reply.who.to_string(), reply.model.to_string()))
        }
        _ => None,
    };
    events.iter().filter_map(summary).collect()
}

const AGENTS: &str = "agents:
  - {name: Ann}
  - {name: Bob, compaction: {at: {messages: 10}, model: 'b:cheap'}}
  - {name: Cy, compaction: false}
  - {name: Dan, model: 'd:writer', system: You are brief.}
";

#[tokio::test]
async fn a_team_says_when_and_by_which_model_histories_are_compacted() {
    let events = played(&format!("{AGENTS}compaction: {{at: {{messages: 8}}, by: Dan}}\n")).await;
    let all = summaries(&events);
    let of = |who: &str| all.iter().filter(|(name, _)| name == who).collect::<Vec<_>>();
    assert!(!of("Ann").is_empty() && of("Ann").iter().all(|(_, model)| model == "d:writer"), "{all:?}");
    assert!(!of("Bob").is_empty() && of("Bob").iter().all(|(_, model)| model == "b:cheap"), "{all:?}");
    assert!(of("Cy").is_empty(), "{all:?}");
    let facts = events.iter().filter_map(|event| match &event.body {
        Body::Compacted(compacted) => Some((compacted.who.as_str(), compacted.summary.facts.join(" "))),
        _ => None,
    });
    for (who, facts) in facts {
        assert_eq!(facts, format!("brief: {}", who == "Ann"), "the system message of Dan");
    }
}

#[tokio::test]
async fn a_team_without_compaction_has_none_but_that_of_its_agents() {
    let all = summaries(&played(&format!("{AGENTS}compaction: false\n")).await);
    assert!(!all.is_empty() && all.iter().all(|(name, _)| name == "Bob"), "{all:?}");
    // The window is unknown, and a share of it, too.
    assert_eq!(summaries(&played("agents: [{name: Ann}, {name: Bob}, {name: Cy}]\n").await), []);
}

#[test]
fn models_of_summaries_are_known_before_the_run() {
    let text = format!(
        "name: t\nmodel: 'a:b'\nchat: {{participants: [Ann, Bob, Cy], stop: {{max_turns: 4}}}}\n{AGENTS}compaction: {{model: 'c:d'}}\n"
    );
    let mut team = common::team(&text);
    assert_eq!(team.models().into_iter().collect::<Vec<_>>(), ["a:b", "b:cheap", "c:d", "d:writer"]);
    team.use_model("x:y");
    assert_eq!(team.models().into_iter().collect::<Vec<_>>(), ["x:y"]);
}

#[test]
fn settings_without_effect_and_unable_authors_are_found() {
    check(
        "name: t
model: a:b
agents:
  - {name: A, view: {window: {messages: 9}}, compaction: {at: {tokens: 9000}}}
  - {name: B, compaction: {at: {share: 80}, by: C, model: x:y}}
  - {name: C, model: none, default_reply: x}
  - {name: D, human: true, compaction: true}
chat: {participants: [A, B, C, D], stop: {max_turns: 4}}
compaction: {by: Zoe, at: 0.5}
",
        &expect![[r#"
            error: `view` has a `window`, so nothing is compacted
             --> t.yaml:4:46
              |
            4 |   - {name: A, view: {window: {messages: 9}}, compaction: {at: {tokens: 9000}}}
              |                                              ^^^^^^^^^^
            hint: the window keeps the view short: remove `compaction`, or `window` of `view`

            error: `share` must be at most 1
             --> t.yaml:5:40
              |
            5 |   - {name: B, compaction: {at: {share: 80}, by: C, model: x:y}}
              |                                        ^^

            error: `C` cannot write the summary: it has no model
             --> t.yaml:5:49
              |
            5 |   - {name: B, compaction: {at: {share: 80}, by: C, model: x:y}}
              |                                                 ^
            hint: name an agent that replies only by a model

            error: `model` and `by` cannot both be given
             --> t.yaml:5:52
              |
            5 |   - {name: B, compaction: {at: {share: 80}, by: C, model: x:y}}
              |                                                    ^^^^^
            hint: remove one of them

            error: a person has no `compaction`
             --> t.yaml:7:28
              |
            7 |   - {name: D, human: true, compaction: true}
              |                            ^^^^^^^^^^
            hint: remove `compaction`, or `human: true`; `human_input` lets a person reply for a model

            error: there is no agent `Zoe`
             --> t.yaml:9:18
              |
            9 | compaction: {by: Zoe, at: 0.5}
              |                  ^^^
            hint: there are `A`, `B`, `C`, `D`

            error: `at` must be a mapping, not a number
             --> t.yaml:9:27
              |
            9 | compaction: {by: Zoe, at: 0.5}
              |                           ^^^
        "#]],
    );
}
