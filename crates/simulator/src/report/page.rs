//! A page of results: one HTML file that holds all it shows and opens from disk, on a phone as on a wide screen.
//!
//! Whatever is handed in as text is shown as that text. Only pictures are taken as they are.

use std::fmt::Write;

use crate::plot::escape;

/// How all pages look.
const STYLE: &str = include_str!("page.css");
/// Pages with so many sections say at their top which there are.
const CONTENTS_FROM: usize = 4;

/// A page on its way.
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    lead: Vec<String>,
    body: String,
    sections: Vec<String>,
    /// Whether a row of figures is open, which the next figure joins.
    in_figures: bool,
}

/// Rows and columns of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    head: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

/// What stands in a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A figure, set flush right.
    Number(String),
    /// Whether a claim holds; none where nothing is claimed.
    Holds(Option<bool>),
}

impl Page {
    /// An empty page.
    pub fn new(title: impl Into<String>) -> Page {
        Page {
            title: title.into(),
            lead: Vec::new(),
            body: String::new(),
            sections: Vec::new(),
            in_figures: false,
        }
    }

    /// A paragraph below the title.
    pub fn lead(mut self, text: impl Into<String>) -> Page {
        self.lead.push(text.into());
        self
    }

    /// A section; what follows belongs to it.
    pub fn section(mut self, title: impl Into<String>) -> Page {
        self.end_figures();
        let title = title.into();
        self.sections.push(title);
        let number = self.sections.len();
        let title = escape(&self.sections[number - 1]);
        let _ = writeln!(self.body, "<h2 id=\"s{number}\">{title}</h2>");
        self
    }

    /// A paragraph.
    pub fn text(mut self, text: impl AsRef<str>) -> Page {
        self.end_figures();
        let _ = writeln!(self.body, "<p>{}</p>", escape(text.as_ref()));
        self
    }

    /// A table, which scrolls in its own box where the screen is narrow.
    pub fn table(mut self, caption: impl AsRef<str>, table: &Table) -> Page {
        self.end_figures();
        table.write(&mut self.body, caption.as_ref());
        self
    }

    /// A picture as [`crate::plot`] draws it; those that follow each other share the screen.
    pub fn figure(mut self, caption: impl AsRef<str>, svg: &str) -> Page {
        if !self.in_figures {
            self.body.push_str("<div class=\"figures\">\n");
            self.in_figures = true;
        }
        let _ = write!(self.body, "<figure><div class=\"picture\">\n{svg}</div>");
        if !caption.as_ref().is_empty() {
            let _ = write!(self.body, "<figcaption>{}</figcaption>", escape(caption.as_ref()));
        }
        self.body.push_str("</figure>\n");
        self
    }

    /// Text as it stands in a file.
    pub fn listing(mut self, text: impl AsRef<str>) -> Page {
        self.end_figures();
        // A line break right after the tag would be swallowed.
        let _ = writeln!(self.body, "<pre>\n{}</pre>", escape(text.as_ref()));
        self
    }

    /// The page as HTML.
    pub fn finish(mut self) -> String {
        self.end_figures();
        let title = escape(&self.title);
        let mut page = String::with_capacity(self.body.len() + STYLE.len() + 1_000);
        let _ = write!(
            page,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
        );
        for lead in &self.lead {
            let _ = writeln!(page, "<p class=\"lead\">{}</p>", escape(lead));
        }
        if self.sections.len() >= CONTENTS_FROM {
            page.push_str("<nav aria-label=\"Contents\"><ol>\n");
            for (number, section) in (1..).zip(&self.sections) {
                let _ = writeln!(page, "<li><a href=\"#s{number}\">{}</a></li>", escape(section));
            }
            page.push_str("</ol></nav>\n");
        }
        page.push_str(&self.body);
        page.push_str("</main>\n</body>\n</html>\n");
        page
    }

    fn end_figures(&mut self) {
        if std::mem::take(&mut self.in_figures) {
            self.body.push_str("</div>\n");
        }
    }
}

