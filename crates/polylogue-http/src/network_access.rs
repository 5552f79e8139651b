//! The addresses that requests from models and pages may reach.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use url::{Host, Url};

use crate::address::{covers, is_never_meant, not_public};

/// The allowed addresses of requests: public ones at the usual ports and additional ones, or only some hosts.
///
/// The address that a name resolves to is checked, and the connection goes to exactly that address.
///
/// ```
/// use polylogue_http::NetworkAccess;
/// let reach = NetworkAccess::public().allowing(["wiki.house.example".parse()?, "10.1.0.0/16".parse()?]);
/// assert!(reach.check_url(&"https://example.org/".parse()?).is_ok());
/// assert!(reach.check_url(&"http://127.1/".parse()?).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetworkAccess {
    /// Whether only `allowed` may be reached.
    only: bool,
    allowed: Vec<Destination>,
}

/// An allowed host or network: `example.org`, `*.example.org`, `localhost:8080`, `10.1.0.0/16`, `[fd00::1]:8080`.
///
/// The default ports of a host are 80 and 443; a network includes all ports. `*.example.org` matches all hosts below
/// `example.org`, but not itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    who: DestinationHost,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum DestinationHost {
    Host(String),
    Below(String),
    Net(IpAddr, u8),
}

/// The ports that are allowed by default.
const USUAL_PORTS: [u16; 2] = [80, 443];

impl NetworkAccess {
    /// Allows public addresses, at the ports 80 and 443.
    pub fn public() -> Self {
        Self::default()
    }

    /// Allows only `places`, which may be private.
    pub fn only(places: impl IntoIterator<Item = Destination>) -> Self {
        Self { only: true, allowed: places.into_iter().collect() }
    }

    /// Allows `places` as well, which may be private. An allowed host name may resolve to any address except cloud metadata
    /// services: those must be allowed by address or network.
    #[must_use]
    pub fn allowing(mut self, places: impl IntoIterator<Item = Destination>) -> Self {
        self.allowed.extend(places);
        self
    }

    /// Checks `url` as far as possible without resolving its name.
    ///
    /// # Errors
    /// The reason, if it is not allowed.
    pub fn check_url(&self, url: &Url) -> Result<(), Refusal> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refusal(format!(
                "the scheme `{}:` is not supported; it must be `http:` or `https:`",
                url.scheme()
            )));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refusal("an address may hold no user and no password".into()));
        }
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
            return Err(Refusal("the address names no host".into()));
        };
        let literal = match host {
            Host::Domain(name) if name.trim_end_matches('.').is_empty() => {
                return Err(Refusal("the address names no host".into()));
            }
            Host::Domain(_) => None,
            Host::Ipv4(address) => Some(IpAddr::from(address)),
            Host::Ipv6(address) => Some(IpAddr::from(address)),
        };
        let host = host.to_string();
        if let Some(address) = literal {
            return self.check(&host, SocketAddr::new(address, port));
        }
        let named = self.names(&host, port);
        // The name may resolve to an address in such a network, at any port: checked after resolution.
        let may_be_in_net = self.allowed.iter().any(|place| matches!(place.who, DestinationHost::Net(..)));
        match self.only {
            true if !named => Err(not_among(&host, port)),
            false if !named && !may_be_in_net && !USUAL_PORTS.contains(&port) => Err(wrong_port(&host, port)),
            _ => Ok(()),
        }
    }

    /// Checks a connection to `address`, which `host` resolved to.
    ///
    /// # Errors
    /// The reason, if it is not allowed.
    pub fn check(&self, host: &str, address: SocketAddr) -> Result<(), Refusal> {
        let (ip, port) = (address.ip(), address.port());
        if own().iter().any(|own| leads_to(*own, address)) {
            return Err(Refusal(format!(
                "`{host}` at port {port} is the server that runs this conversation, which its agents may not use"
            )));
        }
        let (named, in_net) = (self.names(host, port), self.has_net(ip, port));
        let is_literal = bare(host).parse() == Ok(ip);
        if self.only && !named && !(in_net && is_literal) {
            return Err(not_among(host, port));
        }
        match not_public(ip) {
            _ if in_net => Ok(()),
            Some(what) if !named || is_never_meant(ip) => {
                let is = if is_literal { String::new() } else { format!(", which is {ip},") };
                Err(Refusal(format!("`{host}`{is} is not public: the address is for {what}")))
            }
            None if !named && !USUAL_PORTS.contains(&port) => Err(wrong_port(host, port)),
            _ => Ok(()),
        }
    }

    fn names(&self, host: &str, port: u16) -> bool {
        self.allowed.iter().any(|place| place.names(host, port))
    }

    /// Whether `address` is allowed, itself or by its network.
    fn has_net(&self, address: IpAddr, port: u16) -> bool {
        self.allowed.iter().any(|place| {
            matches!(place.who, DestinationHost::Net(net, bits) if covers(net, bits, address))
                && place.port.is_none_or(|only| only == port)
        })
    }
}

