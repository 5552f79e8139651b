//! What a team can do beyond talking: what of it one version of a file has and another has not.

use std::collections::BTreeSet;

use polylogue_config::Config as _;
use serde_json::{Map, Value, json};

use crate::built_in::is_built_in_tool;
use crate::team::Team;

/// Keys whose entries each are something that a team can use: programs, servers, addresses, keys of providers, prices, files.
const ENTRIES: [&str; 8] = ["commands", "calls", "mcp", "endpoints", "openapi", "prices", "files", "media"];

/// Keys that decide as a whole what a team can use, and where.
const WHOLE: [&str; 4] = ["sandbox", "web", "memory", "cache"];

/// Keys of what an agent or a task does itself. A person may have to approve it.
const ACTS: [&str; 4] = ["tools", "executes_tools", "code_execution", "runs_output_blocks"];

/// Keys of what a person must approve, and what counts when no person answers.
const CONSENT: [&str; 2] = ["approval", "default_answer"];

/// Where in the file it is, and its value.
type Power = (String, String);

impl Team {
    /// Returns what `newer` can do and this version cannot: run other programs, reach other hosts, read other files, use other
    /// keys, or do the same with less approval. Empty if it can do no more. Texts, models, patterns and limits do not count.
    ///
    /// ```
    /// use polylogue_team::{Overrides, parse};
    /// let team = |tools| {
    ///     let text = format!("{{name: t, agents: [{{name: Ann, tools: [{tools}]}}], chat: {{participants: [Ann], stop: {{max_turns: 1}}}}}}");
    ///     parse(&text, "t.yaml", &Overrides::default()).map(|loaded| loaded.team)
    /// };
    /// assert!(team("shell")?.powers_beyond(&team("calculator")?).is_empty());
    /// assert_eq!(team("calculator")?.powers_beyond(&team("shell")?), ["agents.Ann.tools.shell"]);
    /// # Ok::<(), polylogue_team::Diagnostics>(())
    /// ```
    pub fn powers_beyond(&self, newer: &Self) -> Vec<String> {
        let (old, new) = (powers(self), powers(newer));
        places(new.difference(&old))
    }

    /// Returns all that this version can do, as [`powers_beyond`](Self::powers_beyond) names it.
    ///
    /// ```
    /// use polylogue_team::{Overrides, parse};
    /// let text = "{name: t, agents: [{name: Ann, tools: [shell]}], chat: {participants: [Ann], stop: {max_turns: 1}}}";
    /// let team = parse(text, "t.yaml", &Overrides::default())?.team;
    /// assert_eq!(team.powers(), ["agents.Ann.tools.shell"]);
    /// # Ok::<(), polylogue_team::Diagnostics>(())
    /// ```
    pub fn powers(&self) -> Vec<String> {
        places(&powers(self))
    }
}

/// Where in the file they are, each place once.
fn places<'p>(powers: impl IntoIterator<Item = &'p Power>) -> Vec<String> {
    let places: BTreeSet<&String> = powers.into_iter().map(|(place, _)| place).collect();
    places.into_iter().cloned().collect()
}

fn powers(team: &Team) -> BTreeSet<Power> {
    let mut found = BTreeSet::new();
    for (grant, what) in team.wants() {
        found.extend(what.into_iter().map(|what| (format!("{}: {what}", grant.word()), String::new())));
    }
    walk(&team.write(), "", &mut found);
    for sub in &team.teams {
        let place = |(place, value)| (format!("{}: {place}", sub.file.as_str()), value);
        found.extend(powers(&sub.team).into_iter().map(place));
    }
    found
}

