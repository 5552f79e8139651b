//! Who sends a request that comes through a proxy: what the headers of a proxy say counts only if that proxy is trusted.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use axum::http::HeaderMap;
use axum::http::header::FORWARDED;
use ipnet::IpNet;

/// A proxy, or a network of proxies, whose headers `X-Forwarded-For` and `Forwarded` are trusted.
///
/// ```
/// use polylogue_server::TrustedProxy;
///
/// let network: TrustedProxy = "10.0.0.0/8".parse()?;
/// assert_eq!(network.to_string(), "10.0.0.0/8");
/// assert_eq!("::1".parse::<TrustedProxy>()?.to_string(), "::1/128");
/// assert!("10.0.0.0/33".parse::<TrustedProxy>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrustedProxy(IpNet);

impl FromStr for TrustedProxy {
    type Err = String;

    /// # Errors
    /// When `text` is neither an address nor a network.
    fn from_str(text: &str) -> Result<Self, String> {
        let network = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        network
            .map(Self)
            .map_err(|_| "expected an address or a network, such as `10.0.0.7` or `10.0.0.0/8`".to_owned())
    }
}

impl fmt::Display for TrustedProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Whether one of the `trusted` proxies has this address.
pub(crate) fn is_trusted(trusted: &[TrustedProxy], address: IpAddr) -> bool {
    trusted.iter().any(|proxy| proxy.0.contains(&address.to_canonical()))
}

/// Who sends a request that came from `peer`: the nearest address that is none of the `trusted` proxies. What stands before that in the headers
/// is what the sender claims.
pub(crate) fn client(trusted: &[TrustedProxy], peer: IpAddr, headers: &HeaderMap) -> IpAddr {
    let mut before = if is_trusted(trusted, peer) { senders(headers) } else { Vec::new() };
    let mut nearest = peer;
    while is_trusted(trusted, nearest)
        && let Some(Some(sender)) = before.pop()
    {
        nearest = sender;
    }
    nearest
}

/// Through whom a request came, as proxies have noted it: each one the address that it has seen, the nearest last. `None`: one that is no
/// address.
fn senders(headers: &HeaderMap) -> Vec<Option<IpAddr>> {
    let all = |name: &str| -> Vec<String> {
        let values = headers.get_all(name).iter();
        let texts = values.map(|value| value.to_str().unwrap_or("?"));
        texts.flat_map(|text| text.split(',')).map(|part| part.trim().to_owned()).collect()
    };
    let plain = all("x-forwarded-for");
    if !plain.is_empty() {
        return plain.iter().map(|text| address(text)).collect();
    }
    all(FORWARDED.as_str()).iter().map(|element| address(forwarded_for(element)?)).collect()
}

/// The value of `for` in an element of the header `Forwarded` (RFC 7239).
fn forwarded_for(element: &str) -> Option<&str> {
    let pairs = element.split(';').filter_map(|pair| pair.trim().split_once('='));
    let mut named = pairs.filter(|(name, _)| name.eq_ignore_ascii_case("for"));
    named.next().map(|(_, value)| value.trim_matches('"'))
}

/// The address in a text that may also have a port, or brackets.
fn address(text: &str) -> Option<IpAddr> {
    let plain = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = plain.parse::<IpAddr>().or_else(|_| text.parse::<SocketAddr>().map(|address| address.ip()));
    address.ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn proxies(texts: &[&str]) -> Vec<TrustedProxy> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn seen(trusted: &[&str], peer: &str, headers: &[(&'static str, &'static str)]) -> String {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        client(&proxies(trusted), peer.parse().unwrap(), &map).to_string()
    }

    #[test]
    fn a_network_has_the_addresses_with_its_first_bits() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.6"),
            ("0.0.0.0/0", "203.0.113.9", "::1"),
            ("fd00::/8", "fdff::1", "fe00::1"),
            ("::/0", "2001:db8::1", "10.0.0.1"),
            ("10.0.0.0/8", "::ffff:10.0.0.1", "::ffff:11.0.0.1"),
        ] {
            let trusted = proxies(&[network]);
            assert!(is_trusted(&trusted, inside.parse().unwrap()), "{inside} in {network}");
            assert!(!is_trusted(&trusted, outside.parse().unwrap()), "{outside} in {network}");
        }
        for wrong in ["", "proxy.example", "10.0.0.0/", "10.0.0.0/x", "10.0.0.0/33", "10.0/8", "::/129"] {
            assert!(wrong.parse::<TrustedProxy>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_sender_is_the_nearest_address_that_is_not_trusted() {
        let named = &[("x-forwarded-for", "203.0.113.9, 198.51.100.1"), ("x-forwarded-for", "10.0.0.2")];
        for (trusted, peer, headers, expected) in [
            // Anyone can send the header.
            (&[][..], "10.0.0.1", &named[..], "10.0.0.1"),
            (&["10.0.0.0/8"], "192.0.2.1", named, "192.0.2.1"),
            // What stands before the first address that is not trusted is claimed.
            (&["10.0.0.0/8"], "10.0.0.1", named, "198.51.100.1"),
            (&["10.0.0.0/8", "198.51.100.0/24"], "10.0.0.1", named, "203.0.113.9"),
            // All are proxies: the outermost one sends it.
            (&["0.0.0.0/0"], "10.0.0.1", named, "203.0.113.9"),
            (&["10.0.0.0/8"], "10.0.0.1", &[], "10.0.0.1"),
            (&["10.0.0.0/8"], "10.0.0.1", &[("x-forwarded-for", "unknown")], "10.0.0.1"),
            (&["10.0.0.0/8"], "10.0.0.1", &[("x-forwarded-for", "203.0.113.9, _gate, 10.0.0.2")], "10.0.0.2"),
            (&["10.0.0.0/8"], "10.0.0.1", &[("x-forwarded-for", "203.0.113.9:4711")], "203.0.113.9"),
            (&["::1"], "::1", &[("forwarded", "for=\"[2001:db8::1]:80\";proto=https")], "2001:db8::1"),
            (&["::1"], "::1", &[("forwarded", "For=203.0.113.9, for=198.51.100.1;by=x")], "198.51.100.1"),
            (&["::1"], "::1", &[("forwarded", "proto=https")], "::1"),
            (&["127.0.0.1"], "::ffff:127.0.0.1", &[("x-forwarded-for", "203.0.113.9")], "203.0.113.9"),
        ] {
            assert_eq!(seen(trusted, peer, headers), expected, "{trusted:?} {peer} {headers:?}");
        }
    }
}
