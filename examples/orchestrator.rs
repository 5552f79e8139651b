//! An orchestrator keeps facts and a plan, selects and instructs each speaker, and gives the final answer.
#![expect(clippy::print_stdout, reason = "it is a program")]

use polylogue::policies::Orchestrator;
use polylogue::{Assistant, Chat};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let stands = |done: bool, next: &str, instruction: &str| {
        json!({"is_request_satisfied": done, "is_in_loop": false, "is_progress_being_made": true,
            "next_speaker": next, "instruction_or_question": instruction})
        .to_string()
    };
    let script = json!([
        {"Planner": "To look up: the distance"}, {"Planner": "Surfer looks it up, Clerk works out the time"},
        {"Planner": stands(false, "Surfer", "How far is it to the sea?")}, {"Surfer": "300 km"},
        {"Planner": stands(false, "Clerk", "How long are 300 km at 100 km/h?")}, {"Clerk": "3 hours"},
        {"Planner": stands(true, "Clerk", "Nothing more")}, {"Planner": "It takes 3 hours."},
    ]);
    let model = polylogue::models::scripted(&script.to_string())?;
    let surfer = Assistant::new("Surfer", &model)?.description("Looks things up.");
    let clerk = Assistant::new("Clerk", &model)?.description("Works things out.");
    let ledger = Orchestrator::new("Planner")?.participant(&surfer).participant(&clerk);
    let planner = Assistant::new("Planner", &model)?;
    let chat = Chat::builder("trip").participant(surfer).participant(clerk).private_agent(planner);
    println!("{}", chat.policy(ledger).build()?.run("How long is the way to the sea?").await?);
    Ok(())
}
