//! People who watch over agents, and people who pick the speakers, at the terminal: they always see what to type.

use expect_test::{Expect, expect};

use crate::home::{Home, of_type};
use crate::models::said;
use crate::terminal::Terminal;

fn home(team: &str) -> Home {
    Home::new().with_team(team)
}

/// Presses the keys when each of the texts is on the screen, and compares what is to be seen in the end.
#[track_caller]
fn drive(home: &Home, keys: &[(&str, &str)], expected: &Expect) -> i32 {
    let mut terminal = Terminal::open(home, (90, 100), &["run", "team.yaml", "--offline"]);
    for (text, keys) in keys {
        terminal.press_at(text, keys);
    }
    let (code, seen) = terminal.end();
    let seen = seen.replace(&home.id(), "ID");
    let (_, talk) = seen.split_once("\nparticipants: ").unwrap();
    let (talk, end) = talk.rsplit_once(" · ").unwrap();
    expected.assert_eq(&format!(
        "participants: {talk} · TIME{}",
        end.split_once('\n').map_or("\n", |(_, rest)| &end[end.len() - rest.len() - 1..])
    ));
    code
}

const ALWAYS: &str = "
name: always
task: Plan the trip
agents:
  - {name: Kim, human_input: always}
  - {name: Bot}
chat: {participants: [Bot, Kim], stop: {max_turns: 10}}
script: [{Bot: To the sea?}, {Kim: Any sea}, {Bot: To the lake?}, {Bot: Booked}]
";

