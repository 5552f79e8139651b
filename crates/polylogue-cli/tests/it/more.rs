//! Conversations that are continued with another message, and the layout of AutoGen.

use expect_test::expect;

use crate::home::{Home, of_type, timeless};

/// Ann and Bob say a thing each, twice over.
const PAIR: &str = "
name: pair
task: Begin
agents: [{name: Ann}, {name: Bob}]
chat: {participants: [Ann, Bob], stop: {max_turns: 2}}
script: [{Ann: one}, {Bob: two}, {Ann: three}, {Bob: four}]
";

#[test]
fn a_closed_conversation_continues_with_another_message() {
    let home = Home::new().with_team(PAIR);
    home.run(&["run", "team.yaml", "--offline"]).ok();
    let before = home.events();
    expect![[r#"
        the conversation continues

        user -> all:
        And now?

        Ann -> Bob:
        three

        Bob -> Ann:
        four

        done: 2 of 2 turns · 4 turns in all · tokens unknown · $0 · TIME
        `polylogue show ID` / `polylogue resume ID --max-turns 2`
        --- 0
    "#]]
    .assert_eq(&home.run(&["resume", "last", "And now?"]).ok().masked(&home));
    let after = home.events();
    assert_eq!(timeless(&after[..before.len()]), timeless(&before), "what was said stays");
    let reopened = of_type(&after, "reopened");
    assert_eq!(reopened.len(), 1);
    assert_eq!(reopened[0]["message"]["from"], "user");
}

#[test]
fn a_participant_can_say_so_and_the_text_can_come_from_standard_input() {
    let home = Home::new().with_team(PAIR);
    home.run(&["run", "team.yaml", "--offline"]).ok();
    home.run_reading("From Bob\n", &["resume", "last", "-", "--as", "Bob"]).ok();
    let events = home.events();
    let message = &of_type(&events, "reopened")[0]["message"];
    assert_eq!((&message["from"], &message["parts"][0]["text"]), (&"Bob".into(), &"From Bob".into()));
    expect![[r#"
        --- 2
        error (config): there is no participant `Zoe`
          hint: there are `Ann`, `Bob`, `user`
    "#]]
    .assert_eq(&home.run(&["resume", "last", "more", "--as", "Zoe"]).exits(2).masked(&home));
    expect![[r#"
        --- 2
        error (config): the message is empty
    "#]]
    .assert_eq(&home.run(&["resume", "last", " "]).exits(2).masked(&home));
    assert_eq!(home.events().len(), events.len(), "nothing is written of what was refused");
}

#[test]
fn nothing_more_is_said_to_a_conversation_that_is_not_over() {
    let home = Home::new().with_team(
        &PAIR
            .replace("{name: Ann}", "{name: Ann, human: true}")
            .replace("{Ann: one}, ", "")
            .replace("{Ann: three}, ", ""),
    );
    home.run(&["run", "team.yaml", "--offline"]).exits(5);
    expect![[r#"
        --- 2
        error (config): the conversation `ID` is not over
          hint: `polylogue resume ID --answer TEXT` answers for Ann, who is asked
    "#]]
    .assert_eq(&home.run(&["resume", "last", "more"]).exits(2).masked(&home));

    home.file(
        "broken.yaml",
        &PAIR.replace("{Bob: two}, {Ann: three}, {Bob: four}", "{Bob: {error: {status: 401, message: no}}}"),
    );
    home.run(&["run", "broken.yaml", "--offline"]).exits(1);
    expect![[r#"
        --- 2
        error (config): the conversation `ID` is not over
          hint: `polylogue resume ID` continues it; say more when it has ended
    "#]]
    .assert_eq(&home.run(&["resume", "last", "more"]).exits(2).masked(&home));
}

/// Item 100.
#[test]
fn a_run_and_what_is_shown_of_it_have_the_layout_of_autogen() {
    let home = Home::new().with_team(PAIR);
    let layout = expect![[r#"
        user (to pair):

        Begin

        --------------------------------------------------------------------------------
        Ann (to Bob):

        one

        --------------------------------------------------------------------------------
        Bob (to Ann):

        two

        --------------------------------------------------------------------------------
    "#]];
    let ran = home.run(&["run", "team.yaml", "--offline", "--style", "autogen"]).ok();
    let (talk, end) = ran.out.split_once("\ndone: ").unwrap();
    layout.assert_eq(talk);
    assert!(end.contains("`polylogue show "), "{end}");
    layout.assert_eq(&home.run(&["show", "last", "--style", "autogen"]).ok().out);
    home.run(&["show", "last", "--style", "autogen", "--json"]).exits(2);
    let colored = home.run(&["show", "last", "--style", "autogen", "--color", "always"]).ok();
    assert!(colored.out.contains("\u{1b}[33mAnn\u{1b}[0m (to Bob):\n"), "{}", colored.out);
}
