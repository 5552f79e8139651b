//! A custom policy: all participants speak in parallel, then vote in parallel private turns; the votes decide.
#![expect(clippy::print_stdout, reason = "it is a program")]

use polylogue::kernel::data::{OtherReason, RunOutcome};
use polylogue::kernel::log::TurnRequest;
use polylogue::kernel::transcript::TranscriptMessage;
use polylogue::{Assistant, Chat, Name, Step, Transcript, models};

/// Selects the next speaker: a pure function of the transcript.
fn vote(chat: &Transcript) -> Step {
    let participants = || chat.participants().iter().cloned();
    let votes = || chat.all_messages().iter().filter(|line| line.is_private());
    if chat.turns() == 0 {
        return Step::Parallel(participants().map(TurnRequest::to_all).collect());
    }
    if votes().count() == 0 {
        let ask = |who| {
            TurnRequest::private(who, "Whose proposal is the best? Answer with a name and nothing else.")
        };
        return Step::Parallel(participants().map(ask).collect());
    }
    let count = |name: &Name| votes().filter(|line| is_for(line, name)).count();
    // Of several with the same number of votes, the first.
    let winner = participants().rev().max_by_key(count);
    let summary =
        winner.map(|name| format!("{name} wins with {} of {} votes", count(&name), votes().count()));
    let reason = OtherReason::new("voted", "all votes are in", RunOutcome::Done);
    Step::Close { reason: reason.into(), summary: summary.unwrap_or_default().into() }
}

fn is_for(vote: &TranscriptMessage, name: &Name) -> bool {
    vote.message.text().trim() == name.as_str()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = models::scripted(
        r#"[{"Ann": "A bench by the pond"}, {"Bob": "Twenty apple trees"}, {"Cem": "A playground"},
            {"Ann": "Bob"}, {"Bob": "Cem"}, {"Cem": "Bob"}]"#,
    )?;
    let mut chat = Chat::builder("council");
    for name in ["Ann", "Bob", "Cem"] {
        chat =
            chat.participant(Assistant::new(name, &model)?.system("You propose what the town should build."));
    }
    let result = chat.policy(vote).build()?.run("What should we build?").await?;
    for message in result.messages() {
        println!("{}: {}", message.from, message.text());
    }
    println!("-- {}", result.text());
    Ok(())
}
