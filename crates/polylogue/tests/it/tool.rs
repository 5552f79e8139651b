//! Tools made of functions and methods.

use std::sync::atomic::{AtomicU64, Ordering};

use polylogue::tools::FunctionTool;
use polylogue::{AnyModel, Assistant, Chat, Tool, sequential, tool, toolkit};
use polylogue_core::{AnyTool, Body, Part, ToolCx, ToolResult, ToolStatus};
use polylogue_models::Script;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// An address.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Address {
    /// The town
    town: String,
    number: Option<u32>,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Speed {
    Slow,
    Fast,
}

/// Sends a parcel.
///
/// It arrives
///   some day.
#[tool]
async fn send(
    /// Where to
    to: Vec<Address>,
    /// How
    #[default(Speed::Slow)]
    speed: Speed,
    #[default("none")] note: String,
    weight: Option<f64>,
) -> Result<Value, String> {
    if to.is_empty() {
        return Err("There is no address.".into());
    }
    Ok(json!({"to": to, "speed": speed, "note": note, "weight": weight}))
}

#[tool(name = "who-am-I", description = "Tells who asks.", repeatable, ends_turn)]
fn who(cx: &ToolCx<'_>) -> String {
    format!("{} asks", cx.who)
}

/// Does nothing.
#[tool]
fn nothing() {}

/// Works it out.
#[tool]
fn length(text: String) -> usize {
    text.chars().count()
}

/// Looks for a file.
#[tool]
fn open(path: String) -> std::io::Result<()> {
    std::fs::File::open(path).map(drop)
}

/// The outcome of a call in a chat, made by a model.
async fn called(tool: impl Tool, args: Value) -> ToolResult {
    let name = tool.spec().name.clone();
    let script = json!([{"Ann": {"calls": [{"tool": name, "args": args}]}}, {"Ann": "done"}]);
    let script: Script = serde_json::from_value(script).unwrap();
    let agent = Assistant::new("Ann", AnyModel::new(script.model("test"))).unwrap().tool(tool);
    let chat = Chat::builder("solo").participant(agent).policy(sequential()).build().unwrap();
    let run = chat.run("go").await.unwrap();
    let returned = run.events().iter().find_map(|event| match &event.body {
        Body::ToolReturned { result: outcome, .. } => Some(outcome.clone()),
        _ => None,
    });
    returned.unwrap()
}

fn text(outcome: &ToolResult) -> String {
    assert_eq!(outcome.parts.len(), 1, "{outcome:?}");
    match &outcome.parts[0] {
        Part::Text(text) => text.to_string(),
        Part::Data(value) => value.to_string(),
        other => panic!("{other:?}"),
    }
}

// Item 52 of the list of Lagent.
#[test]
fn a_function_has_all_that_a_model_receives() {
    let spec = send.spec();
    assert_eq!((&*spec.name, &*spec.description), ("send", "Sends a parcel.\n\nIt arrives\n  some day."));
    let schema = json!({
        "type": "object",
        "properties": {
            "to": {
                "type": "array",
                "description": "Where to",
                "items": {
                    "type": "object",
                    "description": "An address.",
                    "properties": {
                        "town": {"type": "string", "description": "The town"},
                        "number": {"type": ["integer", "null"], "format": "uint32", "minimum": 0},
                    },
                    "required": ["town"],
                },
            },
            "speed": {"type": "string", "enum": ["slow", "fast"], "description": "How", "default": "slow"},
            "note": {"type": "string", "default": "none"},
            "weight": {"type": ["number", "null"], "format": "double"},
        },
        "required": ["to"],
        "additionalProperties": false,
    });
    assert_eq!(spec.parameters, schema);
    assert!(!spec.repeatable && !spec.ends_turn);
    let spec = who.spec();
    assert_eq!((&*spec.name, &*spec.description), ("who-am-I", "Tells who asks."));
    assert_eq!(spec.parameters["properties"], json!({}), "what it receives of the call is not an argument");
    assert!(spec.repeatable && spec.ends_turn);
}

