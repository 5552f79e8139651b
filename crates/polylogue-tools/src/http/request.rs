//! Templates of requests.

use bytes::Bytes;
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use polylogue_core::ToolError;
use polylogue_core::text::of_json;
use polylogue_http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use polylogue_http::{Destination, host_of};
use serde_json::{Map, Value};
use url::Url;

use super::declaration::{Declaration, Header, HttpMethod};
use crate::command::{GivenArguments, Piece, check_size, parsed};

/// Characters that an argument within a path keeps unescaped.
const ARGUMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Characters that a declared path must escape.
const PATH: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'`').add(b'{').add(b'}').add(b'^').add(b'|');

/// Maximum size of the arguments of a request in bytes.
const MAX_BYTES: usize = 4 << 20;

/// Headers that the HTTP client sets.
const OF_THE_TRANSPORT: [&str; 7] =
    ["host", "connection", "content-length", "transfer-encoding", "te", "upgrade", "accept-encoding"];

/// The template of a request, with placeholders for arguments.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: HttpMethod,
    /// Scheme, host and port.
    site: Url,
    path: Vec<Piece>,
    pub(crate) query: Vec<(String, Vec<Piece>, Lists)>,
    pub(crate) headers: Vec<(HeaderName, Vec<Piece>)>,
    pub(crate) body: Option<Body>,
}

/// How a list is encoded as query parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lists {
    /// One parameter per value.
    Each,
    /// One parameter with commas.
    Commas,
    /// An object, as `name[key]=value`.
    Brackets,
}

/// The body.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    /// A value with placeholders for arguments.
    Template(Value),
    /// The value of one argument.
    Argument(String),
}

/// A request that is ready to be sent.
pub(crate) type HttpRequestParts = (Url, HeaderMap, Bytes);

impl Request {
    /// The request to `url`, whose path can have placeholders.
    pub(crate) fn to(method: HttpMethod, url: &str) -> Result<Self, String> {
        let (scheme, rest) = url
            .split_once("://")
            .ok_or_else(|| format!("`{url}` is not an address; it begins with `https://`"))?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (host, rest) = rest.split_at(end);
        if scheme.contains('{') || host.contains('{') {
            return Err("an argument cannot name the host".into());
        }
        let site = Url::parse(&format!("{scheme}://{host}/"))
            .map_err(|why| format!("`{url}` is not an address: {why}"))?;
        if !matches!(site.scheme(), "http" | "https") || site.host_str().is_none() {
            return Err(format!("`{url}` is not a web address"));
        }
        if !site.username().is_empty() || site.password().is_some() {
            return Err("an address may hold no user and no password; use `headers`".into());
        }
        if rest.contains('#') {
            return Err("the part of an address after `#` is never sent".into());
        }
        let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
        let path = parsed(if path.is_empty() { "/" } else { path })?.into_iter().map(encoded).collect();
        let mut request = Self { method, site, path, query: Vec::new(), headers: Vec::new(), body: None };
        for pair in query.into_iter().flat_map(|query| query.split('&')).filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
            request.query.push((decoded(name), parsed(&decoded(value))?, Lists::Each));
        }
        request.check()?;
        Ok(request)
    }

    pub(super) fn declared(declaration: &Declaration) -> Result<Self, String> {
        let mut request = Self::to(declaration.method, &declaration.url)?;
        for (name, value) in &declaration.query {
            request.query.push((name.clone(), parsed(value)?, Lists::Each));
        }
        for (name, header) in &declaration.headers {
            let header_name = header_name(name)?;
            if let Header::Text(text) = header {
                let pieces = parsed(text)?;
                HeaderValue::from_str(
                    &pieces
                        .iter()
                        .map(|(Piece::Text(text) | Piece::Argument(text))| text.as_str())
                        .collect::<String>(),
                )
                .map_err(|_| format!("the header `{name}` cannot be sent"))?;
                request.headers.push((header_name, pieces));
            }
        }
        if let Some(json) = &declaration.json {
            check_template(json)?;
            request.body = Some(Body::Template(json.clone()));
        }
        Ok(request)
    }

    /// Its host and port.
    pub(crate) fn host(&self) -> String {
        host_of(self.site.as_str()).unwrap_or_default()
    }

    /// The address that it reaches.
    pub(crate) fn place(&self) -> Result<Destination, String> {
        let port = self.site.port_or_known_default().unwrap_or(443);
        let host = self.site.host_str().unwrap_or_default();
        format!("{host}:{port}").parse().map_err(|why| format!("{why}"))
    }

    /// The arguments in its placeholders.
    pub(crate) fn arguments(&self) -> Vec<&str> {
        let values =
            self.query.iter().map(|(_, value, _)| value).chain(self.headers.iter().map(|(_, value)| value));
        let mut names: Vec<&str> = values.chain([&self.path]).flatten().filter_map(argument).collect();
        match &self.body {
            Some(Body::Argument(name)) => names.push(name),
            Some(Body::Template(value)) => arguments_within(value, &mut names),
            None => {}
        }
        names
    }

    pub(crate) fn arguments_of_path(&self) -> impl Iterator<Item = &str> {
        self.path.iter().filter_map(argument)
    }

    /// Checks that its path is valid for all arguments.
    fn check(&self) -> Result<(), String> {
        let value = Value::from("x");
        let given: GivenArguments<'_> = self.arguments_of_path().map(|name| (name, &value)).collect();
        self.url(&given).map(drop).map_err(|why| why.0)
    }

    /// The request with the given arguments.
    pub(crate) fn fill(&self, given: &GivenArguments<'_>) -> Result<HttpRequestParts, ToolError> {
        check_size(self.arguments(), given, MAX_BYTES)?;
        let mut url = self.url(given)?;
        for (name, pieces, lists) in &self.query {
            append(&mut url, name, pieces, *lists, given);
        }
        let mut headers = HeaderMap::new();
        for (name, pieces) in &self.headers {
            let Some(text) = filled(pieces, given) else { continue };
            let value = HeaderValue::from_str(&text);
            headers.insert(
                name,
                value.map_err(|_| ToolError(format!("the header `{name}` cannot be `{text}`")))?,
            );
        }
        let body = match &self.body {
            Some(Body::Template(template)) => filled_value(template, given),
            Some(Body::Argument(name)) => given.get(name.as_str()).map(|value| (*value).clone()),
            None => None,
        };
        if body.is_some() && !headers.contains_key(CONTENT_TYPE) {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        Ok((url, headers, body.map(|body| Bytes::from(body.to_string())).unwrap_or_default()))
    }

    fn url(&self, given: &GivenArguments<'_>) -> Result<Url, ToolError> {
        let mut path = String::new();
        for piece in &self.path {
            match piece {
                Piece::Text(text) => path.push_str(text),
                Piece::Argument(name) => {
                    let value =
                        given.get(name.as_str()).ok_or_else(|| ToolError(format!("`{name}` is missing")))?;
                    let text = joined(value);
                    if text.is_empty() {
                        return Err(ToolError(format!("`{name}` may not be empty: it is a piece of a path")));
                    }
                    path.extend(utf8_percent_encode(&text, ARGUMENT));
                }
            }
        }
        let mut url = self.site.clone();
        url.set_path(&path);
        // A piece such as `..` would lead elsewhere.
        if url.path() != path {
            return Err(ToolError(format!("`{path}` is not a path that this call may have")));
        }
        Ok(url)
    }
}

