//! Which test shows which item of the list. No item is missing, and no test that is named here.

/// Item, and the tests that show it: `module::test`.
const ITEMS: &[(u8, &[&str])] = &[
    // Two agents and what each receives.
    (1, &["histories::two_plain_tasks_and_one_iteration"]),
    (2, &["talk::the_default_is_five_iterations", "histories::amusement_park"]),
    (3, &["histories::amusement_park_with_ten_iterations"]),
    (4, &["talk::an_answer_is_sent_byte_for_byte", "histories::amusement_park_with_ten_iterations"]),
    (5, &["talk::the_last_answer_is_sent_to_no_agent"]),
    (6, &["openings::the_second_receives_the_answer_of_the_first_and_neither_knows_the_others_task"]),
    (7, &["openings::the_first_can_receive_the_answer_of_the_second", "variants::the_first_agent_begins"]),
    (8, &["openings::the_first_message_can_be_any_text", "variants::the_first_message_is_given"]),
    (9, &["openings::the_first_message_can_be_any_text_for_the_first_agent"]),
    (10, &["talk::earlier_tasks_of_both_stay_in_front", "openings::system_texts_stay_in_front"]),
    (11, &["openings::the_second_receives_the_answer_of_the_first_and_neither_knows_the_others_task"]),
    (12, &["openings::reconciled_first_messages_are_known_to_both_as_their_own"]),
    (13, &["openings::reconciled_first_messages_are_known_to_both_as_their_own"]),
    (14, &["variants::first_messages_are_reconciled"]),
    (15, &["openings::reconciled_first_messages_and_a_custom_text"]),
    // Ends.
    (16, &["histories::guess_the_number_until_the_first_completion"]),
    (17, &["ends::the_first_completion_ends_it_before_the_other_speaks"]),
    (18, &["ends::one_last_chat_after_the_second_speaker", "histories::guess_the_number_and_one_last_chat"]),
    (19, &["ends::one_last_chat_after_the_first_speaker"]),
    (20, &["ends::one_last_chat_after_the_second_speaker"]),
    (21, &["ends::one_last_group_chat_after_the_second_speaker"]),
    (22, &["ends::one_last_group_chat_after_the_first_speaker"]),
    (23, &["larger::one_last_group_chat_is_one_turn_of_every_agent", "larger::every_end_of_three"]),
    (24, &["ends::all_tasks_must_be_complete_and_then_no_agent_speaks"]),
    (25, &["ends::a_complete_task_is_not_opened_again"]),
    (26, &["ends::the_limit_holds_in_every_mode"]),
    (
        27,
        &["ends::a_completion_at_the_limit_allows_no_last_turn", "ends::last_turns_within_the_limit_happen"],
    ),
    // Whether a task is complete.
    (28, &["reflections::who_does_not_stop_by_itself_is_never_asked"]),
    (29, &["reflections::of_two_agents_none_is_asked_about_the_answer_to_its_task"]),
    (30, &["reflections::the_speaker_is_asked_twice_before_the_next_speaks"]),
    (31, &["reflections::the_decision_is_asked_for_with_the_reflection_in_sight"]),
    (
        32,
        &[
            "completion::the_decision_is_asked_for_at_a_low_temperature",
            "completion::a_failure_while_asked_changes_nothing",
        ],
    ),
    (33, &["reflections::a_reflection_leaves_no_trace"]),
    (34, &["reflections::a_reflection_can_be_kept_where_it_was_made"]),
    (35, &["reflections::a_history_ends_with_the_reflection_that_is_kept"]),
    (36, &["reflections::no_other_agent_reads_a_reflection"]),
    (37, &["completion::yes_continues_and_no_completes"]),
    (38, &["completion::yes_continues_and_no_completes"]),
    (39, &["completion::what_is_neither_is_asked_for_once_more_and_completes_nothing"]),
    (40, &["completion::what_is_neither_is_asked_for_once_more_and_completes_nothing"]),
    (41, &["completion::reasoning_is_not_read_as_a_decision"]),
    // What is refused.
    (42, &["refused::a_group_that_ends_by_a_completion_needs_a_self_terminating_task"]),
    (43, &["refused::a_group_has_two_tasks_and_an_iteration"]),
    (44, &["refused::a_group_has_two_tasks_and_an_iteration"]),
    (45, &["refused::what_was_refused_can_be_put_right"]),
    (46, &["refused::the_first_message_is_for_one_of_the_two"]),
    (47, &["refused::settings_of_two_are_refused_for_three"]),
    (48, &["ends::no_agent_is_asked_when_only_the_limit_ends_it"]),
    // Three and more.
    (49, &["larger::every_agent_sees_all_messages_and_its_own_as_assistant"]),
    (50, &["larger::every_agent_sees_all_messages_and_its_own_as_assistant"]),
    (51, &["larger::the_question_about_objectives_comes_from_who_gives_the_tasks"]),
    (52, &["larger::a_completion_in_the_first_round_ends_it"]),
    (53, &["larger::reflections_are_kept_by_their_owner_alone"]),
    (54, &["refused::no_agent_talks_to_itself"]),
    // Tools in a group; the talk about a tool itself is shown by `tests/ladder`.
    (55, &["protocol::guess_up_to_twenty_leaves_five_entries_for_every_call"]),
    (56, &["protocol::guess_up_to_twenty_leaves_only_prompts_and_answers"]),
    (57, &["protocol::a_tool_runs_in_the_answer_to_a_task_too"]),
    (66, &["protocol::a_tool_runs_in_the_answer_to_a_task_too", "tools::guess_up_to_twenty_with_a_tool"]),
    // Tasks alone.
    (69, &["solo::a_task_that_forgets_leaves_nothing", "protocol::a_task_that_forgets_uses_its_tools"]),
    (
        70,
        &["solo::a_history_is_printed_as_blocks_of_role_and_text", "ends::the_outcome_is_read_from_the_log"],
    ),
];

const MODULES: &[(&str, &str)] = &[
    ("completion", include_str!("completion.rs")),
    ("ends", include_str!("ends.rs")),
    ("histories", include_str!("histories.rs")),
    ("larger", include_str!("larger.rs")),
    ("openings", include_str!("openings.rs")),
    ("protocol", include_str!("protocol.rs")),
    ("reflections", include_str!("reflections.rs")),
    ("refused", include_str!("refused.rs")),
    ("solo", include_str!("solo.rs")),
    ("talk", include_str!("talk.rs")),
    ("tools", include_str!("tools.rs")),
    ("variants", include_str!("variants.rs")),
];

fn source(module: &str) -> &'static str {
    MODULES.iter().find(|(name, _)| *name == module).unwrap_or_else(|| panic!("no module {module}")).1
}

#[test]
fn every_item_has_a_test() {
    let wanted: Vec<u8> = (1..=57).chain([66, 69, 70]).collect();
    let shown: Vec<u8> = ITEMS.iter().map(|(item, _)| *item).collect();
    assert_eq!(shown, wanted);
    for test in ITEMS.iter().flat_map(|(_, tests)| *tests) {
        let (module, test) = test.split_once("::").unwrap();
        assert!(source(module).contains(&format!("fn {test}() {{")), "{module} has no `{test}`");
    }
}
