//! A tool for a model that cannot call functions: the tool is explained in the prompt, and the model writes arguments as JSON.

use polylogue::agents::tooling::{PromptedTool, ToolCalling};
use polylogue::tasks::{Task, tasks};
use polylogue::{Assistant, tool};
use polylogue_examples::{Result, play};

/// Compares a guess with a secret number.
#[tool]
fn high_low(secret: u32, guess: u32) -> String {
    format!("The secret number is {:?} compared with the guess.", secret.cmp(&guess))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result {
    let model = polylogue::models::scripted(
        r#"[{"Master": "I see."}, {"Master": "{\"secret\": 7, \"guess\": 3}"}, {"Master": "No: it is greater than 3."}]"#,
    )?;
    let (master, tool) = (Assistant::new("Master", model)?, PromptedTool::new(high_low).mandatory());
    let master = master.tool_calling(ToolCalling::Text);
    play(&tasks("game", [Task::new(master, "The secret is 7. Is it 3?").prompted_tool(tool)])?, "", &[]).await
}
