//! Teams as tools of other programs: by the client in Rust that rmcp has, and by the official one in Python.

use std::process::Stdio;
use std::sync::{Arc, Mutex};

use polylogue_test::server::{Answer, Behavior, Playbook};
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ElicitRequestParams,
    ElicitResult, ElicitationAction, ErrorData, Implementation, ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext, RunningService};
use rmcp::{ClientHandler, RoleClient, serve_client};
use serde_json::{Map, Value, json};

use crate::home::{Home, KEY, PROGRAM, of_type, serve, shipped, until};

/// A host, and what it received and was asked.
#[derive(Clone, Default)]
struct Host {
    /// What its user answers, one after the other; nothing when it cannot ask.
    answers: Option<Vec<&'static str>>,
    received: Arc<Mutex<Vec<String>>>,
    asked: Arc<Mutex<Vec<String>>>,
    /// What it was asked, as data.
    questions: Arc<Mutex<Vec<Value>>>,
}

impl ClientHandler for Host {
    fn get_info(&self) -> ClientConfig {
        let can = ClientCapabilities::builder();
        let can = if self.answers.is_some() { can.enable_elicitation().build() } else { can.build() };
        ClientConfig::new(can, Implementation::new("host", "1"))
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_progress(&self, said: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.received.lock().unwrap().push(said.message.unwrap_or_default());
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let question = context.meta.get("polylogue/question").cloned();
        self.questions.lock().unwrap().push(question.unwrap_or_default());
        let ElicitRequestParams::FormElicitationParams { message, .. } = request else { panic!() };
        let mut asked = self.asked.lock().unwrap();
        let answer = self.answers.as_ref().and_then(|answers| answers.get(asked.len()));
        asked.push(message);
        Ok(match answer {
            Some(answer) => {
                ElicitResult::new(ElicitationAction::Accept).with_content(json!({"answer": answer}))
            }
            None => ElicitResult::new(ElicitationAction::Decline),
        })
    }
}

type Service = RunningService<RoleClient, Host>;

/// The program, which serves `args`, and a host at its other end.
async fn connect(home: &Home, host: &Host, args: &[&str]) -> (Service, tokio::process::Child) {
    connect_by(home, host, &[&["mcp", "--offline"], args].concat()).await
}

/// The same by the command line `args`.
async fn connect_by(home: &Home, host: &Host, args: &[&str]) -> (Service, tokio::process::Child) {
    let mut command = tokio::process::Command::from(home.command(PROGRAM, args));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let pipes = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    (serve_client(host.clone(), pipes).await.unwrap(), child)
}

async fn call(service: &Service, tool: &str, args: Value) -> CallToolResult {
    let Value::Object(args) = args else { panic!() };
    let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(args);
    service.call_tool(params).await.unwrap()
}

fn texts(result: &CallToolResult) -> Vec<String> {
    result.content.iter().map(|block| block.as_text().unwrap().text.clone()).collect()
}

#[tokio::test]
async fn a_team_is_a_tool_whose_arguments_are_its_task_and_its_variables() {
    let home = Home::new();
    let host = Host::default();
    let teams = [shipped("writer-critic"), shipped("trading-bot")];
    let (service, mut child) = connect(&home, &host, &[&teams[0], &teams[1]]).await;
    let tools = service.list_all_tools().await.unwrap();
    assert_eq!(tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["writer-critic", "trading-bot"]);
    let properties = tools[1].input_schema["properties"].as_object().unwrap();
    assert!(properties.contains_key("task") && properties.contains_key("user_role"), "{properties:?}");
    let result = call(&service, "writer-critic", json!({})).await;
    assert_eq!(result.is_error, Some(false));
    let (texts, value) = (texts(&result), result.structured_content.unwrap());
    assert_eq!(value["result"], Value::from(texts[0].as_str()));
    assert!(texts[0].contains("APPROVED"), "{texts:?}");
    let id = home.id();
    assert!(texts[1].contains(&format!("`polylogue show {id}`")) && value["conversation"] == id, "{texts:?}");
    assert!(value["ended"].as_str().unwrap().starts_with("done"), "{value}");
    // It is stored like any other, and its progress was reported.
    let events = home.events();
    let said = of_type(&events, "message").len();
    let received = host.received.lock().unwrap().clone();
    assert!(said > 2 && received.len() == said && received[0].starts_with("Writer: "), "{received:?}");
    service.cancel().await.unwrap();
    assert!(child.wait().await.unwrap().success(), "it ends with its host");
}

#[tokio::test]
async fn wrong_arguments_are_results_that_failed_and_begin_nothing() {
    let home = Home::new();
    let (service, _child) = connect(&home, &Host::default(), &[&shipped("trading-bot")]).await;
    for (args, why) in [
        (json!({"user_rôle": "x"}), "not a variable of this team"),
        (json!({"user_role": ["x"]}), "`user_role` must be a string"),
        (json!({"task": 7}), "`task` must be a string"),
        (json!({"user_role": true}), "`user_role` must be a string"),
        (json!({"task": "  "}), "there is no `task`"),
    ] {
        let result = call(&service, "trading-bot", args).await;
        assert_eq!(result.is_error, Some(true));
        assert!(texts(&result)[0].contains(why), "{:?}", texts(&result));
    }
    let unknown = service.call_tool(CallToolRequestParams::new("unknown")).await.unwrap_err();
    assert!(unknown.to_string().contains("there is no tool `unknown`"), "{unknown}");
    assert!(home.listed().is_empty());
}

#[tokio::test]
async fn the_result_of_a_call_that_fails_has_the_hint_of_the_error() {
    let server = serve(Behavior::from(Playbook::new(|_, _| Answer::text("Hello"))).key(KEY));
    let home = Home::new().var("OPENAI_API_KEY", "another-key").var("OPENAI_BASE_URL", &server.base_url());
    let team = shipped("writer-critic");
    let (service, _child) = connect_by(&home, &Host::default(), &["mcp", "-m", "openai:test", &team]).await;
    let result = call(&service, "writer-critic", json!({})).await;
    assert_eq!(result.is_error, Some(true));
    let (texts, value) = (texts(&result), result.structured_content.unwrap());
    let has_hint = |text: &str| text.contains("; hint: ") && text.contains("OPENAI_API_KEY");
    assert!(has_hint(&texts[0]) && has_hint(value["ended"].as_str().unwrap()), "{texts:?} {value}");
    assert!(!texts[0].contains("another-key"), "{texts:?}");
}

#[tokio::test]
async fn people_are_asked_by_hosts_that_can() {
    let home = Home::new();
    let answers = vec!["It pushes back.", "It gets stronger.", "About eight meters.", "Its shape."];
    let host = Host { answers: Some(answers), ..Host::default() };
    let (service, _child) = connect(&home, &host, &[&shipped("two-people")]).await;
    let result = call(&service, "two-people", json!({})).await;
    let (texts, asked) = (texts(&result), host.asked.lock().unwrap().clone());
    assert_eq!(result.is_error, Some(false), "{texts:?} {asked:?}");
    assert!(texts[0].contains("its shape pushes aside"), "{texts:?}");
    assert_eq!(asked.len(), 4, "{asked:?}");
    assert!(
        asked[0].starts_with("Student is asked: ") && asked[2].starts_with("Expert is asked: "),
        "{asked:?}"
    );
    let questions = host.questions.lock().unwrap().clone();
    let ids: Vec<u64> = of_type(&home.events(), "input_required")
        .iter()
        .map(|event| event["seq"].as_u64().unwrap())
        .collect();
    for (question, id) in questions.iter().zip(&ids) {
        assert_eq!((&question["question"], &question["kind"]), (&json!(id), &json!("reply")), "{question}");
        assert_eq!(question["choices"][1], json!({"answer": "exit", "effect": "end"}), "{question}");
    }
    assert_eq!((questions.len(), ids.len(), &questions[0]["who"]), (4, 4, &json!("Student")));
}

#[tokio::test]
async fn a_host_is_asked_for_approval_with_the_exact_text_and_an_empty_answer_is_no_approval() {
    let hiding = "*a* `b` \u{202e}\u{200b}";
    let script = json!([{"Ann": {"calls": [{"tool": "calculator", "args": {"expression": hiding}, "id": "c1"}]}}, {"Ann": "Done."}]);
    let team = format!(
        "{{name: sums, task: go, agents: [{{name: Ann, tools: [calculator], approval: always}}], script: {script}, \
         chat: {{participants: [Ann], pattern: sequential}}}}"
    );
    let home = Home::new();
    home.file("sums.yaml", &team);
    let path = home.path("sums.yaml").display().to_string();
    let shown = "```\n{\"expression\":\"*a* `b` ⟨U+202E⟩⟨U+200B⟩\"}\n```\n\n`yes` runs it;";
    let host = Host { answers: Some(vec!["", "no"]), ..Host::default() };
    let (service, _child) = connect(&home, &host, &[&path]).await;
    call(&service, "sums", json!({})).await;
    let asked = host.asked.lock().unwrap().clone();
    assert!(asked.len() == 2 && asked.iter().all(|text| text.contains(shown)), "{asked:?}");
    let host = Host::default();
    let (service, _child) = connect(&home, &host, &[&path]).await;
    let waits = call(&service, "sums", json!({})).await;
    assert!(texts(&waits)[0].contains(shown), "{:?}", texts(&waits));
    let asked = waits.structured_content.unwrap()["questions"].clone();
    let [question] = asked.as_array().unwrap().as_slice() else { panic!("{asked}") };
    assert_eq!((&question["kind"], &question["call"]["tool"]), (&json!("approval"), &json!("calculator")));
    let effects: Vec<_> = question["choices"].as_array().unwrap().iter().map(|one| &one["effect"]).collect();
    assert_eq!(effects, ["approve", "reject", "end"]);
    // Its fields are declared.
    let tools = service.list_all_tools().await.unwrap();
    let declared =
        &tools[0].output_schema.as_ref().unwrap()["properties"]["questions"]["items"]["properties"];
    for name in question.as_object().unwrap().keys() {
        assert!(declared.get(name).is_some(), "`{name}` is not in {declared}");
    }
}

#[test]
fn an_invalid_line_is_answered_and_the_next_request_works() {
    use std::io::{BufRead, BufReader, Write};

    let home = Home::new();
    let mut command = home.command(PROGRAM, &["mcp", "--offline", &shipped("writer-critic")]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let (mut input, mut output) =
        (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()).lines());
    let mut ask = |line: &str| {
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
        serde_json::from_str::<Value>(&output.next().unwrap().unwrap()).unwrap()
    };
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "host", "version": "1"}}});
    let hello = ask(&hello.to_string());
    assert_eq!(hello["result"]["serverInfo"]["name"], "polylogue");
    let ready = "{\"jsonrpc\": \"2.0\", \"method\": \"notifications/initialized\"}\n";
    let deep = "[".repeat(5_000);
    for (line, code) in [
        ("{oops", -32700),
        (&*deep, -32700),
        (&*"x".repeat(20_000_000), -32700),
        ("[]", -32600),
        ("{\"a\": 1}", -32600),
    ] {
        let refused = ask(line);
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&Value::Null, &json!(code)), "{refused}");
        assert!(refused.as_object().unwrap().contains_key("id"));
    }
    assert_eq!(ask("{\"jsonrpc\": \"2.0\", \"id\": 8}")["id"], 8);
    let tools = ask(&format!("{ready}{{\"jsonrpc\": \"2.0\", \"id\": 9, \"method\": \"tools/list\"}}"));
    assert_eq!((&tools["id"], &tools["result"]["tools"][0]["name"]), (&json!(9), &json!("writer-critic")));
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[tokio::test]
async fn a_host_that_cannot_ask_receives_that_the_conversation_waits() {
    for (answers, why) in [(None, "this host cannot ask its user"), (Some(vec![]), "no one wanted to answer")]
    {
        let home = Home::new();
        let host = Host { answers, ..Host::default() };
        let (service, _child) = connect(&home, &host, &[&shipped("two-people")]).await;
        let result = call(&service, "two-people", json!({})).await;
        let (text, id) = (texts(&result).remove(0), home.id());
        assert_eq!(result.is_error, Some(true));
        assert!(text.starts_with(&format!("The conversation `{id}` waits for Student, and {why}")), "{text}");
        let value = result.structured_content.unwrap();
        assert_eq!(
            (&value["questions"][0]["who"], &value["questions"][0]["kind"]),
            (&json!("Student"), &json!("reply"))
        );
        // A person who can answer does, and it continues.
        let resumed = home.run(&["resume", &id, "--answer", "It pushes back."]).exits(5);
        assert!(resumed.out.contains("the water pushes back"), "{}", resumed.out);
    }
}

