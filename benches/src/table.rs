//! Tables for people.

/// Prints a title, a header and rows, with the first column left-aligned and all others right-aligned.
pub(crate) fn print(title: &str, head: &[&str], rows: &[Vec<String>]) {
    println!("{title}\n");
    let head: Vec<String> = head.iter().map(ToString::to_string).collect();
    let lines: Vec<&Vec<String>> = std::iter::once(&head).chain(rows).collect();
    let columns = lines.iter().map(|line| line.len()).max().unwrap_or_default();
    let width = |column: usize| lines.iter().filter_map(|line| Some(line.get(column)?.chars().count())).max();
    let widths: Vec<usize> = (0..columns).filter_map(width).collect();
    for line in lines {
        let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        println!("  {}", cells.collect::<Vec<_>>().join("   ").trim_end());
    }
    println!();
}

/// How many times `b` is `a`.
#[expect(clippy::cast_precision_loss, reason = "a ratio of counts, shown with three digits")]
pub(crate) fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b as f64
}
