//! What stays between turns, what stands around messages, and who speaks next: teams that each rest on one of these.

use super::adversary::{Adversary, Behavior, FAILS};
use super::stage::{OPEN, Setting, Stage};
use super::sweep::flaw;
use super::{bound, calls, team};

/// What stands for a long text in the teams.
const LONG: &str = "LONG";

/// What stands for one that is longer than all that the program adds to requests.
const MUCH: &str = "MUCH";

/// Teams, each with what their bound would miss if one of these did not count.
const TEAMS: [(&str, &str); 18] = [
    (
        "an agent as a tool keeps its calls of tools",
        "agents: [{name: A, parameters: {max_tokens: 8}, agent_tools: [{who: B, description: Helps., max_calls: 1}], max_tool_rounds: 1, \
                   tool_limits: {max_output_bytes: 200}}, \
                  {name: B, system: 'Of {{task}}', parameters: {max_tokens: 80}, tools: [calculator], max_tool_rounds: 4}], \
         chat: {participants: [A], max_turns: 10}",
    ),
    (
        "an agent as a tool has turns for its tasks in the background",
        "agents: [{name: A, parameters: {max_tokens: 8}, agent_tools: [{who: B, description: Helps., max_calls: 1}], max_tool_rounds: 1}, \
                  {name: B, parameters: {max_tokens: 40}, agent_tools: [{who: C, description: Helps., max_calls: 1, background: true}], max_tool_rounds: 1}, \
                  {name: C, parameters: {max_tokens: 40}}], \
         chat: {participants: [A], max_turns: 4}",
    ),
    (
        "an agent that waits for background tasks reads their results within its turn",
        "agents: [{name: A, parameters: {max_tokens: 48}, agent_tools: [{who: B, description: Helps., background: true}], max_tool_rounds: 9}, \
                  {name: B}], \
         chat: {participants: [A], max_turns: 2}",
    ),
    (
        "a critic that chooses keeps its choices",
        "agents: [{name: A, parameters: {max_tokens: 20}, reasoning: {best: {critic: C, options: 2, retries: 8}}}, \
                  {name: C, system: 'LONG {{task}}', parameters: {max_tokens: 40}}], \
         chat: {participants: [A], max_turns: 4}",
    ),
    (
        "a draft that no window cuts",
        "agents: [{name: A, parameters: {max_tokens: 40}, view: {window: {messages: 1}}, reasoning: {best: {critic: C, options: 2}}}, \
                  {name: C, parameters: {max_tokens: 40}}], \
         chat: {participants: [A], max_turns: 8}",
    ),
    (
        "an agent that refines alone has one conversation",
        "agents: [{name: A, parameters: {max_tokens: 50}, reasoning: {refine: {rounds: 6}}}], chat: {participants: [A], max_turns: 3}",
    ),
    (
        "an agent that plans and answers alone has one conversation",
        "agents: [{name: A, parameters: {max_tokens: 50}, reasoning: rewoo, tools: [calculator]}], chat: {participants: [A], max_turns: 4}",
    ),
    (
        "critics call tools, too",
        "agents: [{name: A, parameters: {max_tokens: 20}, reasoning: {refine: {rounds: 2, critic: C}}}, \
                  {name: C, parameters: {max_tokens: 20}, agent_tools: [{who: B, description: Helps., max_calls: 2}], max_tool_rounds: 2}, \
                  {name: B, parameters: {max_tokens: 80}}], \
         chat: {participants: [A], max_turns: 3}",
    ),
    (
        "texts of a carryover",
        "agents: [{name: A, parameters: {max_tokens: 5}}], \
         chats: [{name: work, task: Go., carryover: {context: [LONG, '{{task}}']}, participants: [A], max_turns: 6}], \
         chat: {participants: [work], pattern: sequential}",
    ),
    (
        "prefixes of messages",
        "agents: [{name: A, parameters: {max_tokens: 5}, view: {prefix: {B: LONG, user: LONG}}}, {name: B, parameters: {max_tokens: 5}}], \
         chat: {participants: [A, B], max_turns: 12}",
    ),
    (
        "an opening that no window cuts",
        "agents: [{name: A, parameters: {max_tokens: 5}, view: {window: {messages: 1}}}], \
         chat: {participants: [A], max_turns: 5, opening: [LONG, LONG, LONG, LONG, LONG, LONG, '{{task}}']}",
    ),
    (
        "a participant who opened is not the first to speak",
        "agents: [{name: A, parameters: {max_tokens: 5}}, {name: B, parameters: {max_tokens: 400}}], \
         chat: {participants: [A, B], max_turns: 1, opening: {from: A, text: hello}}",
    ),
    (
        "people who leave",
        "agents: [{name: P, human: true}, {name: Q, human: true}, {name: A, parameters: {max_tokens: 5}}, {name: B, parameters: {max_tokens: 5}}], \
         chat: {participants: [P, Q, A, B], max_turns: 16}",
    ),
    (
        "edges that lead past a participant",
        "agents: [{name: A, parameters: {max_tokens: 5}}, {name: B, parameters: {max_tokens: 5}}, \
                  {name: C, parameters: {max_tokens: 20}, tools: [calculator], max_tool_rounds: 8}], \
         chat: {participants: [A, B, C], stop: {max_turns: 2}, \
                pattern: {graph: {start: A, edges: {A: [{to: B, says: zzzz}, {to: C, otherwise: true}]}}}}",
    ),
    (
        "all attempts with each model of a list",
        "agents: [{name: A, model: ['a:b', 'c:d'], parameters: {max_tokens: 5}}, {name: B, parameters: {max_tokens: 5}}], \
         chat: {participants: [A, B], max_turns: 4}",
    ),
    (
        "rules of the roles of a role-play",
        "agents: [{name: A, parameters: {max_tokens: 5}}, {name: B, parameters: {max_tokens: 5}}], \
         chat: {participants: [A, B], pattern: {role_play: {user: {who: A, rules: 'MUCH {{task}}'}, assistant: {who: B, rules: MUCH}, \
                max_uninstructed: 0, max_rounds: 4}}}",
    ),
    (
        "prompts before a role-play, its opening, and the criteria of its critic",
        "agents: [{name: A, parameters: {max_tokens: 5}}, {name: B, parameters: {max_tokens: 5}}, {name: S, parameters: {max_tokens: 5}}, \
                  {name: P, parameters: {max_tokens: 5}}, {name: C, parameters: {max_tokens: 5}}], \
         chat: {participants: [A, B], pattern: {role_play: {user: A, assistant: B, specifier: S, planner: P, language: French, \
                critic: {who: C, options: 2, criteria: MUCH}, \
                texts: {opening: 'MUCH {{task}}', specifier: 'MUCH {{task}}', planner: MUCH}, max_uninstructed: 0, max_rounds: 2}}}",
    ),
    (
        "questions whether a task is complete",
        "agents: [{name: A, parameters: {max_tokens: 5}}, {name: B, parameters: {max_tokens: 5}}], \
         chat: {participants: [A, B], pattern: {group_solve: {max_iterations: 2, end: all_complete, check: {reflection: MUCH, decision: MUCH}, \
                tasks: [{who: A, prompt: Begin., self_terminating: true}, {who: B, prompt: End., self_terminating: true}]}}}",
    ),
];

