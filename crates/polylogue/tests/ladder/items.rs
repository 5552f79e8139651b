//! Which test shows which of the items 55 to 68. No item is missing, and no test that is named here. The items of talks, and of
//! tools in them, are in `tests/yacana/items.rs`.

/// Item, and the tests that show it: `module::test`.
const ITEMS: &[(u8, &[&str])] = &[
    // One tool.
    (
        55,
        &[
            "one::a_turn_with_a_tool_leaves_five_messages",
            "one::the_partner_reads_what_the_tool_returned_and_the_talk_is_forgotten",
        ],
    ),
    (56, &["one::the_partner_reads_what_the_tool_returned_and_the_talk_is_forgotten"]),
    (58, &["one::a_mandatory_tool_takes_three_requests", "one::the_talk_about_a_tool"]),
    (59, &["one::an_optional_tool_may_be_refused", "one::what_is_neither_yes_nor_no_is_asked_for_once_more"]),
    (60, &["one::examples_are_read_and_forgotten"]),
    (61, &["one::what_a_tool_refuses_is_corrected"]),
    (
        62,
        &[
            "one::errors_have_limits_that_are_counted_apart",
            "one::arguments_that_do_not_fit_are_reported_with_their_format",
        ],
    ),
    (63, &["one::what_is_no_json_is_asked_for_again"]),
    (
        64,
        &[
            "one::a_tool_that_returns_nothing_is_said_to_have_succeeded",
            "several::when_no_tool_returned_anything_that_is_the_answer",
        ],
    ),
    (65, &["one::a_tool_that_breaks_down_breaks_nothing_else"]),
    (66, &["one::a_tool_keeps_its_state_from_turn_to_turn"]),
    // Several.
    (
        67,
        &[
            "several::the_talk_about_several_tools_in_the_documents_form",
            "several::calls_are_made_as_long_as_the_model_wants_another",
            "several::when_no_tool_helps_none_is_used",
        ],
    ),
    (68, &["several::a_choice_is_one_exact_name", "several::five_bad_choices_are_enough"]),
];

const MODULES: &[(&str, &str)] = &[("one", include_str!("one.rs")), ("several", include_str!("several.rs"))];

fn source(module: &str) -> &'static str {
    MODULES.iter().find(|(name, _)| *name == module).unwrap_or_else(|| panic!("no module {module}")).1
}

#[test]
fn every_item_has_a_test() {
    // What a tool does in the answer to a task, item 57, takes a talk.
    let wanted: Vec<u8> = (55..=68).filter(|item| *item != 57).collect();
    let shown: Vec<u8> = ITEMS.iter().map(|(item, _)| *item).collect();
    assert_eq!(shown, wanted);
    for test in ITEMS.iter().flat_map(|(_, tests)| *tests) {
        let (module, test) = test.split_once("::").unwrap();
        assert!(source(module).contains(&format!("fn {test}() {{")), "{module} has no `{test}`");
    }
}
