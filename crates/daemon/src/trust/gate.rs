//! The judge at a node's gate: signature, pass, revocations and policy of every job that is to run here.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock};
use std::time::SystemTime;

use shoal_model::envelope::{Envelope, Pass};
use shoal_model::{JobId, Name, Time};
use shoal_protocols::node::{Ask, Denial, Judge};

use super::clocks::Clocks;
use super::pass::{self, Bearer};
use super::policy::{Case, Paths, Policy, PolicyError, Verdict};
use super::{Trust, signature};
use crate::cell::offers::Lack;
use crate::settings::Isolate;

/// Passes, and signatures of jobs, that are known to be sound, at most: a user's many jobs carry the same pass, and the
/// tasks of an array the same signature.
const SOUND_MAX: usize = 4_096;
/// Jobs of which it is remembered which rule has allowed them, at most, and as many again: a job is judged right before
/// it starts, so that this is far more than wait for their cell at any time.
const JUDGED_MAX: usize = 8_192;
const UNPOISONED: &str = "nothing panics while it holds the policy";

/// The judge at a node's gate.
pub struct Gatekeeper {
    trust: Arc<Trust>,
    /// The organisations that are the machine's own; `None` is those who have none.
    own: Vec<Option<Name>>,
    policy: RwLock<Arc<Policy>>,
    path: PathBuf,
    seen: Mutex<Seen>,
    sound: Mutex<BTreeMap<[u8; 32], Bearer>>,
    /// Whose tasks run in cells, and why none can be made here, if so.
    isolate: Isolate,
    lack: Option<Lack>,
    /// The cells of jobs that rules have allowed; none for those that were allowed without.
    judged: Mutex<Judged>,
    clocks: Clocks,
}

/// The cells of the jobs that were judged last. Most have none: no room is kept for what one may touch.
#[derive(Default)]
struct Judged {
    lately: BTreeMap<JobId, Option<Box<Paths>>>,
    before: BTreeMap<JobId, Option<Box<Paths>>>,
}

impl Judged {
    fn note(&mut self, job: JobId, cell: Option<Paths>) {
        if self.lately.len() >= JUDGED_MAX {
            self.before = std::mem::take(&mut self.lately);
        }
        self.lately.insert(job, cell.map(Box::new));
    }

    fn get(&self, job: JobId) -> Option<Option<Paths>> {
        let cell = self.lately.get(&job).or_else(|| self.before.get(&job))?;
        Some(cell.as_deref().cloned())
    }
}

/// What tells one state of a file from another.
type Stamp = Option<(SystemTime, u64)>;

/// What the last looks at the policy's file have shown.
struct Seen {
    stamp: Stamp,
    /// Whether it was not there at the last look, and its policy counts still.
    missing: bool,
}

/// What came of a look at the policy's file.
#[derive(Debug)]
pub enum Reload {
    /// It is as it was.
    Same,
    /// A new one counts from now on, with so many rules.
    New(usize),
    /// It makes no sense, and the old one stays.
    Broken(PolicyError),
}

impl fmt::Debug for Gatekeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gatekeeper").finish_non_exhaustive()
    }
}

impl Gatekeeper {
    /// A judge with the policy in a node's folder; `organisation` is whose the machine is by its settings.
    pub fn open(
        trust: Arc<Trust>,
        organisation: Option<Name>,
        home: &Path,
    ) -> Result<Gatekeeper, PolicyError> {
        let path = Policy::path(home);
        let seen = Seen { stamp: stamp(&path), missing: false };
        let policy = Policy::load(home)?;
        let mut own = vec![trust.organisation()];
        if organisation.is_some() && !own.contains(&organisation) {
            own.push(organisation);
        }
        Ok(Gatekeeper {
            trust,
            own,
            policy: RwLock::new(Arc::new(policy)),
            path,
            seen: Mutex::new(seen),
            sound: Mutex::new(BTreeMap::new()),
            isolate: Isolate::default(),
            lack: None,
            judged: Mutex::default(),
            clocks: Clocks::default(),
        })
    }

    /// The same with cells for tasks of whom the owner says, on a machine that lacks this for them.
    pub fn with_cells(self, isolate: Isolate, lack: Option<Lack>) -> Gatekeeper {
        Gatekeeper { isolate, lack, ..self }
    }

