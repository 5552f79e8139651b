//! Teams of several files, what a caller puts in place, and the resulting team.

use std::fs;
use std::path::Path;
use std::time::Duration;

use expect_test::{Expect, expect};
use polylogue::agents::tooling::{ToolCalling, ToolHistory};
use polylogue::stop::LoopDetector;
use polylogue::tasks::EndMode;
use polylogue_config::{At, Switch};
use polylogue_core::{Name, Price, ShowNames, TaskFrom, Window};
use polylogue_models::{Day, Env, ModelLimits, Models};
use polylogue_team::{
    Agent, AgentMemory, ApprovalRule, CapabilityKeys, CodeApproval, EngineName, Grant, Language,
    LargeResultsKey, Loaded, Media, ModelKeys, OnlyText, Overrides, Pattern, Reasoning, Summary, Team,
    Template, ToolEntry, ToolLimits, Web, WebSearch, load, parse,
};
use polylogue_tools::http::{Declaration, Header, HttpMethod, Secret};

use crate::common;

fn right(text: &str) -> Team {
    let Loaded { team, warnings, .. } =
        parse(text, "t.yaml", &Overrides::default()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(warnings.to_string(), "");
    team
}

/// Writes files into a folder and loads the first.
fn load_all(files: &[(&str, &str)], overrides: &Overrides) -> Result<Loaded, String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let first = folder.path().join(files[0].0);
    let prefix = format!("{}/", folder.path().display());
    load(first, overrides).map_err(|errors| errors.to_string().replace(&prefix, ""))
}

fn check_files(files: &[(&str, &str)], expected: &Expect) {
    expected.assert_eq(&load_all(files, &Overrides::default()).unwrap_err());
}

fn model(agent: &Agent) -> &ModelKeys {
    agent.model().unwrap()
}

fn check_programs(team: &Team, cy: &Agent, dee: &Agent) {
    let sandbox = &team.sandbox;
    assert_eq!(*sandbox.network, ["short.example.org", "*.example.org:8080"]);
    assert_eq!((sandbox.memory_mib, sandbox.disk_mib, sandbox.processes), (Some(512), Some(64), Some(16)));
    assert_eq!(sandbox.timeout.map(Duration::from), Some(Duration::from_secs(30)));
    let wants = [Grant::Network, Grant::Readable, Grant::Mcp, Grant::Env];
    assert_eq!(team.wants().into_keys().collect::<Vec<_>>(), wants);
    assert_eq!(team.commands[0].description, "Counts words of a short file");
    assert!(team.commands[0].arguments["file"].may_be_option);
    let (coder, other) = (cy.code_execution.on().unwrap(), dee.code_execution.on().unwrap());
    assert_eq!((&*coder.languages, coder.last), (&[Language::Python][..], Some(2)));
    assert_eq!(coder.approval, Some(CodeApproval::When("code.contains('short')".into())));
    assert_eq!(
        (other.languages.len(), &other.approval),
        (3, &Some(CodeApproval::Matches("rm short".into())))
    );
    let before: Vec<_> = team.agents.iter().filter_map(|agent| Some(agent.approval.clone()?.value)).collect();
    assert_eq!(
        before,
        [
            ApprovalRule::Tools(vec!["python".to_owned().into(), "write_*".to_owned().into()]),
            ApprovalRule::When("tool == 'short' || args.secret_number > 3".into()),
            ApprovalRule::Matches("a short one".into())
        ]
    );
    let asked = &model(cy).agent_tools[0];
    assert_eq!(
        (asked.who.as_str(), asked.tool.as_ref().map(|tool| tool.as_str()), asked.max_calls),
        ("Dee", Some("ask_dee"), 3)
    );
    assert_eq!(asked.description.as_deref(), Some("A short one"));
}