/// The name of a header that can be set.
pub(crate) fn header_name(name: &str) -> Result<HeaderName, String> {
    let lower = name.to_ascii_lowercase();
    if OF_THE_TRANSPORT.contains(&lower.as_str()) {
        return Err(format!("the header `{name}` cannot be set: it says how a request is sent"));
    }
    lower.parse().map_err(|_| format!("no header can be called `{name}`"))
}

/// The header of responses that says what a call cost, if the declaration names one.
pub(super) fn cost_header(declaration: &Declaration) -> Result<Option<HeaderName>, String> {
    let Some(name) = &declaration.cost_header else { return Ok(None) };
    let header = name.to_ascii_lowercase().parse();
    header.map(Some).map_err(|_| format!("no header can be called `{name}`"))
}

fn argument(piece: &Piece) -> Option<&str> {
    match piece {
        Piece::Argument(name) => Some(name),
        Piece::Text(_) => None,
    }
}

fn encoded(piece: Piece) -> Piece {
    match piece {
        Piece::Text(text) => Piece::Text(utf8_percent_encode(&text, PATH).to_string()),
        argument @ Piece::Argument(_) => argument,
    }
}

/// A value as text; values of a list are separated by commas.
fn joined(value: &Value) -> String {
    match value.as_array() {
        Some(items) => items.iter().map(of_json).collect::<Vec<_>>().join(","),
        None => of_json(value),
    }
}

/// The text of `pieces`, unless one of its arguments was omitted.
fn filled(pieces: &[Piece], given: &GivenArguments<'_>) -> Option<String> {
    let texts = pieces.iter().map(|piece| match piece {
        Piece::Text(text) => Some(text.clone()),
        Piece::Argument(name) => given.get(name.as_str()).map(|value| joined(value)),
    });
    texts.collect()
}

fn append(url: &mut Url, name: &str, pieces: &[Piece], lists: Lists, given: &GivenArguments<'_>) {
    let alone = match pieces {
        [Piece::Argument(name)] => given.get(name.as_str()).copied(),
        _ => None,
    };
    let mut pairs = url.query_pairs_mut();
    match (alone, lists) {
        (Some(Value::Array(items)), Lists::Each | Lists::Brackets) => {
            for item in items {
                pairs.append_pair(name, &of_json(item));
            }
        }
        (Some(Value::Object(object)), Lists::Brackets) => {
            for (key, value) in object {
                pairs.append_pair(&format!("{name}[{key}]"), &of_json(value));
            }
        }
        _ => {
            if let Some(text) = filled(pieces, given) {
                pairs.append_pair(name, &text);
            }
        }
    }
}

