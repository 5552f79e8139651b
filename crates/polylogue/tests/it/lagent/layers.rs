//! Hooks, aggregators, parsers, and what runs what they read.

use polylogue::layers::aggregate::{few_shot, merged, recent};
use polylogue::layers::hook::{HookedModel, MessageHooks};
use polylogue::layers::parse::{
    ActionExecutor, Parsed, ParsedBlock, Parser, Template, ToolBlock, ToolBlocks, value,
};
use polylogue::{Act, Agent, AnyModel, Assistant, Message, Name, Result, Turn};
use polylogue_core::{AnyAgent, Entry, Part, ToolError, ToolResult, ToolSpec, text_of};
use polylogue_test::tool::tool_of;
use serde_json::{Value, json};

use crate::lagent::parts::{agent, session};
use crate::stage::{Spy, name, script};

fn texts(entries: &[Entry]) -> Vec<String> {
    let role = |entry: &Entry| match entry {
        Entry::User { .. } => "user",
        Entry::Assistant { .. } => "assistant",
        Entry::System { .. } => "system",
        Entry::Tool { .. } => "tool",
    };
    entries.iter().map(|entry| format!("{}: {}", role(entry), text_of(entry.parts()))).collect()
}

fn prefix(with: &'static str) -> impl Fn(Message) -> Message + Send + Sync {
    move |message| Message::new(message.from.clone(), format!("{with}{}", message.text()))
}

