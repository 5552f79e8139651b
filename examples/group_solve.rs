//! Two agents that talk until one of them judges its task complete, and a last message of the other.
#![expect(clippy::print_stdout, reason = "it is a program")]

use polylogue::Assistant;
use polylogue::tasks::{EndMode, GroupSolve, Task};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = polylogue::models::scripted(
        r#"[{"Keeper": "My secret number is 2."}, {"Keeper": "I wait for guesses."}, {"Guesser": "I am ready."},
            {"Guesser": "Is it 1?"}, {"Keeper": "No."}, {"Keeper": "It is not found yet."}, {"Keeper": "yes"},
            {"Guesser": "Is it 2?"}, {"Keeper": "You won!"}, {"Keeper": "Nothing is left."}, {"Keeper": "no"},
            {"Guesser": "What a game!"}]"#,
    )?;
    let keeper = Assistant::new("Keeper", &model)?;
    let secret = Task::new(keeper.clone(), "Choose a secret number from 1 to 3.");
    let judge =
        Task::new(keeper, "Your objective is fulfilled when a guess is your number: then say that they won.");
    let guess = Task::new(Assistant::new("Guesser", &model)?, "Find a secret number from 1 to 3.");
    let chat = GroupSolve::new([judge.self_terminating(), guess], EndMode::OneLastChat)
        .before(secret)
        .shift_content("What is your guess?")
        .max_iterations(5)
        .build("guess")?;
    println!("{}", chat.run("").await?);
    Ok(())
}
