//! Sequences, branches, loops and graphs of agents, in ordinary code.

use polylogue::{Act, Agent, Error, Function, Message};
use polylogue_core::{AnyAgent, Part};

use crate::lagent::flows::{Panel, at_once, diamond, each_part, in_order, one_of, repeat};
use crate::lagent::parts::{agent, session};
use crate::stage::script;

/// Says what it receives in brackets, with its name.
fn echo(who: &str) -> AnyAgent {
    let named = who.to_owned();
    let says = move |turn: &polylogue::Turn<'_>| Ok(Act::say(format!("{named}({})", turn.message().text())));
    AnyAgent::new(Function::new(who, says).unwrap())
}

async fn says(agent: impl Agent, message: impl Into<Message>) -> String {
    let session = session().await;
    session.call(&AnyAgent::new(agent), message).await.unwrap().text().into_owned()
}

/// L51.
#[tokio::test]
async fn a_pipeline_ends_at_the_set_stage_and_wraps_around() {
    let two = |calls| in_order("two", [echo("a"), echo("b")], calls);
    assert_eq!(says(two(1), "x").await, "a(x)");
    assert_eq!(says(two(2), "x").await, "b(a(x))");
    assert_eq!(says(two(3), "x").await, "a(b(a(x)))");
}

/// Z18: parallel, diverter, warp: in the order of branches and parts.
#[tokio::test]
async fn branches_keep_their_order() {
    assert_eq!(says(at_once("both", [echo("a"), echo("b")]), "x").await, "a(x)\n\nb(x)");
    let parts = |texts: &[&str]| Message {
        parts: texts.iter().map(|text| Part::text(*text)).collect(),
        ..Message::from("")
    };
    let warp = each_part("warp", echo("a"), 2);
    assert_eq!(says(warp, parts(&["x", "y", "z"])).await, "a(x)\n\na(y)\n\na(z)");
}

/// L50: results are in the order of the calls, whichever returns first.
#[tokio::test]
async fn results_of_calls_at_the_same_time_are_in_order() {
    let model = script(r#"[{"slow": {"say": "s", "delay_ms": 100}}, {"quick": "q"}]"#);
    let both = ["slow", "quick"].map(|who| AnyAgent::new(agent(who, &model)));
    let session = session().await;
    let reply = session.call(&AnyAgent::new(at_once("both", both)), "x").await.unwrap();
    assert_eq!(reply.text(), "s\n\nq");
    let events = session.log().events().await;
    let replied = events.iter().filter_map(|event| match &event.body {
        polylogue_core::Body::ModelReplied(reply) => Some(reply.who.as_str()),
        _ => None,
    });
    assert_eq!(replied.collect::<Vec<_>>(), ["quick", "slow"]);
}

/// Z18: switch, ifs, loop.
#[tokio::test]
async fn cases_and_loops() {
    let choose = |text: &str| ["x", "y"].iter().position(|start| text.starts_with(start));
    let switch = || one_of("switch", [echo("a"), echo("b")], choose);
    assert_eq!(says(switch(), "yes").await, "b(yes)");
    assert_eq!(says(switch(), "no").await, "no");
    let long = |text: &str| text.len() > 5;
    assert_eq!(says(repeat("loop", echo("a"), 9, long), "x").await, "a(a(x))");
    assert_eq!(says(repeat("loop", echo("a"), 1, long), "x").await, "a(x)");
}

/// Z18: graph.
#[tokio::test]
async fn a_graph_calls_each_node_once_when_all_before_it_spoke() {
    let graph = diamond("graph", ["a", "b", "c", "d"].map(echo));
    assert_eq!(says(graph, "x").await, "d(b(a(x))\n\nc(a(x)))");
}

/// L14.
#[tokio::test]
async fn lists_and_maps_remember_by_number_and_key() {
    let panel = Panel {
        name: "panel".try_into().unwrap(),
        items: vec![echo("a"), echo("a")],
        desks: vec![("k", echo("k")), ("j", echo("a"))],
    };
    let session = session().await;
    assert_eq!(session.call(&panel, "x").await.unwrap().text(), "k(a(x))\n\na(a(x))");
    let state = session.state(&panel).await.unwrap();
    let sizes: Vec<_> = state.keys().map(|key| (key, state.get(key).unwrap().len())).collect();
    let expected =
        [("memory", 2), ("items.0.memory", 0), ("items.1.memory", 2), ("d.k.memory", 2), ("d.j.memory", 2)];
    assert_eq!(sizes, expected);
}

/// Z18: a failing branch is reported with its name; the others are done.
#[tokio::test]
async fn a_failure_names_the_node() {
    let model = script(r#"[{"bad": {"error": {"message": "gone"}}}, {"good": "g"}]"#);
    let both = at_once("both", ["bad", "good"].map(|who| AnyAgent::new(agent(who, &model))));
    let outer = in_order("outer", [both], 1);
    let session = session().await;
    let error = session.call(&outer, "x").await.unwrap_err();
    assert!(matches!(&error, Error::Within { at, .. } if at == "outer.both.bad"), "{error}");
    assert!(error.to_string().starts_with("`outer.both.bad`: "), "{error}");
    assert_eq!(session.log().usage().await.calls, 1);
}
