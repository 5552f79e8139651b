//! Graphs.

use polylogue::policies::graph::{Edge, Graph, GraphBuilder, Join};
use polylogue::tools::state::{self, SetState};
use polylogue::{Act, Chat, Function, Message, Name, Status, sequential};
use polylogue_core::StopReason;
use serde_json::{Value, json};

use crate::beyond::stage::{Cast, events_with, fails, log, play, print};

/// The names in turn requests, parallel ones in brackets.
fn order(said: &str) -> String {
    let turns = said.lines().filter(|line| line.starts_with("turn "));
    let who = |turn: &str| turn.trim_start_matches("turn ").split(' ').next().unwrap_or_default().to_owned();
    let turns = turns.map(|line| match line.split(" | ").map(who).collect::<Vec<_>>().as_slice() {
        [only] => only.clone(),
        several => format!("[{}]", several.join(" ")),
    });
    turns.collect::<Vec<_>>().join(" ")
}

fn end(said: &str) -> &str {
    said.lines().last().unwrap()
}

/// Every participant says its scripted text, or else its own name.
async fn run(script: &str, flow: GraphBuilder) -> String {
    let graph = flow.build().unwrap();
    play(script, |cast| graph_chat(cast, script, &graph)).await
}

fn graph_chat(cast: &Cast<'_>, script: &str, graph: &Graph) -> Chat {
    let mut builder = Chat::builder("group");
    for who in graph.nodes() {
        builder = if script.contains(&format!("\"{who}\"")) {
            builder.participant(cast.assistant(who.as_str()))
        } else {
            let said = who.to_string();
            builder.participant(Function::new(who.as_str(), move |_| Ok(Act::say(said.clone()))).unwrap())
        };
    }
    builder.policy(graph.clone()).build().unwrap()
}

#[tokio::test]
async fn a_chain_ends_after_its_last_node() {
    let said = run("[]", Graph::builder(["C", "B", "A"]).edge(("A", "B")).edge(("B", "C"))).await;
    assert_eq!((order(&said).as_str(), end(&said)), ("A B C", "closed (the graph is complete): C"));
}

#[tokio::test]
async fn what_is_due_at_once_speaks_at_once_and_a_join_waits_for_all() {
    let flow = || {
        let flow = Graph::builder(["Start", "Fast", "Slow", "Slower", "End"]);
        let flow = flow.edge(("Start", "Fast")).edge(("Start", "Slow")).edge(("Slow", "Slower"));
        flow.edge(("Fast", "End")).edge(("Slower", "End"))
    };
    assert_eq!(order(&run("[]", flow()).await), "Start [Fast Slow] Slower End");
    let any = run("[]", flow().join("End", Join::Any)).await;
    assert_eq!(order(&any), "Start [Fast Slow] [Slower End] End", "each time it is reached");
}

#[tokio::test]
async fn several_begin_at_once() {
    let said = run("[]", Graph::builder(["A", "B", "C"]).edge(("A", "C")).edge(("B", "C"))).await;
    assert_eq!(order(&said), "[A B] C");
}

fn reviewed() -> GraphBuilder {
    let flow =
        Graph::builder(["Writer", "Critic", "Printer"]).starts_with("Writer").edge(("Writer", "Critic"));
    flow.edge(Edge::from(("Critic", "Writer")).says("AGAIN").max_times(2))
        .edge(Edge::from(("Critic", "Printer")).otherwise())
}

