//! A group chat in which a model selects the next speaker.
#![expect(clippy::print_stdout, reason = "it is a program")]

use polylogue::policies::Selector;
use polylogue::stop::{max_messages, says};
use polylogue::{Assistant, Chat, Group};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = polylogue::models::scripted(
        r#"[{"selector": "Coder"}, {"Coder": "def half(n): return n / 2"}, {"selector": "I choose Tester."},
            {"Tester": "half(3) is 1.5, and should be whole"}, {"selector": "Coder"},
            {"Coder": "def half(n): return n // 2"}, {"selector": "Tester"}, {"Tester": "APPROVED"}]"#,
    )?;
    let chat = Chat::builder("team")
        .participant(Assistant::new("Coder", &model)?.description("writes code"))
        .participant(Assistant::new("Tester", &model)?.description("tests code"))
        .participant(Assistant::new("Writer", &model)?.description("writes manuals"))
        .policy(Group::select_by(Selector::new("selector", &model)?))
        .stop(says("APPROVED") | max_messages(12))
        .build()?;
    println!("{}", chat.run("A function that halves whole numbers").await?);
    Ok(())
}