#[tokio::test(start_paused = true)]
async fn runs_of_each_team_end_within_its_bound() {
    let place = tempfile::tempdir().unwrap();
    for (what, keys) in TEAMS {
        let text = format!("{{name: t, model: 'a:b', task: hi, {keys}}}").replace(LONG, &"word ".repeat(400));
        let text = text.replace(MUCH, &"word ".repeat(12_000));
        let mut stage = Stage::new(what.to_owned(), team(&text), place.path());
        for (behavior, fails) in [
            (Behavior::Worst, 0),
            (Behavior::Longest, 0),
            (Behavior::EndlessCalls, 0),
            (Behavior::Waiting, 0),
            (Behavior::NeverDone, 0),
            (Behavior::Longest, FAILS),
        ] {
            for exit in [None, Some(0)] {
                let model = Adversary { fails, ..Adversary::new(behavior, 0) };
                let played = stage.play(model, Setting { exit, ..OPEN }).await;
                let flaw = flaw(&played, behavior);
                assert!(flaw.is_none(), "{what}, {behavior:?}, {fails} failures, {exit:?}: {flaw:?}");
            }
        }
    }
}

/// The input of each agent, with the calls that it takes.
fn rows(agents: &str, chat: &str) -> Vec<(String, u64, u64)> {
    let text = format!("{{name: t, model: 'a:b', task: hi, agents: [{agents}], chat: {{{chat}}}}}");
    let rows = bound(&team(&text)).rows;
    let mut rows: Vec<_> = rows
        .into_iter()
        .map(|row| (row.agent, row.at_most.calls().unwrap(), row.at_most.input().unwrap()))
        .collect();
    rows.sort();
    rows
}

