//! What a run takes at most: `check --price`, and the line of `run`.

use std::fs;
use std::path::Path;

use polylogue_core::Money;
use polylogue_models::KnownModel;
use polylogue_test::server::{Answer, Behavior, Playbook};
use serde_json::Value;

use crate::home::{Home, KEY, Ran, of_type, serve};
use crate::remote::use_server;
use crate::serving::Serving;

/// Two turns of at most 10 tokens, at a dollar for a thousand tokens.
const TEAM: &str = r#"
name: pair
task: Talk
model: openai:test
prices: {"openai:test": {input: 1000, output: 1000}}
agents:
  - {name: Ann, system: You are Ann., parameters: {max_tokens: 10}}
  - {name: Bob, system: You are Bob., parameters: {max_tokens: 10}}
chat: {participants: [Ann, Bob], pattern: sequential}
"#;

#[test]
fn check_prints_what_a_run_takes_at_most_without_a_key() {
    let home = Home::new().with_team(TEAM);
    let printed = home.run(&["check", "--price", "team.yaml"]).ok().out;
    for text in ["at most ", "usually, about", "Ann in pair", "Bob in pair", "with all retries", "assumed: "]
    {
        assert!(printed.contains(text), "{text}: {printed}");
    }
    let json = home.run(&["check", "--price", "--json", "team.yaml"]).ok().lines().remove(0);
    let price = &json["price"];
    assert_eq!(price["at_most"]["calls"], 2, "{price}");
    assert_eq!(price["at_most"]["output_tokens"], 20, "{price}");
    assert_eq!(price["with_retries"]["calls"], 20, "{price}");
    assert_eq!(price["rows"].as_array().unwrap().len(), 2, "{price}");
    let input = price["at_most"]["input_tokens"].as_u64().unwrap();
    assert_eq!(price["at_most"]["picodollars"], (input + 20) * 1_000_000_000, "{price}");
}

#[test]
fn the_page_on_bounds_shows_what_check_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/bound.md")).unwrap();
    let shown = page.split("```text\n$ polylogue ").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let (command, expected) = shown.split_once('\n').unwrap();
    let home = Home::new();
    fs::create_dir(home.path("teams")).unwrap();
    home.file(
        "teams/writer-critic.yaml",
        &fs::read_to_string(root.join("teams/writer-critic.yaml")).unwrap(),
    );
    let printed = home.run(&command.split(' ').collect::<Vec<_>>()).ok().out;
    assert_eq!(printed, expected, "docs/bound.md is stale");
}

#[test]
fn a_team_without_a_model_is_priced_with_one_that_is_named() {
    let home = Home::new().with_team(&TEAM.replace("model: openai:test\n", ""));
    let refused = home.run(&["check", "--price", "team.yaml"]).exits(2);
    assert!(refused.err.contains("`Ann` has no model"), "{}", refused.err);
    let json =
        home.run(&["check", "--price", "-m", "openai:other", "--json", "team.yaml"]).ok().lines().remove(0);
    assert_eq!(json["price"]["unpriced"], serde_json::json!(["openai:other"]));
    assert_eq!(json["price"]["at_most"]["calls"], 2);
}

#[test]
fn a_run_says_first_what_it_takes_at_most() {
    let server = serve(Behavior::from(Playbook::new(|_, _| Answer::text("words").usage(100, 10))).key(KEY));
    let home = Home::at(&server).with_team(TEAM);
    let json = home.run(&["check", "--price", "--json", "team.yaml"]).ok().lines().remove(0);
    let most = Money { picodollars: json["price"]["at_most"]["picodollars"].as_u64().unwrap() };
    let ran = home.run(&["run", "team.yaml"]).ok();
    let line = format!("pair: at most {most} in 2 model calls, ");
    assert!(ran.err.starts_with(&line), "{line}: {}", ran.err);
    assert_eq!(ran.err.matches("at most").count(), 1, "{}", ran.err);
}

