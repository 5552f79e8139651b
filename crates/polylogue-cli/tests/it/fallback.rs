//! Fallback among models, and the cache of replies.

use crate::home::{Home, of_type, serve};
use polylogue_test::server::{Answer, Playbook, Server};
use serde_json::{Value, json};

/// Two servers, `a` and `b`, for a list of models.
fn team(a: &Server, b: &Server, more: &str) -> String {
    format!(
        "name: two\nmodel: [a:one, b:two]\ntask: Say hello.\n{more}endpoints:\n  a: {{base_url: \"{}\", retries: 0}}\n  \
         b: {{base_url: \"{}\", retries: 0}}\nprices: {{\"a:one\": {{input: 100, output: 100}}, \"b:two\": {{input: 3, output: 3}}}}\n\
         agents:\n  - {{name: Ann, system: Be brief.}}\nchat: {{participants: [Ann], stop: {{max_turns: 2}}}}\n",
        a.base_url(),
        b.base_url()
    )
}

fn home(a: &Server, b: &Server, more: &str) -> Home {
    Home::new().with_team(&team(a, b, more))
}

const RUN: [&str; 4] = ["run", "team.yaml", "--allow", "endpoints"];

#[test]
fn the_next_model_replies_at_its_own_price_and_the_screen_and_the_log_say_so() {
    let a = serve(Playbook::always(Answer::status(503)));
    let b =
        serve(Playbook::list([Answer::text("Hello.").usage(1000, 0), Answer::text("Again.").usage(1000, 0)]));
    let home = home(&a, &b, "");
    let ran = home.run(&RUN).ok();
    let line = "b:two replies for Ann: a:one: the provider answered with status 503";
    assert_eq!(ran.out.matches(line).count(), 1, "once, while it stays so: {}", ran.out);
    assert!(ran.out.contains("$0.0060"), "{}", ran.out);
    let events = home.events();
    let replies = of_type(&events, "model_replied");
    assert_eq!(replies.len(), 2);
    assert!(
        replies
            .iter()
            .all(|reply| (&reply["model"], &reply["requested_model"]) == (&"b:two".into(), &"a:one".into()))
    );
    assert!(replies.iter().all(|reply| reply["because"].as_str().unwrap().contains("503")), "{replies:?}");
    let cost = home.run(&["show", "last", "--cost"]).ok().out;
    let row = cost.lines().find(|line| line.contains("b:two")).unwrap();
    assert_eq!(
        row.split_whitespace().collect::<Vec<_>>(),
        ["Ann", "turns", "b:two", "2", "2,000", "$0.0060"]
    );
    let shown = home.run(&["show", "last"]).ok().out;
    assert_eq!(shown.matches(line).count(), 1, "{shown}");
    assert_eq!((a.violations(), b.violations()), (vec![], vec![]));
}

/// At its upper bound, 4,096 tokens at 100 dollars a million, each refusal would cost more than the budget.
#[test]
fn a_refused_reply_costs_what_it_used() {
    let refused = || Answer::text("No.").usage(10, 5).finish("content_filter");
    let a = serve(Playbook::list([refused(), refused()]));
    let b = serve(Playbook::list([Answer::text("Hello.").usage(10, 5), Answer::text("Again.").usage(10, 5)]));
    let limited = "system: Be brief., parameters: {max_tokens: 4096}";
    let home =
        Home::new().with_team(&team(&a, &b, "fallback: [refusal]\n").replace("system: Be brief.", limited));
    let ran = home.run(&[&RUN[..], &["--max-cost", "0.5"]].concat()).ok();
    assert!(ran.out.contains("Hello.") && ran.out.contains("Again."), "{}", ran.out);
    let events = home.events();
    // 15 tokens at 100 dollars a million, in picodollars.
    let used = |charge: &Value| {
        json!([charge["why"], charge["model"], charge["tokens"], charge["output"], charge["cost"]])
    };
    let charges: Vec<Value> = of_type(&events, "charged").into_iter().map(used).collect();
    let refusal = json!(["discarded", "a:one", 15, 5, 1_500_000_000_u64]);
    assert_eq!(charges, [refusal.clone(), refusal]);
    // Nothing of it is uncertain: the replies of `a` and of `b` are in the sum.
    assert!(ran.out.contains("60 tokens") && ran.out.contains("$0.0031"), "{}", ran.out);
    assert!(!ran.out.contains("without a reply") && !ran.out.contains("retried"), "{}", ran.out);
    let cost = home.run(&["show", "last", "--cost"]).ok().out;
    let row = cost.lines().find(|line| line.contains("a:one")).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["Ann", "turns", "a:one", "2", "30", "$0.0030"]);
    assert!(!cost.contains("uncertain"), "{cost}");
    assert!(of_type(&events, "model_replied")[0]["because"].as_str().unwrap().contains("the reply is"));
}

