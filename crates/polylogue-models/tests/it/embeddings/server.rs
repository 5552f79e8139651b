//! A server of embeddings, which misbehaves if it should, and refuses what the providers refuse.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use polylogue_models::{Config, Key, Retries, Timeouts};
use serde_json::{Value, json};

use crate::common::KEY;

/// The result of one request.
#[derive(Clone)]
pub(crate) enum Does {
    /// A vector for each text: its length in letters, and 1.
    Embeds,
    Json(Value),
    Status(u16, &'static str),
    /// These bytes, and nothing more.
    Raw(Vec<u8>),
    /// Answers after so long.
    Late(Duration),
    /// Never answers, and keeps the connection.
    Hangs,
}

/// What was asked: the path, the key, and the body.
pub(crate) type Asked = (String, String, Value);

pub(crate) struct Server {
    pub(crate) address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    head: Arc<Mutex<String>>,
}

impl Server {
    /// Does one after the other, and the last repeatedly.
    pub(crate) fn start(does: impl IntoIterator<Item = Does>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (asked, does): (Arc<Mutex<Vec<Asked>>>, Vec<Does>) = (Arc::default(), does.into_iter().collect());
        let (seen, head) = (Arc::clone(&asked), Arc::new(Mutex::new(String::new())));
        let last = Arc::clone(&head);
        // Ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (seen, last, does) = (Arc::clone(&seen), Arc::clone(&last), does.clone());
                std::thread::spawn(move || serve(stream.unwrap(), &seen, &last, &does));
            }
        });
        Self { address, asked, head }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// The head of the last request.
    pub(crate) fn head(&self) -> String {
        self.head.lock().unwrap().to_ascii_lowercase()
    }

    pub(crate) fn config(&self) -> Config {
        Config {
            provider: "test".into(),
            key: Key::new(KEY),
            retries: Retries::none(),
            timeouts: Timeouts { total: Duration::from_secs(30), ..Timeouts::default() },
            ..Config::new(format!("http://{}/v1", self.address))
        }
    }
}

fn serve(stream: TcpStream, seen: &Mutex<Vec<Asked>>, last: &Mutex<String>, does: &[Does]) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut lines, mut line) = (Vec::new(), String::new());
    while reader.read_line(&mut line).ok()? > 2 {
        lines.push(std::mem::take(&mut line));
    }
    *last.lock().unwrap() = lines.concat();
    let header = |name: &str| {
        let found = lines.iter().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        });
        found.unwrap_or_default()
    };
    let mut body = vec![0; header("content-length").parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    let body: Value = serde_json::from_slice(&body).ok()?;
    let path = lines[0].split(' ').nth(1)?.to_owned();
    let nth = {
        let mut seen = seen.lock().unwrap();
        seen.push((path.clone(), header("authorization"), body.clone()));
        seen.len() - 1
    };
    let does = does.get(nth).or(does.last())?;
    let answer = match does {
        Does::Embeds => embeds(&path, &body),
        Does::Json(json) => answer(200, json),
        Does::Status(status, text) => answer(*status, &json!({"error": {"message": text}})),
        Does::Raw(bytes) => bytes.clone(),
        Does::Late(time) => {
            std::thread::sleep(*time);
            embeds(&path, &body)
        }
        Does::Hangs => loop {
            std::thread::park();
        },
    };
    (&stream).write_all(&answer).ok()
}

