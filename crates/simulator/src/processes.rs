//! The processes of a simulated machine: they know five programs, and take as long as they are told.
//!
//! A job of a simulation is one that would run for real: `sleep SECONDS`, `true` or `false`; any other program ends at
//! once with 127, as a shell says of what it does not find. `sometimes SECONDS EVERY` is for arrays: it takes so long if
//! the index can be divided by that number, and else no time. `compute SECONDS DRIFT` stands for work that a faster
//! machine does sooner: it takes the seconds divided by the machine's speed, and the drift. So the time that a job
//! really takes travels in its command, where no recipe looks, and not in its estimate.

use std::collections::BTreeMap;

use shoal_model::job::Work;
use shoal_model::machine::Speed;
use shoal_model::{Job, Span, Time};
use shoal_protocols::Protocol;
use shoal_protocols::node::{Action, Exit, Outcome, Task};

use crate::clock::Clock;
use crate::grid::NodeLayer;
use crate::world::Executor;

/// The processes of a simulated machine.
#[derive(Debug)]
pub struct Processes {
    /// How fast the machine is.
    speed: Speed,
    /// What runs, and what waits for something that does.
    running: BTreeMap<Task, Process>,
}

#[derive(Debug)]
struct Process {
    /// How it will end unless it is stopped.
    exit: Exit,
    /// When, in the world's time.
    ends: Time,
}

impl Default for Processes {
    fn default() -> Processes {
        Processes::on(Speed::BASELINE)
    }
}

impl Processes {
    /// Those of a machine of this speed.
    pub fn on(speed: Speed) -> Processes {
        Processes { speed, running: BTreeMap::new() }
    }
}

/// Work that takes this long on the baseline machine, and less on a faster one; and so many microseconds more, or
/// less, on any.
pub fn computation(base: Span, drift_micros: i64) -> Job {
    let seconds = |micros: u64| format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    let sign = if drift_micros < 0 { "-" } else { "" };
    let drift = format!("{sign}{}", seconds(drift_micros.unsigned_abs()));
    Job::command(["compute".to_owned(), seconds(base.as_micros()), drift])
}

/// How long such work takes on a machine.
pub fn takes_on(speed: Speed, base: Span, drift_micros: i64) -> Span {
    let drift = Span::from_micros(drift_micros.unsigned_abs());
    let takes = speed.time_for(base);
    if drift_micros < 0 { takes.saturating_sub(drift) } else { takes + drift }
}

/// A command that takes this long, in a simulation and for real.
pub fn command_taking(span: Span) -> Job {
    let micros = span.as_micros();
    Job::command(["sleep".to_owned(), format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)])
}

/// What a shell says of a program that it does not find.
const NOT_FOUND: i32 = 127;

/// How long a command takes, and its exit code; of an array, for one of its indexes.
fn run(work: &Work, speed: Speed, index: Option<u32>) -> (Span, i32) {
    let Work::Command(argv) = work else { return (Span::ZERO, NOT_FOUND) };
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    match argv.as_slice() {
        ["sleep", seconds] => parse_seconds(seconds).map_or((Span::ZERO, 1), |takes| (takes, 0)),
        ["compute", base, drift] => {
            let (negative, drift) = drift.strip_prefix('-').map_or((false, *drift), |drift| (true, drift));
            match (parse_seconds(base), parse_seconds(drift)) {
                (Some(base), Some(drift)) => {
                    let drift = i64::try_from(drift.as_micros()).unwrap_or(i64::MAX);
                    (takes_on(speed, base, if negative { -drift } else { drift }), 0)
                }
                (None, _) | (_, None) => (Span::ZERO, 1),
            }
        }
        ["sometimes", seconds, every] => match (parse_seconds(seconds), every.parse::<u32>()) {
            (Some(takes), Ok(every)) if index.is_some_and(|index| index.is_multiple_of(every)) => (takes, 0),
            (Some(_), Ok(_)) => (Span::ZERO, 0),
            (None, _) | (_, Err(_)) => (Span::ZERO, 1),
        },
        ["true"] => (Span::ZERO, 0),
        ["false"] => (Span::ZERO, 1),
        _ => (Span::ZERO, NOT_FOUND),
    }
}

fn parse_seconds(text: &str) -> Option<Span> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let part = format!("{part:0<6}");
    let micros: u64 = part.get(..6)?.parse().ok()?;
    Some(Span::from_secs(whole.parse().ok()?) + Span::from_micros(micros))
}

impl<P: Protocol + NodeLayer> Executor<P> for Processes {
    fn perform(&mut self, now: Time, clock: &Clock, action: Action) -> Vec<(Span, Outcome)> {
        match action {
            // In a simulation all files are everywhere.
            Action::Stage { .. } => Vec::new(),
            Action::Start { task, brief, stop_at, short, behind } => {
                let (takes, code) = run(&brief.envelope.job().work, self.speed, brief.index);
                let before = behind.and_then(|behind| self.running.get(&behind));
                let begins = before.map_or(now, |before| before.ends.max(now));
                let limit = clock.world_at_local(stop_at).since(begins);
                let stopped = if short { Exit::CutShort } else { Exit::Overran };
                let (after, exit) = if takes > limit { (limit, stopped) } else { (takes, Exit::Code(code)) };
                let ends = begins + after;
                self.running.insert(task, Process { exit, ends });
                vec![(ends.since(now), Outcome::unmeasured(task, exit))]
            }
            Action::Adopt(task) => {
                if self.running.contains_key(&task) {
                    return Vec::new();
                }
                self.running.insert(task, Process { exit: Exit::Lost, ends: now });
                vec![(Span::ZERO, Outcome::unmeasured(task, Exit::Lost))]
            }
            Action::Stop(task) => match self.running.get_mut(&task) {
                Some(process) => {
                    *process = Process { exit: Exit::Stopped, ends: now };
                    vec![(Span::ZERO, Outcome::unmeasured(task, Exit::Stopped))]
                }
                None => Vec::new(),
            },
        }
    }

    fn holds(&mut self, _now: Time, Outcome(task, exit, _): &Outcome) -> bool {
        let holds = self.running.get(task).is_some_and(|process| process.exit == *exit);
        if holds {
            self.running.remove(task);
        }
        holds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_takes_as_long_as_it_was_made_for() {
        for span in [Span::ZERO, Span::from_micros(1), Span::from_millis(12_345), Span::from_hours(900)] {
            assert_eq!(run(&command_taking(span).work, Speed::BASELINE, None), (span, 0));
        }
    }

    #[test]
    fn work_takes_less_on_a_faster_machine_and_drifts_all_the_same() {
        let twice = Speed::new(2_000.try_into().unwrap());
        let takes = |drift| run(&computation(Span::from_secs(100), drift).work, twice, None);
        assert_eq!(takes(0), (Span::from_secs(50), 0));
        assert_eq!(takes(1_500_000), (Span::from_millis(51_500), 0));
        assert_eq!(takes(-1_500_000), (Span::from_millis(48_500), 0));
        assert_eq!(takes(-60_000_000), (Span::ZERO, 0));
    }

    #[test]
    fn programs_end_as_their_names_say() {
        let known: [(&[&str], i32); 6] = [
            (&["true"], 0),
            (&["false"], 1),
            (&["sleep", "soon"], 1),
            (&["sleep"], NOT_FOUND),
            (&["sleep", "1", "2"], NOT_FOUND),
            (&["fortune"], NOT_FOUND),
        ];
        for (argv, code) in known {
            let job = Job::command(argv.iter().copied());
            assert_eq!(run(&job.work, Speed::BASELINE, None), (Span::ZERO, code), "{argv:?}");
        }
    }
}
