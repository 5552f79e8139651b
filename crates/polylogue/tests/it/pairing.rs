//! Random teams, on servers of several dialects: wherever a chat ends, whatever a window or a command leaves out,
//! whichever participant joins late, whatever the participants are called, and whatever media they or tools show, no server refuses a request, and none holds a call
//! without its result, or a result without its call. `POLYLOGUE_TEAMS` sets how many teams are played, `POLYLOGUE_SEED`
//! the first of their seeds.

mod media;
mod prefixes;

use std::sync::{Arc, Mutex};

use crate::common::{log, name};
use polylogue::agents::tooling::ToolCalling;
use polylogue::layers::executor::Executor;
use polylogue::layers::human_input::HumanInput;
use polylogue::layers::reply::Stack;
use polylogue::policies::{Carryover, Handoff};
use polylogue::tools::FunctionTool;
use polylogue::tools::agent_tool::AgentTool;
use polylogue::{AnyModel, Assistant, Chat, Policy, Status, Step, Tool, Transcript};
use polylogue_core::{
    Audience, Body, Capabilities, Capability, DeltaSink, Event, JoinHistory, Model, ModelError, Part,
    PromptRole, Reply, Request, StopReason, TurnRequest, ViewOptions, Window,
};
use polylogue_models::{Api, Config, Endpoint, EndpointModel};
use polylogue_test::server::{Answer, Behavior, Dialect, History, Playbook, Received, Server};
use serde_json::json;

/// Numbers of a linear congruential generator (Knuth's MMIX), the same in every run.
#[derive(Clone)]
struct Chance(u64);

impl Chance {
    fn of(seed: u64) -> Self {
        let mut chance = Self(seed);
        chance.below(1);
        chance
    }
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

/// What was wrong with requests, and the media in them.
type Flaws = Arc<Mutex<(Vec<String>, media::Seen)>>;

/// A model on a server, whose requests are checked before they are written.
struct Checked {
    model: EndpointModel,
    flaws: Flaws,
}

impl Checked {
    fn look_at(&self, request: &Request<'_>) {
        let mut flaws = self.flaws.lock().unwrap();
        flaws.1.add(request);
        flaws.0.extend(request.check().err().map(|flaw| format!("{}: {flaw}", request.origin.who)));
    }
}

impl Model for Checked {
    fn name(&self) -> &str {
        self.model.name()
    }
    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        self.look_at(request);
        self.model.complete(request, deltas).await
    }
    fn capabilities(&self) -> Capabilities {
        self.model.capabilities()
    }
}

/// What the models reply, by the request alone: words, calls of what they are offered, both, or nothing.
fn reply(request: &Received, _: usize) -> Answer {
    let digest =
        request.body.to_string().bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(byte));
    let mut chance = Chance::of(digest);
    let tools = request.tools();
    if let Some(text) = in_words(&request.last_text(), &mut chance) {
        return Answer::text(text);
    }
    let text = ["I think so.", "", "What now?", "Let us see, then, what there is to see of it all."]
        [chance.below(4)];
    let calls = if tools.is_empty() || chance.one_in(3) { 0 } else { 1 + chance.below(2) };
    let text = if calls == 0 && text.is_empty() && !chance.one_in(8) { "Well." } else { text };
    let answer = (0..calls).fold(Answer::text(text), |answer, _| {
        let tool = tools[chance.below(tools.len())];
        // Some models number their calls again in every reply.
        if chance.one_in(2) {
            answer.call_as("call_0", tool, json!({}))
        } else {
            answer.call(tool, json!({}))
        }
    });
    // Thoughts are signed for what came before them, and refused after anything else.
    let seals = !matches!(request.dialect(), Some(Dialect::ChatCompletions | Dialect::Ollama));
    let answer = if seals && chance.one_in(2) { answer.think("Hm.") } else { answer };
    if calls == 0 && chance.one_in(10) { answer.finish("length") } else { answer }
}

