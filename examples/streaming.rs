//! The same two agents, whose text is printed as it arrives.
#![expect(clippy::print_stdout, reason = "it is a program")]

use polylogue::kernel::data::Delta;
use polylogue::kernel::log::Body;
use polylogue::{Assistant, Chat, Update, models, round_robin, stop};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A script replaces the model: `models::named("openai:gpt-4o-mini")?` is a real one.
    let model = models::scripted(
        r#"[{"Teacher": "What color is the evening sky, and where does its light come from?"},
            {"Student": "Red, and it comes a long way through the air."},
            {"Teacher": "Which color got lost on the way?"},
            {"Student": "Blue: the air scatters it, and by day it comes from everywhere. I see."}]"#,
    )?;
    let chat = Chat::builder("lesson")
        .participant(Assistant::new("Teacher", &model)?.system("You teach by asking questions."))
        .participant(Assistant::new("Student", &model)?.system("Say `I see.` when you understand."))
        .policy(round_robin())
        .stop(stop::says("I see.") | stop::max_turns(12))
        .build()?;
    let mut updates = chat.stream("Why is the sky blue?");
    while let Some(update) = updates.next().await {
        match update? {
            Update::Delta { delta: Delta::Text(text), .. } => print!("{text}"),
            Update::Event(event) => show(&event.body),
            _ => {}
        }
    }
    Ok(())
}

fn show(event: &Body) {
    match event {
        Body::TurnStarted { turns } => turns.iter().for_each(|turn| print!("{}: ", turn.who)),
        Body::Message(_) => println!(),
        Body::Closed { reason, .. } => println!("-- {reason}"),
        _ => {}
    }
}