/// The lower one of the bound and the limit, and which one that is.
#[test]
fn a_run_says_whether_its_limit_on_cost_is_what_it_takes_at_most() {
    let server = serve(Behavior::from(Playbook::new(|_, _| Answer::text("words").usage(100, 10))).key(KEY));
    let home = Home::at(&server).with_team(TEAM);
    let first = |options: &[&str]| {
        let ran = home.run(&[&["run", "team.yaml"][..], options].concat());
        ran.err.lines().next().unwrap_or_default().to_owned()
    };
    let starts = |options: &[&str], expected: &str| {
        let line = first(options);
        assert!(line.starts_with(&format!("pair: at most {expected} in ")), "{line}");
    };
    starts(&["--max-cost", "0.25"], "$0.25 (the limit on cost)");
    let both = "$0.25 (the limit on cost) and 100 tokens (the limit on tokens)";
    starts(&["--max-cost", "0.25", "--max-tokens", "100"], both);
    starts(&["--max-turns", "1", "--max-cost", "0.25"], "1 turn in all and $0.25 (the limit on cost)");
    let bound = first(&["--max-cost", "1000"]);
    assert!(bound.starts_with("pair: at most $0.") && !bound.contains("limit"), "{bound}");
}

/// Each front end says it with its prices and its team before the first call, and it is kept.
#[test]
fn the_bound_is_first_wherever_a_run_begins_and_is_shown_again() {
    let server = serve(Behavior::from(Playbook::new(|_, _| Answer::text("words").usage(100, 10))).key(KEY));
    let mut home = Home::at(&server).with_team(TEAM);
    let first = |ran: Ran| -> Value {
        let lines = ran.ok().lines();
        assert_eq!([&lines[0]["type"], &lines[1]["type"]], ["run_started", "bound"]);
        assert_eq!([&lines[1]["id"], &lines[2]["seq"]], [&lines[0]["id"], &Value::from(0)]);
        lines[1]["bound"].clone()
    };
    let bound = first(home.run(&["run", "team.yaml", "--json"]));
    assert_eq!(bound["price_date"], KnownModel::table_date());
    assert_eq!(bound["calls"], 20, "with all retries");
    let text = |key: &str| bound[key].as_str().unwrap();
    let team = text("team_digest").get(..12).unwrap();
    let said = format!("{} (prices of {}, team {team})", text("text"), text("price_date"));
    assert_eq!(first(home.run_reading("Talk\n", &["chat", "team.yaml", "--json"])), bound);
    let ran = home.run(&["run", "team.yaml"]).ok();
    let most = text("text").strip_prefix("at most ").unwrap();
    assert!(ran.err.starts_with(&format!("pair: at most {most}. ")), "{}", ran.err);
    let quiet = home.run(&["run", "team.yaml", "--quiet"]).ok();
    assert!(!quiet.err.contains("at most"), "{}", quiet.err);
    let shown = home.run(&["show", "last"]).ok().out;
    assert!(shown.ends_with(&format!("\n\ncomputed before the run: {said}\n")), "{said}: {shown}");
    let lines = home.run(&["show", "last", "--json"]).ok().lines();
    assert_eq!((&lines[0]["type"], &lines[0]["bound"]), (&"bound".into(), &bound));
    assert_eq!(lines[1]["seq"], 0);
    assert!(!home.run(&["show", "last", "--markdown"]).ok().out.contains("computed before the run"));
    let again = home.run(&["resume", "last", "More.", "--json"]).ok().lines();
    assert!(of_type(&again, "bound").is_empty(), "it does not apply any more: {again:?}");

    let serving = Serving::with(&home, &["team.yaml", "--listen", "127.0.0.1:0"], true);
    use_server(&mut home, &serving);
    let there = first(home.run(&["run", "team", "--json"]));
    assert_eq!([&there["team_digest"], &there["price_date"]], [&bound["team_digest"], &bound["price_date"]]);
    let lines = home.run(&["show", "last", "--json"]).ok().lines();
    assert_eq!((&lines[0]["bound"], &lines[1]["seq"]), (&there, &Value::from(0)));
    let ran = home.run(&["run", "team"]).ok();
    assert!(ran.err.starts_with("pair at http://") && ran.err.contains(": at most $"), "{}", ran.err);
    assert_eq!(ran.err.matches("at most").count(), 1, "{}", ran.err);
    serving.end();
}

