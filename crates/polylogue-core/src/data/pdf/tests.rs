//! Sizes of PDFs: of whole files, and of what readers could disagree about.

use miniz_oxide::deflate::compress_to_vec_zlib;
use proptest::prelude::*;

use super::*;

/// As it was written by hand, and with its pages in object streams.
const FILES: [(&[u8], u64, u64); 2] = [
    (include_bytes!("../../../../polylogue-test/data/three-pages.pdf"), 3, 60),
    (include_bytes!("../../../../polylogue-test/data/hundred-pages.pdf"), 100, 2_392),
];

/// A file with these objects, numbered from 1 on.
fn file<T: AsRef<[u8]>>(objects: &[T]) -> Vec<u8> {
    let mut file = b"%PDF-1.7\n".to_vec();
    for (at, object) in objects.iter().enumerate() {
        file.extend(format!("{} 0 obj\n", at + 1).bytes());
        file.extend(object.as_ref());
        file.extend(b"\nendobj\n");
    }
    file
}

fn stream(dict: &str, data: &[u8]) -> Vec<u8> {
    [format!("<<{dict}>>\nstream\r\n").as_bytes(), data, b"\nendstream"].concat()
}

const CATALOG: &str = "<</Type/Catalog/Pages 2 0 R>>";
const ONE: &str = "<</Type/Pages/Kids[3 0 R]/Count 1>>";
const PAGE: &str = "<</Type/Page/Parent 2 0 R/Contents 4 0 R>>";

/// A page with the content `data`.
fn page(dict: &str, data: &[u8]) -> Vec<u8> {
    file(&[CATALOG.as_bytes(), ONE.as_bytes(), PAGE.as_bytes(), &stream(dict, data)])
}

fn pages(objects: &[&str]) -> Option<u64> {
    PdfSize::of(&file(objects)).map(|size| size.pages)
}

/// The text of a page with the content `data`.
fn text(dict: &str, data: &[u8]) -> Option<u64> {
    PdfSize::of(&page(dict, data)).map(|size| {
        assert_eq!(size.pages, 1);
        size.text
    })
}

#[test]
fn files_have_their_pages_and_their_text() {
    for (file, pages, text) in FILES {
        assert_eq!(PdfSize::of(file), Some(PdfSize { pages, text, is_exact: true }));
        // What was written after it is another version.
        let versions = [file, b"\n2 0 obj\n<</Type/Pages/Kids[]/Count 0>>\nendobj\n"].concat();
        assert_eq!(PdfSize::of(&versions), Some(PdfSize { pages, text, is_exact: false }));
    }
    for cut in 0..FILES[0].0.len() {
        let size = PdfSize::of(&FILES[0].0[..cut]);
        assert!(size.is_none_or(|size| size.pages == 3), "{cut}: {size:?}");
    }
}

/// What a provider finds in others may be less than is charged.
#[test]
fn the_pages_of_a_file_are_exact_if_nothing_says_otherwise() {
    for (objects, expected) in [
        (&[CATALOG, ONE, PAGE][..], true),
        (&[CATALOG, "<</Kids[3 0 R 4 0 R]/Count 2>>", PAGE, PAGE], true),
        (&[CATALOG, "<</Kids[3 0 R 3 0 R]/Count 2>>", PAGE], false),
        (&[CATALOG, "<</Kids[3 0 R]/Count 600>>", PAGE], false),
        (&[CATALOG, "<</Kids[3 0 R]>>", PAGE], false),
        (&[CATALOG, ONE, PAGE, PAGE], false),
        (&[CATALOG, ONE, PAGE, CATALOG], false),
        (&[CATALOG, "<</Type/Pages/Kids[]/Count 0>>"], false),
    ] {
        let size = PdfSize::of(&file(objects)).unwrap();
        assert_eq!(size.is_exact, expected, "{objects:?}");
    }
}