// Trap T41: graphs stalled when they were saved and loaded in the middle of a loop. Every conversation here is cut
// after each of its events.
#[tokio::test]
async fn a_loop_continues_while_its_condition_holds_up_to_its_bound() {
    let said = run(r#"[{"Critic": "again"}, {"Critic": "fine"}]"#, reviewed()).await;
    assert_eq!(order(&said), "Writer Critic Writer Critic Printer");
    assert!(said.contains("turn Writer (of [Writer, Printer] by rule)"), "{said}");
    let said = run(r#"[{"Critic": "Again!"}, {"Critic": "again"}, {"Critic": "again"}]"#, reviewed()).await;
    assert_eq!(order(&said), "Writer Critic Writer Critic Writer Critic Printer");
}

// Trap T41: several loops needed activation groups, or the joins in them waited forever.
#[tokio::test]
async fn loops_within_loops_with_joins_in_them() {
    let flow = Graph::builder(["Plan", "Code", "Test", "Docs", "Review", "Ship"]).starts_with("Plan");
    let flow = flow.edge(("Plan", "Code")).edge(("Plan", "Docs"));
    let flow = flow
        .edge(Edge::from(("Code", "Code")).says("retry"))
        .edge(Edge::from(("Code", "Test")).otherwise())
        .edge(Edge::from(("Test", "Code")).says("red"))
        .edge(Edge::from(("Test", "Review")).otherwise())
        .edge(("Docs", "Review"))
        .edge(Edge::from(("Review", "Plan")).says("again"))
        .edge(Edge::from(("Review", "Ship")).otherwise());
    let script = r#"[{"Code": "retry"}, {"Code": "1"}, {"Code": "2"}, {"Code": "3"}, {"Test": "red"}, {"Test": "green"},
        {"Test": "green"}, {"Review": "again"}, {"Review": "good"}]"#;
    let said = run(script, flow).await;
    assert_eq!(order(&said), "Plan [Code Docs] Code Test Code Test Review Plan [Code Docs] Test Review Ship");
    assert!(end(&said).starts_with("closed (the graph is complete)"), "{said}");
}

#[tokio::test]
async fn back_edges_do_not_depend_on_the_order_of_the_edges() {
    // A loop of B and D that can be entered at both: D asks B for another go, and waits for it like for C.
    let edges = || {
        let again = Edge::from(("D", "B")).says("again").max_times(1);
        let on = Edge::from(("D", "End")).otherwise();
        let pairs = [("A", "C"), ("C", "D"), ("B", "D"), ("A", "B")].map(Edge::from);
        [again, on].into_iter().chain(pairs)
    };
    let script = r#"[{"D": "again"}, {"D": "fine"}]"#;
    for turned in 0..6 {
        let edges = edges().cycle().skip(turned).take(6);
        let flow = edges.fold(Graph::builder(["A", "B", "C", "D", "End"]), GraphBuilder::edge);
        // C is not asked again, and D does not wait for it in vain.
        assert_eq!(order(&run(script, flow.clone()).await), "A [B C] D B D End", "{turned}");
        let said = run(script, flow.join("D", Join::All)).await;
        assert_eq!(order(&said), "A [B C] D B", "{turned}");
        assert_eq!(end(&said), "closed (no participant may speak after B): B");
    }
}

#[tokio::test]
async fn an_earlier_approval_does_not_stand_for_a_later_refusal() {
    let flow = Graph::builder(["Writer", "One", "Two", "Print"]).starts_with("Writer");
    let flow = ["One", "Two"].iter().fold(flow, |flow, critic| {
        let flow = flow.edge(("Writer", *critic)).edge(Edge::from((*critic, "Print")).says("yes"));
        flow.edge(Edge::from((*critic, "Writer")).otherwise())
    });
    let script =
        r#"[{"One": "yes"}, {"Two": "no"}, {"One": "no"}, {"Two": "yes"}, {"One": "yes"}, {"Two": "yes"}]"#;
    let said = run(script, flow).await;
    assert_eq!(order(&said), "Writer [One Two] Writer [One Two] Writer [One Two] Print");
}

#[tokio::test]
async fn a_path_that_ends_before_a_final_node_says_where() {
    let flow = Graph::builder(["A", "B", "C"]).edge(Edge::from(("A", "B")).says("left"));
    let flow = flow.edge(Edge::from(("A", "C")).when_message(|said| said.len() > 99));
    assert_eq!(end(&run("[]", flow).await), "closed (no participant may speak after A): A");
    // The join waits for C, to which no edge leads.
    let flow = Graph::builder(["A", "B", "C", "End"]).edge(Edge::from(("A", "B")).says("a"));
    let flow = flow.edge(Edge::from(("A", "C")).otherwise()).edge(("B", "End")).edge(("C", "End"));
    assert_eq!(end(&run("[]", flow.clone()).await), "closed (the graph is complete): End");
    let gate = flow.join("End", Join::All);
    assert_eq!(end(&run("[]", gate).await), "closed (no participant may speak after B): B");
    let bound = Graph::builder(["A", "B"]).starts_with("A").edge(Edge::from(("A", "A")).max_times(2));
    let said = run("[]", bound.edge(Edge::from(("A", "B")).otherwise())).await;
    assert_eq!(order(&said), "A A A B");
}

#[tokio::test]
async fn silence_leads_on_and_is_an_empty_text() {
    let flow = Graph::builder(["A", "B", "C"]).edge(Edge::from(("A", "B")).when_message(str::is_empty));
    let said = run(r#"[{"A": ""}]"#, flow.edge(Edge::from(("A", "C")).otherwise())).await;
    assert_eq!(order(&said), "A B");
}

#[tokio::test]
async fn conditions_read_the_state_as_it_was_then() {
    // The state changes after each review: what held at the first must not be asked of the last.
    let script = r#"[{"Critic": {"calls": [{"tool": "set_state", "args": {"key": "good", "value": false}}]}}, {"Critic": "no"},
        {"Critic": {"calls": [{"tool": "set_state", "args": {"key": "good", "value": true}}]}}, {"Critic": "yes"}]"#;
    let graph = Graph::builder(["Writer", "Critic", "Printer"])
        .starts_with("Writer")
        .edge(("Writer", "Critic"))
        .edge(Edge::from(("Critic", "Printer")).when(state::is("good", true)))
        .edge(Edge::from(("Critic", "Writer")).otherwise())
        .build()
        .unwrap();
    let said = play(script, |cast| {
        let say = |who: &'static str| Function::new(who, move |_| Ok(Act::say(who))).unwrap();
        let critic = cast.assistant("Critic").tool(SetState::new().only(["good"]));
        let builder =
            Chat::builder("group").participant(say("Writer")).participant(critic).participant(say("Printer"));
        builder.policy(graph.clone()).build().unwrap()
    })
    .await;
    assert_eq!(order(&said), "Writer Critic Writer Critic Printer");
}

#[tokio::test]
async fn conditions_read_what_chats_within_and_around_had_set_by_then() {
    let set = |who: &str, key: &str, value: Value| json!({who: {"calls": [{"tool": "set_state", "args": {"key": key, "value": value}}]}});
    let script = json!([
        set("Boss", "strict", json!(true)), {"Boss": "Be strict."},
        set("Eve", "good", json!(false)), {"Eve": "no"}, set("Eve", "good", json!(true)), {"Eve": "yes"}
    ]);
    // Boss sets a value before the graph begins, and Eve in a chat within it, which is one of its nodes.
    let graph = Graph::builder(["Writer", "Critic", "Printer", "Other"])
        .starts_with("Writer")
        .edge(Edge::from(("Writer", "Critic")).when(state::is("strict", true)))
        .edge(Edge::from(("Writer", "Other")).otherwise())
        .edge(Edge::from(("Critic", "Printer")).when(state::is("good", true)))
        .edge(Edge::from(("Critic", "Writer")).otherwise())
        .build()
        .unwrap();
    let said = play(&script.to_string(), |cast| {
        let say = |who: &'static str| Function::new(who, move |_| Ok(Act::say(who))).unwrap();
        let setting = |who: &str| cast.assistant(who).tool(SetState::new());
        let critic =
            Chat::builder("Critic").participant(setting("Eve")).policy(sequential()).build().unwrap();
        let group = Chat::builder("group").participant(say("Writer")).participant(critic);
        let group = group.participant(say("Printer")).participant(say("Other")).policy(graph.clone());
        let office = Chat::builder("office").participant(setting("Boss")).participant(group.build().unwrap());
        office.policy(sequential()).build().unwrap()
    })
    .await;
    let of_group: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("/group.1 ")).collect();
    assert_eq!(order(&of_group.join("\n")), "Writer Critic Writer Critic Printer");
}

