//! A task, and another that continues from its result.

use polylogue::Assistant;
use polylogue::tasks::{Task, tasks};
use polylogue_examples::{Result, play};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result {
    let model = polylogue::models::scripted(r#"[{"Keeper": "5"}, {"Keeper": "Twice 5 is 10."}]"#)?;
    let keeper = Assistant::new("Keeper", model)?.system("You are brief.");
    let think = Task::new(keeper.clone(), "Think of a number from 1 to 9. Say it once, now.");
    let double = Task::new(keeper, "Double your number.");
    play(&tasks("numbers", [think, double])?, "", &[]).await
}
