//! Random chats without windows, by every API: each request of an agent begins with the bytes of the one before it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use polylogue::AnyModel;
use polylogue_core::{
    Capabilities, Capability, DeltaSink, EncodeCache, Entry, Media, Model, ModelError, Origin, Params, Part,
    Path, PromptRole, Reply, Request, Status, text_of,
};
use polylogue_models::{Api, Config, Endpoint, EndpointModel};
use polylogue_test::server::{Behavior, Playbook, Server};

use super::{Chance, Maker, NAMES, log, name, reply, set};

/// The APIs, each with a model.
const APIS: [(Api, &str, &str); 6] = [
    (Api::ChatCompletions, "compatible", "any"),
    (Api::Ollama, "compatible", "any"),
    (Api::Messages, "anthropic", "claude-sonnet-4-5"),
    (Api::Responses, "openai", "gpt-5"),
    (Api::Gemini, "gemini", "gemini-3-pro-preview"),
    (Api::Converse, "bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0"),
];

/// What was sent, and what was wrong with it.
#[derive(Default)]
struct Sent {
    /// By chat and agent: the entries of the last request, and its body up to the end of its last text.
    last: HashMap<String, (Vec<Entry>, Vec<u8>)>,
    /// The requests whose entries begin with those of the one before.
    extended: usize,
    /// Those whose entries do not.
    rewritten: usize,
    flaws: Vec<String>,
}

impl Sent {
    fn add(&mut self, request: &Request<'_>, body: &[u8]) {
        let form = (request.params.schema.is_some(), request.params.json, request.tools.len());
        let view = format!("{:?} {} {form:?}", request.origin.chat, request.origin.who);
        let messages = up_to_the_last_text(body);
        let last = self.last.insert(view.clone(), (request.entries.to_vec(), messages.to_vec()));
        let Some((entries, before)) = last else { return };
        if !request.entries.starts_with(&entries) {
            // The two parts of a reply that was cut off are one message after that.
            self.rewritten += usize::from(!asks_to_continue(&entries));
            return;
        }
        self.extended += 1;
        if !body.starts_with(&before) {
            let [before, body] = [&before, body].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            self.flaws.push(format!("{view}:\n{before}\n{body}"));
        }
    }
}

fn asks_to_continue(entries: &[Entry]) -> bool {
    let last = entries.last().map(|entry| text_of(entry.parts()).into_owned());
    last.is_some_and(|text| text.starts_with("Your last message was cut off"))
}

/// A body up to the end of the last text in its messages, to which the next request may add the words of others.
fn up_to_the_last_text(body: &[u8]) -> &[u8] {
    let text = std::str::from_utf8(body).unwrap();
    let lists = ["\"messages\":[", "\"contents\":[", "\"input\":["];
    let start = lists.iter().filter_map(|list| Some(text.find(list)? + list.len())).min().unwrap();
    let (mut depth, mut in_text, mut escaped) = (1, false, false);
    for (at, byte) in body.iter().enumerate().skip(start) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => depth += 1,
            b']' | b'}' if !in_text => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let closing = |byte: &&u8| matches!(byte, b'"' | b']' | b'}');
            let closings = body[..at].iter().rev().take_while(closing).count();
            return &body[..at - closings];
        }
    }
    panic!("{text}")
}

/// P11: also with pictures and documents in messages and in results.
#[tokio::test]
async fn a_conversation_with_media_begins_with_the_bytes_of_the_one_before() {
    for (api, provider, model) in APIS {
        let server = Server::start(Behavior::from(Playbook::new(reply))).await;
        let url = if matches!(api, Api::ChatCompletions | Api::Responses) {
            server.base_url()
        } else {
            server.root_url()
        };
        let vision = Capabilities::default().with(Capability::Vision);
        let config = Config {
            provider: provider.into(),
            cache_marks: false,
            capabilities: vision,
            ..Config::of(api, &url)
        };
        let model = Endpoint::new(config).unwrap().model(model);
        let documents = matches!(api, Api::Messages | Api::Gemini | Api::Converse | Api::Responses);
        let (path, who, params, encoded) =
            (Path::root(), name("Ann"), Params::default(), EncodeCache::default());
        let (mut entries, mut sent) = (Vec::new(), Vec::<Vec<u8>>::new());
        for turn in 0..6_u64 {
            let media = match turn % 3 {
                0 => vec![picture()],
                1 if documents => vec![document()],
                _ => Vec::new(),
            };
            let words = [Part::text(format!("What is this, in turn {turn}?"))];
            entries.push(Entry::User { parts: words.into_iter().chain(media).collect() });
            let origin = Origin::new(&path, &who, turn);
            let (system, tools) = (Some("You look."), &[][..]);
            let request = Request {
                origin,
                system,
                entries: &entries,
                tools,
                params: &params,
                encoded: &encoded,
                reserved: None,
            };
            let reply = model.complete(&request, &mut ()).await.unwrap();
            let bytes = server.requests().last().unwrap().bytes.clone();
            if let Some(before) = sent.last() {
                assert!(bytes.starts_with(up_to_the_last_text(before)), "{api:?}: turn {turn}");
            }
            sent.push(bytes);
            entries.push(Entry::Assistant { parts: reply.parts.clone(), verbatim: reply.verbatim.clone() });
        }
        assert_eq!(server.violations(), [""; 0], "{api:?}");
        let last = String::from_utf8_lossy(sent.last().unwrap()).into_owned();
        assert_eq!(last.matches(PIXEL).count(), 2, "{api:?}: two pictures are sent");
        assert_eq!(last.matches(PDF).count(), if documents { 2 } else { 0 }, "{api:?}");
    }
}

