//! Two agents, and a person who is asked when one of them ends the conversation.
#![expect(clippy::print_stdout, reason = "it is a program")]

use polylogue::layers::{HumanInput, Stack};
use polylogue::stop::says;
use polylogue::{Assistant, Chat, Log, round_robin};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = polylogue::models::scripted(
        r#"[{"Coder": "def area(r): return 3 * r * r"}, {"Boss": "3 is not pi"},
            {"Coder": "def area(r): return math.pi * r * r\nDONE"}, {"Coder": "import math, then. DONE"}]"#,
    )?;
    let boss = Stack::new("Boss")?
        .then(HumanInput::terminate().terminate_on(says("DONE")).max_auto_replies(5))
        .then(Assistant::new("Boss", &model)?.system("You review the code."));
    let chat = Chat::builder("pair")
        .participant(Assistant::new("Coder", &model)?.system("Say DONE when you are."))
        .participant(boss)
        .policy(round_robin())
        .build()?;
    let mut log = Log::in_memory();
    let mut result = chat.run_in(&mut log, "The area of a circle, in Python").await?;
    for answer in ["And the import?", ""] {
        for (at, question) in result.questions() {
            log.answer(at, &question.who, answer).await?;
        }
        result = chat.resume(&mut log).await?;
    }
    println!("{result}");
    Ok(())
}