fn check_reasoning(team: &Team) {
    let [eve, _, gus, hal, ida, jim, kay, leo, max] = &team.agents[5..] else { panic!() };
    assert_eq!((&*model(eve).examples[0].user, &*model(eve).examples[0].assistant), ("a short one", "b"));
    let name = |name: &Option<At<Name>>| name.as_ref().map(ToString::to_string).unwrap_or_default();
    let reasoning = |agent: &Agent| model(agent).reasoning.clone().unwrap().value;
    let Reasoning::React(react) = reasoning(gus) else { panic!() };
    assert_eq!((react.rounds, react.summarize, react.as_text), (2, true, true));
    let Reasoning::PlanAndSolve(plan) = reasoning(hal) else { panic!() };
    assert_eq!((name(&plan.planner), name(&plan.solver), plan.max_steps), ("Eve".into(), "Flo".into(), 4));
    let Reasoning::Rewoo(rewoo) = reasoning(ida) else { panic!() };
    assert_eq!((name(&rewoo.planner), name(&rewoo.solver), rewoo.max_steps), ("Eve".into(), "Flo".into(), 6));
    let Reasoning::Refine(refine) = reasoning(jim) else { panic!() };
    assert_eq!(
        (name(&refine.critic), refine.rounds, refine.until.as_deref()),
        ("Eve".into(), 1, Some("short"))
    );
    let Reasoning::Best(best) = reasoning(kay) else { panic!() };
    assert_eq!((best.critic.as_str(), best.options, best.retries), ("Eve", 4, 0));
    let [block, code] = &model(leo).output_blocks[..] else { panic!() };
    assert_eq!(
        (block.kind.as_str(), &*block.begin, &*block.end, block.json, block.restore),
        ("short", "<", ">", true, true)
    );
    assert_eq!((block.instructions.as_deref(), code.json), (Some("short!"), false));
    let runs = max.runs_output_blocks.as_ref().unwrap();
    let tools: Vec<&str> = runs.tools.iter().map(|run| run.tool.as_str()).collect();
    assert_eq!((runs.code["code"].as_str(), &tools[..]), ("python", &["calculator"][..]));
}

fn check_society(pattern: &Pattern) {
    let Pattern::RolePlay(society) = pattern else { panic!() };
    assert_eq!((society.user.who.as_str(), society.user.role.as_deref()), ("Ann", Some("short trader")));
    assert_eq!(society.user.rules.as_ref().unwrap().fill("T"), "Instruct. T");
    assert_eq!((society.assistant.who.as_str(), &society.assistant.rules), ("Bob", &None));
    let specifier = society.specifier.as_ref().unwrap();
    assert_eq!((specifier.who.as_str(), specifier.words), ("Eve", 40));
    assert_eq!(society.planner.as_ref().map(|name| name.as_str()), Some("Flo"));
    let critic = society.critic.as_ref().unwrap();
    assert_eq!((critic.who.as_str(), critic.options, critic.retries), ("Me", 2, 1));
    assert_eq!(
        (critic.criteria.as_deref(), society.language.as_deref()),
        (Some("shortness"), Some("French"))
    );
    assert_eq!((society.done.text.as_str(), society.done.anywhere), ("<short>", true));
    assert_eq!((society.max_rounds, society.max_messages), (5, Some(9)));
    assert_eq!((society.max_uninstructed, society.max_flips, society.model_temperatures), (0, Some(2), true));
}

fn check_servers(team: &Team, ann: &Agent, bob: &Agent) {
    let (clock, far) = (&team.mcp.servers()["clock"], &team.mcp.servers()["far"]);
    assert_eq!((clock.in_words(), clock.cwd.as_deref()), ("python3 short.py".into(), Some("/srv")));
    assert_eq!((clock.env["CLOCK_KEY"].as_str(), clock.variables().len()), ("${CLOCK_KEY}", 1));
    assert_eq!((far.in_words(), far.cwd.as_ref()), ("https://short.example/mcp".into(), None));
    assert_eq!(far.variables().into_iter().collect::<Vec<_>>(), ["FAR_KEY"]);
    let given = |agent: &Agent| {
        model(agent).tools.iter().find_map(|tool| match &tool.value {
            ToolEntry::Mcp(tools) => {
                Some((tools.mcp.value.clone(), tools.include.value.clone(), tools.exclude.value.clone()))
            }
            ToolEntry::Own(_) => None,
        })
    };
    assert_eq!(given(ann).unwrap(), ("clock".into(), vec!["short".to_owned()], vec![]));
    assert_eq!(given(bob).unwrap(), ("far".into(), vec![], vec!["delete".to_owned()]));
    let servers = ["clock: python3 short.py (in /srv)", "far: https://short.example/mcp"];
    assert_eq!(team.wants()[&Grant::Mcp], servers);
}

