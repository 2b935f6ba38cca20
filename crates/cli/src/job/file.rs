//! Job files: one job, or several as `[[job]]`, of which later ones may start after earlier ones by their names.
//!
//! ```toml
//! [[job]]
//! name = "prepare"
//! command = ["prepare"]
//!
//! [[job]]
//! command = ["compute"]
//! nodes = 4
//! after = ["prepare"]        # or "prepare:any", or the id of any job, shortened as long as it is unambiguous
//! ```

use std::path::Path;

use shoal_model::Job;
use shoal_model::job::Ended;

use super::{JobRef, nearest};
use crate::error::Error;

/// Jobs of one file, at most.
const JOBS_MAX: usize = 1_000;
/// Hexadecimal digits of a whole id.
const ID_DIGITS: usize = 32;

/// Jobs before one in the same file that it is to start after, by their places, from 0.
type Fellows = Vec<(usize, Ended)>;

/// A job of a file, and those that it is to start after: of the same file, and others whose ids are shortened.
#[derive(Debug)]
pub(super) struct Read {
    pub job: Job,
    pub fellows: Fellows,
    pub others: Vec<JobRef>,
}

/// The jobs of a file.
pub(super) fn read(path: &Path, text: &str) -> Result<Vec<Read>, Error> {
    let wrong = |what: String| Error::config(format!("{}: {what}", path.display()));
    // Whatever is wrong with a file of one job is told with its line.
    let table = match text.parse::<toml::Table>() {
        Ok(table) if table.contains_key("job") => table,
        Ok(table) => return one(path, text, table).map(|job| vec![job]),
        Err(_) => return whole(path, text).map(|job| vec![Read { job, fellows: vec![], others: vec![] }]),
    };
    if let Some(other) = table.keys().find(|key| *key != "job") {
        return Err(wrong(format!("`{other}` belongs to no job; put it below a [[job]]")));
    }
    let Some(toml::Value::Array(tables)) = table.get("job") else {
        return Err(wrong("`job` is no list of jobs; write [[job]] above each".to_owned()));
    };
    if tables.len() > JOBS_MAX {
        return Err(wrong(format!("{} jobs, at most {JOBS_MAX}", tables.len())));
    }
    let mut jobs: Vec<Read> = Vec::new();
    for (number, value) in (1..).zip(tables) {
        let mut value = value.clone();
        let names: Vec<Option<&str>> =
            jobs.iter().map(|read| read.job.name.as_ref().map(|name| name.as_str())).collect();
        let own = value.get("name").and_then(toml::Value::as_str).map(str::to_owned);
        let later = tables.iter().skip(number).filter_map(|later| later.get("name")?.as_str());
        let fellows = take_fellows(&mut value, &names, own.as_deref(), &later.collect::<Vec<_>>())
            .map_err(|what| wrong(format!("job {number}, `after`: {what}")))?;
        let others = take_shortened(&mut value);
        let job = value.try_into::<Job>().map_err(|error| {
            let told = wrong(format!("job {number}: {}", error.to_string().trim_end()));
            hinted(told, error.message())
        })?;
        jobs.push(Read { job, fellows, others });
    }
    Ok(jobs)
}

/// Takes out of `after` what names a job before in the file; `own` and `later` are the names of this one and of those behind
/// it, which it cannot start after: so there is no cycle.
fn take_fellows(
    value: &mut toml::Value,
    names: &[Option<&str>],
    own: Option<&str>,
    later: &[&str],
) -> Result<Fellows, String> {
    let Some(toml::Value::Array(after)) = value.get_mut("after") else { return Ok(Vec::new()) };
    let mut fellows = Fellows::new();
    let mut wrong = None;
    after.retain(|entry| {
        let Some(text) = entry.as_str() else { return true };
        let (name, ended) = text.split_once(':').map_or((text, None), |(name, ended)| (name, Some(ended)));
        let mut places = names.iter().enumerate().filter(|(_, other)| **other == Some(name));
        match (places.next(), places.next()) {
            (None, _) if own == Some(name) => wrong = Some(format!("`{name}` would wait for itself")),
            (None, _) if later.contains(&name) => {
                let cycle = "if that one waits for this in turn, they are a cycle, and none would ever start";
                wrong = Some(format!("`{name}` comes later in the file: put it before this one; {cycle}"));
            }
            (None, _) => return true,
            (Some(_), Some(_)) => wrong = Some(format!("several jobs before are called `{name}`")),
            (Some((place, _)), None) => match ended.map_or(Ok(Ended::Ok), str::parse) {
                Ok(_) if fellows.iter().any(|(other, _)| *other == place) => {
                    wrong = Some(format!("`{name}` is named twice"));
                }
                Ok(ended) => fellows.push((place, ended)),
                Err(error) => wrong = Some(error.to_string()),
            },
        }
        false
    });
    wrong.map_or(Ok(fellows), Err)
}

