//! Requests made at random, of what real clients send and variations of it: replaced team files, imports, chat completions that continue
//! a conversation by its id, MCP of both kinds, messages, answers. No reply is an error of the server, and each is within the schema that
//! `/openapi.json` has for it (S36). `POLYLOGUE_REQUESTS` sets how many (default: 240), `POLYLOGUE_SEED` the seed.

use std::collections::BTreeMap;

use polylogue_test::random::Random;
use polylogue_test::server::Playbook;
use serde_json::{Value, json};

use crate::client::{Request, Response};
use crate::conversations::{begin, events, until};
use crate::mcp_client::{self, SESSIONS, STATELESS, Session};
use crate::world::World;

/// A person is asked repeatedly.
const ASKING: &str = "
name: asking
task: Help.
agents: [{name: Ann, model: 'openai:gpt-4o-mini'}, {name: Pat, human: true}]
chat: {participants: [Pat, Ann], pattern: round_robin, max_turns: 10000}
limits: {calls: 100000}
";

const CONVERSATIONS: &str = "/api/v1/conversations";

/// Choices that follow from a seed.
struct Chance(Random);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.0.number() >> 33).unwrap() % limit
    }

    fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    fn of<'o, T>(&mut self, options: &'o [T]) -> &'o T {
        &options[self.below(options.len())]
    }

    /// A value that a client may send by mistake.
    fn wrong(&mut self) -> Value {
        let values = [
            Value::Null,
            json!(true),
            json!(-1),
            json!(0),
            json!(1.5e300),
            json!(u64::MAX),
            json!(""),
            json!("x\u{0}\u{202e}\n"),
            json!("long ".repeat(5_000)),
            json!([]),
            json!([[[{}]]]),
            json!({}),
            json!({"text": {"text": []}}),
        ];
        self.of(&values).clone()
    }

    /// `value` with a part replaced, left out or added, sometimes.
    fn varied(&mut self, mut value: Value) -> Value {
        while self.one_in(3) {
            self.vary(&mut value);
        }
        value
    }

    fn vary(&mut self, value: &mut Value) {
        match value {
            Value::Object(fields) if !fields.is_empty() && !self.one_in(6) => {
                let names: Vec<String> = fields.keys().cloned().collect();
                let name = self.of(&names).clone();
                match self.below(8) {
                    0 => drop(fields.shift_remove(&name)),
                    1 => drop(fields.insert("unknown".into(), self.wrong())),
                    _ => fields.get_mut(&name).into_iter().for_each(|value| self.vary(value)),
                }
            }
            Value::Array(items) if !items.is_empty() && !self.one_in(6) => {
                let at = self.below(items.len());
                if self.one_in(4) {
                    items.push(items[at].clone());
                }
                self.vary(&mut items[at]);
            }
            _ => *value = self.wrong(),
        }
    }

    /// `text` with a line or a character changed, sometimes.
    fn varied_text(&mut self, text: &str) -> String {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        while self.one_in(2) && !lines.is_empty() {
            let at = self.below(lines.len());
            match self.below(5) {
                0 => drop(lines.remove(at)),
                1 => lines.insert(at, lines[at].clone()),
                2 => lines.truncate(at),
                3 => lines[at].push_str(" # more"),
                _ => {
                    let nth = self.below(lines[at].chars().count() + 1);
                    let cut = lines[at].char_indices().nth(nth).map_or(lines[at].len(), |(cut, _)| cut);
                    let more = *self.of(&["", "\u{0}", ": ", "{", "9", "é"]);
                    lines[at] =
                        format!("{}{more}{}", &lines[at][..cut], lines[at].get(cut + 1..).unwrap_or(""));
                }
            }
        }
        lines.join("\n") + "\n"
    }
}

/// What requests are about.
struct Known {
    /// Conversations that are closed, wait and were imported, and names of none.
    ids: Vec<String>,
    /// The text of an exported one.
    export: String,
    /// The text of the file of `talk`, as it was first.
    team: String,
}

impl Known {
    async fn of(world: &World) -> Self {
        let mut ids = Vec::new();
        for (team, state) in [("long", "closed"), ("asking", "waiting"), ("talk", "closed")] {
            let id = begin(world, &json!({"team": team, "message": "Go on."})).await;
            until(world, &id, state).await;
            ids.push(id);
        }
        // The script of this one would soon be used up, which is a turn that fails: it is only read.
        let talk = ids.pop().unwrap();
        let export = world.get(&format!("{CONVERSATIONS}/{talk}/export")).await.body;
        let team = world.get("/api/v1/teams/talk/source").await.json()["text"].as_str().unwrap().to_owned();
        let imported = world.post("/api/v1/imports", &json!({"log": export})).await;
        assert_eq!(imported.status, 201, "{}", imported.body);
        ids.push(imported.json()["id"].as_str().unwrap().to_owned());
        ids.extend(["unknown", "..%2f..", "%00"].map(str::to_owned));
        Self { ids, export, team }
    }
}

