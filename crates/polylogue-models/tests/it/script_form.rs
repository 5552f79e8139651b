//! How scripts are written and read.

use polylogue_core::{FinishReason, Name, Usage};
use polylogue_models::{Expectation, Script, ScriptCall, ScriptError, ScriptStep};
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn a_script_reads_and_writes_the_form_of_team_files() {
    let yaml = r#"
- Trader: "Instruction: read"
- Programmer: {calls: [{tool: get_history, args: {limit: 2}}], delay_ms: 400}
- Programmer:
    think: hm
    say: |
      Solution: done.
      Next request.
    pace: 30
    expect: {last: get, tools: []}
    usage: {input: 100, output: 20}
    finish: stop
- Trader: {error: {status: 503, message: overloaded}}
"#;
    let script: Script = serde_saphyr::from_str(yaml).unwrap();
    let written = json!([
        {"Trader": "Instruction: read"},
        {"Programmer": {"calls": [{"tool": "get_history", "args": {"limit": 2}}], "delay_ms": 400}},
        {"Programmer": {
            "think": "hm",
            "say": "Solution: done.\nNext request.\n",
            "pace": 30.0,
            "expect": {"last": "get", "tools": []},
            "usage": {"input": 100, "output": 20},
            "finish": "stop",
        }},
        {"Trader": {"error": {"status": 503, "message": "overloaded"}}},
    ]);
    assert_eq!(serde_json::to_value(&script).unwrap(), written);
    assert_eq!(serde_json::from_value::<Script>(written).unwrap(), script);
}

#[test]
fn what_is_no_step_is_refused_with_a_clear_message() {
    for (bad, why) in [
        (r#"[{}]"#, "the step names no agent; write `- Agent: text`"),
        (r#"["hello"]"#, "expected a step, which is a mapping of one key: the agent's name"),
        (r#"[{"A": "x", "say": "y"}]"#, "the step has two keys, `A` and `say`"),
        (r#"[{"A: B": "x"}]"#, "the name `A: B` has characters other than"),
        (r#"[{"A": 42}]"#, "invalid type: integer `42`, expected a text, or a mapping with `say`"),
        (r#"[{"A": null}]"#, "invalid type: null, expected a text, or a mapping with `say`"),
        (r#"[{"A": {}}]"#, "the step does nothing; give it `say`, `think`, `calls` or `error`"),
        (r#"[{"A": {"said": "x"}}]"#, "unknown field `said`, expected one of `say`, `think`, `calls`"),
        (r#"[{"A": {"calls": [{"tool": "t", "arg": 1}]}}]"#, "unknown field `arg`"),
        (r#"[{"A": {"calls": [{}]}}]"#, "missing field `tool`"),
        (r#"[{"A": {"say": "x", "usage": {"in": 1}}}]"#, "unknown field `in`"),
        (r#"[{"A": {"say": "x", "expect": {"first": "y"}}}]"#, "unknown field `first`"),
        (r#"[{"A": {"error": {"status": 500}}}]"#, "missing field `message`"),
        (r#"[{"A": {"say": "x", "pace": -1}}]"#, "`pace` is a number of words per second, from 0"),
        (r#"[{"A": {"say": "x", "delay_ms": -1}}]"#, "invalid value: integer `-1`"),
        (r#"[{"A": {"say": "x", "finish": "done"}}]"#, "unknown variant `done`"),
    ] {
        let error = serde_json::from_str::<Script>(bad).unwrap_err().to_string();
        assert!(error.contains(why), "{bad}: {error}");
    }
}

prop_compose! {
    fn a_call()(tool in "[a-z_]{1,8}", limit in any::<Option<i64>>(), id in any::<Option<String>>()) -> ScriptCall {
        let args = limit.map_or(Value::String("broken {".into()), |limit| json!({"limit": limit}));
        ScriptCall { tool, args, id }
    }
}

prop_compose! {
    fn an_expectation()(
        last in any::<Option<String>>(),
        system in any::<Option<String>>(),
        tools in any::<Option<Vec<String>>>(),
    ) -> Expectation {
        Expectation { last, system, tools }
    }
}

prop_compose! {
    fn a_step()(
        who in "[A-Za-zäöü][A-Za-z0-9_-]{0,10}",
        say in any::<String>(),
        think in any::<Option<String>>(),
        calls in prop::collection::vec(a_call(), 0..3),
        delay_ms in any::<u64>(),
        pace in prop::option::of(0.0..1e9),
        error in any::<Option<(Option<u16>, String)>>(),
        expect in prop::option::of(an_expectation()),
        (input, output) in any::<(Option<u64>, Option<u64>)>(),
        finish in prop::option::of(prop::sample::select(vec![FinishReason::Stop, FinishReason::Length, FinishReason::Unknown])),
    ) -> ScriptStep {
        let error = error.map(|(status, message)| ScriptError { status, message });
        let usage = Usage { input, output, ..Usage::default() };
        let think = think.map(Into::into);
        let step = ScriptStep::say(Name::new(who).unwrap(), say);
        ScriptStep { think, calls, delay_ms, pace, error, expect, usage, finish, ..step }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_script_is_read_as_it_was_written(steps in prop::collection::vec(a_step(), 0..6)) {
        let script = Script::new(steps);
        let json = serde_json::to_string(&script).unwrap();
        prop_assert_eq!(serde_json::from_str::<Script>(&json).unwrap(), script);
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".*") {
        let _ = serde_json::from_str::<Script>(&text);
    }
}
