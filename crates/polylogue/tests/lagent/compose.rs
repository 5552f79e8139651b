//! Sequences, branches, loops and graphs of agents.

use polylogue::compose::{Graph, Many, Parallel, Pipeline, Repeat, Switch, Warp};
use polylogue::{Act, Agent, AnyAgent, Error, Function, Message, Part};

use crate::parts::{agent, session};
use crate::stage::script;

/// Says what it hears in brackets, with its name.
fn echo(who: &str) -> AnyAgent {
    let named = who.to_owned();
    let says = move |turn: &polylogue::Turn<'_>| Ok(Act::say(format!("{named}({})", turn.message().plain())));
    AnyAgent::new(Function::new(who, says).unwrap())
}

async fn says(agent: impl Agent, message: impl Into<Message>) -> String {
    let session = session().await;
    session.call(&AnyAgent::new(agent), message).await.unwrap().plain().into_owned()
}

/// L51.
#[tokio::test]
async fn a_pipeline_ends_at_the_set_stage_and_wraps_around() {
    let two = || Pipeline::new("two").unwrap().then(echo("a")).then(echo("b"));
    assert_eq!(says(two().exit_at(0), "x").await, "a(x)");
    assert_eq!(says(two(), "x").await, "b(a(x))");
    assert_eq!(says(two().exit_at(2), "x").await, "a(b(a(x)))");
    let session = session().await;
    let empty = session.call(&Pipeline::new("none").unwrap(), "x").await.unwrap_err();
    assert!(empty.to_string().contains("`none` has no stages"));
}

/// Z18: parallel, diverter, warp: in the order of branches and parts.
#[tokio::test]
async fn branches_keep_their_order() {
    let both = || Parallel::new("both").unwrap().with(echo("a")).with(echo("b"));
    assert_eq!(says(both(), "x").await, "a(x)\n\nb(x)");
    let join = |replies: &[(&str, Message)]| {
        replies.iter().map(|(label, reply)| Part::text(format!("{label}={}", reply.plain()))).collect()
    };
    assert_eq!(says(both().joins(join), "x").await, "a=a(x)\n\nb=b(x)");
    let parts = |texts: &[&str]| Message {
        parts: texts.iter().map(|text| Part::text(*text)).collect(),
        ..Message::from("")
    };
    assert_eq!(says(both().divides(), parts(&["x", "y"])).await, "a(x)\n\nb(y)");
    let warp = Warp::new("warp", echo("a")).unwrap().at_once(2);
    assert_eq!(says(warp, parts(&["x", "y", "z"])).await, "a(x)\n\na(y)\n\na(z)");
    let error = session().await.call(&both().divides(), parts(&["x"])).await.unwrap_err();
    assert!(error.to_string().contains("2 branches for a message of 1 parts"), "{error}");
}

/// Z18: switch, ifs, loop.
#[tokio::test]
async fn cases_and_loops() {
    let choose = |message: &Message| message.plain().chars().next().unwrap_or(' ').to_string();
    let switch = || Switch::new("switch", choose).unwrap().case("x", echo("a")).case("y", echo("b"));
    assert_eq!(says(switch(), "yes").await, "b(yes)");
    assert_eq!(says(switch(), "no").await, "no");
    assert_eq!(says(switch().otherwise(echo("c")), "no").await, "c(no)");
    let long = |message: &Message| message.plain().len() > 5;
    assert_eq!(says(Repeat::new("loop", echo("a"), 9).unwrap().until(long), "x").await, "a(a(x))");
    assert_eq!(says(Repeat::new("loop", echo("a"), 1).unwrap().until(long), "x").await, "a(x)");
    let strict = Repeat::new("loop", echo("a"), 1).unwrap().until(long).or_fails();
    let error = session().await.call(&strict, "x").await.unwrap_err();
    assert!(error.to_string().contains("`loop` is not over after 1 rounds"), "{error}");
}

