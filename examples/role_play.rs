//! Role-play: a specifier turns an idea into a task, a trader instructs, a programmer solves, until it is done.
#![expect(clippy::print_stdout, reason = "it is a program")]

use polylogue::Assistant;
use polylogue::tasks::RolePlay;
use polylogue::tools::GetHistory;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = polylogue::models::scripted(
        r#"[{"Specifier": "Warn me when wheat costs a tenth more than the week before."},
            {"Trader": "Instruction: Say how to compare two weeks.\nInput: Daily prices"},
            {"Programmer": "Solution: Compare the means of the last seven days and of the seven before. Next request."},
            {"Trader": "Instruction: Write it as a function.\nInput: None"},
            {"Programmer": {"calls": [{"tool": "get_history", "args": {"limit": 2}}]}},
            {"Programmer": "Solution: `def warn(p): return sum(p[-7:]) > 1.1 * sum(p[-14:-7])`. Next request."},
            {"Trader": "<CAMEL_TASK_DONE>"}]"#,
    )?;
    let programmer = Assistant::new("Programmer", &model)?.tool(GetHistory::default());
    let society = RolePlay::new(programmer, Assistant::new("Trader", &model)?)
        .roles("Python programmer", "Stock trader")
        .specify(Assistant::new("Specifier", &model)?)
        .max_rounds(5);
    println!("{}", society.build("society")?.run("Develop a trading bot for the stock market").await?);
    Ok(())
}
