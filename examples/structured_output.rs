//! Structured output from any model: one without schema support is prompted with the schema and with the errors in its
//! answer.
#![expect(clippy::print_stdout, reason = "it is a program")]

use polylogue::Assistant;
use polylogue::tasks::{Task, tasks};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = polylogue::models::scripted(
        r#"[{"Clerk": "Sure! ```json\n{\"city\": \"Paris\", \"population\": \"two million\"}\n```"},
            {"Clerk": "{\"city\": \"Paris\", \"population\": 2000000}"}]"#,
    )?;
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "population": {"type": "integer"}},
        "required": ["city", "population"],
    });
    let task = Task::new(Assistant::new("Clerk", model)?, "Which city has the Eiffel Tower?");
    println!("{}", tasks("facts", [task.output_schema(schema)])?.run("").await?);
    Ok(())
}