    /// What a job may touch in its cell; none, if it is trusted. By the rule that has allowed it when it was last judged.
    pub fn cell(&self, envelope: &Envelope, now: Time) -> Option<Paths> {
        let judged = self.judged.lock().expect(UNPOISONED).get(envelope.id());
        // Of one that nobody remembers, what the strictest rule would have: a cell.
        let paths = judged.unwrap_or_else(|| self.policy().demands().then(Paths::default));
        let isolated = paths.is_some() || self.isolates(self.bearer(envelope, now).ok().as_ref());
        isolated.then(|| paths.unwrap_or_default())
    }

    /// Whether jobs of somebody run in cells whatever rules say; of nobody known, as of strangers.
    fn isolates(&self, bearer: Option<&Bearer>) -> bool {
        match self.isolate {
            Isolate::All => true,
            Isolate::None => false,
            Isolate::Foreign => bearer.is_none_or(|bearer| !self.own.contains(&bearer.organisation)),
        }
    }

    /// Remembers by which rule a job is allowed, if that matters; denies one whose cell cannot be made here.
    fn settle(&self, envelope: &Envelope, bearer: &Bearer, cell: Option<Paths>) -> Result<(), Denial> {
        let job = envelope.job();
        let asks = job.image().is_some() || job.secrets.is_some();
        if self.lack.is_some() && (asks || cell.is_some() || self.isolates(Some(bearer))) {
            return Err(Denial::NoCell);
        }
        self.judged.lock().expect(UNPOISONED).note(envelope.id(), cell);
        Ok(())
    }

    /// What it knows of the clocks of others.
    pub fn clocks(&self) -> &Clocks {
        &self.clocks
    }

    /// What it knows of users and organisations.
    pub fn trust(&self) -> &Arc<Trust> {
        &self.trust
    }

    /// The organisations that are the machine's own; `None` is those who have none.
    pub fn own(&self) -> &[Option<Name>] {
        &self.own
    }

    /// The policy as it stands.
    pub fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.read().expect(UNPOISONED))
    }

    /// Looks whether the policy's file has changed. That it is gone counts when it was seen twice in a row: some editors
    /// take a file away for a moment, and the gate must not open for that long.
    pub fn reload(&self) -> Reload {
        let now = stamp(&self.path);
        let mut seen = self.seen.lock().expect(UNPOISONED);
        if seen.stamp == now {
            seen.missing = false;
            return Reload::Same;
        }
        let Some(found) = self.path.parent().map(Policy::find) else { return Reload::Same };
        if matches!(found, Ok(None)) && !seen.missing {
            seen.missing = true;
            return Reload::Same;
        }
        *seen = Seen { stamp: now, missing: false };
        match found {
            Ok(policy) => {
                let policy = policy.unwrap_or_default();
                let rules = policy.rules();
                *self.policy.write().expect(UNPOISONED) = Arc::new(policy);
                Reload::New(rules)
            }
            Err(error) => Reload::Broken(error),
        }
    }

    /// Whose job this is, if all that shows it is sound now, and it is for this grid and this time.
    pub fn bearer(&self, envelope: &Envelope, now: Time) -> Result<Bearer, Denial> {
        let signer = signature(envelope)?;
        self.trust.check_origin(envelope, now)?;
        let pass = envelope.pass().ok_or(Denial::NoPass)?;
        let bearer = self.verified(pass, now)?;
        let job = envelope.job();
        let same = |said: &Option<Name>, is: Option<&Name>| said.as_ref().is_none_or(|said| Some(said) == is);
        let as_said =
            same(&job.user, Some(&bearer.name)) && same(&job.organisation, bearer.organisation.as_ref());
        if bearer.key != signer || !as_said {
            return Err(Denial::OtherUser);
        }
        self.trust.check(&bearer)?;
        Ok(bearer)
    }

    /// The bearer of a pass: signatures do not change, so that they are looked at once.
    fn verified(&self, pass: &Pass, now: Time) -> Result<Bearer, Denial> {
        let hash = *blake3::hash(pass.as_bytes()).as_bytes();
        let mut sound = self.sound.lock().expect(UNPOISONED);
        if let Some(bearer) = sound.get(&hash) {
            return if bearer.expires > now { Ok(bearer.clone()) } else { Err(Denial::Expired) };
        }
        let bearer = pass::verify(pass, self.trust.grid(), now)?;
        if sound.len() >= SOUND_MAX {
            sound.clear();
        }
        sound.insert(hash, bearer.clone());
        Ok(bearer)
    }
}

