//! `show --history` and `show --side-by-side`: what every agent was told and said.

use expect_test::expect;

use crate::home::Home;

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
    home.run(&["run", home.file("guess.yaml", TEAM)]).exits(3);
    expect![[r#"
        ------ Keeper ------
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
    let nobody = home.run(&["show", "last", "--history", "--as", "Zoe"]).exits(2);
    assert!(nobody.err.starts_with("error (config): no model speaks for `Zoe`"), "{}", nobody.err);
    let both = home.run(&["show", "last", "--side-by-side", "--json"]).exits(2);
    assert!(both.err.contains("cannot be used with"), "{}", both.err);
}
