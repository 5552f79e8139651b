//! Any request and any reply is replayed as it was recorded.

use std::sync::Arc;

use polylogue_core::{
    Delta, Entry, FinishReason, Media, ModelError, ModelErrorKind, Name, Params, Part, Path, Reply, ToolCall,
    ToolResult, ToolSpec, Usage,
};
use polylogue_models::{Cassette, Recorder, Recording};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Answer, Asked, Fake, Fresh};

fn a_text() -> impl Strategy<Value = Arc<str>> {
    prop_oneof![".{0,20}", "[ \n\r\t\u{2028}\"\\\\]{0,5}"].prop_map(Arc::from)
}

fn a_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        a_text().prop_map(|text| Value::from(&*text)),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(".{0,5}", inner, 0..3).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn a_part() -> impl Strategy<Value = Part> {
    let call = (".{1,8}", "[a-z]{1,8}", a_value()).prop_map(|(id, tool, args)| ToolCall { id, tool, args });
    let media = (".{1,8}", a_text()).prop_map(|(kind, url)| Media { media_type: kind, url: (&*url).into() });
    prop_oneof![
        a_text().prop_map(Part::Text),
        a_text().prop_map(Part::Thought),
        a_value().prop_map(Part::Data),
        call.prop_map(Part::ToolCall),
        media.prop_map(Part::Media),
    ]
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    prop::collection::vec(a_part(), 0..3)
}

fn an_entry() -> impl Strategy<Value = Entry> {
    let outcome = prop_oneof![
        Just(ToolResult::unknown()),
        a_text().prop_map(ToolResult::failed),
        parts().prop_map(|parts| ToolResult { parts, ..ToolResult::done("") }),
    ];
    prop_oneof![
        parts().prop_map(|parts| Entry::User { parts }),
        parts().prop_map(Entry::own),
        (".{1,8}", "[a-z]{1,8}", outcome).prop_map(|(id, tool, outcome)| Entry::Tool {
            id,
            tool,
            result: outcome
        }),
    ]
}

prop_compose! {
    fn some_params()(
        (temperature, top_p) in any::<(Option<f64>, Option<f64>)>(),
        (top_k, seed, max_tokens) in any::<(Option<u32>, Option<i64>, Option<u32>)>(),
        stop in any::<Vec<String>>(),
        schema in prop::option::of(a_value()),
        json: bool,
        extra in prop::collection::btree_map(".{0,5}", a_value(), 0..3),
    ) -> Params {
        let extra = extra.into_iter().collect();
        Params { temperature, top_p, top_k, seed, max_tokens, stop, schema, json, extra, ..Params::default() }
    }
}

prop_compose! {
    fn a_tool()(name in "[a-z]{1,8}", description in ".{0,20}", parameters in a_value(), repeatable: bool) -> ToolSpec {
        ToolSpec { repeatable, ..ToolSpec::new(name, description, parameters) }
    }
}

prop_compose! {
    fn a_request()(
        who in prop::sample::select(vec!["A", "B", "Köchin"]),
        inner: bool,
        nth in 0..3_u64,
        system in any::<Option<String>>(),
        entries in prop::collection::vec(an_entry(), 0..5),
        tools in prop::collection::vec(a_tool(), 0..2),
        params in some_params(),
    ) -> Asked {
        let who = Name::new(who).unwrap();
        let at = if inner { Path::root().child(&who, 2) } else { Path::root() };
        Asked { at, who, nth, system, entries, tools, params }
    }
}

fn a_piece() -> impl Strategy<Value = Delta> {
    let call = (0..3_usize, any::<Option<String>>(), any::<String>());
    prop_oneof![
        any::<String>().prop_map(Delta::Text),
        any::<String>().prop_map(Delta::Thought),
        call.prop_map(|(index, tool, args)| Delta::Call { index, tool, args }),
        Just(Delta::Restart),
    ]
}

prop_compose! {
    fn a_reply()(
        parts in parts(),
        finish in prop::sample::select(vec![
            FinishReason::Stop, FinishReason::Calls, FinishReason::Length, FinishReason::Filter, FinishReason::Unknown,
        ]),
        (input, output, cached, reasoning) in any::<(Option<u64>, Option<u64>, Option<u64>, Option<u64>)>(),
    ) -> Reply {
        Reply { parts, finish, usage: Usage { input, output, cached, reasoning, ..Usage::default() }, cached: false, verbatim: None, answered_by: None }
    }
}

prop_compose! {
    fn an_error()(
        kind in prop::sample::select(vec![
            ModelErrorKind::Config, ModelErrorKind::Connection, ModelErrorKind::Timeout, ModelErrorKind::Unavailable,
            ModelErrorKind::InvalidReply, ModelErrorKind::Script, ModelErrorKind::Bug,
        ]),
        (model, message) in any::<(String, String)>(),
        (status, body, hint) in any::<(Option<u16>, Option<String>, Option<String>)>(),
    ) -> ModelError {
        ModelError { status, body, hint, ..ModelError::new(kind, model, message) }
    }
}

fn an_answer() -> impl Strategy<Value = Answer> {
    let result = prop_oneof![3 => a_reply().prop_map(Ok), 1 => an_error().prop_map(Err)];
    (prop::collection::vec(a_piece(), 0..4), result)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_run_is_replayed_as_it_was_recorded(
        calls in prop::collection::vec((a_request(), an_answer()), 1..6),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let file = Fresh::new();
        let answers: Vec<_> = calls.iter().map(|(_, answer)| answer.clone()).collect();
        let fake = Fake { price: None, ..Fake::new(answers) };
        let model = Recorder::new(fake, &Cassette::create(&file).unwrap());
        runtime.block_on(async {
            for (asked, (pieces, result)) in &calls {
                assert_eq!(asked.received(&model).await, (result.clone(), pieces.clone()));
            }
            let recording = Recording::open(&file).unwrap();
            let replayer = recording.model("fake:model");
            for (asked, (pieces, result)) in &calls {
                assert_eq!(asked.received(&replayer).await, (result.clone(), pieces.clone()));
            }
            assert!(recording.unplayed().is_empty());
        });
    }

    #[test]
    fn any_bytes_are_a_cassette_or_not(bytes in prop::collection::vec(any::<u8>(), 0..200), headed: bool) {
        let file = Fresh::new();
        let header = if headed { &b"{\"polylogue_cassette\":1}\n"[..] } else { &[] };
        std::fs::write(&file, [header, &bytes].concat()).unwrap();
        let _ = Recording::open(&file);
    }
}

#[test]
fn a_temperature_that_is_no_number_is_replayed() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let file = Fresh::new();
    let model = Recorder::new(Fake::saying(&["one"]), &Cassette::create(&file).unwrap());
    let mut asked = Asked::new("A", 0);
    asked.params.temperature = Some(f64::NAN);
    asked.params.extra.insert("limit".into(), json!(1e300));
    let recorded = runtime.block_on(asked.of(&model)).unwrap();
    let replayer = Recording::open(&file).unwrap().model("fake:model");
    assert_eq!(runtime.block_on(asked.of(&replayer)).unwrap(), recorded);
}
