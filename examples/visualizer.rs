//! A researcher and a charter who share an executor, until one of them has the final answer. Their memory is saved as
//! JSON, and a new session continues from it.
#![expect(clippy::print_stdout, reason = "it is a program")]

use polylogue::agents::session::State;
use polylogue::kernel::agent::SubAgent;
use polylogue::kernel::data::Params;
use polylogue::kernel::tool::AnyTool;
use polylogue::layers::parse::{ActionExecutor, Parsed, ParsedBlock, ToolBlock};
use polylogue::tools::FunctionTool;
use polylogue::{Act, Agent, AnyModel, Assistant, Message, Name, Session, Turn};

/// Two agents that work with tools in turn, until one is done.
#[derive(Clone)]
struct Visualizer {
    name: Name,
    researcher: Parsed,
    charter: Parsed,
    executor: ActionExecutor,
    max_turn: usize,
}

impl Visualizer {
    /// Calls one of them, and runs its tool calls, until it makes no more.
    async fn work(&self, turn: &mut Turn<'_>, agent: &Parsed, task: Message) -> polylogue::Result<Message> {
        let mut message = turn.ask(agent, task).await?;
        while ParsedBlock::calls(&message).is_some() {
            let done = turn.ask(&self.executor, message).await?;
            message = turn.ask(agent, done).await?;
        }
        Ok(message)
    }
}

impl Agent for Visualizer {
    fn name(&self) -> &Name {
        &self.name
    }

    fn sub_agents(&self) -> Vec<SubAgent> {
        vec![SubAgent::of(&self.researcher), SubAgent::of(&self.charter)]
    }

    async fn act(&self, turn: &mut Turn<'_>) -> polylogue::Result<Act> {
        let mut message = turn.message();
        for agent in [&self.researcher, &self.charter].into_iter().cycle().take(2 * self.max_turn) {
            message = self.work(turn, agent, message).await?;
            if message.text().contains("Final Answer") {
                break;
            }
        }
        Ok(Act::Say(message.parts))
    }
}

/// The arguments of the search.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Search {
    query: String,
}

const FORM: &str =
    "Work with other assistants toward an answer. Whoever has it begins a reply with `Final Answer`.";

fn visualizer(model: &AnyModel) -> polylogue::Result<Visualizer> {
    // These replace a browser and Python.
    let search = FunctionTool::new("search", "Searches the web.", async |search: Search| {
        Ok(format!("{}: 14.7, 17.8, 17.9", search.query))
    });
    let python = FunctionTool::new("python", "Runs Python.", async |_: serde_json::Value| Ok("chart.png"));
    let browser = ActionExecutor::new("executor")?.toolkit("WebBrowser", [AnyTool::new(search)]);
    let find = format!("Find accurate data. You have these tools:\n{}", browser.instructions());

    let agent = |who: &str, does: &str, block: ToolBlock| -> polylogue::Result<Parsed> {
        let stop = Params { stop: vec!["```\n".into()], ..Params::default() };
        let agent = Assistant::new(who, model)?.system(format!("{FORM}\n\n{does}")).params(stop);
        Ok(Parsed::new(agent, block.restore()))
    };
    let json = ToolBlock::new("browser").between("```json\n", "\n```\n").json();
    let code = ToolBlock::new("interpreter").between("```python\n", "\n```\n");
    Ok(Visualizer {
        name: Name::new("visualizer")?,
        researcher: agent("researcher", &find, json)?,
        charter: agent("charter", "Draw charts.", code)?,
        executor: browser.tool_for("interpreter", python),
        max_turn: 10,
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = polylogue::models::scripted(
        r#"[{"researcher": "```json\n{\"name\": \"WebBrowser.search\", \"parameters\": {\"query\": \"GDP of China\"}}"},
            {"researcher": "14.7, 17.8 and 17.9 trillion dollars."},
            {"charter": {"say": "```python\nplot([14.7, 17.8, 17.9])", "expect": {"last": "14.7, 17.8 and 17.9"}}}, {"charter": "Final Answer: see `chart.png`."}]"#,
    )?;
    let (agent, first) = (visualizer(&model)?, Session::in_memory());
    println!("{}", first.call(&agent, "Draw a line of China's GDP.").await?.text());
    let json = serde_json::to_string(&first.state(&agent).await?)?;

    let (second, state) = (Session::in_memory(), serde_json::from_str::<State>(&json)?);
    second.load(&agent, &state).await?;
    let loaded = second.state(&agent).await?;
    for key in loaded.keys() {
        println!("{key}: {} messages", loaded.get(key).unwrap_or_default().len());
    }
    Ok(())
}
