//! What people do from outside of a conversation, in each layout.

use expect_test::{Expect, expect};
use polylogue_core::{Instruction, LimitOverrides, Responder};

use super::*;

fn events() -> Vec<Event> {
    let mut stage = Stage::live(80, 24);
    let refused = Instruction::NextSpeaker { who: name("Zoe") };
    let cut = Body::ReplyInterrupted { who: name("B"), model: "script:test".into(), text: "One\ntwo".into() };
    let (none, more) =
        (LimitOverrides::default(), LimitOverrides { turns: Some(9), ..LimitOverrides::default() });
    let late = Body::InputProvided { to: name("A"), text: "Not today.".into(), by: Responder::Timeout };
    let list = [
        opened(&["A", "B"], "user", "Count"),
        Body::NextSpeaker { who: name("B") },
        Body::Paused,
        Body::Resumed,
        Body::LimitsChanged {
            limits: none,
            more,
            changes: vec!["turns of the chat from 4 to 9".into()],
            by: Some("pat".into()),
        },
        // By an option of `resume`.
        Body::LimitsChanged { limits: more, more: none, changes: Vec::new(), by: None },
        Body::Refused { instruction: Box::new(refused), why: "`Zoe` is no participant".into() },
        cut,
        late,
        said("A", "Not today."),
        Body::Cancelled { now: false },
        Body::Cancelled { now: true },
    ];
    list.into_iter().map(|body| stage.event_at(&Path::root(), body)).collect()
}

#[test]
fn a_paused_run_says_at_the_terminal_how_it_continues() {
    let mut stage = Stage::live(60, 20);
    stage.screen = stage.screen.with_keys(Keys { running: "stop it", paused: "resume it" });
    stage.root(opened(&["A", "B"], "user", "Count"));
    stage.root(Body::Paused);
    stage.wait(100);
    let seen = stage.sees();
    assert!(seen.ends_with("no other begins\n\nresume it\n"), "{seen}");
    stage.root(Body::Resumed);
    let seen = stage.sees();
    assert!(seen.ends_with("\ncontinued after the pause\n"), "{seen}");
    stage.root(Body::Paused);
    stage.screen.end(&ending()).unwrap();
    let seen = stage.sees();
    assert!(!seen.contains("resume it"), "{seen}");
}

fn check(shown: &Sanitized, expected: &Expect) {
    expected.assert_eq(&shown.to_string());
}

#[test]
fn show_prints_a_line_for_each_steering_event() {
    check(
        &document::shown(&events(), Format::WHOLE, Pictures::default()),
        &expect![[r#"
        participants: A, B

        user -> all:
        Count

        B was chosen to speak next
        paused: turns that have begun end, and no other begins
        continued after the pause
        limits were raised by pat: turns of the chat from 4 to 9
        Zoe as the next speaker was refused: `Zoe` is no participant
        B was cut off after: One (+1 line)
        no answer for A in time: the default counts

        A -> B:
        Not today.

        stopped: turns that have begun end, and no other begins
        stopped at once
    "#]],
    );
}

#[test]
fn the_autogen_layout_prints_a_line_for_each_steering_event() {
    check(
        &document::autogen("club", &events(), false),
        &expect![[r#"
        user (to club):

        Count

        --------------------------------------------------------------------------------

        >>>>>>>> B was chosen to speak next

        >>>>>>>> paused: turns that have begun end, and no other begins

        >>>>>>>> continued after the pause

        >>>>>>>> limits were raised by pat: turns of the chat from 4 to 9

        >>>>>>>> Zoe as the next speaker was refused: `Zoe` is no participant

        >>>>>>>> B was cut off after: One (+1 line)

        >>>>>>>> no answer for A in time: the default counts
        A (to B):

        Not today.

        --------------------------------------------------------------------------------

        >>>>>>>> stopped: turns that have begun end, and no other begins

        >>>>>>>> stopped at once
    "#]],
    );
}

#[test]
fn the_markdown_document_has_a_line_for_each_steering_event() {
    check(
        &document::markdown("Count", &events(), Pictures::default()),
        &expect![[r#"
        # Count

        *Participants: A, B*

        ### user

        Count

        *B was chosen to speak next*

        *Paused: turns that have begun end, and no other begins*

        *Continued after the pause*

        *Limits were raised by pat: turns of the chat from 4 to 9*

        *Zoe as the next speaker was refused: \`Zoe\` is no participant*

        *B was cut off after: One (+1 line)*

        *No answer for A in time: the default counts*

        ### A

        Not today.

        *Stopped: turns that have begun end, and no other begins*

        *Stopped at once*
    "#]],
    );
}