/// Z18: graph.
#[tokio::test]
async fn a_graph_calls_each_node_once_when_all_before_it_spoke() {
    let graph = || Graph::named("graph").node(echo("a")).node(echo("b")).node(echo("c")).node(echo("d"));
    let diamond = graph().edge("a", "b").edge("a", "c").edge("b", "d").edge("c", "d").build().unwrap();
    assert_eq!(says(diamond, "x").await, "d(b(a(x))\n\nc(a(x)))");
    for (graph, flaw) in [
        (graph().edge("a", "b").edge("b", "a"), "has a loop that `a` is in"),
        (graph().edge("a", "z"), "has no node `z`"),
        (graph().edge("a", "b").edge("a", "b"), "from `a` to `b` twice"),
        (graph().node(echo("a")), "has two nodes `a`"),
        (Graph::named("graph"), "has no nodes"),
    ] {
        let error = graph.build().unwrap_err().to_string();
        assert!(error.contains(flaw), "{error}");
    }
}

#[derive(Clone)]
struct Panel(polylogue::Name, Many, Many);

impl Agent for Panel {
    fn name(&self) -> &polylogue::Name {
        &self.0
    }
    fn layers(&self) -> Vec<polylogue::Layer> {
        self.1.layers().into_iter().chain(self.2.layers()).collect()
    }
    async fn act(&self, turn: &mut polylogue::Turn<'_>) -> polylogue::Result<Act> {
        let first = self.1.ask(turn, 1, turn.message()).await?;
        let all = self.2.ask_all(turn, first).await?;
        Ok(Act::Say(all.into_iter().flat_map(|reply| reply.parts).collect()))
    }
}

/// L14.
#[tokio::test]
async fn lists_and_maps_remember_by_number_and_key() {
    let items = Many::list("items", [echo("a"), echo("a")]).unwrap();
    let desks = Many::map("d", [("k", echo("k")), ("j", echo("a"))]).unwrap();
    let panel = Panel("panel".try_into().unwrap(), items.clone(), desks);
    let session = session().await;
    assert_eq!(session.call(&panel, "x").await.unwrap().plain(), "k(a(x))\n\na(a(x))");
    let state = session.state(&panel).await.unwrap();
    let sizes: Vec<_> = state.keys().map(|key| (key, state.get(key).unwrap().len())).collect();
    let expected =
        [("memory", 2), ("items.0.memory", 0), ("items.1.memory", 2), ("d.k.memory", 2), ("d.j.memory", 2)];
    assert_eq!(sizes, expected);
    for (many, flaw) in [
        (Many::map("d", [("a.b", echo("a"))]), "`d.a.b` is no label"),
        (Many::map("d", [("a", echo("a")), ("a", echo("b"))]), "`d.a` is there twice"),
    ] {
        let error = many.unwrap_err().to_string();
        assert!(error.contains(flaw), "{error}");
    }
    let missing = Panel("panel".try_into().unwrap(), Many::list("items", [echo("a")]).unwrap(), items);
    let error = session.call(&missing, "x").await.unwrap_err().to_string();
    assert!(error.contains("`panel` has no `items.1`"), "{error}");
}

/// Z18: a failing branch is reported with its name; the others are done.
#[tokio::test]
async fn a_failure_names_the_node() {
    let model = script(r#"[{"bad": {"error": {"message": "gone"}}}, {"good": "g"}]"#);
    let both = Parallel::new("both").unwrap().with(agent("bad", &model)).with(agent("good", &model));
    let outer = Pipeline::new("outer").unwrap().then(both);
    let session = session().await;
    let error = session.call(&outer, "x").await.unwrap_err();
    assert!(matches!(&error, Error::Within { at, .. } if at == "outer.both.bad"), "{error}");
    assert!(error.to_string().starts_with("`outer.both.bad`: "), "{error}");
    assert_eq!(session.log().usage().await.calls, 1);
}
