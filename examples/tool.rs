//! A tool for a model that cannot call functions: the tool is explained in the prompt, and the model writes arguments as JSON.

use polylogue::Assistant;
use polylogue::agents::tooling::{PromptedTool, ToolCalling};
use polylogue::layers::executor::Declared;
use polylogue::tasks::{Task, task::tasks};
use polylogue_examples::{Result, play};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Pair {
    secret: u32,
    guess: u32,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result {
    let model = polylogue::models::scripted(
        r#"[{"Master": "I see."}, {"Master": "{\"secret\": 7, \"guess\": 3}"}, {"Master": "No: it is greater than 3."}]"#,
    )?;
    let tool = Declared::new(
        "high_low",
        "Compares a guess with a secret number.",
        async |Pair { secret, guess }| {
            Ok(format!("The secret number is {:?} compared with the guess.", secret.cmp(&guess)))
        },
    );
    let (master, tool) = (Assistant::new("Master", model)?, PromptedTool::new(tool).mandatory());
    let master = master.tool_calling(ToolCalling::Text);
    play(&tasks("game", [Task::new(master, "The secret is 7. Is it 3?").prompted_tool(tool)])?, "", &[]).await
}
