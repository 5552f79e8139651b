//! What monitoring reads: S42.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use polylogue_server::Scope;
use polylogue_test::generated::check_part;
use serde_json::{Value, json};

use crate::client::Request;
use crate::conversations::{begin, begin_until, until};
use crate::world::{World, generous};

/// Values by sample name and labels.
type Samples = BTreeMap<(String, Labels), f64>;
type Labels = Vec<(String, String)>;

/// Reads the text format of OpenMetrics 1.0 as strictly as its specification is written.
fn parse(text: &str) -> Samples {
    let body = text.strip_suffix("# EOF\n").unwrap_or_else(|| panic!("no end: {text}"));
    let (mut samples, mut families, mut family) =
        (Samples::new(), BTreeSet::new(), (String::new(), String::new()));
    for line in body.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let (keyword, rest) = comment.split_once(' ').unwrap();
            let (name, text) = rest.split_once(' ').unwrap();
            assert!(is_name(name), "{line}");
            match keyword {
                "TYPE" => {
                    assert!(["counter", "gauge", "histogram", "info"].contains(&text), "{line}");
                    assert!(families.insert(name.to_owned()), "a family twice: {line}");
                    family = (name.to_owned(), text.to_owned());
                }
                "HELP" => assert!(!text.is_empty(), "{line}"),
                "UNIT" => assert!(name.ends_with(&format!("_{text}")), "{line}"),
                _ => panic!("a comment of no kind: {line}"),
            }
            continue;
        }
        let (name, labels, value) = sample(line);
        let (of, kind) = &family;
        let suffix =
            name.strip_prefix(of.as_str()).unwrap_or_else(|| panic!("a sample of no family: {line}"));
        let suffixes: &[&str] = match kind.as_str() {
            "counter" => &["_total"],
            "gauge" => &[""],
            "info" => &["_info"],
            _ => &["_bucket", "_sum", "_count"],
        };
        assert!(suffixes.contains(&suffix), "{line}");
        assert!(value.is_finite() && value >= 0.0, "{line}");
        assert!(samples.insert((name, labels), value).is_none(), "a sample twice: {line}");
    }
    samples
}

fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    name.chars().all(is_part) && !name.starts_with(|c: char| c.is_ascii_digit()) && !name.is_empty()
}

fn sample(line: &str) -> (String, Labels, f64) {
    let (series, value) = line.rsplit_once(' ').unwrap();
    let value = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
    let Some((name, labels)) = series.split_once('{') else {
        assert!(is_name(series), "{line}");
        return (series.to_owned(), Labels::new(), value);
    };
    assert!(is_name(name), "{line}");
    let labels = labels.strip_suffix('}').unwrap_or_else(|| panic!("no end of labels: {line}"));
    // No label of ours has a quotation mark or a comma.
    let label = |label: &str| {
        let (key, value) = label.split_once('=').unwrap();
        let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        assert!(is_name(key) && !key.contains(':'), "{line}");
        (key.to_owned(), value.unwrap_or_else(|| panic!("no text: {line}")).to_owned())
    };
    (name.to_owned(), labels.split(',').map(label).collect(), value)
}