/// Its server bills more than the bound allows, which is said where it happens and at the end.
#[test]
fn a_server_that_ignores_the_output_limit_ends_no_run_and_is_named() {
    let server =
        serve(Behavior::from(Playbook::new(|_, _| Answer::text("words").usage(100, 90_000))).key(KEY));
    let home = Home::at(&server).with_team(TEAM);
    let ran = home.run(&["run", "team.yaml"]).ok();
    let line = "the maximum computed before the run no longer applies: a server replied with more tokens than it was asked for";
    let said = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(said.matches(line).count(), 1, "{}", ran.err);
    assert!(ran.out.contains("2 replies have more tokens than the server was asked for"), "{}", ran.out);
    assert_eq!(of_type(&home.events(), "model_replied")[0]["output_limit"], 10);
}

/// Programs read it, too: in each stream of events, and in the records of a batch.
#[test]
fn every_output_for_programs_has_why_the_bound_ended_to_apply() {
    for (tokens, why) in
        [(90_000, Some("a server replied with more tokens than it was asked for")), (10, None)]
    {
        let server = serve(
            Behavior::from(Playbook::new(move |_, _| Answer::text("words").usage(100, tokens))).key(KEY),
        );
        let home = Home::at(&server).with_team(TEAM);
        home.file("rows.csv", "id,task\none,Talk\n");
        let lines = |ran: Ran| -> Vec<Value> {
            let lines = ran.ok().lines();
            of_type(&lines, "bound_ended").into_iter().map(|line| line["why"].clone()).collect()
        };
        let expected: Vec<Value> = why.into_iter().map(Value::from).collect();
        assert_eq!(lines(home.run(&["run", "team.yaml", "--json"])), expected, "run");
        assert_eq!(lines(home.run_reading("Talk\n", &["chat", "team.yaml", "--json"])), expected, "chat");
        home.run(&["batch", "team.yaml", "--over", "rows.csv", "-o", "out.jsonl"]).ok();
        let record = std::fs::read_to_string(home.path("out.jsonl")).unwrap();
        let record: Value = serde_json::from_str(&record).unwrap();
        assert_eq!(record.get("bound_ended").cloned().into_iter().collect::<Vec<_>>(), expected, "batch");
    }
}

/// Each message of a chat after the first one ends the bound, of which programs learn, and people do not.
#[test]
fn a_person_in_a_chat_is_not_told_that_messages_continue_it() {
    let server = serve(Behavior::from(Playbook::new(|_, _| Answer::text("words").usage(100, 10))).key(KEY));
    let home = Home::at(&server).with_team(TEAM);
    let line = "the maximum computed before the run no longer applies";
    let shown = home.run_reading("Talk\nMore\n", &["chat", "team.yaml"]).ok();
    assert!(!format!("{}{}", shown.out, shown.err).contains(line), "{}{}", shown.out, shown.err);
    let lines = home.run_reading("Talk\nMore\nMore\n", &["chat", "team.yaml", "--json"]).ok().lines();
    let ended = of_type(&lines, "bound_ended");
    assert_eq!(ended.len(), 1, "{lines:?}");
    assert_eq!(ended[0]["why"], "the conversation continued with a message");
}

/// What ends the bound is said once, also by a process that continues the conversation.
#[test]
fn a_person_learns_when_the_bound_of_a_conversation_ends_to_apply() {
    let server = serve(Behavior::from(Playbook::new(|_, _| Answer::text("words").usage(100, 10))).key(KEY));
    let home = Home::at(&server).with_team(TEAM);
    home.run(&["run", "team.yaml", "--max-calls", "1"]).exits(3);
    let line = "the maximum computed before the run no longer applies: ";
    let said = |ran: &Ran| ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
    let raised = home.run(&["resume", "last", "--max-calls", "5"]).ok();
    assert!(
        said(&raised).contains(&format!("{line}limits or the next speaker were changed")),
        "{}",
        raised.err
    );
    let shown = home.run(&["show", "last"]).ok().out;
    let last = shown.lines().last().unwrap();
    let why = "; it no longer applies: limits or the next speaker were changed";
    assert!(last.starts_with("computed before the run: ") && last.ends_with(why), "{shown}");
    let again = home.run(&["resume", "last", "Continue."]).ok();
    assert!(!said(&again).contains(line), "{}", again.err);
}

