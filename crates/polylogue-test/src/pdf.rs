//! PDF documents of a few kilobytes.

/// Three pages, in objects that are not packed.
pub const THREE_PAGES: &[u8] = include_bytes!("../data/three-pages.pdf");

/// A hundred pages, all of which are in packed streams of objects, as most programs write them.
pub const HUNDRED_PAGES: &[u8] = include_bytes!("../data/hundred-pages.pdf");

/// Returns the beginning of [`HUNDRED_PAGES`], from which no reader can tell how many there are.
pub fn damaged() -> &'static [u8] {
    HUNDRED_PAGES.get(..5_000).unwrap_or_default()
}

/// Returns a document with so many empty pages, in objects that are not packed.
pub fn of_pages(pages: usize) -> Vec<u8> {
    let object = |number: usize, dict: &str| format!("{number} 0 obj\n<<{dict}>>\nendobj\n");
    let numbers = 3..pages + 3;
    let kids: String = numbers.clone().map(|number| format!("{number} 0 R ")).collect();
    let tree = object(2, &format!("/Type/Pages/Count {pages}/Kids[{kids}]"));
    let all: String = numbers.map(|number| object(number, "/Type/Page/Parent 2 0 R")).collect();
    format!("%PDF-1.7\n{}{tree}{all}", object(1, "/Type/Catalog/Pages 2 0 R")).into_bytes()
}
