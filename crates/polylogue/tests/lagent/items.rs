//! Which test shows which item of the list of 90, and which items are done otherwise on purpose.

/// Item, and the tests that show it: `module::test` of those here, `crate/path::test` of others.
const ITEMS: &[(&str, &[&str])] = &[
    // Lagent.
    ("L01", &["calls::a_text_is_a_message_of_the_user"]),
    ("L02", &["calls::the_second_call_holds_the_first_with_its_own_reply_as_assistant"]),
    ("L03", &["layers::messages_of_others_in_a_row_are_merged"]),
    ("L04", &["calls::a_reply_is_signed_and_peers_are_users"]),
    ("L05", &["layers::hooks_change_what_is_remembered_before_and_only_what_is_returned_after"]),
    ("L06", &["layers::hooks_change_what_is_remembered_before_and_only_what_is_returned_after"]),
    ("L07", &["layers::hooks_change_what_is_remembered_before_and_only_what_is_returned_after"]),
    ("L08", &["layers::a_removed_hook_is_not_run_and_cannot_be_removed_again"]),
    ("L09", &["layers::hooks_change_what_is_remembered_before_and_only_what_is_returned_after"]),
    ("L10", &["calls::a_reply_is_signed_and_peers_are_users"]),
    ("L11", &["calls::parameters_of_one_call_leave_the_next_alone"]),
    (
        "L12",
        &[
            "calls::a_failed_call_leaves_the_session_as_it_was",
            "calls::a_first_call_that_fails_leaves_an_empty_session",
            "ends::whatever_the_cut_a_call_that_is_given_up_leaves_nothing",
            "random::whatever_happens_to_a_session_it_remembers_what_it_should",
        ],
    ),
    ("L13", &["state::keys_are_those_of_the_agent_and_its_layers_in_order"]),
    (
        "L14",
        &[
            "state::keys_of_a_list_have_numbers_and_the_list_has_none",
            "compose::lists_and_maps_remember_by_number_and_key",
        ],
    ),
    ("L15", &["calls::sessions_at_the_same_time_know_nothing_of_each_other"]),
    ("L16", &["calls::calls_in_one_session_are_made_one_after_the_other"]),
    (
        "L17",
        &[
            "state::a_loaded_agent_asks_what_the_old_one_would_have",
            "state::a_loaded_composite_continues_like_the_original",
            "state::a_new_process_continues_like_the_original",
            "state::a_loaded_agent_with_a_parser_asks_what_the_old_one_would_have",
        ],
    ),
    (
        "L18",
        &["state::a_state_without_a_key_is_refused_and_changes_nothing", "state::a_state_is_of_one_session"],
    ),
    (
        "L19",
        &[
            "state::reset_forgets_a_node_a_subtree_or_a_path",
            "state::reset_by_a_path_forgets_exactly_one_node",
            "state::reset_reaches_agents_that_no_layer_tells_of",
        ],
    ),
    (
        "L20",
        &[
            "layers::a_window_sends_the_last_messages_and_remembers_all",
            "state::a_window_holds_after_loading",
        ],
    ),
    ("L21", &["layers::examples_stand_before_the_conversation_on_every_call"]),
    ("L22", &["layers::examples_stand_before_the_conversation_on_every_call"]),
    ("L23", &["layers::the_first_block_is_read_and_its_end_may_be_missing"]),
    ("L24", &["layers::the_first_block_is_read_and_its_end_may_be_missing"]),
    ("L25", &["layers::the_first_block_is_read_and_its_end_may_be_missing"]),
    ("L26", &["layers::the_first_block_is_read_and_its_end_may_be_missing"]),
    ("L27", &["layers::blocks_are_sent_back_whole_and_refused_ones_not_at_all"]),
    ("L28", &["layers::blocks_are_sent_back_whole_and_refused_ones_not_at_all"]),
    ("L29", &["actions::messages_of_executors_and_peers_can_have_custom_introductions"]),
    ("L30", &["actions::messages_of_executors_and_peers_can_have_custom_introductions"]),
    (
        "L31",
        &[
            "visualizer::two_share_an_executor_until_one_has_the_final_answer",
            "actions::a_tool_of_a_toolkit_is_called_by_both_names",
        ],
    ),
    ("L32", &["actions::an_unknown_tool_is_named_and_runs_nothing"]),
    (
        "L33",
        &[
            "actions::wrong_arguments_are_named_and_failures_are_reported",
            "polylogue/tests/tool::wrong_arguments_and_errors_are_reported_and_the_conversation_continues",
        ],
    ),
    ("L34", &["actions::an_unknown_tool_is_named_and_runs_nothing"]),
    ("L35", &["actions::a_finish_is_a_state_of_its_own"]),
    (
        "L36",
        &[
            "layers::only_what_was_read_is_run",
            "actions::code_is_an_argument_of_its_tool_and_what_was_refused_is_none",
        ],
    ),
    (
        "L37",
        &[
            "layers::only_what_was_read_is_run",
            "actions::code_is_an_argument_of_its_tool_and_what_was_refused_is_none",
        ],
    ),
    ("L38", &["layers::a_coder_runs_code_until_it_writes_none"]),
    (
        "L39",
        &[
            "polylogue-tools/tests/it/python_session::two_sessions_share_nothing",
            "polylogue-tools/tests/it/python_session::conversations_that_one_program_runs_share_no_interpreter",
        ],
    ),
    (
        "L40",
        &[
            "polylogue-tools/tests/it/python_session::code_that_takes_too_long_is_interrupted_and_the_session_continues",
            "polylogue-tools/tests/it/python_session::code_that_cannot_be_interrupted_is_killed",
        ],
    ),
    ("L41", &["polylogue-tools/tests/it/python_session::too_much_output_is_left_out"]),
    ("L42", &["calls::a_writer_and_a_critic_make_a_call_each_per_round_and_one_more"]),
    ("L43", &["visualizer::two_share_an_executor_until_one_has_the_final_answer"]),
    ("L44", &["ends::texts_grow_by_pieces_and_only_the_whole_is_remembered"]),
    (
        "L45",
        &[
            "tools::a_reply_ends_before_a_stop_word",
            "polylogue-models/tests/stop_words::a_reply_is_cut_at_the_stop_word_where_its_server_continues",
            "polylogue-core/src/model/stops::pieces_end_before_a_stop_sequence_that_is_split_anywhere",
        ],
    ),
    (
        "L46",
        &[
            "polylogue-models/tests/replies::every_tolerable_deviation_gives_the_same_reply_streamed_and_not",
            "polylogue-models/tests/replies::deviations_may_come_together",
        ],
    ),
    (
        "L47",
        &[
            "polylogue-models/tests/replies::every_malformed_reply_is_an_error_that_says_what_happened_within_the_time_limit",
            "polylogue-models/tests/retries::errors_in_the_middle_of_a_stream_are_tried_again_when_they_may_pass",
        ],
    ),
    (
        "L48",
        &[
            "polylogue-models/tests/keys::keys_are_taken_in_turn_and_one_without_credit_is_left_out",
            "polylogue-models/tests/keys::when_all_are_without_credit_it_is_an_error",
        ],
    ),
    (
        "L49",
        &[
            "polylogue-models/src/retry::attempts_are_bounded_in_count_and_in_time",
            "polylogue-models/tests/retries::what_may_pass_is_tried_again",
            "polylogue-models/tests/retries::retries_end_when_their_time_is_over",
        ],
    ),
    ("L50", &["ends::many_sessions_give_their_replies_in_order"]),
    ("L51", &["compose::a_pipeline_ends_at_the_set_stage_and_wraps_around"]),
    ("L52", &["polylogue/tests/tool::a_function_has_all_that_a_model_receives"]),
    ("L53", &["state::a_state_is_of_one_session"]),
    // LazyLLM.
    ("Z01", &["calls::parameters_of_one_call_leave_the_next_alone"]),
    ("Z02", &["reason::calls_are_made_in_rounds_until_there_is_a_text"]),
    ("Z03", &["reason::calls_are_made_in_rounds_until_there_is_a_text"]),
    ("Z04", &["reason::calls_are_made_in_rounds_until_there_is_a_text"]),
    (
        "Z05",
        &[
            "actions::a_near_miss_is_answered_with_the_right_name",
            "reason::calls_are_made_in_rounds_until_there_is_a_text",
            "polylogue/tests/tool::wrong_arguments_and_errors_are_reported_and_the_conversation_continues",
        ],
    ),
    ("Z06", &["reason::a_limit_on_rounds_ends_or_sums_up"]),
    ("Z07", &["reason::a_limit_on_rounds_ends_or_sums_up"]),
    ("Z08", &["calls::sessions_at_the_same_time_know_nothing_of_each_other"]),
    ("Z09", &["reason::a_session_is_all_the_history_there_is"]),
    ("Z10", &["reason::a_tool_that_ends_the_turn_gives_the_message_unless_it_fails"]),
    (
        "Z11",
        &[
            "layers::braces_are_nothing_but_braces",
            "polylogue/tests/role_play/preparation::braces_are_literal_in_ideas_tasks_plans_roles_and_prompts",
        ],
    ),
    ("Z12", &["polylogue/tests/tool::of_two_tools_of_one_name_the_later_counts"]),
    ("Z13", &["tools::a_history_is_that_of_the_running_session", "tools::a_history_of_nothing_says_so"]),
    ("Z14", &["polylogue/tests/role_play/preparation::the_specifier_is_hot_and_the_roles_are_cool"]),
    ("Z15", &["tools::nothing_is_offered_that_was_not_asked_for"]),
    (
        "Z16",
        &[
            "reason::a_plan_is_solved_step_by_step",
            "reason::a_plan_without_numbers_is_one_step_and_a_long_one_is_refused",
        ],
    ),
    ("Z17", &["reason::evidence_is_gathered_without_a_model"]),
    (
        "Z18",
        &[
            "compose::branches_keep_their_order",
            "compose::cases_and_loops",
            "compose::a_graph_calls_each_node_once_when_all_before_it_spoke",
            "compose::a_failure_names_the_node",
        ],
    ),
    // CAMEL.
    (
        "C01",
        &[
            "polylogue/tests/role_play/course::the_opening_is_sent_once_and_k_rounds_make_one_and_two_k_calls",
            "polylogue/tests/role_play/course::a_user_who_ends_it_saves_the_last_call",
        ],
    ),
    (
        "C02",
        &[
            "calls::the_second_call_holds_the_first_with_its_own_reply_as_assistant",
            "polylogue/tests/role_play/course::each_reads_the_other_as_user_and_itself_as_assistant",
        ],
    ),
    (
        "C03",
        &[
            "visualizer::forgetting_asks_no_model",
            "polylogue/tests/role_play/course::building_a_chat_calls_no_model_and_has_no_memory",
        ],
    ),
    ("C04", &["polylogue/tests/role_play/ends::the_marker_alone_ends_it_before_the_assistant_is_asked"]),
    (
        "C05",
        &[
            "polylogue/tests/role_play/ends::a_quoted_marker_ends_nothing",
            "polylogue/tests/role_play/ends::a_marker_that_is_thought_ends_nothing",
            "polylogue/tests/role_play/ends::a_lenient_role_play_accepts_the_marker_within_a_message",
        ],
    ),
    ("C06", &["polylogue/tests/role_play/ends::limits_are_exact"]),
    (
        "C07",
        &[
            "polylogue/tests/role_play/ends::three_messages_without_an_instruction_end_it",
            "polylogue/tests/role_play/ends::an_instruction_resets_the_count",
        ],
    ),
    (
        "C08",
        &[
            "polylogue/tests/role_play/ends::an_assistant_who_instructs_ends_it",
            "polylogue/tests/role_play/ends::an_assistant_may_write_of_instructions",
        ],
    ),
    (
        "C09",
        &[
            "polylogue/tests/role_play/ends::nearly_the_same_again_and_again_ends_it",
            "polylogue/tests/role_play/ends::farewells_end_it",
        ],
    ),
    (
        "C10",
        &[
            "polylogue/tests/role_play/preparation::a_specified_task_is_in_both_prompts_and_the_idea_is_kept",
            "polylogue/tests/role_play/preparation::without_a_specifier_no_model_is_asked",
            "polylogue/tests/role_play/preparation::a_plan_stands_after_the_task",
        ],
    ),
    (
        "C11",
        &["polylogue/tests/role_play/preparation::braces_are_literal_in_ideas_tasks_plans_roles_and_prompts"],
    ),
    ("C12", &["polylogue/tests/role_play/preparation::the_specifier_receives_both_roles_and_the_word_limit"]),
    (
        "C13",
        &["polylogue/tests/role_play/roles::there_is_one_sentence_on_the_language_however_often_it_is_set"],
    ),
    (
        "C14",
        &[
            "reason::a_critic_chooses_among_options",
            "reason::without_a_choice_the_first_draft_wins_and_one_draft_needs_no_critic",
            "polylogue/tests/role_play/critic::each_is_asked_n_times_and_the_first_number_is_chosen",
            "polylogue/tests/role_play/critic::a_critic_who_chooses_nothing_is_asked_again_and_then_the_first_is_taken",
            "polylogue/tests/role_play/critic::only_what_is_proposed_now_can_be_chosen",
            "polylogue/tests/role_play/critic::one_option_needs_no_critic",
        ],
    ),
    (
        "C15",
        &[
            "ends::a_cancelled_call_continues_later",
            "polylogue/tests/role_play/ends::a_stop_leaves_the_transcript_and_asks_no_other_agent",
        ],
    ),
    (
        "C16",
        &[
            "calls::a_blank_reply_has_no_parts",
            "polylogue/tests/role_play/ends::a_blank_reply_is_asked_for_again_and_then_ends_it",
        ],
    ),
    (
        "C17",
        &[
            "layers::a_window_sends_the_last_messages_and_remembers_all",
            "polylogue/tests/role_play/course::a_window_keeps_the_system_text_and_the_last_messages",
        ],
    ),
    (
        "C18",
        &[
            "polylogue-cli/tests/it/batch::every_combination_is_a_conversation_and_a_record_with_a_reason",
            "polylogue-cli/tests/it/batch::what_is_over_is_not_run_again",
            "polylogue-cli/tests/it/batch::a_row_that_fails_is_listed_stops_no_other_and_is_taken_up_again",
            "polylogue/tests/batch::one_that_fails_stops_no_other_and_is_the_only_one_to_run_again",
        ],
    ),
    (
        "C19",
        &[
            "polylogue-cli/tests/it/batch::the_records_are_the_same_however_many_are_held_at_once",
            "polylogue/tests/batch::so_many_at_a_time_and_the_same_comes_out",
        ],
    ),
];

