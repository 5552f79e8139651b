//! A state machine: a custom rule selects the next speaker by the last message, within allowed transitions.
#![expect(clippy::print_stdout, reason = "it is a program")]

use polylogue::policies::group::{Method, Transitions};
use polylogue::{Assistant, Chat, Group, Name, Transcript};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = polylogue::models::scripted(
        r#"[{"Writer": "A cat sleeps."}, {"Critic": "Too short"}, {"Writer": "A cat sleeps on the warm stones."},
            {"Critic": "GOOD"}, {"Editor": "Printed: A cat sleeps on the warm stones."}]"#,
    )?;
    let [writer, critic, editor] = [Name::new("Writer")?, Name::new("Critic")?, Name::new("Editor")?];
    // No participant may speak after the editor: the chat ends.
    let after = [(writer.clone(), vec![critic.clone()]), (critic, vec![writer.clone(), editor.clone()])];
    let rule = move |chat: &Transcript, _: &[Name]| match chat.last() {
        Some(last) if last.message.text().contains("GOOD") => editor.clone().into(),
        Some(last) if last.message.from == writer => Method::RoundRobin.into(),
        _ => writer.clone().into(),
    };
    let chat = Chat::builder("desk")
        .participant(Assistant::new("Writer", &model)?)
        .participant(Assistant::new("Critic", &model)?)
        .participant(Assistant::new("Editor", &model)?)
        .policy(Group::custom(rule).transitions(Transitions::allowed(after)))
        .build()?;
    println!("{}", chat.run("A sentence about a cat").await?);
    Ok(())
}
