//! Budgets of a process: the options of `run`, `resume` and `serve` that begin with `--budget`. They begin at 0 with each process, and are not kept
//! with a conversation.

use crate::home::{Home, of_type, serve};
use crate::limits::{RUN, TEAM, talker};
use crate::remote::use_server;
use crate::serving::Serving;

/// An option, too little of it, enough of it, the exit code, and the reason.
const BUDGETS: [(&str, &str, &str, i32, &str); 4] = [
    ("--budget", "0.5", "1000", 4, "the budget of this process has reached the limit of $0.50 ("),
    (
        "--budget-tokens",
        "500",
        "100000",
        4,
        "the budget of this process has reached the limit of 500 tokens (",
    ),
    ("--budget-calls", "2", "100", 3, "the budget of this process has reached the limit of 2 model calls"),
    (
        "--budget-time",
        "1ms",
        "1h",
        3,
        "the budget of this process has reached the limit of 1 ms of running time",
    ),
];

/// What the conversations of a talker took, by the usage that it reported.
fn is_within(option: &str, calls: usize) -> bool {
    match option {
        "--budget" => calls as f64 * 0.11 <= 0.5,
        "--budget-tokens" => calls * 110 <= 500,
        "--budget-calls" => calls <= 2,
        _ => true,
    }
}

#[test]
fn a_budget_of_the_process_ends_a_run_which_a_larger_one_continues() {
    for (option, low, high, code, reason) in BUDGETS {
        let server = serve(talker());
        let home = Home::at(&server).with_team(TEAM);
        let ended = home.run(&[&RUN[..], &[option, low]].concat()).exits(code);
        assert!(ended.out.contains(reason), "{option}: {}", ended.out);
        let resume = format!("`polylogue resume {} {option} ", home.id());
        assert!(ended.out.contains(&resume), "{option}: {}", ended.out);
        let calls = server.count();
        assert!(is_within(option, calls), "{option}: {calls}");
        // The next process has a budget of its own.
        home.run(&["resume", "last", option, low]).exits(code);
        let more = server.count() - calls;
        assert!(is_within(option, more) && (more > 0 || option == "--budget-time"), "{option}: {more}");
        home.run(&["resume", "last", option, high]).ok();
        assert_eq!((server.count(), of_type(&home.events(), "limits_changed").len()), (12, 0), "{option}");
    }
}

#[test]
fn all_budgets_hold_at_once_and_next_to_the_limits_of_the_run() {
    let server = serve(talker());
    let home = Home::at(&server).with_team(TEAM);
    let all = ["--budget", "1000", "--budget-tokens", "100000", "--budget-calls", "3", "--budget-time", "1h"];
    let ended = home.run(&[&RUN[..], &all].concat()).exits(3);
    assert!(
        ended.out.contains("the budget of this process has reached the limit of 3 model calls"),
        "{}",
        ended.out
    );
    assert_eq!(server.count(), 3);
    let ended = home.run(&[&["resume", "last", "--max-calls", "2"][..], &all].concat()).exits(3);
    assert!(!ended.out.contains("the budget of this process has reached"), "{}", ended.out);
    assert_eq!(server.count(), 5, "the limit of the run is lower than what is left of the budget");
}

#[test]
fn all_conversations_of_a_server_have_one_budget() {
    for (option, low, high, code, reason) in BUDGETS {
        let model = serve(talker());
        let mut home = Home::at(&model);
        home.file("pair.yaml", &TEAM.replacen("task: Talk", "task: Talk\nmodel: openai:test", 1));
        let start = |home: &Home, most, is_first| {
            Serving::with(home, &["pair.yaml", "--listen", "127.0.0.1:0", option, most], is_first)
        };
        let serving = start(&home, low, true);
        use_server(&mut home, &serving);
        let ended = home.run(&["run", "pair"]).exits(code);
        assert!(ended.out.contains(reason), "{option}: {}", ended.out);
        let calls = model.count();
        assert!(is_within(option, calls), "{option}: {calls}");
        let second = home.run(&["run", "pair"]);
        assert_ne!(second.code, 0, "{option}: {}", second.out);
        assert!(is_within(option, model.count()), "{option}: the second conversation has what is left of it");
        let token = serving.token().to_owned();
        serving.kill();
        let serving = start(&home, high, false);
        home.set("POLYLOGUE_SERVER", &format!("http://{}", serving.address()));
        home.set("POLYLOGUE_TOKEN", &token);
        let before = model.count();
        home.run(&["run", "pair"]).ok();
        assert!(model.count() >= before + 12, "{option}: the next process has a budget of its own");
        serving.kill();
    }
}
