//! Random conversations end where a plain program, which knows nothing of logs and policies, says that they end; and
//! wherever their logs are cut, they continue to the same end.

use polylogue::stop::LoopDetector;
use polylogue::stop::{LibraryStopReason, ModelMistake};
use polylogue::tasks::RolePlay;
use polylogue::{AnyModel, Chat};
use polylogue_core::{AnyStore, StopReason};
use polylogue_models::Script;
use polylogue_store::Memory;
use polylogue_test::cut::{Calls, Cut};
use polylogue_test::random::Random;

use crate::common::name;
use crate::role_play::set::{DONE, play, role_play};

/// What is left to chance.
struct Case {
    /// What the user role replies, and what the assistant role does.
    replies: [Vec<String>; 2],
    rounds: u64,
    messages: u64,
    max_uninstructed: usize,
    max_flips: usize,
    lenient: bool,
}

impl Case {
    fn of(seed: u64) -> Self {
        let mut dice = Random::new(seed);
        let mut user = |n| match dice.below(12) {
            0 => String::new(),
            1..=3 => format!("Hello {n}"),
            4 => DONE.into(),
            5 => format!("I do not say {DONE} yet {n}"),
            6 => format!("Instruction: do not say {DONE} {n}"),
            _ => format!("Instruction: do {n}\nInput: None"),
        };
        let user = (0..40).map(&mut user).collect();
        let mut assistant = |n| match dice.below(10) {
            0 => " \n".into(),
            1 => format!("Solution: none {n}\n Instruction: you do it"),
            2 => format!("Solution: no Instruction: {n}"),
            3 => DONE.into(),
            _ => format!("Solution: did {n}. Next request."),
        };
        let assistant = (0..40).map(&mut assistant).collect();
        let mut up_to = |limit| dice.below(limit);
        Self {
            replies: [user, assistant],
            rounds: 1 + up_to(8),
            messages: 1 + up_to(20),
            max_uninstructed: usize::try_from(up_to(4)).unwrap(),
            max_flips: usize::try_from(up_to(3)).unwrap(),
            lenient: up_to(3) == 0,
        }
    }

    fn script(&self) -> String {
        let steps = |who: &str, replies: &[String]| -> Vec<serde_json::Value> {
            replies.iter().map(|text| serde_json::json!({ who: text })).collect()
        };
        let [user, assistant] = &self.replies;
        let all = [steps("Trader", user), steps("Python_programmer", assistant)].concat();
        serde_json::to_string(&all).unwrap()
    }

    fn chat(&self, model: &AnyModel) -> Chat {
        let role_play = role_play(model)
            .max_rounds(self.rounds)
            .max_messages(self.messages)
            .max_uninstructed(self.max_uninstructed)
            .max_flips(self.max_flips)
            .loop_detector(LoopDetector { repetition: 0, farewells: 0, ..LoopDetector::default() });
        let role_play = if self.lenient { RolePlay::lenient(role_play) } else { role_play };
        role_play.build("role_play").unwrap()
    }

    /// How it ought to go: what is said, how many calls that takes, and why it ends.
    fn expected(&self) -> (Vec<String>, usize, StopReason) {
        let names = ["Trader", "Python_programmer"].map(name);
        let limits = [self.max_uninstructed, self.max_flips];
        let (mut said, mut calls, mut erred, mut next) = (Vec::new(), 0, [0, 0], [0, 0]);
        loop {
            let side = said.len() % 2;
            let mut take = || {
                next[side] += 1;
                calls += 1;
                self.replies[side][next[side] - 1].clone()
            };
            let first = take();
            let text = if first.trim().is_empty() { take() } else { first };
            if text.trim().is_empty() {
                let silent = StopReason::from(LibraryStopReason::Errors {
                    who: names[side].clone(),
                    of: ModelMistake::Reply,
                    limit: 1,
                });
                return (said, calls, silent);
            }
            let is_done = text == DONE || self.lenient && text.contains(DONE);
            let is_wrong = match side {
                0 => !text.contains("Instruction:"),
                _ => text.contains("\n Instruction:"),
            };
            said.push(text);
            if side == 0 && is_done {
                return (
                    said,
                    calls,
                    StopReason::from(LibraryStopReason::Mentioned {
                        text: DONE.into(),
                        by: names[0].clone(),
                    }),
                );
            }
            erred[side] = if is_wrong { erred[side] + 1 } else { 0 };
            if is_wrong && erred[side] == limits[side] {
                let (who, limit) = (names[side].clone(), limits[side] as u64);
                return (
                    said,
                    calls,
                    StopReason::from(LibraryStopReason::Errors { who, of: ModelMistake::Role, limit }),
                );
            }
            let messages = said.len() as u64;
            if messages == self.messages {
                return (said, calls, StopReason::from(LibraryStopReason::Messages { limit: messages }));
            }
            if messages == 2 * self.rounds {
                return (said, calls, StopReason::from(LibraryStopReason::Rounds { limit: self.rounds }));
            }
        }
    }
}

#[tokio::test]
async fn random_societies_end_as_they_ought_to() {
    let mut ends = std::collections::BTreeMap::<String, usize>::new();
    for seed in 0..400 {
        let case = Case::of(seed);
        let came = play(&case.script(), "Trade", |model| case.chat(model)).await;
        let texts: Vec<String> = came.said().into_iter().map(|(_, text)| text).collect();
        assert_eq!((texts, came.asked.len(), came.reason.clone()), case.expected(), "seed {seed}");
        *ends.entry(came.reason.to_string().replace(|c: char| c.is_ascii_digit(), "")).or_default() += 1;
    }
    // Every way to end is among them, of both roles where both can.
    assert!(ends.len() >= 7, "{ends:?}");
}

#[tokio::test]
async fn random_societies_resume_at_every_cut() {
    for seed in 1000..1040 {
        let case = Case::of(seed);
        let script: Script = serde_json::from_str(&case.script()).unwrap();
        let chat = |calls: &Calls| case.chat(&calls.through(script.model("test")));
        let store = || AnyStore::new(Memory::new());
        let cut = Cut {
            task: "Trade",
            chat: &chat,
            store: &store,
            answer: &|_, _, _| panic!("no person is asked"),
        };
        if let Err(flaw) = cut.everywhere().await {
            panic!("seed {seed}: {flaw}");
        }
    }
}