/// What an agent that is asked has received and done is in each later request to it.
#[test]
fn agents_that_are_asked_remember_earlier_turns() {
    let tool = "{name: A, parameters: {max_tokens: 8}, agent_tools: [{who: B, description: Helps., max_calls: 1}]}, \
                {name: B, parameters: {max_tokens: 80}, tools: [calculator], max_tool_rounds: 4}";
    let critic = "{name: A, parameters: {max_tokens: 20}, reasoning: {best: {critic: B, options: 2}}}, {name: B, parameters: {max_tokens: 20}}";
    for agents in [tool, critic] {
        let of = |turns: u32| {
            let rows = rows(agents, &format!("participants: [A], max_turns: {turns}"));
            rows.into_iter().find(|(who, ..)| who == "B").unwrap()
        };
        let ((_, few, short), (_, many, long)) = (of(10), of(20));
        assert_eq!(many, 2 * few);
        assert!(long > 3 * short, "{short} {long} {agents}");
    }
    let input = |reasoning: &str| {
        let agents = format!(
            "{{name: A, parameters: {{max_tokens: 50}}, reasoning: {{{reasoning}}}, tools: [calculator]}}, {{name: C, parameters: {{max_tokens: 50}}}}"
        );
        rows(&agents, "participants: [A], max_turns: 3").into_iter().map(|(.., input)| input).sum::<u64>()
    };
    // Alone, it has both sides in one conversation.
    assert!(input("rewoo: {}") > input("rewoo: {solver: C}"));
    let agents = |critic: &str| {
        format!(
            "{{name: A, parameters: {{max_tokens: 50}}, reasoning: {{refine: {{rounds: 10{critic}}}}}}}, {{name: C, parameters: {{max_tokens: 50}}}}"
        )
    };
    let of = |critic: &str| {
        let rows = rows(&agents(critic), "participants: [A], max_turns: 3");
        rows.into_iter().map(|(.., input)| input).sum::<u64>()
    };
    assert!(of("") * 5 > of(", critic: C") * 6, "{} {}", of(""), of(", critic: C"));
}

/// A critic reads the task of the chat.
#[test]
fn agents_that_are_asked_quote_the_task_of_the_chat() {
    let input = |task: usize| {
        let agents = "{name: A, parameters: {max_tokens: 9}, reasoning: {best: {critic: C, options: 2, retries: 0}}}, {name: C, system: '{{task}}', parameters: {max_tokens: 9}}";
        let text = format!(
            "{{name: t, model: 'a:b', task: {}, agents: [{agents}], chat: {{participants: [A], pattern: sequential}}}}",
            "x".repeat(task)
        );
        bound(&team(&text)).at_most.input().unwrap()
    };
    // Two drafts after the opening, and a choice.
    assert_eq!(input(6_001) - input(1), 3 * 6_000);
}

#[test]
fn texts_of_a_carryover_are_in_each_request() {
    let input = |bytes: usize| {
        let text = format!(
            "{{name: t, model: 'a:b', task: hi, agents: [{{name: A, parameters: {{max_tokens: 9}}}}], \
              chats: [{{name: work, task: Go., carryover: {{context: [{}]}}, participants: [A], max_turns: 3}}], \
              chat: {{participants: [work], pattern: sequential}}}}",
            "x".repeat(bytes)
        );
        bound(&team(&text)).at_most.input().unwrap()
    };
    assert_eq!(input(2_001) - input(1), 3 * 2_000);
}

/// In the requests of the third and the fourth turn, instead of the name and with a line after it.
#[test]
fn prefixes_are_in_each_request_with_a_message_of_their_author() {
    let input = |view: &str| {
        let agents = format!(
            "{{name: A, parameters: {{max_tokens: 9}}{view}}}, {{name: B, parameters: {{max_tokens: 9}}}}"
        );
        let text = format!(
            "{{name: t, model: 'a:b', task: hi, agents: [{agents}], chat: {{participants: [A, B], max_turns: 4}}}}"
        );
        bound(&team(&text)).at_most.input().unwrap()
    };
    let prefix = format!(", view: {{prefix: {{B: {}}}}}", "x".repeat(2_000));
    assert_eq!(input(&prefix) - input(""), 2 * (2_000 + 2 - 1));
}