/// Addresses at which this process is a server.
static OWN: RwLock<Vec<SocketAddr>> = RwLock::new(Vec::new());

fn own() -> RwLockReadGuard<'static, Vec<SocketAddr>> {
    OWN.read().unwrap_or_else(PoisonError::into_inner)
}

/// An address at which this process is a server. While this exists, no request whose address comes from a model, a page or a team is sent
/// to it, whatever is allowed: agents of a server must not use it as a person can.
#[derive(Debug)]
pub struct OwnAddress(SocketAddr);

impl OwnAddress {
    /// Registers the address of a server that listens.
    pub fn new(address: SocketAddr) -> Self {
        OWN.write().unwrap_or_else(PoisonError::into_inner).push(address);
        Self(address)
    }
}

impl Drop for OwnAddress {
    fn drop(&mut self) {
        let mut own = OWN.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = own.iter().position(|own| *own == self.0) {
            own.swap_remove(at);
        }
    }
}

/// Whether a connection to `address` ends at the server that listens at `own`.
fn leads_to(own: SocketAddr, address: SocketAddr) -> bool {
    let (own_ip, ip) = (own.ip().to_canonical(), address.ip().to_canonical());
    // One of all addresses of this machine, as far as they can be told from others.
    let is_here = |ip: IpAddr| ip.is_loopback() || ip.is_unspecified();
    let leads = match own_ip.is_unspecified() {
        true => not_public(ip).is_some(),
        false => ip == own_ip || is_here(ip) && is_here(own_ip),
    };
    leads && own.port() == address.port()
}

/// An address without the brackets of IPv6.
fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

fn not_among(host: &str, port: u16) -> Refusal {
    Refusal(format!("`{host}` at port {port} is not among the hosts that may be reached"))
}

fn wrong_port(host: &str, port: u16) -> Refusal {
    Refusal(format!("the port {port} of `{host}` is not reached, only 80 and 443"))
}

impl Destination {
    /// Whether it is the host `host` at `port`.
    fn names(&self, host: &str, port: u16) -> bool {
        let host = host.trim_end_matches('.');
        let is_host = match &self.who {
            DestinationHost::Host(name) => name.eq_ignore_ascii_case(host),
            DestinationHost::Below(name) => {
                let before = host.len().checked_sub(name.len() + 1);
                let cut =
                    before.filter(|before| *before > 0).and_then(|before| host.split_at_checked(before));
                cut.is_some_and(|(_, end)| {
                    end.strip_prefix('.').is_some_and(|end| end.eq_ignore_ascii_case(name))
                })
            }
            DestinationHost::Net(..) => false,
        };
        is_host && self.port.map_or_else(|| USUAL_PORTS.contains(&port), |only| only == port)
    }
}

