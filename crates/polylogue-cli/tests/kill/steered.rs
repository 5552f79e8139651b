//! Messages that are sent to a conversation while the process that runs it, or the one that sends, is killed.

use std::time::Duration;

use crate::place::{Kind, Place, Shows};
use crate::random::{Moment, Random};

/// How many conversations are killed, for each kind of store.
const CONVERSATIONS: usize = 4;

/// How many messages are sent to each.
const MESSAGES: usize = 4;

#[test]
fn a_message_is_in_the_log_exactly_once_whichever_process_is_killed() {
    let mut random = Random::of_environment();
    for kind in [Kind::Sqlite, Kind::Jsonl] {
        for _ in 0..CONVERSATIONS {
            send_and_kill(kind, &mut random);
        }
    }
}

fn send_and_kill(kind: Kind, random: &mut Random) {
    let place = Place::new(kind);
    let mut run = place.start(false, Shows::Talk);
    while place.server.count() == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut sent: Vec<(String, bool)> = Vec::new();
    for nth in 0..MESSAGES {
        let text = format!("note number {nth}.");
        let mut send = place.begin(&["send", "last", &text]);
        if random.below(2) == 0 {
            run.kill(Moment::Start(random.time_below(Duration::from_millis(60))));
            run = place.start(true, Shows::Talk);
        }
        let status = match random.below(2) {
            0 => send.kill(Moment::Start(random.time_below(Duration::from_millis(60)))),
            _ => Some(send.end()),
        };
        sent.push((text, status.is_some_and(|status| status.success())));
    }
    run.end();
    // What was stored and not taken is taken by the next process.
    place.start(true, Shows::Talk).end();
    let events = place.shown().unwrap();
    for (text, is_acknowledged) in sent {
        let from_outside =
            |line: &&String| line.contains(r#""type":"sent""#) || line.contains(r#""type":"reopened""#);
        let count = events.iter().filter(from_outside).filter(|line| line.contains(&text)).count();
        assert!(count <= 1, "{kind:?}: `{text}` is in the log {count} times");
        assert!(count == 1 || !is_acknowledged, "{kind:?}: `{text}` was acknowledged and is lost");
    }
}
