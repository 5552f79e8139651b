//! What the bound counts besides turns: searches of tools, tools of servers that do not run, money of tools, and limits of agents.

use polylogue::Limits;
use polylogue_core::OnLimit;
use polylogue_team::{Amount, Pattern, Team, TeamBound};

use super::adversary::{Adversary, Behavior};
use super::sweep::{patterns, shipped};
use super::{PAIR, bound, team};

/// A team of `agents` and `more` in `chat`.
fn of(agents: &str, chat: &str, more: &str) -> TeamBound {
    let text = format!("{{name: t, model: 'a:b', task: hi, agents: [{agents}], chat: {{{chat}}}{more}}}");
    bound(&team(&text))
}

const ALONE: &str = "participants: [A], pattern: sequential";

/// `count` commands, each described in `bytes` bytes, or as long as that.
fn commands(count: usize, bytes: usize, more: &str) -> String {
    let command = |nth| {
        let about = "x".repeat(bytes);
        format!("{{name: tool{nth}, description: {about}, command: [echo, hi]{more}}}")
    };
    let all: Vec<String> = (0..count).map(command).collect();
    format!(", commands: [{}]", all.join(", "))
}

fn named(count: usize) -> String {
    (0..count).map(|nth| format!("tool{nth}")).collect::<Vec<_>>().join(", ")
}

/// No limit on results cuts the definitions that a search returns: the largest ones count, 20 at a time.
#[test]
fn definitions_that_a_search_returns_count_whatever_the_limit_on_results() {
    let searching = "{above: 40}";
    let input = |bytes: usize, search: &str, limits: &str| {
        let agent = format!(
            "{{name: A, parameters: {{max_tokens: 8}}, max_tool_rounds: 1, tools: [{}], tool_search: {search}{limits}}}",
            named(60)
        );
        of(&agent, ALONE, &commands(60, bytes, "")).at_most.input().unwrap()
    };
    let (short, long) = (100, 900);
    let cut = ", tool_limits: {max_output_bytes: 100}";
    // The second request has one result: 20 definitions, each of which is longer by 800 bytes.
    assert_eq!(input(long, searching, cut) - input(short, searching, cut), 20 * 800);
    // Without a search, both requests have all definitions.
    assert_eq!(input(long, "false", cut) - input(short, "false", cut), 2 * 60 * 800);
    // A tool that is found returns as much as any.
    assert!(input(short, searching, "") > input(short, searching, cut) + 50_000);
}

/// The calls of tools of which nothing is known yet count as those of any.
#[test]
fn servers_that_do_not_run_have_tools_that_are_called() {
    let agent = |server: &str| {
        format!("{{name: A, parameters: {{max_tokens: 8}}, max_tool_rounds: 6, tools: [{{mcp: x{server}}}]}}")
    };
    let servers = ", mcp: {x: {command: nowhere}}";
    let bound = of(&agent(""), ALONE, servers);
    assert_eq!(bound.at_most.calls(), Some(7));
    // Each request after the first has one result more.
    assert!(bound.at_most.input().unwrap() > (1 + 2 + 3 + 4 + 5 + 6) * 65_536, "{bound:?}");
    let said = "the tools of MCP servers that do not run (`x`) count without their descriptions, and cost what the team file says";
    assert!(bound.rests_on.iter().any(|what| what == said), "{:?}", bound.rests_on);
    let [free, paid] = ["", ", max_cost: 2"].map(|cost| {
        let agent = agent(&format!(", include: [buy]{cost}"));
        of(&agent, ALONE, servers).at_most.picodollars().unwrap()
    });
    let spent = paid - free;
    assert!(spent >= 6 * 2_000_000_000_000, "{spent}");
    // By text, several are chosen from.
    let by_text = agent("").replace("name: A,", "name: A, tool_calling: text,");
    assert_eq!(of(&by_text, ALONE, servers).at_most.calls(), Some(1 + 3 + 6 * (5 + 11 + 3) + 1));
}