#[tokio::test]
async fn an_omitted_argument_has_its_default() {
    let outcome = called(send, json!({"to": [{"town": "Ulm"}], "weight": 2.5})).await;
    let sent = r#"{"to":[{"town":"Ulm","number":null}],"speed":"slow","note":"none","weight":2.5}"#;
    assert_eq!(
        serde_json::from_str::<Value>(&text(&outcome)).unwrap(),
        serde_json::from_str::<Value>(sent).unwrap()
    );
    let outcome = called(send, json!({"to": [{"town": "Ulm"}], "speed": "fast", "note": "!"})).await;
    assert!(text(&outcome).contains(r#""speed":"fast""#) && text(&outcome).contains(r#""note":"!""#));
}

#[tokio::test]
async fn a_returned_text_is_unchanged() {
    assert_eq!(text(&called(who, json!({})).await), "Ann asks");
    assert_eq!(text(&called(length, json!({"text": "äöü"})).await), "3");
    assert!(called(nothing, json!({})).await.parts.is_empty());
    assert_eq!(length::run("abc".into()), 3, "the function can be called");
}

// Item 33 of the list of Lagent.
#[tokio::test]
async fn wrong_arguments_and_errors_are_reported_and_the_conversation_continues() {
    let cases = [
        (json!({"to": []}), "There is no address."),
        (json!({}), "missing field `to`"),
        (json!({"to": [], "wieght": 1}), "unknown field `wieght`"),
        (json!({"to": "Ulm"}), "expected a sequence"),
        (json!({"to": [], "speed": "medium"}), "unknown variant `medium`, expected `slow` or `fast`"),
    ];
    for (args, expected) in cases {
        let outcome = called(send, args.clone()).await;
        assert_ne!(outcome.status, ToolStatus::Done, "{args}");
        assert!(text(&outcome).contains(expected), "{args}: {}", text(&outcome));
    }
    let outcome = called(open, json!({"path": "/no/such/file"})).await;
    assert!(text(&outcome).contains("No such file"), "{outcome:?}");
}

struct Counter {
    by: u64,
    calls: AtomicU64,
}

#[toolkit(prefix = "count_")]
impl Counter {
    fn new(by: u64) -> Self {
        Self { by, calls: AtomicU64::new(0) }
    }

    /// Counts on.
    #[tool]
    async fn on(&self, from: u64) -> u64 {
        self.calls.fetch_add(1, Ordering::Relaxed);
        from + self.by
    }

    /// Counts back.
    #[polylogue::tool(name = "back", repeatable)]
    fn reverse(&self, from: u64) -> Result<u64, String> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        from.checked_sub(self.by).ok_or_else(|| "There is nothing below zero.".to_owned())
    }

    /// How often it was called.
    #[tool]
    fn calls(&self, cx: &ToolCx<'_>) -> String {
        format!("{} for {}", self.calls.load(Ordering::Relaxed), cx.who)
    }
}

#[tokio::test]
async fn the_tools_of_a_toolkit_share_it() {
    let tools = Counter::new(3).tools();
    let names: Vec<&str> = tools.iter().map(|tool| tool.spec().name.as_str()).collect();
    assert_eq!(names, ["count_on", "count_back", "count_calls"]);
    let [on, back, calls] = <[AnyTool; 3]>::try_from(tools).unwrap();
    assert!(back.spec().repeatable && !on.spec().repeatable);
    assert_eq!(text(&called(on, json!({"from": 4})).await), "7");
    assert_eq!(text(&called(back, json!({"from": 2})).await), "There is nothing below zero.");
    assert_eq!(text(&called(calls, json!({})).await), "2 for Ann");
}

struct Kinds {
    of: &'static str,
}

#[toolkit(prefix = "kind_")]
impl Kinds {
    /// Tells the kind.
    #[tool]
    fn r#type(&self, r#in: String) -> String {
        format!("{} in {}", self.of, r#in)
    }
}

#[tokio::test]
async fn a_keyword_is_a_name_like_any_other() {
    let [kind] = <[AnyTool; 1]>::try_from(Kinds { of: "tea" }.tools()).unwrap();
    assert_eq!(kind.spec().name, "kind_type");
    assert_eq!(text(&called(kind, json!({"in": "Ulm"})).await), "tea in Ulm");
}

// Item 65 of the list of LazyLLM. One without a description does not compile: see `polylogue::tool`. Of two with one
// name the later counts, so that an agent can be given its own instead of one of a toolkit; LazyLLM refuses them.
#[test]
fn of_two_tools_of_one_name_the_later_counts() {
    let model = AnyModel::new(Script::default().model("test"));
    let own = FunctionTool::new("count_on", "Counts on, in its own way.", async |_: ()| Ok(()));
    let agent = Assistant::new("Ann", model).unwrap().tools(Counter::new(3).tools()).tool(own);
    let shown: Vec<&str> = agent.specs().iter().map(|spec| &*spec.description).collect();
    assert_eq!(shown, ["Counts back.", "How often it was called.", "Counts on, in its own way."]);
}
