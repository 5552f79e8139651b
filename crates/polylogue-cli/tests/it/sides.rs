//! `show --history` and `show --side-by-side`: what every agent received and said.

use expect_test::expect;
use polylogue::tasks::group_solve::Check;
use polylogue_test::server::{Answer, Playbook, Quirk};
use polylogue_test::teams::WHISPER;

use crate::home::{Home, serve};

const TEAM: &str = r#"
name: guess
task: Guess.
agents:
  - {name: Keeper, system: You keep a secret.}
  - {name: Guesser}
chat:
  participants: [Keeper, Guesser]
  opening: [{to: [Keeper], text: The secret is 2.}, {to: [Guesser], text: Find the secret.}]
  stop: {max_turns: 3}
script:
  - Keeper: What is your guess?
  - Guesser: Is it 2?
  - Keeper: You won!
"#;

#[test]
fn every_point_of_view_is_shown_and_ends_with_the_agents_last_words() {
    let home = Home::new();
    home.run(&["run", home.file("guess.yaml", TEAM)]).ok();
    expect![[r#"
        ------ Keeper ------
        [system]:
        You keep a secret.

        [user]:
        The secret is 2.

        [assistant]:
        What is your guess?

        [user]:
        Is it 2?

        [assistant]:
        You won!

        ------ Guesser ------
        [user]:
        Find the secret.

        [user]:
        What is your guess?

        [assistant]:
        Is it 2?

    "#]]
    .assert_eq(&home.run(&["show", "last", "--history"]).ok().out);
    expect![[r#"
        [user]:
        Find the secret.

        [user]:
        What is your guess?

        [assistant]:
        Is it 2?

    "#]]
    .assert_eq(&home.run(&["show", "last", "--history", "--as", "Guesser"]).ok().out);
    expect![[r#"
        Keeper                                 | Guesser
                                               |
        [system]:                              |
        You keep a secret.                     |
                                               |
        [user]:                                | [user]:
        The secret is 2.                       | Find the secret.
                                               |
        [assistant]:                           | [user]:
        What is your guess?                    | What is your guess?
                                               |
        [user]:                                | [assistant]:
        Is it 2?                               | Is it 2?
                                               |
        [assistant]:                           |
        You won!                               |
    "#]]
    .assert_eq(&home.run(&["show", "last", "--side-by-side"]).ok().out);
    let unknown = home.run(&["show", "last", "--history", "--as", "Zoe"]).exits(2);
    assert!(unknown.err.starts_with("error (config): no model speaks for `Zoe`"), "{}", unknown.err);
    let both = home.run(&["show", "last", "--side-by-side", "--json"]).exits(2);
    assert!(both.err.contains("cannot be used with"), "{}", both.err);
}

/// Entries as they are printed.
fn blocks(entries: &serde_json::Value) -> String {
    let block = |entry: &serde_json::Value| {
        format!("[{}]:\n{}\n\n", entry["role"].as_str().unwrap(), entry["parts"][0]["text"].as_str().unwrap())
    };
    entries.as_array().unwrap().iter().map(block).collect()
}

#[test]
fn who_solves_tasks_is_shown_with_its_history_and_it_is_what_its_model_was_sent() {
    let home = Home::new();
    home.run(&["run", home.file("whisper.yaml", WHISPER)]).ok();
    let keeper = home.run(&["show", "last", "--as", "Keeper"]).ok();
    expect![[r#"
        [system]:
        You keep a secret.

        [user]:
        Choose a number from 1 to 3.

        [assistant]:
        It is 2.

        [user]:
        You receive guesses.

        [assistant]:
        I wait.

        [user]:
        1?

        [assistant]:
        You won!

        [user]:
        In your opinion, what objectives from your initial task have you NOT completed ?

        [assistant]:
        Nothing is left.

    "#]]
    .assert_eq(&keeper.out);
    let guesser = home.run(&["show", "last", "--as", "Guesser"]).ok();
    expect![[r#"
        [user]:
        Find a number from 1 to 3.

        [assistant]:
        I am ready.

        [user]:
        What is your guess?

        [assistant]:
        1?

        [user]:
        You won!

        [assistant]:
        What a game!

    "#]]
    .assert_eq(&guesser.out);
    let questions = [Check::REFLECTION, Check::DECISION];
    for (who, shown, calls) in [("Keeper", &keeper, 5), ("Guesser", &guesser, 5)] {
        let history = shown.out.strip_prefix("[system]:\nYou keep a secret.\n\n").unwrap_or(&shown.out);
        for call in 1..=calls {
            let sent = home.run(&["show", "last", "--as", who, "--call", &call.to_string(), "--json"]).ok();
            assert_eq!(sent.err, "", "it is known how {who} was asked in call {call}");
            let sent: serde_json::Value = serde_json::from_str(&sent.out).unwrap();
            let sent_blocks = blocks(&sent["entries"]);
            let is_asked = questions.iter().any(|question| sent_blocks.contains(question));
            let decides = sent_blocks.contains(Check::DECISION);
            assert_eq!(sent["params"]["temperature"].as_f64(), decides.then_some(Check::TEMPERATURE));
            assert!(is_asked || history.starts_with(&sent_blocks), "{who} {call}: {sent_blocks}");
        }
    }
}

#[test]
fn a_solved_group_is_shown_side_by_side() {
    let home = Home::new();
    let ran = home.run(&["run", home.file("whisper.yaml", WHISPER)]).ok();
    expect![[r#"
        participants: Keeper, Guesser
        task: Guess.

        Keeper -> itself:
        It is 2.

        Keeper -> itself:
        I wait.

        Guesser -> itself:
        I am ready.

        Guesser -> Keeper:
        1?

        Guesser (private): the task is not complete; the answer was: yes

        Keeper -> Guesser:
        You won!

        Keeper -> itself:
        Nothing is left.
        (the task is complete; the answer was: no)

        Guesser -> Keeper:
        What a game!

    "#]]
    .assert_eq(ran.out.split_once("done: ").unwrap().0);
    expect![[r#"
        Keeper                                 | Guesser
                                               |
        [system]:                              |
        You keep a secret.                     |
                                               |
        [user]:                                | [user]:
        Choose a number from 1 to 3.           | Find a number from 1 to 3.
                                               |
        [assistant]:                           | [assistant]:
        It is 2.                               | I am ready.
                                               |
        [user]:                                | [user]:
        You receive guesses.                   | What is your guess?
                                               |
        [assistant]:                           | [assistant]:
        I wait.                                | 1?
                                               |
        [user]:                                | [user]:
        1?                                     | You won!
                                               |
        [assistant]:                           | [assistant]:
        You won!                               | What a game!
                                               |
        [user]:                                |
        In your opinion, what objectives from  |
        your initial task have you NOT         |
        completed ?                            |
                                               |
        [assistant]:                           |
        Nothing is left.                       |
    "#]]
    .assert_eq(&home.run(&["show", "last", "--side-by-side"]).ok().out);
}

#[test]
fn histories_and_costs_are_written_as_json_and_costs_as_a_table() {
    let home = Home::new();
    home.run(&["run", home.file("guess.yaml", TEAM)]).ok();
    let lines = |args: &[&str]| -> Vec<serde_json::Value> {
        let out = home.run(args).ok().out;
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let sides = lines(&["show", "last", "--history", "--json"]);
    let who: Vec<_> = sides.iter().map(|side| side["agent"].as_str().unwrap()).collect();
    assert_eq!(who, ["Keeper", "Guesser"]);
    assert_eq!(sides[0]["system"], "You keep a secret.");
    assert_eq!(sides[0]["entries"].as_array().unwrap().len(), 4);
    assert_eq!(lines(&["show", "last", "--history", "--json", "--as", "Guesser"]), [sides[1].clone()]);
    let strange = home.run(&["show", "last", "--history", "--json", "--as", "Zoe"]).exits(2);
    assert!(strange.err.contains("no model speaks for `Zoe`"), "{}", strange.err);
    let costs = lines(&["show", "last", "--cost", "--json"]);
    let [guesser, keeper, total] = &costs[..] else { panic!("{costs:?}") };
    assert_eq!(
        (&keeper["agent"], &keeper["purpose"], &keeper["usage"]["calls"]),
        (&"Keeper".into(), &"speaking".into(), &2.into())
    );
    assert_eq!((&guesser["agent"], &total["total"]["calls"]), (&"Guesser".into(), &3.into()));
    let table = home.run(&["show", "last", "--cost"]).ok().out;
    expect![[r#"
        agent    for    model         calls  cost
        Guesser  turns  script:guess      1    $0
        Keeper   turns  script:guess      2    $0
        total                             3    $0
        tokens unknown: the replies are from a script, or from a server that reports no usage
    "#]]
    .assert_eq(&table);
}

/// Numbers end below each other, and what is known of some calls only is said in their row.
#[test]
fn costs_of_models_have_their_tokens_in_a_column() {
    let server = serve(Playbook::new(|received, _| match received.model() {
        "silent" => Answer::text("words").with(Quirk::NoUsage),
        _ => Answer::text("words").usage(1000, 20),
    }));
    let home = Home::at(&server);
    let team = "name: pair\ntask: Talk\nprices: {'openai-chat:loud': {input: 10, output: 10}}\n\
                agents: [{name: Ann, model: 'openai-chat:loud'}, {name: Bob, model: 'openai-chat:silent'}]\n\
                chat: {participants: [Ann, Bob], pattern: sequential}\n";
    home.run(&["run", home.file("team.yaml", team)]).ok();
    expect![[r#"
        agent  for    model               calls          tokens              cost
        Ann    turns  openai-chat:loud        1           1,020           $0.0102
        Bob    turns  openai-chat:silent      1         unknown           unknown
        total                                 2  at least 1,020  at least $0.0102
    "#]]
    .assert_eq(&home.run(&["show", "last", "--cost"]).ok().out);
}

#[test]
fn a_code_block_is_printed_exactly() {
    let home = Home::new();
    let team = "name: coder\ntask: Write it.\nagents: [{name: Ann}]\nchat: {participants: [Ann], pattern: sequential}\n\
                script:\n  - Ann: \"First:\\n```python\\nif x:\\n\\tprint('a')  \\n\\n```\\nThen:\\n```sh\\nls\\n```\\n\"\n";
    home.run(&["run", home.file("team.yaml", team)]).ok();
    assert_eq!(home.run(&["show", "last", "--code", "1"]).ok().out, "if x:\n\tprint('a')  \n\n");
    assert_eq!(home.run(&["show", "last", "--code", "2"]).ok().out, "ls\n");
    let missing = home.run(&["show", "last", "--code", "9"]).exits(2);
    assert!(missing.err.contains("the conversation has 2 code blocks"), "{}", missing.err);
    assert_eq!(missing.out, "");
}

#[test]
fn the_agents_that_a_hint_lists_can_be_shown() {
    let home = Home::new();
    home.run(&["run", &crate::home::shipped("arithmetic-group"), "--offline"]);
    let strange = home.run(&["show", "last", "--as", "zoe"]).exits(2);
    let offered: Vec<&str> =
        strange.err.rsplit("there are ").next().unwrap().split('`').skip(1).step_by(2).collect();
    assert!(offered.contains(&"arithmetic-group_selector"), "{}", strange.err);
    for who in offered {
        let shown = home.run(&["show", "last", "--as", who]);
        assert!(!shown.err.contains("no model speaks for"), "{who}: {}", shown.err);
    }
    let picker = home.run(&["show", "last", "--as", "arithmetic-group_selector"]).ok();
    assert!(picker.err.is_empty() && picker.out.contains("Who of the participants"), "{}", picker.out);
    let costs = home.run(&["show", "last", "--cost"]).ok().out;
    assert!(
        costs
            .lines()
            .any(|line| line.starts_with("arithmetic-group_selector") && line.contains("private turns")),
        "{costs}"
    );
}
