//! A custom agent made of two: one writes code, the other runs it, until a reply has no code. Called in a session,
//! without a chat.
#![expect(clippy::print_stdout, reason = "it is a program")]

use polylogue::kernel::agent::SubAgent;
use polylogue::kernel::data::Params;
use polylogue::layers::parse::{ActionExecutor, Parsed, ParsedBlock, ToolBlock};
use polylogue::tools::FunctionTool;
use polylogue::{Act, Agent, Assistant, Name, Session, Turn};

/// Writes code and has it run, for a limited number of turns.
#[derive(Clone)]
struct Coder {
    name: Name,
    agent: Parsed,
    executor: ActionExecutor,
    max_turn: usize,
}

impl Agent for Coder {
    fn name(&self) -> &Name {
        &self.name
    }

    fn sub_agents(&self) -> Vec<SubAgent> {
        vec![SubAgent::labeled("agent", &self.agent)]
    }

    async fn act(&self, turn: &mut Turn<'_>) -> polylogue::Result<Act> {
        let mut message = turn.message();
        for _ in 0..self.max_turn {
            message = turn.ask_as("agent", &self.agent, message).await?;
            if ParsedBlock::calls(&message).is_none() {
                break;
            }
            message = turn.ask(&self.executor, message).await?;
        }
        Ok(Act::Say(message.parts))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // As from a model with a stop word at the end of a block: the end marker is missing.
    let model = polylogue::models::scripted(
        r#"[{"Solver": "The projection is (a·b / b·b) b. So:\n```python\nprint(2 / 10, -6 / 10)"},
            {"Solver": "It is (1/5, -3/5)."}]"#,
    )?;
    let stop = Params { stop: vec!["\n```\n".into()], ..Params::default() };
    let solver =
        Assistant::new("Solver", model)?.system("Solve the problem step by step with Python.").params(stop);
    let block = ToolBlock::new("interpreter").between("```python\n", "\n```\n").restore();
    // Replaces Python: `polylogue_tools::code` has one in a sandbox.
    let python = FunctionTool::new("python", "Runs Python.", async |_: serde_json::Value| Ok("0.2 -0.6"));
    let coder = Coder {
        name: Name::new("Coder")?,
        agent: Parsed::new(solver, block),
        executor: ActionExecutor::new("Executor")?.tool_for("interpreter", python),
        max_turn: 3,
    };
    let session = Session::in_memory();
    let answer = session.call(&coder, "Find the projection of a onto b = (1, -3) if a·b = 2.").await?;
    println!("{}\n", answer.text());
    for message in session.state(&coder).await?.get("agent.memory").unwrap_or_default() {
        println!("{}:\n{}\n", message.from, message.text());
    }
    Ok(())
}
