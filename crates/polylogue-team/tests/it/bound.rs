//! The bound: what it counts, computed from the file, and that no model makes a run exceed it.

mod adversary;
mod counted;
mod deviations;
mod documents;
mod kept;
mod reasons;
mod stage;
mod sweep;
mod tightness;

use polylogue_team::{Overrides, Team, TeamBound};

use self::adversary::{Adversary, Behavior};
use crate::common::team;

fn bound(team: &Team) -> TeamBound {
    let model = Adversary::new(Behavior::Worst, 0).model();
    team.bound(&|_| Ok(model.clone()), &team.limits()).unwrap()
}

/// Calls of a team of `agents` in `chat`.
fn calls(agents: &str, chat: &str) -> u64 {
    let text = format!("{{name: t, model: 'a:b', task: hi, agents: [{agents}], chat: {{{chat}}}}}");
    bound(&team(&text)).at_most.calls().unwrap()
}

/// Replies are not continued.
const PAIR: &str = "{name: A, parameters: {max_tokens: 9}}, {name: B, parameters: {max_tokens: 9}}";

/// Each edge makes it take longer to distinguish alternatives: a run of a large graph would wait for its bound.
#[test]
fn alternatives_of_a_graph_are_distinguished_up_to_a_hundred_edges() {
    for (leaves, expected) in [(90, 4 + 1 + 90), (99, 4 * (1 + 1 + 99))] {
        let names: Vec<String> = (0..leaves).map(|nth| format!("C{nth}")).collect();
        let agents = names.iter().map(|name| format!(", {{name: {name}, parameters: {{max_tokens: 9}}}}"));
        let all = names.join(", ");
        let edges =
            format!("A: [{{to: A, says: again, max_uses: 3}}, {{to: B, otherwise: true}}], B: [{all}]");
        let chat = format!(
            "participants: [A, B, {all}], max_turns: 900, pattern: {{graph: {{start: A, edges: {{{edges}}}}}}}"
        );
        assert_eq!(calls(&format!("{PAIR}{}", agents.collect::<String>()), &chat), expected);
    }
}

#[test]
fn every_pattern_has_its_turns() {
    for (chat, expected) in [
        ("participants: [A, B], max_turns: 7", 7),
        ("participants: [A, B], max_turns: 7, stop: {max_turns: 5}", 5),
        ("participants: [A, B], max_turns: 7, stop: {any: [{max_turns: 5}, {says: x}]}", 5),
        ("participants: [A, B], max_turns: 7, stop: {all: [{max_turns: 5}, {says: x}]}", 7),
        ("participants: [A, B], pattern: sequential", 2),
        ("participants: [A, B], pattern: parallel", 2),
        ("participants: [A, B], pattern: {group: {select: {model: {attempts: 2}}}}, max_turns: 3", 9),
        ("participants: [A, B], pattern: {graph: {edges: {A: B}}}", 2),
        (
            "participants: [A, B], max_turns: 9,
             pattern: {graph: {start: A, edges: {A: [{to: A, says: again}, {to: B, otherwise: true}]}}}",
            9,
        ),
        (
            "participants: [A, B], max_turns: 90,
             pattern: {graph: {start: A, edges: {A: [{to: A, says: again, max_uses: 3}, {to: B, otherwise: true}]}}}",
            5,
        ),
        ("participants: [A, B], pattern: {dag: {B: A}}", 2),
        ("participants: [A, B], pattern: {debate: {options: [x, y], rounds: 2}}", 8),
        ("participants: [A, B], pattern: sequential, summary: {reflect: {parameters: {max_tokens: 9}}}", 3),
    ] {
        assert_eq!(calls(PAIR, chat), expected, "{chat}");
    }
}

#[test]
fn turns_have_rounds_of_tools_continuations_and_repairs() {
    let chat = "participants: [A], pattern: sequential";
    for (agent, expected) in [
        ("{name: A}", 4),
        ("{name: A, parameters: {max_continuations: 0}}", 1),
        ("{name: A, tools: [calculator], max_tool_rounds: 5, parameters: {max_tokens: 9}}", 6),
        ("{name: A, reasoning: {refine: {rounds: 2}}, parameters: {max_tokens: 9}}", 5),
    ] {
        assert_eq!(calls(agent, chat), expected, "{agent}");
    }
}

