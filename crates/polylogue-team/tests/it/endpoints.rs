//! Endpoints as agents use them: one for all who name it.

use std::fs;
use std::net::Ipv4Addr;
use std::time::Duration;

use polylogue::{AnyModel, Status};
use polylogue_core::ModelError;
use polylogue_models::{Auth, Env, Models};
use polylogue_team::{Endpoint, KeyVariable, Overrides, load};
use polylogue_test::server::{Behavior, Playbook, Server};

#[tokio::test]
async fn all_agents_of_all_chats_and_teams_share_the_limits_of_an_endpoint() {
    let server = Behavior::from(Playbook::echo()).latency(Duration::from_millis(20));
    let server = Server::bind((Ipv4Addr::LOCALHOST, 0).into(), server).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let agents = |name: &str| {
        format!("name: {name}\nagents: [{{name: A, model: 'house:a'}}, {{name: B, model: 'house:b'}}]\n")
    };
    let inner = "chat: {pattern: sequential, participants: [A, B]}\n";
    let outer = format!(
        "chat: {{pattern: sequential, participants: [A, B, desk]}}\nteams: [{{name: desk, file: desk.yaml}}]\n\
         endpoints: {{house: {{base_url: '{}', in_flight: 2}}}}\n",
        server.base_url()
    );
    fs::write(folder.path().join("desk.yaml"), agents("inner") + inner).unwrap();
    fs::write(folder.path().join("team.yaml"), agents("outer") + &outer).unwrap();
    let team = load(folder.path().join("team.yaml"), &Overrides::default()).unwrap().team;
    let env = Env::of([("", "")]);
    let models = Models::new(env.clone());
    for (name, endpoint) in team.all_endpoints() {
        models.define(endpoint.config(name, &env).unwrap()).unwrap();
    }
    let chats = (0..8).map(|nth| {
        let chat = team.build(&|name| Ok(AnyModel::new(models.model(name)?))).unwrap();
        tokio::spawn(async move { chat.run(&format!("Task {nth}")).await.unwrap().status })
    });
    for chat in chats.collect::<Vec<_>>() {
        assert!(matches!(chat.await.unwrap(), Status::Closed { .. }));
    }
    assert_eq!((server.count(), server.most_at_once()), (32, 2));
}

/// An access token and an API key of Vertex AI have different addresses and headers: which one a key is, its variable says.
#[test]
fn the_variable_of_a_key_says_whether_it_is_an_api_key_of_vertex() {
    let env = Env::of([
        ("GOOGLE_VERTEX_API_KEY", "an-api-key"),
        ("MY_TOKEN", "a-token"),
        ("GOOGLE_CLOUD_PROJECT", "acme"),
        ("GOOGLE_CLOUD_LOCATION", "global"),
    ]);
    let own = "http://127.0.0.1:9/v1/publishers/google";
    for (variable, base_url, is_api_key, address) in [
        (
            "MY_TOKEN",
            None,
            false,
            "https://aiplatform.googleapis.com/v1/projects/acme/locations/global/publishers/google",
        ),
        ("GOOGLE_VERTEX_API_KEY", None, true, "https://aiplatform.googleapis.com/v1/publishers/google"),
        ("MY_TOKEN", Some(own), false, own),
        ("GOOGLE_VERTEX_API_KEY", Some(own), true, own),
        (
            "MY_TOKEN",
            Some("http://127.0.0.1:9/gateway"),
            false,
            "http://127.0.0.1:9/gateway/v1/projects/acme/locations/global/publishers/google",
        ),
        (
            "GOOGLE_VERTEX_API_KEY",
            Some("http://127.0.0.1:9/gateway/v1/"),
            true,
            "http://127.0.0.1:9/gateway/v1/publishers/google",
        ),
    ] {
        let endpoint = Endpoint {
            key: vec![KeyVariable { env: variable.into(), weight: 1 }],
            base_url: base_url.map(str::to_owned),
            ..Endpoint::default()
        };
        let config = endpoint.config("vertex", &env).unwrap();
        assert_eq!((config.auth == Auth::GoogleKey, config.base_url.as_str()), (is_api_key, address));
        assert_eq!(config.key_variables, [variable]);
    }
}

/// The address of Vertex AI in a team file is completed as the one in `VERTEX_BASE_URL`, where the environment says by what.
/// Credentials of the environment are not sent there.
#[test]
fn an_address_of_vertex_is_completed_by_project_and_region() {
    let at = |vars: &[(&str, &str)]| {
        let endpoint = Endpoint { base_url: Some("https://gw.example/v1".into()), ..Endpoint::default() };
        let config = endpoint.config("vertex", &Env::of(vars.iter().copied()))?;
        assert!(config.auth == Auth::Google(None) && config.key.is_none());
        Ok::<_, ModelError>(config.base_url)
    };
    let (project, region) = (("GOOGLE_CLOUD_PROJECT", "acme"), ("GOOGLE_CLOUD_LOCATION", "eu"));
    let whole = "https://gw.example/v1/projects/acme/locations/eu/publishers/google";
    assert_eq!(at(&[project, region]).unwrap(), whole);
    assert_eq!(at(&[("SOMETHING", "else")]).unwrap(), "https://gw.example/v1");
    let error = at(&[project]).unwrap_err();
    assert!(error.message.contains("no region") && error.hint.unwrap().contains("`GOOGLE_CLOUD_LOCATION`"));
}
