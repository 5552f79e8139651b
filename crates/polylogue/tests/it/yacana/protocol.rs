//! Section 7.6 with a tool, on a model that can do nothing but write: a game in which the CPU compares. Items 55 to 57,
//! 66.

use expect_test::expect;
use polylogue::agents::tooling::{PromptedTool, ToolCalling, ToolHistory};
use polylogue::tasks::{EndMode, GroupSolve, Task, tasks};
use polylogue_core::Body;
use serde_json::{Value, json};

use crate::stage::{Spy, script};
use crate::yacana::table::{Played, agent};
use crate::yacana::tools::high_low;

/// What the player guesses; before that the master invents its own guess.
const GUESSES: [u64; 6] = [20, 11, 17, 16, 15, 14];

/// The document's game: five guesses, the last of which is right. An agent that answers in its own words after a call says
/// `F0` to `F5`.
async fn game(trace: ToolHistory) -> Played {
    let mut steps = vec![json!({"master": "14"})];
    for (turn, guess) in GUESSES.into_iter().enumerate() {
        let args = json!({"secret_number": 14, "guessed_number": guess}).to_string();
        let says = if trace == ToolHistory::Answer {
            ["I see.", &args, &format!("F{turn}")]
        } else {
            ["I see.", "I see.", &args]
        };
        steps.extend(says.map(|text| json!({"master": text})));
    }
    for (turn, guess) in GUESSES[1..].iter().enumerate() {
        steps.push(json!({"player": guess.to_string()}));
        if turn > 0 {
            steps.extend(["to win", "yes"].map(|text| json!({"player": text})));
        }
    }
    steps.extend(["I won!", "nothing", "no"].map(|text| json!({"player": text})));
    let spy = Spy::on(script(&Value::from(steps).to_string()));
    let master = agent("master", spy.model()).tool_calling(ToolCalling::Text).tool_history(trace);
    let secret = Task::new(agent("master", spy.model()), "S");
    let player = Task::new(agent("player", spy.model()), "P1").self_terminating();
    let master = Task::new(master, "P2").prompted_tool(PromptedTool::new(high_low()).mandatory());
    let solve = GroupSolve::new([player, master], EndMode::FirstCompletion).before(secret);
    let played = Played::of(spy, solve).await;
    assert_eq!((played.requests().len(), played.solved.iterations), (35, 5));
    assert_eq!(played.reason(), "the task of player is complete");
    assert!(played.spy.asked().iter().all(|asked| asked.tools.is_empty()));
    played
}

fn short(knows: &[String]) -> String {
    let sentence = "I can use the tool 'high_low' related to the task to solve it correctly.";
    let request = "Output the tool 'high_low' as valid JSON.";
    let text = knows.join("\n").replace(sentence, "CAN USE").replace(request, "OUTPUT JSON");
    text.replace("The secret number is ", "").replace(" the guessed number.", "")
}

// The first generation: five entries for every turn, and the player reads what the tool returned.
#[tokio::test]
async fn guess_up_to_twenty_leaves_five_entries_for_every_call() {
    let played = game(ToolHistory::Full).await;
    let (player, master) = (played.knows("player"), played.knows("master"));
    assert_eq!((player.len(), master.len()), (12, 32));
    expect![[r#"
        user P1
        assistant 11
        user higher than (call 2)
        assistant 17
        user lower than (call 3)
        assistant 16
        user lower than (call 4)
        assistant 15
        user lower than (call 5)
        assistant 14
        user equal to (call 6)
        assistant I won!"#]]
    .assert_eq(&short(&player));
    expect![[r#"
        user S
        assistant 14
        user P2
        assistant CAN USE
        user OUTPUT JSON
        assistant {"secret_number":14,"guessed_number":20}
        user lower than (call 1)
        user 11
        assistant CAN USE
        user OUTPUT JSON
        assistant {"secret_number":14,"guessed_number":11}
        user higher than (call 2)
        user 17
        assistant CAN USE
        user OUTPUT JSON
        assistant {"secret_number":14,"guessed_number":17}
        user lower than (call 3)
        user 16
        assistant CAN USE
        user OUTPUT JSON
        assistant {"secret_number":14,"guessed_number":16}
        user lower than (call 4)
        user 15
        assistant CAN USE
        user OUTPUT JSON
        assistant {"secret_number":14,"guessed_number":15}
        user lower than (call 5)
        user 14
        assistant CAN USE
        user OUTPUT JSON
        assistant {"secret_number":14,"guessed_number":14}
        user equal to (call 6)"#]]
    .assert_eq(&short(&master));
}

// The later one: prompts and answers alone, and the player reads what the master says of it.
#[tokio::test]
async fn guess_up_to_twenty_leaves_only_prompts_and_answers() {
    let played = game(ToolHistory::Answer).await;
    expect![[r#"
        user P1
        assistant 11
        user F1
        assistant 17
        user F2
        assistant 16
        user F3
        assistant 15
        user F4
        assistant 14
        user F5
        assistant I won!"#]]
    .assert_eq(&short(&played.knows("player")));
    expect![[r#"
        user S
        assistant 14
        user P2
        assistant F0
        user 11
        assistant F1
        user 17
        assistant F2
        user 16
        assistant F3
        user 15
        assistant F4
        user 14
        assistant F5"#]]
    .assert_eq(&short(&played.knows("master")));
}

// Item 57: the tool runs in the answer to the master's task, too, and its output there is sent to no agent.
#[tokio::test]
async fn a_tool_runs_in_the_answer_to_a_task_too() {
    let played = game(ToolHistory::Full).await;
    let calls = played.events.iter().filter(|event| matches!(&event.body, Body::ToolCalled { .. })).count();
    assert_eq!(calls, 6);
    assert!(played.knows("player").iter().all(|line| !line.contains("(call 1)")));
    // Item 66: it keeps its state.
    assert!(played.knows("player")[10].contains("(call 6)"));
}

// A task that leaves no trace is a task all the same: its tool is talked about, too.
#[tokio::test]
async fn a_task_that_forgets_uses_its_tools() {
    let args = r#"{"secret_number": 7, "guessed_number": 3}"#;
    let native =
        r#"{"one": {"calls": [{"tool": "high_low", "args": {"secret_number": 7, "guessed_number": 3}}]}}"#;
    for (by, steps) in [
        (ToolCalling::Text, json!([{"one": "I see."}, {"one": args}, {"one": "Higher."}])),
        (
            ToolCalling::Native,
            json!([{"one": "Hm."}, serde_json::from_str::<Value>(native).unwrap(), {"one": "Higher."}]),
        ),
    ] {
        let spy = Spy::on(script(&steps.to_string()));
        let compare = Task::new(agent("one", spy.model()).tool_calling(by), "Compare 7 and 3.");
        let compare = compare.prompted_tool(PromptedTool::new(high_low()).mandatory()).forget();
        let played = Played::chat(spy, &tasks("alone", [compare]).unwrap()).await;
        assert_eq!(played.chat.closed().unwrap().1.as_ref(), "Higher.", "{by:?}");
        assert_eq!(played.knows("one"), [""; 0], "{by:?}");
        assert!(played.events.iter().any(|event| matches!(event.body, Body::ToolCalled { .. })), "{by:?}");
    }
}
