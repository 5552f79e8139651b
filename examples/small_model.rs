//! A model that only writes text uses a tool and gives structured output: it is prompted with both, and its text is
//! parsed leniently. The program is the same for every model; the argument is the name of one.
//!
//! ```sh
//! cargo run -p polylogue-examples --bin small_model
//! cargo run -p polylogue-examples --bin small_model ollama:gemma3:1b
//! ```
#![expect(clippy::print_stdout, reason = "it is a program")]

use polylogue::agents::PromptedTool;
use polylogue::kernel::data::Capabilities;
use polylogue::models::{self, Script};
use polylogue::tools::FunctionTool;
use polylogue::{AnyModel, Assistant, Chat, sequential};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Trip {
    /// From where to where, such as `Oslo-Bergen`
    route: String,
}

/// Simulates a small model: reasoning, JSON in a fence, single quotes.
const SCRIPT: &str = r#"[{"Guide": "I understand."}, {"Guide": "<think>{'route': 'Oslo-Rome'}?</think>```\n{'route': 'Oslo-Bergen'}\n```"},
    {"Guide": "Here it is: {'hours': '7 hours'}"}, {"Guide": "{\"hours\": 7}"}]"#;

fn model() -> Result<AnyModel, Box<dyn std::error::Error>> {
    if let Some(name) = std::env::args().nth(1) {
        return Ok(models::named(&name)?);
    }
    let script: Script = serde_json::from_str(SCRIPT)?;
    Ok(script.model("small").with_capabilities(Capabilities::TEXT).into())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let trains = FunctionTool::new("trains", "Looks trains up.", async |Trip { route }: Trip| {
        Ok(if route == "Oslo-Bergen" { "It takes 7 hours." } else { "There is no such train." })
    });
    let trains =
        PromptedTool::new(trains).mandatory().example("go to Trondheim", json!({"route": "Oslo-Trondheim"}));
    let form = json!({"type": "object", "properties": {"hours": {"type": "integer"}}, "required": ["hours"]});
    let guide = Assistant::new("Guide", model()?)?.prompted_tool(trains).output_schema(form);
    let chat = Chat::builder("trip").participant(guide).policy(sequential()).build()?;
    println!("{}", chat.run("How long is the train from Oslo to Bergen?").await?);
    Ok(())
}