/// What is asked for the rest of a reply is never compacted before, and neither is a history of which all messages would stay.
#[test]
fn a_history_that_cannot_be_compacted_takes_no_summaries() {
    let chat = "participants: [A, B], pattern: sequential";
    assert_eq!(calls("{name: A, compaction: false}, {name: B, compaction: false}", chat), 8);
    // The adversary has a small window, which the second message fills.
    let model = Adversary { window: Some(10_000), ..Adversary::new(Behavior::Worst, 0) }.model();
    let text = |agents: &str, chat: &str| {
        team(&format!("{{name: t, model: 'a:b', task: hi, agents: [{agents}], chat: {{{chat}}}}}"))
    };
    let calls = |agents: &str, chat: &str| {
        let team = text(agents, chat);
        team.bound(&|_| Ok(model.clone()), &team.limits()).unwrap().at_most.calls().unwrap()
    };
    assert_eq!(calls("{name: A}, {name: B}", chat), 8);
    let five = "participants: [A, B, C, D, E], pattern: sequential";
    let agents =
        |more: &str| ["A", "B", "C", "D", "E"].map(|name| format!("{{name: {name}{more}}}")).join(", ");
    assert_eq!(calls(&agents(", compaction: false"), five), 20);
    assert!(calls(&agents(""), five) > 20);
    let tools = |rounds: u32, more: &str| {
        let system = "x".repeat(9_000);
        let agent = format!(
            "{{name: A, system: {system}, tools: [calculator], max_tool_rounds: {rounds}, tool_calling: native, parameters: {{max_tokens: 9}}{more}}}"
        );
        calls(&agent, "participants: [A], pattern: sequential")
    };
    assert_eq!(tools(2, ""), 3, "each round stays, with its results");
    assert_eq!(tools(3, ", compaction: false"), 4);
    assert!(tools(3, "") > 4);
}

/// A chat of which nothing but the limit of the run ends the calls is named.
#[test]
fn the_chat_with_more_calls_than_the_run_is_named() {
    let team = team(
        "{name: t, model: 'a:b', task: hi, agents: [{name: A}, {name: B}],\nchats: [{name: talk, participants: [A, B], max_turns: 900}], \
          chat: {participants: [talk, A], pattern: sequential}}",
    );
    let said = &bound(&team).rests_on[0];
    assert!(said.starts_with("the default limit of 1000 model calls, which is below what the chats allow: most of it the chat `talk` (line 2), up to "), "{said}");
}

/// Loops that only a default limit ends are named with their lines, and no others.
#[test]
fn each_loop_without_a_limit_of_its_own_is_named() {
    let named = |agents: &str, chats: &str| {
        let text = format!("name: t\nmodel: 'a:b'\ntask: hi\nagents:\n{agents}\n{chats}\n");
        let loops = bound(&team(&text)).open_loops;
        loops.iter().map(|open| (open.name.clone(), open.line, open.default)).collect::<Vec<_>>()
    };
    let loops = |chat: &str| named("  [{name: A}, {name: B}, {name: C}]", chat);
    let t = |line| vec![("t".to_owned(), line, Some(100))];
    for (chat, expected) in [
        ("chat: {participants: [A, B]}", t(6)),
        ("chat: {participants: [A, B], stop: {says: DONE}}", t(6)),
        ("chat: {participants: [A, B], max_turns: 5}", vec![]),
        ("chat: {participants: [A, B], stop: {max_turns: 5}}", vec![]),
        ("chat: {participants: [A, B], stop: {max_messages: 5}}", vec![]),
        ("chat: {participants: [A, B], pattern: sequential}", vec![]),
        ("chat: {participants: [A, B], pattern: {debate: {rounds: 2, options: [x, y]}}}", vec![]),
        (
            "chat: {participants: [A, B], pattern: {state_machine: {start: A, after: {A: [{then: B}], B: []}}}}",
            vec![],
        ),
        (
            "chat: {participants: [A, B], pattern: {state_machine: {start: A, after: {A: [{then: B}], B: [{then: A}]}}}}",
            t(6),
        ),
        ("chat: {participants: [A, B], pattern: {graph: {edges: {A: B}}}}", vec![]),
        (
            "chat: {participants: [A, B], pattern: {graph: {start: A, edges: {A: [{to: A, says: again}, {to: B, otherwise: true}]}}}}",
            t(6),
        ),
        (
            "chat: {participants: [A, B], pattern: {graph: {start: A, edges: {A: [{to: A, says: again, max_uses: 3}, {to: B, otherwise: true}]}}}}",
            vec![],
        ),
    ] {
        assert_eq!(loops(chat), expected, "{chat}");
    }
    // All of them, not only the most expensive one.
    let all = loops(
        "chats:\n  - {name: x, participants: [A, B]}\n  - {name: y, participants: [B, C], max_turns: 3}\n  - {name: z, participants: [A, C]}\nchat: {participants: [x, y, z]}",
    );
    let of = |name: &str, line| (name.to_owned(), line, Some(100));
    assert_eq!(all, [of("x", 7), of("z", 9), of("t", 10)]);
}