/// What tools declare is part of the money, of what ends at a limit, and of no call that is enforced.
#[test]
fn money_of_tools_counts_for_each_call_that_a_reply_can_have() {
    let agent = |keys: &str| {
        format!("{{name: A, parameters: {{max_tokens: 16}}, max_tool_rounds: 3, tools: [tool0]{keys}}}")
    };
    let dollars =
        |cost: &str, keys: &str, more: &str| of(&agent(keys), ALONE, &(commands(1, 10, cost) + more));
    let paid = ", max_cost: 1.5";
    let money = |bound: &TeamBound| bound.at_most.picodollars().unwrap();
    let picodollars = |bound: u128| bound / 1_000_000_000_000;
    let (free, costly) = (dollars("", "", ""), dollars(paid, "", ""));
    // Two calls in each of three rounds, however often requests are sent again.
    assert_eq!(picodollars(money(&costly) - money(&free)), 2 * 3 * 3 / 2);
    let retried = |bound: &TeamBound| bound.with_retries.picodollars().unwrap();
    assert_eq!(picodollars(retried(&costly) - retried(&free)), 2 * 3 * 3 / 2);
    let enforced = costly.to_enforce().cost.unwrap();
    assert!(u128::from(enforced.picodollars) < retried(&costly) - 8_000_000_000_000, "{enforced}");
    let said = costly.in_words(OnLimit::Stop).unwrap();
    assert!(said.contains(" in 4 model calls and calls of tools"), "{said}");
    let said = free.in_words(OnLimit::Stop).unwrap();
    assert!(said.contains(" in 4 model calls") && !said.contains("calls of tools"), "{said}");
    // One at a time, and each once for a text that can be wrong.
    let one = dollars(paid, ", tool_calling: text", "");
    let other = dollars("", ", tool_calling: text", "");
    assert_eq!(picodollars(money(&one) - money(&other)), 11 * 3 / 2);
    let limited = dollars(paid, "", ", limits: {cost: 5}");
    assert_eq!(money(&limited), 5_000_000_000_000);
}

/// Tools that agents execute for others, and those of plans, take no model call, and cost money.
#[test]
fn money_of_tools_that_take_no_model_call_counts() {
    let spent = |agents: &str, chat: &str| {
        let [free, paid] = ["", ", max_cost: 3"]
            .map(|cost| of(agents, chat, &commands(1, 10, cost)).at_most.picodollars().unwrap());
        (paid - free) / 1_000_000_000_000
    };
    let pair = "{name: A, parameters: {max_tokens: 16}, suggests_tools: [tool0]}, {name: R, model: none, executes_tools: [tool0]}";
    let chat = "participants: [A, R], max_turns: 4";
    assert_eq!(spent(pair, chat), 2 * 2 * 3);
    let planner = "{name: A, parameters: {max_tokens: 8}, reasoning: rewoo, tools: [tool0]}";
    assert!(spent(planner, ALONE) >= 3);
    let plan = |steps: u32| {
        format!(
            "{{name: A, parameters: {{max_tokens: 800}}, reasoning: {{rewoo: {{max_steps: {steps}}}}}, tools: [tool0]}}"
        )
    };
    assert_eq!(spent(&plan(4), ALONE), 4 * spent(&plan(1), ALONE));
}

/// An agent with limits takes no more, and neither do all together.
#[test]
fn limits_of_agents_limit_their_parts_and_the_whole() {
    let agents = PAIR.replace("name: A,", "name: A, limits: {calls: 2, tokens: 900},");
    let chat = "participants: [A, B], max_turns: 12";
    let bound = of(&agents, chat, "");
    let calls: Vec<_> = bound.rows.iter().map(|row| (row.agent.as_str(), row.at_most.calls())).collect();
    assert!(calls.contains(&("A", Some(2))) && calls.contains(&("B", Some(6))), "{calls:?}");
    assert_eq!(bound.at_most.calls(), Some(8));
    let of_a = bound.rows.iter().find(|row| row.agent == "A").unwrap();
    assert!(of_a.at_most.tokens().unwrap() <= 900, "{of_a:?}");
    // What is tried again counts, too.
    assert_eq!(bound.with_retries.calls(), Some(2 + 6 * 10));
    assert_eq!(of(PAIR, chat, "").at_most.calls(), Some(12));
}

