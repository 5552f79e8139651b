//! Tools in tasks: calls that the model makes itself. Items 56, 57, 65 and 66.

use std::sync::Mutex;

use polylogue::tasks::{EndMode, GroupSolve, History, Task, tasks};
use polylogue_core::{AnyTool, ToolError, ToolResult, ToolSpec};
use polylogue_test::tool::tool_of;
use serde_json::{Value, json};

use crate::stage::{Spy, name, script};
use crate::yacana::table::{Played, agent, lines};

/// Compares two numbers, and counts how often.
pub(crate) fn high_low() -> AnyTool {
    let number = json!({"type": "integer"});
    let params = json!({
        "type": "object",
        "properties": {"secret_number": number, "guessed_number": number},
        "required": ["secret_number", "guessed_number"],
    });
    let calls = Mutex::new(0);
    tool_of(ToolSpec::new("high_low", "Compares 2 numbers.", params), move |args| {
        let number =
            |key: &str| args[key].as_i64().ok_or_else(|| ToolError(format!("`{key}` is not an integer")));
        let mut calls = calls.lock().unwrap();
        *calls += 1;
        let relation = match number("secret_number")?.cmp(&number("guessed_number")?) {
            std::cmp::Ordering::Greater => "higher than",
            std::cmp::Ordering::Less => "lower than",
            std::cmp::Ordering::Equal => "equal to",
        };
        Ok(ToolResult::done(format!("The secret number is {relation} the guessed number. (call {calls})")))
    })
}

/// The document's game: five guesses, the last of which is right.
fn game() -> (Spy, GroupSolve) {
    let mut steps = vec![json!({"master": "14"})];
    let guesses = [20, 11, 17, 16, 15, 14];
    for (turn, guess) in guesses.into_iter().enumerate() {
        let args = json!({"secret_number": 14, "guessed_number": guess});
        steps.push(json!({"master": {"calls": [{"tool": "high_low", "args": args}]}}));
        steps.push(json!({"master": format!("F{turn}")}));
    }
    for (turn, guess) in [11, 17, 16, 15, 14].into_iter().enumerate() {
        steps.push(json!({"player": format!("My guess is {guess}")}));
        if turn > 0 {
            steps.push(json!({"player": "to win"}));
            steps.push(json!({"player": "yes"}));
        }
    }
    steps.extend([json!({"player": "I won!"}), json!({"player": "nothing"}), json!({"player": "no"})]);
    let spy = Spy::on(script(&Value::from(steps).to_string()));
    let secret = Task::new(agent("master", spy.model()), "S");
    let player = Task::new(agent("player", spy.model()), "P1").self_terminating();
    let master = Task::new(agent("master", spy.model()), "P2").tool(high_low());
    let solve = GroupSolve::new([player, master], EndMode::FirstCompletion).before(secret);
    (spy, solve)
}

// Section 7.6 with a tool, items 56, 57 and 66: the tool runs in the answer to the task, too; the player reads what the
// master says of the outcome; the tool keeps its state.
#[tokio::test]
async fn guess_up_to_twenty_with_a_tool() {
    let (spy, solve) = game();
    let played = Played::of(spy, solve).await;
    assert_eq!(played.reason(), "the task of player is complete");
    assert_eq!(played.solved.iterations, 5);
    let player = played.knows("player");
    assert_eq!(player.len(), 12);
    assert_eq!(player[..4], ["user P1", "assistant My guess is 11", "user F1", "assistant My guess is 17"]);
    assert_eq!(player[10..], ["user F5", "assistant I won!"]);
    let master = played.knows("master");
    assert_eq!(master[..3], ["user S", "assistant 14", "user P2"]);
    assert_eq!(master[4], "tool The secret number is lower than the guessed number. (call 1)");
    assert_eq!(master[6..8], ["user My guess is 11", "assistant "]);
    assert_eq!(master[8], "tool The secret number is higher than the guessed number. (call 2)");
    assert!(master.iter().any(|line| line.ends_with("equal to the guessed number. (call 6)")));
    // The question whether the task is complete offers no tools.
    assert!(played.spy.asked().iter().all(|asked| asked.tools.is_empty() || asked.who.as_str() == "master"));
}

// A flagged agent with tools is asked without them, and may have called them before.
#[tokio::test]
async fn who_is_asked_about_its_task_is_offered_no_tools() {
    let spy = Spy::on(script(
        r#"[{"one": "A1"}, {"one": {"calls": [{"tool": "high_low", "args": {"secret_number": 1, "guessed_number": 1}}]}},
            {"one": "A2"}, {"one": "all done"}, {"one": "no"}, {"two": "B1"}, {"two": "B2"}]"#,
    ));
    let task = crate::yacana::table::one(&spy).tool(high_low()).self_terminating();
    let played = Played::of(
        spy.clone(),
        GroupSolve::new([task, crate::yacana::table::two(&spy)], EndMode::FirstCompletion),
    )
    .await;
    let asked = played.spy.asked();
    let offered: Vec<usize> =
        asked.iter().filter(|asked| asked.who.as_str() == "one").map(|asked| asked.tools.len()).collect();
    assert_eq!(offered, [1, 1, 1, 0, 0]);
    assert_eq!(
        lines(&asked.last().unwrap().entries)[3..6],
        ["assistant ", "tool The secret number is equal to the guessed number. (call 1)", "assistant A2"]
    );
}

// A task alone, with a tool: printed, its history tells of the call.
#[tokio::test]
async fn a_task_alone_calls_its_tools() {
    let spy = Spy::on(script(
        r#"[{"one": {"calls": [{"tool": "high_low", "args": {"secret_number": "x"}}]}}, {"one": "I cannot."}]"#,
    ));
    let chat = tasks("all", [crate::yacana::table::one(&spy).tool(high_low())]).unwrap();
    let played = Played::chat(spy, &chat).await;
    let printed = History::from_transcript(&played.chat, &name("one")).to_string();
    assert!(
        printed.contains("[assistant]:\n(calls `high_low` with {\"secret_number\":\"x\"})\n"),
        "{printed}"
    );
    assert!(printed.contains("[tool high_low failed]:\n`secret_number` is not an integer\n"), "{printed}");
}
