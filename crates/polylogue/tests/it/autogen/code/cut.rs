//! A conversation with code in it, cut after every event and run again: what was run is not run again, and what was running
//! is reported as such. What programs do is counted in a file.

use std::sync::Arc;

use polylogue::Status;
use polylogue::tools::Approval;
use polylogue_core::{Body, Event};

use super::{Bench, pair, said};
use crate::common::{log_of, run_or_resume};
use crate::stage::printed;

/// Two messages with code; of the blocks of the first, a person edits the second.
const LINES: [&str; 3] = [
    "```sh\necho one >> effects\n```\n```sh\necho two >> effects\n```",
    "Thanks. Again:\n\n```sh\necho three >> effects\ncat effects\n```",
    "Done.",
];

/// What the person says to a question.
fn answer(question: &str) -> &'static str {
    match question {
        text if text.starts_with("The answer was unclear.") => {
            "```sh
echo 2 >> effects
```"
        }
        text if text.contains("echo two") => "?",
        _ => "yes",
    }
}

/// Plays it from `prefix`, with `effects` of what ran before. The events then, and the effects.
async fn play(prefix: &[Arc<Event>], effects: &str) -> Option<(Vec<Arc<Event>>, String)> {
    let bench = Bench::new()?;
    std::fs::create_dir_all(bench.dir.join("work")).unwrap();
    std::fs::write(bench.dir.join("work/effects"), effects).unwrap();
    let chat = pair(&LINES, bench.coder().approval(Approval::always()), 6);
    let mut log = log_of(prefix).await;
    let mut status = run_or_resume(&chat, &mut log, "go").await.unwrap().status;
    while let Status::Waiting(questions) = &status {
        let (at, question) = &questions[0];
        log.answer(at, &question.who, answer(&question.text)).await.unwrap();
        status = chat.resume(&mut log).await.unwrap().status;
    }
    Some((log.events().await, bench.file("effects").unwrap()))
}

fn count(events: &[Arc<Event>], is: impl Fn(&Body) -> bool) -> usize {
    events.iter().filter(|event| is(&event.body)).count()
}

#[tokio::test]
async fn code_that_ran_is_not_run_again_after_a_cut() {
    let lines = ["one\n", "2\n", "three\n"];
    let Some((whole, effects)) = play(&[], "").await else { return };
    assert_eq!(effects, lines.concat());
    assert_eq!(said(&whole, "Bob").len(), 3, "{}", printed(&whole));
    let (mut same, mut in_flight) = (0, 0);
    for cut in 1..whole.len() {
        let prefix = &whole[..cut];
        let returned = count(prefix, |body| matches!(body, Body::ToolReturned { .. }));
        let called = count(prefix, |body| matches!(body, Body::ToolCalled { .. }));
        let before = lines[..returned].concat();
        if called == returned {
            let (again, effects) = play(prefix, &before).await.unwrap();
            assert_eq!((again, effects), (whole.clone(), lines.concat()), "cut before event {cut}");
            same += 1;
            continue;
        }
        // It may have done its work or not: either way it is not done again, and what came after it in the message neither.
        for before in [before.clone(), format!("{before}{}", lines[returned])] {
            let (again, effects) = play(prefix, &before).await.unwrap();
            let rest = if returned == 0 { &lines[2..] } else { &lines[returned + 1..] };
            assert_eq!(effects, format!("{before}{}", rest.concat()), "cut before event {cut}");
            let reply = &said(&again, "Bob")[usize::from(returned == 2)];
            assert!(reply.starts_with("exitcode: 1 (execution failed)\nCode output: "), "{reply}");
            assert!(reply.contains("outcome") && reply.contains("unknown"), "{reply}");
            assert!(matches!(again.last().unwrap().body, Body::Closed { .. }));
            in_flight += 1;
        }
    }
    assert!(same > 15 && in_flight == 6, "{same} cuts between calls, {in_flight} within");
}
