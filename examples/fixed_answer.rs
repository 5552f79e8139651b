//! The smallest agent: a model, a system message, message in, message out.
#![expect(clippy::print_stdout, reason = "it is a program")]

use polylogue::kernel::data::Params;
use polylogue::{Assistant, Session};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model =
        polylogue::models::scripted(r#"[{"bot": "急<|im_end|>and what a model may write behind it"}]"#)?;
    let params = Params { temperature: Some(1.0), stop: vec!["<|im_end|>".into()], ..Params::default() };
    let bot =
        Assistant::new("bot", model)?.system("你的回答只能从“典”，“孝”，“急”三个字中选一个。").params(params);
    let session = Session::in_memory();
    let reply = session.call(&bot, "今天的天气情况怎么样").await?;
    println!("{}: {}", reply.from, reply.text());
    // The message as JSON, and the memory of the bot.
    println!("{}", serde_json::to_string(&reply)?);
    println!("{}", serde_json::to_string(&session.state(&bot).await?)?);
    Ok(())
}
