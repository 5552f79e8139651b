//! Which test shows which item of the list: those that are about agents as layers, their state, and how they reason.

/// Item, and the tests that show it: `module::test`.
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
            "state::a_loaded_composite_goes_on_as_the_old_one_would",
        ],
    ),
    ("L18", &["state::a_state_without_a_key_is_refused_and_changes_nothing"]),
    ("L19", &["state::reset_forgets_a_node_a_subtree_or_a_path"]),
    ("L20", &["layers::a_window_sends_the_last_messages_and_remembers_all"]),
    ("L21", &["layers::examples_stand_before_the_conversation_on_every_call"]),
    ("L22", &["layers::examples_stand_before_the_conversation_on_every_call"]),
    ("L23", &["layers::the_first_block_is_read_and_its_end_may_be_missing"]),
    ("L24", &["layers::the_first_block_is_read_and_its_end_may_be_missing"]),
    ("L25", &["layers::the_first_block_is_read_and_its_end_may_be_missing"]),
    ("L26", &["layers::the_first_block_is_read_and_its_end_may_be_missing"]),
    ("L27", &["layers::blocks_are_sent_back_whole_and_refused_ones_not_at_all"]),
    ("L28", &["layers::blocks_are_sent_back_whole_and_refused_ones_not_at_all"]),
    ("L31", &["visualizer::two_share_an_executor_until_one_has_the_final_answer"]),
    ("L32", &["layers::only_what_was_read_is_run"]),
    ("L33", &["layers::only_what_was_read_is_run"]),
    ("L34", &["layers::only_what_was_read_is_run"]),
    ("L36", &["layers::only_what_was_read_is_run"]),
    ("L37", &["layers::only_what_was_read_is_run"]),
    ("L38", &["layers::a_coder_runs_code_until_it_writes_none"]),
    ("L42", &["calls::a_writer_and_a_critic_make_a_call_each_per_round_and_one_more"]),
    ("L43", &["visualizer::two_share_an_executor_until_one_has_the_final_answer"]),
    ("L44", &["ends::texts_grow_by_pieces_and_only_the_whole_is_remembered"]),
    ("L50", &["ends::many_sessions_give_their_replies_in_order"]),
    ("L51", &["compose::a_sequence_ends_where_it_is_told_and_wraps_around"]),
    // LazyLLM.
    ("Z01", &["calls::parameters_of_one_call_leave_the_next_alone"]),
    ("Z02", &["reason::calls_are_made_in_rounds_until_there_is_a_text"]),
    ("Z03", &["reason::calls_are_made_in_rounds_until_there_is_a_text"]),
    ("Z04", &["reason::calls_are_made_in_rounds_until_there_is_a_text"]),
    ("Z05", &["reason::calls_are_made_in_rounds_until_there_is_a_text"]),
    ("Z06", &["reason::a_limit_on_rounds_ends_or_sums_up"]),
    ("Z07", &["reason::a_limit_on_rounds_ends_or_sums_up"]),
    ("Z08", &["calls::sessions_at_the_same_time_know_nothing_of_each_other"]),
    ("Z09", &["reason::a_session_is_all_the_history_there_is"]),
    ("Z10", &["reason::a_tool_that_ends_the_turn_has_the_last_word_unless_it_fails"]),
    ("Z11", &["layers::braces_are_nothing_but_braces"]),
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
    ("C02", &["calls::the_second_call_holds_the_first_with_its_own_reply_as_assistant"]),
    ("C03", &["visualizer::forgetting_asks_no_model"]),
    (
        "C14",
        &[
            "reason::a_critic_chooses_among_options",
            "reason::a_critic_who_chooses_nothing_leaves_the_first_and_of_one_nobody_is_asked",
        ],
    ),
    ("C15", &["ends::a_call_that_is_stopped_goes_on_later"]),
    ("C16", &["calls::a_blank_reply_has_no_parts"]),
    ("C17", &["layers::a_window_sends_the_last_messages_and_remembers_all"]),
];

const MODULES: &[(&str, &str)] = &[
    ("calls", include_str!("calls.rs")),
    ("compose", include_str!("compose.rs")),
    ("ends", include_str!("ends.rs")),
    ("layers", include_str!("layers.rs")),
    ("reason", include_str!("reason.rs")),
    ("state", include_str!("state.rs")),
    ("visualizer", include_str!("visualizer.rs")),
];

fn source(module: &str) -> &'static str {
    MODULES.iter().find(|(name, _)| *name == module).unwrap_or_else(|| panic!("no module {module}")).1
}

#[test]
fn every_test_named_here_is_there_and_carries_the_number_of_its_item() {
    for (item, tests) in ITEMS {
        for test in *tests {
            let (module, test) = test.split_once("::").unwrap();
            let source = source(module);
            assert!(source.contains(&format!("fn {test}() {{")), "{module} has no `{test}`");
            assert!(source.contains(item), "{module} does not name {item}");
        }
    }
}