/// Those of the file are not asked then.
#[test]
fn parameters_are_checked_for_the_model_of_the_caller_if_there_is_one() {
    const TEXT: &str = "
name: t
model: openai:gpt-5
agents: [{name: Ann, parameters: {temperature: 0.5}}]
chat: {participants: [Ann], pattern: sequential}
";
    let warned = |model: Option<&str>| {
        let overrides = Overrides { model: model.map(str::to_owned), ..Overrides::default() };
        let team = parse(TEXT, "t.yaml", &overrides).unwrap_or_else(|errors| panic!("{errors}")).team;
        team.check_parameters(model, &Models::new(Env::default()), &|_| None).to_string()
    };
    assert!(warned(None).contains("`openai:gpt-5`, the model of `Ann`, does not take `temperature`"));
    assert_eq!(warned(Some("openai:gpt-4o")), "");
    let both = warned(Some("openai:gpt-4o, openai:gpt-5-mini"));
    assert!(both.contains("`openai:gpt-5-mini`, the model of `Ann`"), "{both}");
    assert_eq!(both.matches("warning[").count(), 1, "{both}");
}

#[test]
fn every_key_of_the_format_arrives() {
    let loaded = parse(include_str!("full.yaml"), "t.yaml", &Overrides::default());
    let Loaded { team, warnings, .. } = loaded.unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(warnings.to_string(), "");
    // No model takes all parameters.
    let warnings = team.check_parameters(None, &Models::new(Env::default()), &|_| None).to_string();
    let is_expected = warnings.contains("the model of `Ann`, does not take `top_k` and `prompt_cache`");
    assert!(is_expected && warnings.matches("warning[").count() == 1, "{warnings}");
    assert_eq!(team.task.as_deref(), Some("A short task with {braces} and {{\"json\": 1}}"));
    let [ann, bob, me, cy, dee, ..] = &team.agents[..] else { panic!() };
    let keys = model(ann);
    assert_eq!(keys.system.fill("T"), "short 2024 1.10 true: T!");
    assert_eq!(keys.parameters.max_tokens, Some(800));
    assert_eq!(keys.parameters.extra["a"], serde_json::json!(["short", "{{not}}"]));
    assert_eq!((keys.view.names, keys.view.window), (ShowNames::Always, Some(Window::Messages(40))));
    assert_eq!(keys.view.prefix[&Name::new("Me").unwrap()], "A short draft:");
    assert!(me.is_human());
    assert_eq!(team.memory.scope.as_ref().map(|scope| scope.as_str()), Some("user short"));
    assert_eq!(team.memory.embed, Some("ollama:nomic-embed-text".to_owned().into()));
    let memory = AgentMemory { tools: false, auto_recall: 3, private: true };
    assert_eq!(*keys.memory, Switch::On(memory));
    check_programs(&team, cy, dee);
    check_web(&team.web);
    check_calls(&team.calls[0]);
    check_reasoning(&team);
    check_society(&team.chats[3].chat.pattern);
    assert_eq!(team.prices["local:any"], Price::FREE.into());
    let mine = Price { input: 1.0, cached: Some(0.5), audio: Some(8.0), output: 2.0, ..Price::FREE };
    let today = Day::today();
    assert_eq!(team.prices["openai:mine"].on(today), Some(&mine));
    let limits = ModelLimits { window: Some(32_768), max_output: Some(8_192) };
    assert_eq!(team.prices["openai:mine"].limits(today), limits);
    let input = |on: &str| Some(team.prices["openai:dated"].on(on.parse().unwrap())?.input);
    assert_eq!(["2026-12-31", "2027-01-01", "2028-01-01"].map(input), [Some(3.0), Some(2.0), None]);

    assert_eq!((&team.chat.pattern, *team.chat.loop_detection), (&Pattern::Sequential, LoopDetector::OFF));
    let [task, private] = &team.chat.opening.0[..] else { panic!() };
    assert_eq!((task.from.as_str(), task.text.fill("T"), task.to.len()), ("user", "T".into(), 0));
    assert_eq!((private.from.as_str(), private.to[0].as_str()), ("Ann", "work"));
    let url = |media: &Media| media.part().unwrap().url;
    assert_eq!(&*url(&private.media[0]), "https://e.example/short.png");
    let stop = team.chat.stop.as_ref().unwrap();
    assert!(stop.says.as_ref().unwrap().whole);
    assert_eq!(stop.all[1].any[0].max_turns, Some(3));
    let Summary::Reflect(reflect) = &team.chat.summary else { panic!() };
    assert_eq!(reflect.prompt.fill("T"), "Of T");

    let work = &team.chats[0];
    assert_eq!(
        (work.task_from.value.clone(), &work.chat.pattern, *work.chat.max_turns),
        (TaskFrom::All, &Pattern::RoundRobin, 100)
    );
    assert!(work.chat.opening.0.is_empty());
    let loops = &work.chat.loop_detection;
    assert_eq!((loops.repetition, loops.farewells), (5, 3));

    check_servers(&team, ann, bob);
    assert_eq!(
        ann.tool_limits,
        ToolLimits {
            timeout: Some("90 s".parse().unwrap()),
            max_output_bytes: 4000,
            large_results: LargeResultsKey::Store
        }
    );
    let keys = model(bob);
    let tools: Vec<&ToolEntry> = keys.tools.iter().map(|tool| &tool.value).collect();
    let [ToolEntry::Own(chess), _, ToolEntry::Own(taught)] = &tools[..] else { panic!() };
    assert_eq!((chess.tool.as_str(), *chess.mandatory, *chess.max_errors), ("chess", false, 5));
    assert_eq!((taught.tool.as_str(), *taught.mandatory, *taught.max_errors), ("high_low", true, 0));
    assert_eq!((*taught.max_call_errors, &*taught.examples[0].user), (1, "a short one"));
    assert_eq!(
        (*keys.tool_calling, *keys.tool_history, keys.output_retries.as_deref()),
        (ToolCalling::Json, ToolHistory::Full, Some(&0))
    );
    assert!(keys.output_schema.as_ref().unwrap().0["properties"]["{{not}}"].is_object());
    let Pattern::GroupSolve(solve) = &team.chats[1].chat.pattern else { panic!() };
    assert_eq!((*solve.end, solve.max_iterations, *solve.reconcile), (EndMode::OneLastChat, 7, true));
    assert_eq!(solve.shift.says.as_deref(), Some("a short word"));
    assert_eq!(solve.tasks[0].prompt.fill("T"), "On T");
    assert!(*solve.tasks[0].self_terminating && *solve.tasks[0].keeps_reflections);
    assert!(*solve.before[0].forget);
    assert_eq!(&*url(&solve.before[0].media[0]), "https://e.example/short.png");
    assert_eq!(*solve.check.words.as_ref().unwrap().complete, "e");
    assert_eq!(solve.check.temperature, None);
    assert!(matches!(&team.chats[2].chat.pattern, Pattern::Tasks(tasks) if tasks.len() == 1));
    assert_eq!(team.endpoints["gpu"].capabilities, Some(CapabilityKeys::Text(OnlyText::Text)));

    assert_eq!(team.limits.depth, Some(8));
    assert_eq!(team.script.steps()[0].say.as_deref(), Some("short {{unknown}} {{task}}"));
    assert_eq!(team.script_pace, Some(30.0));
    let answering_models = team.answering_models();
    assert_eq!(
        answering_models.iter().map(Name::as_str).collect::<Vec<_>>(),
        ["Ann", "Bob", "Cy", "Dee", "Eve", "Flo", "Gus", "Hal", "Ida", "Jim", "Kay", "Leo", "all_summary"]
    );

    let stored = serde_json::to_string(&team).unwrap();
    assert_eq!(serde_json::from_str::<Team>(&stored).unwrap(), team);
}

