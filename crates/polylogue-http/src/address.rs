//! The hosts of addresses, and which network addresses are public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::Url;

/// IPv4 addresses that are not public, with their purpose: the IANA special-purpose registry (RFC 6890 and later),
/// multicast and reserved addresses.
const NOT_PUBLIC_V4: [([u8; 4], u8, &str); 17] = [
    ([0, 0, 0, 0], 8, "this machine"),
    ([10, 0, 0, 0], 8, "a private network"),
    ([100, 64, 0, 0], 10, "the network of a provider"),
    ([127, 0, 0, 0], 8, "this machine"),
    ([169, 254, 0, 0], 16, "this link, where clouds keep the secrets of their machines"),
    ([172, 16, 0, 0], 12, "a private network"),
    ([192, 0, 0, 0], 24, "a special purpose"),
    ([192, 0, 2, 0], 24, "documentation"),
    ([192, 31, 196, 0], 24, "a special purpose"),
    ([192, 52, 193, 0], 24, "a special purpose"),
    ([192, 88, 99, 0], 24, "a relay of IPv6"),
    ([192, 168, 0, 0], 16, "a private network"),
    ([198, 18, 0, 0], 15, "measurements"),
    ([198, 51, 100, 0], 24, "documentation"),
    ([203, 0, 113, 0], 24, "documentation"),
    ([224, 0, 0, 0], 4, "groups"),
    ([240, 0, 0, 0], 4, "future use"),
];

/// The purpose of an IPv6 address that contains an IPv4 address.
const OTHER_FORM: &str = "an address of IPv4 in another form";

