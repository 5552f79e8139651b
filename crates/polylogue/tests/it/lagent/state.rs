//! What agents remember, by path.

use polylogue::agents::session::{Forget, State};
use polylogue::layers::aggregate::recent;
use polylogue::layers::hook::HookedModel;
use polylogue::layers::parse::{Parsed, ParsedBlock, ToolBlock};
use polylogue::tools::GetHistory;
use polylogue::{AnyModel, Session};
use polylogue_core::{AnyStore, AnyTool, LogId};
use polylogue_store::Sqlite;

use crate::lagent::parts::{Blogger, House, agent, session};
use crate::lagent::visualizer::{VISUALIZER, Visualizer};
use crate::stage::{Asked, Spy, script};

const BLOG: &str = r#"[{"writer": "w1"}, {"critic": "c1"}, {"writer": "w2"}, {"writer": "w3"}, {"critic": "c2"}, {"writer": "w4"}]"#;

fn house() -> AnyModel {
    script(
        r#"[{"one": "o"}, {"two": "t"}, {"house": "h"}, {"writer": "w1"}, {"critic": "c"}, {"writer": "w2"}]"#,
    )
}

/// L13.
#[tokio::test]
async fn keys_are_those_of_the_agent_and_its_layers_in_order() {
    let blogger = Blogger::new("blogger", &script(BLOG), 1);
    let session = session().await;
    let keys = ["memory", "writer.memory", "critic.memory"];
    assert_eq!(session.state(&blogger).await.unwrap().keys().collect::<Vec<_>>(), keys);
    session.call(&blogger, "go").await.unwrap();
    let state = session.state(&blogger).await.unwrap();
    assert_eq!(state.keys().collect::<Vec<_>>(), keys);
    let json = serde_json::to_string(&state).unwrap();
    assert!(
        json.starts_with(
            r#"{"memory":[{"from":"user","parts":[{"text":"go"}]},{"from":"blogger","parts":[{"text":"w2"}]}],"writer.memory":["#
        ),
        "{json}"
    );
    assert_eq!(serde_json::from_str::<State>(&json).unwrap(), state);
}

/// L14.
#[tokio::test]
async fn keys_of_a_list_have_numbers_and_the_list_has_none() {
    let house = House::new(&house());
    let session = session().await;
    session.call(&house, "go").await.unwrap();
    let expected = [
        "memory", "items.0.memory", "items.1.memory", "blogger.memory", "blogger.writer.memory",
        "blogger.critic.memory",
    ];
    assert_eq!(session.state(&house).await.unwrap().keys().collect::<Vec<_>>(), expected);
}