impl Table {
    /// A table with these columns.
    pub fn new(head: impl IntoIterator<Item = impl Into<String>>) -> Table {
        Table { head: head.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// A table of titles and what belongs to them.
    pub fn of_facts(facts: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>) -> Table {
        let row = |(title, what): (_, _)| vec![Cell::text(title), Cell::text(what)];
        Table { head: Vec::new(), rows: facts.into_iter().map(row).collect() }
    }

    /// The same with one row more.
    pub fn row(mut self, cells: impl IntoIterator<Item = Cell>) -> Table {
        self.rows.push(cells.into_iter().collect());
        self
    }

    fn write(&self, out: &mut String, caption: &str) {
        out.push_str("<div class=\"box\" tabindex=\"0\"><table>\n");
        if !caption.is_empty() {
            let _ = writeln!(out, "<caption>{}</caption>", escape(caption));
        }
        if !self.head.is_empty() {
            out.push_str("<thead><tr>");
            for (column, title) in self.head.iter().enumerate() {
                // The head stands where its figures do.
                let is_number = |row: &Vec<Cell>| matches!(row.get(column), Some(Cell::Number(_)));
                let class = if self.rows.iter().any(is_number) { " class=\"number\"" } else { "" };
                let _ = write!(out, "<th scope=\"col\"{class}>{}</th>", escape(title));
            }
            out.push_str("</tr></thead>\n");
        }
        out.push_str("<tbody>\n");
        for row in &self.rows {
            out.push_str("<tr>");
            for (column, cell) in row.iter().enumerate() {
                cell.write(out, column == 0);
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n");
    }
}

impl Cell {
    /// Words.
    pub fn text(text: impl Into<String>) -> Cell {
        Cell::Text(text.into())
    }

    /// A figure.
    pub fn number(number: impl Into<String>) -> Cell {
        Cell::Number(number.into())
    }

    fn write(&self, out: &mut String, first: bool) {
        let _ = match self {
            Cell::Text(text) if first => write!(out, "<th scope=\"row\">{}</th>", escape(text)),
            Cell::Text(text) => write!(out, "<td>{}</td>", escape(text)),
            Cell::Number(number) => write!(out, "<td class=\"number\">{}</td>", escape(number)),
            Cell::Holds(Some(true)) => write!(out, "<td class=\"yes\">holds</td>"),
            Cell::Holds(Some(false)) => write!(out, "<td class=\"no\">does not hold</td>"),
            Cell::Holds(None) => write!(out, "<td class=\"none\">no claim</td>"),
        };
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::text(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_text_is_escaped() {
        let evil = "<script>alert('&')</script>\"";
        let table = Table::new([evil]).row([Cell::text(evil), Cell::number(evil), evil.into()]);
        let page = Page::new(evil)
            .lead(evil)
            .section(evil)
            .section(evil)
            .section(evil)
            .section(evil)
            .text(evil)
            .table(evil, &table)
            .table("", &Table::of_facts([(evil, evil)]))
            .figure(evil, "<svg></svg>")
            .listing(evil)
            .finish();
        assert!(!page.contains("<script"), "{page}");
        let escaped = "&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;&quot;";
        assert_eq!(page.matches(escaped).count(), 21, "each of them is still there");
    }

    #[test]
    fn page_needs_nothing_from_elsewhere() {
        let page = Page::new("p").figure("c", "<svg></svg>").finish();
        for outside in ["http:", "https:", "src=", "url(", "@import", "<link"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn claims_are_told_in_words() {
        let row = |holds| [Cell::text("claim"), Cell::Holds(holds)];
        let table = Table::new(["id", "holds"]).row(row(Some(true))).row(row(Some(false))).row(row(None));
        let page = Page::new("p").table("", &table).finish();
        for told in ["class=\"yes\">holds<", "class=\"no\">does not hold<", "class=\"none\">no claim<"] {
            assert_eq!(page.matches(told).count(), 1, "{told}");
        }
    }

    #[test]
    fn figures_in_a_row_share_a_box_and_boxes_are_closed() {
        let page =
            Page::new("p").figure("a", "").figure("b", "").text("t").figure("c", "").section("s").finish();
        assert_eq!(page.matches("<div class=\"figures\">").count(), 2);
        assert_eq!(page.matches("<div").count(), page.matches("</div>").count());
        assert_eq!(page.matches("<figure>").count(), page.matches("</figure>").count());
    }

    #[test]
    fn only_a_long_page_has_contents() {
        let sections = |count: usize| (0..count).fold(Page::new("p"), |page, _| page.section("s")).finish();
        assert!(!sections(CONTENTS_FROM - 1).contains("<nav"));
        assert!(sections(CONTENTS_FROM).contains("<a href=\"#s4\">s</a>"));
    }
}