#[test]
fn pages_count_as_often_as_a_reader_can_find_them() {
    for (objects, expected) in [
        (&[CATALOG, ONE, PAGE][..], Some(1)),
        (&[CATALOG, "<</Type/Pages/Kids[3 0 R 3 0 R]>>", PAGE], Some(2)),
        (&[CATALOG, "<</Type/Pages/#4bids [3 0 R 4 0 R]>>", PAGE, PAGE], Some(2)),
        (&[CATALOG, "<</Kids 4 0 R>>", "<</A[<</B(>>)>>]>>", "[3 0 R % 9 0 R\n3 0 R]"], Some(2)),
        (
            &[CATALOG, "<</Kids[3 0 R 3 0 R]>>", "<</Kids[4 0 R 4 0 R]>>", "<</Kids[5 0 R 5 0 R]>>", "<<>>"],
            Some(8),
        ),
        (&[CATALOG, "<</Kids[3 0 R]/Count 600>>", PAGE], Some(600)),
        // Not in the tree.
        (&[CATALOG, ONE, PAGE, PAGE, PAGE], Some(3)),
        (&["<</Pages 3 0 R>>", "<</Pages 4 0 R>>", "<<>>", "<</Kids[3 0 R 3 0 R]>>"], Some(2)),
        // A name tree.
        (&[CATALOG, ONE, PAGE, "<</Kids[9 0 R]>>"], Some(1)),
        (&[CATALOG, ONE], None),
        (&[CATALOG, "<</Kids[2 0 R]>>"], None),
        (&[CATALOG, "<</Kids[3 0 R null]>>", PAGE], None),
        (&[CATALOG, "<</Kids[<</Type/Page>>]>>"], None),
        (&[CATALOG, "<</Kids[3 0 R]/Kids[3 0 R 3 0 R]>>", PAGE], None),
        (&["<</Pages<</Kids[]>>>>"], None),
        (&[CATALOG, ONE, PAGE, "<</Filter/Standard>>", "<</Encrypt 4 0 R>>"], None),
        (&[CATALOG, ONE, PAGE, "<</Type 5 0 R>>", "/ObjStm"], None),
        (&[CATALOG, ONE, PAGE, "<</A"], None),
        (&[PAGE], None),
        (&[], None),
    ] {
        assert_eq!(pages(objects), expected, "{objects:?}");
    }
}

#[test]
fn strings_that_pages_show_are_text() {
    let flate = |data: &[u8]| compress_to_vec_zlib(data, 6);
    for (content, expected) in [
        (&b"BT (Hello) Tj ET"[..], 6),
        (b"BT/F1 9 Tf[(H)-20.5(ello)]TJ T*(more)' 1 2(and)\" ET", 2 + 5 + 5 + 4),
        (b"<48 65 6c6C 6f> Tj <> Tj <4> Tj", 6 + 1 + 2),
        (br"(a\)b (c\\) \101\8\n) Tj", 13),
        (b"/Span<</ActualText(instead)/E true>>BDC ET", 8),
        // No text that is shown.
        (b"/Lang (en) gs % (comment) Tj\n(not shown) xx (without an end Tj", 0),
        (b"BI /W 1 ID (\xff\x00 EIEI\x01( EI (after) Tj", 6),
        (b"ID (after) Tj", 6),
    ] {
        let shown = String::from_utf8_lossy(content);
        assert_eq!(text("", content), Some(expected), "{shown}");
        assert_eq!(text("/Filter/FlateDecode", &flate(content)), Some(expected), "{shown}");
        assert_eq!(text("/Filter[/Fl]/DecodeParms[null]", &flate(content)), Some(expected), "{shown}");
    }
    // `Hello` in base 85, whose last group is not full.
    assert_eq!(text("/Filter/A85", b"87cUR\nDZ~>"), Some(0));
    assert_eq!(of_85(b"87cUR\nDZ~>"), b"Hello");
    let packed = [b"9jqo^BlbD-BleB1DJ+*+F(f,q".as_slice(), b"~>"].concat();
    assert_eq!(of_85(&packed), b"Man is distinguished");
    assert_eq!(of_85(b"z!!~>"), [0; 5]);
}

/// What `data` is in base 85.
fn of_85(data: &[u8]) -> Vec<u8> {
    unpacked(data, &[b"ASCII85Decode".as_slice().into()], 0).unwrap().into_owned()
}

