//! Amazon's frames, written by another encoder than the decoder's neighbor.

/// Bytes before the headers.
const PRELUDE: usize = 12;
/// The bytes of a frame without headers and payload.
const LEAST: usize = PRELUDE + 4;

/// A frame with texts as headers, of which only the first 64 KiB are written.
pub(crate) fn frame(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let mut head = Vec::new();
    for (name, value) in headers {
        let value = &value.as_bytes()[..value.len().min(usize::from(u16::MAX))];
        head.push(u8::try_from(name.len()).unwrap());
        head.extend_from_slice(name.as_bytes());
        head.push(7);
        head.extend_from_slice(&u16::try_from(value.len()).unwrap().to_be_bytes());
        head.extend_from_slice(value);
    }
    sealed(&head, payload)
}

/// A frame with these bytes as its headers, and its checksums.
pub(crate) fn sealed(head: &[u8], payload: &[u8]) -> Vec<u8> {
    let length = |bytes: usize| u32::try_from(bytes).unwrap().to_be_bytes();
    let mut bytes = length(LEAST + head.len() + payload.len()).to_vec();
    bytes.extend_from_slice(&length(head.len()));
    bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
    bytes.extend_from_slice(head);
    bytes.extend_from_slice(payload);
    bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
    bytes
}

/// The lines of `text` as frames: the type of an event, a space, and the payload.
pub(super) fn lines(text: &[u8]) -> Vec<u8> {
    let line = |line: &[u8]| {
        let (kind, payload) = line.split_at(line.iter().position(|&byte| byte == b' ').unwrap_or(line.len()));
        let kind = String::from_utf8_lossy(kind);
        let message = if kind.ends_with("Exception") { "exception" } else { "event" };
        frame(&[(":message-type", message), (&format!(":{message}-type"), &kind)], payload)
    };
    text.split(|&byte| byte == b'\n').filter(|text| !text.is_empty()).flat_map(line).collect()
}

/// The frames of `bytes` with lengths and checksums that fit, which no fuzzer would guess. The last one may be cut.
pub(super) fn repaired(mut rest: &[u8]) -> Vec<u8> {
    let mut frames = Vec::new();
    while rest.len() > LEAST {
        let number = |at: usize| rest[at..at + 4].try_into().map(u32::from_be_bytes).unwrap() as usize;
        let length = number(0).clamp(LEAST, rest.len());
        let head = number(4).min(length - LEAST);
        frames.extend(sealed(&rest[PRELUDE..PRELUDE + head], &rest[PRELUDE + head..length - 4]));
        rest = &rest[length..];
    }
    frames.extend_from_slice(rest);
    frames
}
