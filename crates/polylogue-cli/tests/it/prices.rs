//! What a run takes at most: `check --price`, and the line of `run`.

use polylogue_test::server::{Answer, Behavior, Playbook};

use crate::home::{Home, KEY, serve};

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
    let home = Home::new();
    home.file("team.yaml", TEAM);
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
fn a_team_without_a_model_is_priced_with_one_that_is_named() {
    let home = Home::new();
    home.file("team.yaml", &TEAM.replace("model: openai:test\n", ""));
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
    let home = Home::at(&server);
    home.file("team.yaml", TEAM);
    let json = home.run(&["check", "--price", "--json", "team.yaml"]).ok().lines().remove(0);
    let dollars = json["price"]["at_most"]["picodollars"].as_f64().unwrap() / 1e12;
    let ran = home.run(&["run", "team.yaml"]).ok();
    let line = format!("It takes at most ${dollars:.4} in 2 model calls, ");
    assert!(ran.err.contains(&line), "{line}: {}", ran.err);
}