/// The money of a bound rests on the prices with which it was computed. Limits count with those of now.
#[test]
fn other_prices_on_resumption_end_the_money_of_the_bound() {
    let server = serve(Behavior::from(Playbook::new(|_, _| Answer::text("words").usage(100, 10))).key(KEY));
    let home = Home::at(&server).var("POLYLOGUE_PRICES", "mine.yaml");
    let price = |dollars: u32| {
        home.file("mine.yaml", &format!("openai:test: {{input: {dollars}, output: {dollars}}}\n"));
    };
    home.file(
        "team.yaml",
        "name: pair\ntask: Talk\nmodel: openai:test\n\
         agents: [{name: Ann, parameters: {max_tokens: 10}}, {name: Pat, human: true}]\n\
         chat: {participants: [Ann, Pat], max_turns: 8}\n",
    );
    let line = "the maximum computed before the run no longer applies: prices have changed";
    let says = |ran: &Ran| ran.err.split_whitespace().collect::<Vec<_>>().join(" ").contains(line);
    let answer =
        |more: &[&str], code| home.run(&[&["resume", "last", "--answer", "More"], more].concat()).exits(code);
    price(1);
    home.run(&["run", "team.yaml"]).exits(5);
    let same = answer(&[], 5);
    assert!(!says(&same), "{}", same.err);
    // One call costs more now than the whole run by the prices with which it began.
    price(9_000);
    let higher = answer(&[], 5);
    assert!(says(&higher), "{}", higher.err);
    let limited = answer(&["--max-cost", "1"], 4);
    assert!(!limited.err.contains("defect") && !limited.out.contains("defect"), "{}", limited.out);
}

/// What agents read and do stays the same, and so does what the run takes at most.
#[test]
fn the_bound_still_applies_after_a_harmless_change_of_the_team_file() {
    let server = serve(Behavior::from(Playbook::new(|_, _| Answer::text("words").usage(100, 10))).key(KEY));
    let home = Home::at(&server);
    let team = "name: pair\ntask: Talk\nmodel: openai:test\n\
                agents: [{name: Ann, system: Be brief., parameters: {max_tokens: 10}}, {name: Pat, human: true}]\n\
                chat: {participants: [Ann, Pat], max_turns: 8}\n";
    home.file("team.yaml", team);
    let line = "the maximum computed before the run no longer applies";
    let said = |ran: &Ran| ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
    let answer = |more: &[&str]| home.run(&[&["resume", "last", "--answer", "More"], more].concat()).exits(5);
    home.run(&["run", "team.yaml"]).exits(5);
    let described = format!("# A comment\ndescription: Two talk.\n{team}");
    home.file("team.yaml", &described);
    let harmless = answer(&[]);
    assert!(said(&harmless).contains("`description` was added (harmless)"), "{}", harmless.err);
    assert!(!said(&harmless).contains(line), "{}", harmless.err);
    home.file("team.yaml", &described.replace("Two talk.", "A pair."));
    let lines = answer(&["--json"]).lines();
    assert!(of_type(&lines, "bound_ended").is_empty(), "{lines:?}");
    let shown: Vec<Value> = of_type(&home.events(), "team_changed").into_iter().cloned().collect();
    assert_eq!(shown.iter().map(|event| &event["harmless"]).collect::<Vec<_>>(), [true, true]);
    home.file("team.yaml", &described.replace("Be brief.", "Be long."));
    let other = answer(&["--accept-changes"]);
    assert!(said(&other).contains(line), "{}", other.err);
}

