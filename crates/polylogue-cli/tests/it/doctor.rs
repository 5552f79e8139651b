//! `doctor`: what is found on this machine.

use expect_test::expect;

use crate::home::{Home, KEY, NOBODY, serve, shipped};
use crate::models::talk;

#[test]
fn it_tells_keys_by_name_and_endpoints_by_address() {
    let server = serve(talk());
    let nobody = NOBODY;
    let with_secret = server.base_url().replace("http://", &format!("http://me:{KEY}@")) + "?key=" + KEY;
    let mut home = Home::at(&server).var("VLLM_BASE_URL", &with_secret);
    for local in ["OLLAMA_HOST", "LLAMACPP_BASE_URL", "LMSTUDIO_BASE_URL"] {
        home.set(local, nobody);
    }
    home.file(".env", &format!("DEEPSEEK_API_KEY={}\n", "sk-of-the-file"));
    home.run(&["run", &shipped("writer-critic"), "--offline"]).ok();
    let ran = home.run(&["doctor"]).ok();
    assert!(!ran.out.contains("sk-of-the-file"));
    let text = ran.masked(&home).replace(&server.base_url(), "SERVER").replace(nobody, "NOBODY");
    let text = text.replace(nobody.trim_end_matches("/v1"), "OLLAMA");
    let (version, rest) = text.split_once('\n').unwrap();
    assert!(version.starts_with(concat!("polylogue ", env!("CARGO_PKG_VERSION"), ", ")), "{version}");
    expect![[r#"

        models
          openai         key found in `OPENAI_API_KEY`, at SERVER
          ollama         nothing answers at OLLAMA
          ollama-openai  nothing answers at NOBODY
          anthropic      no key: set `ANTHROPIC_API_KEY`
          deepseek       key found in `DEEPSEEK_API_KEY`, at https://api.deepseek.com/v1
          qwen           no key: set `DASHSCOPE_API_KEY` or `QWEN_API_KEY`
          mistral        no key: set `MISTRAL_API_KEY`
          groq           no key: set `GROQ_API_KEY`
          together       no key: set `TOGETHER_API_KEY`
          openrouter     no key: set `OPENROUTER_API_KEY`
          xai            no key: set `XAI_API_KEY`
          gemini         no key: set `GEMINI_API_KEY` or `GOOGLE_API_KEY`
          vllm           answers at SERVER
          llamacpp       nothing answers at NOBODY
          lmstudio       nothing answers at NOBODY
          compatible     key found in `OPENAI_API_KEY`, at SERVER

        conversations
          1 in HOME/store.db (SQLite, format 1)
        --- 0
    "#]]
    .assert_eq(rest);
    assert_eq!(server.count(), 0, "it asks nothing that costs");
}

#[test]
fn it_lists_the_models_of_ollama() {
    let server = serve(talk().models(["llama3.2:latest", "qwen3:8b"]));
    let ollama = |home: Home| {
        let text = home.run(&["doctor"]).ok().out.replace(&server.ollama_url(), "OLLAMA");
        let lines = text.lines().skip_while(|line| !line.starts_with("  ollama"));
        lines
            .take_while(|line| !line.starts_with("  anthropic"))
            .fold("models\n".to_owned(), |all, line| all + line + "\n")
    };
    expect![[r#"
        models
          ollama         answers at OLLAMA
                         Ollama 0.13.0
                         models: llama3.2:latest (2.0 GB), qwen3:8b (2.0 GB)
          ollama-openai  answers at OLLAMA/v1
    "#]]
    .assert_eq(&ollama(Home::new().var("OLLAMA_HOST", &server.address().to_string())));
    expect![[r#"
        models
          ollama         answers at OLLAMA/elsewhere
                         which models it has is not known: the provider answered with status 404: Invalid URL (GET /elsewhere/api/version)
          ollama-openai  answers at OLLAMA/elsewhere/v1
    "#]]
    .assert_eq(&ollama(Home::new().var("OLLAMA_HOST", &format!("{}/elsewhere", server.ollama_url()))));
    assert_eq!(server.count(), 0, "it asks nothing that costs");
}

#[test]
fn it_fails_when_conversations_cannot_be_kept() {
    let home = Home::new();
    home.file("store.db", "this is no database, and longer than the header of one ".repeat(4).as_str());
    let ran = home.run(&["doctor"]).exits(1);
    assert!(ran.out.ends_with("\nconversations\n  cannot be used\n"), "{}", ran.out);
    assert!(
        ran.err.contains("store.db` does not keep conversations: it is no SQLite database"),
        "{}",
        ran.err
    );
}