/// Takes out of `after` what is a part of an id.
fn take_shortened(value: &mut toml::Value) -> Vec<JobRef> {
    let Some(toml::Value::Array(after)) = value.get_mut("after") else { return Vec::new() };
    let mut others: Vec<JobRef> = Vec::new();
    after.retain(|entry| {
        let read = entry.as_str().and_then(|text| text.parse::<JobRef>().ok());
        let Some(read) = read.filter(|read| read.id.len() < ID_DIGITS) else { return true };
        others.push(read);
        false
    });
    others
}

/// The only job of a file.
fn one(path: &Path, text: &str, table: toml::Table) -> Result<Read, Error> {
    let mut value = toml::Value::Table(table);
    let others = take_shortened(&mut value);
    // As it is written, where that is a whole job: what is wrong with it then has a line.
    let job = if others.is_empty() {
        whole(path, text)?
    } else {
        let named = |error: &toml::de::Error| format!("{}: {}", path.display(), error.to_string().trim_end());
        value.try_into::<Job>().map_err(|error| hinted(Error::config(named(&error)), error.message()))?
    };
    Ok(Read { job, fellows: Vec::new(), others })
}

fn whole(path: &Path, text: &str) -> Result<Job, Error> {
    toml::from_str::<Job>(text).map_err(|error| {
        let told = Error::config(format!("{}: {}", path.display(), error.to_string().trim_end()));
        hinted(told, error.message())
    })
}

/// The same with the field that was probably meant, where there is none of this name.
fn hinted(told: Error, message: &str) -> Error {
    let unknown = message.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next());
    let known = ["command", "script"].into_iter().chain(shoal_model::Field::ALL.iter().map(|f| f.name()));
    match unknown.and_then(|unknown| nearest(unknown, known)) {
        Some(near) => told.hint(format!("did you mean `{near}`?")),
        None => told,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(text: &str) -> Result<Vec<Read>, String> {
        read(Path::new("f.toml"), text).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn several_jobs_start_after_each_other_by_name() {
        let text =
            "[[job]]\nname = 'a'\ncommand = ['x']\n[[job]]\ncommand = ['y']\nnodes = 2\nafter = ['a:any']\n";
        let jobs = jobs(text).unwrap();
        assert_eq!(jobs.len(), 2);
        assert_eq!(jobs[1].job.nodes.get(), 2);
        assert_eq!(jobs[1].fellows, [(0, Ended::Any)]);
        assert!(jobs[1].job.after.as_ref().is_none_or(|after| after.0.is_empty()));
    }

    #[test]
    fn ids_may_be_shortened_and_names_of_the_file_come_first() {
        let whole = "0123456789abcdef0123456789abcdef";
        let text = format!("command = ['x']\nafter = ['12ab:any', '{whole}']\n");
        let read = jobs(&text).unwrap().remove(0);
        assert_eq!(read.others, ["12ab:any".parse().unwrap()]);
        assert_eq!(read.job.after.unwrap().0.len(), 1, "a whole one stays in the job");
        let text =
            "[[job]]\nname = 'abc'\ncommand = ['x']\n[[job]]\ncommand = ['y']\nafter = ['abc', 'abd']\n";
        let read = jobs(text).unwrap().remove(1);
        assert_eq!((read.fellows, read.others), (vec![(0, Ended::Ok)], vec!["abd".parse().unwrap()]));
        let said = jobs("command = ['x']\nafter = ['12ab']\nnodes = 0\n").unwrap_err();
        assert!(said.contains("f.toml") && !said.contains("12ab"), "{said}");
    }

    #[test]
    fn wrong_file_is_named_with_the_job_and_the_field() {
        let twice = "[[job]]\nname='a'\ncommand=['x']\n[[job]]\ncommand=['y']\nafter=['a','a:any']\n";
        let cycle =
            "[[job]]\nname='a'\ncommand=['x']\nafter=['b']\n[[job]]\nname='b'\ncommand=['y']\nafter=['a']\n";
        for (text, names) in [
            ("name = 'a'\n[[job]]\ncommand = ['x']", "`name` belongs to no job"),
            ("job = 7", "[[job]]"),
            ("[[job]]\ncommand = ['x']\n[[job]]\nmemroy = 1\n", "job 2"),
            ("[[job]]\ncommand = ['x']\nafter = ['prepare']\n", "after"),
            (twice, "named twice"),
            ("[[job]]\nname='a'\ncommand=['x']\nafter=['a']\n", "would wait for itself"),
            (cycle, "job 1, `after`: `b` comes later in the file"),
        ] {
            let said = jobs(text).unwrap_err();
            assert!(said.contains("f.toml") && said.contains(names), "{text}: {said}");
        }
    }
}
