//! Pictures of a report: each is shown on its page and lies beside it as two files.

use std::fs;
use std::io;
use std::path::Path;

use crate::plot::{self, Figure, Gantt};

/// The folder of pictures beside a page.
pub const FOLDER: &str = "plots";
/// Small letters smear in an image that is not twice as large as it is shown.
const PNG_SCALE: f32 = 2.0;

/// A picture with a name and a word on how to read it.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// Its name: that of its files.
    pub name: String,
    /// How to read it.
    pub caption: String,
    /// What it shows.
    pub drawing: Drawing,
}

/// What a picture shows.
#[derive(Clone, Debug, PartialEq)]
pub enum Drawing {
    /// Something measured, between axes.
    Figure(Figure),
    /// What ran where.
    Gantt(Gantt),
}

impl Picture {
    /// A figure.
    pub fn figure(name: &str, caption: impl Into<String>, figure: Figure) -> Picture {
        Picture { name: name.to_owned(), caption: caption.into(), drawing: Drawing::Figure(figure) }
    }

    /// A Gantt chart.
    pub fn gantt(name: &str, caption: impl Into<String>, gantt: Gantt) -> Picture {
        Picture { name: name.to_owned(), caption: caption.into(), drawing: Drawing::Gantt(gantt) }
    }

    /// The picture as SVG.
    pub fn svg(&self) -> String {
        match &self.drawing {
            Drawing::Figure(figure) => figure.svg(),
            Drawing::Gantt(gantt) => gantt.svg(),
        }
    }

    /// The picture as PNG.
    pub fn png(&self) -> Result<Vec<u8>, plot::Error> {
        match &self.drawing {
            Drawing::Figure(figure) => figure.png(PNG_SCALE),
            Drawing::Gantt(gantt) => gantt.png(PNG_SCALE),
        }
    }
}

/// Writes pictures into the folder of pictures of a report.
pub fn write_all<'a>(report: &Path, pictures: impl IntoIterator<Item = &'a Picture>) -> io::Result<()> {
    let folder = report.join(FOLDER);
    fs::create_dir_all(&folder)?;
    for picture in pictures {
        fs::write(folder.join(format!("{}.svg", picture.name)), picture.svg())?;
        let png = picture.png().map_err(io::Error::other)?;
        fs::write(folder.join(format!("{}.png", picture.name)), png)?;
    }
    Ok(())
}
