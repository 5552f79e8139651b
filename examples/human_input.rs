//! Two agents, and a person who is asked when one of them ends the conversation.

use polylogue::layers::{HumanInput, Stack};
use polylogue::stop::says;
use polylogue::{Assistant, Chat, round_robin};
use polylogue_examples::{Result, play};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result {
    let model = polylogue::models::scripted(
        r#"[{"Coder": "def area(r): return 3 * r * r"}, {"Boss": "3 is not pi"},
            {"Coder": "def area(r): return math.pi * r * r\nDONE"}, {"Coder": "import math, then. DONE"}]"#,
    )?;
    let boss = Stack::new("Boss")?
        .then(HumanInput::terminate().terminate_on(says("DONE")).max_auto_replies(5))
        .then(Assistant::new("Boss", model.clone())?.system("You review the code."));
    let chat = Chat::named("pair")
        .participant(Assistant::new("Coder", model)?.system("Say DONE when you are."))
        .participant(boss)
        .policy(round_robin())
        .build()?;
    play(&chat, "The area of a circle, in Python", &["And the import?", ""]).await
}