/// Calls `act` with every text of a value.
fn texts<'v>(value: &'v Value, act: &mut impl FnMut(&'v str)) {
    match value {
        Value::String(text) => act(text),
        Value::Array(items) => items.iter().for_each(|item| texts(item, act)),
        Value::Object(object) => object.values().for_each(|value| texts(value, act)),
        _ => {}
    }
}

fn check_template(value: &Value) -> Result<(), String> {
    let mut wrong = None;
    texts(value, &mut |text| wrong = wrong.take().or(parsed(text).err()));
    wrong.map_or(Ok(()), Err)
}

fn arguments_within<'v>(value: &'v Value, names: &mut Vec<&'v str>) {
    texts(value, &mut |text| {
        let pieces = parsed(text).unwrap_or_default();
        for name in pieces.iter().filter_map(argument) {
            // The same name, found in the value.
            let found =
                text.find(&format!("{{{name}}}")).and_then(|at| text.get(at + 1..at + 1 + name.len()));
            names.extend(found);
        }
    });
}

/// A value with the given arguments; `None` where one was omitted.
fn filled_value(value: &Value, given: &GivenArguments<'_>) -> Option<Value> {
    Some(match value {
        Value::String(text) => {
            let pieces = parsed(text).ok()?;
            match pieces.as_slice() {
                [Piece::Argument(name)] => (*given.get(name.as_str())?).clone(),
                pieces => Value::String(filled(pieces, given)?),
            }
        }
        Value::Array(items) => {
            Value::Array(items.iter().filter_map(|item| filled_value(item, given)).collect())
        }
        Value::Object(object) => {
            let values =
                object.iter().filter_map(|(key, value)| Some((key.clone(), filled_value(value, given)?)));
            Value::Object(values.collect::<Map<_, _>>())
        }
        other => other.clone(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn url(template: &str, value: &Value) -> Result<String, String> {
        let request = Request::to(HttpMethod::Get, template)?;
        request
            .fill(&GivenArguments::from([("a", value)]))
            .map(|(url, ..)| url.to_string())
            .map_err(|why| why.0)
    }

    #[test]
    fn arguments_are_pieces_of_a_path_and_nothing_else() {
        let fill = |value: &str| url("https://h.example/x/{a}/y?z={a}", &Value::from(value));
        for (value, expected) in [
            ("b c", "https://h.example/x/b%20c/y?z=b+c"),
            ("../../etc", "https://h.example/x/..%2F..%2Fetc/y?z=..%2F..%2Fetc"),
            ("a/b?c#d", "https://h.example/x/a%2Fb%3Fc%23d/y?z=a%2Fb%3Fc%23d"),
            ("%2e%2e", "https://h.example/x/%252e%252e/y?z=%252e%252e"),
            ("@evil.example", "https://h.example/x/%40evil.example/y?z=%40evil.example"),
            ("\\\\evil", "https://h.example/x/%5C%5Cevil/y?z=%5C%5Cevil"),
            ("a&b=c\r\nd", "https://h.example/x/a%26b%3Dc%0D%0Ad/y?z=a%26b%3Dc%0D%0Ad"),
        ] {
            assert_eq!(fill(value).as_deref(), Ok(expected), "{value}");
        }
        for value in ["", ".", ".."] {
            assert!(fill(value).is_err(), "{value}");
        }
        assert_eq!(url("https://h.example/{a}", &Value::from(7)).as_deref(), Ok("https://h.example/7"));
    }

    #[test]
    fn an_invalid_request_is_refused() {
        for template in [
            "h.example/x",
            "ftp://h.example/",
            "https://{a}/",
            "https://{a}.example/",
            "http{a}://h.example/",
            "https://h.example:{a}/",
            "https://me:pass@h.example/",
            "https://h.example/#x",
            "https://h.example/../x",
            "https://h.example/a\\b",
            "https:///x",
            "https://h.example/{",
            "https://h.example/{a b}",
        ] {
            assert!(Request::to(HttpMethod::Get, template).is_err(), "{template}");
        }
        for name in ["Host", "content-length", "a b", ""] {
            assert!(header_name(name).is_err(), "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_argument_changes_where_a_request_goes(text in any::<String>()) {
            let Ok(filled) = url("https://h.example/x/{a}/y", &Value::from(text.as_str())) else {
                prop_assert!(["", ".", ".."].contains(&text.as_str()));
                return Ok(());
            };
            let url = Url::parse(&filled).unwrap();
            let segments: Vec<&str> = url.path_segments().unwrap().collect();
            prop_assert_eq!((url.host_str(), segments.len(), segments[0], segments[2]), (Some("h.example"), 3, "x", "y"));
            let decoded = percent_decode_str(segments[1]).decode_utf8().unwrap();
            prop_assert_eq!(decoded, text);
            prop_assert!(url.query().is_none() && url.fragment().is_none());
        }
    }
}
