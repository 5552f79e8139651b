//! A server: bound to an address, then run.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, ETAG, LOCATION};
use axum::http::{HeaderName, HeaderValue, Method, Response};
use axum::middleware::from_fn_with_state;
use polylogue_core::{Allowance, Budget};
use polylogue_http::OwnAddress;
use polylogue_runtime::{Runtime, StoreLocation};
use tokio::net::TcpListener;
use tokio::time::sleep;
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::app::App;
use crate::asked::continue_asked;
use crate::auth::auth;
use crate::chat_options::{ChatOptions, is_reserved};
use crate::forwarded::TrustedProxy;
use crate::issuer::{Issuer, IssuerOptions};
use crate::limits::ServerLimits;
use crate::listen::listen;
use crate::live::{LiveError, LiveNode, LiveOptions};
use crate::mcp;
use crate::names::Names;
use crate::openapi::document;
use crate::perimeter::perimeter;
use crate::problem::{ErrorForm, Problem};
use crate::request::RequestId;
use crate::restart::resume_all;
use crate::revocation::watch_tokens;
use crate::runs::stop_all;
use crate::served_tenants::ServedTenants;
use crate::source::{SourceError, TeamSource};
use crate::store_metrics::StoreMetrics;
use crate::table::{ROUTES, router};
use crate::tenants::{Tenants, server_folder};
use crate::token::{NewToken, Token, TokenError, TokenKind, TokenText};
use crate::token_file::TokenFile;
use crate::waiting::noted;

/// The options of a server.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// The address to listen at. Port 0: a free one.
    pub listen: SocketAddr,
    /// The store of the tenant [`Token::LOCAL`]. What the server keeps besides is next to it.
    pub place: StoreLocation,
    /// The address under which clients reach it, if that is another one.
    pub public_url: Option<String>,
    /// The origins of other sites whose pages may use the server, such as `https://example.com`.
    pub origins: Vec<String>,
    /// The proxies in front of it that say who sends a request. Limits on addresses are those of their clients.
    pub trusted_proxies: Vec<TrustedProxy>,
    /// The options of chat completions.
    pub chat: ChatOptions,
    /// The limits of clients.
    pub limits: ServerLimits,
    /// An authorization server whose tokens are accepted besides those of this server.
    pub issuer: Option<IssuerOptions>,
    /// Whether conversations that an earlier server was running continue at the start.
    pub resume: bool,
    /// The budget that all conversations of all tenants share, next to the budgets of tokens.
    pub budget: Option<Budget>,
    /// The budgets that they share with other processes, with the limits that are set: [`Runtime::with_shared_budgets`].
    pub shared_budgets: Vec<(String, Allowance)>,
    /// The options for other processes that follow what this one runs, if the store is one that processes share.
    pub live: LiveOptions,
}

impl ServerOptions {
    /// Creates the options of a server at `listen` for the conversations at `place`, with all defaults.
    pub fn new(listen: SocketAddr, place: StoreLocation) -> Self {
        let (public_url, origins, limits) = (None, Vec::new(), ServerLimits::default());
        Self {
            listen,
            place,
            public_url,
            origins,
            trusted_proxies: Vec::new(),
            chat: ChatOptions::default(),
            limits,
            issuer: None,
            resume: true,
            budget: None,
            shared_budgets: Vec::new(),
            live: LiveOptions::default(),
        }
    }
}

