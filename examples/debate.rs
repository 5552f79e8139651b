//! Three agents argue in parallel, vote in private turns, and argue once more when the vote is tied.
#![expect(clippy::print_stdout, reason = "it is a program")]

use polylogue::policies::Debate;
use polylogue::policies::debate::Tie;
use polylogue::{Assistant, Chat};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = polylogue::models::scripted(
        r#"[{"Ann": "A bench is cheap"}, {"Bob": "Trees last"}, {"Cem": "Children need to play"},
            {"Ann": "a bench"}, {"Bob": "2"}, {"Cem": "I vote for the playground"}, {"Cem": "a playground"},
            {"Ann": "Trees give shade, too"}, {"Bob": "They do"}, {"Cem": "And one can climb them"},
            {"Ann": "apple trees"}, {"Bob": "apple trees"}, {"Cem": "3"}]"#,
    )?;
    let mut council = Chat::builder("council");
    for who in ["Ann", "Bob", "Cem"] {
        council = council.participant(Assistant::new(who, &model)?);
    }
    let debate = Debate::between(["a bench", "apple trees", "a playground"])?.tie(Tie::Again(1));
    println!("{}", council.policy(debate).build()?.run("What should the town build?").await?);
    Ok(())
}
