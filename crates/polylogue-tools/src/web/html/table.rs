//! Tables of a page.

use super::markdown::Writer;
use super::tree::Id;

/// Maximum number of rows of a table.
const MOST_ROWS: usize = 500;
/// Maximum number of columns of a table.
const MOST_COLUMNS: usize = 40;

impl Writer<'_> {
    /// A table, or the blocks in its cells if it is only for layout.
    pub(super) fn table(&self, id: Id, depth: usize) -> String {
        let rows = self.rows(id);
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let cells = || rows.iter().flatten();
        let is_layout = !(2..=MOST_COLUMNS).contains(&columns) || cells().any(|cell| self.holds_much(*cell));
        if is_layout {
            let cells = cells().map(|cell| self.blocks(*cell, depth + 1)).filter(|text| !text.is_empty());
            return cells.collect::<Vec<_>>().join("\n\n");
        }
        let mut lines: Vec<String> = Vec::new();
        for (at, row) in rows.iter().take(MOST_ROWS).enumerate() {
            let texts =
                row.iter().map(|cell| self.cell(*cell, depth)).chain(std::iter::repeat(String::new()));
            lines.push(line(texts.take(columns)));
            if at == 0 {
                lines.push(line(std::iter::repeat_n("---".to_owned(), columns)));
            }
        }
        if rows.len() > MOST_ROWS {
            lines.push(format!("\n({} more rows)", rows.len() - MOST_ROWS));
        }
        let caption = self.children(id).find(|child| self.tree.name(*child) == "caption");
        let caption = caption.map(|caption| self.inline_of(caption, depth)).filter(|text| !text.is_empty());
        let table = lines.join("\n");
        caption.map_or_else(|| table.clone(), |caption| format!("{caption}\n\n{table}"))
    }

    fn rows(&self, id: Id) -> Vec<Vec<Id>> {
        let is_part = |id: &Id| matches!(self.tree.name(*id), "thead" | "tbody" | "tfoot");
        let parts = self.children(id).filter(is_part).flat_map(|part| self.children(part));
        let rows = parts.filter(|row| self.tree.name(*row) == "tr");
        let is_cell = |id: &Id| matches!(self.tree.name(*id), "td" | "th");
        rows.map(|row| self.children(row).filter(is_cell).collect::<Vec<_>>())
            .filter(|row| !row.is_empty())
            .collect()
    }

    /// Whether a cell contains blocks.
    fn holds_much(&self, cell: Id) -> bool {
        let mut within = self.tree.within(cell, |id| self.main.leaves_out(id));
        within.any(|id| matches!(self.tree.name(id), "table" | "pre" | "blockquote" | "h1" | "h2" | "h3"))
    }

    fn cell(&self, cell: Id, depth: usize) -> String {
        self.inline_of(cell, depth).replace('\n', " ").replace('|', "\\|")
    }
}

fn line(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
}
