//! A streamed reply: its deltas, and the text so far.
#![expect(clippy::print_stdout, reason = "it is a program")]

use polylogue::agents::session::Stage;
use polylogue::{Assistant, Session};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = polylogue::models::scripted(
        r#"[{"philosopher": {"say": "To ask for it\nis a good part of it.", "pace": 2000}}]"#,
    )?;
    let philosopher = Assistant::new("philosopher", model)?.system("你是一个哲学家。");
    let session = Session::in_memory();
    let mut replies = session.reply_stream().await;
    let show = async {
        print!("Bot: ");
        while let Some(update) = replies.next().await {
            match update.stage {
                Stage::Writing => {
                    // `update.text` is the text so far.
                    print!("{}", update.delta);
                }
                Stage::Done => break,
                _ => {}
            }
        }
        println!();
    };
    let (reply, ()) = tokio::join!(session.call(&philosopher, "人生的意义是什么？"), show);
    println!("{} characters in all", reply?.text().chars().count());
    Ok(())
}