#[tokio::test]
async fn a_host_receives_that_a_higher_limit_is_asked_for() {
    let home = Home::new();
    let team = "name: count\ntask: Count.\nlimits: {calls: 1, on_limit: ask}\nagents: [{name: Ann}]\n\
                chat: {participants: [Ann], stop: {max_turns: 2}}\nscript: [{Ann: one}, {Ann: two}]\n";
    home.file("count.yaml", team);
    let host = Host { answers: None, ..Host::default() };
    let (service, _child) = connect(&home, &host, &["count.yaml"]).await;
    let result = call(&service, "count", json!({})).await;
    let text = texts(&result).remove(0);
    let waits = format!("The conversation `{}` waits for a higher limit for count, and this host", home.id());
    assert!(text.starts_with(&waits), "{text}");
    assert!(text.contains(". count asks for a higher limit: The run has reached "), "{text}");
}

/// A team that waits for a tool that takes its time.
fn slow_team(home: &Home) {
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/../polylogue-mcp/tests/it/server.py");
    let args = json!([server, "fine", home.path("notes")]);
    let text = format!(
        "name: slow
task: go
mcp: {{s: {{command: python3, args: {args}}}}}
agents: [{{name: Ann, tools: [{{mcp: s}}]}}]
chat: {{participants: [Ann], pattern: sequential}}
script: [{{Ann: {{calls: [{{tool: s_slow}}]}}}}, {{Ann: It is done.}}]
"
    );
    home.file("slow.yaml", &text);
}