fn check_calls(call: &Declaration) {
    assert_eq!((call.description.as_str(), call.method), ("Finds a short ticket", HttpMethod::Post));
    assert_eq!((call.url.as_str(), &*call.query["limit"]), ("https://short.example/tickets/{id}", "{count}"));
    assert_eq!(call.headers["X-Team"], Header::Text("short".into()));
    let key = Secret { env: "TICKETS_KEY".into(), before: "Bearer ".into() };
    assert_eq!(call.headers["Authorization"], Header::Secret(key));
    assert_eq!(call.json, Some(serde_json::json!({"note": "short {note}", "deep": [1, {"a": true}]})));
    assert_eq!((call.arguments.len(), call.time_s, call.repeatable), (3, Some(5), Some(true)));
}

fn check_web(web: &Web) {
    let Some(WebSearch::Own(search)) = web.search.as_deref() else { panic!("{web:?}") };
    assert_eq!(
        (search.engine, search.url.as_deref()),
        (EngineName::Brave, Some("https://short.example/search"))
    );
    assert_eq!(search.key.as_ref().map(|key| key.as_str()), Some("HOUSE_SEARCH_KEY"));
    let Switch::On(fetch) = &*web.fetch else { panic!("{web:?}") };
    assert_eq!(
        (&*fetch.hosts[0], &*fetch.hosts[1], &*fetch.private[0]),
        ("short.example", "*.example.org:8080", "10.1.0.0/16")
    );
    assert!(fetch.ignore_robots && Duration::from(fetch.timeout.unwrap()) == Duration::from_secs(5));
}