/// L17: with calls of tools, thoughts and all.
#[tokio::test]
async fn a_loaded_agent_asks_what_the_old_one_would_have() {
    let steps = r#"[{"bot": {"think": "hm", "say": "Let me see.", "calls": [{"tool": "get_history"}, {"tool": "get_history"}]}},
        {"bot": "one"}, {"bot": "two"}]"#;
    let old = Spy::on(script(steps));
    let tooled = |model: AnyModel| agent("bot", &model).tool(AnyTool::new(GetHistory::default()));
    let (first, second) = (session().await, session().await);
    first.call(&tooled(old.model()), "a").await.unwrap();
    let json = serde_json::to_value(first.state(&tooled(old.model())).await.unwrap()).unwrap();
    first.call(&tooled(old.model()), "b").await.unwrap();

    let new = Spy::on(script(r#"[{"bot": "two"}]"#));
    let state: State = serde_json::from_value(json).unwrap();
    assert_eq!(second.load(&tooled(new.model()), &state).await.unwrap(), Vec::<String>::new());
    assert_eq!(second.state(&tooled(new.model())).await.unwrap(), state);
    second.call(&tooled(new.model()), "b").await.unwrap();
    assert_eq!(new.asked().last().unwrap().entries, old.asked().last().unwrap().entries);
}

/// L17: what a parser read is in the state, and models are sent what the old ones were.
#[tokio::test]
async fn a_loaded_agent_with_a_parser_asks_what_the_old_one_would_have() {
    let steps = r#"[{"bot": "Hm.\n```\n{\"a\": 1}"}, {"bot": "```\nbad"}, {"bot": "done"}]"#;
    let block = || ToolBlock::new("x").between("```\n", "\n```\n").json().restore();
    let parsed = |spy: &Spy| Parsed::new(agent("bot", &spy.model()), block());
    let (old, new) = (Spy::on(script(steps)), Spy::on(script(r#"[{"bot": "done"}]"#)));
    let (first, second) = (session().await, session().await);
    for text in ["a", "b"] {
        first.call(&parsed(&old), text).await.unwrap();
    }
    let json = serde_json::to_string(&first.state(&parsed(&old)).await.unwrap()).unwrap();
    second.load(&parsed(&new), &serde_json::from_str(&json).unwrap()).await.unwrap();
    let state = second.state(&parsed(&new)).await.unwrap();
    let statuses: Vec<_> = state
        .get("memory")
        .unwrap()
        .iter()
        .filter_map(ParsedBlock::from_message)
        .map(|block| block.status)
        .collect();
    assert_eq!(statuses, [1, -1]);
    first.call(&parsed(&old), "c").await.unwrap();
    second.call(&parsed(&new), "c").await.unwrap();
    assert_eq!(new.asked()[0].entries, old.asked()[2].entries);
    assert_eq!(new.asked()[0].entries.len(), 4);
}

#[tokio::test]
async fn a_loaded_composite_continues_like_the_original() {
    let old = Spy::on(script(BLOG));
    let (first, second) = (session().await, session().await);
    first.call(&Blogger::new("blogger", &old.model(), 1), "a").await.unwrap();
    let state = first.state(&Blogger::new("blogger", &old.model(), 1)).await.unwrap();
    first.call(&Blogger::new("blogger", &old.model(), 1), "b").await.unwrap();
    let new = Spy::on(script(r#"[{"writer": "w3"}, {"critic": "c2"}, {"writer": "w4"}]"#));
    let blogger = Blogger::new("blogger", &new.model(), 1);
    second.load(&blogger, &state).await.unwrap();
    second.call(&blogger, "b").await.unwrap();
    let entries = |spy: &Spy| spy.asked().into_iter().map(|asked| asked.entries).collect::<Vec<_>>();
    assert_eq!(entries(&new), entries(&old)[3..]);
}

/// L18.
#[tokio::test]
async fn a_state_without_a_key_is_refused_and_changes_nothing() {
    let blogger = Blogger::new("blogger", &script(BLOG), 1);
    let session = session().await;
    session.call(&blogger, "go").await.unwrap();
    let before = session.state(&blogger).await.unwrap();
    let short: State = serde_json::from_str(r#"{"memory": [], "other.memory": []}"#).unwrap();
    let error = session.load(&blogger, &short).await.unwrap_err().to_string();
    assert!(error.contains("`writer.memory`, `critic.memory`"), "{error}");
    assert_eq!(session.state(&blogger).await.unwrap(), before);
    let more = r#"{"memory": [], "writer.memory": [], "critic.memory": [], "other.memory": []}"#;
    let more: State = serde_json::from_str(more).unwrap();
    assert_eq!(session.load(&blogger, &more).await.unwrap(), ["other.memory"]);
    assert!(session.state(&blogger).await.unwrap().get("writer.memory").unwrap().is_empty());
}

/// L19.
#[tokio::test]
async fn reset_forgets_a_node_a_subtree_or_a_path() {
    let sizes = async |forget: Forget<'_>| {
        let blogger = Blogger::new("blogger", &script(BLOG), 1);
        let session = session().await;
        session.call(&blogger, "go").await.unwrap();
        session.reset(&blogger, forget).await.unwrap();
        let state = session.state(&blogger).await.unwrap();
        let sizes: Vec<usize> = state.keys().map(|key| state.get(key).unwrap().len()).collect();
        assert_eq!(session.call(&blogger, "again").await.unwrap().text(), "w4");
        sizes
    };
    assert_eq!(sizes(Forget::Own).await, [0, 4, 2]);
    assert_eq!(sizes(Forget::All).await, [0, 0, 0]);
    assert_eq!(sizes(Forget::SubAgent("critic")).await, [2, 4, 0]);
    let error =
        session().await.reset(&Blogger::new("blogger", &script(BLOG), 1), Forget::SubAgent("cook")).await;
    assert!(error.unwrap_err().to_string().contains("unknown sub-agent `cook`"));
}

/// L19: of a nested agent by its path; an error where there is no agent of that name.
#[tokio::test]
async fn reset_by_a_path_forgets_exactly_one_node() {
    for (path, nth) in
        [("items.0", 1), ("items.1", 2), ("blogger", 3), ("blogger.writer", 4), ("blogger.critic", 5)]
    {
        let house = House::new(&house());
        let session = session().await;
        session.call(&house, "go").await.unwrap();
        let sizes = async || -> Vec<usize> {
            let state = session.state(&house).await.unwrap();
            state.keys().map(|key| state.get(key).unwrap().len()).collect()
        };
        let mut expected = sizes().await;
        assert_ne!(expected[nth], 0);
        session.reset(&house, Forget::SubAgent(path)).await.unwrap();
        expected[nth] = 0;
        assert_eq!(sizes().await, expected, "{path}");
        let error = session.reset(&house, Forget::SubAgent("writer")).await.unwrap_err().to_string();
        assert!(error.contains("unknown sub-agent `writer` of `house`"), "{error}");
    }
}

/// L19: the memory of a sub-agent that is not declared is cleared, too.
#[tokio::test]
async fn reset_reaches_undeclared_sub_agents() {
    let agent = Visualizer::new(&script(VISUALIZER));
    let session = session().await;
    session.call(&agent, "Draw it.").await.unwrap();
    let sizes = async || -> Vec<(String, usize)> {
        let state = session.state(&agent).await.unwrap();
        state.keys().map(|key| (key.to_owned(), state.get(key).unwrap().len())).collect()
    };
    session.reset(&agent, Forget::SubAgent("charter")).await.unwrap();
    let of = |sizes: &[(String, usize)], key: &str| sizes.iter().find(|(other, _)| other == key).unwrap().1;
    let after = sizes().await;
    assert_eq!((of(&after, "charter.memory"), of(&after, "researcher.memory")), (0, 4));
    session.reset(&agent, Forget::All).await.unwrap();
    assert!(sizes().await.iter().all(|(_, size)| *size == 0));
}

/// What a session of the same calls asks, whether it is one process or a new one for each call.
async fn asked_in(processes: bool) -> Vec<Vec<Asked>> {
    let folder = tempfile::tempdir().unwrap();
    let store = || AnyStore::new(Sqlite::open(folder.path().join("log.db")).unwrap());
    let id = || LogId::new("session").unwrap();
    let spy = Spy::on(script(BLOG));
    let mut session = Session::create(store(), id()).await.unwrap();
    let mut asked = Vec::new();
    for text in ["a", "b"] {
        if processes {
            session.into_log().release().await.unwrap();
            session = Session::open(store(), id()).await.unwrap();
        }
        session.call(&Blogger::new("blogger", &spy.model(), 1), text).await.unwrap();
        asked.push(spy.asked());
    }
    asked
}

/// L17: a run continues from the log alone.
#[tokio::test]
async fn a_session_continues_from_its_file_like_the_original() {
    let entries = |asked: Vec<Vec<Asked>>| -> Vec<_> {
        asked.into_iter().flatten().map(|asked| (asked.who, asked.system, asked.entries)).collect()
    };
    let (old, new) = (entries(asked_in(false).await), entries(asked_in(true).await));
    assert_eq!(old, new);
    assert_eq!(old.last().unwrap().2.len(), 7, "the writer remembers the first call");
}

/// L20: a window is of what is sent. What was loaded counts as what was said.
#[tokio::test]
async fn a_window_holds_after_loading() {
    let spy = Spy::on(script(r#"[{"bot": "one"}, {"bot": "two"}, {"bot": "three"}]"#));
    let bot = agent("bot", &AnyModel::new(HookedModel::new(spy.model()).on_view(recent(3))));
    let (first, second) = (session().await, session().await);
    first.call(&bot, "a").await.unwrap();
    first.call(&bot, "b").await.unwrap();
    second.load(&bot, &first.state(&bot).await.unwrap()).await.unwrap();
    second.call(&bot, "c").await.unwrap();
    let sent = spy.asked().pop().unwrap().entries;
    let texts: Vec<_> =
        sent.iter().map(|entry| polylogue_core::text_of(entry.parts()).into_owned()).collect();
    assert_eq!(texts, ["b", "two", "c"]);
    assert_eq!(second.state(&bot).await.unwrap().get("memory").unwrap().len(), 6);
}

/// L18: of one session, and not of another in the same store.
#[tokio::test]
async fn a_state_is_of_one_session() {
    let store = AnyStore::new(polylogue_store::Memory::new());
    let bot = agent("bot", &script(r#"[{"bot": "one"}]"#));
    let one = Session::create(store.clone(), LogId::new("1").unwrap()).await.unwrap();
    let two = Session::create(store.clone(), LogId::new("2").unwrap()).await.unwrap();
    one.call(&bot, "a").await.unwrap();
    assert_eq!(one.state(&bot).await.unwrap().get("memory").unwrap().len(), 2);
    assert!(two.state(&bot).await.unwrap().get("memory").unwrap().is_empty());
    two.load(&bot, &one.state(&bot).await.unwrap()).await.unwrap();
    one.reset(&bot, Forget::Own).await.unwrap();
    assert_eq!(two.state(&bot).await.unwrap().get("memory").unwrap().len(), 2);
    // L53: there is no session but those that were begun.
    let gone = Session::open(store, LogId::new("3").unwrap()).await.unwrap_err();
    assert!(gone.to_string().contains('3'), "{gone}");
}
