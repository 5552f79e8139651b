//! The web of teams: what their tools find, whom they reach, and what has to be allowed.

use std::fs;

use polylogue::{AnyModel, Log};
use polylogue_core::{Body, ToolResult};
use polylogue_models::Env;
use polylogue_team::{BuildContext, Grant, Overrides, Team, load, parse_at};

use crate::common;

fn wrong(web: &str, tools: &str) -> String {
    let text = format!(
        "name: t\nagents: [{{name: A, tools: {tools}}}]\n{web}\nchat: {{participants: [A], stop: {{max_turns: 1}}}}"
    );
    common::said(&text)
}

#[test]
fn mistakes_are_reported_at_their_line() {
    for (web, tools, expected) in [
        ("", "[web_search]", "`web_search` has no source\n --> t.yaml:2:28"),
        ("", "[web_fetch]", "hint: add `web`, such as `web: {fetch: true}`, or `web: {pages: FOLDER}`"),
        ("web: {search: brave}", "[web_fetch]", "`web_fetch` has no source"),
        ("web: {fetch: true}", "[]", "no agent uses `fetch` of `web`"),
        (
            "web: {search: brave}",
            "[]",
            "hint: name `web_search` among the `tools` of an agent, or leave it out",
        ),
        ("web: {search: {engine: searxng}}", "[web_search]", "`searxng` needs an address"),
        (
            "web: {search: {engine: searxng, url: http://localhost:8888, key: K}}",
            "[web_search]",
            "`searxng` takes no key",
        ),
        ("web: {search: google}", "[web_search]", "`search` cannot be `google`"),
        ("web: {search: {engine: brave, url: nowhere}}", "[web_search]", "error: "),
        (
            "web: {fetch: {private: [10.0.0.0/40]}}",
            "[web_fetch]",
            "`10.0.0.0/40` is neither a host nor a network",
        ),
        ("web: {fetch: {hosts: [a b]}}", "[web_fetch]", "error: "),
        ("web: {pages: no}", "[web_fetch]", "the pages in `no` cannot be included: files are not read here"),
        ("web: {pages: ../up}", "[web_fetch]", "the pages in `../up` cannot be included: "),
        ("web: {index: x}", "[web_fetch]", "unknown key `index`"),
    ] {
        let shown = wrong(web, tools);
        assert!(shown.contains(expected), "{web} {tools}: {shown}");
    }
}

fn team(folder: &std::path::Path, text: &str) -> Result<Team, String> {
    fs::write(folder.join("t.yaml"), text).unwrap();
    let loaded = load(folder.join("t.yaml"), &Overrides::default()).map_err(|errors| errors.to_string())?;
    let mut team = loaded.team;
    team.use_model("script");
    Ok(team)
}

async fn outcomes(team: &Team, place: &BuildContext) -> Vec<ToolResult> {
    let model = team.script.model("x");
    let chat = team.build_at(&|_: &str| Ok(AnyModel::new(model.clone())), place).unwrap();
    let mut log = Log::in_memory();
    chat.run_in(&mut log, "go").await.unwrap();
    let returned = |body: &Body| match body {
        Body::ToolReturned { result: outcome, .. } => Some(outcome.clone()),
        _ => None,
    };
    log.events().await.iter().filter_map(|event| returned(&event.body)).collect()
}

