//! Two who share an executor, and what is left of a session when it is begun again.

use polylogue::agents::session::Forget;
use polylogue::layers::parse::{ActionExecutor, Parsed, ParsedBlock, ToolBlock};
use polylogue::{Act, Agent, AnyModel, Message, Name, Result, Turn};
use polylogue_core::{AnyTool, ToolResult, ToolSpec};
use polylogue_test::tool::tool_of;
use serde_json::json;

use crate::lagent::parts::{agent, session};
use crate::stage::{Spy, name, script};

fn echo(tool: &'static str) -> AnyTool {
    let spec = ToolSpec::new(tool, "", json!({"type": "object"}));
    tool_of(spec, move |args| Ok(ToolResult::done(format!("{tool} of {args}"))))
}

#[derive(Clone)]
pub(crate) struct Visualizer {
    name: Name,
    researcher: Parsed,
    charter: Parsed,
    executor: ActionExecutor,
    max_turn: usize,
}

impl Visualizer {
    pub(crate) fn new(model: &AnyModel) -> Self {
        let json = ToolBlock::new("browser").between("```json\n", "\n```\n").json();
        let code = ToolBlock::new("interpreter").between("```python\n", "\n```\n");
        Self {
            name: name("visualizer"),
            researcher: Parsed::new(agent("researcher", model), json),
            charter: Parsed::new(agent("charter", model), code),
            executor: ActionExecutor::new("executor")
                .unwrap()
                .tool(echo("search"))
                .tool_for("interpreter", echo("python")),
            max_turn: 10,
        }
    }

    async fn work(&self, turn: &mut Turn<'_>, agent: &Parsed, shown: Message) -> Result<Message> {
        let mut message = turn.ask(agent, shown).await?;
        while ParsedBlock::calls(&message).is_some() {
            let done = turn.ask(&self.executor, message).await?;
            assert_eq!(done.from, "executor");
            message = turn.ask(agent, done).await?;
        }
        Ok(message)
    }
}

impl Agent for Visualizer {
    fn name(&self) -> &Name {
        &self.name
    }
    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
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

/// What the two of them say, in two calls.
pub(crate) const VISUALIZER: &str = r#"[{"researcher": "```json\n{\"name\": \"search\", \"parameters\": {\"q\": 1}}"}, {"researcher": "Data: 1."},
            {"charter": "```python\nplot(1)"}, {"charter": "Final Answer: chart.png"}, {"researcher": "Final Answer: at once"}]"#;

/// L31, L43.
#[tokio::test]
async fn two_share_an_executor_until_one_has_the_final_answer() {
    let spy = Spy::on(script(VISUALIZER));
    let agent = Visualizer::new(&spy.model());
    let session = session().await;
    assert_eq!(session.call(&agent, "Draw it.").await.unwrap().text(), "Final Answer: chart.png");
    assert_eq!(session.call(&agent, "Again.").await.unwrap().text(), "Final Answer: at once");
    assert_eq!(spy.asked().len(), 5);
    // All inner chats are in this session, though the agent names no layers.
    let state = session.state(&agent).await.unwrap();
    let keys: Vec<_> = state.keys().collect();
    assert_eq!(keys, ["memory", "researcher.memory", "executor.memory", "charter.memory"]);
    let done = state.get("executor.memory").unwrap();
    assert_eq!([done[1].text(), done[3].text()], [r#"search of {"q":1}"#, r#"python of {"code":"plot(1)"}"#]);
}

/// C03: beginning again asks no model.
#[tokio::test]
async fn forgetting_asks_no_model() {
    let spy = Spy::on(script(r#"[{"bot": "one"}, {"bot": "two"}]"#));
    let bot = agent("bot", &spy.model());
    let session = session().await;
    session.call(&bot, "a").await.unwrap();
    session.reset(&bot, Forget::All).await.unwrap();
    assert_eq!(spy.asked().len(), 1);
    session.call(&bot, "b").await.unwrap();
    assert_eq!(spy.asked()[1].entries.len(), 1);
}
