//! Two agents talk until one of them is satisfied.
#![expect(clippy::print_stdout, reason = "it is a program")]

use polylogue::{Assistant, Chat, models, round_robin, stop};

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
    println!("{}", chat.run("Why is the sky blue?").await?);
    Ok(())
}
