//! A chat as one agent: what its members work out among themselves is one reply outside.

use polylogue::stop::max_turns;
use polylogue::{Assistant, Chat, in_turn, once_each, until};
use polylogue_examples::{Result, play, scripted};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result {
    let model = scripted(
        r#"[{"Writer": "The sea is blue."}, {"Reader": "Too plain."}, {"Judge": "Add a comparison."},
            {"Writer": "The sea is blue like old glass."}, {"Reader": "I like it."}, {"Judge": "Leave it so."}]"#,
    )?;
    let critics = Chat::named("Critics")
        .with(Assistant::new("Reader", model.clone())?)
        .with(Assistant::new("Judge", model.clone())?.system("You sum up what readers say, as advice."))
        .policy(once_each())
        .build()?;
    let chat = Chat::named("desk")
        .with(Assistant::new("Writer", model)?)
        .with(critics)
        .policy(until(max_turns(4), in_turn()))
        .build()?;
    play(&chat, "A sentence about the sea", &[]).await
}
