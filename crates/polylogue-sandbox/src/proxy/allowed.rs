//! The hosts that a proxy allows.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::error::Error;

/// The default ports of a host.
const WEB: [u16; 2] = [80, 443];

/// The allowed hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Allowed(Vec<Rule>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    /// In lower case, without a dot at the end.
    host: String,
    /// Whether it matches all subdomains instead.
    below: bool,
    port: Option<u16>,
}

impl Allowed {
    /// # Errors
    /// When one is not a host name.
    pub(crate) fn of(hosts: &[String]) -> Result<Self, Error> {
        hosts.iter().map(|host| Rule::of(host)).collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn rule(&self, host: &str, port: u16) -> Option<&Rule> {
        self.0.iter().find(|rule| rule.allows(host, port))
    }

    /// Connects to an allowed host, or returns why it is refused.
    pub(crate) fn connect(&self, host: &str, port: u16, time: Duration) -> Result<TcpStream, String> {
        let host = plain(host);
        let rule = self.rule(&host, port).ok_or_else(|| {
            format!("`{host}` at port {port} is not among the hosts that code may reach: {}", self.in_words())
        })?;
        let found = (&*host, port).to_socket_addrs();
        let found = found.map_err(|error| format!("`{host}` is not to be found: {error}"))?;
        let found: Vec<SocketAddr> = found.filter(|address| rule.leads_to(address.ip())).collect();
        let mut why = format!(
            "`{host}` leads to this machine or a private network, which was not allowed by its address"
        );
        for address in found {
            match TcpStream::connect_timeout(&address, time) {
                Ok(stream) => return Ok(stream),
                Err(error) => why = format!("`{host}` cannot be reached: {error}"),
            }
        }
        Err(why)
    }

    fn in_words(&self) -> String {
        let shown = |rule: &Rule| {
            let below = if rule.below { "*." } else { "" };
            let port = rule.port.map_or(String::new(), |port| format!(":{port}"));
            format!("`{below}{}{port}`", rule.host)
        };
        self.0.iter().map(shown).collect::<Vec<_>>().join(", ")
    }
}

impl Rule {
    fn of(text: &str) -> Result<Self, Error> {
        let wrong = || {
            Error::Config(format!(
                "`{text}` is not a valid host name, such as `example.org`, `*.example.org` or `example.org:8080`"
            ))
        };
        let (host, port) = apart(text).ok_or_else(wrong)?;
        let (below, host) = host.strip_prefix("*.").map_or((false, host), |host| (true, host));
        let host = plain(host);
        let is_name = host.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_'));
        if host.is_empty() || !(is_name || host.parse::<Ipv6Addr>().is_ok()) {
            return Err(wrong());
        }
        Ok(Self { host, below, port })
    }

    fn allows(&self, host: &str, port: u16) -> bool {
        let is_port = self.port.map_or(WEB.contains(&port), |own| own == port);
        let is_host = if self.below {
            host.strip_suffix(&self.host).is_some_and(|rest| rest.ends_with('.') && rest.len() > 1)
        } else {
            host == self.host
        };
        is_port && is_host
    }

    /// Whether its name may resolve to this address: a public name must not resolve to a private address.
    pub(super) fn leads_to(&self, address: IpAddr) -> bool {
        is_public(address) || !self.below && (self.host == "localhost" || self.host.parse::<IpAddr>().is_ok())
    }
}

/// A name in the form used for comparison.
fn plain(host: &str) -> String {
    host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_ascii_lowercase()
}

/// A host and its optional port; with a port, an IPv6 address is in brackets.
pub(super) fn apart(text: &str) -> Option<(&str, Option<u16>)> {
    let after_bracket = text.rfind(']').map_or(0, |at| at + 1);
    match text.get(after_bracket..)?.rfind(':') {
        Some(at) if text.starts_with('[') || text.matches(':').count() == 1 => {
            let (host, port) = text.split_at_checked(after_bracket + at)?;
            Some((host, Some(port.strip_prefix(':')?.parse().ok().filter(|port| *port > 0)?)))
        }
        _ => Some((text, None)),
    }
}

/// Whether an address is public.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_4(address),
        IpAddr::V6(address) => inner(address).map_or_else(|| is_public_6(address), is_public_4),
    }
}

fn is_public_4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    // Of RFC 6890: this network, carriers' own, protocol assignments, benchmarks, and what is reserved.
    let is_special =
        matches!((a, b, c), (0 | 240..=255, _, _) | (100, 64..=127, _) | (192, 0, 0) | (198, 18 | 19, _));
    let is_inner = address.is_private() || address.is_loopback() || address.is_link_local();
    !(is_special || is_inner || address.is_multicast() || address.is_documentation())
}

fn is_public_6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    // What is given out is 2000::/3; of that 2001:db8::/32 is for documentation and 2001::/23 for protocols.
    first & 0xe000 == 0x2000 && !(first == 0x2001 && (second == 0xdb8 || second < 0x200))
}

/// The IPv4 address within an IPv6 address: mapped, compatible, NAT64 or 6to4.
fn inner(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let four = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Some(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => four(high, low),
        [0, 0, 0, 0, 0, 0, high, low] if high > 0 => four(high, low),
        [0x2002, high, low, ..] => four(high, low),
        _ => None,
    }
}