/// A loop of a team within the team is named with its file.
#[test]
fn loops_of_teams_within_the_team_are_named_with_their_files() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("inner")).unwrap();
    let outer = "name: all\nmodel: 'a:b'\ntask: hi\nteams: [{name: desk, file: inner/desk.yaml}]\nchat: {pattern: sequential, participants: [desk]}\n";
    let inner = "name: d\nagents: [{name: A}, {name: B}]\n\nchat: {participants: [A, B]}\n";
    std::fs::write(dir.path().join("inner/desk.yaml"), inner).unwrap();
    std::fs::write(dir.path().join("all.yaml"), outer).unwrap();
    let loaded = polylogue_team::load(dir.path().join("all.yaml"), &Overrides::default()).unwrap();
    let loops = bound(&loaded.team).open_loops;
    let [open] = &loops[..] else { panic!("{loops:?}") };
    let place = "(`inner/desk.yaml`, line 4): set `max_turns`";
    assert!(open.to_string().ends_with(place), "{open}");
}

/// One tool is defined, considered, called and answered with; several are chosen from in rounds.
#[test]
fn calls_of_tools_by_text_count_each_question() {
    let chat = "participants: [A], pattern: sequential";
    let agent =
        |more: &str| format!("{{name: A, tool_calling: text, parameters: {{max_tokens: 9}}, {more}}}");
    // The arguments, and again after five errors of each kind.
    let tries = 1 + 5 + 5;
    let must = "tools: [{tool: calculator, mandatory: true}]";
    let few = "tools: [{tool: calculator, max_errors: 1, max_call_errors: 0}]";
    let two = "tools: [calculator, high_low], max_tool_rounds: 3";
    for (more, expected) in [
        ("tools: [calculator]", 1 + 3 + tries + 1),
        ("tools: [calculator], tool_history: full", 2 + 3 + tries + 1),
        (must, 1 + tries + 1),
        (&format!("{must}, tool_history: full"), 2 + tries + 1),
        (few, 1 + 3 + 2 + 1),
        (two, 1 + 3 + 3 * (5 + tries + 3) + 1),
    ] {
        assert_eq!(calls(&agent(more), chat), expected, "{more}");
    }
}

/// A task whose one tool is mandatory has its result as the message: it is not asked for, and others read no reply.
#[test]
fn results_of_tasks_that_are_the_message_are_not_asked_for() {
    let of = |agent: &str| {
        let tool = "{tool: high_low, mandatory: true}";
        let text = format!(
            "{{name: t, model: 'a:b', task: hi, agents: [{{name: A, tool_calling: text{agent}}}, {{name: B}}], chat: {{participants: [A, B], \
              pattern: {{group_solve: {{max_iterations: 1, tasks: [{{who: B, prompt: Guess.}}, {{who: A, prompt: Compare., tools: [{tool}]}}]}}}}}}}}"
        );
        let rows = bound(&team(&text)).rows;
        ["A", "B"].map(|who| rows.iter().find(|row| row.agent == who).unwrap().at_most)
    };
    let (full, answer) = (", tool_history: full", "");
    // Twice: how it is called, arguments with five errors of each kind; an answer otherwise. Replies have four pieces.
    let calls = |more| of(more)[0].calls().unwrap();
    assert_eq!((calls(full), calls(answer)), (2 * (2 * 4 + 11), 2 * (4 + 11 + 4)));
    assert_eq!(calls(", tool_history: full, approval: always"), 2 * (2 * 4 + 11 + 4));
    // The second one speaks first in the discussion, so that the other one reads what it says.
    let input = |more| of(more)[1].input().unwrap();
    assert!(input(full) + 4 * 3 * 3_200 < input(answer), "{} {}", input(full), input(answer));
}