#[tokio::test]
async fn people_can_be_nodes_and_a_node_who_left_ends_the_graph() {
    let graph = Graph::builder(["Writer", "Boss", "Printer"])
        .starts_with("Writer")
        .edge(("Writer", "Boss"))
        .edge(Edge::from(("Boss", "Writer")).says("no"))
        .edge(Edge::from(("Boss", "Printer")).otherwise())
        .build()
        .unwrap();
    for (answers, wanted, reason) in [
        (["No.", "yes"], "Writer Boss Writer Boss Printer", "the graph is complete"),
        (["exit", ""], "Writer Boss Printer", "the graph is complete"),
    ] {
        let events = events_with("[]", &|nth| answers[nth], |_| {
            let say = |who: &'static str| Function::new(who, move |_| Ok(Act::say(who))).unwrap();
            let builder = Chat::builder("group")
                .participant(say("Writer"))
                .participant(polylogue::Human::new("Boss").unwrap());
            builder.participant(say("Printer")).policy(graph.clone()).build().unwrap()
        })
        .await;
        let said = print(&events);
        assert_eq!(order(&said), wanted);
        assert!(end(&said).contains(reason), "{said}");
    }
    let again =
        Graph::builder(["A", "B"]).starts_with("A").edge(Edge::from(("A", "A")).when_message(str::is_empty));
    let graph = again.edge(Edge::from(("A", "B")).otherwise()).build().unwrap();
    let said = play("[]", |_| {
        let leave = Function::new("A", |_| Ok(Act::Leave("home".into()))).unwrap();
        let b = Function::new("B", |_| Ok(Act::Pass)).unwrap();
        Chat::builder("group").participant(leave).participant(b).policy(graph.clone()).build().unwrap()
    })
    .await;
    assert_eq!(end(&said), "closed (A left: home): ");
}

