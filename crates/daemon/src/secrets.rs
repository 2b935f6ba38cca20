//! What jobs may know and nobody else: kept by the node that accepted the job, each in a box that only its own key opens.
//!
//! ```text
//! client ── on loopback or TLS ──▶ owner: secrets/JOB, sealed to its own key
//! host: a task is to start here ──▶ owner: placed there, in this epoch? ── sealed to the host's key ──▶ host: in memory
//! host ── socket ──▶ supervisor ──▶ a file in memory that only the task sees
//! ```
//!
//! They are in no envelope, message of the core, journal, log or argument. They go when the job has ended.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use minicbor::{Decode, Encode};
use shoal_model::envelope::PublicKey;
use shoal_model::job::MAX_SECRETS;
use shoal_model::{JobId, Name};
use shoal_protocols::node::Task;

use crate::cell::Secret;
use crate::identity::{Identity, seal::seal};

/// Bytes of all secrets of one job.
pub const BYTES_MAX: usize = 256 << 10;
/// Jobs whose secrets are kept here, at most.
const JOBS_MAX: usize = 10_000;
/// Secrets of a job that never came are dropped after so long.
const STRANGE_FOR: Duration = Duration::from_mins(10);

/// Where a node keeps the secrets of jobs that it owns.
#[derive(Clone)]
pub struct Secrets {
    folder: PathBuf,
    identity: Identity,
}

/// Why secrets are not kept.
#[derive(Debug, thiserror::Error)]
pub enum Unkept {
    /// Too many, or too large.
    #[error("{0}")]
    TooMuch(String),
    /// The disk.
    #[error("cannot keep secrets: {0}")]
    Io(#[from] io::Error),
}

/// Secrets as they are sealed.
#[derive(Encode, Decode)]
#[cbor(map)]
struct Sealed {
    #[n(0)]
    secrets: Vec<Secret>,
}

impl Secrets {
    /// Those of the node in a folder.
    pub fn new(home: &Path, identity: &Identity) -> Secrets {
        Secrets { folder: home.join("secrets"), identity: identity.clone() }
    }

    /// The key of this node.
    pub fn key(&self) -> PublicKey {
        self.identity.public()
    }

    /// Keeps the secrets of a job, durably; those that it had before are replaced.
    pub fn keep(&self, job: JobId, secrets: Vec<Secret>) -> Result<(), Unkept> {
        check(&secrets).map_err(Unkept::TooMuch)?;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        if !self.path(job).exists() && fs::read_dir(&self.folder)?.count() >= JOBS_MAX {
            return Err(Unkept::TooMuch(format!("this node keeps secrets of {JOBS_MAX} jobs already")));
        }
        let text = write(secrets);
        let sealed = seal(&self.key(), &subject(job), &text).ok_or_else(|| io::Error::other("no key"))?;
        // A name of its own: two may bring them at once.
        let drawn = u64::from_le_bytes(*sealed.first_chunk().unwrap_or(&[0; 8]));
        let (path, draft) = (self.path(job), self.folder.join(format!("{job}.{drawn:x}")));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        file.write_all(&sealed)?;
        file.sync_data()?;
        fs::rename(&draft, &path)?;
        Ok(File::open(&self.folder)?.sync_all()?)
    }

    /// The secrets of a job, in the order of its list; `None` if one is not here.
    pub fn of(&self, job: JobId, names: &[Name]) -> Option<Vec<Secret>> {
        let sealed = fs::read(self.path(job)).ok()?;
        let secrets = read(&self.identity.unseal(&subject(job), &sealed)?)?;
        let named = |name: &Name| secrets.iter().find(|secret| secret.name == name.as_str()).cloned();
        names.iter().map(named).collect()
    }

    /// The secrets of a job for one of its tasks, sealed to the host with this key.
    pub fn for_host(&self, job: JobId, names: &[Name], task: Task, host: &PublicKey) -> Option<Vec<u8>> {
        seal(host, &subject_of(task), &write(self.of(job, names)?))
    }

    /// Opens what an owner has sealed for a task that runs here.
    pub fn open(&self, task: Task, sealed: &[u8]) -> Option<Vec<Secret>> {
        read(&self.identity.unseal(&subject_of(task), sealed)?)
    }