impl FromStr for Destination {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let wrong = || {
            Refusal(format!(
                "`{text}` is neither a host nor a network, such as `example.org`, `localhost:8080`, `10.1.0.0/16`"
            ))
        };
        let ip = |text: &str| bare(text).parse::<IpAddr>().ok();
        if let Some((net, bits)) = text.split_once('/') {
            let (net, bits) = ip(net).zip(bits.parse::<u8>().ok()).ok_or_else(wrong)?;
            let most = if net.is_ipv4() { 32 } else { 128 };
            return if bits <= most {
                Ok(Self { who: DestinationHost::Net(net, bits), port: None })
            } else {
                Err(wrong())
            };
        }
        let alone = |address: IpAddr| DestinationHost::Net(address, if address.is_ipv4() { 32 } else { 128 });
        if let Some(address) = ip(text) {
            return Ok(Self { who: alone(address), port: None });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().map_err(|_| wrong())?)),
            None => (text, None),
        };
        if let Some(address) = ip(host) {
            return Ok(Self { who: alone(address), port });
        }
        let (is_below, name) = host.strip_prefix("*.").map_or((false, host), |name| (true, name));
        // As the web writes it: names of other scripts in their form of ASCII.
        let Ok(Host::Domain(name)) = Host::parse(name) else { return Err(wrong()) };
        let name = name.trim_end_matches('.').to_owned();
        if name.is_empty() || name.contains('*') {
            return Err(wrong());
        }
        Ok(Self {
            who: if is_below { DestinationHost::Below(name) } else { DestinationHost::Host(name) },
            port,
        })
    }
}

/// The reason why something is not reached, in words that a model can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal(String);

impl Refusal {
    pub(crate) const fn new(why: String) -> Self {
        Self(why)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> Destination {
        text.parse().unwrap()
    }

    fn is_ok(reach: &NetworkAccess, url: &str) -> bool {
        reach.check_url(&url.parse().unwrap()).is_ok()
    }

    #[test]
    fn no_way_of_writing_an_address_hides_what_it_is() {
        // Every one of these is refused before any name is looked up.
        for url in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://127.0.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0x7f.1/",
            "http://0177.0.0.1/",
            "http://017700000001/",
            "http://127.0.0.1./",
            "http://0/",
            "http://0.0.0.0/",
            "http://①②⑦.⓪.⓪.①/",
            "http://１２７.０.０.１/",
            "http://127%2e0%2e0%2e1/",
            "http://[::1]/",
            "http://[::]/",
            "http://[0:0:0:0:0:0:0:1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://[::127.0.0.1]/",
            "http://[64:ff9b::127.0.0.1]/",
            "http://[64:ff9b:1::a00:1]/",
            "http://[2002:7f00:1::]/",
            "http://[2002:a9fe:a9fe::1]/",
            "http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/",
            "http://[fe80::1]/",
            "http://[fc00::1]/",
            "http://[fd00:ec2::254]/",
            "http://[fec0::1]/",
            "http://[ff02::1]/",
            "http://10.0.0.1/",
            "http://10.1/",
            "http://012.1.1.1/",
            "http://172.16.0.1/",
            "http://192.168.1.1/",
            "http://192.168.257/",
            "http://100.64.0.1/",
            "http://169.254.169.254/latest/meta-data/",
            "http://0xa9fea9fe/",
            "http://2852039166/",
            "http://169.254.170.2/",
            "http://192.0.0.192/",
            "http://198.18.0.1/",
            "http://224.0.0.1/",
            "http://255.255.255.255/",
            "http://240.0.0.1/",
            "https://user:pass@example.org/",
            "http://user@example.org/",
            "http://example.org@127.0.0.1/",
            "ftp://example.org/",
            "file:///etc/passwd",
            "gopher://example.org/",
            "data:text/html,x",
            "javascript:1",
            "unix:/run/x.sock",
            "ws://example.org/",
            "http://example.org:22/",
            "http://example.org:6379/",
            "https://example.org:8443/",
            "http://1.1.1.1:25/",
            "http://./",
        ] {
            let url: Url = url.parse().unwrap_or_else(|why| panic!("{url}: {why}"));
            assert!(NetworkAccess::public().check_url(&url).is_err(), "{url}");
        }
    }

    #[test]
    fn public_addresses_at_the_usual_ports_are_reached() {
        for url in [
            "http://example.org/",
            "https://example.org",
            "http://example.org:443/",
            "https://1.1.1.1/",
            "http://[2606:4700::1]/",
        ] {
            assert!(is_ok(&NetworkAccess::public(), url), "{url}");
        }
    }

