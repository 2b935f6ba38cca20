//! A table of a paper with our figures in it, for a terminal or a page.

/// A table of a paper with our figures in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sheet {
    /// What it shows.
    pub title: String,
    /// The names of its columns.
    pub columns: Vec<String>,
    /// Its rows, as many cells each as there are columns.
    pub rows: Vec<Vec<String>>,
}

impl Sheet {
    pub(super) fn new<const COLUMNS: usize>(title: impl Into<String>, columns: [&str; COLUMNS]) -> Sheet {
        Sheet { title: title.into(), columns: columns.map(str::to_owned).to_vec(), rows: Vec::new() }
    }

    pub(super) fn row<const COLUMNS: usize>(&mut self, cells: [String; COLUMNS]) {
        assert_eq!(cells.len(), self.columns.len(), "a cell for each column");
        self.rows.push(cells.to_vec());
    }
}
