//! The command lines of `polylogue serve` and `polylogue token`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use polylogue_server::{ChatShow, Scope, TrustedProxy};

use super::runs::duration;
use super::shared::{Budgets, TeamOptions, address, count, dollars};
use super::worker::{Internal, Takes, tenant};
use crate::shipped::team_file;

#[derive(Debug, Args)]
#[command(
    after_help = "The first line of the output is the URL. The line `token` has a token for programs: it is made and printed only if there is no \
    token yet, and only this machine can connect. `polylogue token new` makes others. The line `page` has a link that logs a browser in once, \
    within ten minutes. `polylogue token link` makes others."
)]
pub(crate) struct Serve {
    /// Team files, or folders of team files (`.yaml`)
    #[arg(required = true, value_parser = team_file())]
    pub(crate) teams: Vec<PathBuf>,

    /// The address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8787", value_parser = address)]
    pub(crate) listen: SocketAddr,

    /// The URL by which clients reach the server, such as `https://teams.example`, if it differs from the address of `--listen`
    #[arg(long, value_name = "URL")]
    pub(crate) public_url: Option<String>,

    /// Allow web pages of this origin, such as `https://app.example`, to use the server
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    pub(crate) origins: Vec<String>,

    /// Trust a reverse proxy, by its address or network, such as `10.0.0.0/8`, to name the client of a request (`X-Forwarded-For`, `Forwarded`). Limits on addresses then apply to its clients
    #[arg(long = "trusted-proxy", value_name = "CIDR")]
    pub(crate) trusted_proxies: Vec<TrustedProxy>,

    /// A header in which clients of chat completions send the id of their chat, such as `X-OpenWebUI-Chat-Id`: each of their chats has one conversation with a team
    #[arg(long = "conversation-header", value_name = "NAME")]
    pub(crate) conversation_headers: Vec<String>,

    /// What chat completions show of a conversation, unless a request has the header `X-Polylogue-Show`: `result`, `transcript` or `none`
    #[arg(long, value_name = "MODE", default_value = "result")]
    pub(crate) chat_show: ChatShow,

    /// Send all chat completions to the team, also those that user interfaces request on their own, such as titles and tags
    #[arg(long)]
    pub(crate) no_chores: bool,

    /// Also accept tokens of this authorization server (OAuth 2), such as `https://login.example`
    #[arg(long, value_name = "URL")]
    pub(crate) issuer: Option<String>,

    /// The audience (`aud`) that tokens of the authorization server must have. Default: the URL of `--public-url`
    #[arg(long, value_name = "URL", requires = "issuer")]
    pub(crate) audience: Option<String>,

    /// Change a limit on clients, such as `running=128`; times are in seconds. `docs/server.md` lists the limits
    #[arg(long = "limit", value_name = "NAME=NUMBER", value_parser = limit)]
    pub(crate) limits: Vec<(String, u64)>,

    /// Do not continue the conversations that the server was running when it last ended
    #[arg(long)]
    pub(crate) no_resume: bool,

    /// Also run conversations that other commands hand over with `--detach`, as `polylogue worker` does
    #[arg(long)]
    pub(crate) worker: bool,

    /// With `--worker`: run the conversations of these tenants, a list with commas. Default: all tenants of the store
    #[arg(long = "tenant", value_name = "NAMES", value_delimiter = ',', value_parser = tenant)]
    pub(crate) tenants: Vec<String>,

    #[command(flatten)]
    pub(crate) takes: Takes,

    #[command(flatten)]
    pub(crate) internal: Internal,

    #[command(flatten)]
    pub(crate) budgets: Budgets,

    #[command(flatten)]
    pub(crate) options: TeamOptions,
}

fn limit(given: &str) -> Result<(String, u64), String> {
    let (name, number) = given.split_once('=').ok_or("it must be `NAME=NUMBER`, such as `running=128`")?;
    Ok((name.trim().to_owned(), count(number.trim())?))
}

#[derive(Debug, Args)]
pub(crate) struct Token {
    #[command(subcommand)]
    pub(crate) command: TokenCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token, and print it once
    New(NewToken),
    /// Make a link that logs a browser in to the page of a server; it works once, within ten minutes
    Link(LinkToken),
    /// List tokens: id, tenant, scopes and name
    List(ListTokens),
    /// Revoke tokens: a running server refuses them from now on
    Revoke(RevokeTokens),
}

#[derive(Debug, Args)]
pub(crate) struct NewToken {
    /// What the token is for
    pub(crate) name: String,

    /// What the token allows, a list with commas: `read`, `run`, `answer`, `edit`, `admin`, `metrics`
    #[arg(long = "scope", value_name = "SCOPE", value_delimiter = ',', default_value = "read,run,answer")]
    pub(crate) scopes: Vec<Scope>,

    /// The tenant whose conversations the token can see
    #[arg(long, value_name = "TENANT", default_value = polylogue_server::Token::LOCAL)]
    pub(crate) tenant: String,

    /// A team that the token can see and run; can be repeated. Default: all teams
    #[arg(long = "team", value_name = "ID")]
    pub(crate) teams: Vec<String>,

    /// Maximum cost in dollars of the runs of the token in a day (UTC); models of unknown price are refused. Default: no limit
    #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
    pub(crate) cost_per_day: Option<f64>,

    /// Maximum number of input and output tokens of the runs of the token in a day (UTC). Default: no limit
    #[arg(long, value_name = "N", value_parser = count::<u64>)]
    pub(crate) tokens_per_day: Option<u64>,

    /// How long the token is valid, such as `12h` or `90d`. Default: until it is revoked
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) expires: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct LinkToken {
    /// The address of the server
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8787")]
    pub(crate) url: String,

    /// What the browser can do, a list with commas: `read`, `run`, `answer`, `edit`, `admin`, `metrics`
    #[arg(
        long = "scope",
        value_name = "SCOPE",
        value_delimiter = ',',
        default_value = "read,run,answer,edit"
    )]
    pub(crate) scopes: Vec<Scope>,

    /// The tenant whose conversations the browser can see
    #[arg(long, value_name = "TENANT", default_value = polylogue_server::Token::LOCAL)]
    pub(crate) tenant: String,

    /// A team that the browser can see and run; can be repeated. Default: all teams
    #[arg(long = "team", value_name = "ID")]
    pub(crate) teams: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ListTokens {
    /// Print one line of JSON for each
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeTokens {
    /// Ids of tokens, as `list` shows them
    #[arg(required = true)]
    pub(crate) ids: Vec<String>,
}