    #[test]
    fn only_allowed_private_addresses_are_reached() {
        let reach = NetworkAccess::public()
            .allowing(["*.house.example", "db.example:8080", "10.1.0.0/16", "[fd00::7]:81"].map(place));
        for (url, expected) in [
            ("http://db.example:8080/", true),
            ("http://DB.example.:8080/", true),
            ("http://1.1.1.1:8081/", false),
            ("http://10.1.2.3:9999/", true),
            ("http://10.2.2.3/", false),
            ("http://[fd00::7]:81/", true),
            ("http://[fd00::7]/", false),
            ("http://[fd00::8]:81/", false),
        ] {
            assert_eq!(is_ok(&reach, url), expected, "{url}");
        }
        let to = |host: &str, address: &str| reach.check(host, address.parse().unwrap()).is_ok();
        assert!(to("wiki.house.example", "192.168.1.1:443") && !to("house.example", "192.168.1.1:443"));
        assert!(
            !to("xhouse.example", "192.168.1.1:443") && !to("house.example.evil.example", "192.168.1.1:443")
        );
        assert!(to("db.example", "127.0.0.1:8080") && !to("db.example", "127.0.0.1:443"));
        assert!(to("any.example", "10.1.9.9:80") && !to("any.example", "10.9.9.9:80"));
        // Where clouds keep their secrets, a name is not enough.
        assert!(
            !to("wiki.house.example", "169.254.169.254:80")
                && !to("wiki.house.example", "[fd00:ec2::254]:80")
        );
        let named = NetworkAccess::public().allowing([place("169.254.169.254")]);
        assert!(is_ok(&named, "http://169.254.169.254/latest"));
    }

    #[test]
    fn only_listed_hosts_are_reached() {
        let only = NetworkAccess::only(["api.example".parse().unwrap(), place("127.0.0.1:81")]);
        assert!(is_ok(&only, "https://api.example/x") && is_ok(&only, "http://127.0.0.1:81/"));
        for url in [
            "https://example.org/",
            "http://127.0.0.1/",
            "https://api.example.evil/",
            "https://api.example:8443/",
            "https://1.1.1.1",
        ] {
            assert!(!is_ok(&only, url), "{url}");
        }
        assert!(only.check("api.example", "10.0.0.1:443".parse().unwrap()).is_ok());
        assert!(only.check("example.org", "1.1.1.1:443".parse().unwrap()).is_err());
    }

    #[test]
    fn the_own_server_is_reached_in_no_form_while_it_listens() {
        let reach = NetworkAccess::public().allowing(["127.0.0.0/8", "::/0", "localhost:9871"].map(place));
        let forms =
            ["127.0.0.1:9871", "127.0.0.9:9871", "0.0.0.0:9871", "[::1]:9871", "[::ffff:127.0.0.1]:9871"];
        let is_reached = |form: &str| reach.check("localhost", form.parse().unwrap()).is_ok();
        assert!(is_reached("127.0.0.1:9871"));
        let own = OwnAddress::new("127.0.0.1:9871".parse().unwrap());
        for form in forms {
            let refused = reach.check("localhost", form.parse().unwrap()).unwrap_err();
            assert!(
                refused.to_string().contains("the server that runs this conversation"),
                "{form}: {refused}"
            );
        }
        assert!(is_reached("127.0.0.1:9872"), "another server");
        drop(own);
        assert!(is_reached("127.0.0.1:9871"));
        let everywhere = "0.0.0.0:9871".parse().unwrap();
        for (form, leads) in [("192.168.1.7:9871", true), ("127.0.0.1:9871", true), ("1.1.1.1:9871", false)] {
            assert_eq!(leads_to(everywhere, form.parse().unwrap()), leads, "{form}");
        }
    }

    #[test]
    fn places_that_are_none_are_refused() {
        for text in [
            "", "*", "*.", "a b", "http://a", "10.0.0.0/33", "a/8", "a:x", "a:70000", "*.*.a", "user@a",
            "[::1",
        ] {
            assert!(text.parse::<Destination>().is_err(), "{text}");
        }
    }
}