#[test]
fn a_run_without_prices_says_first_how_many_tokens_it_takes_at_most() {
    let server = serve(Behavior::from(Playbook::new(|_, _| Answer::text("words").usage(100, 10))).key(KEY));
    let home = Home::at(&server);
    let prices = "prices: {\"openai:test\": {input: 1000, output: 1000}}\n";
    let team = TEAM.replace("openai:test", "openai:other").replace(&prices.replace("test", "other"), "");
    home.file("unknown.yaml", &team);
    home.file("free.yaml", &format!("{team}prices: {{\"openai:other\": free}}\n"));
    for (file, why) in
        [("unknown.yaml", "the price of `openai:other` is unknown"), ("free.yaml", "its models cost nothing")]
    {
        let json = home.run(&["check", "--price", "--json", file]).ok().lines().remove(0);
        let most = &json["price"]["at_most"];
        let tokens = most["input_tokens"].as_u64().unwrap() + most["output_tokens"].as_u64().unwrap();
        let ran = home.run(&["run", file]).ok();
        // Thousands are grouped.
        let line = ran.err.lines().find(|line| line.starts_with("pair: at most ")).unwrap();
        let plain = line.replace(',', "");
        assert!(plain.contains(&format!("at most {tokens} tokens in 2 model calls")), "{line}");
        assert!(line.contains(why), "{line}");
        let asks = home.run(&["run", "--on-limit", "ask", file]).ok();
        let line = format!("at most {tokens} tokens in 2 model calls unless a person raises a limit");
        assert!(asks.err.replace(',', "").contains(&line), "{}", asks.err);
    }
}

#[test]
fn a_run_of_models_that_cost_nothing_needs_no_limit_on_replies() {
    let server = serve(Behavior::from(Playbook::new(|_, _| Answer::text("words").usage(100, 10))).key(KEY));
    let home = Home::at(&server);
    let prices = "{\"openai:test\": {input: 1000, output: 1000}}";
    let team = TEAM.replace(prices, "{\"openai:test\": free}").replace(", parameters: {max_tokens: 10}", "");
    let ran = home.run(&["run", home.file("team.yaml", &team)]).ok();
    let line = ran.err.lines().next().unwrap();
    assert!(
        line.starts_with("pair: at most ") && line.contains(" model calls, which cost nothing. "),
        "{line}"
    );
}

/// The last call can pass a budget only if nothing says how long a reply is at most: neither the agents nor the prices of the team.
#[test]
fn only_replies_of_unknown_length_can_pass_a_budget() {
    let server = serve(Behavior::from(Playbook::new(|_, _| Answer::text("words").usage(100, 10))).key(KEY));
    let home = Home::at(&server);
    let team = TEAM.replace(", parameters: {max_tokens: 10}", "");
    let unbounded = "`openai:test` has no known limit on the length of a reply";
    for (limit, is_unbounded) in [("", true), (", max_output: 10", false)] {
        home.file("team.yaml", &team.replace("output: 1000}", &format!("output: 1000{limit}}}")));
        let ran = home.run(&["run", "team.yaml", "--max-cost", "1000"]).ok();
        assert_eq!(ran.err.contains(unbounded), is_unbounded, "{limit}: {}", ran.err);
    }
}

#[test]
fn a_batch_says_what_it_would_take_without_its_budget() {
    let server = serve(Behavior::from(Playbook::new(|_, _| Answer::text("words").usage(100, 10))).key(KEY));
    let home = Home::at(&server).with_team(TEAM);
    home.file("rows.jsonl", "{\"task\": \"Talk\"}\n{\"task\": \"Walk\"}\n");
    home.file("others.jsonl", "{\"task\": \"Sing\"}\n{\"task\": \"Swing\"}\n");
    let told = |over: &str, budget: &str, output: &str| {
        home.run(&["batch", "team.yaml", "--over", over, "-o", output, "--budget", budget]).err
    };
    let rows = "2 rows, each no longer than the task of the team file,";
    let small = told("rows.jsonl", "0.50", "small.jsonl");
    assert!(small.contains(&format!("Without the budget of $0.50, {rows} would take at most $")), "{small}");
    let large = told("others.jsonl", "1000", "large.jsonl");
    assert!(large.contains(&format!("\n{rows} take at most $")), "{large}");
    // Only of the rows that are run: the store has those whose records are lost.
    std::fs::remove_file(home.path("large.jsonl")).unwrap();
    let again = told("others.jsonl", "1000", "large.jsonl");
    assert!(again.contains("2 rows, 2 already finished") && !again.contains("at most $"), "{again}");
}