/// Only one that can follow the last speaker counts: a program every other turn, and no selection of one among one.
#[test]
fn turns_that_cannot_follow_each_other_do_not_count() {
    let pair = "participants: [A, B], max_turns: 4, pattern: {group: {select: {model: {attempts: 2}}";
    let lists = "transitions: {allowed: {A: B, B: A}}";
    for (pattern, expected) in [
        (format!("{pair}}}}}"), 4 * 3),
        (format!("{pair}, {lists}}}}}"), 2 + 4),
        (format!("{pair}, transitions: {{disallowed: {{A: A, B: B}}}}}}}}"), 2 + 4),
        (format!("{pair}, allow_repeat_speaker: false}}}}"), 2 + 4),
        (format!("{pair}, allow_repeat_speaker: A}}}}"), 3 * 4),
        (format!("{pair}, transitions: {{allowed: {{A: B}}}}}}}}"), 2 + 2),
    ] {
        assert_eq!(calls(PAIR, &pattern), expected, "{pattern}");
    }
    let programs = |order: &str| {
        let text = format!(
            "{{name: t, model: 'a:b', task: hi, \
              agents: [{{name: A, parameters: {{max_tokens: 9}}}}, {{name: R, model: none, code_execution: {{languages: [python]}}}}], \
              chat: {{participants: [A, R], max_turns: 8, pattern: {{group: {{select: random{order}}}}}}}}}"
        );
        bound(&team(&text)).at_most.input().unwrap() / 65_536
    };
    // Each of its turns reads the results before it: seven after the first, or one more each other turn.
    assert_eq!(
        (programs(""), programs(", allow_repeat_speaker: false")),
        (1 + 2 + 3 + 4 + 5 + 6 + 7, 1 + 2 + 3 + 4)
    );
}

/// An agent that hands over is not the next one.
#[test]
fn agents_that_hand_over_keep_what_they_did_in_every_other_turn() {
    let of = |then: &str| {
        let text = format!(
            "{{name: t, model: 'a:b', task: hi, limits: {{calls: 100000}}, \
              agents: [{{name: A, handoffs: [B]}}, {{name: B, handoffs: [A]}}, {{name: C}}], \
              chat: {{participants: [A, B, C], max_turns: 20, pattern: {{handoffs: {{start: A, then: {then}}}}}}}}}"
        );
        bound(&team(&text)).at_most.input().unwrap()
    };
    let (other, stays) = (of("C"), of("stay"));
    assert!(other < stays / 3 * 2, "{other} {stays}");
}

/// Facts and a plan, twice; ledgers of which each is asked for twice: for two turns, for two stalls of each plan, and for those that turns
/// take back; two turns; the answer.
#[test]
fn ledgers_count_as_stalls_that_turns_take_back() {
    let chat = "participants: [B], pattern: {orchestrator: {planner: A, max_turns: 2, max_plans: 2, max_stalls: 2, max_retries: 1}}";
    assert_eq!(calls(PAIR, chat), 2 * 2 + 2 * (2 + 2 * 2 + 2) + 2 + 1);
    // A prompt counts with what it quotes.
    let of = |answer: &str| {
        let chat = format!(
            "participants: [B], pattern: {{orchestrator: {{planner: A, prompts: {{answer: '{answer}'}}}}}}"
        );
        let text = format!(
            "{{name: t, model: 'a:b', task: '{}', agents: [{PAIR}], chat: {{{chat}}}}}",
            "x".repeat(1_000)
        );
        bound(&team(&text)).at_most.input().unwrap()
    };
    assert_eq!(of("{task}{task}{task}") - of("{task}"), 2 * (1_000 + 6));
}

/// Three messages, each of which can be asked for again; what is prepared before them is asked for twice, the second time after the first prompt.
#[test]
fn texts_of_a_role_play_count_as_long_as_they_are() {
    let agents =
        ["A", "B", "S", "P", "C"].map(|name| format!("{{name: {name}, parameters: {{max_tokens: 9}}}}"));
    let input = |keys: &str| {
        let chat = format!("participants: [A, B], pattern: {{role_play: {{max_rounds: 1, {keys}}}}}");
        let agents = agents.join(", ");
        let text = format!("{{name: t, model: 'a:b', task: hi, agents: [{agents}], chat: {{{chat}}}}}");
        bound(&team(&text)).at_most.input().unwrap()
    };
    for (keys, calls) in [
        ("user: {who: A, rules: TEXT}, assistant: B", 4),
        ("user: A, assistant: {who: B, rules: TEXT}", 2),
        ("user: A, assistant: B, texts: {opening: TEXT}", 4 + 2),
        ("user: A, assistant: B, language: TEXT", 2 * (4 + 2)),
        ("user: A, assistant: B, specifier: S, texts: {specifier: TEXT}", 1 + 2),
        ("user: A, assistant: B, planner: P, texts: {planner: TEXT}", 1 + 2),
        ("user: A, assistant: B, critic: {who: C, options: 2, retries: 0, criteria: TEXT}", 4 + 2),
    ] {
        let of = |bytes: usize| input(&keys.replace("TEXT", &"x".repeat(bytes)));
        assert_eq!(of(20_000) - of(10_000), calls * 10_000, "{keys}");
    }
}

