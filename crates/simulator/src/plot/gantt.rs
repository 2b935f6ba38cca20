//! Gantt charts: a lane per node, a rectangle per job that ran there.

use super::axis::{Axis, Ruler, Unit};
use super::font;
use super::png::{self, Error};
use super::scene::{Anchor, Ink, SERIES_COUNT, Scene, Shape, rectangle};
use super::svg;

/// What ran on which node when.
#[derive(Clone, Debug, PartialEq)]
pub struct Gantt {
    /// What it shows.
    pub title: String,
    /// What to know when reading it.
    pub subtitle: Option<String>,
    /// The time shown, in seconds.
    pub window: (f64, f64),
    /// Nodes by name, from above.
    pub lanes: Vec<String>,
    /// What ran there.
    pub runs: Vec<Run>,
}

/// A job on a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The lane of its node.
    pub lane: usize,
    /// Which job: runs of one have one colour, and belong together.
    pub job: u64,
    /// When it began, in seconds.
    pub start: f64,
    /// When it ended, in seconds.
    pub end: f64,
}

const WIDTH: f64 = 760.0;
const TEXT: f64 = 12.0;
const LANE_MAX: f64 = 16.0;
const LANE_MIN: f64 = 3.0;
/// The height that lanes share if they can.
const LANES: f64 = 420.0;

impl Gantt {
    /// The chart as an SVG document, to be saved or put into a page.
    pub fn svg(&self) -> String {
        svg::write(&self.scene())
    }

    /// The chart as a PNG image, so many times its size.
    pub fn png(&self, scale: f32) -> Result<Vec<u8>, Error> {
        png::paint(&self.scene(), scale)
    }

    fn scene(&self) -> Scene {
        let lane = (LANES / self.lanes.len().max(1) as f64).clamp(LANE_MIN, LANE_MAX);
        let names = self.lanes.iter().map(|name| font::width(name, TEXT, false)).fold(0.0, f64::max);
        let (left, right) = (20.0 + names.min(160.0) + 8.0, WIDTH - 20.0);
        let top = if self.subtitle.is_some() { 66.0 } else { 48.0 };
        let bottom = top + lane * self.lanes.len() as f64;
        let mut scene = Scene::new(&self.title, WIDTH, bottom + 52.0);
        scene.bold((20.0, 28.0), &*self.title, 16.0);
        if let Some(subtitle) = &self.subtitle {
            scene.text((20.0, 48.0), subtitle, TEXT, Anchor::Start, Ink::Muted);
        }

        let (low, high) = self.window;
        let axis = Axis::new("time").unit(Unit::Time).bounds(low, high.max(low + 1e-6));
        let ruler = Ruler::new(&axis, None, false, 8).between(left, right);
        let mut grid = Vec::new();
        for (value, written) in ruler.marks() {
            let x = ruler.at(*value);
            grid.push(vec![(x, top), (x, bottom)]);
            scene.text((x, bottom + 18.0), written, TEXT, Anchor::Middle, Ink::Muted);
        }
        scene.lines(grid, Ink::Grid, 1.0, None);
        scene.text(((left + right) / 2.0, bottom + 38.0), axis.label, TEXT, Anchor::Middle, Ink::Text);

        // As many names as there is room for.
        let every = (15.0 / lane).ceil() as usize;
        for (place, name) in self.lanes.iter().enumerate().step_by(every.max(1)) {
            let y = top + (place as f64 + 0.5) * lane + TEXT * 0.35;
            scene.text((left - 8.0, y), name, TEXT, Anchor::End, Ink::Muted);
        }
        self.draw_runs(&mut scene, &ruler, top, lane);
        scene.line(vec![(left, top), (left, bottom), (right, bottom)], Ink::Muted, 1.0);
        scene
    }

    fn draw_runs(&self, scene: &mut Scene, ruler: &Ruler, top: f64, lane: f64) {
        let (low, high) = self.window;
        let shown = |run: &&Run| run.lane < self.lanes.len() && run.start < high && run.end > low;
        let mut runs: Vec<&Run> = self.runs.iter().filter(shown).collect();
        runs.sort_by(|one, other| one.job.cmp(&other.job).then(one.lane.cmp(&other.lane)));
        let rows = rows(&runs, self.lanes.len());
        let gap = (lane * 0.12).min(1.0);
        let mut row = rows.iter();
        for (number, job) in runs.chunk_by(|one, other| one.job == other.job).enumerate() {
            let outline = |(run, &(row, of)): (&&Run, &(usize, usize))| {
                let (from, to) = (ruler.at(run.start), ruler.at(run.end));
                let height = (lane - 2.0 * gap) / of as f64;
                let y = top + run.lane as f64 * lane + gap + height * row as f64;
                // What is too short to be seen is shown as the thinnest line.
                rectangle(from, y, (to - from).max(0.4), height)
            };
            scene.shapes.push(Shape::Area {
                outlines: job.iter().zip(row.by_ref()).map(outline).collect(),
                ink: Ink::Series(number % SERIES_COUNT),
                // Neighbours of one colour can be told apart.
                opacity: [0.9, 0.62][number / SERIES_COUNT % 2],
                hint: Some(format!("job {}", job[0].job)),
            });
        }
    }
}

/// For each run its row in its lane, and how many rows that lane needs: what runs at once stands side by side.
fn rows(runs: &[&Run], lanes: usize) -> Vec<(usize, usize)> {
    let mut by_start: Vec<usize> = (0..runs.len()).collect();
    by_start.sort_by(|&one, &other| runs[one].start.total_cmp(&runs[other].start).then(one.cmp(&other)));
    // Until when each row of each lane is taken.
    let mut taken: Vec<Vec<f64>> = vec![Vec::new(); lanes];
    let mut row_of = vec![0; runs.len()];
    for run in by_start {
        let rows = &mut taken[runs[run].lane];
        let free = rows.iter().position(|&until| until <= runs[run].start);
        let row = free.unwrap_or(rows.len());
        if free.is_none() {
            rows.push(0.0);
        }
        rows[row] = runs[run].end;
        row_of[run] = row;
    }
    runs.iter().zip(row_of).map(|(run, row)| (row, taken[run.lane].len())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_at_once_stands_in_rows_of_its_own() {
        let run = |lane, job, start, end| Run { lane, job, start, end };
        let runs = [run(0, 1, 0.0, 10.0), run(0, 2, 5.0, 9.0), run(0, 3, 10.0, 11.0), run(1, 4, 0.0, 10.0)];
        assert_eq!(rows(&runs.iter().collect::<Vec<_>>(), 2), [(0, 2), (1, 2), (0, 2), (0, 1)]);
    }
}