/// The reason why a server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// Others than this machine could connect, and no token was made on purpose.
    #[error("`{0}` can be reached from other machines, and no token was made yet")]
    NoToken(SocketAddr),
    /// The address cannot be used.
    #[error("nothing can listen on `{address}`: {why}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        why: std::io::Error,
    },
    /// The public address is no URL of a server.
    #[error("`{0}` is not the address of a server: `http://` or `https://`, a host and a port")]
    PublicUrl(String),
    /// An origin is not the origin of a site.
    #[error("`{0}` is not an origin: a scheme, a host and a port")]
    Origin(String),
    /// No request has a header of this name.
    #[error("`{0}` is not the name of a header")]
    Header(String),
    /// The header has another meaning, or is a secret.
    #[error("the header `{0}` does not identify a chat")]
    ReservedHeader(String),
    /// Nothing can be offered to other processes.
    #[error("the internal stream: {0}")]
    Live(#[from] LiveError),
    /// The authorization server cannot be used.
    #[error("the issuer: {0}")]
    Issuer(String),
    /// Tokens cannot be read or made.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// A team cannot be prepared.
    #[error("the team `{team}`: {error}")]
    Team {
        /// The id of the team.
        team: String,
        /// The error.
        error: SourceError,
    },
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] Box<polylogue_runtime::Error>),
}

impl ServerError {
    /// Returns how to fix it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoToken(_) => Some("make one with `polylogue token new`, or listen on `127.0.0.1`".into()),
            Self::Listen { .. } => {
                Some("choose another address with `--listen`; port 0 takes a free one".into())
            }
            Self::PublicUrl(_) | Self::Origin(_) => {
                Some("write it as `https://example.com`, without a path".into())
            }
            Self::Header(_) => Some("write it as `X-OpenWebUI-Chat-Id`, without a colon".into()),
            Self::ReservedHeader(_) => {
                Some("name one in which clients send the id of a chat, such as `X-OpenWebUI-Chat-Id`".into())
            }
            Self::Issuer(_) => Some(
                "`--issuer` is an address with `https://`, and `--audience` or `--public-url` the address of this server".into(),
            ),
            Self::Team { error, .. } => error.hint.clone(),
            Self::Store(error) => error.hint(),
            Self::Live(error) => Some(error.hint().into()),
            Self::Token(_) => None,
        }
    }
}

/// Returns the description of all routes, OpenAPI 3.1, as servers have it at `/openapi.json`.
pub fn openapi() -> serde_json::Value {
    document(&ROUTES)
}

/// Returns the file with the tokens of a server whose store is at `place`.
pub fn tokens_at(place: &StoreLocation) -> PathBuf {
    server_folder(place).join("tokens.json")
}

/// Returns the URL of the page of the server at `url` that logs in with `link`. It is in the fragment, which browsers send to
/// no server.
pub fn login_url(url: &str, link: &TokenText) -> String {
    format!("{}/#login={}", url.trim_end_matches('/'), link.reveal())
}

/// A server that is bound to its address.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    public_url: Option<String>,
    app: Arc<App>,
    first_token: Option<TokenText>,
    resume: bool,
    live: Option<LiveNode>,
    /// Keeps the tools of agents from it.
    own: OwnAddress,
    trusted_proxies: Arc<[TrustedProxy]>,
}