    /// Forgets what no job needs any more.
    pub fn tidy(&self, needed: impl Fn(JobId) -> bool, now: SystemTime) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let job = entry.file_name().to_str().and_then(|name| name.parse::<JobId>().ok());
            let written = entry.metadata().and_then(|facts| facts.modified()).ok();
            let old = written.and_then(|at| now.duration_since(at).ok()).is_some_and(|age| age > STRANGE_FOR);
            if old && !job.is_some_and(&needed) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    fn path(&self, job: JobId) -> PathBuf {
        self.folder.join(job.to_string())
    }
}

/// Whether secrets are within their bounds.
fn check(secrets: &[Secret]) -> Result<(), String> {
    let bytes: usize = secrets.iter().map(|secret| secret.value.len()).sum();
    if secrets.len() > MAX_SECRETS {
        return Err(format!("{} secrets, at most {MAX_SECRETS}", secrets.len()));
    }
    if bytes > BYTES_MAX {
        return Err(format!("secrets of {bytes} bytes, at most {BYTES_MAX}"));
    }
    Ok(())
}

fn write(secrets: Vec<Secret>) -> Vec<u8> {
    minicbor::to_vec(Sealed { secrets }).expect("memory takes what is written")
}

fn read(text: &[u8]) -> Option<Vec<Secret>> {
    let Sealed { secrets } = minicbor::decode(text).ok()?;
    check(&secrets).ok().map(|()| secrets)
}

fn subject(job: JobId) -> Vec<u8> {
    [&b"job "[..], &job.0].concat()
}

fn subject_of(task: Task) -> Vec<u8> {
    let numbers = [task.epoch.0.to_le_bytes().to_vec(), task.rank.0.to_le_bytes().to_vec()].concat();
    [&b"task "[..], &task.job.0, &numbers].concat()
}

#[cfg(test)]
mod tests {
    use shoal_model::{Epoch, Rank};

    use super::*;

    fn secret(name: &str, value: &str) -> Secret {
        Secret { name: name.to_owned(), value: value.as_bytes().to_vec() }
    }

    fn scene() -> (tempfile::TempDir, Secrets, JobId, Vec<Name>) {
        let folder = tempfile::tempdir().unwrap();
        let secrets = Secrets::new(folder.path(), &Identity::from_bytes(&[7; 32]));
        (folder, secrets, JobId([1; 16]), vec!["b".parse().unwrap(), "a".parse().unwrap()])
    }

    #[test]
    fn secrets_are_found_again_and_on_disk_nobody_can_read_them() {
        let (folder, secrets, job, names) = scene();
        assert_eq!(secrets.of(job, &names), None);
        secrets.keep(job, vec![secret("a", "swordfish"), secret("b", "x")]).unwrap();
        let found = secrets.of(job, &names).unwrap();
        assert_eq!(found, [secret("b", "x"), secret("a", "swordfish")]);
        assert_eq!(secrets.of(job, &["c".parse().unwrap()]), None, "one that was not given");
        let file = fs::read(folder.path().join("secrets").join(job.to_string())).unwrap();
        assert!(!file.windows(9).any(|window| window == b"swordfish"));
        let thief = Secrets::new(folder.path(), &Identity::from_bytes(&[8; 32]));
        assert_eq!(thief.of(job, &names), None);
        let other = JobId([2; 16]);
        fs::copy(secrets.path(job), secrets.path(other)).unwrap();
        assert_eq!(secrets.of(other, &names), None, "another job's");
    }

    #[test]
    fn host_opens_what_was_sealed_for_its_task_only() {
        let (_folder, owner, job, names) = scene();
        owner.keep(job, vec![secret("a", "1"), secret("b", "2")]).unwrap();
        let host = Secrets::new(Path::new("elsewhere"), &Identity::from_bytes(&[9; 32]));
        let task = Task { job, epoch: Epoch(1), rank: Rank(0) };
        let sealed = owner.for_host(job, &names, task, &host.key()).unwrap();
        assert_eq!(host.open(task, &sealed).unwrap(), [secret("b", "2"), secret("a", "1")]);
        assert_eq!(host.open(Task { epoch: Epoch(2), ..task }, &sealed), None);
        assert_eq!(owner.open(task, &sealed), None);
    }

    #[test]
    fn secrets_go_with_their_job_and_too_much_of_them_is_refused() {
        let (_folder, secrets, job, names) = scene();
        secrets.keep(job, vec![secret("a", "1"), secret("b", "2")]).unwrap();
        let later = SystemTime::now() + STRANGE_FOR * 2;
        secrets.tidy(|_| false, SystemTime::now());
        assert!(secrets.of(job, &names).is_some(), "its job may be about to come");
        secrets.tidy(|known| known == job, later);
        assert!(secrets.of(job, &names).is_some());
        secrets.tidy(|_| false, later);
        assert_eq!(secrets.of(job, &names), None);
        let large = vec![secret("a", &"x".repeat(BYTES_MAX + 1))];
        assert!(secrets.keep(job, large).unwrap_err().to_string().contains("at most 262144"));
        assert!(secrets.keep(job, vec![secret("a", "1"); MAX_SECRETS + 1]).is_err());
    }
}
