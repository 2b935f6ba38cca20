//! A job as the command line describes it: flags, a job file, or a script with `#SHOAL` lines.

mod file;
mod flags;
mod script;

use std::path::{Path, PathBuf};

use shoal_model::Job;
use shoal_model::job::Ended;

pub use flags::{Beside, Flags, JobRef, now};

use crate::error::Error;

/// Bytes of a job file or script that are read: more than a job may have.
const FILE_MAX: u64 = 1 << 20;

/// What to run: a program after `--`, a job file, or a script.
#[derive(Debug, clap::Args)]
pub struct What {
    /// A job file (.toml) or a script with #SHOAL lines; - reads a script from standard input
    #[arg(value_name = "FILE", required_unless_present = "command")]
    file: Option<PathBuf>,
    /// The program to run, and its arguments
    #[arg(last = true, value_name = "CMD", conflicts_with = "file")]
    command: Vec<String>,
    #[command(flatten)]
    flags: Flags,
}

impl What {
    /// The job, and what is not in it.
    pub fn read(self) -> Result<(Job, Beside), Error> {
        let mut jobs = self.read_all()?.into_iter();
        match (jobs.next(), jobs.len()) {
            (Some(Wanted { job, beside, .. }), 0) => Ok((job, beside)),
            (_, more) => Err(Error::config(format!("the file has {} jobs, and one is expected", more + 1))
                .hint("`shoal submit` takes files with several")),
        }
    }

    /// All jobs, in the order of the file; only a job file can have several.
    pub fn read_all(self) -> Result<Vec<Wanted>, Error> {
        let What { file, command, flags } = self;
        let one = |(job, beside): (Job, Beside)| vec![Wanted { job, beside, fellows: Vec::new() }];
        let Some(path) = file else { return flags.apply(Job::command(command)).map(one) };
        let text = read(&path)?;
        if path.extension().is_some_and(|extension| extension == "toml") {
            let jobs = file::read(&path, &text)?.into_iter();
            return jobs
                .map(|file::Read { job, fellows, others }| {
                    let (job, mut beside) = flags.clone().apply(job)?;
                    beside.after.extend(others);
                    Ok(Wanted { job, beside, fellows })
                })
                .collect();
        }
        let own = script::flags(&path.display().to_string(), &text)?;
        own.with(flags).apply(Job::script(text)).map(one)
    }
}

/// A job that is to be submitted.
#[derive(Debug)]
pub struct Wanted {
    /// The job.
    pub job: Job,
    /// What is said of it and is not in it.
    pub beside: Beside,
    /// Those that it is to start after of the jobs before it in the same file, by their places, from 0.
    pub fellows: Vec<(usize, Ended)>,
}

fn read(path: &Path) -> Result<String, Error> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().take(FILE_MAX + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(FILE_MAX + 1).read_to_end(&mut bytes))
    };
    match read {
        Ok(length) if length as u64 > FILE_MAX => {
            Err(Error::config(format!("{} has more than 1 MiB", path.display()))
                .hint("bring large parts along as files, or read them from where they are"))
        }
        Ok(_) => String::from_utf8(bytes).map_err(|error| {
            let (at, name) = (error.utf8_error().valid_up_to(), path.display());
            let line = error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
            Error::config(format!("{name}, line {line}: not text in UTF-8"))
                .hint(format!("to run a program, put it after --: shoal submit -- {name}"))
        }),
        Err(error) => {
            let told = Error::config(format!("cannot read {}: {error}", path.display()));
            Err(match error.kind() {
                std::io::ErrorKind::NotFound => {
                    let name = path.display();
                    told.hint(format!("to run a program, put it after --: shoal submit -- {name}"))
                }
                _ => told,
            })
        }
    }
}

/// The word that was probably meant.
pub fn nearest<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const ALIKE: f64 = 0.7;
    let close = known.into_iter().map(|word| (strsim::jaro_winkler(unknown, word), word));
    close.filter(|(likeness, _)| *likeness > ALIKE).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    const FILE: &str =
        "[[job]]\nname = 'a'\ncommand = ['x']\n[[job]]\ncommand = ['y']\nnodes = 2\nafter = ['a:any']\n";
    const SCRIPT: &str =
        "#!/bin/sh\n#SHOAL --nodes 2 --time 1h --name 'two words' --in a=b\n#SHOAL --array 1-9%2\ntrue\n";

    /// A text with pieces put in, taken out or taken twice.
    fn changed(text: &str, changes: &[(prop::sample::Index, usize, String)]) -> String {
        let mut letters: Vec<char> = text.chars().collect();
        for (place, gone, new) in changes {
            let place = place.index(letters.len() + 1);
            let end = (place + gone).min(letters.len());
            letters.splice(place..end, new.chars());
        }
        letters.into_iter().collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

        #[test]
        fn files_and_scripts_that_make_no_sense_are_errors_and_never_panics(
            changes in prop::collection::vec((any::<prop::sample::Index>(), 0..8_usize, "[ -~\\n\u{0}é]{0,4}"), 1..4)
        ) {
            let _ = file::read(Path::new("f.toml"), &changed(FILE, &changes));
            let _ = script::flags("job.sh", &changed(SCRIPT, &changes));
        }
    }
}
