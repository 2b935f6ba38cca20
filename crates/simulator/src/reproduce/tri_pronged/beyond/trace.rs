//! Jobs of a trace that say how many cores and how much memory they need, on machines that make a given load of them.

use std::path::Path;

use rand::RngExt;
use shoal_model::machine::Machine;
use shoal_model::units::Size;
use shoal_model::{Amount, Resources, Span};

use super::super::case::{Case, Drawn, Mix, Who, strength};
use crate::reproduce::Error;
use crate::streams::{Purpose, stream};
use crate::workload::{BadLines, Trace, WorkloadError};

/// The load that decides how many machines there are.
const LOAD: f64 = 0.85;
/// Machines of our days have so many times the memory of those that the generator draws.
const MEMORY_TIMES: u64 = 4;
/// From where on jobs of a trace are taken: the first ones come to an empty machine.
const FROM: (usize, usize) = (1, 5);
/// The cores of the largest machine.
const CORES_MOST: u32 = 8;
/// Without a trace: jobs come over so long.
const SAMPLE_OVER: Span = Span::from_hours(24 * 5);

/// The jobs, before they are submitted anywhere.
pub struct Jobs {
    jobs: Vec<Drawn>,
    from: String,
}

impl Jobs {
    /// So many jobs of the trace, one after the other; without one, of a sample.
    pub fn new(file: Option<&Path>, most: usize) -> Result<Jobs, Error> {
        let Some(file) = file else { return Ok(Jobs { jobs: sample(most), from: "a sample".to_owned() }) };
        // Real traces have lines that nobody can read; how many these are is told.
        let read = Trace { bad_lines: BadLines::Drop, ..Trace::new(file) }.read()?;
        let first = (read.jobs.len() * FROM.0 / FROM.1).min(read.jobs.len().saturating_sub(most));
        let whole = largest();
        let mut jobs = Vec::new();
        let mut begun = None;
        for job in read.jobs.iter().skip(first).filter(|job| job.width <= CORES_MOST) {
            let memory = job.memory_kib.map_or(0, |kib| kib.get().saturating_mul(u64::from(job.width)));
            let needs =
                Resources::cores(job.width).with_memory(Size::from_bytes(memory.saturating_mul(1 << 10)));
            if job.run == Span::ZERO || !needs.fits_in(&whole) {
                continue;
            }
            let at = job.submit.since(*begun.get_or_insert(job.submit));
            jobs.push(Drawn { at, needs, takes: job.run, estimate: None, entry: 1 });
            if jobs.len() == most {
                break;
            }
        }
        let unread = match (read.cleaning.unparsable, read.cleaning.bad_lines.first()) {
            (count, Some(first)) => format!(", {count} lines passed over (the first: {first})"),
            (_, None) => String::new(),
        };
        if jobs.is_empty() {
            let why = format!("{}: no job in it fits a machine of {whole}{unread}", file.display());
            return Err(Error::Workload(WorkloadError::Setting { setting: "trace", why }));
        }
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        Ok(Jobs { from: format!("{} jobs of {name}{unread}", jobs.len()), jobs })
    }

    /// Where they are from.
    pub fn about(&self) -> &str {
        &self.from
    }

    /// Machines that make the load, and the jobs, each submitted at one of them.
    pub fn draw(&self, seed: u64) -> (Vec<Machine>, Vec<Drawn>) {
        let drawing = Case { who: Who::Cent, mix: Mix::Mixed, gap_ms: 0, ratio: 0, seed };
        let work: f64 = self
            .jobs
            .iter()
            .map(|job| f64::from(job.needs.cores.get()) / 1e3 * job.takes.as_secs_f64())
            .sum();
        let over = self.jobs.last().map_or(1.0, |job| job.at.as_secs_f64()).max(1.0);
        let wanted = work / over / LOAD;
        let mut nodes = 1;
        while strength(&drawing.machines(nodes)) < wanted {
            nodes += 1 + nodes / 20;
        }
        let mut machines: Vec<Machine> = drawing.machines(nodes);
        for machine in &mut machines {
            machine.capacity.memory = Size::from_bytes(machine.capacity.memory.as_bytes() * MEMORY_TIMES);
        }
        // Each job can run somewhere.
        let strong = Machine { capacity: largest(), ..machines[0].clone() };
        machines.push(strong);
        let mut luck = stream(seed, Purpose::Workload, 2 << 34);
        let mut jobs = self.jobs.clone();
        jobs.iter_mut().for_each(|job| job.entry = luck.random_range(1..=machines.len() as u64));
        (machines, jobs)
    }
}

/// No machine has more.
fn largest() -> Resources {
    Resources::cores(CORES_MOST).with_memory(Size::from_gib(8 * MEMORY_TIMES)).with_disk(Size::from_gib(500))
}

/// Jobs of very different length, most of them short and small.
fn sample(jobs: usize) -> Vec<Drawn> {
    let mut luck = stream(1, Purpose::Workload, 3 << 34);
    let mut drawn: Vec<Drawn> = (0..jobs)
        .map(|_| {
            let at = Span::from_micros(luck.random_range(0..SAMPLE_OVER.as_micros()));
            // From a minute to a day, each tenfold as likely as the next.
            let takes = Span::from_micros((60e6 * 1_440f64.powf(luck.random::<f64>())) as u64);
            let cores = [1, 1, 1, 2, 4, 8][luck.random_range(0..6)];
            let memory = Size::from_bytes((64 << 20) << luck.random_range(0..9));
            Drawn { at, needs: Resources::cores(cores).with_memory(memory), takes, estimate: None, entry: 1 }
        })
        .collect();
    drawn.sort_by_key(|job| job.at);
    drawn
}