fn walk(value: &Value, place: &str, found: &mut BTreeSet<Power>) {
    match value {
        Value::Object(keys) => {
            for (key, value) in keys {
                let place = join(place, key);
                match key.as_str() {
                    key if ENTRIES.contains(&key) => entries(value, &place, found),
                    key if WHOLE.contains(&key) => drop(found.insert((place, value.to_string()))),
                    key if ACTS.contains(&key) => acts(keys, value, &place, found),
                    _ => walk(value, &place, found),
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                walk(item, &join(place, &name_of(item).unwrap_or_else(|| at.to_string())), found);
            }
        }
        _ => {}
    }
}

/// Each entry by itself, wherever in its list it is.
fn entries(value: &Value, place: &str, found: &mut BTreeSet<Power>) {
    match value {
        Value::Object(entries) => {
            found.extend(entries.iter().map(|(name, entry)| (join(place, name), entry.to_string())));
        }
        Value::Array(items) => {
            let of = |item: &Value| join(place, &name_of(item).unwrap_or_else(|| item.to_string()));
            found.extend(items.iter().map(|item| (of(item), item.to_string())));
        }
        whole => drop(found.insert((place.to_owned(), whole.to_string()))),
    }
}

/// What is done, with what a person must approve of it. Tools that touch nothing but the conversation do not count.
fn acts(keys: &Map<String, Value>, value: &Value, place: &str, found: &mut BTreeSet<Power>) {
    let consent = json!(CONSENT.map(|key| keys.get(key)));
    let items = match value {
        Value::Array(items) => items.clone(),
        Value::Bool(false) | Value::Null => Vec::new(),
        whole => vec![whole.clone()],
    };
    for item in items {
        let name = name_of(&item);
        // A server of MCP can have the name of any tool.
        let is_server = item.get("mcp").is_some();
        if !is_server && name.as_deref().is_some_and(is_built_in_tool) {
            continue;
        }
        let place = name.map_or_else(|| place.to_owned(), |name| join(place, &name));
        found.insert((place, json!([item, consent]).to_string()));
    }
}

/// What an item of a list is called.
fn name_of(item: &Value) -> Option<String> {
    let named = ["name", "tool", "mcp", "openapi"].iter().find_map(|key| item.get(*key)?.as_str());
    item.as_str().or(named).map(str::to_owned)
}

fn join(place: &str, key: &str) -> String {
    if place.is_empty() { key.to_owned() } else { format!("{place}.{key}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Overrides, parse};

    const OLD: &str = "
name: t
task: x
endpoints: {own: {api: chat_completions, base_url: 'http://127.0.0.1:9/v1', key: OWN_KEY}}
mcp: {local: {command: serve, args: [a]}}
commands: [{name: build, description: Builds., command: [make, all]}]
agents:
  - {name: Ann, model: 'own:x', system: Old., tools: [build, {mcp: local}], approval: always}
  - {name: Bob, tools: [calculator]}
chat: {participants: [Ann, Bob], pattern: round_robin, stop: {max_turns: 4}}
";

    fn team(text: &str) -> Team {
        parse(text, "t.yaml", &Overrides::default()).unwrap().team
    }

    /// What the text can do more when `from` in it becomes `to`.
    fn more(from: &str, to: &str) -> Vec<String> {
        assert!(OLD.contains(from), "{from}");
        team(OLD).powers_beyond(&team(&OLD.replace(from, to)))
    }

    #[test]
    fn texts_flows_and_less_are_no_more() {
        let no_more = [
            ("system: Old.", "system: New."),
            ("max_turns: 4", "max_turns: 40"),
            ("pattern: round_robin", "pattern: {group: {select: random}}"),
            ("tools: [build, {mcp: local}]", "tools: [build]"),
            ("tools: [calculator]", "tools: [chess, calculator]"),
            ("{name: Bob, tools: [calculator]}", "{name: Bob}"),
        ];
        for (from, to) in no_more {
            assert_eq!(more(from, to), Vec::<String>::new(), "{from} -> {to}");
        }
    }

    #[test]
    fn programs_hosts_files_keys_and_less_approval_are_more() {
        let widening = [
            ("[make, all]", "[rm, all]", "commands.build"),
            ("args: [a]", "args: [b]", "mcp.local"),
            ("127.0.0.1:9", "127.0.0.1:8", "endpoints.own"),
            ("key: OWN_KEY", "key: OTHER", "endpoints.own"),
            (", approval: always", "", "agents.Ann.tools.build"),
            (
                "approval: always",
                "approval: always, default_answer: {timeout: 1 s, text: 'yes'}",
                "agents.Ann.tools.build",
            ),
            ("tools: [calculator]", "tools: [build]", "agents.Bob.tools.build"),
            ("tools: [calculator]", "tools: [shell]", "agents.Bob.tools.shell"),
            ("tools: [calculator]", "code_execution: true", "agents.Bob.code_execution"),
            ("task: x", "task: x\nsandbox: {backend: none}", "sandbox"),
            ("task: x", "task: x\ncache: replies.jsonl", "cache"),
            (
                "pattern: round_robin",
                "pattern: round_robin, opening: {text: x, media: [{type: image/png, url: 'https://e.example/a'}]}",
                "network: e.example (by the provider of the model)",
            ),
            (
                "model: 'own:x'",
                "model: 'own:x', parameters: {extra: {mcp_servers: [{url: 'https://e.example'}]}}",
                "network: what `mcp_servers` of `extra` reaches (by the provider of own:x)",
            ),
        ];
        for (from, to, place) in widening {
            assert!(more(from, to).iter().any(|more| more == place), "{from} -> {to}: {:?}", more(from, to));
        }
        let named = OLD.replace("local", "calculator");
        let newer = named.replace("tools: [calculator]", "tools: [{mcp: calculator}]");
        assert_eq!(team(&named).powers_beyond(&team(&newer)), ["agents.Bob.tools.calculator"]);
        let of = |value: &str| {
            team(&format!("vars: {{what: {value}}}\n{}", OLD.replace("[make, all]", "[make, '{{what}}']")))
        };
        assert_eq!(of("all").powers_beyond(&of("clean")), ["commands.build"], "by the value of a variable");
        // What is asked of the user is named in the user's words, too.
        assert!(more("[make, all]", "[rm, all]").len() == 1);
        assert!(more("args: [a]", "args: [b]").iter().any(|more| more.starts_with("mcp: local: serve b")));
    }
}
