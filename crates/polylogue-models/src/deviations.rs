//! How the chat completions of providers deviate from OpenAI's in what they accept, and Anthropic's API at Amazon Bedrock from that at
//! Anthropic. What they send is read leniently in all of its forms.

/// The reasoning that an OpenAI-compatible server expects back with the messages of its own model.
///
/// There is no form for that after the last message of others alone. `DeepSeek` and the templates of models that read it between calls of
/// tools ignore what is before that message, and a later request without it would have another beginning, which no prompt cache has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SendReasoning {
    /// No reasoning: most servers ignore or refuse it.
    #[default]
    Never,
    /// The reasoning of the same model.
    Always,
    /// The reasoning of the same model, and a space with every other message of the agent: servers that require reasoning
    /// refuse a history without, and some of them count an empty text as none.
    AlwaysOrBlank,
}

impl SendReasoning {
    /// What goes with messages of the agent for which there is no reasoning of the same model.
    pub(crate) const fn filler(self) -> Option<&'static str> {
        match self {
            Self::Never | Self::Always => None,
            Self::AlwaysOrBlank => Some(" "),
        }
    }
}

/// The form in which documents and sounds are sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MediaForm {
    /// As by OpenAI: `file` and `input_audio` with their data.
    #[default]
    OpenAi,
    /// As by Mistral: `document_url` and `input_audio` with their address or data.
    Mistral,
}

/// The form in which the schema of a reply is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaForm {
    /// As by OpenAI: `json_schema` with a name.
    #[default]
    OpenAi,
    /// As by TGI: the type `json`, and the schema as `value`.
    Value,
}

/// The deviations of an endpoint from OpenAI's chat completions: fields with other names, and what is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deviations {
    /// The name of the field for the seed.
    pub seed: &'static str,
    /// Whether a tool can be chosen by its name. Otherwise any tool is.
    pub named_tool_choice: bool,
    /// Whether models that reason accept stop texts. The reply is cut at them in any case.
    pub stop_while_reasoning: bool,
    /// The form in which documents and sounds are sent.
    pub media: MediaForm,
    /// The form in which the schema of a reply is sent.
    pub schema: SchemaForm,
    /// Whether the schema of a reply must be that of an object, without alternatives at its root.
    pub schemas_of_objects: bool,
    /// Whether the endpoint refuses a `top_p` of 1, which changes nothing.
    pub top_p_below_one: bool,
    /// Whether the endpoint refuses a temperature of 0. One that is nearly 0 is sent instead.
    pub temperature_above_zero: bool,
    /// Whether requests name the prefix that they share (`prompt_cache_key`), so that they reach the same cache, and mark its end
    /// for models that write to their caches only there or at the end of a request.
    pub prompt_cache_key: bool,
    /// Whether the endpoint may reply by another model than the one that is asked, and names that: the log and the cost are
    /// then those of the model that replied.
    pub chooses_model: bool,
    /// The most tools that a request to chat completions or to Gemini's API can have, if that is documented of the provider.
    pub max_tools: Option<usize>,
    /// The most calls of tools that a message of the assistant can have, if that is known. More calls of a reply are sent as several
    /// messages, each with the results of its calls.
    pub max_calls: Option<usize>,
    /// The highest temperature that chat completions take, if that is documented.
    pub max_temperature: Option<u32>,
    /// Whether models that are known to reason take a limit on the reply's tokens only as `max_completion_tokens`, also behind another
    /// address.
    pub completion_limit_while_reasoning: bool,
    /// Parameters that the endpoint refuses.
    pub refuses: &'static [&'static str],
    /// Parameters that the provider's own servers refuse. Others, at another address, may take them.
    pub own_refuses: &'static [&'static str],
    /// Parameters that the endpoint refuses for models that are known to reason.
    pub refuses_while_reasoning: &'static [&'static str],
    /// Parts of the names of models that refuse returned reasoning, whatever others expect.
    pub refuses_reasoning: &'static [&'static str],
    /// Parts of the names of models that expect reasoning with every message of the agent
    /// ([`AlwaysOrBlank`](SendReasoning::AlwaysOrBlank)), where others expect [that of the same model](SendReasoning::Always).
    pub wants_reasoning: &'static [&'static str],
    /// Whether Anthropic's API has only its older version there for models that take a temperature and its like.
    pub older_version: bool,
}