#[tokio::test]
async fn a_participant_can_end_it_and_something_more_begins_it_again() {
    let graph = Graph::builder(["A", "B"]).edge(("A", "B")).build().unwrap();
    let stop = |_: &polylogue::Turn<'_>| Ok(Act::Stop(StopReason::Stopped { by: "A".into() }));
    let said = play("[]", |_| {
        let b = Function::new("B", |_| Ok(Act::Pass)).unwrap();
        let builder = Chat::builder("group").participant(Function::new("A", stop).unwrap()).participant(b);
        builder.policy(graph.clone()).build().unwrap()
    })
    .await;
    assert_eq!(end(&said), "closed (stopped by A): ");
    let count = |turn: &polylogue::Turn<'_>| Ok(Act::say(turn.transcript().all_messages().len().to_string()));
    let chat = Chat::builder("group").participant(Function::new("A", count).unwrap());
    let chat = chat.participant(Function::new("B", count).unwrap()).policy(graph).build().unwrap();
    let mut log = log().await;
    chat.run_in(&mut log, "task").await.unwrap();
    let status = chat.continue_with(&mut log, Message::new(Name::user(), "more")).await.unwrap().status;
    assert!(
        matches!(status, Status::Closed { reason, summary } if (reason.code(), &*summary) == ("graph_complete", "5"))
    );
}

#[tokio::test]
async fn a_node_that_is_no_participant_is_a_fault_of_the_team() {
    let graph = Graph::builder(["A", "B"]).edge(("A", "B")).build().unwrap();
    let error =
        fails(r#"[{"A": "hm"}]"#, |cast| cast.chat(&["A"]).policy(graph.clone()).build().unwrap()).await;
    assert!(error.contains("gives a turn to `B`, who is not a participant"), "{error}");
}

#[tokio::test]
async fn long_loops_come_to_their_end() {
    let often = |edge: Edge| async {
        let graph = Graph::builder(["A", "B", "End"]).starts_with("A").edge(("A", "B")).edge(edge);
        let graph = graph.edge(Edge::from(("B", "End")).otherwise()).build().unwrap();
        let say = |who: &str| Function::new(who, |_| Ok(Act::say("on"))).unwrap();
        let builder =
            Chat::builder("group").participant(say("A")).participant(say("B")).participant(say("End"));
        let chat = builder.policy(graph).max_turns(1000).build().unwrap();
        let mut log = log().await;
        let status = chat.run_in(&mut log, "task").await.unwrap().status;
        assert!(
            matches!(&status, Status::Closed { reason, .. } if reason.code() == "graph_complete"),
            "{status:?}"
        );
        log.transcript().await.unwrap().turns()
    };
    assert_eq!(often(Edge::from(("B", "A")).when(|chat| chat.turns() < 400)).await, 401);
    assert_eq!(often(Edge::from(("B", "A")).max_times(299)).await, 601);
}
