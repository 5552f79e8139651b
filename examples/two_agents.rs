//! Two agents talk until one of them is satisfied; messages are printed as they arrive.
#![expect(clippy::print_stdout, reason = "it is a program")]

use polylogue::stop::{max_turns, says};
use polylogue::{
    AnyModel, AnyStore, Assistant, Body, Chat, Delta, Log, LogId, Meta, Update, round_robin, until,
};
use polylogue_models::Script;
use polylogue_store::Memory;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A script replaces the model; `real_model.rs` has a real one.
    let script: Script = serde_json::from_str(
        r#"[{"Teacher": "What colour is the evening sky, and where does its light come from?"},
            {"Student": "Red, and it comes a long way through the air."},
            {"Teacher": "Which colour got lost on the way?"},
            {"Student": "Blue: the air scatters it, and by day it comes from everywhere. I see."}]"#,
    )?;
    let model = AnyModel::new(script.paced(200.0).model("lesson"));
    let teacher = Assistant::new("Teacher", model.clone())?.system("You teach by asking questions.");
    let student =
        Assistant::new("Student", model)?.system("You want to understand. Say `I see.` when you do.");
    let chat = Chat::named("lesson")
        .participant(teacher)
        .participant(student)
        .policy(until(says("I see.") | max_turns(12), round_robin()))
        .build()?;

    let store = AnyStore::new(Memory::default());
    let mut log = Log::create(store, LogId::new("monday")?, &Meta::default()).await?;
    let mut watch = log.subscribe().await;
    let printer = tokio::spawn(async move {
        while let Some(signal) = watch.next().await {
            show(&signal);
        }
    });
    chat.run(&mut log, "Why is the sky blue?").await?;
    // The subscription ends with the log.
    log.release().await?;
    printer.await?;
    Ok(())
}

fn show(signal: &Update) {
    match signal {
        Update::Delta { delta: Delta::Text(text), .. } => print!("{text}"),
        Update::Event(event) => match &event.body {
            Body::TurnStarted { turns: cues } => cues.iter().for_each(|cue| print!("{}: ", cue.who)),
            Body::Message(_) => println!(),
            Body::Closed { reason, .. } => println!("-- {reason}"),
            _ => {}
        },
        _ => {}
    }
}
