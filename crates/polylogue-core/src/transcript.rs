//! The transcript.
/// stub
pub struct Transcript;
