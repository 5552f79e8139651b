//! Fetches pages, with limits on addresses, time and size.

use std::sync::Mutex;
use std::time::Duration;

use polylogue_core::text;
use polylogue_http::{Client, NetworkAccess, Proxies, host_of};
use tokio::time::Instant;
use url::{Position, Url};

use super::charset::decode;
use super::html::{Page, read_html};
use super::kind::Kind;
use super::robots::{self, Rules};
use crate::blocking::blocking;
use crate::exchange::{Ask, End, Reply, ask, status_in_words};

/// Maximum number of redirects.
const MOST_REDIRECTS: usize = 5;
/// Maximum length of an address in bytes. Each rule of a site's `robots.txt` is compared with it, and sites write both.
pub(super) const LONGEST_ADDRESS: usize = 8 * 1024;
/// How many `robots.txt` files are cached, and for how long; the RFC allows a day at most.
const MOST_SITES: usize = 256;
const REMEMBERED: Duration = Duration::from_secs(3600);

/// Fetches pages.
///
/// It requests only what its [`NetworkAccess`] allows, at every step; follows at most five redirects; requests `robots.txt` first, once an
/// hour, and obeys it.
#[derive(Debug)]
#[must_use]
pub struct Fetcher {
    client: Client,
    time: Duration,
    bytes: usize,
    robots: bool,
    redirects: Option<RedirectRule>,
    known: Mutex<Vec<(String, Instant, Rules)>>,
}

/// Says whether a redirect from one host to another is followed.
type Follows = dyn Fn(&str, &str) -> bool + Send + Sync;

#[derive(derive_more::Debug)]
#[debug("RedirectRule")]
struct RedirectRule(Box<Follows>);

/// A fetched page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The address after redirects.
    pub url: Url,
    /// The title and text.
    pub page: Page,
}

impl Fetcher {
    /// Creates a fetcher for the addresses that `reach` allows. Default limits: 30 s and 4 MiB for a page.
    pub fn new(reach: NetworkAccess) -> Self {
        Self::by(Client::new(reach))
    }

    /// Creates a fetcher that sends its requests with `client`.
    pub fn by(client: Client) -> Self {
        let (time, bytes, robots) = (Duration::from_secs(30), 4 << 20, true);
        Self { client, time, bytes, robots, redirects: None, known: Mutex::default() }
    }

    /// Sets the proxies.
    pub fn proxies(self, proxies: Proxies) -> Self {
        Self { client: self.client.proxies(proxies), ..self }
    }

    /// Sets the timeout of a page, including redirects and `robots.txt`.
    pub fn time(self, time: Duration) -> Self {
        Self { time, ..self }
    }

