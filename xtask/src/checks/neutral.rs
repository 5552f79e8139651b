//! The kernel names no provider, and no message or event stores a role.

use proc_macro2::TokenTree;

use crate::finding::Finding;
use crate::repo::Repo;

const KERNEL: &str = "crates/polylogue-core/";

/// Providers, their models and the servers that run models. Found anywhere in a word.
const PROVIDERS: [&str; 20] = [
    "openai", "anthropic", "claude", "chatgpt", "ollama", "gemini", "vertexai", "mistral", "deepseek",
    "qwen", "dashscope", "groq", "openrouter", "vllm", "llama.cpp", "llamacpp", "lmstudio", "sglang",
    "bedrock", "huggingface",
];

/// Found only as whole words, because they are parts of others.
const PROVIDER_WORDS: [&str; 4] = ["gpt", "xai", "grok", "cohere"];

/// Where messages and events are defined.
const STORED: [&str; 3] = [
    "crates/polylogue-core/src/data/message.rs",
    "crates/polylogue-core/src/data/part.rs",
    "crates/polylogue-core/src/log/event.rs",
];

pub(super) fn check(repo: &Repo) -> Vec<Finding> {
    let kernel = repo.texts("").filter(|(file, _)| file.starts_with(KERNEL));
    let mut found: Vec<_> = kernel.flat_map(|(file, text)| providers(file, text)).collect();
    found.extend(STORED.iter().flat_map(|file| roles(repo, file)));
    found
}

fn providers(file: &str, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let lower = line.to_lowercase();
        let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).collect();
        let parts = PROVIDERS.iter().filter(|name| lower.contains(**name));
        for name in parts.chain(PROVIDER_WORDS.iter().filter(|name| words.contains(name))) {
            let flaw = format!("the kernel names `{name}`");
            found.push(Finding::new(file, index + 1, flaw, "only the model crates know providers"));
        }
    }
    found
}

/// Roles in code; documentation may speak of them.
fn roles(repo: &Repo, file: &str) -> Vec<Finding> {
    let Some(source) = repo.sources.iter().find(|source| source.file == file) else { return Vec::new() };
    let mut found = Vec::new();
    for token in source.tokens() {
        let word = match &token {
            TokenTree::Ident(ident) => ident.to_string().to_lowercase(),
            TokenTree::Literal(literal) => literal.to_string().trim_matches('"').to_lowercase(),
            _ => continue,
        };
        if word == "role" || word.contains("assistant") {
            found.push(Finding::new(
                file,
                token.span().start().line,
                format!("`{token}`: what is stored has no role"),
                "a role is computed for the agent that reads, in its view",
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{brief, repo};

    #[test]
    fn a_provider_in_the_kernel_is_found_even_in_comments_and_tests() {
        let files = [
            ("crates/polylogue-core/src/model.rs", "// as\n// OpenAI does\n"),
            ("crates/polylogue-core/tests/a.rs", "const A: &str = \"gpt-5\";"),
            ("crates/polylogue-core/Cargo.toml", "[package]\nname = \"polylogue-core\"\n# ollama\n"),
            ("crates/polylogue-models/src/lib.rs", "// openai\n"),
        ];
        let wanted = [
            "crates/polylogue-core/Cargo.toml:3: the kernel names `ollama`",
            "crates/polylogue-core/src/model.rs:2: the kernel names `openai`",
            "crates/polylogue-core/tests/a.rs:1: the kernel names `gpt`",
        ];
        assert_eq!(brief(&check(&repo(&files))), wanted);
    }

    #[test]
    fn a_stored_role_is_found() {
        for (text, word) in [
            ("struct Message {\n role: String }", "role"),
            ("enum\n Role { A }", "Role"),
            ("enum A {\n Assistant }", "Assistant"),
            ("const A: &str =\n \"assistant\";", "\"assistant\""),
            ("#[serde(tag =\n \"role\")] enum A {}", "\"role\""),
        ] {
            for file in STORED {
                let flaw = format!("{file}:2: `{word}`: what is stored has no role");
                assert_eq!(brief(&check(&repo(&[(file, text)]))), [flaw], "{text}");
            }
        }
    }

    #[test]
    fn documentation_and_other_files_may_speak_of_roles() {
        let text = "//! role\n/// `user` and `assistant` are computed\nstruct A; // role\nfn enrolement() {}";
        let view = "enum Entry { Assistant }";
        let files = [
            ("crates/polylogue-core/src/data/message.rs", text),
            ("crates/polylogue-core/src/view.rs", view),
        ];
        assert!(check(&repo(&files)).is_empty());
    }
}