#[test]
fn a_failed_attempt_counts_for_the_model_that_was_asked_at_its_price() {
    let a = serve(Playbook::always(Answer::status(500)));
    let b =
        serve(Playbook::list([Answer::status(500).retry_after_secs(0), Answer::text("Hello.").usage(10, 5)]));
    let address = format!("\"{}\", retries: ", b.base_url());
    let text = team(&a, &b, "").replace(&format!("{address}0"), &format!("{address}1"));
    let text = text.replace("system: Be brief.", "parameters: {max_tokens: 4096}");
    let home = Home::new().with_team(&text.replace("max_turns: 2", "max_turns: 1"));
    home.run(&RUN).ok();
    let events = home.events();
    let charges = of_type(&events, "charged");
    let models: Vec<_> = charges.iter().map(|charge| [&charge["why"], &charge["model"]]).collect();
    assert_eq!(models, [["failed", "a:one"], ["failed", "b:two"]], "{charges:?}");
    // The same request, at 100 and at 3 dollars a million tokens.
    let [first, second] = [0, 1].map(|nth: usize| charges[nth]["cost"].as_u64().unwrap());
    assert!(second > 0 && first * 3 == second * 100, "{charges:?}");
}

#[test]
fn a_class_that_is_not_named_ends_the_run_with_the_first_models_error() {
    let (a, b) = (serve(Playbook::always(Answer::status(503))), serve(Playbook::always(Answer::text("No."))));
    let home = home(&a, &b, "fallback: [rate]\n");
    let ran = home.run(&RUN).exits(1);
    assert!(ran.err.contains("a:one") && b.count() == 0, "{}", ran.err);
    home.file("team.yaml", &team(&a, &b, "fallback: [sometimes]\n"));
    let ran = home.run(&RUN).exits(2);
    assert!(ran.err.contains("`sometimes`") && ran.err.contains("`too_long`"), "{}", ran.err);
}

#[test]
fn the_next_turn_of_a_resumed_run_begins_with_the_first_model() {
    let a = serve(Playbook::list([Answer::status(503), Answer::text("I am back.")]));
    let b = serve(Playbook::list([Answer::text("Hello.")]));
    let home = home(&a, &b, "");
    home.run(&[&RUN[..], &["--max-turns", "1"]].concat()).exits(3);
    assert_eq!((a.count(), b.count()), (1, 1));
    home.run(&["resume", "last", "--max-turns", "1"]).ok();
    assert_eq!((a.count(), b.count()), (2, 1), "the next turn begins with the first model");
    let models: Vec<Value> =
        of_type(&home.events(), "model_replied").iter().map(|reply| reply["model"].clone()).collect();
    assert_eq!(models, ["b:two", "a:one"]);
}

#[test]
fn a_resumed_run_returns_to_the_first_model_when_the_team_says_so() {
    for (returns, counts) in [("turn", (2, 1)), ("never", (1, 2)), ("1 h", (1, 2))] {
        let a = serve(Playbook::list([Answer::status(503), Answer::text("I am back.")]));
        let b = serve(Playbook::always(Answer::text("Hello.")));
        let home = home(&a, &b, &format!("fallback_return: {returns}\n"));
        home.run(&[&RUN[..], &["--max-turns", "1"]].concat()).exits(3);
        home.run(&["resume", "last", "--max-turns", "1"]).ok();
        assert_eq!((a.count(), b.count()), counts, "{returns}");
    }
    let a = serve(Playbook::always(Answer::text("No.")));
    let ran = home(&a, &a, "fallback_return: sometimes\n").run(&RUN).exits(2);
    assert!(ran.err.contains("`sometimes` is neither `turn` nor `never`"), "{}", ran.err);
    assert!(ran.err.contains("hint: write `turn`, `never`, or a number and its unit"), "{}", ran.err);
}