#[test]
fn a_person_who_is_always_asked() {
    let home = home(ALWAYS);
    let keys = [
        ("To the sea?\n\nKim is asked:", "\n"),
        ("To the lake?\n\nKim is asked:", "Yes, the lake\n"),
        ("Booked\n\nKim is asked:", " Exit \n"),
    ];
    let code = drive(
        &home,
        &keys,
        &expect![[r#"
            participants: Bot, Kim

            user → all
            Plan the trip

            Bot → Kim
            To the sea?

            Kim is asked:
            You speak as Kim to Bot. Type a reply. Enter gives an automatic reply, exit ends the
            conversation.
            Kim>

            Kim → Bot
            Any sea

            Bot → Kim
            To the lake?

            Kim is asked:
            You speak as Kim to Bot. Type a reply. Enter gives an automatic reply, exit ends the
            conversation.
            Kim> Yes, the lake

            Bot → Kim
            Booked

            Kim is asked:
            You speak as Kim to Bot. Type a reply. Enter gives an automatic reply, exit ends the
            conversation.
            Kim>  Exit

            Kim ends the chat

            stopped: Kim left: said `exit` · 6 turns · tokens unknown · $0 · TIME
            `polylogue show ID` / `polylogue resume ID`
        "#]],
    );
    assert_eq!(code, 6, "a person ended it");
    assert_eq!(
        said(&home.events()),
        ["Plan the trip", "To the sea?", "Any sea", "To the lake?", "Yes, the lake", "Booked"]
    );
}

#[test]
fn the_same_in_the_layout_of_autogen() {
    let home = home(ALWAYS);
    let mut terminal =
        Terminal::open(&home, (100, 60), &["run", "team.yaml", "--offline", "--style", "autogen"]);
    terminal.press_at("To the sea?", "\n");
    terminal.press_at("To the lake?", "exit\n");
    let (code, seen) = terminal.end();
    assert_eq!(code, 6);
    let (_, talk) = seen.split_once("model calls\n").unwrap();
    let (talk, _) = talk.split_once("\nstopped: ").unwrap();
    expect![[r#"
        user (to always):

        Plan the trip

        --------------------------------------------------------------------------------
        Bot (to Kim):

        To the sea?

        --------------------------------------------------------------------------------
        You speak as `Kim` to `Bot`. Type a reply. Enter gives an automatic reply, `exit` ends the
        conversation.
        Kim>

        >>>>>>>> NO HUMAN INPUT RECEIVED.

        >>>>>>>> USING AUTO REPLY...
        Kim (to Bot):

        Any sea

        --------------------------------------------------------------------------------
        Bot (to Kim):

        To the lake?

        --------------------------------------------------------------------------------
        You speak as `Kim` to `Bot`. Type a reply. Enter gives an automatic reply, `exit` ends the
        conversation.
        Kim> exit
    "#]]
    .assert_eq(talk);
    assert!(terminal_colors(&home), "names are yellow");
}

/// Whether what is shown of the run has colors, where they are wished.
fn terminal_colors(home: &Home) -> bool {
    let shown = home.run(&["show", "last", "--style", "autogen", "--color", "always"]).ok().out;
    shown.contains("\u{1b}[33mBot\u{1b}[0m (to Kim):")
        && shown.contains("\u{1b}[31m>>>>>>>> USING AUTO REPLY...")
}

const TERMINATE: &str = "
name: terminate
task: Count
agents:
  - {name: Kim, human_input: terminate, max_auto_replies: 1}
  - {name: Bot}
chat: {participants: [Bot, Kim], stop: {max_turns: 20}}
script: [{Bot: one}, {Kim: more}, {Bot: two}, {Bot: TERMINATE}, {Bot: four}, {Kim: again}, {Bot: TERMINATE}]
";

#[test]
fn a_person_who_is_asked_at_the_end_and_at_the_limit() {
    let home = home(TERMINATE);
    let keys = [
        // The limit on replies without human input.
        ("two\n\nKim is asked:", "Go on\n"),
        // What would end the conversation.
        ("TERMINATE\n\nKim is asked:", "Not yet\n"),
        ("again\n\nBot → Kim\nTERMINATE\n\nKim is asked:", "\n"),
    ];
    let code = drive(
        &home,
        &keys,
        &expect![[r#"
            participants: Bot, Kim

            user → all
            Count

            Bot → Kim
            one

            Kim → Bot
            more

            Bot → Kim
            two

            Kim is asked:
            You speak as Kim, which replied by itself once, to Bot. Type a reply. Enter gives an
            automatic reply, exit ends the conversation.
            Kim> Go on

            Bot → Kim
            TERMINATE

            Kim is asked:
            You speak as Kim; Bot ended the conversation. Type a reply to continue; Enter or exit
            ends the conversation.
            Kim> Not yet

            Bot → Kim
            four

            Kim → Bot
            again

            Bot → Kim
            TERMINATE

            Kim is asked:
            You speak as Kim; Bot ended the conversation. Type a reply to continue; Enter or exit
            ends the conversation.
            Kim>

            Kim ends the chat

            done: Bot said `TERMINATE` · 10 turns · tokens unknown · $0 · TIME
            `polylogue show ID`
        "#]],
    );
    assert_eq!(code, 0);
    assert_eq!(of_type(&home.events(), "input_required").len(), 3);
}

#[test]
fn a_person_who_is_asked_without_a_terminal_answers_later() {
    let home = home(TERMINATE);
    home.run(&["run", "team.yaml", "--offline"]).exits(5);
    home.run(&["resume", "last", "--answer", "Go on"]).exits(5);
    home.run(&["resume", "last", "--answer", "Not yet"]).exits(5);
    let ran = home.run(&["resume", "last", "--answer", ""]).exits(0);
    assert!(ran.out.contains("done: "), "{}", ran.out);
    assert_eq!(
        said(&home.events()),
        ["Count", "one", "more", "two", "Go on", "TERMINATE", "Not yet", "four", "again", "TERMINATE"]
    );
}

const MANUAL: &str = "
name: manual
task: Write
agents:
  - {name: Chair, human: true}
  - {name: Ann, description: Writes}
  - {name: Bob, description: Reads}
chat: {pattern: {group: {select: {human: Chair}}}, participants: [Ann, Bob], stop: {max_turns: 4}}
script: [{Bob: Read}, {Ann: Wrote}, {Bob: Read again}, {Ann: Wrote again}]
";

#[test]
fn a_person_who_picks_the_speakers() {
    let home = home(MANUAL);
    let keys = [
        ("Who speaks next?", "2\n"),
        ("Read\n\nChair is asked:", "Zoe\n"),
        ("Zoe is none of them.", "Ann\n"),
        ("Wrote\n\nChair is asked:", "\n"),
        ("Read again\n\nChair is asked:", "1\n"),
    ];
    let code = drive(
        &home,
        &keys,
        &expect![[r#"
            participants: Ann, Bob

            user → all
            Write

            Chair is asked:
            Who speaks next?
            1  Ann: Writes
            2  Bob: Reads
            Type a number or a name. Enter takes the next in order (Ann), exit ends the conversation.
            Chair> 2

            Chair picks Bob among Ann, Bob; the reply was: 2

            Bob → Ann
            Read

            Chair is asked:
            Who speaks next?
            1  Ann: Writes
            2  Bob: Reads
            Type a number or a name. Enter takes the next in order (Ann), exit ends the conversation.
            Chair> Zoe

            Chair is asked:
            Zoe is none of them. Who speaks next?
            1  Ann: Writes
            2  Bob: Reads
            Type a number or a name. Enter takes the next in order (Ann), exit ends the conversation.
            Chair> Ann

            Chair picks Ann among Ann, Bob

            Ann → Bob
            Wrote

            Chair is asked:
            Who speaks next?
            1  Ann: Writes
            2  Bob: Reads
            Type a number or a name. Enter takes the next in order (Bob), exit ends the conversation.
            Chair>

            Bob → Ann
            Read again

            Chair is asked:
            Who speaks next?
            1  Ann: Writes
            2  Bob: Reads
            Type a number or a name. Enter takes the next in order (Ann), exit ends the conversation.
            Chair> 1

            Chair picks Ann among Ann, Bob; the reply was: 1

            Ann → Bob
            Wrote again

            done: 4 of 4 turns · tokens unknown · $0 · TIME
            `polylogue show ID` / `polylogue resume ID --max-turns 4`
        "#]],
    );
    assert_eq!(code, 0, "4 of 4 turns");
}