/// Input and output share a limit on tokens.
#[test]
fn a_limit_on_tokens_is_one_of_both_kinds_together() {
    let bound = of(PAIR, "participants: [A, B]", ", limits: {tokens: 50}");
    assert_eq!((bound.at_most.input(), bound.at_most.tokens()), (Some(50), Some(50)));
    let own = of(PAIR, "participants: [A, B], limits: {tokens: 40}", "");
    assert_eq!(own.at_most.tokens(), Some(40));
}

/// The parts of a graph have the turns to which its edges lead, and not all turns.
#[test]
fn parts_of_a_graph_have_the_turns_of_their_agents() {
    let edges = "A: [{to: A, says: again, max_uses: 2}, {to: B, otherwise: true}]";
    let chat = format!("participants: [A, B], pattern: {{graph: {{start: A, edges: {{{edges}}}}}}}");
    let bound = of(PAIR, &chat, "");
    let calls: Vec<_> =
        bound.rows.iter().map(|row| (row.agent.as_str(), row.at_most.calls(), row.typical.calls())).collect();
    assert!(
        calls.contains(&("A", Some(3), Some(3))) && calls.contains(&("B", Some(1), Some(1))),
        "{calls:?}"
    );
    assert_eq!(bound.at_most.calls(), Some(4));
}

/// The most calls of A, B and C in `chat`, and of all together.
fn parts_of(chat: &str) -> ([u64; 3], u64) {
    let bound = of(&format!("{PAIR}, {{name: C, parameters: {{max_tokens: 9}}}}"), chat, "");
    let part = |who: &str| {
        let row = bound.rows.iter().find(|row| row.agent == who);
        row.map_or(0, |row| row.at_most.calls().unwrap())
    };
    (["A", "B", "C"].map(part), bound.at_most.calls().unwrap())
}

/// After each turn, either edges with conditions are taken or the others: the ones are left where the others lead to no further turn.
#[test]
fn the_other_edge_of_a_loop_is_taken_in_the_turns_that_the_loop_leaves() {
    let graph = |participants: &str, edges: &str| {
        format!(
            "participants: [{participants}], max_turns: 30, pattern: {{graph: {{start: A, edges: {{{edges}}}}}}}"
        )
    };
    for (participants, edges, expected) in [
        // Without a limit, too.
        ("A, B", "A: [{to: A, says: again}, {to: B, otherwise: true}]", ([30, 1, 0], 30)),
        ("A, B", "A: [{to: B, says: done}, {to: A, otherwise: true, max_uses: 4}]", ([5, 1, 0], 6)),
        // Both can be taken after one turn.
        (
            "A, B, C",
            "A: B, B: [{to: A, says: x, max_uses: 2}, {to: B, says: y, max_uses: 3}, {to: C, otherwise: true}]",
            ([3, 6, 3], 12),
        ),
        // Both have conditions, so that both can be taken.
        ("A, B", "A: [{to: A, says: again, max_uses: 4}, {to: B, says: done}]", ([5, 5, 0], 10)),
        // B can speak once more by itself, and A after it.
        (
            "A, B, C",
            "A: [{to: B, says: x, max_uses: 2}, {to: C, otherwise: true}], B: [{to: A, says: x}, {to: B, says: y, max_uses: 1}]",
            ([4, 3, 2], 9),
        ),
    ] {
        assert_eq!(parts_of(&graph(participants, edges)), expected, "{edges}");
    }
}

/// Where the order is known, each has no more turns than one way through it has.
#[test]
fn parts_have_the_turns_that_an_order_allows() {
    let ends =
        "state_machine: {start: A, after: {A: [{when: \"last.text == 'x'\", then: A}, {then: B}], B: []}}";
    for (participants, pattern, expected) in [
        ("A, B", ends, ([6, 1, 0], 6)),
        ("A, B, C", "group: {select: random, allow_repeat_speaker: false}", ([3, 3, 3], 6)),
        (
            "A, B, C",
            "group: {select: random, transitions: {allowed: {A: [A, B], B: [A, C]}}}",
            ([6, 3, 1], 6),
        ),
    ] {
        let chat = format!("participants: [{participants}], max_turns: 6, pattern: {{{pattern}}}");
        assert_eq!(parts_of(&chat), expected, "{pattern}");
    }
}

