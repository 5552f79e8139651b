//! What agents remember, by path.

use polylogue::session::{Forget, State};
use polylogue::{AnyModel, AnyTool, GetHistory};

use crate::parts::{Blogger, House, agent, session};
use crate::stage::{Spy, script};

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
        "memory",
        "items.0.memory",
        "items.1.memory",
        "blogger.memory",
        "blogger.writer.memory",
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

#[tokio::test]
async fn a_loaded_composite_goes_on_as_the_old_one_would() {
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
        assert_eq!(session.call(&blogger, "again").await.unwrap().plain(), "w4");
        sizes
    };
    assert_eq!(sizes(Forget::Own).await, [0, 4, 2]);
    assert_eq!(sizes(Forget::All).await, [0, 0, 0]);
    assert_eq!(sizes(Forget::Layer("critic")).await, [2, 4, 0]);
    let error =
        session().await.reset(&Blogger::new("blogger", &script(BLOG), 1), Forget::Layer("cook")).await;
    assert!(error.unwrap_err().to_string().contains("no layer `cook`"));
}
