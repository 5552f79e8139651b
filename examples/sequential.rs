//! Chats in a sequence: the result of each is carried over to the next.
#![expect(clippy::print_stdout, reason = "it is a program")]

use polylogue::policies::{Carryover, sequential, with_termination};
use polylogue::stop::max_turns;
use polylogue::{Assistant, Chat, Name, Result, round_robin};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = polylogue::models::scripted(
        r#"[{"Adder": {"say": "15", "expect": {"last": "14"}}}, {"Number": "15"}, {"Adder": "16"},
            {"Doubler": {"say": "32", "expect": {"last": "Context: \n16"}}}, {"Number": "32"}, {"Doubler": "64"}]"#,
    )?;
    let step = |chat: &str, who: &str, message: &str| -> Result<Chat> {
        let pair = Chat::builder(chat).participant(Assistant::new("Number", &model)?);
        let pair = pair
            .participant(Assistant::new(who, &model)?)
            .policy(with_termination(round_robin(), max_turns(3)));
        Carryover::message(message).author(Name::new("Number")?).apply_to(pair).build()
    };
    let chat = Chat::builder("arithmetic")
        .participant(step("adding", "Adder", "14")?)
        .participant(step("doubling", "Doubler", "These are my numbers")?)
        .policy(sequential())
        .build()?;
    println!("{}", chat.run("").await?);
    Ok(())
}