/// Those who can speak have as many typical turns as the others, in an order where one is known.
#[test]
fn typical_turns_are_shared() {
    let typical = |chat: &str| {
        let bound = of(&format!("{PAIR}, {{name: C, parameters: {{max_tokens: 9}}}}"), chat, "");
        let mut parts: Vec<(String, u64)> =
            bound.rows.iter().map(|row| (row.agent.clone(), row.typical.calls().unwrap())).collect();
        parts.sort();
        (parts, bound.typical.calls().unwrap())
    };
    let parts = |counts: &[(&str, u64)]| -> Vec<(String, u64)> {
        counts.iter().map(|(who, count)| ((*who).to_owned(), *count)).collect()
    };
    let group = "participants: [A, B, C], pattern: {group: {select: {model: {}}}}";
    assert_eq!(typical(group), (parts(&[("A", 3), ("B", 3), ("C", 3), ("t_selector", 9)]), 18));
    let states = "participants: [A, B, C], pattern: {state_machine: {start: A, after: {A: [{then: B}], B: [{when: turns < 4, then: A}, {then: C}], C: []}}}";
    let (shares, whole) = typical(states);
    assert_eq!(whole, shares.iter().map(|(_, count)| count).sum::<u64>());
    assert!(shares.contains(&("C".to_owned(), 1)), "{shares:?}");
    let planned = "participants: [B, C], pattern: {orchestrator: {planner: A, max_turns: 4}}";
    let (shares, _) = typical(planned);
    assert!(shares.contains(&("B".to_owned(), 2)) && shares.contains(&("C".to_owned(), 2)), "{shares:?}");
}

/// Also where the limit on calls ends a run before a typical one would end.
#[test]
fn typical_parts_add_up_to_the_whole() {
    let model = Adversary::new(Behavior::Worst, 0).model();
    for (name, team) in shipped().into_iter().chain(patterns().into_iter().step_by(7)) {
        for calls in [1_000, 4] {
            let limits = Limits { calls: Some(calls), ..team.limits() };
            let bound = team.bound(&|_| Ok(model.clone()), &limits).unwrap();
            let sum = |of: fn(&Amount) -> Option<u128>| {
                let parts = bound.rows.iter().map(|row| of(&row.typical).unwrap());
                (parts.sum::<u128>(), of(&bound.typical).unwrap())
            };
            let measures: [fn(&Amount) -> Option<u128>; 3] = [
                |amount| amount.calls().map(u128::from),
                |amount| amount.tokens().map(u128::from),
                Amount::picodollars,
            ];
            for (parts, whole) in measures.map(sum) {
                assert_eq!(parts, whole, "{name}, {calls} calls: {bound:?}");
            }
        }
    }
}

/// Nothing is in the whole that is in no part: the limits of agents rest on that. In a graph, parts can have fewer turns.
#[test]
fn the_parts_of_a_bound_are_all_of_it() {
    let model = Adversary::new(Behavior::Worst, 0).model();
    let has_graph = |team: &Team| {
        let inner = team.chats.iter().map(|inner| &inner.chat);
        inner.chain([&team.chat]).any(|chat| matches!(chat.pattern, Pattern::Graph(_)))
    };
    for (name, team) in shipped().into_iter().chain(patterns().into_iter().step_by(7)) {
        let limits = Limits { calls: Some(1_000_000_000_000), tokens: None, cost: None, ..team.limits() };
        let has_limits = !team.agent_limits().is_empty() || team.chat.limits.allowance().is_some();
        if has_limits || has_graph(&team) || team.teams.iter().any(|sub| has_graph(&sub.team)) {
            continue;
        }
        let bound = team.bound(&|_| Ok(model.clone()), &limits).unwrap();
        let measures: [&dyn Fn(&Amount) -> u128; 3] = [
            &|amount| amount.calls().unwrap_or(u64::MAX).into(),
            &|amount| amount.tokens().unwrap_or(u64::MAX).into(),
            &|amount| amount.picodollars().unwrap_or(u128::MAX),
        ];
        for (nth, of) in measures.into_iter().enumerate() {
            let parts = bound.rows.iter().map(|row| of(&row.at_most)).fold(0, u128::saturating_add);
            assert!(parts >= of(&bound.at_most), "{name}, {nth}: {bound:?}");
        }
    }
}
