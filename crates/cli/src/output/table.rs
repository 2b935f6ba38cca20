//! Results for people: a table that fits the terminal.

use std::fmt;

use comfy_table::{CellAlignment, ContentArrangement, presets};

/// A table of rows with a title each, perhaps with a heading, and perhaps with another table below.
pub struct Table {
    heading: Option<String>,
    table: comfy_table::Table,
    below: Option<Box<Table>>,
}

impl Table {
    /// A table with these columns; all but the first hold figures.
    pub fn new<const COLUMNS: usize>(columns: [&str; COLUMNS]) -> Table {
        Table::with_columns(&columns)
    }

    /// The same where the columns are known later.
    pub fn with_columns(columns: &[impl ToString]) -> Table {
        let mut table = Table::plain();
        table.table.set_header(columns.iter().map(ToString::to_string));
        for column in table.table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }

    /// A table with these columns, all of them words; as wide as the terminal.
    pub fn texts<const COLUMNS: usize>(columns: [&str; COLUMNS]) -> Table {
        let mut table = Table::plain();
        table.table.set_header(columns);
        table
    }

    /// A table of titles and what belongs to them.
    pub fn plain() -> Table {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        Table { heading: None, table, below: None }
    }

    /// The same with a heading and a blank line above it.
    pub fn titled(self, heading: impl Into<String>) -> Table {
        Table { heading: Some(heading.into()), ..self }
    }

    /// The same, its cells wrapped to fit so many columns of a terminal.
    pub fn in_columns(mut self, columns: u16) -> Table {
        self.table.set_width(columns);
        self
    }

    /// The same with another table below.
    pub fn then(self, below: Table) -> Table {
        Table { below: Some(Box::new(below)), ..self }
    }

    /// One row more.
    pub fn row<const COLUMNS: usize>(&mut self, cells: [String; COLUMNS]) -> &mut Table {
        self.cells(&cells)
    }

    /// The same where the columns are known later.
    pub fn cells(&mut self, cells: &[String]) -> &mut Table {
        self.table.add_row(cells);
        self
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(heading) = &self.heading {
            write!(f, "\n{heading}\n")?;
        }
        write!(f, "{}", self.table.trim_fmt())?;
        self.below.as_ref().map_or(Ok(()), |below| write!(f, "\n{below}"))
    }
}
