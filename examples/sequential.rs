//! Chats one after the other: what came of each is carried over to the next.

use polylogue::stop::max_turns;
use polylogue::{Assistant, Carry, Chat, Name, in_turn, sequence, until};
use polylogue_examples::{Result, play, scripted};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result {
    let model = scripted(
        r#"[{"Adder": {"say": "15", "expect": {"last": "14"}}}, {"Number": "15"}, {"Adder": "16"},
            {"Doubler": {"say": "32", "expect": {"last": "Context: \n16"}}}, {"Number": "32"}, {"Doubler": "64"}]"#,
    )?;
    let step = |chat: &str, who: &str, message: &str| -> Result<Chat> {
        let pair = Chat::named(chat).with(Assistant::new("Number", model.clone())?);
        let pair = pair.with(Assistant::new(who, model.clone())?).policy(until(max_turns(3), in_turn()));
        Ok(Carry::message(message).said_by(Name::new("Number")?).begins(pair).build()?)
    };
    let chat = Chat::named("arithmetic")
        .with(step("adding", "Adder", "14")?)
        .with(step("doubling", "Doubler", "These are my numbers")?)
        .policy(sequence())
        .build()?;
    play(&chat, "", &[]).await
}