#[test]
fn a_team_file_can_be_json() {
    let team = right(
        r#"{"name": "t", "agents": [{"name": "A", "system": "a\n\u00fc"}], "chat": {"participants": ["A"], "stop": {"says": "x"}}}"#,
    );
    assert_eq!(model(&team.agents[0]).system.value, Template::new("a\nü"));
}

#[test]
fn anchors_and_merge_keys_share_what_is_the_same() {
    let team = right(
        "
name: t
agents:
  - &base {name: A, parameters: &cool {temperature: 0.2}, system: s}
  - {<<: *base, name: B, parameters: {<<: [*cool], top_p: 0.5}}
chat: {participants: [A, B], stop: {max_turns: 1}}
",
    );
    let (name, b) = (team.agents[1].name.as_str(), model(&team.agents[1]));
    assert_eq!((name, b.system.fill("")), ("B", "s".into()));
    assert_eq!((b.parameters.temperature, b.parameters.top_p), (Some(0.2), Some(0.5)));
}

const OUTER: &str = "
name: outer
model: openai:a
vars: {x: 1}
agents: [{name: A, model: openai:b, system: '{{x}}'}]
chat: {participants: [A, editors], stop: {max_turns: 3}}
teams: [{name: editors, file: inner/editors.yaml}]
script: [{A: one}, {E: two}, {editors_summary: three}]
";
const INNER: &str = "
name: inner
agents: [{name: E, model: openai:c}]
chat: {participants: [E], stop: {max_turns: 1}, summary: {reflect: {model: openai:d}}}
";

#[test]
fn a_team_within_a_team_is_read_from_its_file_and_stored_with_it() {
    let loaded =
        load_all(&[("outer.yaml", OUTER), ("inner/editors.yaml", INNER)], &Overrides::default()).unwrap();
    let editors = &loaded.team.teams[0];
    assert_eq!((editors.name.as_str(), editors.team.name.as_str()), ("editors", "inner"));
    let stored = serde_json::to_string(&loaded.team).unwrap();
    assert_eq!(serde_json::from_str::<Team>(&stored).unwrap(), loaded.team);
}

#[test]
fn a_callers_model_is_everybodys_and_a_callers_task_is_literal() {
    let overrides = Overrides {
        task: Some("{{x}} {{task}} {".into()),
        model: Some("ollama:m".into()),
        vars: [("x".to_owned(), "{{task}} {{x}}".to_owned())].into(),
        ..Overrides::default()
    };
    let team = load_all(&[("outer.yaml", OUTER), ("inner/editors.yaml", INNER)], &overrides).unwrap().team;
    assert_eq!(team.task.as_deref(), Some("{{x}} {{task}} {"));
    let models = |team: &Team| {
        (
            team.model.clone().map(|model| model.value),
            model(&team.agents[0]).model.clone().map(|model| model.value),
        )
    };
    assert_eq!(models(&team), (Some("ollama:m".into()), None));
    let inner = &team.teams[0].team;
    assert_eq!(models(inner), (Some("ollama:m".into()), None));
    assert!(matches!(&inner.chat.summary, Summary::Reflect(reflect) if reflect.model.is_none()));

    // What a variable holds is not looked at again, neither now nor when the team was stored and the task is known.
    assert_eq!(team.agents[0].model().unwrap().system.fill("T"), "{{task}} {{x}}");
    let stored = serde_json::to_string(&team).unwrap();
    assert_eq!(
        serde_json::from_str::<Team>(&stored).unwrap().agents[0].model().unwrap().system.fill("T"),
        "{{task}} {{x}}"
    );
}