impl Server {
    /// Binds a server. All teams are prepared for the tenant [`Token::LOCAL`], so that mistakes show. Where only this machine can
    /// connect, a first token is made if there is none.
    ///
    /// # Errors
    /// [`ServerError`].
    pub async fn bind(options: ServerOptions, source: Arc<dyn TeamSource>) -> Result<Self, ServerError> {
        let ServerOptions {
            listen,
            place,
            public_url,
            origins,
            trusted_proxies,
            chat,
            limits,
            issuer,
            resume,
            budget,
            shared_budgets,
            live,
        } = options;
        let is_loopback = listen.ip().is_loopback();
        let tokens = TokenFile::at(tokens_at(&place));
        let has_tokens = tokens.all()?.iter().any(|token| token.kind == TokenKind::Key);
        if !is_loopback && !has_tokens && issuer.is_none() {
            return Err(ServerError::NoToken(listen));
        }
        let public = match &public_url {
            Some(url) => Some(Names::host_of(url).ok_or_else(|| ServerError::PublicUrl(url.clone()))?),
            None => None,
        };
        let is_tls = public_url.as_ref().is_some_and(|url| url.starts_with("https://"));
        let issuer = issuer.map(|options| Issuer::new(options, public_url.as_deref()));
        let issuer = issuer.transpose().map_err(ServerError::Issuer)?;
        let names = Names { is_loopback, public, is_tls, origins: checked(origins)? };
        let shared = Runtime::open_at(place.clone())
            .map_err(Box::new)?
            .with_shared_budgets(&shared_budgets)
            .await
            .map_err(Box::new)?;
        let names_of_budgets = shared_budgets.into_iter().map(|(name, _)| name).collect();
        let live = if place.is_shared() { Some(LiveNode::bind(&live).await?) } else { None };
        let tenants = Tenants::new(place, source.ids(), (budget, names_of_budgets), live.clone());
        drop(shared);
        let (routes, mcp) = (openapi(), Box::new(mcp::server(&limits)));
        let chat = with_headers(chat)?;
        let app = App::new(source, tenants, (tokens, issuer), names, (limits, chat), routes, mcp);
        let app = Arc::new(app);
        prepare(&app).await?;
        let bound = async { TcpListener::bind(listen).await.and_then(|l| Ok((l.local_addr()?, l))) };
        let (address, listener) = bound.await.map_err(|why| ServerError::Listen { address: listen, why })?;
        let first_token = match has_tokens || !is_loopback {
            true => None,
            false => Some(app.tokens.create(NewToken::local("first"))?.1),
        };
        let own = OwnAddress::new(address);
        let trusted_proxies = trusted_proxies.into();
        Ok(Self { listener, address, public_url, app, first_token, resume, live, own, trusted_proxies })
    }

    /// Returns the address that it listens on, with its real port.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Offers the conversations that this process runs to others that have the same store, if processes can share it.
    pub const fn live(&self) -> Option<&LiveNode> {
        self.live.as_ref()
    }

    /// Returns the counts of its stores: `/metrics` also has what is counted of others by it.
    pub fn store_metrics(&self) -> StoreMetrics {
        self.app.tenants.store_metrics.clone()
    }

    /// Returns the handle for workers in this process that run the conversations of its tenants.
    pub fn tenants(&self) -> ServedTenants {
        ServedTenants::new(Arc::clone(&self.app))
    }

    /// Returns the URL under which clients reach it.
    pub fn url(&self) -> String {
        self.public_url.clone().unwrap_or_else(|| format!("http://{}", self.address))
    }

    /// Returns the token that was made because there was none: show it once.
    pub const fn take_first_token(&mut self) -> Option<TokenText> {
        self.first_token.take()
    }

    /// Returns a URL of the page that logs a browser in once, within ten minutes.
    ///
    /// # Errors
    /// When the file of the tokens cannot be written.
    pub fn login_url(&self) -> Result<String, TokenError> {
        Ok(login_url(&self.url(), &self.app.tokens.create_link(NewToken::local("page"))?))
    }

    /// Returns the handle that has team files read again. Files that have changed are noticed without it; those that they
    /// include are not.
    pub fn reload(&self) -> Reload {
        Reload(Arc::clone(&self.app))
    }

    /// Serves until `stop` is ready and all connections have ended.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) {
        let Self { listener, app, resume, own, trusted_proxies, .. } = self;
        let router = layered(&app);
        // Until it is at rest, a server that stops tells its clients so.
        let over = tokio::sync::watch::Sender::new(false);
        let serving = listen(listener, router, (&app.limits, trusted_proxies), over.subscribe());
        let watching = async {
            loop {
                sleep(app.limits.team_check).await;
                app.tenants.reload(&*app.source, false).await;
            }
        };
        // What was spent counts before anything more is spent.
        app.spending.recover(&app.tenants).await;
        let stopping = async {
            if resume {
                resume_all(&app).await;
            }
            app.resumed.send_replace(true);
            tokio::select! {
                () = stop => {}
                () = watching => {}
                () = continue_asked(&app) => {}
                () = watch_tokens(&app.tokens, &app.token_changes) => {}
            }
            app.stopping.send_replace(true);
            stop_all(&app).await;
            app.mcp.close();
            over.send_replace(true);
        };
        futures_util::future::join(serving, stopping).await;
        noted(&app, None).await;
        app.promised.leave();
        drop(own);
    }
}

