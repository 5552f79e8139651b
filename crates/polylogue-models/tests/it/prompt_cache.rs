//! OpenAI's prompt cache: the name of the prefix that an agent's requests share, and the mark at its end.

use std::collections::BTreeSet;

use crate::common::{Asked, ask, entry, weather};
use polylogue_core::{Bound, CacheLifetime, Entry, Model as _, Money, Name, Params};
use polylogue_models::{Config, Endpoint, KnownModel, Provider, Retries};
use polylogue_test::server::{Answer, Playbook, Server};
use serde_json::{Value, json};

/// The configuration of `provider` at `server`, as if that were OpenAI's address.
fn config(provider: &str, server: &Server) -> Config {
    let mut config = Provider::find(provider).unwrap().config_at(&server.base_url());
    config.deviations.prompt_cache_key = true;
    Config { retries: Retries::none(), ..config }
}

/// The requests of a conversation of three turns.
async fn hold(config: Config, model: &str, server: &Server, mut asked: Asked) -> Vec<Value> {
    let (model, before) = (Endpoint::new(config).unwrap().model(model), server.count());
    for _ in 0..3 {
        let reply = ask(&model, &asked).await.0.unwrap();
        asked.entries.extend([entry(&reply), Entry::user("And then?")]);
    }
    assert_eq!(server.violations(), [""; 0]);
    server.requests()[before..].iter().map(|sent| sent.body.clone()).collect()
}

fn keys(requests: &[Value]) -> BTreeSet<String> {
    let key = |body: &Value| body.get("prompt_cache_key").map(Value::to_string);
    requests.iter().filter_map(key).collect()
}

fn marks(body: &Value) -> usize {
    body.to_string().matches("prompt_cache_breakpoint").count()
}

const APIS: [&str; 2] = ["openai-chat", "openai-responses"];

#[tokio::test]
async fn requests_of_an_agent_have_one_key_and_a_mark_after_its_system_text() {
    for provider in APIS {
        let server = Server::start(Playbook::always(Answer::text("Sunny."))).await;
        let other = || Asked { tools: vec![weather()], ..Asked::new([Entry::user("Good morning.")]) };
        let first = hold(config(provider, &server), "gpt-5.6", &server, Asked::default()).await;
        let second = hold(config(provider, &server), "gpt-5.6", &server, other()).await;
        let all = [first, second].concat();
        assert_eq!(keys(&all).len(), 1, "{provider}: whatever is said and whichever tools there are");
        let mark = json!({"mode": "explicit"});
        for body in &all {
            let list = body.get("input").or_else(|| body.get("messages")).unwrap();
            let part = list.pointer("/0/content/0").unwrap();
            assert_eq!(
                (&part["text"], &part["prompt_cache_breakpoint"]),
                (&json!("Be brief."), &mark),
                "{body}"
            );
            assert_eq!((marks(body), body.get("instructions")), (1, None), "{body}");
        }
        // Another agent, and another system text.
        let who = Name::new("Ann").unwrap();
        let named = hold(config(provider, &server), "gpt-5.6", &server, Asked { who, ..other() }).await;
        let system = Some("Be long.".to_owned());
        let longer = hold(config(provider, &server), "gpt-5.6", &server, Asked { system, ..other() }).await;
        assert_eq!(keys(&[all, named, longer].concat()).len(), 3, "{provider}");
    }
}

#[tokio::test]
async fn earlier_models_have_the_key_and_no_mark() {
    for provider in APIS {
        let server = Server::start(Playbook::always(Answer::text("Sunny."))).await;
        for model in ["gpt-4o", "gpt-5", "gpt-5.5", "unknown"] {
            let requests = hold(config(provider, &server), model, &server, Asked::default()).await;
            assert_eq!((keys(&requests).len(), marks(&requests[2])), (1, 0), "{provider}:{model}");
        }
    }
}

#[tokio::test]
async fn an_extra_field_replaces_the_key_and_the_switch_of_marks_removes_both() {
    for provider in APIS {
        let server = Server::start(Playbook::always(Answer::text("Sunny."))).await;
        let mut asked = Asked::default();
        asked.params.extra.insert("prompt_cache_key".into(), json!("mine"));
        let requests = hold(config(provider, &server), "gpt-5.6", &server, asked).await;
        assert_eq!(keys(&requests), BTreeSet::from(["\"mine\"".to_owned()]), "{provider}");
        let off = Config { cache_marks: false, ..config(provider, &server) };
        let requests = hold(off, "gpt-5.6", &server, Asked::default()).await;
        assert_eq!((keys(&requests).len(), marks(&requests[0])), (0, 0), "{provider}");
    }
}