/// What a model replies that calls tools in words, to the `question` of one step; nothing, if it is no such question.
fn in_words(question: &str, chance: &mut Chance) -> Option<&'static str> {
    let mut either = |replies: [&'static str; 3]| Some(replies[chance.below(3)]);
    match question {
        question if question.contains(r#""call": null"#) => either([
            r#"{"say": null, "call": {"tool": "look", "args": {}}}"#,
            r#"{"say": "There it is.", "call": null}"#,
            "There it is.",
        ]),
        question if question.contains("Answer only `yes` or `no`") => either(["yes", "no", "yes"]),
        question if question.contains("one JSON object") => either(["{}", "{}", r#"{"surplus": 1}"#]),
        question if question.contains("exactly one of these names") => {
            either(["look", "suggested", "neither"])
        }
        _ => None,
    }
}

fn tool(name: &str) -> impl Tool {
    FunctionTool::new(name, "Does something.", async |_: ()| Ok("done")).repeatable()
}

/// What the same participants are called in different teams. Many of these names are the same once they are ASCII.
const NAMES: [[&str; 7]; 4] = [
    ["Ann", "Bob", "Run", "Ask", "inner", "first", "second"],
    [
        "Ai assistant 1", "Ai_assistant_1", "Ai assistant 2", "Ai-assistant-1", "Ai assistant", "first chat",
        "first_room",
    ],
    ["研究员", "研究", "研究员 2", "研究员_2", "内", "第一", "第二"],
    ["Élodie", "Elodie", "O'Brien", "कवि हिन्दी", "غرفة", "Нина", "Nina-000000000000"],
];

/// A participant that only shows media.
const PAINTER: &str = "Painter";

/// Makes one team.
struct Maker {
    chance: Chance,
    model: AnyModel,
    names: [&'static str; 7],
    /// In which roles agents are prompted.
    prompts: Vec<PromptRole>,
    lacks_formats: bool,
    /// Whether messages and results have media.
    shows: bool,
    /// Whether agents leave something out of later requests: by a window, private turns, or the questions by which a tool is
    /// called as text.
    forgets: bool,
}

impl Maker {
    fn assistant(&mut self, who: &str) -> Assistant {
        let window = match self.chance.below(4) {
            _ if !self.forgets => Window::All,
            0 => Window::All,
            1 => Window::Tokens(20 + self.chance.below(200)),
            _ => Window::Messages(1 + self.chance.below(9)),
        };
        let forgets_asides = self.chance.one_in(4) && self.forgets;
        let agent = Assistant::new(who, self.model.clone()).unwrap().system(format!("You are {who}."));
        let prompts = self.prompts[self.chance.below(self.prompts.len())];
        let agent = agent.max_tool_rounds(2).view(ViewOptions {
            window,
            forget_private_turns: forgets_asides,
            prompt_role: prompts,
            ..ViewOptions::default()
        });
        let agent = match self.chance.below(6) {
            _ if !self.forgets => agent,
            0 => agent.tool_calling(ToolCalling::Text),
            1 if !self.lacks_formats => agent.tool_calling(ToolCalling::Json),
            2 if !self.lacks_formats => agent.tool_calling(ToolCalling::Schema),
            _ => agent,
        };
        let agent = match self.chance.below(4) {
            0 | 1 => agent,
            2 if self.shows => agent.tool(media::shows("look", media::with_text("There.", &mut self.chance))),
            _ => agent.tool(tool("look")),
        };
        let ask = self.names[3];
        let agent = if self.chance.one_in(6) && who != ask {
            let other = Assistant::new(ask, self.model.clone()).unwrap();
            agent.agent_tool(AgentTool::agent(other)).tool(Handoff::to(self.names[0], "").unwrap())
        } else {
            agent
        };
        if self.chance.one_in(4) { agent } else { agent.suggest_tool(tool("suggested").spec().clone()) }
    }

    /// One who runs what is suggested, or a person who may.
    fn runner(&mut self, who: &str) -> Stack {
        let oversight = if self.chance.one_in(3) { HumanInput::always() } else { HumanInput::never() };
        let oversight = oversight.clear_command();
        let executor = match self.shows && self.chance.one_in(2) {
            true => Executor::new().tool(media::shows("suggested", media::some(&mut self.chance))),
            false => Executor::new().tool(tool("suggested")),
        };
        let stack = Stack::new(who).unwrap().then(oversight).then(executor);
        if self.chance.one_in(2) { stack.then(self.assistant(who)) } else { stack }
    }

    /// Any order of turns, to all, to one or in private, with a prompt or without, alone or together; until so many
    /// turns.
    fn policy(&mut self, members: Vec<&'static str>, turns: u64) -> impl Policy + use<> {
        let seed = self.chance.below(1 << 30) as u64;
        move |chat: &Transcript| {
            let mut chance = Chance::of(seed ^ (chat.events().len() as u64) << 20);
            if chat.turns() + chat.all_messages().iter().filter(|line| line.is_private()).count() as u64
                >= turns
            {
                return Step::close(StopReason::Finished, chat);
            }
            let late = chat.late_joiners().chain(chat.left().iter().map(|(who, _)| who)).next();
            if let Some(who) = late.filter(|_| chance.one_in(4)) {
                let sees = if chance.one_in(2) { JoinHistory::All } else { JoinHistory::New };
                return Step::Admit { who: who.clone(), sees };
            }
            let present: Vec<_> = chat.present().cloned().collect();
            let Some(who) = (!present.is_empty()).then(|| present[chance.below(present.len())].clone())
            else {
                return Step::close(StopReason::Finished, chat);
            };
            let other = name(members[chance.below(members.len())]);
            let turn = TurnRequest::to_all(who.clone());
            match chance.below(10) {
                0 => Step::Turn(TurnRequest::private(who, "Between us: what do you think?")),
                1 => Step::Turn(TurnRequest { to: Audience::Only(vec![other]), ..turn }),
                2 => Step::Turn(TurnRequest { prompt: Some("Be quick.".into()), ..turn }),
                3 if other != who && present.contains(&other) => {
                    Step::Parallel(vec![turn, TurnRequest::to_all(other)])
                }
                _ => Step::Turn(turn),
            }
        }
    }

    /// A chat in which tools are suggested, run, or left undone; another may be nested in it.
    fn random_chat(&mut self, chat: &str, depth: usize, continues: Option<&str>) -> Chat {
        let [a, b, r, _, within, ..] = self.names;
        let mut members = vec![a, b, r];
        let (ann, bob, run) = (self.assistant(a), self.assistant(b), self.runner(r));
        let begins = match self.chance.below(if self.shows { 5 } else { 3 }) {
            3 => Carryover::parts(media::with_text("What is this?", &mut self.chance)),
            4 => Carryover::parts(media::with_text("I saw this.", &mut self.chance)).author(name(a)),
            0 => Carryover::task(),
            1 => Carryover::task().author(name(a)),
            _ => Carryover::message("And now?"),
        };
        let builder = begins.apply_to(Chat::builder(chat)).participant(ann).participant(bob).participant(run);
        let builder =
            if self.chance.one_in(2) { builder.late_joiner(self.assistant("Late")) } else { builder };
        let builder = if depth > 0 && self.chance.one_in(3) {
            members.push(within);
            builder.participant(self.random_chat(
                within,
                depth - 1,
                self.chance.clone().one_in(2).then_some(within),
            ))
        } else {
            builder
        };
        let builder = if self.shows && self.chance.one_in(2) {
            members.push(PAINTER);
            builder.participant(media::painter(PAINTER, self.chance.below(1 << 30) as u64))
        } else {
            builder
        };
        let builder = match continues {
            Some(before) => builder.continues(name(before)),
            None => builder,
        };
        let turns = 1 + self.chance.below(7) as u64;
        builder.policy(self.policy(members, turns)).build().unwrap()
    }

    fn team(&mut self) -> Chat {
        let [a, .., first, second] = self.names;
        let inner = [first, second];
        let before = |maker: &mut Self| [None, Some(first), Some(second)][maker.chance.below(3)];
        let team = inner.iter().fold(Chat::builder("team"), |team, chat| {
            let before = before(self);
            team.participant(self.random_chat(chat, 1, before))
        });
        let team = team.participant(self.assistant(a));
        team.policy(self.policy(vec![first, second, a], 6)).build().unwrap()
    }
}

/// What was played.
#[derive(Debug, Default)]
struct Played {
    requests: usize,
    suggested: usize,
    ran: usize,
    /// Chats that continue one with an open call.
    continued: usize,
    /// Cleared histories, late joiners, prompts in the role of the system, calls as text.
    cleared: usize,
    joined: usize,
    system: usize,
    worded: usize,
    /// Media in requests to models without vision, and to those with it.
    shown: [media::Seen; 2],
}

/// How many calls in `messages` have no outcome there.
fn undone(events: &[Arc<Event>]) -> usize {
    let open = |event: &Arc<Event>| {
        let Body::Opened(opening) = &event.body else { return false };
        let inherited = &opening.messages[..usize::try_from(opening.inherited).unwrap()];
        let parts = || inherited.iter().flat_map(|message| &message.parts);
        let calls = parts().filter(|part| matches!(part, Part::ToolCall(_))).count();
        calls > parts().filter(|part| matches!(part, Part::ToolResult(_))).count()
    };
    events.iter().filter(|event| open(event)).count()
}

/// A server, the API by which a model is asked there, and the roles in which agents are prompted.
struct Place {
    server: Server,
    api: Api,
    model: &'static str,
    /// Whether agents cannot be told to call tools by JSON or a schema there.
    lacks_formats: bool,
    prompts: Vec<PromptRole>,
    /// Whether models see the pictures in results.
    vision: bool,
}

impl Place {
    async fn start(change: impl Fn(Behavior) -> Behavior) -> Self {
        let server = Server::start(change(Behavior::from(Playbook::new(reply)).forgetful())).await;
        Self {
            server,
            api: Api::ChatCompletions,
            model: "any",
            lacks_formats: false,
            prompts: vec![PromptRole::User],
            vision: false,
        }
    }

    /// With models that see pictures.
    fn sees(self) -> Self {
        Self { vision: true, ..self }
    }

    /// With prompts in the role of the system, too.
    fn system(self) -> Self {
        Self { prompts: vec![PromptRole::User, PromptRole::System], ..self }
    }

    async fn text_only() -> Self {
        Self { lacks_formats: true, ..Self::start(Behavior::text_only).await }
    }

    fn ollama(self) -> Self {
        Self { api: Api::Ollama, ..self }
    }

    /// A model that is asked by the API of its provider.
    async fn native(api: Api, model: &'static str) -> Self {
        // Anthropic and Bedrock enforce only schemas of closed objects, and have no other format.
        let lacks_formats = matches!(api, Api::Messages | Api::Converse);
        Self { api, model, lacks_formats, ..Self::start(|usual| usual).await.system() }
    }

    /// Every dialect: strict templates, without a system role or words after results, one that knows only text, and a
    /// server that takes roles in any order; the same in Ollama's own API; and the APIs of providers.
    async fn all() -> Vec<Self> {
        vec![
            Self::start(|usual| usual).await,
            Self::start(Behavior::plain_template).await.system(),
            Self::start(Behavior::no_user_after_tool).await,
            Self::start(|usual| usual.no_user_after_tool().plain_template()).await.system(),
            Self::start(|usual| usual.history(History::Loose)).await.system(),
            Self::text_only().await,
            Self::start(|usual| usual).await.ollama(),
            Self::start(Behavior::plain_template).await.system().ollama(),
            Self::text_only().await.ollama(),
            Self::start(|usual| usual.history(History::Loose)).await.system().ollama(),
            Self::native(Api::Messages, "claude-sonnet-5").await,
            Self::native(Api::Messages, "claude-sonnet-4-5").await,
            Self::native(Api::Responses, "gpt-5").await,
            Self::native(Api::Gemini, "gemini-3-pro-preview").await,
            Self::native(Api::Gemini, "gemini-2.5-flash").await,
            Self::native(Api::Converse, "anthropic.claude-sonnet-4-5-20250929-v1:0").await,
            Self::native(Api::Converse, "amazon.nova-pro-v1:0").await,
            Self::start(|usual| usual).await.sees(),
            Self::start(Behavior::plain_template).await.system().sees(),
            Self::start(Behavior::no_user_after_tool).await.sees(),
            Self::start(|usual| usual).await.ollama().sees(),
            Self::native(Api::Messages, "claude-sonnet-5").await.sees(),
            Self::native(Api::Responses, "gpt-5").await.sees(),
            Self::native(Api::Gemini, "gemini-3-pro-preview").await.sees(),
            Self::native(Api::Converse, "anthropic.claude-sonnet-4-5-20250929-v1:0").await.sees(),
        ]
    }

    fn model(&self, stream: bool) -> EndpointModel {
        let url = match self.api {
            Api::ChatCompletions | Api::Responses => self.server.base_url(),
            _ => self.server.root_url(),
        };
        let provider = match self.api {
            Api::Messages => "anthropic",
            Api::Responses => "openai",
            Api::Gemini => "gemini",
            Api::Converse => "bedrock",
            _ => "compatible",
        };
        let usual = Config::of(self.api, &url);
        let capabilities = match self.vision {
            true => usual.capabilities.with(Capability::Vision),
            false => usual.capabilities.without(Capability::Vision),
        };
        let config = Config { provider: provider.into(), stream, capabilities, ..usual };
        Endpoint::new(config).unwrap().model(self.model)
    }
}

async fn play(seed: u64, place: &Place, played: &mut Played) {
    let (server, model) = (&place.server, place.model(seed.is_multiple_of(2)));
    let flaws = Flaws::default();
    let model = AnyModel::new(Checked { model, flaws: Arc::clone(&flaws) });
    let names = NAMES[usize::try_from(seed % 4).unwrap()];
    let (prompts, lacks_formats) = (place.prompts.clone(), place.lacks_formats);
    let (shows, forgets) = (seed % 3 < 2, true);
    let mut maker = Maker { chance: Chance::of(seed), model, names, prompts, lacks_formats, shows, forgets };
    let team = maker.team();
    let mut log = log().await;
    let attached = if shows { media::some(&mut maker.chance) } else { Vec::new() };
    let mut status = team.run_with(&mut log, "Find out.", attached).await.map(|run| run.status);
    for _ in 0..60 {
        let Ok(Status::Waiting(questions)) = &status else { break };
        let (at, question) = &questions[0];
        let clears = format!("clear history {} 2, please.", names[0]);
        let answers = ["", "", "I would say so.", "exit", "clear history", &*clears];
        let answer = answers[maker.chance.below(answers.len())];
        log.answer(at, &question.who, answer).await.unwrap();
        status = team.resume(&mut log).await.map(|run| run.status);
    }
    let events = log.events().await;
    let (flaws, seen) = std::mem::take(&mut *flaws.lock().unwrap());
    assert_eq!(flaws, [""; 0], "seed {seed}\n{}", polylogue_test::print::transcript(&events));
    played.shown[usize::from(place.vision)].add_all(seen);
    assert_eq!(server.violations(), [""; 0], "seed {seed}");
    assert!(
        matches!(status, Ok(Status::Closed { .. })),
        "seed {seed}: {status:?}\n{}",
        polylogue_test::print::transcript(&events)
    );
    for event in &events {
        let Body::Message(message) = &event.body else { continue };
        played.suggested += message.parts.iter().filter(|part| matches!(part, Part::ToolCall(_))).count();
        played.ran += message.parts.iter().filter(|part| matches!(part, Part::ToolResult(_))).count();
    }
    played.requests += events.iter().filter(|event| matches!(event.body, Body::ModelReplied(_))).count();
    played.continued += undone(&events);
    let count = |is: fn(&Body) -> bool| events.iter().filter(|event| is(&event.body)).count();
    played.cleared += count(|body| matches!(body, Body::Cleared { .. }));
    played.joined += count(|body| matches!(body, Body::Joined { .. }));
    let prompts = count(|body| matches!(body, Body::Prompted { .. }));
    played.system += if place.prompts.len() > 1 { prompts } else { 0 };
    played.worded +=
        count(|body| matches!(body, Body::ToolCalled { call, .. } if call.id.starts_with("text-")));
}

fn set(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).map_or(usual, |text| text.parse().unwrap())
}

#[tokio::test]
async fn no_request_of_a_random_team_is_refused_or_parts_a_call_from_its_result() {
    let (teams, first) = (set("POLYLOGUE_TEAMS", 400), set("POLYLOGUE_SEED", 1));
    let places = Place::all().await;
    let mut played = Played::default();
    for seed in first..first + teams {
        let place = usize::try_from(seed / 4).unwrap() % places.len();
        play(seed, &places[place], &mut played).await;
    }
    println!("{teams} teams from seed {first}: {played:?}");
    if teams >= 100 {
        assert!(played.suggested > 100 && played.ran > 50 && played.continued > 10, "{played:?}");
        let Played { cleared, joined, system, worded, .. } = played;
        assert!(cleared > 20 && joined > 20 && system > 20 && worded > 20, "{played:?}");
        for media::Seen { others, own, results } in played.shown {
            assert!(others > 100 && own > 20 && results > 20, "{played:?}");
        }
    }
}