fn notes(home: &Home) -> String {
    std::fs::read_to_string(home.path("notes")).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_given_up_stops_the_run_and_the_log_says_why() {
    let home = Home::new();
    slow_team(&home);
    let (service, _child) = connect(&home, &Host::default(), &["slow.yaml", "--allow", "mcp"]).await;
    let params = CallToolRequestParams::new("slow").with_arguments(Map::new());
    let request = rmcp::model::CallToolRequest::new(params).into();
    let options = rmcp::service::PeerRequestOptions::no_options();
    let handle = service.send_cancellable_request(request, options).await.unwrap();
    tokio::task::block_in_place(|| until("the call is there", || notes(&home).contains("begun")));
    handle.cancel(Some("the user went home".into())).await.unwrap();
    tokio::task::block_in_place(|| {
        until("the tool is cancelled", || notes(&home).contains("cancelled"));
        until("the log says why", || home.events().last().is_some_and(|event| event["type"] == "closed"));
    });
    let closed = home.events().pop().unwrap();
    assert_eq!(closed["reason"]["stopped"]["by"], "the host, which says: the user went home", "{closed}");
    // Others can be called.
    assert_eq!(service.list_all_tools().await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_disconnects_cancels_its_calls() {
    let home = Home::new();
    slow_team(&home);
    let (service, mut child) = connect(&home, &Host::default(), &["slow.yaml", "--allow", "mcp"]).await;
    let params = CallToolRequestParams::new("slow").with_arguments(Map::new());
    let request = rmcp::model::CallToolRequest::new(params).into();
    let options = rmcp::service::PeerRequestOptions::no_options();
    let _handle = service.send_cancellable_request(request, options).await.unwrap();
    tokio::task::block_in_place(|| until("the call is there", || notes(&home).contains("begun")));
    service.cancel().await.unwrap();
    assert!(child.wait().await.unwrap().success());
    let closed = home.events().pop().unwrap();
    assert_eq!(closed["reason"]["stopped"]["by"], "the host", "{closed}");
}

#[test]
fn what_is_wrong_with_a_team_is_said_before_anything_is_served() {
    let home = Home::new();
    let twice = home.run(&["mcp", "--offline", &shipped("bill"), &shipped("bill")]).exits(2);
    assert!(twice.err.contains("two of the teams would be the tool `bill`"), "{}", twice.err);
    let refused = home.run(&["mcp", "--offline", &shipped("spare-parts")]).exits(2);
    assert!(refused.err.contains("add `--allow mcp`") && refused.out.is_empty(), "{}", refused.err);
    assert_eq!(home.run(&["mcp", "none.yaml"]).exits(2).out, "");
}

/// What the official client in Python receives of a call; none where it is not installed.
fn by_python(home: &Home, answer: &str, tool: &str, args: &str, team: &str) -> Option<Value> {
    let reference = polylogue_test::skip::mcp_servers(env!("CARGO_TARGET_TMPDIR"))?;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/mcp_host.py");
    let store = home.path("store.db").display().to_string();
    let mut command =
        home.command("python3", &[script, &store, answer, tool, args, PROGRAM, "mcp", "--offline", team]);
    let ran = command.env("PYTHONPATH", reference.join("python")).stderr(Stdio::piped()).output().unwrap();
    let err = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.success(), "{err}");
    Some(serde_json::from_slice(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {err}")))
}

#[test]
fn the_official_client_calls_hears_and_answers() {
    let home = Home::new();
    let team = shipped("two-people");
    let Some(reported) = by_python(&home, "I would say so.", "two-people", r#"{"task": "Why?"}"#, &team)
    else {
        return;
    };
    assert_eq!(reported["is_error"], false, "{reported}");
    assert!(reported["tools"]["two-people"]["properties"]["task"].is_object(), "{reported}");
    assert!(reported["texts"][0].as_str().unwrap().starts_with("TERMINATE: it floats"), "{reported}");
    assert_eq!(reported["asked"].as_array().unwrap().len(), 4);
    let received = reported["heard"].as_array().unwrap();
    assert_eq!(
        received[0],
        json!([1.0, "Tutor: If you push an empty bowl into water, what do you feel?"]),
        "{reported}"
    );
    assert_eq!(reported["value"]["conversation"], home.id());
    let home = Home::new();
    let reported = by_python(&home, "", "two-people", "{}", &team).unwrap();
    assert_eq!(
        (&reported["is_error"], &reported["value"]["ended"]),
        (&json!(true), &json!("waiting for Student"))
    );
}