/// Public IPv6 addresses, except those below.
const PUBLIC_V6: ([u16; 8], u8) = ([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);
const NOT_PUBLIC_V6: [([u16; 8], u8, &str); 4] = [
    // Includes Teredo, which contains an IPv4 address.
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, "a special purpose"),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, "documentation"),
    ([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, OTHER_FORM),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, "documentation"),
];
/// The purposes of other IPv6 addresses, where known.
const KNOWN_V6: [([u16; 8], u8, &str); 7] = [
    ([0, 0, 0, 0, 0, 0xffff, 0, 0], 96, OTHER_FORM),
    ([0, 0, 0, 0, 0, 0, 0, 0], 127, "this machine"),
    ([0, 0, 0, 0, 0, 0, 0, 0], 96, OTHER_FORM),
    ([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 32, OTHER_FORM),
    ([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, "a private network"),
    ([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, "this link"),
    ([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, "groups"),
];

/// Returns the host that requests to `address` reach, with its port unless that is the default of the scheme. `None` if it
/// names no host.
///
/// What is shown of an address and what decides about it must be this: a host that is cut out of the text can be another one.
///
/// ```
/// use polylogue_http::host_of;
/// assert_eq!(host_of("https://Example.org.:443/a").as_deref(), Some("example.org"));
/// assert_eq!(host_of("http:/127.1:8080/?q=://example.org/").as_deref(), Some("127.0.0.1:8080"));
/// assert_eq!(host_of("example.org"), None);
/// ```
pub fn host_of(address: &str) -> Option<String> {
    let url = Url::parse(address.trim()).ok()?;
    let host = url.host_str()?.trim_end_matches('.');
    Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

/// Returns the purpose of `address` if it is not public.
///
/// ```
/// use polylogue_http::not_public;
/// assert_eq!(not_public("10.1.2.3".parse()?), Some("a private network"));
/// assert_eq!(not_public("93.184.215.14".parse()?), None);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
pub fn not_public(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => {
            let is_in = |(net, bits, _): &&([u8; 4], u8, _)| covers_v4(Ipv4Addr::from(*net), *bits, address);
            NOT_PUBLIC_V4.iter().find(is_in).map(|(.., what)| *what)
        }
        IpAddr::V6(address) => {
            let is_in = |(net, bits, _): &&([u16; 8], u8, _)| covers_v6(Ipv6Addr::from(*net), *bits, address);
            let (public, bits) = PUBLIC_V6;
            if covers_v6(public.into(), bits, address) {
                return NOT_PUBLIC_V6.iter().find(is_in).map(|(.., what)| *what);
            }
            Some(KNOWN_V6.iter().find(is_in).map_or("a special purpose", |(.., what)| *what))
        }
    }
}

/// Whether `address` is only reached on purpose: cloud metadata services, and addresses that may be one in another
/// form.
pub(crate) fn is_never_meant(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        // That of Amazon's machines is private by its form.
        IpAddr::V6(of) => {
            let is_hidden = not_public(address) == Some(OTHER_FORM) || covers_v6(TEREDO.into(), 32, of);
            is_hidden || of.is_unicast_link_local() || covers_v6(AMAZON.into(), 32, of)
        }
    }
}

const TEREDO: [u16; 8] = [0x2001, 0, 0, 0, 0, 0, 0, 0];
const AMAZON: [u16; 8] = [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0];

/// Whether the first `bits` bits of `address` are those of `net`.
pub(crate) fn covers(net: IpAddr, bits: u8, address: IpAddr) -> bool {
    match (net, address) {
        (IpAddr::V4(net), IpAddr::V4(address)) => covers_v4(net, bits, address),
        (IpAddr::V6(net), IpAddr::V6(address)) => covers_v6(net, bits, address),
        _ => false,
    }
}

fn covers_v4(net: Ipv4Addr, bits: u8, address: Ipv4Addr) -> bool {
    let mask = u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0);
    u32::from(net) & mask == u32::from(address) & mask
}

fn covers_v6(net: Ipv6Addr, bits: u8, address: Ipv6Addr) -> bool {
    let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
    u128::from(net) & mask == u128::from(address) & mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_the_one_that_is_reached_however_the_address_is_written() {
        for (address, host) in [
            ("http://localhost:8931/a", Some("localhost:8931")),
            ("http:/localhost:8931/a?x=://docs.example/", Some("localhost:8931")),
            ("http:localhost:8931", Some("localhost:8931")),
            (r"http:\\localhost:8931/", Some("localhost:8931")),
            ("http://%6cocalhost:8931/", Some("localhost:8931")),
            ("http://local\thost:8931/", Some("localhost:8931")),
            (" HTTP://LocalHost.:8931 ", Some("localhost:8931")),
            (r"https://evil.example\@docs.example/", Some("evil.example")),
            ("https://docs.example@evil.example:443/", Some("evil.example")),
            ("http://[0:0::1]:80/", Some("[::1]")),
            ("https://bücher.example/", Some("xn--bcher-kva.example")),
            ("page:/a.md", None),
            ("docs.example/a", None),
            ("http://", None),
            ("", None),
        ] {
            assert_eq!(host_of(address).as_deref(), host, "{address}");
        }
    }

    #[test]
    fn public_addresses_are_public() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "93.184.215.14",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "11.0.0.1",
            "192.167.1.1",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2a00:1450:4001:81b::200e",
            "2001:4860:4860::8888",
            "2001:200::1",
        ] {
            assert_eq!(not_public(address.parse().unwrap()), None, "{address}");
        }
    }

    #[test]
    fn private_and_reserved_addresses_are_named_by_their_kind() {
        for (address, what) in [
            ("0.0.0.0", "this machine"),
            ("0.1.2.3", "this machine"),
            ("127.0.0.1", "this machine"),
            ("127.255.255.254", "this machine"),
            ("::1", "this machine"),
            ("::", "this machine"),
            ("10.0.0.1", "a private network"),
            ("172.31.255.255", "a private network"),
            ("192.168.0.1", "a private network"),
            ("fc00::1", "a private network"),
            ("fd00:ec2::254", "a private network"),
            ("100.64.0.1", "the network of a provider"),
            ("169.254.169.254", "this link, where clouds keep the secrets of their machines"),
            ("fe80::1", "this link"),
            ("fec0::1", "a special purpose"),
            ("192.0.0.8", "a special purpose"),
            ("198.19.0.1", "measurements"),
            ("203.0.113.9", "documentation"),
            ("224.0.0.1", "groups"),
            ("ff02::1", "groups"),
            ("240.0.0.1", "future use"),
            ("255.255.255.255", "future use"),
            ("::ffff:127.0.0.1", "an address of IPv4 in another form"),
            ("::ffff:8.8.8.8", "an address of IPv4 in another form"),
            ("::7f00:1", "an address of IPv4 in another form"),
            ("64:ff9b::7f00:1", "an address of IPv4 in another form"),
            ("64:ff9b:1::a00:1", "an address of IPv4 in another form"),
            ("2002:7f00:1::", "an address of IPv4 in another form"),
            ("2001::1", "a special purpose"),
            ("2001:20::1", "a special purpose"),
            ("2001:db8::1", "documentation"),
            ("3fff::1", "documentation"),
            ("100::1", "a special purpose"),
            ("5f00::1", "a special purpose"),
            ("4000::1", "a special purpose"),
        ] {
            assert_eq!(not_public(address.parse().unwrap()), Some(what), "{address}");
        }
    }

    #[test]
    fn nets_cover_what_begins_as_they_do() {
        let covers =
            |net: &str, bits, address: &str| covers(net.parse().unwrap(), bits, address.parse().unwrap());
        assert!(covers("10.1.0.0", 16, "10.1.255.1") && !covers("10.1.0.0", 16, "10.2.0.1"));
        assert!(
            covers("0.0.0.0", 0, "9.9.9.9")
                && covers("9.9.9.9", 32, "9.9.9.9")
                && !covers("9.9.9.8", 32, "9.9.9.9")
        );
        assert!(
            covers("fd00::", 8, "fdff::1") && !covers("fd00::", 8, "fe00::1") && !covers("::", 0, "9.9.9.9")
        );
    }
}