#[test]
fn what_may_have_more_text_than_is_found_is_not_counted() {
    let (hello, bomb) = (compress_to_vec_zlib(b"(Hello) Tj", 6), vec![b' '; MOST_UNPACKED + 1]);
    for (dict, data, expected) in [
        ("/Filter/FlateDecode", &hello[..], Some(6)),
        ("/Filter/FlateDecode/DecodeParms<</Predictor 1>>", &hello, Some(6)),
        ("/Filter/FlateDecode/DecodeParms<</Predictor 12>>", &hello, None),
        ("/Filter/FlateDecode/DecodeParms 5 0 R", &hello, None),
        ("/Filter 5 0 R", &hello, None),
        ("/Filter/LZWDecode", &hello, None),
        ("/Filter[/ASCII85Decode/FlateDecode]", &hello, None),
        ("/Filter/FlateDecode", &hello[..8], None),
        ("/Filter/FlateDecode", b"", None),
        ("/Filter/FlateDecode", &compress_to_vec_zlib(&bomb, 1), None),
        // Pictures have none.
        ("/Filter/DCTDecode", b"\xff\xd8", Some(0)),
        ("/Subtype/Image/Filter/FlateDecode/DecodeParms<</Predictor 12>>", &hello, Some(0)),
        ("/Type/XRef/Filter/FlateDecode/DecodeParms<</Predictor 12>>", &hello, Some(0)),
    ] {
        assert_eq!(text(dict, data), expected, "{dict}");
    }
    let glued = page("", b"(Hello) Tj");
    let at = find(&glued, b"stream\r\n").unwrap() + 6;
    assert_eq!(PdfSize::of(&[&glued[..at], b"x", &glued[at..]].concat()), None);
}

#[test]
fn objects_in_streams_are_found_and_have_no_streams() {
    let objects = |head: &str, body: &str| {
        let content = format!("{head} {body}");
        let dict = format!("/Type/ObjStm/N 2/First {}/Filter/FlateDecode", head.len() + 1);
        file(&[CATALOG.as_bytes(), &stream(&dict, &compress_to_vec_zlib(content.as_bytes(), 6))])
    };
    let tree = "<</Kids[7 0 R 7 0 R]>> <</Type/Page>>";
    let size = |head: &str, body: &str| PdfSize::of(&objects(head, body));
    // The second object of the file is also one that is packed.
    assert_eq!(size("2 0 7 23", tree), Some(PdfSize { pages: 2, text: 0, is_exact: false }));
    assert_eq!(size("2 0 7", tree), None);
    assert_eq!(size("2 0 7 99", tree), None);
    assert_eq!(size("2 0 7 x", tree), None);
    // So long that it is packed, and not stored with the word that ends a stream.
    let text = "(Hello) Tj\n".repeat(20);
    let inner = format!("<</Kids[7 0 R]>> <</Type/ObjStm/First 0>>stream\n{text}endstream");
    assert_eq!(size("2 0 7 17", &inner), Some(PdfSize { pages: 1, text: 0, is_exact: false }));
}

/// Objects of which each begins within the one before: to read all of them would take hours.
#[test]
fn a_file_that_takes_too_long_is_not_counted() {
    let nested = "1 0 obj[".repeat(200_000) + &"]".repeat(200_000);
    assert_eq!(PdfSize::of(nested.as_bytes()), None);
    let doubled: Vec<String> = (3..70).map(|below| format!("<</Kids[{below} 0 R {below} 0 R]>>")).collect();
    let objects: Vec<&str> = [CATALOG].into_iter().chain(doubled.iter().map(String::as_str)).collect();
    assert_eq!(pages(&objects), None);
    let objects: Vec<&str> = objects.into_iter().take(60).chain([PAGE]).collect();
    assert_eq!(pages(&objects), Some(1 << 59));
}

proptest! {
    /// Whatever the bytes are, it ends and does not panic.
    #[test]
    fn any_bytes_have_a_size_or_none(
        which in 0..2usize, cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..9),
        words in prop::collection::vec(prop::sample::select(vec![
            "1 0 obj", "2 0 obj", "<<", ">>", "[", "]", "(", ")", "<", ">", "/Pages", "/Kids", "/Count", "2 0 R", "/Type",
            "/Page", "/ObjStm", "/First", "0", "stream\n", "endstream", "endobj", "%", "\n", "\\", "BI", "ID", "EI", "Tj", "#4",
        ]), 0..40),
    ) {
        let mut file = FILES[which].0.to_vec();
        for (at, byte) in cuts {
            let at = at.index(file.len());
            file[at] = byte;
        }
        let made = words.join(" ");
        for bytes in [&file[..], made.as_bytes(), &[&file[..], made.as_bytes()].concat()] {
            let size = PdfSize::of(bytes);
            prop_assert!(size.is_none_or(|size| size.pages > 0));
        }
    }
}