/// A request, and the documented path that it is of.
type Made = (Request, &'static str);

/// Replaces a team file.
async fn put(world: &World, known: &Known, chance: &mut Chance) -> Made {
    let path = "/api/v1/teams/{team}";
    let team = *chance.of(&["talk", "ask", "unknown"]);
    let text = chance.varied_text(&known.team);
    let request =
        world.request("PUT", &path.replace("{team}", team)).json(&chance.varied(json!({"text": text})));
    let request = match chance.below(4) {
        0 => request,
        1 => request.header("If-Match", chance.of::<&str>(&["\"x\"", "*", "W/\"x\"", ","])),
        _ => {
            let source = world.get(&format!("/api/v1/teams/{team}/source")).await;
            match source.header("etag") {
                Some(version) => request.header("If-Match", version),
                None => request,
            }
        }
    };
    (request, path)
}

fn import(world: &World, known: &Known, chance: &mut Chance) -> Made {
    let path = "/api/v1/imports";
    let log = chance.varied_text(&known.export);
    let mut body = json!({"log": log});
    if chance.one_in(2) {
        body["team"] = json!(chance.of(&["talk", "ask", "unknown"]));
    }
    (world.request("POST", path).json(&chance.varied(body)), path)
}

/// Continues a conversation by its id, or by its history.
fn complete(world: &World, known: &Known, chance: &mut Chance) -> Made {
    let path = "/v1/chat/completions";
    let id = chance.of(&known.ids).clone();
    let mut body = json!({
        "model": chance.of(&["long", "asking", "unknown"]),
        "messages": [
            {"role": "user", "content": "Go on."},
            {"role": "assistant", "content": "more"},
            {"role": "user", "content": chance.of(&["And?", "Count.", "\u{7}"])},
        ],
        "stream": chance.one_in(3),
    });
    if chance.one_in(3) {
        body["max_tokens"] = json!(chance.of(&[1, 100, 100_000]));
    }
    if chance.one_in(2) {
        body["metadata"] = json!({"conversation": id});
        return (world.request("POST", path).json(&chance.varied(body)), path);
    }
    (world.request("POST", path).json(&chance.varied(body)).header("X-Polylogue-Conversation", &id), path)
}

/// A message of MCP, without a session.
fn mcp(world: &World, known: &Known, chance: &mut Chance) -> Made {
    let (url, path) =
        *chance.of(&[("/mcp", "/mcp"), ("/mcp/long", "/mcp/{team}"), ("/mcp/unknown", "/mcp/{team}")]);
    let methods = [
        "tools/list", "tools/call", "tools/call", "tasks/get", "tasks/cancel", "tasks/update",
        "server/discover", "ping", "x",
    ];
    let method = *chance.of(&methods);
    let id = chance.of(&known.ids).clone();
    let mut params = match method {
        "tools/call" => {
            let arguments = json!({"message": "Go on.", "conversation": id});
            json!({"name": chance.of(&["long", "asking", "talk", "unknown"]), "arguments": chance.varied(arguments)})
        }
        _ => json!({"taskId": id, "cursor": "x"}),
    };
    let capabilities = match chance.below(3) {
        0 => json!({}),
        1 => mcp_client::elicitation(),
        _ => mcp_client::tasks(),
    };
    let request = mcp_client::request_at(world, url, method, &mut params, &capabilities);
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    let version = *chance.of(&[STATELESS, STATELESS, STATELESS, SESSIONS, "1999-01-01"]);
    (request.json(&chance.varied(body)).header("MCP-Protocol-Version", version), path)
}

/// A message of MCP in a session.
fn mcp_in_session(session: &Session<'_>, known: &Known, chance: &mut Chance) -> Made {
    let arguments = json!({"message": "Go on.", "conversation": chance.of(&known.ids)});
    let team = *chance.of(&["long", "talk"]);
    let params = chance.varied(json!({"name": team, "arguments": arguments}));
    let request = session.request(1, chance.of::<&str>(&["tools/call", "tools/list", "ping"]), &params);
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    (request.json(&chance.varied(body)), "/mcp")
}

fn steer(world: &World, known: &Known, chance: &mut Chance) -> Made {
    let (path, body) = chance
        .of(&[
            ("/api/v1/conversations/{id}/messages", json!({"text": "More."})),
            ("/api/v1/conversations/{id}/answers", json!({"question": 5, "text": "Well."})),
            ("/api/v1/conversations/{id}/resume", json!({"limits": {"calls": 3, "turns": 2}})),
            ("/api/v1/conversations/{id}/fork", json!({"seq": 4})),
            ("/api/v1/conversations/{id}/stop", json!({})),
        ])
        .clone();
    let url = path.replace("{id}", chance.of(&known.ids).as_str());
    (world.request("POST", &url).json(&chance.varied(body)), path)
}

async fn made(world: &World, session: &Session<'_>, known: &Known, chance: &mut Chance) -> Made {
    match chance.below(6) {
        0 => put(world, known, chance).await,
        1 => import(world, known, chance),
        2 => complete(world, known, chance),
        3 => mcp(world, known, chance),
        4 => mcp_in_session(session, known, chance),
        _ => steer(world, known, chance),
    }
}

/// The schemas of replies, by method, path and whether it was done.
struct Schemas {
    document: Value,
    compiled: BTreeMap<(String, String, bool), jsonschema::Validator>,
}

impl Schemas {
    /// Why a reply is not within its schema.
    fn fault(&mut self, method: &str, path: &str, response: &Response) -> Option<String> {
        let is_done = response.status < 300;
        let media = response.header("content-type").unwrap_or_default().split(';').next().unwrap_or_default();
        let responses = &self.document["paths"][path][method.to_ascii_lowercase()]["responses"];
        let content = &responses[if is_done { "2XX" } else { "default" }]["content"];
        if response.body.is_empty() && matches!(response.status, 202 | 204) {
            return None;
        }
        let Some(schema) = content.get(media) else { return Some(format!("`{media}` is not documented")) };
        if !media.ends_with("json") {
            return None;
        }
        let mut schema = schema["schema"].clone();
        let key = (method.to_owned(), path.to_owned(), is_done);
        let components = self.document["components"].clone();
        let validator = self.compiled.entry(key).or_insert_with(|| {
            schema["components"] = components;
            jsonschema::draft202012::new(&schema).unwrap()
        });
        let reply: Value = match serde_json::from_str(&response.body) {
            Ok(reply) => reply,
            Err(error) => return Some(format!("it is no JSON: {error}")),
        };
        validator.iter_errors(&reply).next().map(|error| format!("{}: {error}", error.instance_path()))
    }
}

fn set(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).map_or(usual, |text| text.parse().unwrap())
}

