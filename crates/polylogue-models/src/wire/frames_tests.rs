use proptest::prelude::*;

use super::*;
use crate::fuzzing::frames::{frame, sealed};

type Read = (Option<String>, Vec<u8>);

fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<(Vec<Read>, bool), FrameError> {
    let (mut frames, mut found) = (Frames::default(), Vec::new());
    for piece in pieces {
        frames.feed(piece, |frame| {
            found.push((frame.header(":event-type")?.map(str::to_owned), frame.payload.to_vec()));
            Ok::<(), FrameError>(())
        })?;
    }
    Ok((found, frames.is_cut()))
}

fn stream() -> (Vec<u8>, Vec<Read>) {
    let mut bytes =
        frame(&[(":message-type", "event"), (":event-type", "messageStart")], br#"{"role":"assistant"}"#);
    bytes.extend(frame(&[], b""));
    bytes.extend(frame(&[(":event-type", "messageStop")], b"{}"));
    let found = vec![
        (Some("messageStart".into()), br#"{"role":"assistant"}"#.to_vec()),
        (None, Vec::new()),
        (Some("messageStop".into()), b"{}".to_vec()),
    ];
    (bytes, found)
}

/// Bytes that another encoder wrote: the vector `headers` of botocore's tests, with all kinds of values before a text.
#[test]
fn a_frame_of_another_encoder_is_read() {
    let mut head = Vec::new();
    for (name, kind, value) in [
        ("true", 0, &[][..]),
        ("false", 1, &[]),
        ("byte", 2, &[0xff]),
        ("short", 3, &[0xff, 0xfe]),
        ("int", 4, &[0; 4]),
        ("long", 5, &[0; 8]),
        ("bytes", 6, &[0, 3, 1, 2, 3]),
        ("time", 8, &[0; 8]),
        ("uuid", 9, &[7; 16]),
        (":event-type", 7, b"\0\x02ok"),
    ] {
        head.push(u8::try_from(name.len()).unwrap());
        head.extend_from_slice(name.as_bytes());
        head.push(kind);
        head.extend_from_slice(value);
    }
    let bytes = sealed(&head, b"{'foo':'bar'}");
    assert_eq!(read([&*bytes]), Ok((vec![(Some("ok".into()), b"{'foo':'bar'}".to_vec())], false)));

    // `payload_no_headers` of botocore, byte for byte.
    let botocore = b"\0\0\0\x1d\0\0\0\0\xfdR\x8cZ{'foo':'bar'}\xc3e96";
    assert_eq!(read([&botocore[..]]), Ok((vec![(None, b"{'foo':'bar'}".to_vec())], false)));
}

#[test]
fn frames_are_the_same_in_every_cut() {
    let (bytes, expected) = stream();
    for at in 0..=bytes.len() {
        let (one, other) = bytes.split_at(at);
        assert_eq!(read([one, other]), Ok((expected.clone(), false)), "cut at {at}");
        let ended = read([one]).unwrap();
        assert!(expected.starts_with(&ended.0));
    }
    assert_eq!(read(bytes.chunks(1)), Ok((expected, false)));
}

#[test]
fn a_body_that_ends_within_a_frame_is_cut() {
    let (bytes, _) = stream();
    assert!(read([&bytes[..bytes.len() - 1]]).unwrap().1);
    assert!(read([&bytes[..3]]).unwrap().1);
}

#[test]
fn every_flipped_bit_is_noticed() {
    let bytes = frame(&[(":event-type", "messageStop")], b"{}");
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(read([&*flipped]).is_err(), "bit {bit}");
    }
}

#[test]
fn lengths_beyond_the_limits_are_refused_before_anything_is_buffered() {
    let prelude = |total: u32, headers: u32| {
        let mut bytes = [total.to_be_bytes(), headers.to_be_bytes()].concat();
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
        bytes
    };
    for (total, headers) in
        [(15, 0), (16, 1), (u32::MAX, 0), (1 << 20, u32::MAX), (25 << 20, 0), (200 << 10, 129 << 10)]
    {
        assert_eq!(read([&*prelude(total, headers)]), Err(FrameError::Length(total as usize)));
    }
}

#[test]
fn malformed_headers_are_refused() {
    for head in [&b"\x05ab"[..], b"\x01a", b"\x01a\x0a", b"\x01a\x07\0\x05x", b"\x01a\x07\0\x02\xff\xfe"] {
        assert_eq!(read([&*sealed(head, b"")]), Err(FrameError::Headers), "{head:?}");
    }
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0usize..200) {
        let at = at.min(bytes.len());
        let _ = read([&bytes[..at], &bytes[at..]]);
        let _ = read([&*sealed(&bytes, b"payload")]);
    }
}