async fn metrics(world: &World, token: &str) -> Samples {
    let response = Request::new("GET", "/metrics").token(token).send(world.address).await;
    assert_eq!(response.status, 200, "{}", response.body);
    let media = response.header("content-type").unwrap();
    assert_eq!(media, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    parse(&response.body)
}

/// The sum of the samples with this name and these labels.
fn sum(samples: &Samples, name: &str, labels: &[(&str, &str)]) -> f64 {
    let has =
        |all: &Labels| labels.iter().all(|(key, value)| all.iter().any(|(k, v)| k == key && v == value));
    samples.iter().filter(|((of, all), _)| of == name && has(all)).map(|(_, value)| value).sum()
}

/// The same of what conversations say that they have used. What no call reported is left out there.
fn usage(conversations: &[Value], key: &str) -> f64 {
    conversations.iter().filter_map(|one| one["usage"].get(key)).map(|usage| usage.as_f64().unwrap()).sum()
}

#[tokio::test]
async fn s42_metrics_are_the_totals_of_the_logs_and_have_no_labels_of_clients() {
    let world = World::with_model("more", generous()).await;
    let (_, token) = world.new_token("local", &[Scope::Metrics]);
    let mut ended = Vec::new();
    for (team, turns) in [("long", 12), ("long", 5), ("talk", 4), ("short", 3)] {
        let limits = if team == "long" { json!({"turns": turns}) } else { json!({}) };
        let id = begin(&world, &json!({"team": team, "limits": limits})).await;
        ended.push(until(&world, &id, "closed").await);
    }
    // A conversation is closed a moment before its run has ended.
    let samples = loop {
        let samples = metrics(&world, &token).await;
        if sum(&samples, "polylogue_conversations_running", &[]) == 0.0 {
            break samples;
        }
    };
    let total = |name: &str| sum(&samples, name, &[]);
    let tokens = |kind: &str| sum(&samples, "polylogue_tokens_total", &[("kind", kind)]);
    assert_eq!(
        total("polylogue_turns_total"),
        ended.iter().map(|one| one["turns"].as_f64().unwrap()).sum::<f64>()
    );
    assert_eq!(total("polylogue_model_calls_total"), usage(&ended, "calls"));
    // One observation for each call, by model; the replies of the server were streamed.
    assert_eq!(total("polylogue_model_call_seconds_count"), usage(&ended, "calls"));
    let buckets = |name: &str| sum(&samples, name, &[("le", "+Inf"), ("model", "gpt-4o-mini")]);
    assert_eq!(buckets("polylogue_model_call_seconds_bucket"), usage(&ended[..2], "calls"));
    let first = sum(&samples, "polylogue_first_token_seconds_count", &[("model", "gpt-4o-mini")]);
    assert!(first > 0.0 && first <= usage(&ended[..2], "calls"), "{first}");
    let sums = [total("polylogue_first_token_seconds_sum"), total("polylogue_model_call_seconds_sum")];
    assert!(sums[0] <= sums[1], "the first piece comes before the reply: {sums:?}");
    assert_eq!(total("polylogue_unmetered_calls_total"), usage(&ended, "unmetered"));
    assert_eq!((tokens("input"), tokens("output")), (usage(&ended, "input"), usage(&ended, "output")));
    assert!(tokens("input") > 0.0);
    let picodollars = usage(&ended, "cost");
    assert!(picodollars > 0.0, "{picodollars}");
    assert_eq!((total("polylogue_cost_dollars_total") * 1e12).round(), picodollars);
    let of_long = [("team", "long"), ("model", "gpt-4o-mini"), ("provider", "openai")];
    assert_eq!(sum(&samples, "polylogue_model_calls_total", &of_long), usage(&ended[..2], "calls"));
    for one in &ended {
        let word = one["ended"]["word"].as_str().unwrap();
        let count = ended.iter().filter(|other| other["ended"]["word"] == word).count();
        let counted = sum(&samples, "polylogue_conversations_ended_total", &[("outcome", word)]);
        assert_eq!(counted.to_string(), count.to_string(), "{word}");
    }
    let operations = |op| sum(&samples, "polylogue_store_seconds_count", &[("op", op)]);
    assert_eq!(operations("create"), 4.0);
    assert!(operations("append") >= usage(&ended, "calls") && operations("read") > 0.0);
    let begun = [("route", "/api/v1/conversations"), ("method", "POST"), ("status", "201")];
    assert_eq!(sum(&samples, "polylogue_http_requests_total", &begun), 4.0);
    assert_eq!(total("polylogue_http_request_seconds_count"), total("polylogue_http_requests_total"));
    let by_route = sum(&samples, "polylogue_http_request_seconds_count", &[begun[0]]);
    assert_eq!(
        by_route,
        sum(&samples, "polylogue_http_requests_total", &[begun[0]]),
        "a histogram for each route"
    );

    // What clients choose is in no label.
    let mut sets = Vec::new();
    for round in 0..3 {
        for number in 0..10 {
            world.get(&format!("/api/v1/conversations/c-{round}-{number}")).await;
            world.get(&format!("/no/such/path/{round}/{number}")).await;
            world.send(world.request(&format!("VERB{round}{number}"), "/api/v1/teams")).await;
        }
        let samples = metrics(&world, &token).await;
        sets.push(samples.into_keys().collect::<BTreeSet<_>>());
    }
    assert_eq!(sets[1], sets[2]);
    assert!(sets[2].iter().flat_map(|(_, labels)| labels).all(|(_, value)| !value.contains("VERB")));

    // A token of another tenant reads what that tenant has taken, and one of a team what that team has.
    let (_, foreign) = world.new_token("other", &[Scope::Metrics]);
    let names: BTreeSet<String> = metrics(&world, &foreign).await.into_keys().map(|(name, _)| name).collect();
    let of_queue = [
        "conversations", "failing", "lost_events", "overdue_seconds", "places", "places_taken", "takeovers",
        "workers",
    ];
    let of_queue = of_queue.map(|name| format!("polylogue_cluster_{name}"));
    let of_tenant = ["build_info", "conversations_running"].map(|name| format!("polylogue_{name}"));
    assert_eq!(names, of_queue.into_iter().chain(of_tenant).collect());
    let made = json!({"name": "n", "scopes": ["metrics"], "teams": ["talk"]});
    let of_talk = world.post("/api/v1/tokens", &made).await.json()["token"].as_str().unwrap().to_owned();
    let samples = metrics(&world, &of_talk).await;
    assert_eq!(sum(&samples, "polylogue_turns_total", &[]), 4.0);
    assert!(!samples.keys().any(|(name, _)| name.starts_with("polylogue_http")));
}

/// A row for each family of metrics: its name as queries have it, its labels, and what it is.
fn table(text: &str) -> String {
    let mut rows: Vec<(String, String, Vec<String>, String)> = Vec::new();
    for line in text.lines() {
        match line.strip_prefix("# ").and_then(|comment| comment.split_once(' ')) {
            Some(("HELP", rest)) => {
                let (name, help) = rest.split_once(' ').unwrap();
                rows.push((
                    name.to_owned(),
                    String::new(),
                    Vec::new(),
                    help.trim_end_matches('.').to_owned(),
                ));
            }
            Some(("TYPE", rest)) => rows.last_mut().unwrap().1 = rest.split_once(' ').unwrap().1.to_owned(),
            Some(_) => {}
            None if line.starts_with('#') => {}
            None => {
                let (_, labels, _) = sample(line);
                let known = &mut rows.last_mut().unwrap().2;
                let new = labels.into_iter().map(|(label, _)| label).filter(|label| label != "le");
                let new: Vec<String> = new.filter(|label| !known.contains(label)).collect();
                known.extend(new);
            }
        }
    }
    rows.sort();
    let mut table = "| metric | type | labels | |\n|---|---|---|---|\n".to_owned();
    for (name, kind, labels, help) in rows {
        let suffix = match kind.as_str() {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        let labels = labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ");
        table += &format!("| `{name}{suffix}` | {kind} | {labels} | {help} |\n");
    }
    table
}

#[tokio::test]
async fn the_table_of_metrics_is_that_of_a_server() {
    // With turns, tools and model calls of several agents.
    let world = World::with_team("travel-desk", include_str!("../../../../teams/travel-desk.yaml")).await;
    begin_until(&world, "travel-desk", "closed").await;
    let text = world.get("/metrics").await.body;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/server.md");
    let hint =
        "regenerate it with `UPDATE=1 cargo nextest run -p polylogue-server -E 'test(the_table_of_metrics)'`";
    check_part(&file, "metrics", &table(&text), hint);
}

#[test]
#[should_panic(expected = "a sample twice")]
fn the_parser_is_strict() {
    parse("# HELP a A.\n# TYPE a counter\na_total{b=\"c\"} 1\na_total{b=\"c\"} 2\n# EOF\n");
}