#[test]
fn an_order_begins_after_the_author_of_the_opening() {
    const PAIR: &str = "{name: A, parameters: {max_tokens: 9}}, {name: B, parameters: {max_tokens: 9}}";
    for (opening, first) in [
        ("", "A"),
        (", opening: {from: A, text: x}", "B"),
        (", opening: {from: B, text: x}", "A"),
        (", opening: [{from: A, text: x}, y]", "A"),
        // The task can be blank.
        (", opening: [{from: A, text: x}, '{{task}}']", "AB"),
    ] {
        for pattern in ["round_robin", "{group: {select: round_robin}}"] {
            let chat = format!("participants: [A, B], max_turns: 1, pattern: {pattern}{opening}");
            let who: String = rows(PAIR, &chat).into_iter().map(|(who, ..)| who).collect();
            assert_eq!(who, first, "{chat}");
            assert_eq!(calls(PAIR, &chat), 1);
        }
    }
    let continued = "chats: [{name: talk, continues: self, opening: [], participants: [A, B], max_turns: 1}], chat: {participants: [talk], max_turns: 2}";
    let text = format!("{{name: t, model: 'a:b', task: hi, agents: [{PAIR}], {continued}}}");
    let who: Vec<String> = bound(&team(&text)).rows.into_iter().map(|row| row.agent).collect();
    assert!(who.contains(&"B".to_owned()), "{who:?}");
}

/// Its last requests have all that was done, and a limit on calls leaves room for them to be repeated.
#[test]
fn a_limit_on_calls_shortens_no_step_of_a_plan() {
    let tokens = |calls: u32| {
        let text = format!(
            "{{name: t, model: 'a:b', task: hi, limits: {{calls: {calls}}}, chat: {{participants: [A], max_turns: 1}}, \
             agents: [{{name: A, reasoning: {{plan_and_solve: {{planner: P, solver: S, max_steps: 20}}}}}}, \
             {{name: P, parameters: {{max_tokens: 100}}}}, {{name: S, parameters: {{max_tokens: 1000}}}}]}}"
        );
        bound(&team(&text)).to_enforce().tokens.unwrap()
    };
    let (once, repeated) = (tokens(21), tokens(40));
    assert!(2 * repeated > 3 * once, "{once} {repeated}");
}

#[test]
fn people_who_can_leave_take_no_turns_for_sure() {
    let agents = "{name: P, human: true}, {name: Q, human: true}, {name: A, parameters: {max_tokens: 9}}, {name: B, parameters: {max_tokens: 9}}";
    for (chat, expected) in [
        // One of two who leaves ends the chat.
        ("participants: [P, A], max_turns: 10", 5),
        ("participants: [P, A, B], max_turns: 9", 8),
        ("participants: [A, B, P], max_turns: 9", 9),
        ("participants: [P, Q, A, B], max_turns: 10", 9),
        ("participants: [P, Q, A, B], max_turns: 900, pattern: {group: {select: round_robin}}", 900),
    ] {
        assert_eq!(calls(agents, chat), expected, "{chat}");
    }
    // With another way to reply, `exit` ends the chat.
    let stays = agents.replace("{name: P, human: true}", "{name: P, human: true, human_input: always}");
    assert_eq!(calls(&stays, "participants: [P, A, B], max_turns: 9"), 6);
}

#[test]
fn conditions_of_edges_decide_who_has_the_last_turns() {
    let agents = "{name: A, parameters: {max_tokens: 9}}, {name: B, parameters: {max_tokens: 9}}, {name: C, parameters: {max_tokens: 9}}";
    let graph = "pattern: {graph: {start: A, edges: {A: [{to: B, says: zzzz}, {to: C, otherwise: true}]}}}";
    for (stop, who) in
        [("stop: {max_turns: 2}", "ABC"), ("max_turns: 2", "ABC"), ("stop: {max_turns: 3}", "ABC")]
    {
        let found = rows(agents, &format!("participants: [A, B, C], {stop}, {graph}"));
        assert_eq!(found.iter().map(|(who, ..)| who.as_str()).collect::<String>(), who, "{stop}");
    }
    assert_eq!(calls(agents, &format!("participants: [A, B, C], stop: {{max_turns: 2}}, {graph}")), 2);
}