#[tokio::test]
async fn s36_no_generated_request_is_an_error_of_the_server() {
    let world = World::with_playbook("asking", ASKING, Playbook::always("more")).await;
    let session = Session::open(&world, SESSIONS, mcp_client::elicitation()).await;
    let known = Known::of(&world).await;
    let document = world.get("/openapi.json").await.json();
    let mut schemas = Schemas { document, compiled: BTreeMap::new() };
    let (seed, count) = (set("POLYLOGUE_SEED", 1), set("POLYLOGUE_REQUESTS", 240));
    let imported = events(&world, &known.ids[2]).await;
    let (mut chance, mut statuses) = (Chance(Random::new(seed)), BTreeMap::new());
    for number in 0..count {
        let (request, path) = made(&world, &session, &known, &mut chance).await;
        let (method, body) = (request.method.clone(), String::from_utf8_lossy(&request.body).into_owned());
        let url = request.path.clone();
        let response = world.send(request).await;
        let case = format!("request {number} of seed {seed}: {method} {url} {body}\n{}", response.body);
        assert!(response.status < 500 && response.status != 429, "{}: {case}", response.status);
        assert_eq!(schemas.fault(&method, path, &response), None, "{}: {case}", response.status);
        *statuses.entry((path, response.status)).or_insert(0_usize) += 1;
    }
    println!("seed {seed}: {statuses:?}");
    // Requests of each kind were accepted, and others refused.
    let paths = ["/api/v1/teams/{team}", "/api/v1/imports", "/v1/chat/completions", "/mcp", "/mcp/{team}"];
    for path in paths.into_iter().chain([CONVERSATIONS]) {
        let of = |is_done: bool| {
            let is_of = |of: &str| of == path || path == CONVERSATIONS && of.starts_with(path);
            let all = statuses.iter().filter(|((of, status), _)| is_of(of) && (*status < 300) == is_done);
            all.map(|(_, count)| count).sum::<usize>()
        };
        assert!(of(true) > 0 && of(false) > 0, "{path}: {statuses:?}");
    }
    // What was imported has not run.
    assert_eq!(events(&world, &known.ids[2]).await, imported);
}
