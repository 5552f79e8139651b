//! A custom agent with a custom tool: it asks its model again until the reply is a number. The model fails in the
//! middle of the turn; when the run is resumed, no finished step is repeated.
#![expect(clippy::print_stdout, reason = "it is a program")]

use polylogue::kernel::data::{ToolResult, ToolSpec};
use polylogue::kernel::tool::{AnyTool, ToolCx, ToolError};
use polylogue::kernel::turn::ModelCall;
use polylogue::{Act, Agent, AnyModel, Chat, Log, Name, Result, Tool, Turn, models, sequential};
use serde_json::{Value, json};

/// Reports the temperature as a bare number.
struct Forecaster {
    name: Name,
    model: AnyModel,
    tool: AnyTool,
}

impl Agent for Forecaster {
    fn name(&self) -> &Name {
        &self.name
    }

    // Written as if it ran once. In a resumed run, every finished `ask_model`, `call` and `prompt` returns its earlier
    // result.
    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let system = Some("Say how warm it is. Answer with a number and nothing else.");
        let ask = ModelCall { system, tools: &[self.tool.spec().clone()], ..ModelCall::of(&self.model) };
        for _ in 0..5 {
            let reply = turn.ask_model(ask).await?;
            let calls = reply.calls();
            match reply.text() {
                _ if !calls.is_empty() => {
                    drop(turn.call_tools(std::slice::from_ref(&self.tool), &calls).await?)
                }
                text if text.trim().parse::<f64>().is_ok() => return Ok(Act::say(text)),
                _ => turn.prompt("That is not a number. Answer with a number and nothing else.").await?,
            }
        }
        Ok(Act::Pass)
    }
}

struct Thermometer(ToolSpec);

impl Tool for Thermometer {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, args: Value, _: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let place = args.get("place").and_then(Value::as_str).ok_or("`place` is missing")?;
        println!("(a person goes to the {place} and reads the thermometer)");
        Ok(ToolResult::done("21.5 degrees"))
    }
}

fn chat(model: &AnyModel) -> Result<Chat> {
    let parameters = json!({"type": "object", "properties": {"place": {"type": "string"}}});
    let spec = ToolSpec::new("thermometer", "Reads the thermometer at a place", parameters).repeatable();
    let tool = AnyTool::new(Thermometer(spec));
    let forecaster = Forecaster { name: Name::new("Forecaster")?, model: model.clone(), tool };
    Chat::builder("weather").participant(forecaster).policy(sequential()).build()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = models::scripted(
        r#"[{"Forecaster": {"calls": [{"tool": "thermometer", "args": {"place": "garden"}}]}},
            {"Forecaster": {"error": {"message": "the connection broke"}}},
            {"Forecaster": "It is about 21.5 degrees"},
            {"Forecaster": "21.5"}]"#,
    )?;
    let mut log = Log::in_memory();
    if let Err(error) = chat(&model)?.run_in(&mut log, "How warm is it?").await {
        println!("failed: {error}");
    }
    // A new chat value: its only input is the log.
    println!("{}", chat(&model)?.resume(&mut log).await?);
    Ok(())
}