const READS: &str = "name: t
web: {pages: pages}
agents: [{name: A, tools: [web_search, web_fetch]}]
chat: {participants: [A], stop: {max_turns: 1}}
script:
  - A: {calls: [{tool: web_search, args: {query: dancing}}, {tool: web_fetch, args: {url: \"page:/deep/b.html\"}}, {tool: web_fetch, args: {url: \"http://127.0.0.1/\"}}]}
  - A: done
";

#[tokio::test]
async fn pages_that_are_brought_along_are_searched_and_read_without_being_allowed() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("pages/deep")).unwrap();
    fs::write(dir.path().join("pages/a.md"), "# Bees\nThey dance.").unwrap();
    fs::write(dir.path().join("pages/deep/b.html"), "<title>B</title><p>See <a href=../a.md>bees</a>")
        .unwrap();
    fs::write(dir.path().join("pages/c.png"), [0, 1, 2]).unwrap();
    fs::write(dir.path().join("pages/.hidden.md"), "dancing").unwrap();
    let team = team(dir.path(), READS).unwrap();
    assert!(team.wants().is_empty() && !team.needs_workplace());
    let stored = serde_json::to_string(&team).unwrap();
    assert_eq!(serde_json::from_str::<Team>(&stored).unwrap(), team);
    fs::remove_dir_all(dir.path().join("pages")).unwrap();
    let [found, read, refused] = &outcomes(&team, &BuildContext::none()).await[..] else { panic!() };
    assert_eq!(found.text(), "1. [Bees](page:/a.md)\n   # Bees They dance.");
    assert_eq!(read.text(), "Title: B\n\nSee [bees](page:/a.md)");
    assert_eq!(read.outside.as_deref(), Some("page:/deep/b.html"));
    assert!(refused.text().contains("there is no page `http://127.0.0.1/`"), "{refused:?}");
}

#[cfg(unix)]
#[test]
fn pages_are_below_the_folder_and_of_a_bounded_size() {
    let dir = tempfile::tempdir().unwrap();
    let pages = dir.path().join("team/pages");
    fs::create_dir_all(&pages).unwrap();
    let file = |text: &str| team(&dir.path().join("team"), text).unwrap_err();
    assert!(file(READS).contains("there are no pages in `pages`"));
    fs::write(dir.path().join("secret.md"), "secret").unwrap();
    std::os::unix::fs::symlink(dir.path().join("secret.md"), pages.join("a.md")).unwrap();
    assert!(file(READS).contains("`a.md` is not below the folder of the team file"));
    fs::remove_file(pages.join("a.md")).unwrap();
    fs::write(pages.join("a.md"), [0xff, 0xfe, 0x00]).unwrap();
    assert!(file(READS).contains("`a.md` is not UTF-8 text"));
    for at in 0..2 {
        fs::write(pages.join(format!("{at}.md")), "x".repeat(3 << 20)).unwrap();
    }
    fs::remove_file(pages.join("a.md")).unwrap();
    assert!(file(READS).contains("they are larger than 4 MiB together"));
}

const REACHES: &str = "name: t
web: {search: {engine: tavily, key: K}, fetch: {private: [127.0.0.1]}}
agents: [{name: A, tools: [web_search, web_fetch]}]
chat: {participants: [A], stop: {max_turns: 1}}
script: [{A: done}]
";

#[test]
fn the_web_has_to_be_allowed_and_an_engine_needs_its_key() {
    let team = common::team(REACHES);
    let reached = ["api.tavily.com", "the public web", "127.0.0.1"].map(str::to_owned);
    let sent = (Grant::Env, vec!["K -> api.tavily.com".to_owned()]);
    assert_eq!(team.wants(), [(Grant::Network, reached.to_vec()), sent].into());
    let twice = REACHES.replace("tavily, key: K", "searxng, url: \"http://127.0.0.1\"");
    let named = common::team(&twice).wants();
    assert_eq!(
        named[&Grant::Network].iter().filter(|host| host.starts_with("127.0.0.1")).count(),
        1,
        "{named:?}"
    );
    let model = team.script.model("x");
    let build = |place: &BuildContext| {
        let mut team = team.clone();
        team.use_model("script");
        let built = team.build_at(&|_: &str| Ok(AnyModel::new(model.clone())), place);
        built.map(drop).map_err(|error| error.to_string())
    };
    let refused = build(&BuildContext::none()).unwrap_err();
    assert_eq!(
        refused,
        "this team wants to reach `api.tavily.com`, `the public web`, `127.0.0.1` over the network, but that is not allowed"
    );
    let allowed = BuildContext::none().grant([Grant::Network]);
    assert!(build(&allowed).unwrap_err().contains("`K -> api.tavily.com`"));
    let allowed = allowed.grant([Grant::Env]);
    assert!(build(&allowed).unwrap_err().contains("the search engine has no API key"));
    build(&allowed.with_env(Env::of([("K", "my-key")]))).unwrap();
}

#[test]
fn pages_are_found_as_if_those_that_are_hidden_from_the_author_did_not_exist() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("pages")).unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::write(path("pages/a.md"), "Bees dance.").unwrap();
    fs::write(path("pages/secret.md"), "Wasps do not.").unwrap();
    let text = "name: t\nweb: {pages: pages}\nagents: [{name: A, tools: [web_search, web_fetch]}]\nchat: {participants: [A], stop: {max_turns: 1}}\n";
    let pages = |hidden: &[&str]| {
        let hidden: Vec<_> = hidden.iter().map(|name| path(name)).collect();
        let found = parse_at(text, path("t.yaml"), &hidden, &Overrides::default());
        found.map(|loaded| format!("{:?}", loaded.team.web.pages)).map_err(|errors| errors.to_string())
    };
    assert!(pages(&[]).unwrap().contains("Wasps"));
    let found = pages(&["pages/secret.md"]).unwrap();
    assert!(found.contains("Bees") && !found.contains("secret"), "{found}");
}

#[test]
fn a_team_has_so_many_services_and_files_of_servers() {
    let dir = tempfile::tempdir().unwrap();
    let errors = |part: String| {
        let text = format!(
            "name: t\n{part}\nagents: [{{name: A}}]\nchat: {{participants: [A], stop: {{max_turns: 1}}}}\n"
        );
        fs::write(dir.path().join("t.yaml"), text).unwrap();
        load(dir.path().join("t.yaml"), &Overrides::default())
            .map_or_else(|found| found.to_string(), |_| String::new())
    };
    let document = "openapi: 3.0.0\ninfo: {title: P, version: '1'}\nservers: [{url: 'http://127.0.0.1:9'}]\npaths:\n  /p: {get: {operationId: list, responses: {'200': {description: ok}}}}\n";
    fs::write(dir.path().join("p.yaml"), document).unwrap();
    let services =
        |count: usize| (0..count).map(|nth| format!("s{nth}: {{file: p.yaml}}, ")).collect::<String>();
    assert!(errors(format!("openapi: {{{}}}", services(65))).contains("a team has at most 64 services"));
    assert!(!errors(format!("openapi: {{{}}}", services(1))).contains("at most 64"));

    (0..65).for_each(|nth| fs::write(dir.path().join(format!("f{nth}.py")), "").unwrap());
    let args = |count: usize| (0..count).map(|nth| format!("f{nth}.py, f{nth}.py, ")).collect::<String>();
    let server = |count| errors(format!("mcp: {{m: {{command: python3, args: [{}]}}}}", args(count)));
    assert!(server(65).contains("at most 64 files of the folder of a team"));
    assert!(!server(64).contains("at most 64 files"));
}