/// Two critics that read the same draft lead to one turn of the editor.
#[test]
fn participants_of_a_graph_that_wait_for_all_speak_once_for_each_round() {
    let edges = "A: [B, C], B: D, C: D, D: [{to: A, says: again, max_uses: 2}, {to: E, otherwise: true}]";
    let agents = ["C", "D", "E"].map(|name| format!("{{name: {name}, parameters: {{max_tokens: 9}}}}"));
    let of = |join: &str| {
        let graph = format!("pattern: {{graph: {{start: A, edges: {{{edges}}}{join}}}}}");
        calls(&format!("{PAIR}, {}", agents.join(", ")), &format!("participants: [A, B, C, D, E], {graph}"))
    };
    assert_eq!((of(""), of(", join: {D: any}")), (13, 21));
}

/// What programs say before a call is at most what they can say in the turns between calls.
#[test]
fn programs_that_answer_count_by_the_order_of_turns() {
    let of = |order: &str| {
        let text = format!(
            "{{name: t, model: 'a:b', task: hi, limits: {{calls: 100}}, \
              agents: [{{name: A}}, {{name: R, model: none, code_execution: {{languages: [python]}}}}], chat: {{participants: [A, R], {order}}}}}"
        );
        bound(&team(&text)).at_most.input().unwrap()
    };
    let states = "pattern: {state_machine: {start: A, after: {A: R, R: A}}}, max_turns: 400";
    let any = "pattern: {group: {select: random}}, max_turns: 400";
    assert!(of(states) < of(any) / 3 * 2, "{} {}", of(states), of(any));
}

#[test]
fn input_grows_with_the_square_of_the_turns() {
    let input = |turns: u32| {
        let text = format!(
            "{{name: t, model: 'a:b', task: hi, agents: [{PAIR}], chat: {{participants: [A, B], max_turns: {turns}}}}}"
        );
        bound(&team(&text)).at_most.input().unwrap()
    };
    let (short, long) = (input(100), input(200));
    assert!(long > short * 3 && long < short * 5, "{short} {long}");
}

#[test]
fn turns_after_the_last_message_are_silent() {
    let of = |stop: &str| {
        let text = format!(
            "{{name: t, model: 'a:b', task: hi, agents: [{PAIR}], chat: {{participants: [A, B], stop: {{{stop}}}}}}}"
        );
        bound(&team(&text)).at_most
    };
    // Between two messages, one turn can be silent.
    let (messages, turns) = (of("max_messages: 10"), of("max_turns: 20"));
    assert_eq!((messages.calls(), turns.calls()), (Some(20), Some(20)));
    assert!(messages.input() < turns.input(), "{messages:?} {turns:?}");
    let other = of("any: [{max_messages: 10}, {says: x}], max_turns: 20");
    assert_eq!(other.input(), messages.input());
    // A blank reply is not continued.
    let agents = "{name: A}, {name: B}";
    assert_eq!(calls(agents, "participants: [A, B], stop: {max_messages: 10}"), 10 * 4 + 10);
    let both = of("all: [{max_messages: 10}, {says: x}], max_turns: 20");
    assert_eq!(both.input(), turns.input(), "it continues until the other holds, too");
}

#[test]
fn the_code_of_a_message_has_one_result() {
    let text = "{name: t, model: 'a:b', task: hi, agents: [{name: A}, {name: R, model: none, code_execution: {languages: [python]}}], \
                chat: {participants: [A, R], max_turns: 3}}";
    // The second turn of A, which is continued, reads it: 64 KiB for each of its four calls, and its own text.
    let input = bound(&team(text)).at_most.input().unwrap();
    assert!(input > 4 * 65_536 && input < 6 * 65_536, "{input}");
}

/// In any order of the participants, each of whom sees what comes before it.
#[test]
fn participants_of_a_graph_count_in_its_order() {
    let agents = "{name: Long, parameters: {max_tokens: 300}}, {name: Short, parameters: {max_tokens: 9}}";
    let of = |chat: &str| {
        let text = format!("{{name: t, model: 'a:b', task: hi, agents: [{agents}], chat: {{{chat}}}}}");
        bound(&team(&text)).at_most.input().unwrap()
    };
    let pattern = "pattern: {graph: {edges: {Long: Short}}}";
    let (one, other) = (
        of(&format!("participants: [Long, Short], {pattern}")),
        of(&format!("participants: [Short, Long], {pattern}")),
    );
    assert_eq!(one, other);
    assert_eq!(one, of("participants: [Short, Long], pattern: {dag: {Short: Long}}"));
}

