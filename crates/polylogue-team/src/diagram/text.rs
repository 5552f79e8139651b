//! Texts of diagrams: their estimated width, and how they are shortened and escaped.

use polylogue_core::text;

/// The estimated width of `text` in a sans-serif font of `size` pixels.
pub(super) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(of_char).sum::<f64>() * size
}

/// The width of a character, relative to the size of the font; rather too large, as fonts differ.
const fn of_char(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | 'I' | '\'' | '|' | '!' | '.' | ',' | ':' | ';' => 0.34,
        'f' | 't' | 'r' | ' ' | '(' | ')' | '[' | ']' | '/' | '-' | '"' => 0.42,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.96,
        'A'..='Z' | '_' | '<' | '>' | '=' | '+' | '&' => 0.74,
        '\0'..='\u{24f}' => 0.62,
        // Greek and Cyrillic; the wide characters of Asia and pictures.
        '\u{250}'..='\u{10ff}' => 0.72,
        _ => 1.1,
    }
}

/// `text` in one line of about `most` characters.
pub(super) fn shortened(text: &str, most: usize) -> String {
    text::excerpt(&text::one_line(text), most)
}

/// `text` as character data of XML.
pub(super) fn xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // XML has no other control characters, and no noncharacters.
            '\t' | '\n' => escaped.push(' '),
            '\u{fffe}' | '\u{ffff}' => {}
            c if c.is_control() => {}
            c => escaped.push(c),
        }
    }
    escaped
}
