//! Hints for errors of Ollama.

use crate::retry::RetryAdvice;

/// A hint for an error of Ollama.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Advice {
    pub(crate) hint: String,
    /// Whether a retry may succeed, if that differs from what the status says.
    pub(crate) again: Option<RetryAdvice>,
}

/// The hint when the server does not answer.
pub(crate) const NOT_RUNNING: &str =
    "start Ollama with `ollama serve`, or say in `OLLAMA_HOST` where it runs";

const TOO_LONG: &str = "the conversation is longer than the context that the model was loaded with: give it more with \
    `num_ctx` among the extra fields, or let the agent see less; `truncate` and `shift` as `true` let Ollama drop what \
    does not fit";
const MEMORY: &str = "take a smaller model, or a smaller `num_ctx`";
const TOOLS: &str = "this model cannot call functions: take another one, or give the agent no tools";
const THINKING: &str = "this model cannot think: leave out `think`";
const BUSY: &str =
    "limit the endpoint's requests with `in_flight`, or raise `OLLAMA_MAX_QUEUE` where Ollama runs";

/// The hint for an error with this status, if it came with one, and this message. `model` is the name at Ollama.
pub(crate) fn advice(status: Option<u16>, message: &str, model: &str) -> Option<Advice> {
    let message = message.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    let (hint, again) = match () {
        () if status == Some(404) && says(&["model"]) => {
            (format!("get it with `ollama pull {model}`, where Ollama runs"), None)
        }
        () if status == Some(404) => ("is that the address of Ollama? it ends in no `/v1`".to_owned(), None),
        () if says(&["context length", "context size"]) => (TOO_LONG.to_owned(), Some(RetryAdvice::No)),
        () if says(&["requires more system memory"]) => (MEMORY.to_owned(), Some(RetryAdvice::No)),
        () if says(&["out of memory"]) => (MEMORY.to_owned(), None),
        () if says(&["not support tools"]) => (TOOLS.to_owned(), None),
        () if says(&["not support thinking", "think value"]) => (THINKING.to_owned(), None),
        () if says(&["maximum pending requests"]) => (BUSY.to_owned(), None),
        () => return None,
    };
    Some(Advice { hint, again })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ollama_says_has_its_advice() {
        for (status, message, hint, again) in [
            (Some(404), "model 'm:3b' not found", "`ollama pull m:3b`", None),
            (Some(404), "model \"m:3b\" not found, try pulling it first", "`ollama pull m:3b`", None),
            (Some(404), "404 page not found", "no `/v1`", None),
            (Some(400), "the input length exceeds the context length", "`num_ctx`", Some(RetryAdvice::No)),
            (
                Some(400),
                "request (8889 tokens) exceeds the available context size (4096 tokens), try increasing it",
                "`num_ctx`",
                Some(RetryAdvice::No),
            ),
            (
                Some(400),
                "the prompt is longer than the context length currently available to the model",
                "`num_ctx`",
                Some(RetryAdvice::No),
            ),
            (
                Some(500),
                "model requires more system memory (22.7 GiB) than is available (6.0 GiB)",
                "smaller model",
                Some(RetryAdvice::No),
            ),
            (None, "llama runner process has terminated: cudaMalloc failed: out of memory", "smaller", None),
            (Some(400), "registry.ollama.ai/library/m:3b does not support tools", "no tools", None),
            (Some(400), "\"m:3b\" does not support thinking", "`think`", None),
            (
                Some(503),
                "server busy, please try again.  maximum pending requests exceeded",
                "`OLLAMA_MAX_QUEUE`",
                None,
            ),
        ] {
            let advice = advice(status, message, "m:3b").unwrap();
            assert!(advice.hint.contains(hint), "{message}: {}", advice.hint);
            assert_eq!(advice.again, again, "{message}");
        }
        assert_eq!(advice(Some(500), "something else", "m"), None);
    }
}
