//! A function as a tool: the model reads its name, its doc comment and its parameters.
#![expect(clippy::print_stdout, reason = "it is a program")]

use polylogue::{Assistant, Chat, models, sequential, tool};

/// Compares a guess with a secret number.
#[tool]
fn high_low(secret: u32, guess: u32) -> String {
    format!("The secret number is {:?} compared with the guess.", secret.cmp(&guess))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = models::scripted(
        r#"[{"Master": {"calls": [{"tool": "high_low", "args": {"secret": 7, "guess": 3}}]}},
            {"Master": "No: it is greater than 3."}]"#,
    )?;
    let master = Assistant::new("Master", model)?.tool(high_low);
    let chat = Chat::builder("game").participant(master).policy(sequential()).build()?;
    println!("{}", chat.run("The secret is 7. Is it 3?").await?);
    Ok(())
}