/// What is done otherwise on purpose, in whole or in part. `docs/compatibility.md` names each, with why.
const DIFFERENT: &[&str] = &[
    "L03", "L06", "L11", "L12", "L13", "L14", "L16", "L17", "L18", "L19", "L20", "L23", "L26", "L29", "L30",
    "L31", "L32", "L33", "L34", "L35", "L36", "L37", "L39", "L45", "L47", "L48", "L51", "L53", "Z01", "Z06",
    "Z09", "Z11", "Z12", "Z13", "Z14", "Z15", "Z16", "Z17", "C01", "C04", "C05", "C06", "C07", "C08", "C09",
    "C10", "C11", "C14", "C16", "C17",
];

/// All items: 53 of Lagent, 18 of LazyLLM, 19 of CAMEL.
fn all() -> Vec<String> {
    let of = |list: char, count: usize| (1..=count).map(move |nth| format!("{list}{nth:02}"));
    of('L', 53).chain(of('Z', 18)).chain(of('C', 19)).collect()
}

/// What stands in a file of this repository.
fn file(path: &str) -> String {
    let place = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&place).unwrap_or_else(|error| panic!("{}: {error}", place.display()))
}

#[test]
fn every_item_is_listed_once_and_in_order() {
    let listed: Vec<&str> = ITEMS.iter().map(|(item, _)| *item).collect();
    assert_eq!(listed, all());
    assert_eq!(listed.len(), 90);
    for (item, tests) in ITEMS {
        assert!(!tests.is_empty(), "{item} is shown by no test");
    }
}

#[test]
fn every_test_named_here_is_there_and_those_of_this_list_carry_the_number_of_their_item() {
    for (item, tests) in ITEMS {
        for test in *tests {
            let (place, name) = test.rsplit_once("::").unwrap();
            let is_here = !place.contains('/');
            let path = if is_here { format!("polylogue/tests/lagent/{place}") } else { place.to_owned() };
            let source = file(&format!("crates/{path}.rs"));
            assert!(source.contains(&format!("fn {name}() {{")), "{place} has no `{name}`");
            assert!(!is_here || source.contains(item), "{place} does not name {item}");
        }
    }
}

#[test]
fn every_difference_is_named_with_its_reason() {
    let docs = file("docs/compatibility.md");
    let section = docs.split_once("\n## Lagent, LazyLLM, CAMEL\n").unwrap().1;
    let section = section.split("\n## ").next().unwrap();
    for item in DIFFERENT {
        assert!(all().iter().any(|other| other == item), "{item}");
        assert!(section.contains(item), "the page on differences does not name {item}");
    }
    let named = |item: &&String| section.contains(item.as_str());
    for item in all().iter().filter(named) {
        assert!(DIFFERENT.contains(&item.as_str()), "{item} is named there, and not here");
    }
}
