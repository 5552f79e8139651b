//! Seals: what providers put on thoughts and calls, and check when these are sent back.
//!
//! A real provider signs or encrypts; this server computes a seal from what it seals, so that it recognizes its own without
//! remembering replies.

/// The seal of `content` by the provider `wire`: 32 hexadecimal digits, which are also valid base64.
pub(super) fn seal(wire: &str, content: &str) -> String {
    let forward = fnv(wire.bytes().chain([0]).chain(content.bytes()));
    let backward = fnv(content.bytes().rev().chain([0]).chain(wire.bytes()));
    format!("{forward:016x}{backward:016x}")
}

/// FNV-1a, 64 bits.
fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    bytes.fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}
