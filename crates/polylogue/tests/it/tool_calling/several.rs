//! Several tools by a talk: items 67 and 68.

use polylogue::agents::tooling::{PromptedTool, ToolCalling, ToolHistory};
use polylogue::{AnyModel, Assistant};
use polylogue_core::Body;

use crate::stage::printed;
use crate::tool_calling::things::{Turned, clock, high_low, lines, note, prompts, turn};

const JSON: &str = r#"{"secret": 7, "guess": 3}"#;

fn both(model: AnyModel) -> Assistant {
    Assistant::new("M", model).unwrap().tool(high_low()).tool(clock()).tool_calling(ToolCalling::Text)
}

fn called(done: &Turned) -> Vec<String> {
    let call = |body: &Body| match body {
        Body::ToolCalled { call, .. } => Some(call.tool.clone()),
        _ => None,
    };
    done.events.iter().filter_map(|event| call(&event.body)).collect()
}

// Item 67: router, choice, arguments, another call; seven messages for one call, and the explanation is what is said.
#[tokio::test]
async fn the_talk_about_several_tools_in_the_documents_form() {
    let replies = ["ack", "It would.", "yes", "high_low", JSON, "No, I know enough.", "no"];
    let done = turn(lines(&replies), |model| both(model).tool_history(ToolHistory::Full)).await;
    assert_eq!(done.said, "No, I know enough.");
    assert_eq!(
        done.remembers,
        [
            "user: Compare 7 and 3.",
            "assistant: I should use tools related to the task to solve it correctly.",
            "user: Output the tool 'high_low' as valid JSON.",
            "assistant: {\"secret\":7,\"guess\":3}",
            "user: The secret number is higher. // (tool)",
            "user: Do you need another tool call, of the same tool or of another, to solve the task? Say why, or why not.",
            "assistant: No, I know enough.",
        ]
    );
}

// Item 67: as many calls as the model wants, and then the task is solved with what they returned.
#[tokio::test]
async fn calls_are_made_as_long_as_the_model_wants_another() {
    let replies = [
        "ack",
        "They would.",
        "Yes!",
        "I take `high_low`.",
        JSON,
        "The time, too.",
        "yes",
        "clock",
        "That is all.",
        "No.",
        "At noon, seven is more.",
    ];
    let done = turn(lines(&replies), both).await;
    assert_eq!(called(&done), ["high_low", "clock"]);
    assert_eq!(done.remembers, ["user: Compare 7 and 3.", "assistant: At noon, seven is more."]);
    assert!(done.asked.iter().all(|asked| asked.tools.is_empty()));
}

// Item 67: no tool, one answer.
#[tokio::test]
async fn when_no_tool_helps_none_is_used() {
    let done = turn(lines(&["ack", "No need.", "no", "Seven."]), both).await;
    assert_eq!((called(&done).len(), &*done.said), (0, "Seven."));
}

// Item 67: the limit on calls holds here, too.
#[tokio::test]
async fn calls_have_a_limit() {
    let replies = ["ack", "They would.", "yes", "clock", "More!", "yes", "clock", "More!", "yes", "Noon."];
    let done = turn(lines(&replies), |model| both(model).max_tool_rounds(2)).await;
    assert_eq!((called(&done), &*done.said), (vec!["clock".to_owned(), "clock".to_owned()], "Noon."));
}

// Item 68: two names, or none, are asked again; a name is a whole word. The parameters of the model are never touched.
#[tokio::test]
async fn a_choice_is_one_exact_name() {
    let replies =
        ["ack", "ok", "yes", "clock or high_low", "clockwork", "the CLOCK", "enough", "no", "It is noon."];
    let done = turn(lines(&replies), both).await;
    assert_eq!(called(&done), ["clock"]);
    let shown = prompts(&done.asked);
    assert!(shown[4].starts_with("That named more than one tool. Answer with exactly one"), "{}", shown[4]);
    assert!(shown[5].starts_with("That named none of the tools."), "{}", shown[5]);
    assert!(done.asked.iter().all(|asked| asked.params == done.asked[0].params));
}

// Item 68: the fifth bad choice ends the chat.
#[tokio::test]
async fn five_unclear_choices_of_a_tool_end_the_turn() {
    let replies = ["ack", "ok", "yes", "?", "?", "both: clock, high_low", "?", "?"];
    let done = turn(lines(&replies), both).await;
    assert_eq!(done.reason, "M's limit of 4 errors in choosing a tool");
    assert_eq!(done.remembers, ["user: Compare 7 and 3."], "nothing half done stays");
}

// Defect 17 of the list [F]: mandatory tools count with several, too.
#[tokio::test]
async fn mandatory_tools_come_first_without_a_question() {
    let agent = |model| {
        let both = both(model);
        both.prompted_tool(PromptedTool::new(note()).mandatory())
            .prompted_tool(PromptedTool::new(clock()).mandatory())
    };
    let replies = ["ack", "note", r#"{"text": "x"}"#, "That is all.", "no", "Noted at noon."];
    let done = turn(lines(&replies), agent).await;
    assert_eq!(called(&done), ["note", "clock"]);
    assert!(!printed(&done.events).contains("Would any of the tools"));
    assert!(
        prompts(&done.asked)[1].ends_with("`note`, `clock`"),
        "only those that are left: {}",
        prompts(&done.asked)[1]
    );
}

// Item 64 with several tools.
#[tokio::test]
async fn when_no_tool_returned_anything_that_is_the_answer() {
    let agent = |model| both(model).prompted_tool(PromptedTool::new(note()).mandatory());
    let done = turn(lines(&["ack", r#"{"text": "x"}"#, "That is all.", "no"]), agent).await;
    assert_eq!(done.said, "Tool note was called successfully. It didn't return anything.");
}
