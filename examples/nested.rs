//! A chat as one participant: a conversation of its participants is one reply in the outer chat.
#![expect(clippy::print_stdout, reason = "it is a program")]

use polylogue::stop::max_turns;
use polylogue::{Assistant, Chat, round_robin, sequential};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = polylogue::models::scripted(
        r#"[{"Writer": "The sea is blue."}, {"Reader": "Too plain."}, {"Judge": "Add a comparison."},
            {"Writer": "The sea is blue like old glass."}, {"Reader": "I like it."}, {"Judge": "Leave it so."}]"#,
    )?;
    let critics = Chat::builder("Critics")
        .participant(Assistant::new("Reader", &model)?)
        .participant(Assistant::new("Judge", &model)?.system("You sum up what readers say, as advice."))
        .policy(sequential())
        .build()?;
    let chat = Chat::builder("desk")
        .participant(Assistant::new("Writer", &model)?)
        .participant(critics)
        .policy(round_robin())
        .stop(max_turns(4))
        .build()?;
    println!("{}", chat.run("A sentence about the sea").await?);
    Ok(())
}
