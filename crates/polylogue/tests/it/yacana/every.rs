//! Every combination of settings of two, against a plain program of what is to happen.

use std::sync::Mutex;

use polylogue::AnyModel;
use polylogue::tasks::group_solve::Check;
use polylogue::tasks::{EndMode, GroupSolve, Task};
use polylogue_core::{DeltaSink, Model, ModelError, Reply, Request, text_of};

use crate::stage::Spy;
use crate::yacana::table::{Played, agent};

/// What is set.
#[derive(Debug, Clone, Copy)]
struct Set {
    mode: EndMode,
    flagged: [bool; 2],
    keeps: bool,
    reconciles: bool,
    owner: usize,
    content: bool,
    max: u64,
    /// Which check of an agent, from 0, finds its task complete.
    completes: [usize; 2],
}

impl Set {
    fn solve(self, model: &AnyModel) -> GroupSolve {
        let task = |at: usize| {
            let task = Task::new(agent(["one", "two"][at], model.clone()), ["P1", "P2"][at]);
            let task = if self.flagged[at] { task.self_terminating() } else { task };
            if self.flagged[at] && self.keeps { task.keeps_reflections() } else { task }
        };
        let solve = GroupSolve::new([task(0), task(1)], self.mode).max_iterations(self.max);
        let solve = solve.shift_owner(["one", "two"][self.owner]);
        let solve = if self.reconciles { solve.reconcile() } else { solve };
        if self.content { solve.shift_content("go") } else { solve }
    }

    fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for bits in 0..128_usize {
            let bit = |at: usize| bits >> at & 1 == 1;
            let flagged = [bit(0), bit(1)];
            for mode in MODES {
                // At least one agent must be asked.
                let asks = mode != EndMode::MaxIterations || bit(2);
                if asks && flagged == [false; 2] {
                    continue;
                }
                for completes in [[0, 0], [0, 1], [1, 0], [1, 9], [9, 9]] {
                    let owner = usize::from(bit(4));
                    let (max, content) = (if bit(6) { 3 } else { 1 }, bit(5));
                    let set = Self {
                        mode,
                        flagged,
                        keeps: bit(2),
                        reconciles: bit(3),
                        owner,
                        content,
                        max,
                        completes,
                    };
                    all.push(set);
                }
            }
        }
        all
    }
}

const MODES: [EndMode; 5] = [
    EndMode::MaxIterations,
    EndMode::FirstCompletion,
    EndMode::OneLastChat,
    EndMode::OneLastGroupChat,
    EndMode::AllComplete,
];

/// Answers `A1`, `A2`, ..; thinks `RA1`, `RA2`, ..; and decides as configured.
struct Plays {
    set: Set,
    answers: Mutex<[usize; 2]>,
    checks: Mutex<[usize; 2]>,
}

impl Model for Plays {
    fn name(&self) -> &'static str {
        "plays"
    }
    async fn complete(&self, request: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        request.check().unwrap();
        let at = usize::from(request.origin.who.as_str() == "two");
        let shown = text_of(request.entries.last().unwrap().parts()).into_owned();
        let letter = ["A", "B"][at];
        let (mut answers, mut checks) = (self.answers.lock().unwrap(), self.checks.lock().unwrap());
        Ok(Reply::new(match shown.as_str() {
            Check::REFLECTION => format!("R{letter}{}", checks[at]),
            Check::DECISION => {
                checks[at] += 1;
                if self.set.completes[at] == checks[at] - 1 { "no" } else { "yes" }.to_owned()
            }
            _ => {
                answers[at] += 1;
                format!("{letter}{}", answers[at])
            }
        }))
    }
}

/// The expected histories and questions.
#[derive(Debug, Default, PartialEq)]
struct Expected {
    knows: [Vec<String>; 2],
    asked: Vec<String>,
    answers: [usize; 2],
    checks: [usize; 2],
    complete: [bool; 2],
    completed: Vec<&'static str>,
    last_words: Option<usize>,
}

impl Expected {
    fn pair(&mut self, at: usize, shown: &str, answer: &str) {
        self.knows[at].extend([format!("user {shown}"), format!("assistant {answer}")]);
    }

    fn ask(&mut self, at: usize, shown: &str) {
        self.asked.push(format!("{}: {shown}", ["one", "two"][at]));
    }

    fn answer(&mut self, at: usize, shown: &str) -> String {
        self.ask(at, shown);
        self.answers[at] += 1;
        let answer = format!("{}{}", ["A", "B"][at], self.answers[at]);
        self.pair(at, shown, &answer);
        answer
    }

    fn check(&mut self, at: usize, set: Set) {
        self.ask(at, "REFL");
        self.ask(at, "YES/NO");
        let nth = self.checks[at];
        self.checks[at] += 1;
        if set.keeps {
            self.pair(at, "REFL", &format!("R{}{nth}", ["A", "B"][at]));
        }
        if set.completes[at] == nth {
            self.complete[at] = true;
            self.completed.push(["one", "two"][at]);
            self.last_words = match set.mode {
                EndMode::MaxIterations => None,
                EndMode::FirstCompletion => Some(0),
                EndMode::OneLastChat => Some(1),
                EndMode::OneLastGroupChat => Some(2),
                EndMode::AllComplete => (self.complete == set.flagged).then_some(0),
            };
        }
    }

    fn of(set: Set) -> Self {
        let mut all = Self::default();
        let first = all.answer(0, "P1");
        if set.reconciles {
            all.pair(1, "P1", &first);
        }
        let second = all.answer(1, "P2");
        if set.reconciles {
            all.pair(0, "P2", &second);
        }
        let mut text = match (set.content, set.reconciles, set.owner) {
            (true, ..) => "go".to_owned(),
            (_, false, 1) => first,
            _ => second,
        };
        for turn in 0..2 * usize::try_from(set.max).unwrap() {
            if all.last_words == Some(0) {
                break;
            }
            let at = (set.owner + turn) % 2;
            text = all.answer(at, &text);
            if let Some(left) = &mut all.last_words {
                *left -= 1;
            } else if set.mode != EndMode::MaxIterations && set.flagged[at] && !all.complete[at] {
                all.check(at, set);
            }
        }
        all
    }

    fn reason(&self, set: Set) -> String {
        let s = if set.max == 1 { "" } else { "s" };
        let limit = match set.mode {
            EndMode::MaxIterations => format!("{0} of {0} iteration{s}", set.max),
            _ => format!("the limit of {} round{s}", set.max),
        };
        let complete = match self.completed.as_slice() {
            [one] => format!("the task of {one} is complete"),
            both => format!("the tasks of {} are complete", both.join(" and ")),
        };
        match self.last_words {
            None => limit,
            Some(0) => complete,
            Some(_) => format!("{complete}, and {limit}"),
        }
    }
}

#[tokio::test]
async fn every_combination_of_settings_has_its_effect() {
    let all = Set::all();
    assert!(all.len() > 1500, "{}", all.len());
    for set in all {
        let spy = Spy::on(AnyModel::new(Plays { set, answers: Mutex::default(), checks: Mutex::default() }));
        let played = Played::of(spy.clone(), set.solve(&spy.model())).await;
        let expected = Expected::of(set);
        assert_eq!([played.knows("one"), played.knows("two")], expected.knows, "{set:?}");
        assert_eq!(played.requests(), expected.asked, "{set:?}");
        assert_eq!(played.reason(), expected.reason(set), "{set:?}");
    }
}