impl Deviations {
    /// No deviations.
    pub const NONE: Self = Self {
        seed: "seed",
        named_tool_choice: true,
        stop_while_reasoning: true,
        media: MediaForm::OpenAi,
        schema: SchemaForm::OpenAi,
        schemas_of_objects: false,
        top_p_below_one: false,
        temperature_above_zero: false,
        prompt_cache_key: false,
        chooses_model: false,
        max_tools: None,
        max_calls: None,
        max_temperature: None,
        completion_limit_while_reasoning: false,
        refuses: &[],
        own_refuses: &[],
        refuses_while_reasoning: &[],
        refuses_reasoning: &[],
        wants_reasoning: &[],
        older_version: false,
    };

    /// Which reasoning the model named `model` expects back where others expect `usual`.
    pub(crate) fn reasoning_of(&self, model: &str, usual: SendReasoning) -> SendReasoning {
        let is_of = |parts: &[&str]| parts.iter().any(|part| model.contains(part));
        match usual {
            _ if is_of(self.refuses_reasoning) => SendReasoning::Never,
            SendReasoning::Always if is_of(self.wants_reasoning) => SendReasoning::AlwaysOrBlank,
            usual => usual,
        }
    }

    /// These at another address: without what is known of the provider's own servers only, unless it `is_own`.
    pub(crate) fn at(self, is_own: bool) -> Self {
        Self {
            prompt_cache_key: self.prompt_cache_key && is_own,
            schemas_of_objects: self.schemas_of_objects && is_own,
            max_tools: self.max_tools.filter(|_| is_own),
            max_temperature: self.max_temperature.filter(|_| is_own),
            own_refuses: if is_own { self.own_refuses } else { &[] },
            ..self
        }
    }
}

impl Default for Deviations {
    fn default() -> Self {
        Self::NONE
    }
}

/// How a server is started so that it reads the calls of tools that its model writes. Without that, they are texts of the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ToolParser {
    /// What the server is called.
    pub(crate) server: &'static str,
    pub(crate) flags: &'static str,
}

/// The deviations of a provider.
pub(crate) struct Row {
    provider: &'static str,
    /// Whether a message that only calls tools can have `null` as its content. Otherwise it has none.
    pub(crate) null_content: bool,
    /// Whether `stream_options` requests usage.
    pub(crate) stream_usage: bool,
    /// The exact length of the ids of calls.
    pub(crate) call_id_length: Option<usize>,
    /// Which reasoning it expects back.
    pub(crate) reasoning: SendReasoning,
    /// How it is started to read calls of tools, if it has an option for that.
    pub(crate) tool_parser: Option<ToolParser>,
    pub(crate) fields: Deviations,
}

/// A provider that accepts what OpenAI accepts.
const USUAL: Row = Row {
    provider: "",
    null_content: true,
    stream_usage: true,
    call_id_length: None,
    reasoning: SendReasoning::Never,
    tool_parser: None,
    fields: Deviations::NONE,
};

/// A provider of OpenAI's models, those that reason among them.
/// The numbers of calls, <https://github.com/openai/openai-dotnet/issues/317>, and of tools: <https://learn.microsoft.com/en-us/azure/ai-foundry/openai/quotas-limits>, and refusals of OpenAI.
/// The temperature, and no `top_k`: <https://platform.openai.com/docs/api-reference/chat/create>.
const OPENAI: Row = Row {
    fields: Deviations {
        stop_while_reasoning: false,
        schemas_of_objects: true,
        max_tools: Some(128),
        max_calls: Some(128),
        max_temperature: Some(2),
        completion_limit_while_reasoning: true,
        own_refuses: &["top_k"],
        refuses_while_reasoning: &["temperature", "top_p"],
        ..Deviations::NONE
    },
    ..USUAL
};

/// OpenAI itself. Azure documents the key for some models, and refuses it for deployments of others.
/// <https://developers.openai.com/api/docs/guides/prompt-caching>
const AT_OPENAI: Row = Row { fields: Deviations { prompt_cache_key: true, ..OPENAI.fields }, ..OPENAI };