/// A model whose requests are compared, one at a time.
struct Watched {
    model: EndpointModel,
    server: Arc<Server>,
    sent: Arc<Mutex<Sent>>,
    one: tokio::sync::Mutex<()>,
    /// The hour that the system text names, in a copy that does what is wrong.
    clock: Option<AtomicU64>,
}

impl Model for Watched {
    fn name(&self) -> &str {
        self.model.name()
    }
    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        let _one = self.one.lock().await;
        let hour = self.clock.as_ref().map(|clock| clock.fetch_add(1, Ordering::SeqCst));
        let system = hour.map(|hour| format!("{} It is {hour} o'clock.", request.system.unwrap_or_default()));
        let request = &Request { system: system.as_deref().or(request.system), ..*request };
        let reply = self.model.complete(request, deltas).await?;
        let last = self.server.requests().last().unwrap().clone();
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).add(request, &last.bytes);
        Ok(reply)
    }
    fn capabilities(&self) -> Capabilities {
        self.model.capabilities()
    }
}

/// Plays the team of `seed` by an API.
async fn play(seed: u64, (api, provider, model): (Api, &str, &'static str), has_clock: bool) -> Sent {
    let server = Arc::new(Server::start(Behavior::from(Playbook::new(reply))).await);
    let url = match api {
        Api::ChatCompletions | Api::Responses => server.base_url(),
        _ => server.root_url(),
    };
    // Marks of caches are no part of what a cache compares.
    let stream = seed.is_multiple_of(2);
    let config = Config { provider: provider.into(), stream, cache_marks: false, ..Config::of(api, &url) };
    let sent = Arc::new(Mutex::new(Sent::default()));
    let watched = Watched {
        model: Endpoint::new(config).unwrap().model(model),
        server: Arc::clone(&server),
        sent: Arc::clone(&sent),
        one: tokio::sync::Mutex::default(),
        clock: has_clock.then(AtomicU64::default),
    };
    let names = NAMES[usize::try_from(seed % 4).unwrap()];
    let lacks_formats = matches!(api, Api::Messages | Api::Converse);
    let mut maker = Maker {
        chance: Chance::of(seed),
        model: AnyModel::new(watched),
        names,
        prompts: vec![PromptRole::User],
        lacks_formats,
        shows: false,
        forgets: false,
    };
    let team = maker.team();
    let mut log = log().await;
    let mut status = team.run_in(&mut log, "Find out.").await.map(|run| run.status);
    for _ in 0..60 {
        let Ok(Status::Waiting(questions)) = &status else { break };
        let (at, question) = &questions[0];
        log.answer(at, &name(question.who.as_str()), "I would say so.").await.unwrap();
        status = team.resume(&mut log).await.map(|run| run.status);
    }
    assert!(matches!(status, Ok(Status::Closed { .. })), "seed {seed}: {status:?}");
    assert_eq!(server.violations(), [""; 0], "seed {seed}");
    drop((team, maker));
    std::mem::take(&mut *sent.lock().unwrap())
}

/// P11.
#[tokio::test]
async fn each_request_of_an_agent_begins_with_the_bytes_of_the_one_before() {
    let first = set("POLYLOGUE_SEED", 1);
    for api in APIS {
        let (mut extended, mut rewritten) = (0, 0);
        for seed in first..first + 8 {
            let sent = play(seed, api, false).await;
            assert_eq!(sent.flaws, [""; 0], "{api:?} from seed {seed}");
            extended += sent.extended;
            rewritten += sent.rewritten;
        }
        println!("{api:?}: {extended} requests extend the one before, {rewritten} do not");
        assert!(extended > 20 && rewritten == 0, "{api:?}: {extended} extended, {rewritten} rewritten");
    }
}

/// The check above can fail: a clock in the system text changes the beginning of each request.
#[tokio::test]
async fn a_clock_in_the_system_text_is_noticed() {
    for api in APIS {
        let mut noticed = 0;
        for seed in 1..4 {
            let sent = play(seed, api, true).await;
            assert!(sent.flaws.len() <= sent.extended);
            noticed += sent.flaws.len();
        }
        // Where the system text is after the messages, the beginning stays the same.
        assert!(noticed > 0, "{api:?}");
    }
}

/// A picture of one pixel, in base64.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// The beginning of a document, in base64.
const PDF: &str = "JVBERi0xLjQKJSVFT0YK";

fn picture() -> Part {
    Part::Media(Media {
        media_type: "image/png".into(),
        url: format!("data:image/png;base64,{PIXEL}").into(),
    })
}

fn document() -> Part {
    Part::Media(Media {
        media_type: "application/pdf".into(),
        url: format!("data:application/pdf;base64,{PDF}").into(),
    })
}
