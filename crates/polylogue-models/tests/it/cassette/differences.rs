//! A request that differs from the recorded one is refused, and the first difference is named.

use polylogue_core::{Entry, ModelErrorKind, Part};
use polylogue_models::{Cassette, Recorder, Recording};
use serde_json::json;

use super::{Asked, Fake, Fresh, tool, tool_entries};

/// Records `Asked::new("A", 1)` with a tool call in it, asks for it after `change`, and compares what is said of it.
async fn check(change: impl Fn(&mut Asked), difference: &str) {
    let file = Fresh::new();
    let model = Recorder::new(Fake::saying(&["one"]), &Cassette::create(&file).unwrap());
    let mut asked = Asked::new("A", 1);
    asked.entries.splice(1..1, tool_entries());
    asked.of(&model).await.unwrap();

    let replayer = Recording::open(&file).unwrap().model("fake:model");
    asked.of(&replayer).await.unwrap();
    change(&mut asked);
    let error = asked.of(&replayer).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Script);
    let said = error.message.strip_prefix("call 2 of `A` is not the recorded one: ").expect(&error.message);
    assert_eq!(said, difference);
}

#[tokio::test]
async fn a_difference_in_the_system_text_is_named() {
    check(
        |asked| asked.system = Some("You are B.".into()),
        "`system` differs at character 9: it was `You are A.`, and is `You are B.`",
    )
    .await;
    check(|asked| asked.system = None, "`system` was `You are A.`, and is not given").await;
}

#[tokio::test]
async fn a_difference_in_the_tools_is_named() {
    check(
        |asked| asked.tools[0].name = "seek".into(),
        "`tools[0].name` differs at character 3: it was `search`, and is `seek`",
    )
    .await;
    check(
        |asked| asked.tools[0].parameters["properties"]["q"] = json!(7),
        "`tools[0].parameters.properties.q` was `{\"type\":\"string\"}`, and is `7`",
    )
    .await;
    check(
        |asked| asked.tools.push(tool("more")),
        "`tools` had 1 item, and has 2; the first without a counterpart is `{\"name\":\"more\",\"description\":\"Searches\",\"parameters\":{\"type\":\"object\",\"propertie…`",
    )
    .await;
}

#[tokio::test]
async fn a_difference_in_each_parameter_is_named() {
    check(|asked| asked.params.temperature = Some(0.2), "`params.temperature` was not given, and is `0.2`")
        .await;
    check(|asked| asked.params.top_p = Some(0.9), "`params.top_p` was not given, and is `0.9`").await;
    check(|asked| asked.params.top_k = Some(40), "`params.top_k` was not given, and is `40`").await;
    check(|asked| asked.params.seed = Some(-1), "`params.seed` was not given, and is `-1`").await;
    check(|asked| asked.params.max_tokens = Some(8), "`params.max_tokens` was not given, and is `8`").await;
    check(|asked| asked.params.stop = vec!["X".into()], "`params.stop` was not given, and is `[\"X\"]`")
        .await;
    check(|asked| asked.params.schema = Some(json!({})), "`params.schema` was not given, and is `{}`").await;
    let extra = |asked: &mut Asked| drop(asked.params.extra.insert("a".into(), json!(1)));
    check(extra, "`params.extra` was not given, and is `{\"a\":1}`").await;
}

#[tokio::test]
async fn a_difference_in_the_entries_is_named() {
    check(
        |asked| asked.entries[0] = Entry::user("question O"),
        "`entries[0].parts[0].text` differs at character 10: it was `question 0`, and is `question O`",
    )
    .await;
    check(
        |asked| asked.entries[0] = Entry::assistant("question 0"),
        "`entries[0].role` differs at character 1: it was `user`, and is `assistant`",
    )
    .await;
    check(
        |asked| {
            let Entry::Assistant { parts, .. } = &mut asked.entries[1] else { unreachable!() };
            let Part::ToolCall(call) = &mut parts[0] else { unreachable!() };
            call.args = json!({"q": "y"});
        },
        "`entries[1].parts[0].call.args.q` differs at character 1: it was `x`, and is `y`",
    )
    .await;
    check(
        |asked| {
            let Entry::Tool { result: outcome, .. } = &mut asked.entries[2] else { unreachable!() };
            *outcome = polylogue_core::ToolResult::failed("found");
        },
        "`entries[2].result.status` differs at character 1: it was `done`, and is `failed`",
    )
    .await;
    check(
        |asked| asked.entries.push(Entry::user("more")),
        "`entries` had 5 items, and has 6; the first without a counterpart is `{\"role\":\"user\",\"parts\":[{\"text\":\"more\"}]}`",
    )
    .await;
    check(
        |asked| drop(asked.entries.pop()),
        "`entries` had 5 items, and has 4; the first without a counterpart was `{\"role\":\"user\",\"parts\":[{\"text\":\"question 1\"}]}`",
    )
    .await;
}

#[tokio::test]
async fn a_difference_in_the_model_is_named() {
    let file = Fresh::new();
    let model = Recorder::new(Fake::saying(&["one"]), &Cassette::create(&file).unwrap());
    Asked::new("A", 0).of(&model).await.unwrap();
    let replayer = Recording::open(&file).unwrap().model("fake:larger");
    let error = Asked::new("A", 0).of(&replayer).await.unwrap_err();
    let difference = "`model` differs at character 6: it was `fake:model`, and is `fake:larger`";
    assert!(error.message.ends_with(difference), "{error}");
}

#[tokio::test]
async fn long_texts_are_shown_around_the_difference_and_white_space_is_visible() {
    let file = Fresh::new();
    let model = Recorder::new(Fake::saying(&["one"]), &Cassette::create(&file).unwrap());
    let mut asked = Asked::new("A", 0);
    let text = |end: &str| Entry::user(format!("{}the quick brown{end}{}", "ä".repeat(500), "z".repeat(500)));
    asked.entries = vec![text("\n")];
    asked.of(&model).await.unwrap();
    let replayer = Recording::open(&file).unwrap().model("fake:model");
    asked.entries = vec![text(" ")];
    let said = asked.of(&replayer).await.unwrap_err().message;
    let zs = "z".repeat(23);
    assert!(
        said.ends_with(&format!(
            "differs at character 516: it was `…äääääääääthe quick brown\\n{zs}…`, and is `…äääääääääthe quick brown {zs}…`"
        )),
        "{said}"
    );
}
