//! A task, and another that continues from its result.
#![expect(clippy::print_stdout, reason = "it is a program")]

use polylogue::Assistant;
use polylogue::tasks::{Task, tasks};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = polylogue::models::scripted(r#"[{"Keeper": "5"}, {"Keeper": "Twice 5 is 10."}]"#)?;
    let keeper = Assistant::new("Keeper", model)?.system("You are brief.");
    let think = Task::new(keeper.clone(), "Think of a number from 1 to 9. Say it once, now.");
    let double = Task::new(keeper, "Double your number.");
    println!("{}", tasks("numbers", [think, double])?.run("").await?);
    Ok(())
}