impl Judge for Gatekeeper {
    fn judge(&self, ask: &Ask<'_>) -> Result<(), Denial> {
        let bearer = self.bearer(ask.envelope, ask.now)?;
        let key = |envelope: &&&Envelope| envelope.seal().is_some_and(|seal| seal.signer == bearer.key);
        let beside = ask.beside.iter().filter(key).count();
        // One policy for all of it: it may be another a moment later.
        let policy = self.policy();
        let verdict = policy.judge(&Case {
            user: &bearer.name,
            key: Some(&bearer.key),
            organisation: bearer.organisation.as_ref(),
            resources: &ask.envelope.job().resources,
            start: ask.start,
            limit: ask.limit,
            beside,
            own: &self.own,
        });
        verdict.answer()?;
        let cell = match verdict {
            Verdict::Rule { line, .. } => policy.cell(line).cloned(),
            Verdict::Default { .. } => None,
        };
        self.clocks.judge(ask.nodes)?;
        self.settle(ask.envelope, &bearer, cell)
    }

    fn counts(&self) -> bool {
        self.policy().counts()
    }
}

fn stamp(path: &Path) -> Stamp {
    let facts = std::fs::metadata(path).ok()?;
    Some((facts.modified().ok()?, facts.len()))
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use shoal_model::{Job, Machine, Resources, Span};

    use super::*;
    use crate::clock::Clock;
    use crate::identity::Identity;
    use crate::membership::GridId;
    use crate::trust::notice::Said;
    use crate::trust::pass::Statement;
    use crate::trust::samples::{key, signed, trust};
    use crate::trust::{JOB_AGE_MAX, JOB_AHEAD_MAX};

    static MACHINE: LazyLock<Machine> = LazyLock::new(|| Machine::with_capacity(Resources::cores(1)));

    fn asked<'a>(envelope: &'a Envelope, now: Time, beside: &'a [&'a Envelope]) -> Ask<'a> {
        Ask { envelope, start: now, limit: Span::from_hours(1), now, machine: &MACHINE, nodes: &[], beside }
    }

    /// A gatekeeper of lab-a in a folder, a job of alice whom its node vouches for, and the time.
    fn scene() -> (tempfile::TempDir, Gatekeeper, Envelope, Time) {
        let folder = tempfile::tempdir().unwrap();
        let (trust, _) = trust();
        let now = Clock::new().now();
        let pass = trust.vouch(key(9).public(), "alice".parse().ok(), Span::from_hours(1)).unwrap();
        let job = signed(trust.grid(), &key(9), Job::command(["true"])).with_pass(pass);
        let gate = Gatekeeper::open(trust, None, folder.path()).unwrap();
        (folder, gate, job, now)
    }

    #[test]
    fn job_of_ones_own_organisation_may_run_and_anything_less_than_whole_may_not() {
        let (_folder, gate, job, now) = scene();
        let judge = |envelope: &Envelope, now| gate.judge(&asked(envelope, now, &[]));
        let signed = |user: &Identity, job: Job| signed(gate.trust().grid(), user, job);
        assert_eq!(judge(&job, now), Ok(()));
        let pass = job.pass().unwrap().clone();
        let plain = Envelope::new(Job::command(["true"]), job.nonce()).unwrap();
        let plain = plain.made_for(job.origin().unwrap());
        assert_eq!(judge(&plain.clone().with_pass(pass.clone()), now), Err(Denial::Unsigned));
        assert_eq!(judge(&signed(&key(9), Job::command(["true"])), now), Err(Denial::NoPass));
        let other = signed(&key(8), Job::command(["true"])).with_pass(pass.clone());
        assert_eq!(judge(&other, now), Err(Denial::OtherUser), "somebody else's pass");
        let forged = plain.sealed(key(9).public(), |digest| key(8).sign(digest)).with_pass(pass.clone());
        assert_eq!(judge(&forged, now), Err(Denial::Forged));
        for job in [
            Job { user: "alice2".parse().ok(), ..Job::command(["true"]) },
            Job { user: "Alice".parse().ok(), ..Job::command(["true"]) },
            Job { organisation: "lab-b".parse().ok(), ..Job::command(["true"]) },
        ] {
            let job = signed(&key(9), job).with_pass(pass.clone());
            assert_eq!(judge(&job, now), Err(Denial::OtherUser));
        }
        assert_eq!(
            judge(&job, now + Span::from_hours(2)),
            Err(Denial::Expired),
            "also one that was sound before"
        );
    }

    #[test]
    fn job_of_another_grid_or_of_none_or_of_long_ago_may_not_run() {
        use shoal_model::envelope::Origin;
        let (_folder, gate, job, now) = scene();
        let grid = gate.trust().grid();
        let lasting = gate.trust().vouch(key(9).public(), None, JOB_AGE_MAX + JOB_AGE_MAX).unwrap();
        let judge = |job: Job, origin: Option<Origin>, now| {
            let envelope = Envelope::new(job, shoal_model::Nonce([3; 16])).unwrap();
            let envelope = origin.into_iter().fold(envelope, Envelope::made_for);
            let envelope = envelope.sealed(key(9).public(), |digest| key(9).sign(digest));
            gate.judge(&asked(&envelope.with_pass(lasting.clone()), now, &[]))
        };
        let plain = || Job::command(["true"]);
        let origin = |grid: GridId, made| Some(Origin { grid: grid.0, made });
        assert_eq!(judge(plain(), origin(grid, now), now), Ok(()));
        assert_eq!(judge(plain(), None, now), Err(Denial::ForeignJob), "as earlier versions signed");
        let other = GridId(key(77).public());
        assert_eq!(judge(plain(), origin(other, now), now), Err(Denial::ForeignJob));
        assert_eq!(judge(plain(), origin(grid, now), now + JOB_AGE_MAX), Ok(()));
        let late = now + JOB_AGE_MAX + Span::from_secs(1);
        assert_eq!(judge(plain(), origin(grid, now), late), Err(Denial::Stale));
        let begins = Job { begin: Some(now + Span::from_hours(24)), ..plain() };
        assert_eq!(judge(begins, origin(grid, now), late), Ok(()), "it was to begin later");
        let ahead = now + JOB_AHEAD_MAX + Span::from_secs(1);
        assert_eq!(judge(plain(), origin(grid, ahead), now), Err(Denial::Stale));
        assert_eq!(gate.judge(&asked(&job, now, &[])), Ok(()));
    }

    #[test]
    fn every_changed_bit_of_a_job_is_noticed() {
        let (_folder, gate, job, now) = scene();
        let bytes = job.to_bytes();
        let mut read = 0;
        for at in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[at / 8] ^= 1 << (at % 8);
            if let Ok(changed) = Envelope::from_bytes(&changed) {
                read += 1;
                let verdict = gate.judge(&asked(&changed, now, &[]));
                assert!(verdict.is_err(), "bit {at} makes {changed:?}");
            }
        }
        assert!(read > 1_000, "most changes can still be read: {read}");
    }

    #[test]
    fn organisation_with_a_key_speaks_by_it_alone_and_only_where_it_is_trusted() {
        let (_folder, gate, job, now) = scene();
        let trust = gate.trust();
        let organisation = key(5);
        let statement = |organisation: &str| {
            let expires = now + Span::from_hours(1);
            let user = key(7).public();
            Statement::new(trust.grid(), user, "bob".parse().unwrap(), organisation.parse().ok(), expires)
        };
        let stranger = key(4);
        let bob = |organisation_key, name: &str| {
            signed(trust.grid(), &key(7), Job::command(["true"]))
                .with_pass(pass::by_organisation(organisation_key, &statement(name)))
        };
        let judge = |envelope: &Envelope| gate.judge(&asked(envelope, now, &[]));
        assert_eq!(judge(&bob(&organisation, "lab-a")), Err(Denial::Untrusted));
        assert_eq!(judge(&job), Ok(()));
        trust.trust_organisation("lab-a".parse().unwrap(), organisation.public()).unwrap();
        assert_eq!(judge(&bob(&organisation, "lab-a")), Ok(()));
        assert_eq!(judge(&job), Err(Denial::Untrusted), "a node no longer speaks for it");
        assert!(trust.vouch(key(6).public(), None, Span::from_hours(1)).is_err());
        assert_eq!(judge(&bob(&stranger, "lab-a")), Err(Denial::Untrusted), "another key");
        assert_eq!(judge(&bob(&organisation, "lab-b")), Err(Denial::Untrusted), "another name");
        trust.trust_organisation("lab-b".parse().unwrap(), organisation.public()).unwrap();
        assert_eq!(judge(&bob(&organisation, "lab-b")), Err(Denial::NoRule), "known, and not served here");
    }

    #[test]
    fn what_is_revoked_runs_no_more() {
        let (_folder, gate, job, now) = scene();
        let trust = gate.trust();
        let serial = pass::says(job.pass().unwrap()).unwrap().serial;
        trust.revoke(Said::RevokedPass(serial.wrapping_add(1))).unwrap();
        trust.revoke(Said::RevokedUser(key(8).public())).unwrap();
        assert_eq!(gate.judge(&asked(&job, now, &[])), Ok(()));
        trust.revoke(Said::RevokedPass(serial)).unwrap();
        assert_eq!(gate.judge(&asked(&job, now, &[])), Err(Denial::Revoked));
        // A new pass helps, until the key itself is revoked.
        let pass = trust.vouch(key(9).public(), None, Span::from_hours(1)).unwrap();
        let job = job.with_pass(pass);
        assert_eq!(gate.judge(&asked(&job, now, &[])), Ok(()));
        trust.revoke(Said::RevokedUser(key(9).public())).unwrap();
        assert_eq!(gate.judge(&asked(&job, now, &[])), Err(Denial::Revoked));
    }

    #[test]
    fn jobs_run_in_cells_as_the_owner_says_and_nowhere_without_one() {
        let (folder, gate, job, now) = scene();
        let judge = |gate: &Gatekeeper| gate.judge(&asked(&job, now, &[]));
        assert_eq!((judge(&gate), gate.cell(&job, now)), (Ok(()), None), "it is of the machine's own");
        let stranger = signed(gate.trust().grid(), &key(8), Job::command(["true"]));
        assert_eq!(gate.cell(&stranger, now), Some(Paths::default()));
        let gate = gate.with_cells(Isolate::All, None);
        assert_eq!((judge(&gate), gate.cell(&job, now)), (Ok(()), Some(Paths::default())));
        let gate = gate.with_cells(Isolate::All, Some(Lack::Landlock));
        assert_eq!(judge(&gate), Err(Denial::NoCell));

        let gate = gate.with_cells(Isolate::None, None);
        assert_eq!((judge(&gate), gate.cell(&job, now)), (Ok(()), None));
        let text = "[[rules]]\nverdict = 'allow'\nusers = ['alice']\nread = ['/data']\n";
        std::fs::write(folder.path().join("policy.toml"), text).unwrap();
        assert!(matches!(gate.reload(), Reload::New(1)));
        assert_eq!(judge(&gate), Ok(()));
        let cell = gate.cell(&job, now).unwrap();
        assert_eq!(cell.read.iter().collect::<Vec<_>>(), ["/data"]);
        let gate = gate.with_cells(Isolate::None, Some(Lack::Namespaces));
        assert_eq!(judge(&gate), Err(Denial::NoCell), "the rule demands one");
    }

    #[test]
    fn policy_is_taken_over_when_its_file_changes_and_a_broken_one_is_not() {
        let (folder, gate, job, now) = scene();
        let judge = |beside: &[&Envelope]| gate.judge(&asked(&job, now, beside));
        let write = |text: &str| std::fs::write(folder.path().join("policy.toml"), text).unwrap();
        assert!(matches!(gate.reload(), Reload::Same));
        write("[[rules]]\nverdict = 'deny'\nusers = ['alice']\n");
        assert!(matches!(gate.reload(), Reload::New(1)));
        assert_eq!(judge(&[]), Err(Denial::Rule(1)));
        write("[[rules]]\nverdict = 'dance'\n");
        let Reload::Broken(error) = gate.reload() else { panic!("it is broken") };
        assert!(error.to_string().starts_with("line 2: "), "{error}");
        assert_eq!(judge(&[]), Err(Denial::Rule(1)), "the old one stays");
        assert!(matches!(gate.reload(), Reload::Same), "and is reported once");
        write("default = 'deny'\n[[rules]]\nverdict = 'allow'\njobs = 2\n");
        assert!(matches!(gate.reload(), Reload::New(1)));
        assert!(gate.counts());
        let other = signed(gate.trust().grid(), &key(8), Job::command(["true"]));
        assert_eq!(judge(&[&job, &other]), Ok(()), "one of alice, one of somebody else");
        assert_eq!(judge(&[&job, &job]), Err(Denial::NoRule));
        let gone = || std::fs::remove_file(folder.path().join("policy.toml")).unwrap();
        gone();
        assert!(matches!(gate.reload(), Reload::Same));
        assert_eq!(judge(&[&job, &job]), Err(Denial::NoRule), "it may be back in a moment");
        write("[[rules]]\nverdict = 'deny'\n");
        assert!(matches!(gate.reload(), Reload::New(1)));
        gone();
        assert!(matches!(gate.reload(), Reload::Same));
        assert_eq!(judge(&[]), Err(Denial::Rule(1)));
        assert!(matches!(gate.reload(), Reload::New(0)));
        assert!(matches!(gate.reload(), Reload::Same));
        assert_eq!(judge(&[]), Ok(()));
    }
}
