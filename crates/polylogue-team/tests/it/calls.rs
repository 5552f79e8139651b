//! Services over HTTP in team files.

use std::fs;

use polylogue::AnyModel;
use polylogue_models::Env;
use polylogue_team::{BuildContext, Grant, Overrides, Team, load};

use crate::common;

fn shown(rest: &str, tools: &str) -> String {
    let text = format!(
        "name: t\nagents: [{{name: A, tools: {tools}}}]\nchat: {{participants: [A], stop: {{max_turns: 1}}}}\n{rest}"
    );
    common::said(&text)
}

#[test]
fn calls_that_cannot_be_made_are_reported_at_their_line() {
    let call = |rest: &str| format!("calls:\n  - {{name: ask, description: d, {rest}}}");
    for (rest, tools, expected) in [
        (
            call("url: 'https://h.example/{a}'"),
            "[ask]",
            "the call `ask`: there is no argument `a`; declare it in `arguments`\n --> t.yaml:5:",
        ),
        (
            call("url: 'https://{a}/', arguments: {a: {type: string}}"),
            "[ask]",
            "an argument cannot name the host",
        ),
        (call("url: 'https://h.example/'"), "[]", "no agent has the call `ask`"),
        (call("url: 'https://h.example/', method: fetch"), "[ask]", "`method` cannot be `fetch`"),
        (call("url: 'https://h.example/', verb: get"), "[ask]", "unknown key `verb`"),
        // A secret is reported with all other mistakes.
        (call("url: 'https://h.example/', verb: get, headers: {Cookie: x}"), "[ask]", "`Cookie` is a secret"),
        (
            call("url: 'https://h.example/', headers: {Authorization: Bearer my-own-secret}"),
            "[ask]",
            "`Authorization` is a secret",
        ),
        (
            "calls: [{name: calculator, description: d, url: 'https://h.example/'}]".into(),
            "[calculator]",
            "a tool `calculator` already exists",
        ),
        ("".into(), "[ask]", "unknown tool `ask`"),
        (
            "openapi: {pets: {file: pets.yaml}}".into(),
            "[]",
            "`pets.yaml` cannot be used: files are not read here",
        ),
        (
            "openapi: {pets: {file: ../pets.yaml}}".into(),
            "[]",
            "`../pets.yaml` cannot be used: it is not below the folder",
        ),
        ("openapi: {pets: {}}".into(), "[]", "`file`"),
    ] {
        let shown = shown(&rest, tools);
        assert!(shown.contains(expected), "{rest}: {shown}");
        assert!(!shown.contains("my-own-secret"), "{shown}");
    }
}

const PETS: &str = "openapi: 3.0.0
servers: [{url: 'http://pets.example:8080/v1'}]
security: [{token: []}]
paths:
  /pets: {get: {operationId: listPets}, post: {operationId: addPet, requestBody: {content: {application/json: {schema: {type: object}}}}}}
components: {securitySchemes: {token: {type: http, scheme: bearer}}}
";

fn team(document: &str, rest: &str, tools: &str) -> Result<Team, String> {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("pets.yaml"), document).unwrap();
    let text = format!(
        "name: t\nagents: [{{name: A, tools: {tools}}}]\nchat: {{participants: [A], stop: {{max_turns: 1}}}}\nopenapi: {{pets: {{file: pets.yaml{rest}}}}}\nscript: [{{A: done}}]\n"
    );
    fs::write(dir.path().join("t.yaml"), text).unwrap();
    let loaded =
        load(dir.path().join("t.yaml"), &Overrides::default()).map_err(|errors| errors.to_string())?;
    assert_eq!(loaded.warnings.to_string(), "");
    let mut team = loaded.team;
    team.use_model("script");
    Ok(team)
}

#[test]
fn operations_are_tools_by_their_names_or_all_by_that_of_the_service() {
    for (tools, expected) in [("[pets]", &["addPet", "listPets"][..]), ("[listPets]", &["listPets"])] {
        let team = team(PETS, ", key: PETS_KEY, max_cost: 0.02", tools).unwrap();
        let stored = serde_json::to_string(&team).unwrap();
        assert_eq!(serde_json::from_str::<Team>(&stored).unwrap(), team);
        let model = team.script.model("x");
        let provide = |_: &str| Ok(AnyModel::new(model.clone()));
        let assistant = &team.assistants(&provide).unwrap()[0];
        let mut names: Vec<String> = assistant.specs().iter().map(|tool| tool.name.clone()).collect();
        names.sort();
        let most = Some(polylogue_core::Money::dollars(0.02));
        assert!(assistant.specs().iter().all(|tool| tool.max_cost == most), "{:?}", assistant.specs());
        assert_eq!(names, expected);
        // Whom it reaches has to be allowed, and its key has to be there.
        let reached = (Grant::Network, vec!["pets.example:8080".to_owned()]);
        let sent = (Grant::Env, vec!["PETS_KEY -> pets.example:8080".to_owned()]);
        assert_eq!(team.wants(), [reached, sent].into());
        let build = |place: BuildContext| {
            team.build_at(&provide, &place).map(drop).map_err(|error| error.to_string())
        };
        assert!(
            build(BuildContext::none())
                .unwrap_err()
                .contains("wants to reach `pets.example:8080` over the network")
        );
        let allowed = BuildContext::none().grant([Grant::Network]);
        assert!(build(allowed.clone()).unwrap_err().contains("`PETS_KEY -> pets.example:8080`"));
        let allowed = allowed.grant([Grant::Env]);
        assert!(build(allowed.clone()).unwrap_err().contains("`PETS_KEY` is not set"));
        build(allowed.with_env(Env::of([("PETS_KEY", "x")]))).unwrap();
    }
}

#[test]
fn unknown_documents_and_operations_are_reported() {
    for (document, rest, tools, expected) in [
        ("swagger: '2.0'", "", "[pets]", "`pets.yaml` cannot be used: it is of version 2"),
        (
            PETS,
            ", include: [getPets]",
            "[pets]",
            "there is no operation `getPets`; there is `listPets`, `addPet`",
        ),
        (PETS, ", include: [listPets]", "[addPet]", "unknown tool `addPet`"),
        (PETS, ", base_url: /v1", "[pets]", "not a whole address"),
        (PETS, ", keys: {tokn: K}", "[pets]", "no operation asks for the security scheme `tokn`"),
        (
            &PETS.replace("security:", "x-security:"),
            ", key: K",
            "[pets]",
            "the document does not say how a key is sent",
        ),
    ] {
        let why = team(document, rest, tools).unwrap_err();
        assert!(why.contains(expected), "{why}");
    }
}
