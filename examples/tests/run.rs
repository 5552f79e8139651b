//! Every example is run, and what it prints is compared.

// Marked as tests, so that what the lints allow in tests is allowed in their helpers too.
#[cfg(test)]
mod tests {
    use std::process::{Command, Output};

    use expect_test::{Expect, expect};
    use polylogue_test::server::{Answer, Behavior, Playbook, Server};

    /// The program in a folder where nothing is, with none of the user's settings.
    fn program(path: &str) -> (Command, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let mut program = Command::new(path);
        program.env_clear().env("TMPDIR", folder.path()).current_dir(folder.path());
        (program, folder)
    }

    fn check(path: &str, expected: &Expect) {
        let (mut program, _folder) = program(path);
        let Output { status, stdout, stderr } = program.output().unwrap();
        assert!(status.success(), "{status}: {}", String::from_utf8_lossy(&stderr));
        expected.assert_eq(&String::from_utf8(stdout).unwrap());
    }

    #[test]
    fn two_agents() {
        check(
            env!("CARGO_BIN_EXE_two_agents"),
            &expect![[r#"
                user: Why is the sky blue?

                Teacher: What color is the evening sky, and where does its light come from?

                Student: Red, and it comes a long way through the air.

                Teacher: Which color got lost on the way?

                Student: Blue: the air scatters it, and by day it comes from everywhere. I see.

                (Student said `I see.`)
            "#]],
        );
    }

    #[test]
    fn streaming() {
        check(
            env!("CARGO_BIN_EXE_streaming"),
            &expect![[r#"
                Teacher: What color is the evening sky, and where does its light come from?
                Student: Red, and it comes a long way through the air.
                Teacher: Which color got lost on the way?
                Student: Blue: the air scatters it, and by day it comes from everywhere. I see.
                -- Student said `I see.`
            "#]],
        );
    }

    #[test]
    fn custom_agent() {
        check(
            env!("CARGO_BIN_EXE_custom_agent"),
            &expect![[r#"
                (a person goes to the garden and reads the thermometer)
                failed: script:demo: the connection broke
                user: How warm is it?

                Forecaster: 21.5

                (Forecaster replied)
            "#]],
        );
    }

    #[test]
    fn custom_policy() {
        check(
            env!("CARGO_BIN_EXE_custom_policy"),
            &expect![[r#"
            user: What should we build?
            Ann: A bench by the pond
            Bob: Twenty apple trees
            Cem: A playground
            -- Bob wins with 2 of 3 votes
        "#]],
        );
    }

    #[test]
    fn resume() {
        check(
            env!("CARGO_BIN_EXE_resume"),
            &expect![[r#"
            Monday: Traveler is asked: Traveler, it is your turn.
            Friday: Booked: 9:40, a seat at the window.
            -- 3 of 3 turns
        "#]],
        );
    }

    #[test]
    fn human_input() {
        check(
            env!("CARGO_BIN_EXE_human_input"),
            &expect![[r#"
                user: The area of a circle, in Python

                Coder: def area(r): return 3 * r * r

                Boss: 3 is not pi

                Coder: def area(r): return math.pi * r * r
                DONE

                Boss: And the import?

                Coder: import math, then. DONE

                (Coder said `DONE`)
            "#]],
        );
    }

    #[test]
    fn sequential() {
        check(
            env!("CARGO_BIN_EXE_sequential"),
            &expect![[r#"
                adding: 16

                doubling: 64

                (every participant has spoken)
            "#]],
        );
    }

    #[test]
    fn dag() {
        check(
            env!("CARGO_BIN_EXE_dag"),
            &expect![[r#"
                prices: A ton costs 90.

                news: The harbor is closed.

                report: Buy: it will be 100.

                (every chat of the DAG is finished)
            "#]],
        );
    }

    #[test]
    fn state_machine() {
        check(
            env!("CARGO_BIN_EXE_state_machine"),
            &expect![[r#"
                user: A sentence about a cat

                Writer: A cat sleeps.

                Critic: Too short

                Writer: A cat sleeps on the warm stones.

                Critic: GOOD

                Editor: Printed: A cat sleeps on the warm stones.

                (no participant may speak after Editor)
            "#]],
        );
    }

    /// The programs that are one pattern each come first in the table of the README.
    #[test]
    fn a_pattern_takes_fewer_than_thirty_lines_of_code() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
        let names = readme.lines().filter_map(|line| Some(line.strip_prefix("| [`")?.split_once('`')?.0));
        let patterns: Vec<&str> = names.take_while(|name| *name != "small_model.rs").collect();
        assert!(patterns.len() > 13, "{patterns:?}");
        for name in patterns {
            let source = std::fs::read_to_string(root.join(name)).unwrap();
            let is_code = |line: &&str| !line.is_empty() && !line.trim_start().starts_with("//");
            let lines = source.lines().filter(is_code).count();
            assert!((10..30).contains(&lines), "{name} has {lines} lines of code");
        }
    }

    #[test]
    fn group() {
        check(
            env!("CARGO_BIN_EXE_group"),
            &expect![[r#"
                user: A function that halves whole numbers

                Coder: def half(n): return n / 2

                Tester: half(3) is 1.5, and should be whole

                Coder: def half(n): return n // 2

                Tester: APPROVED

                (Tester said `APPROVED`)
            "#]],
        );
    }

    #[test]
    fn nested() {
        check(
            env!("CARGO_BIN_EXE_nested"),
            &expect![[r#"
                user: A sentence about the sea

                Writer: The sea is blue.

                Critics: Add a comparison.

                Writer: The sea is blue like old glass.

                Critics: Leave it so.

                (4 of 4 turns)
            "#]],
        );
    }

    #[test]
    fn handoff() {
        check(
            env!("CARGO_BIN_EXE_handoff"),
            &expect![[r#"
                user: I paid an invoice twice

                Front: Invoice 7 was paid twice.

                Billing: I see both payments. Shall I send one back?

                Customer: Yes, please

                Billing: It is on its way.

                (Customer left: said `exit`)
            "#]],
        );
    }

    #[test]
    fn state() {
        check(
            env!("CARGO_BIN_EXE_state"),
            &expect![[r#"
                user: A used bicycle

                Buyer: I offer 80

                Seller: Your offer is too low

                Buyer: Well, 95

                Seller: Sold

                (the condition `sold is true` held)
            "#]],
        );
    }

    #[test]
    fn debate() {
        check(
            env!("CARGO_BIN_EXE_debate"),
            &expect![[r#"
                user: What should the town build?

                Ann: A bench is cheap

                Bob: Trees last

                Cem: Children need to play

                Ann: Trees give shade, too

                Bob: They do

                Cem: And one can climb them

                Result: apple trees

                (the vote was for `apple trees`)
            "#]],
        );
    }

    #[test]
    fn orchestrator() {
        check(
            env!("CARGO_BIN_EXE_orchestrator"),
            &expect![[r#"
                user: How long is the way to the sea?

                Planner: The task:

                How long is the way to the sea?

                The team:
                Surfer: Looks things up.
                Clerk: Works things out.

                What is known:

                To look up: the distance

                The plan:

                Surfer looks it up, Clerk works out the time

                Planner: How far is it to the sea?

                Surfer: 300 km

                Planner: How long are 300 km at 100 km/h?

                Clerk: 3 hours

                Result: It takes 3 hours.

                (Planner judged the request satisfied)
            "#]],
        );
    }

    #[test]
    fn graph() {
        check(
            env!("CARGO_BIN_EXE_graph"),
            &expect![[r#"
                user: A sentence about rain

                Writer: Rain fell.

                Grammar: Correct.

                Style: Dull.

                Editor: Once again.

                Writer: Rain drummed.

                Grammar: Correct.

                Style: Better.

                Editor: Print it.

                Printer: Printed.

                (the graph is complete)
            "#]],
        );
    }

    #[test]
    fn task() {
        check(
            env!("CARGO_BIN_EXE_task"),
            &expect![[r#"
                Keeper: 5

                Keeper: Twice 5 is 10.

                (all 2 tasks are done)
            "#]],
        );
    }

    #[test]
    fn group_solve() {
        check(
            env!("CARGO_BIN_EXE_group_solve"),
            &expect![[r#"
                Keeper: My secret number is 2.

                Keeper: I wait for guesses.

                Guesser: I am ready.

                Guesser: Is it 1?

                Keeper: No.

                Guesser: Is it 2?

                Keeper: You won!

                Guesser: What a game!

                (the task of Keeper is complete)
            "#]],
        );
    }

    #[test]
    fn structured_output() {
        check(
            env!("CARGO_BIN_EXE_structured_output"),
            &expect![[r#"
                Clerk: {"city":"Paris","population":2000000}

                (the task is done)
            "#]],
        );
    }

    #[test]
    fn tool() {
        check(
            env!("CARGO_BIN_EXE_tool"),
            &expect![[r#"
                user: The secret is 7. Is it 3?

                Master: No: it is greater than 3.

                (Master replied)
            "#]],
        );
    }

    /// What one machine prints and another does not - paths and lines of a traceback - is left out.
    #[test]
    fn code_execution() {
        let (mut program, _folder) = program(env!("CARGO_BIN_EXE_code_execution"));
        let printed = String::from_utf8(program.output().unwrap().stdout).unwrap();
        let refuses = |line: &&str| {
            line.contains("the sandbox does not work here") || line.contains("there is no program `python3`")
        };
        if let Some(refused) = printed.lines().find(refuses) {
            // Where the kernel forbids it, or there is no Python, that is the result, and nothing was run.
            assert!(printed.contains("exitcode: 1 (execution failed)"), "{refused}");
            let _ = polylogue_test::skip::can_enclose(Some(refused));
            return;
        }
        for expected in [
            "Proxy: exitcode: 1 (execution failed)\nCode output: Traceback",
            "TypeError: unsupported operand type(s) for /: 'str' and 'str'",
            "Proxy: exitcode: 0 (execution succeeded)\nCode output: 25%\n",
            "The gain since the beginning of the year is 25%. TERMINATE\n\n(Assistant said `TERMINATE`)",
        ] {
            assert!(printed.contains(expected), "{expected}\n{printed}");
        }
    }

    #[test]
    fn fixed_answer() {
        check(
            env!("CARGO_BIN_EXE_fixed_answer"),
            &expect![[r#"
            bot: 急
            {"from":"bot","parts":[{"text":"急"}]}
            {"memory":[{"from":"user","parts":[{"text":"今天的天气情况怎么样"}]},{"from":"bot","parts":[{"text":"急"}]}]}
        "#]],
        );
    }

    #[test]
    fn few_shot() {
        check(
            env!("CARGO_BIN_EXE_few_shot"),
            &expect![[r#"
            sent: 今天天气 / 【晴】 / 昨天天气
            【雨】
            sent: 今天天气 / 【晴】 / 昨天天气 / 【雨】 / 明天天气
            【阴】
            remembered: 4 messages
        "#]],
        );
    }

    #[test]
    fn philosopher() {
        check(
            env!("CARGO_BIN_EXE_philosopher"),
            &expect![[r#"
            Bot: To ask for it
            is a good part of it.
            35 characters in all
        "#]],
        );
    }

    /// `Coder`, `Blogger` and `Visualizer`: each in under 40 lines.
    #[test]
    fn agents_of_agents_are_short() {
        for name in ["coder", "blogger", "visualizer"] {
            let path = format!("{}/{name}.rs", env!("CARGO_MANIFEST_DIR"));
            let source = std::fs::read_to_string(path).unwrap();
            let lines = source.lines().skip_while(|line| *line != "#[derive(Clone)]");
            let is_of_it = |line: &&str| {
                ["const ", "async fn ", "#[tokio", "/// The arguments of the search"]
                    .iter()
                    .all(|end| !line.starts_with(end))
            };
            let count = lines.take_while(is_of_it).filter(|line| !line.is_empty()).count();
            assert!((10..40).contains(&count), "{name}: {count} lines");
        }
    }

    #[test]
    fn coder() {
        check(
            env!("CARGO_BIN_EXE_coder"),
            &expect![[r#"
            It is (1/5, -3/5).

            user:
            Find the projection of a onto b = (1, -3) if a·b = 2.

            Solver:
            The projection is (a·b / b·b) b. So:
            ```python
            print(2 / 10, -6 / 10)

            Executor:
            0.2 -0.6

            Solver:
            It is (1/5, -3/5).

        "#]],
        );
    }

    #[test]
    fn blogger() {
        check(
            env!("CARGO_BIN_EXE_blogger"),
            &expect![[r#"
            AI: A longer draft. (criticized: writer: A draft. | critic: Longer, please.)
            biotechnology: A longer draft. (criticized: writer: A draft. | critic: Longer, please.)
            new energy: A longer draft. (criticized: writer: A draft. | critic: Longer, please.)
            video games: A longer draft. (criticized: writer: A draft. | critic: Longer, please.)
            pop music: A longer draft. (criticized: writer: A draft. | critic: Longer, please.)
        "#]],
        );
    }

    #[test]
    fn visualizer() {
        check(
            env!("CARGO_BIN_EXE_visualizer"),
            &expect![[r#"
                Final Answer: see `chart.png`.
                memory: 2 messages
                researcher.memory: 4 messages
                charter.memory: 4 messages
                executor.memory: 4 messages
            "#]],
        );
    }

    #[test]
    fn a_real_model_without_a_key_says_what_to_do() {
        let (mut program, _folder) = program(env!("CARGO_BIN_EXE_real_model"));
        let Output { status, stdout, stderr } = program.output().unwrap();
        assert_eq!((status.code(), stdout.as_slice()), (Some(1), &b""[..]));
        expect![[r#"
            error (config): openai:gpt-4o-mini: no API key is set for this provider
            hint: no key was sent; set `OPENAI_API_KEY` in the environment or in `.env`
        "#]]
        .assert_eq(&String::from_utf8(stderr).unwrap());
    }

    #[tokio::test]
    async fn a_real_model_at_an_endpoint() {
        let server =
            Server::start(Playbook::list(["Waves count to four", "Too few waves.", "Waves", "Fine."])).await;
        let (mut program, _folder) = program(env!("CARGO_BIN_EXE_real_model"));
        program.env("OPENAI_BASE_URL", server.base_url()).env("OPENAI_API_KEY", "test");
        let Output { status, stdout, stderr } = program.output().unwrap();
        assert!(status.success(), "{status}: {}", String::from_utf8_lossy(&stderr));
        expect![[r#"
            user: A haiku about the sea

            Poet: Waves count to four

            Critic: Too few waves.

            Poet: Waves

            Critic: Fine.

            (4 of 4 turns)

            -- 4 calls, 286 tokens, $0.000049
        "#]]
        .assert_eq(&String::from_utf8(stdout).unwrap());
        assert_eq!((server.violations(), server.unused()), (vec![], 0));
    }

    #[test]
    fn role_play() {
        check(
            env!("CARGO_BIN_EXE_role_play"),
            &expect![[r#"
                user: Now give me your instructions, one at a time, each as `Instruction:` and `Input:` and nothing else. Begin with the first.

                Trader: Instruction: Say how to compare two weeks.
                Input: Daily prices

                Programmer: Solution: Compare the means of the last seven days and of the seven before. Next request.

                Trader: Instruction: Write it as a function.
                Input: None

                Programmer: Solution: `def warn(p): return sum(p[-7:]) > 1.1 * sum(p[-14:-7])`. Next request.

                Trader: <CAMEL_TASK_DONE>

                Result: Solution: `def warn(p): return sum(p[-7:]) > 1.1 * sum(p[-14:-7])`. Next request.

                (Trader said `<CAMEL_TASK_DONE>`)
            "#]],
        );
    }

    const TRIP: Expect = expect![[r#"
        user: How long is the train from Oslo to Bergen?

        Guide: {"hours":7}

        (Guide replied)
    "#]];

    #[test]
    fn small_model() {
        check(env!("CARGO_BIN_EXE_small_model"), &TRIP);
    }

    #[tokio::test]
    async fn a_small_model_at_an_endpoint_that_refuses_all_but_text() {
        let replies = [
            ("What is wrong with it", r#"{"hours": 7}"#),
            ("satisfies this JSON Schema", "<think>{\"hours\": 9}</think>It takes {'hours': '7 hours'}."),
            ("as one JSON object and nothing else", "```json\n{'route': 'Oslo-Bergen'}\n```"),
            ("Do not solve the task yet", "I understand."),
        ];
        let book = Playbook::new(move |asked, _| {
            let reply = replies.iter().find(|(asks, _)| asked.last_text().contains(asks));
            reply.map_or_else(|| Answer::unexpected(asked.last_text()), |(_, text)| Answer::text(*text))
        });
        let server = Server::start(Behavior::from(book).text_only()).await;
        let (mut program, _folder) = program(env!("CARGO_BIN_EXE_small_model"));
        program.arg("compatible:small").env("OPENAI_BASE_URL", server.base_url());
        let Output { status, stdout, stderr } = program.output().unwrap();
        assert!(status.success(), "{status}: {}", String::from_utf8_lossy(&stderr));
        TRIP.assert_eq(&String::from_utf8(stdout).unwrap());
        assert!(server.violations().is_empty(), "{:?}", server.violations());
    }
}