/// At list prices of `gpt-4o`, 800 tokens from the prompt cache save 800 times $1.25 for a million.
#[test]
fn what_prompt_caches_save_is_in_the_last_line_and_in_the_costs() {
    let answer = || Answer::text("x").usage(1000, 0).usage_details(800, 0);
    let server = serve(Behavior::from(Playbook::new(move |_, _| answer())).key(KEY));
    let home = Home::at(&server).with_team(
        "name: one\ntask: Talk\nmodel: openai-chat:gpt-4o\nagents: [{name: Ann}]\nchat: {participants: [Ann], pattern: sequential}\n",
    );
    // Also of a recording, which has what the calls cost.
    for record in ["--record", "--replay"] {
        let ran = home.run(&["run", "team.yaml", record, "calls.jsonl"]).ok();
        let last = ran.out.lines().find(|line| line.starts_with("done: ")).unwrap();
        assert!(last.ends_with("80% of input from prompt caches ($0.0010 saved)"), "{record}: {}", ran.out);
    }
    assert_eq!(server.count(), 1);
    let table = home.run(&["show", "last", "--cost"]).ok().out;
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(rows[0].ends_with(&["cached", "saved"]), "{table}");
    assert!(rows[1..].iter().all(|row| row.ends_with(&["80%", "$0.0010"])), "{table}");
}

/// Where the user's prices are by default.
const PRICES: &str = ".config/polylogue/prices.yaml";

/// A home with `prices` in the user's file.
fn home_with(prices: &str) -> Home {
    let home = Home::new();
    std::fs::create_dir_all(home.path(".config/polylogue")).unwrap();
    home.file(PRICES, prices);
    home
}

#[test]
fn the_users_prices_replace_list_prices_in_every_command() {
    let home = home_with(
        "# Our discount.\nopenai:gpt-4o: {input: 1.5, output: 6}\nopenai:gpt-4o-mini: [{input: 9, output: 9, until: 2020-12-31}]\n\
         openai:mine: {input: 4, output: 8}\n",
    );
    let cost = |model: &str| {
        home.run(&["count", "-m", model, "Hello", "--json"]).ok().lines().remove(0)["picodollars"].clone()
    };
    // One token; for the last, whose vocabulary is unknown, at most five. The price of the second ended: the list price counts.
    assert_eq!(
        ["openai:gpt-4o", "openai:gpt-4o-mini", "openai:mine"].map(cost),
        [1_500_000, 150_000, 20_000_000].map(serde_json::Value::from)
    );
    let listed = home.run(&["models", "openai", "--price"]).ok();
    let row = listed.out.lines().find(|line| line.starts_with("gpt-4o ")).unwrap();
    assert!(row.contains("$1.5 in, $6 out*"), "{row}");
    assert!(listed.err.contains("`*`: your own price of today"), "{}", listed.err);
    let found = home.run(&["doctor"]).ok().out;
    assert!(found.contains("your own of 3 models, in ") && found.contains(PRICES), "{found}");
    let team = |model: &str| TEAM.replace("openai:test", model).replacen("prices", "# ", 1);
    let most = |model: &str| {
        home.file("team.yaml", &team(model));
        let price =
            home.run(&["check", "--price", "--json", "team.yaml"]).ok().lines().remove(0)["price"].take();
        let [input, cost] =
            ["input_tokens", "picodollars"].map(|name| price["at_most"][name].as_u64().unwrap());
        cost - 20 * 8_000_000 == input * 4_000_000
    };
    assert!(most("openai:mine") && !most("openai:gpt-4o"));
}

