//! An assistant that writes Python, and a proxy that runs it in a sandbox, until it works. The programs really run: a
//! table of prices is read, and one mistake is made and fixed. Code that deletes needs approval by a person.
#![expect(clippy::print_stdout, reason = "it is a program")]

use polylogue::layers::code::CodeBlock;
use polylogue::layers::{Coder, HumanInput, Stack};
use polylogue::policies::with_termination;
use polylogue::stop::says;
use polylogue::tools::Approval;
use polylogue::{Assistant, Chat, round_robin};
use polylogue_tools::code::{Sandbox, python};

const PRICES: &str = "day,price\n2026-01-02,100.0\n2026-06-30,112.5\n2026-11-20,125.0\n";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let work = tempfile::tempdir()?;
    std::fs::write(work.path().join("prices.csv"), PRICES)?;
    let model = polylogue::models::scripted(
        r#"[{"Assistant": "```python\nimport csv\nprices = list(csv.reader(open('prices.csv')))\ngain = prices[-1][1] / prices[1][1] - 1\nprint(f'{gain:.0%}')\n```"},
            {"Assistant": "The prices are texts.\n```python\n# filename: gain.py\nimport csv\nprices = [float(row['price']) for row in csv.DictReader(open('prices.csv'))]\nprint(f'{prices[-1] / prices[0] - 1:.0%}')\n```"},
            {"Assistant": "The gain since the beginning of the year is 25%. TERMINATE"}]"#,
    )?;
    let coder = Coder::new()
        .tool(python(Sandbox::enclosed(work.path())))
        .approval(Approval::when(|block: &CodeBlock| block.code.contains("remove")));
    let chat = Chat::builder("year-to-date")
        .participant(
            Assistant::new("Assistant", model)?
                .system("Solve the task with Python. Say TERMINATE when it is solved."),
        )
        .participant(Stack::new("Proxy")?.then(HumanInput::never()).then(coder).otherwise("Continue."))
        .policy(with_termination(round_robin(), says("TERMINATE")))
        .build()?;
    println!("{}", chat.run("What is the gain since the beginning of the year, by prices.csv?").await?);
    Ok(())
}