#[test]
fn a_list_on_the_command_line_replaces_all_models() {
    let (a, b) =
        (serve(Playbook::always(Answer::status(503))), serve(Playbook::always(Answer::text("Hello."))));
    let home = home(&a, &b, "");
    home.run(&[&RUN[..], &["--model", "a:x, b:y"]].concat()).ok();
    assert!(b.requests().iter().all(|request| request.model() == "y") && a.count() == 2);
    let bad = home.run(&[&RUN[..], &["--model", "a:x,nowhere:y"]].concat());
    assert!(bad.err.contains("there is no provider `nowhere`"), "{}", bad.err);
}

/// The key of the team is the same as the option; a stored reply fits into a budget that allows no call.
#[test]
fn a_team_names_its_cache_and_stored_replies_fit_into_any_budget() {
    let a = serve(Playbook::always(Answer::text("Hello.").usage(1000, 0)));
    let home = home(&a, &a, "cache: replies.jsonl\n");
    assert!(home.run(&RUN).ok().out.contains("$0.20") && home.path("replies.jsonl").exists());
    let poor = [&RUN[..], &["--max-cost", "0.0000001"]].concat();
    let stored = home.run(&poor).ok();
    assert!(stored.out.contains("2 of 2 calls from the cache (2,000 tokens, $0.20 saved)"), "{}", stored.out);
    assert_eq!(a.count(), 2);
    // Without the replies, the same budget allows nothing.
    home.run(&[&poor[..], &["--cache", "other.jsonl"]].concat()).exits(4);
    assert_eq!(a.count(), 2);
}

#[test]
fn replies_are_taken_from_the_cache_file_and_cost_nothing() {
    let a =
        serve(Playbook::list([Answer::text("Hello.").usage(1000, 0), Answer::text("Again.").usage(1000, 0)]));
    let home = home(&a, &a, "");
    let args = [&RUN[..], &["--cache", "replies.jsonl"]].concat();
    let first = home.run(&args).ok();
    assert!(first.out.contains("$0.20") && !first.out.contains("from the cache"), "{}", first.out);
    let second = home.run(&args).ok();
    assert!(second.out.contains("2 of 2 calls from the cache (2,000 tokens, $0.20 saved)"), "{}", second.out);
    assert!(second.out.contains(" · $0 · ") && a.count() == 2, "{}", second.out);
    // As in the last line of the run: none of them is a call that was paid.
    let costs = home.run(&["show", "last", "--cost"]).ok().out;
    let rows: Vec<Vec<&str>> = costs.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0][3..], ["calls", "from", "cache", "tokens", "cost"], "{costs}");
    assert_eq!(rows[1][3..], ["0", "2", "0", "$0"], "{costs}");
    assert_eq!(rows[2], ["total", "0", "2", "0", "$0"], "{costs}");
    assert!(costs.ends_with("\n2 of 2 calls from the cache (2,000 tokens, $0.20 saved)\n"), "{costs}");
    home.run(&[&args[..], &["--max-turns", "1"]].concat()).exits(3);
    let resumed = home.run(&["resume", "last", "--max-turns", "1", "--cache", "replies.jsonl"]).ok();
    assert!(resumed.out.contains("2 of 2 calls from the cache") && a.count() == 2, "{}", resumed.out);
    home.file("other.txt", "not a cache");
    let refused = home.run(&[&RUN[..], &["--cache", "other.txt"]].concat()).exits(2);
    assert!(refused.err.contains("`other.txt` is not a cache of replies"), "{}", refused.err);
}