/// `prompt_cache: 12h` keeps what the requests of an agent begin with, by Responses, for models whose cache has such a lifetime.
#[tokio::test]
async fn the_system_text_is_kept_for_twelve_hours_where_it_can_be() {
    let params = Params { prompt_cache: Some(CacheLifetime::HalfDay), ..Params::default() };
    let [usual, long] = [json!({"mode": "explicit"}), json!({"mode": "explicit", "ttl": "12h"})];
    for (provider, model, expected) in [
        ("openai-responses", "gpt-5.6", &long),
        ("openai-responses", "gpt-5.5", &Value::Null),
        ("openai-responses", "unknown", &Value::Null),
        ("openai-chat", "gpt-5.6", &usual),
    ] {
        let server = Server::start(Playbook::always(Answer::text("Sunny."))).await;
        let config = config(provider, &server);
        let ignored = |config: &Config| {
            Endpoint::new(config.clone()).unwrap().model(model).ignored(&params).contains(&"prompt_cache")
        };
        assert_eq!(ignored(&config), *expected != long, "{provider}:{model}");
        assert!(ignored(&Config { cache_marks: false, ..config.clone() }), "{provider}:{model}");
        let asked = Asked { params: params.clone(), ..Asked::default() };
        for body in hold(config, model, &server, asked).await {
            let list = body.get("input").or_else(|| body.get("messages")).unwrap();
            let mark = list.pointer("/0/content/0/prompt_cache_breakpoint");
            assert_eq!(mark.unwrap_or(&Value::Null), expected, "{body}");
            assert_eq!((marks(&body) > 0, body.get("prompt_cache_retention")), (mark.is_some(), None));
        }
    }
}

/// The bound of a call reserves the price of the lifetime.
#[tokio::test]
async fn writing_for_twelve_hours_is_reserved_at_its_price() {
    for known in KnownModel::of("openai").filter(|known| known.price().write.is_some()) {
        let price = known.price();
        assert_eq!(price.write_long, Some(2.5 * price.input), "{}", known.model);
    }
    let server = Server::start(Playbook::always(Answer::text("Sunny."))).await;
    let model = Endpoint::new(config("openai-responses", &server)).unwrap().model("gpt-5.6");
    let cost = |lifetime| {
        let params = Params { prompt_cache: lifetime, ..Params::default() };
        Bound::of_input(&model, &params, 1_000).least_cost
    };
    assert_eq!(cost(None), Some(Money::dollars(0.005)));
    assert_eq!(cost(Some(CacheLifetime::HalfDay)), Some(Money::dollars(0.01)));
}

/// `prompt_cache: 24h` for models whose cache has such a lifetime, at OpenAI. Elsewhere it is left out, which the model says.
#[tokio::test]
async fn a_cache_is_kept_for_a_day_where_it_can_be() {
    let with = |lifetime| {
        let mut asked = Asked::default();
        asked.params.prompt_cache = Some(lifetime);
        asked
    };
    for provider in APIS {
        let server = Server::start(Playbook::always(Answer::text("Sunny."))).await;
        let (at_openai, elsewhere) = (config(provider, &server), Provider::find(provider).unwrap());
        let elsewhere = Config { retries: Retries::none(), ..elsewhere.config_at(&server.base_url()) };
        for (config, model, lifetime, sent) in [
            (at_openai.clone(), "gpt-5.5", CacheLifetime::Day, Some("24h")),
            (at_openai.clone(), "gpt-4o", CacheLifetime::Day, Some("24h")),
            (at_openai.clone(), "gpt-5.6", CacheLifetime::Day, None),
            (at_openai.clone(), "gpt-5.5", CacheLifetime::Hour, None),
            (elsewhere, "gpt-5.5", CacheLifetime::Day, None),
        ] {
            let asked = with(lifetime);
            let ignored = Endpoint::new(config.clone()).unwrap().model(model).ignored(&asked.params);
            let requests = hold(config, model, &server, asked).await;
            let fields: Vec<_> = requests.iter().map(|body| body.get("prompt_cache_retention")).collect();
            assert_eq!(fields, [sent.map(Value::from).as_ref(); 3], "{provider}:{model} {lifetime:?}");
            assert_eq!(ignored.contains(&"prompt_cache"), sent.is_none(), "{provider}:{model} {lifetime:?}");
        }
    }
    let claude = Provider::find("anthropic").unwrap().config_at("http://127.0.0.1:1");
    let claude = Endpoint::new(claude).unwrap().model("claude-sonnet-4-5");
    let ignored = |lifetime| claude.ignored(&with(lifetime).params).contains(&"prompt_cache");
    assert!(ignored(CacheLifetime::Day) && !ignored(CacheLifetime::Hour));
}

/// Servers that only have OpenAI's API may refuse fields that they do not know.
#[test]
fn only_openai_itself_is_sent_a_key() {
    for provider in Provider::all() {
        let is_openai = provider.name().starts_with("openai");
        let at = |url: &str| provider.config_at(url).deviations.prompt_cache_key;
        assert_eq!(at("https://api.openai.com/v1"), is_openai, "{}", provider.name());
        for url in [
            "http://127.0.0.1:8000/v1",
            "https://api.openai.com.example.org/v1",
            "https://a.openai.azure.com",
        ] {
            assert!(!at(url), "{} at {url}", provider.name());
        }
    }
}