#[test]
fn mistakes_in_all_files_are_found_at_once() {
    check_files(
        &[
            (
                "outer.yaml",
                &OUTER
                    .replace("A: one", "a: one")
                    .replace("teams: [", "teams: [{name: gone, file: gone.yaml}, "),
            ),
            ("inner/editors.yaml", &INNER.replace("agents", "agent")),
        ],
        &expect![[r#"
            error: unknown key `agent`
             --> inner/editors.yaml:3:1
              |
            3 | agent: [{name: E, model: openai:c}]
              | ^^^^^
            hint: did you mean `agents`?

            error: there is no agent, chat or team `E`
             --> inner/editors.yaml:4:23
              |
            4 | chat: {participants: [E], stop: {max_turns: 1}, summary: {reflect: {model: openai:d}}}
              |                       ^
            hint: define it in `agents`

            error: the team file `gone.yaml` cannot be read: the file does not exist
             --> outer.yaml:7:28
              |
            7 | teams: [{name: gone, file: gone.yaml}, {name: editors, file: inner/editors.yaml}]
              |                            ^^^^^^^^^
        "#]],
    );
}

#[test]
fn a_cycle_of_files_is_named() {
    let team = |name: &str, file: &str| {
        format!(
            "name: {name}\nagents: [{{name: A}}]\nchat: {{participants: [A, next], stop: {{max_turns: 1}}}}\nteams: [{{name: next, file: {file}}}]\n"
        )
    };
    let files = [
        ("one.yaml", &*team("one", "sub/two.yaml")),
        ("sub/two.yaml", &team("two", "three.yaml")),
        ("sub/three.yaml", &team("three", "../sub/../one.yaml")),
    ];
    check_files(
        &files,
        &expect![[r#"
            error: this team contains itself: one.yaml > sub/two.yaml > sub/three.yaml > one.yaml
             --> sub/three.yaml:4:28
              |
            4 | teams: [{name: next, file: ../sub/../one.yaml}]
              |                            ^^^^^^^^^^^^^^^^^^
        "#]],
    );
    check_files(
        &[("self.yaml", &team("self", "./self.yaml"))],
        &expect![[r#"
            error: this team contains itself: self.yaml > self.yaml
             --> self.yaml:4:28
              |
            4 | teams: [{name: next, file: ./self.yaml}]
              |                            ^^^^^^^^^^^
        "#]],
    );
}

#[test]
fn a_chain_and_a_crowd_of_files_are_bounded() {
    let team = |files: &[String]| {
        let named: Vec<String> =
            files.iter().enumerate().map(|(n, file)| format!("{{name: n{n}, file: {file}}}")).collect();
        let names: Vec<String> = (0..files.len()).map(|n| format!("n{n}")).collect();
        format!(
            "name: t\nagents: [{{name: A}}]\nchat: {{participants: [A, {}], stop: {{max_turns: 1}}}}\nteams: [{}]\n",
            names.join(", "),
            named.join(", ")
        )
    };
    let leaf = "name: t\nagents: [{name: A}]\nchat: {participants: [A], stop: {max_turns: 1}}\n".to_owned();
    let chain: Vec<(String, String)> =
        (0..12).map(|n| (format!("{n}.yaml"), team(&[format!("{}.yaml", n + 1)]))).collect();
    let chain: Vec<(&str, &str)> = chain.iter().map(|(name, text)| (&**name, &**text)).collect();
    let deep = "nested more than 8 deep here: 0.yaml > 1.yaml > 2.yaml > 3.yaml > 4.yaml > 5.yaml > 6.yaml > 7.yaml\n";
    let said = load_all(&chain, &Overrides::default()).unwrap_err();
    assert!(said.contains(deep), "{said}");

    let crowd = team(&vec!["leaf.yaml".to_owned(); 70]);
    let said = load_all(&[("t.yaml", &crowd), ("leaf.yaml", &leaf)], &Overrides::default()).unwrap_err();
    assert!(said.contains("a team is made of at most 64 files"), "{said}");
}

#[test]
fn a_text_alone_names_no_files() {
    let errors = common::wrong(OUTER);
    assert!(errors.contains("cannot be read: files are not read here"), "{errors}");
}

#[test]
fn the_teams_that_ship_are_right() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../teams");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let loaded = load(&path, &Overrides::default()).unwrap_or_else(|errors| panic!("{errors}"));
            assert_eq!(loaded.warnings.to_string(), "");
            let stored = serde_json::to_string(&loaded.team).unwrap();
            assert_eq!(serde_json::from_str::<Team>(&stored).unwrap(), loaded.team);
            count += 1;
        }
    }
    assert!(count >= 3);
}