fn answer(status: u16, json: &Value) -> Vec<u8> {
    let body = json.to_string();
    let head = "content-type: application/json\r\nretry-after: 0\r\nconnection: close";
    format!("HTTP/1.1 {status} x\r\n{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// A proper reply of the API at `path`, or its refusal.
fn embeds(path: &str, body: &Value) -> Vec<u8> {
    match checked(path, body) {
        // Amazon counts in a header.
        Ok(reply) if path.ends_with("/invoke") => {
            let reply = String::from_utf8(answer(200, &reply)).unwrap();
            reply.replacen("\r\n", "\r\nx-amzn-bedrock-input-token-count: 77\r\n", 1).into_bytes()
        }
        Ok(reply) => answer(200, &reply),
        Err(why) => answer(400, &json!({"message": why})),
    }
}

fn checked(path: &str, body: &Value) -> Result<Value, String> {
    let is = |end: &str| path.split('?').next().is_some_and(|path| path.ends_with(end));
    if is("/api/embed") {
        let vectors = list(body, "/input", 1_000, body["dimensions"].as_u64())?;
        return Ok(json!({"model": "m", "prompt_eval_count": vectors.len() * 2, "embeddings": vectors}));
    }
    if is("/embed") || path.contains("cohere.embed") {
        let known = ["model", "texts", "input_type", "embedding_types", "output_dimension"];
        only(body, &known)?;
        if !["search_document", "search_query"].iter().any(|purpose| body["input_type"] == *purpose) {
            return Err("input_type is required".into());
        }
        let vectors = list(body, "/texts", 96, body["output_dimension"].as_u64())?;
        let tokens = vectors.len() as f64 * 4.0;
        let all = json!({"id": "x", "embeddings": {"float": vectors}});
        return Ok(match path.contains("/invoke") {
            true => all,
            false => {
                json!({"embeddings": all["embeddings"], "meta": {"billed_units": {"input_tokens": tokens}}})
            }
        });
    }
    if path.contains("titan-embed") {
        only(body, &["inputText", "dimensions", "normalize"])?;
        let text = body["inputText"].as_str().ok_or("inputText is required")?;
        return Ok(json!({"embedding": vector(text, body["dimensions"].as_u64()), "inputTextTokenCount": 5}));
    }
    if is(":batchEmbedContents") {
        let requests = body["requests"].as_array().ok_or("requests are required")?;
        if requests.len() > 100 {
            return Err("at most 100 requests can be in one batch".into());
        }
        let vectors: Result<Vec<Value>, String> = requests.iter().map(content).collect();
        return Ok(json!({"embeddings": vectors?, "usageMetadata": {"promptTokenCount": 7}}));
    }
    if is(":embedContent") {
        return Ok(json!({"embedding": content(body)?, "usageMetadata": {"promptTokenCount": 7}}));
    }
    if is(":predict") {
        only(body, &["instances", "parameters"])?;
        let most = if path.contains("gemini-embedding-001") { 1 } else { 250 };
        let of = json!({"texts": texts(body, "/instances", "content")?});
        let dimensions = body.pointer("/parameters/outputDimensionality").and_then(Value::as_u64);
        let one = |vector: Value| json!({"embeddings": {"values": vector, "statistics": {"truncated": false, "token_count": 6.0}}});
        let vectors = list(&of, "/texts", most, dimensions)?;
        return Ok(json!({"predictions": vectors.into_iter().map(one).collect::<Vec<_>>()}));
    }
    only(body, &["model", "input", "dimensions", "output_dimension"])?;
    let dimensions = body["dimensions"].as_u64().or(body["output_dimension"].as_u64());
    let vectors = list(body, "/input", 2_048, dimensions)?;
    let count = vectors.len();
    let row = |(index, vector): (usize, Value)| json!({"index": index, "embedding": vector});
    // In the wrong order.
    let rows: Vec<Value> = vectors.into_iter().enumerate().rev().map(row).collect();
    Ok(json!({"object": "list", "data": rows, "usage": {"prompt_tokens": count * 3, "total_tokens": 99}}))
}

/// A vector for each of the texts at `place`.
fn list(body: &Value, place: &str, most: usize, dimensions: Option<u64>) -> Result<Vec<Value>, String> {
    let texts = body.pointer(place).and_then(Value::as_array).ok_or(format!("{place} is required"))?;
    if texts.len() > most {
        return Err(format!("{place} has more than {most} texts"));
    }
    texts.iter().map(|text| Ok(vector(text.as_str().ok_or("not a text")?, dimensions))).collect()
}

fn texts(body: &Value, place: &str, field: &str) -> Result<Vec<Value>, String> {
    let items = body.pointer(place).and_then(Value::as_array).ok_or(format!("{place} is required"))?;
    Ok(items.iter().map(|item| item[field].clone()).collect())
}

/// Gemini's object for a single text.
fn content(request: &Value) -> Result<Value, String> {
    only(request, &["model", "content", "taskType", "outputDimensionality"])?;
    let text =
        request.pointer("/content/parts/0/text").and_then(Value::as_str).ok_or("content is required")?;
    Ok(json!({"values": vector(text, request["outputDimensionality"].as_u64())}))
}

/// The length of `text` in letters, 1, and zeros.
fn vector(text: &str, dimensions: Option<u64>) -> Value {
    let mut numbers = vec![text.len(), 1];
    numbers.resize(dimensions.unwrap_or(2) as usize, 0);
    json!(numbers)
}

/// Refuses other fields.
fn only(body: &Value, known: &[&str]) -> Result<(), String> {
    let unknown = body.as_object().into_iter().flatten().find(|(name, _)| !known.contains(&name.as_str()));
    unknown.map_or(Ok(()), |(name, _)| Err(format!("extra_forbidden: {name}")))
}
