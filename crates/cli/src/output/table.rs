//! Results for people: a table that fits the terminal.

use std::fmt;

use comfy_table::{CellAlignment, ContentArrangement, presets};

/// A table of rows with a title each, and perhaps another one below.
pub struct Table(comfy_table::Table, Option<Box<Table>>);

impl Table {
    /// A table with these columns; all but the first hold figures.
    pub fn new<const COLUMNS: usize>(columns: [&str; COLUMNS]) -> Table {
        let mut table = Table::plain();
        table.0.set_header(columns);
        for column in table.0.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }

    /// A table of titles and what belongs to them.
    pub fn plain() -> Table {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        Table(table, None)
    }

    /// The same with another table below.
    pub fn then(self, below: Table) -> Table {
        Table(self.0, Some(Box::new(below)))
    }

    /// One row more.
    pub fn row<const COLUMNS: usize>(&mut self, cells: [String; COLUMNS]) -> &mut Table {
        self.0.add_row(cells);
        self
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.trim_fmt())?;
        self.1.as_ref().map_or(Ok(()), |below| write!(f, "\n{below}"))
    }
}