const ROWS: &[Row] = &[
    Row { provider: "openai", ..AT_OPENAI },
    Row { provider: "openai-chat", ..AT_OPENAI },
    Row { provider: "openai-responses", ..AT_OPENAI },
    Row { provider: "azure", ..OPENAI },
    // <https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling>
    Row { provider: "vertex", fields: Deviations { max_tools: Some(128), ..Deviations::NONE }, ..USUAL },
    // It rejects unknown fields, and reports usage unasked.
    Row {
        provider: "mistral",
        stream_usage: false,
        call_id_length: Some(9),
        reasoning: SendReasoning::Always,
        fields: Deviations {
            seed: "random_seed",
            media: MediaForm::Mistral,
            refuses: &["top_k"],
            ..Deviations::NONE
        },
        ..USUAL
    },
    // It requires a call of any tool, or of none.
    Row {
        provider: "cohere",
        fields: Deviations {
            named_tool_choice: false,
            refuses: &["top_k", "parallel_tool_calls"],
            ..Deviations::NONE
        },
        ..USUAL
    },
    Row {
        provider: "deepseek",
        reasoning: SendReasoning::AlwaysOrBlank,
        fields: Deviations { refuses_reasoning: &["r1"], ..Deviations::NONE },
        ..USUAL
    },
    // It hands `reasoning_details` on to the provider behind it. DeepSeek's and Moonshot's models refuse messages without
    // `reasoning_content` there, too, <https://github.com/UKGovernmentBEIS/inspect_ai/issues/4079>.
    Row {
        provider: "openrouter",
        reasoning: SendReasoning::Always,
        fields: Deviations {
            chooses_model: true,
            wants_reasoning: &["deepseek-v4", "kimi-k"],
            ..Deviations::NONE
        },
        ..USUAL
    },
    // Templates of models that think between calls read it, <https://github.com/vllm-project/vllm/pull/28531>; others drop it.
    // Calls: <https://docs.vllm.ai/en/latest/features/tool_calling.html>.
    Row {
        provider: "vllm",
        reasoning: SendReasoning::Always,
        tool_parser: Some(ToolParser {
            server: "vLLM",
            flags: "--enable-auto-tool-choice --tool-call-parser NAME",
        }),
        ..USUAL
    },
    // It puts returned reasoning into templates that have a place for it, and ignores it for others,
    // <https://github.com/ggml-org/llama.cpp/pull/18994>. A tool that is named is ignored, and any or none is called,
    // <https://github.com/ggml-org/llama.cpp/issues/26535>. Calls: <https://github.com/ggml-org/llama.cpp/blob/master/docs/function-calling.md>.
    Row {
        provider: "llamacpp",
        reasoning: SendReasoning::Always,
        tool_parser: Some(ToolParser { server: "llama.cpp", flags: "--jinja" }),
        fields: Deviations { named_tool_choice: false, ..Deviations::NONE },
        ..USUAL
    },
    // As vLLM, by the name `reasoning_content`. Calls: <https://docs.sglang.ai/advanced_features/tool_parser.html>.
    Row {
        provider: "sglang",
        reasoning: SendReasoning::Always,
        tool_parser: Some(ToolParser { server: "SGLang", flags: "--tool-call-parser NAME" }),
        ..USUAL
    },
    // Its models that think refuse calls of tools without reasoning, also those of other models, and an empty one is missing to them,
    // <https://github.com/openclaw/openclaw/issues/70565>.
    Row { provider: "moonshot", reasoning: SendReasoning::AlwaysOrBlank, ..USUAL },
    // Formats of replies are its grammars, <https://huggingface.co/docs/text-generation-inference/conceptual/guidance>.
    Row {
        provider: "tgi",
        fields: Deviations {
            schema: SchemaForm::Value,
            top_p_below_one: true,
            temperature_above_zero: true,
            ..Deviations::NONE
        },
        ..USUAL
    },
    // Some of its models refuse `null`.
    Row { provider: "together", null_content: false, ..USUAL },
    Row { provider: "groq", fields: Deviations { refuses: &["top_k"], ..Deviations::NONE }, ..USUAL },
    Row { provider: "xai", fields: Deviations { stop_while_reasoning: false, ..Deviations::NONE }, ..USUAL },
    // Anthropic's version 2026-10-21 is available there from Claude 4.7 on, the first models without a temperature,
    // <https://platform.claude.com/docs/en/api/versioning>.
    Row {
        provider: "bedrock-mantle",
        fields: Deviations { older_version: true, ..Deviations::NONE },
        ..USUAL
    },
    Row {
        provider: "lmstudio",
        fields: Deviations { named_tool_choice: false, ..Deviations::NONE },
        ..USUAL
    },
];

/// The deviations of the provider named `provider`.
pub(crate) fn of(provider: &str) -> &'static Row {
    ROWS.iter().find(|row| row.provider == provider).unwrap_or(&USUAL)
}

/// How each of the servers is started that have an option for reading calls of tools.
pub(crate) fn tool_parsers() -> impl Iterator<Item = ToolParser> {
    ROWS.iter().filter_map(|row| row.tool_parser)
}