    /// Sets how much of a page is read, in decompressed bytes. Longer pages are cut.
    pub fn bytes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }

    /// Ignores `robots.txt`. The user must be permitted to do that.
    pub fn ignoring_robots(self) -> Self {
        Self { robots: false, ..self }
    }

    /// Follows a redirect from one host to another only if `follows` is true of the two, each with its port. Instead of a page
    /// to which none is followed, its address is returned. Default: all are followed.
    pub fn redirects(self, follows: impl Fn(&str, &str) -> bool + Send + Sync + 'static) -> Self {
        Self { redirects: Some(RedirectRule(Box::new(follows))), ..self }
    }

    /// Returns the allowed addresses.
    pub const fn reach(&self) -> &NetworkAccess {
        self.client.reach()
    }

    /// Fetches the page at `address`.
    ///
    /// # Errors
    /// When the page is not allowed, cannot be fetched, or is not text; the message is for a model.
    pub async fn fetch(&self, address: &str) -> Result<Fetched, String> {
        let mut url =
            Url::parse(address.trim()).map_err(|why| format!("`{address}` is not an address: {why}"))?;
        url.set_fragment(None);
        let fetching = async {
            Ok(match self.follow(url).await? {
                Followed::Page(url, reply) => Fetched { page: read(url.clone(), reply).await?, url },
                Followed::Elsewhere(url, next) => {
                    let text = format!("(The page is at another host. Fetch it there: {next})");
                    Fetched { url, page: Page { title: String::new(), text, is_cut: false } }
                }
            })
        };
        // Reading counts as well. It is done apart, and ends by itself.
        let fetched = tokio::time::timeout(self.time, fetching).await;
        fetched.map_err(|_| format!("`{address}` did not answer within {} s", self.time.as_secs_f32()))?
    }

    async fn follow(&self, mut url: Url) -> Result<Followed, String> {
        for _ in 0..=MOST_REDIRECTS {
            self.check(&url).await?;
            let asked =
                Ask::get().header("accept", "text/html, application/xhtml+xml, text/*;q=0.9, */*;q=0.1");
            let reply = ask(&self.client, &url, asked, self.bytes).await.map_err(|why| cannot(&url, &why))?;
            match (reply.status, &reply.location) {
                (301 | 302 | 303 | 307 | 308, Some(location)) => {
                    let next =
                        url.join(location).map_err(|_| cannot(&url, "it leads to what is not an address"))?;
                    if self.is_elsewhere(&url, &next) {
                        return Ok(Followed::Elsewhere(url, next));
                    }
                    url = next;
                    url.set_fragment(None);
                }
                (200..=299, _) => return Ok(Followed::Page(url, reply)),
                (status, _) => return Err(format!("`{url}` answers {}", status_in_words(status))),
            }
        }
        Err(cannot(&url, &format!("it leads elsewhere more than {MOST_REDIRECTS} times")))
    }

    /// Whether a redirect of `from` leads to a host that is not asked without another call.
    fn is_elsewhere(&self, from: &Url, to: &Url) -> bool {
        let host = |url: &Url| host_of(url.as_str()).unwrap_or_default();
        let (from, to) = (host(from), host(to));
        from != to && self.redirects.as_ref().is_some_and(|RedirectRule(follows)| !follows(&from, &to))
    }

    /// Checks whether `url` may be requested: its length, the network access, and what its site says.
    async fn check(&self, url: &Url) -> Result<(), String> {
        if url.as_str().len() > LONGEST_ADDRESS {
            return Err(cannot(url, &format!("its address has more than {LONGEST_ADDRESS} bytes")));
        }
        // Forbidden hosts are not contacted.
        self.reach().check_url(url).map_err(|why| cannot(url, &why.to_string()))?;
        if !self.robots {
            return Ok(());
        }
        let site = &url[..Position::BeforePath];
        let rules = match self.known(site) {
            Some(rules) => rules,
            None => self.learn(site).await.map_err(|why| cannot(url, &why))?,
        };
        if rules.allow(&url[Position::BeforePath..Position::AfterQuery]) {
            return Ok(());
        }
        Err(cannot(url, "its site asks programs not to fetch it (`robots.txt`)"))
    }

    fn known(&self, site: &str) -> Option<Rules> {
        let known = self.known.lock().ok()?;
        let (.., rules) = known.iter().find(|(of, since, _)| of == site && since.elapsed() < REMEMBERED)?;
        Some(rules.clone())
    }

    /// Requests the `robots.txt` of a site.
    async fn learn(&self, site: &str) -> Result<Rules, String> {
        let mut url = Url::parse(&format!("{site}/robots.txt")).map_err(|why| why.to_string())?;
        let mut rules = Rules::ALL;
        for _ in 0..=MOST_REDIRECTS {
            let asked = Ask::get().header("accept", "text/plain");
            let reply = ask(&self.client, &url, asked, robots::MAX_BYTES).await?;
            match (reply.status, reply.location.and_then(|location| url.join(&location).ok())) {
                (300..=399, Some(next)) if !self.is_elsewhere(&url, &next) => {
                    url = next;
                    continue;
                }
                (200..=299, _) => rules = Rules::of(&String::from_utf8_lossy(&reply.body)),
                // A site that is out of order has not said that it may be visited.
                (500.., _) => {
                    return Err(format!("its `robots.txt` answers {}", status_in_words(reply.status)));
                }
                // A file that is not there forbids nothing, nor does one at a host that is not asked without another call.
                _ => {}
            }
            break;
        }
        if let Ok(mut known) = self.known.lock() {
            known.retain(|(of, since, _)| of != site && since.elapsed() < REMEMBERED);
            if known.len() >= MOST_SITES {
                known.remove(0);
            }
            known.push((site.to_owned(), Instant::now(), rules.clone()));
        }
        Ok(rules)
    }
}

/// Where an address leads.
enum Followed {
    /// To this page.
    Page(Url, Reply),
    /// To a redirect of the first address, which is not followed to the second one.
    Elsewhere(Url, Url),
}

fn cannot(url: &Url, why: &str) -> String {
    // What is not a web address may be anything, and long.
    let shown = text::excerpt(url.as_str(), 300);
    format!("`{shown}` cannot be fetched: {why}")
}

/// Parses the response in a background thread: a large page takes a while.
async fn read(url: Url, reply: Reply) -> Result<Page, String> {
    let Reply { content_type, body, end, .. } = reply;
    let kind =
        Kind::of(content_type.as_deref(), &body).map_err(|what| cannot(&url, &format!("it is {what}")))?;
    if end == End::Broken && body.is_empty() {
        return Err(cannot(&url, "the connection broke"));
    }
    let reading = move || {
        let text = decode(&body, content_type.as_deref());
        let mut page = match kind {
            Kind::Html => read_html(&text, &url),
            Kind::Text => Page { title: String::new(), text: text.trim_end().to_owned(), is_cut: false },
        };
        page.is_cut |= end != End::Whole;
        page
    };
    blocking(reading).await.map_err(|why| why.0)
}