/// Reads team files again, while a server runs.
#[derive(Clone)]
pub struct Reload(Arc<App>);

impl Reload {
    /// Reads all team files again. Conversations that begin from now on have the new teams; those that run keep theirs. A file that cannot
    /// be used leaves its team as it was, and the list of teams says why.
    pub async fn all(&self) {
        self.0.tenants.reload(&*self.0.source, true).await;
    }
}

/// The routes within all checks.
fn layered(app: &Arc<App>) -> Router {
    router(app)
        .fallback(async |request: Request| {
            let problem =
                Problem::not_found("there is no such path").hint("`GET /openapi.json` lists the paths");
            respond(&problem, &request)
        })
        .method_not_allowed_fallback(async |request: Request| {
            let detail = format!("the path has no method `{}`", request.method());
            respond(
                &Problem::method_not_allowed(detail).hint("the header `Allow` lists those it has"),
                &request,
            )
        })
        .layer(from_fn_with_state(Arc::clone(app), auth))
        .layer(cors(&app.names.origins, &app.chat.conversation_headers))
        .layer(from_fn_with_state(Arc::clone(app), perimeter))
}

fn respond(problem: &Problem, request: &Request) -> Response<Body> {
    let id = request.extensions().get::<RequestId>().cloned().unwrap_or_default();
    problem.response(ErrorForm::of_path(request.uri().path()), &id.0)
}

/// What pages of the configured origins may do: exactly these origins, and never with cookies. `own_headers` are allowed besides those of the
/// protocols.
fn cors(origins: &[String], own_headers: &[String]) -> CorsLayer {
    let origins = origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok());
    let named = ["x-api-key", "idempotency-key", "if-match", "last-event-id", "x-request-id"];
    let named = named.into_iter().chain(mcp::HEADERS).map(HeaderName::from_static);
    let own = own_headers.iter().filter_map(|name| name.parse().ok());
    let headers = named.chain([AUTHORIZATION, CONTENT_TYPE]).chain(own);
    CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins))
        .allow_methods([Method::GET, Method::POST, Method::PATCH, Method::PUT, Method::DELETE])
        .allow_headers(headers.collect::<Vec<_>>())
        .expose_headers([
            ETAG,
            LOCATION,
            HeaderName::from_static("x-request-id"),
            HeaderName::from_static(mcp::SESSION),
        ])
}

/// Refuses origins that no browser would send.
fn checked(origins: Vec<String>) -> Result<Vec<String>, ServerError> {
    let is_origin = |origin: &str| {
        let authority = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
        authority.is_some_and(|host| !host.is_empty() && !host.contains(['/', '*', ' ']))
    };
    match origins.iter().find(|origin| !is_origin(origin)) {
        Some(wrong) => Err(ServerError::Origin(wrong.clone())),
        None => Ok(origins),
    }
}

/// Refuses names that no header has, and those of headers with another meaning.
fn with_headers(chat: ChatOptions) -> Result<ChatOptions, ServerError> {
    for name in &chat.conversation_headers {
        match name.parse::<HeaderName>() {
            Err(_) => return Err(ServerError::Header(name.clone())),
            Ok(parsed) if is_reserved(parsed.as_str()) => {
                return Err(ServerError::ReservedHeader(name.clone()));
            }
            Ok(_) => {}
        }
    }
    Ok(chat)
}

/// Prepares the teams of the tenant that the command line uses.
async fn prepare(app: &App) -> Result<(), ServerError> {
    let tenant = app.tenants.get(Token::LOCAL)?;
    tenant.runtime.check().await.map_err(Box::new)?;
    for team in app.source.ids() {
        let prepared = tenant.team(&*app.source, &team).await;
        prepared.transpose().map_err(|error| ServerError::Team { team, error })?;
    }
    Ok(())
}
