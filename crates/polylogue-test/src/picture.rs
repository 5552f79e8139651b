//! Pictures of any size.

/// Returns a PNG of this width and height in pixels, of at least `bytes` bytes. It has no more than its header, which is all that is read of a
/// picture before it is sent.
pub fn png(width: u32, height: u32, bytes: usize) -> Vec<u8> {
    let head = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".as_slice();
    let rest = b"\x08\x02\0\0\0".as_slice();
    let mut png = [head, &width.to_be_bytes(), &height.to_be_bytes(), rest].concat();
    png.resize(bytes.max(png.len()), 0);
    png
}