/// L05, L06, L07, L09.
#[tokio::test]
async fn hooks_change_what_is_remembered_before_and_only_what_is_returned_after() {
    let spy = Spy::on(script(r#"[{"bot": "one"}, {"bot": "two"}]"#));
    let mut bot = MessageHooks::new(agent("bot", &spy.model()));
    bot.before(prefix("a"));
    bot.before(prefix("b"));
    bot.after(prefix("c"));
    bot.after(prefix("d"));
    let own = Message::from("hi");
    let session = session().await;
    assert_eq!(session.call(&bot, &own).await.unwrap().text(), "dcone");
    assert_eq!(own.text(), "hi");
    session.call(&bot, "ho").await.unwrap();
    assert_eq!(texts(&spy.asked()[1].entries), ["user: bahi", "assistant: one", "user: baho"]);
    let state = session.state(&bot).await.unwrap();
    let memory: Vec<_> = state.get("bot.memory").unwrap().iter().map(|message| message.text()).collect();
    assert_eq!(memory, ["bahi", "one", "baho", "two"]);
}

/// L08.
#[tokio::test]
async fn a_removed_hook_is_not_run_and_cannot_be_removed_again() {
    let mut bot = MessageHooks::new(agent("bot", &script(r#"[{"bot": "one"}]"#)));
    let (first, second) = (bot.after(prefix("c")), bot.before(prefix("a")));
    bot.remove(first).unwrap();
    assert!(bot.remove(first).unwrap_err().to_string().contains("unknown hook `1` of"));
    assert_ne!(first, second);
    assert_eq!(session().await.call(&bot, "hi").await.unwrap().text(), "one");
}

fn hooked(
    spy: &Spy,
    hook: impl Fn(Vec<Entry>, &polylogue_core::Request<'_>) -> Vec<Entry> + Send + Sync + 'static,
) -> Assistant {
    agent("bot", &AnyModel::new(HookedModel::new(spy.model()).on_view(hook)))
}

/// L03: the separator is up to the caller; an empty one is the original's. Parts of one message are merged, too.
#[tokio::test]
async fn consecutive_messages_of_others_are_merged() {
    for (separator, expected) in [("", "user: hithereyou"), ("\n\n", "user: hi\n\nthere\n\nyou")] {
        let spy = Spy::on(script(r#"[{"bot": "one"}]"#));
        let bot = hooked(&spy, merged(separator));
        let session = session().await;
        let before = r#"{"memory": [{"from": "user", "parts": [{"text": "hi"}]}]}"#;
        session.load(&bot, &serde_json::from_str(before).unwrap()).await.unwrap();
        let two = Message { parts: vec![Part::text("there"), Part::text("you")], ..Message::from("") };
        session.call(&bot, two).await.unwrap();
        assert_eq!(texts(&spy.asked()[0].entries), [expected]);
    }
}

/// L20, C17: the window is of what is sent; all is remembered.
#[tokio::test]
async fn a_window_sends_the_last_messages_and_remembers_all() {
    let spy = Spy::on(script(r#"[{"bot": "one"}, {"bot": "two"}, {"bot": "three"}]"#));
    let bot = hooked(&spy, recent(2));
    let session = session().await;
    for text in ["a", "b", "c"] {
        session.call(&bot, text).await.unwrap();
    }
    let asked = spy.asked();
    assert_eq!(asked[2].system.as_deref(), Some("I am bot."));
    assert_eq!(
        texts(&asked[2].entries),
        ["user: (What was said before is left out.)", "assistant: two", "user: c"]
    );
    assert_eq!(session.state(&bot).await.unwrap().get("memory").unwrap().len(), 6);
}

/// L21: a template that ends with a message of the user is merged with the first message, and does not grow.
#[tokio::test]
async fn a_template_is_the_same_on_every_call() {
    let spy = Spy::on(script(r#"[{"bot": "one"}, {"bot": "two"}]"#));
    let merge = merged("\n");
    let bot = hooked(&spy, move |entries, request| {
        let template = [Entry::user("Hi."), Entry::assistant("Hello."), Entry::user("Be brief.")];
        merge(template.into_iter().chain(entries).collect(), request)
    });
    let session = session().await;
    for text in ["a", "b"] {
        session.call(&bot, text).await.unwrap();
    }
    let first = ["user: Hi.", "assistant: Hello.", "user: Be brief.\na"];
    assert_eq!(texts(&spy.asked()[0].entries), first);
    assert_eq!(texts(&spy.asked()[1].entries), [&first[..], &["assistant: one", "user: b"]].concat());
}

/// L22.
#[tokio::test]
async fn examples_stand_before_the_conversation_on_every_call() {
    let spy = Spy::on(script(r#"[{"bot": "one"}, {"bot": "two"}]"#));
    let bot = hooked(&spy, few_shot([("Weather today?", "[sunny]")]));
    let session = session().await;
    session.call(&bot, "yesterday?").await.unwrap();
    session.call(&bot, "tomorrow?").await.unwrap();
    let first = ["user: Weather today?", "assistant: [sunny]", "user: yesterday?"];
    let asked = spy.asked();
    assert_eq!(texts(&asked[0].entries), first);
    assert_eq!(texts(&asked[1].entries)[..3], first);
    assert_eq!(texts(&asked[1].entries)[3..], ["assistant: one", "user: tomorrow?"]);
}

fn python() -> ToolBlock {
    ToolBlock::new("interpreter").between("```python\n", "\n```\n")
}

fn read(parser: &impl Parser, text: &str) -> Value {
    parser.parse(text).unwrap().unwrap()
}

/// L23, L24, L25, L26.
#[test]
fn the_first_block_is_read_and_its_end_may_be_missing() {
    let block = |thought: &str, action: &str, status: i8| json!({"tool_type": "interpreter", "thought": thought, "action": action, "status": status});
    assert_eq!(read(&python(), "Let me.\n```python\nprint(1)"), block("Let me.\n", "print(1)", 1));
    let none = json!({"tool_type": null, "thought": "No code.", "action": null, "status": 0});
    assert_eq!(read(&python(), "No code."), none);
    let two = "a```python\n1\n```\nb```python\n2\n```\n";
    assert_eq!(read(&python(), two), block("a", "1", 1));
    let json = ToolBlock::new("interpreter").between("```python\n", "\n```\n").json();
    let mut refused = block("a", "{\"name\":", -1);
    refused["flaw"] = "EOF while parsing a value at line 1 column 8".into();
    assert_eq!(read(&json, "a```python\n{\"name\":\n```\n"), refused);
    assert_eq!(read(&json, "```python\n{\"name\": 1}")["action"], json!({"name": 1}));
}

#[test]
fn of_several_kinds_the_first_that_is_there_is_read() {
    let plugin =
        ToolBlock::new("plugin").between("<plugin>", "</plugin>").json().instructions("Call plugins so.");
    let mixed = ToolBlocks::new([plugin, python()]).instructions("Two forms:");
    assert_eq!(mixed.instruction(), "Two forms:\n\nCall plugins so.");
    assert_eq!(read(&mixed, "x```python\n1")["tool_type"], "interpreter");
    assert_eq!(read(&mixed, r#"<plugin>{"name": "a"}</plugin>"#)["action"]["name"], "a");
    assert_eq!(read(&mixed, "nothing")["status"], 0);
}

/// Z11, C11: what is filled in is never a field.
#[test]
fn unknown_placeholders_in_braces_stay_text() {
    let template =
        Template::new(r#"{role}, {task}: {"k": 1} {}"#, &[("role", "{task}"), ("task", "{a} {b}")]).unwrap();
    assert_eq!(template.as_str(), r#"{task}, {a} {b}: {"k": 1} {}"#);
    assert!(Template::new("{gone}", &[]).unwrap_err().to_string().contains("unknown field `gone`"));
}

/// L27, L28: read again in a tool-aware way; L11: its end is a stop word this once.
#[tokio::test]
async fn blocks_are_sent_back_whole_and_refused_ones_not_at_all() {
    let replies = r#"[{"bot": "Hm.\n```python\n{\"a\": 1}"}, {"bot": "```python\nbad"}, {"bot": "done"}]"#;
    for (restores, expected) in [
        (true, vec!["user: x", "assistant: Hm.\n```python\n{\"a\":1}\n```\n", "user: y", "user: z"]),
        (
            false,
            vec![
                "user: x",
                "assistant: Hm.\n```python\n{\"a\": 1}",
                "user: y",
                "assistant: ```python\nbad",
                "user: z",
            ],
        ),
    ] {
        let spy = Spy::on(script(replies));
        let block = if restores { python().json().restore() } else { python().json() };
        let bot = Parsed::new(agent("bot", &spy.model()), block.instructions("Write Python."));
        let session = session().await;
        let first = session.call(&bot, "x").await.unwrap();
        assert_eq!(value(&first).unwrap()["status"], 1);
        assert_eq!(first.text(), "Hm.\n```python\n{\"a\": 1}");
        let second = session.call(&bot, "y").await.unwrap();
        assert_eq!(ParsedBlock::from_message(&second).unwrap().status, -1);
        session.call(&bot, "z").await.unwrap();
        assert_eq!(texts(&spy.asked()[2].entries), expected);
        assert!(spy.asked()[2].entries.iter().all(|entry| entry.parts().len() == 1));
        assert_eq!(spy.asked()[2].system.as_deref(), Some("I am bot.\n\nWrite Python."));
    }
}

/// L11: an agent with a parser has other settings for one call, too, and remembers the same.
#[tokio::test]
async fn a_parsed_agent_has_other_stop_words_for_one_call() {
    let spy = Spy::on(script(r#"[{"bot": "```python\n1\n```\nand more"}, {"bot": "x```python\n2\n```\n"}]"#));
    let bot = Parsed::new(agent("bot", &spy.model()), python());
    let stop = polylogue_core::Params { stop: vec!["```python".into()], ..Default::default() };
    let session = session().await;
    let first = session.call(&bot, "a").await.unwrap();
    assert_eq!(ParsedBlock::from_message(&first).unwrap().action, "1");
    let second = session.call(&bot.clone().with(|agent| agent.params(stop.clone())), "b").await.unwrap();
    assert_eq!((second.text().into_owned(), ParsedBlock::calls(&second)), ("x".into(), None));
    let stops: Vec<_> = spy.asked().into_iter().map(|asked| asked.params.stop).collect();
    assert_eq!(stops, [vec![], stop.stop]);
    assert_eq!(session.state(&bot).await.unwrap().get("memory").unwrap().len(), 4);
}

struct Number;

impl Parser for Number {
    fn parse(&self, text: &str) -> Result<Option<Value>, String> {
        text.trim()
            .parse::<i64>()
            .map(|number| Some(json!(number)))
            .map_err(|_| format!("`{text}` is not a number."))
    }
}

#[tokio::test]
async fn a_custom_parser_can_request_a_retry() {
    let spy = Spy::on(script(r#"[{"bot": "many"}, {"bot": "7"}, {"bot": "few"}]"#));
    let bot = Parsed::new(agent("bot", &spy.model()), Number);
    let session = session().await;
    let reply = session.call(&bot.clone().retries(1), "How many?").await.unwrap();
    assert_eq!(value(&reply), Some(&json!(7)));
    assert_eq!(texts(&spy.asked()[1].entries)[2], "user: `many` is not a number. Write it again.");
    let error = session.call(&bot, "How many?").await.unwrap_err().to_string();
    assert!(error.contains("what `bot` wrote cannot be read: `few` is not a number"), "{error}");
}

/// Runs nothing, and repeats its input; fails on request.
fn runner() -> ActionExecutor {
    let spec = ToolSpec::new("python", "Runs Python.", json!({"type": "object"}));
    let python = tool_of(spec, |args| match args["code"].as_str() {
        Some("fail") => Err(ToolError("it broke".into())),
        _ => Ok(ToolResult::done(format!("ran {args}"))),
    });
    ActionExecutor::new("runner").unwrap().tool_for("interpreter", python)
}

async fn run(block: Value) -> String {
    let message = Message { parts: vec![Part::text("x"), Part::Data(block)], ..Message::from("") };
    let session = session().await;
    session.call(&runner(), message).await.unwrap().text().into_owned()
}

/// L32, L33, L34, L36, L37.
#[tokio::test]
async fn only_what_was_read_is_run() {
    let block = |action: Value, status: i8| json!({"tool_type": "interpreter", "thought": "", "action": action, "status": status});
    assert_eq!(run(block(json!("print(1)"), 1)).await, r#"ran {"code":"print(1)"}"#);
    assert_eq!(run(block(json!("fail"), 1)).await, "it broke");
    assert!(run(block(json!("rm -rf"), -1)).await.contains("was not run"));
    assert_eq!(run(block(json!({"name": "python", "parameters": {"a": 1}}), 1)).await, r#"ran {"a":1}"#);
    for gone in ["search", "python.description", "python.__init__", "A.B.C"] {
        let said = run(block(json!({"name": gone, "parameters": {}}), 1)).await;
        assert!(said.contains(&format!("There is no tool `{gone}`")), "{said}");
    }
    assert!(
        run(block(json!({"name": "python", "parameters": 3}), 1)).await.contains("must be a JSON object")
    );
    assert_eq!(run(json!(3)).await, "There is nothing to run.");
}

#[derive(Clone)]
struct Coder {
    name: Name,
    agent: Parsed,
    runner: AnyAgent,
    max_turn: usize,
}

impl Agent for Coder {
    fn name(&self) -> &Name {
        &self.name
    }
    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let mut message = turn.message();
        for _ in 0..self.max_turn {
            message = turn.ask(&self.agent, message).await?;
            if ParsedBlock::calls(&message).is_none() {
                break;
            }
            message = turn.ask(&self.runner, message).await?;
        }
        Ok(Act::Say(message.parts))
    }
}

/// L38.
#[tokio::test]
async fn a_coder_runs_code_until_it_writes_none() {
    let spy = Spy::on(script(
        r#"[{"agent": "```python\n1"}, {"agent": "It is 1."}, {"agent": "```python\n2"}, {"agent": "```python\n3"}]"#,
    ));
    let coder = Coder {
        name: name("coder"),
        agent: Parsed::new(agent("agent", &spy.model()), python()),
        runner: AnyAgent::new(runner()),
        max_turn: 2,
    };
    let session = session().await;
    assert_eq!(session.call(&coder, "go").await.unwrap().text(), "It is 1.");
    assert_eq!(texts(&spy.asked()[1].entries)[2], r#"user: ran {"code":"1"}"#);
    // Exhausted: the last message, after exactly as many model calls.
    assert_eq!(session.call(&coder, "more").await.unwrap().text(), r#"ran {"code":"3"}"#);
    assert_eq!(spy.asked().len(), 4);
}