#[test]
fn a_run_costs_what_the_users_file_says_and_no_less_than_a_team_may_say() {
    let server = serve(Behavior::from(Playbook::new(|_, _| Answer::text("words").usage(100, 10))).key(KEY));
    let home = Home::at(&server).var("POLYLOGUE_PRICES", "mine.yaml");
    home.file(
        "mine.yaml",
        "openai:gpt-4o: {input: 1, output: 5}\nopenai:test: {input: 2000, output: 1000}\n",
    );
    let costs_with = |options: &[&str], model: &str, prices: &str, cost: &str| {
        let team = TEAM.replace("prices: {\"openai:test\": {input: 1000, output: 1000}}", prices);
        home.file("team.yaml", &team.replace("openai:test", model));
        let ran = home.run(&[&["run", "team.yaml"], options].concat()).ok();
        assert!(ran.out.contains(&format!(" · {cost} · ")), "{cost}: {}", ran.out);
        ran.err
    };
    let costs = |model: &str, prices: &str, cost: &str| costs_with(&[], model, prices, cost);
    // Two calls of 100 tokens in and 10 out. Below the list price, because it is the user's own.
    costs("openai:gpt-4o", "", "$0.0003");
    // The team's price is lower than the user's, and counts only if that is allowed.
    let lower = "prices: {\"openai:test\": {input: 1000, output: 1000}}";
    let said = costs("openai:test", lower, "$0.42");
    assert!(said.contains("are below yours or the list prices"), "{said}");
    costs_with(&["--allow", "prices"], "openai:test", lower, "$0.22");
    // Above the user's own price nothing needs to be allowed, though the list price is higher.
    let between = "prices: {\"openai:gpt-4o\": {input: 2, output: 6}}";
    let said = costs("openai:gpt-4o", between, "$0.0005");
    assert!(!said.contains("--allow prices"), "{said}");
    // It counts for editions of the model, which may not cost less than they do either.
    costs("openai:mine-2026-11-30", "prices: {\"openai:mine\": {input: 1000, output: 1000}}", "$0.22");
    let lower = "prices: {\"openai:gpt-4o\": {input: 0.5, output: 0.5}}";
    let said = costs("openai:gpt-4o-2031-01-01", lower, "$0.0003");
    assert!(said.contains("are below yours or the list prices"), "{said}");
    // The team's own no longer counts.
    costs(
        "openai:test",
        "prices: {\"openai:test\": {input: 9000, output: 9000, until: 2020-01-01}}",
        "$0.42",
    );
    costs("openai:test", "prices: {\"openai:test\": {input: 9000, output: 9000, from: 2020-01-01}}", "$1.98");
}

#[test]
fn a_wrong_file_of_prices_is_an_error_with_its_line() {
    for (prices, line, wrong) in [
        ("openai:a: {input: -1, output: 1}", "1:19", "`input` must be at least 0"),
        ("openai:a: {input: 1, output: 1e9}", "1:", "`output` must be at most 1000000"),
        ("gpt-4o: free", "1:1", "`gpt-4o` is not a model"),
        ("openai:a: {input: 1, output: 1, until: tomorrow}", "1:", "`tomorrow` is not a day"),
        ("openai:a: [{input: 1, output: 1}, free]", "1:", "an item of `openai:a`"),
        ("- openai:a", "1:1", "a file of prices must be a mapping"),
    ] {
        let home = home_with(&format!("{prices}\n"));
        let ran = home.run(&["count", "-m", "openai:gpt-4o", "Hello"]).exits(2);
        assert!(ran.err.contains(&format!("prices.yaml:{line}")) && ran.err.contains(wrong), "{}", ran.err);
    }
    let home = Home::new().var("POLYLOGUE_PRICES", "none.yaml");
    let ran = home.run(&["count", "-m", "openai:gpt-4o", "Hello"]).exits(2);
    assert!(ran.err.contains("your prices cannot be read from `none.yaml`"), "{}", ran.err);
}
