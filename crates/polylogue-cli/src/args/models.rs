//! The commands `models` and `count`.

use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "Without a provider, the providers are listed. A provider's own list is requested if its server is local or \
                  its key is set. It is cached for a day in `~/.cache/polylogue/models`; that of a local server is not cached. Prices, limits \
                  and capabilities are from the table that ships with the program; prices in your own file replace those of the table. They \
                  are US dollars per million tokens."
)]
pub(crate) struct List {
    /// The provider, such as `openai`
    pub(crate) provider: Option<String>,

    /// Show prices: your own, or else the list prices
    #[arg(long)]
    pub(crate) price: bool,

    /// List only the built-in table; no server is asked
    #[arg(long, conflicts_with = "refresh")]
    pub(crate) offline: bool,

    /// Ask the provider, even if its list is cached
    #[arg(long)]
    pub(crate) refresh: bool,

    /// Print one line of JSON for each model
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The count is exact for models whose vocabulary ships with the program: those of OpenAI up to the gpt-5 family, \
                  and, with `local:PATH.gguf`, for the model in the file PATH if the program is built with models in the process. For \
                  others it is an upper bound. White space around the text is not counted. Nothing is sent anywhere."
)]
pub(crate) struct Count {
    /// The text; `@FILE` reads it from a file, `-` from standard input, and `@@` begins a text with `@`
    pub(crate) text: String,

    /// The model, as `provider:model`, or a list with commas. Default: the model of your settings
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// Print the result as one line of JSON for each model
    #[arg(long)]
    pub(crate) json: bool,
}