/// Where the limit on calls ends a run, a request has at most what the calls before it wrote.
#[test]
fn requests_within_a_limit_on_calls_grow_with_the_calls() {
    let of = |turns: u64, calls: u64| {
        let text = format!(
            "{{name: t, model: 'a:b', task: hi, agents: [{PAIR}], chat: {{participants: [A, B], max_turns: {turns}}}, limits: {{calls: {calls}}}}}"
        );
        bound(&team(&text)).at_most
    };
    let (by_calls, by_turns, all) = (of(200, 20), of(20, 1_000), of(200, 1_000));
    assert_eq!((by_calls.calls(), by_turns.calls()), (Some(20), Some(20)));
    let largest = all.input().unwrap() * 2 / 200 * 20;
    assert!(by_calls.input() >= by_turns.input(), "{by_calls:?} {by_turns:?}");
    assert!(by_calls.input().unwrap() < largest / 2, "{by_calls:?} {all:?}");
}

/// A turn in the background has the history as one text, and one in which its result is said.
#[test]
fn turns_in_the_background_count() {
    let each = "participants: [A, B], pattern: sequential";
    assert_eq!(calls(PAIR, &format!("{each}, background: {{participants: [A]}}")), 2);
    let reflects = format!("{each}, summary: {{reflect: {{parameters: {{max_tokens: 9}}}}}}");
    assert_eq!(calls(PAIR, &reflects), 3);
    assert_eq!(calls(PAIR, &format!("{reflects}, background: {{participants: [A, B]}}")), 5);
}

#[test]
fn limits_of_the_run_limit_it() {
    let text = format!(
        "{{name: t, model: 'a:b', task: hi, limits: {{calls: 3, tokens: 50}}, agents: [{PAIR}], chat: {{participants: [A, B]}}}}"
    );
    let bound = bound(&team(&text));
    assert_eq!((bound.at_most.calls(), bound.at_most.input()), (Some(3), Some(50)));
    assert!(
        bound.rests_on[0].starts_with("the limit of 3 model calls, which is below"),
        "{:?}",
        bound.rests_on
    );
    assert!(!bound.rests_on.iter().any(|what| what.contains("person")), "{:?}", bound.rests_on);
    for (ceiling, after) in [
        ("", "the bound does not hold: no `ceiling` limits calls, tokens or money"),
        ("ceiling: {time: 1 h},", "the bound does not hold: no `ceiling` limits calls, tokens or money"),
        (
            "ceiling: {calls: 9, cost: 2.5},",
            "a run can take more than the bound, up to the `ceiling` of $2.50 and 9 model calls",
        ),
    ] {
        let asks = text.replace("calls: 3,", &format!("calls: 3, on_limit: ask, {ceiling}"));
        let what = format!("no person raises a limit when asked (`on_limit: ask`): after that {after}");
        assert_eq!(*self::bound(&team(&asks)).rests_on.last().unwrap(), what);
    }
}

#[test]
fn retries_multiply_it_within_the_limit_on_calls() {
    let bound = bound(&team(&format!(
        "{{name: t, model: 'a:b', task: hi, agents: [{PAIR}], chat: {{participants: [A, B], pattern: sequential}}}}"
    )));
    assert_eq!(bound.at_most.calls(), Some(2));
    // Five attempts, and once more where the provider cannot parse a reply.
    assert_eq!(bound.with_retries.calls(), Some(20));
    assert!(bound.typical.calls() <= bound.at_most.calls());
    assert_eq!(bound.clone().times(10).at_most.calls(), Some(20));
}

#[test]
fn the_largest_numbers_are_computed_at_once_and_saturate() {
    let text = format!(
        "{{name: t, model: 'a:b', task: hi, limits: {{calls: 1000000000000}}, agents: [{PAIR}],
          chat: {{participants: [outer, A], max_turns: 1000000}},
          chats: [{{name: outer, participants: [inner, B], max_turns: 1000000}},
                  {{name: inner, participants: [A, B], max_turns: 1000000}}]}}"
    );
    let bound = bound(&team(&text));
    assert_eq!(bound.at_most.calls(), Some(1_000_000_000_000));
}
