//! Who may do what: users and their passes, organisations, revocations, and the judge at a node's gate.
//!
//! ```text
//! user ── signs ──▶ job ── travels with ──▶ pass ◀── signs ── organisation, or a node for users who hold its token
//! admitter ── signs ──▶ notices: whose key is which organisation's, who was revoked ── told from node to node
//! ```
//!
//! `docs/security.md` says who signs what and what is checked where.

pub mod clocks;
pub mod demand;
pub mod gate;
pub mod notice;
pub mod pass;
pub mod policy;
#[cfg(test)]
pub(crate) mod samples;
pub mod text;
pub mod user;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock, RwLock, RwLockReadGuard};

use shoal_model::envelope::{Envelope, Origin, Pass, PublicKey};
use shoal_model::{JobId, Name, Nonce, Span, Time};
use shoal_protocols::node::Denial;

use crate::cabinet::{Cabinet, CabinetError};
use crate::clock::Clock;
use crate::identity::{Identity, signed_by};
use crate::membership::{Grid, GridId};
use demand::{Demand, Verb};
use notice::{Notice, NoticeError, Said, Voice};
use pass::{Bearer, Statement};

/// Notices that a node keeps, at most.
pub const NOTICES_MAX: usize = 10_000;
/// Notices of all who do not speak for the grid, at most: the room beyond it is for those who do, whatever others fill.
pub const NOTICES_OF_OTHERS_MAX: usize = 4_000;
/// Notices of one signer who does not speak for the grid, at most.
pub const NOTICES_PER_SIGNER_MAX: usize = 1_000;
/// Users that a node vouches for, at most.
pub const USERS_MAX: usize = 10_000;
/// How long after it was signed, or was to begin, a job may start.
pub const JOB_AGE_MAX: Span = Span::from_hours(30 * 24);
/// How far ahead the clock of who signed it may be.
pub const JOB_AHEAD_MAX: Span = Span::from_hours(1);
/// How long a pass of a node lasts: longer than most jobs wait.
pub const VOUCHED_FOR: Span = Span::from_hours(7 * 24);
/// For how long a user's jobs get the same one.
const SAME_PASS_FOR: Span = Span::from_hours(24);

const NOTICES: &str = "notices";
const ORGANISATIONS: &str = "organisations";
const USERS: &str = "users";
const MADE: &str = "made";
const UNPOISONED: &str = "nothing panics while it holds what is trusted";

/// What a node knows of users and organisations.
pub struct Trust {
    grid: Arc<Grid>,
    cabinet: Arc<dyn Cabinet>,
    clock: Clock,
    known: RwLock<Known>,
    /// One at a time: two keys must not both find a name free.
    desk: Mutex<()>,
    /// What was last signed for the jobs of each user.
    vouched: Mutex<BTreeMap<PublicKey, (Statement, Pass)>>,
    /// Who wants to hear of what is new.
    hears: OnceLock<Hears>,
}

/// Hears of what is new.
type Hears = Box<dyn Fn(&Said) + Send + Sync>;

#[derive(Default)]
struct Known {
    /// Trusted by this node alone.
    local: BTreeMap<Name, PublicKey>,
    /// Trusted by the grid, and since when; the latest word counts.
    grid: BTreeMap<Name, (Time, PublicKey)>,
    /// All keys that the grid ever trusted: what they revoked stays revoked when a new one takes their place.
    once: BTreeSet<PublicKey>,
    users: BTreeMap<PublicKey, BTreeSet<Voice>>,
    passes: BTreeMap<u64, BTreeSet<Voice>>,
    notices: BTreeMap<[u8; 32], Notice>,
    /// How many of them are of signers who do not speak for the grid.
    of_others: usize,
    /// Of all notices together: two nodes with the same know the same.
    digest: [u8; 32],
}

/// Why a node does not vouch for a user.
#[derive(Debug, thiserror::Error)]
pub enum Unvouched {
    /// Somebody else has the name.
    #[error(
        "another key is called `{0}` on this node: submit with `--user NAME` from now on, or move your user.key away \
         and make one of another name with `shoal user new NAME`"
    )]
    NameTaken(Name),
    /// The key has another name.
    #[error("this key is called `{0}` on this node; the job's `user` must be that: `--user {0}`")]
    OtherName(Name),
    /// The organisation speaks for itself.
    #[error(
        "`{0}` has a key of its own in this grid: have it admit you with `shoal org admit`, and keep the pass \
         with `shoal user keep`"
    )]
    Organisation(Name),
    /// Too many users.
    #[error("this node vouches for {USERS_MAX} users, and takes no more")]
    TooMany,
    /// It cannot be written down.
    #[error(transparent)]
    Cabinet(#[from] CabinetError),
}

impl Trust {
    /// What a node of this grid knew before.
    pub fn open(grid: Arc<Grid>, cabinet: Arc<dyn Cabinet>, clock: Clock) -> Result<Trust, CabinetError> {
        let mut known = Known::default();
        for (name, key) in cabinet.list(ORGANISATIONS)? {
            let name = String::from_utf8(name).ok().and_then(|name| name.parse().ok());
            if let (Some(name), Ok(key)) = (name, key.try_into()) {
                known.local.insert(name, PublicKey(key));
            }
        }
        let kept = cabinet.list(NOTICES)?;
        let trust = Trust {
            grid,
            cabinet,
            clock,
            known: RwLock::new(known),
            desk: Mutex::new(()),
            vouched: Mutex::default(),
            hears: OnceLock::new(),
        };
        let notices: Vec<Notice> = kept.iter().filter_map(|(_, bytes)| Notice::from_bytes(bytes)).collect();
        // Those that say whose key is whose come first: others are signed by such keys.
        let (organisations, others): (Vec<Notice>, Vec<Notice>) = notices
            .into_iter()
            .partition(|notice| matches!(notice.says(), Some((Said::Organisation(..), _))));
        for notice in organisations.into_iter().chain(others) {
            // It was sound when it came; that its signer's time is over since then takes nothing back.
            if let Err(why) = trust.take(notice, Time::ZERO) {
                tracing::warn!("a notice that was kept is not heeded: {why}");
            }
        }
        Ok(trust)
    }

    /// Has somebody hear of every notice that is new from now on.
    pub fn tell(&self, hears: impl Fn(&Said) + Send + Sync + 'static) {
        if self.hears.set(Box::new(hears)).is_err() {
            tracing::warn!("a second listener to notices hears nothing");
        }
    }

    /// The key that this node signs with.
    pub(crate) fn identity(&self) -> &Identity {
        self.grid.identity()
    }

    /// Which grid.
    pub fn grid(&self) -> GridId {
        self.grid.id()
    }

    /// The organisation of this node, by its membership.
    pub fn organisation(&self) -> Option<Name> {
        self.grid.member(self.clock.now()).ok().and_then(|member| member.organisation)
    }

    /// The organisations whose keys are trusted here.
    pub fn organisations(&self) -> BTreeMap<Name, PublicKey> {
        let known = self.known();
        let local = known.local.iter().map(|(name, key)| (name.clone(), *key));
        known.grid.iter().map(|(name, (_, key))| (name.clone(), *key)).chain(local).collect()
    }

    fn known(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().expect(UNPOISONED)
    }

    /// Whose key this is: for the whole grid where this node is an admitter, and else for this node. Tells which.
    pub fn trust_organisation(&self, name: Name, key: PublicKey) -> Result<Option<Notice>, NoticeError> {
        let now = self.clock.now();
        if self.grid.admits(now) {
            // Later than what was said before, also where the clock of who said it is ahead.
            let before = self.known().grid.get(&name).map(|(since, _)| *since + Span::from_millis(1));
            let at = before.map_or(now, |before| before.max(now));
            let notice = Notice::by_node(&self.grid, Said::Organisation(name, key), at);
            self.add(notice.clone())?;
            return Ok(Some(notice));
        }
        let kept = self.cabinet.put(ORGANISATIONS, name.as_str().as_bytes(), &key.0);
        kept.map_err(|error| NoticeError::Unkept(error.to_string()))?;
        self.known.write().expect(UNPOISONED).local.insert(name, key);
        Ok(None)
    }

    /// Revokes in this node's name: everywhere if it is an admitter, else the passes that it has signed.
    pub fn revoke(&self, said: Said) -> Result<Notice, NoticeError> {
        let notice = Notice::by_node(&self.grid, said, self.clock.now());
        self.add(notice.clone())?;
        Ok(notice)
    }

    /// Takes note of a notice, durably; tells whether it was news.
    pub fn add(&self, notice: Notice) -> Result<bool, NoticeError> {
        let _one_at_a_time = self.desk.lock().expect(UNPOISONED);
        let bytes = notice.to_bytes();
        let key = *blake3::hash(&bytes).as_bytes();
        let now = self.clock.now();
        if bytes.len() > notice::NOTICE_BYTES_MAX {
            return Err(NoticeError::Unreadable);
        }
        {
            let known = self.known();
            if known.notices.contains_key(&key) {
                return Ok(false);
            }
            let (_, voice) = self.heed(&known, &notice, now)?;
            let theirs = known.notices.values().filter(|other| other.signer() == notice.signer()).count();
            // Each has room of its own, so that others cannot silence the grid.
            let full = match voice {
                Voice::Grid => {
                    known.notices.len().saturating_sub(known.of_others) >= NOTICES_MAX - NOTICES_OF_OTHERS_MAX
                }
                Voice::Issuer(_) => {
                    known.of_others >= NOTICES_OF_OTHERS_MAX || theirs >= NOTICES_PER_SIGNER_MAX
                }
            };
            if full {
                return Err(NoticeError::TooMany(known.notices.len()));
            }
        }
        self.cabinet.put(NOTICES, &key, &bytes).map_err(|error| NoticeError::Unkept(error.to_string()))?;
        let said = notice.says().map(|(said, _)| said);
        self.take(notice, now)?;
        if let (Some(hears), Some(said)) = (self.hears.get(), said) {
            hears(&said);
        }
        Ok(true)
    }

    fn heed(&self, known: &Known, notice: &Notice, now: Time) -> Result<(Said, Voice), NoticeError> {
        let trusted = |key: &PublicKey| known.local.values().chain(&known.once).any(|one| one == key);
        notice.verify(self.grid.id(), now, trusted)
    }

    fn take(&self, notice: Notice, now: Time) -> Result<(), NoticeError> {
        let (said, voice) = self.heed(&self.known(), &notice, now)?;
        let (_, at) = notice.says().ok_or(NoticeError::Unreadable)?;
        let mut known = self.known.write().expect(UNPOISONED);
        match said {
            Said::Organisation(name, key) => {
                // The latest counts, and of two of one moment the larger: all nodes come to the same key, in
                // whatever order they hear of them.
                let latest = known.grid.entry(name).or_insert((at, key));
                *latest = (*latest).max((at, key));
                known.once.insert(key);
            }
            Said::RevokedUser(user) => {
                known.users.entry(user).or_default().insert(voice);
            }
            Said::RevokedPass(serial) => {
                known.passes.entry(serial).or_default().insert(voice);
            }
        }
        let key = *blake3::hash(&notice.to_bytes()).as_bytes();
        if known.notices.insert(key, notice).is_none() && voice != Voice::Grid {
            known.of_others += 1;
        }
        let mut hasher = blake3::Hasher::new();
        known.notices.keys().for_each(|key| {
            hasher.update(key);
        });
        known.digest = *hasher.finalize().as_bytes();
        Ok(())
    }

    /// All notices.
    pub fn notices(&self) -> Vec<Notice> {
        self.known().notices.values().cloned().collect()
    }

    /// A hash of all notices: two nodes with the same know the same.
    pub fn digest(&self) -> [u8; 32] {
        self.known().digest
    }

    /// Whether the issuer of a pass is trusted here, and nothing of it was revoked.
    pub fn check(&self, bearer: &Bearer) -> Result<(), Denial> {
        let known = self.known();
        let key = bearer.organisation.as_ref().and_then(|name| {
            // What this machine's owner says comes first.
            known.local.get(name).or_else(|| known.grid.get(name).map(|(_, key)| key))
        });
        match (key, bearer.by_organisation) {
            (Some(key), true) if *key == bearer.issuer => {}
            // An organisation that has a key speaks by it, and nobody else does.
            (Some(_), _) | (None, true) => return Err(Denial::Untrusted),
            (None, false) => {}
        }
        // Whose key is revoked vouches for nobody either.
        let issuer = known.users.get(&bearer.issuer);
        let voices = [known.users.get(&bearer.key), known.passes.get(&bearer.serial), issuer];
        let revoked = |voices: &BTreeSet<Voice>| {
            voices.contains(&Voice::Grid) || voices.contains(&Voice::Issuer(bearer.issuer))
        };
        if voices.into_iter().flatten().any(revoked) { Err(Denial::Revoked) } else { Ok(()) }
    }

    /// Signs a pass for somebody who has shown this node's token.
    pub fn vouch(&self, user: PublicKey, name: Option<Name>, lasts: Span) -> Result<Pass, Unvouched> {
        let (name, organisation) = self.introduced(user, name)?;
        Ok(self.sign(user, name, organisation, self.clock.now() + lasts).1)
    }

    /// A pass for a job of such a user. For a day it is the same, so that one is signed, checked and held in memory for
    /// all of them.
    pub fn vouch_for_job(&self, user: PublicKey, name: Option<Name>, now: Time) -> Result<Pass, Unvouched> {
        let (name, organisation) = self.introduced(user, name)?;
        let mut vouched = self.vouched.lock().expect(UNPOISONED);
        let fits = |said: &Statement| {
            let age = (now + VOUCHED_FOR + SAME_PASS_FOR).since(said.expires);
            let revoked = self.known().passes.contains_key(&said.serial);
            age < SAME_PASS_FOR && !revoked && said.name == name && said.organisation == organisation
        };
        if let Some((_, pass)) = vouched.get(&user).filter(|(said, _)| fits(said)) {
            return Ok(pass.clone());
        }
        // The last job that gets it has it for as long as it would have one of its own.
        let (statement, pass) = self.sign(user, name, organisation, now + VOUCHED_FOR + SAME_PASS_FOR);
        vouched.insert(user, (statement, pass.clone()));
        Ok(pass)
    }

    /// What a user is called here, and to whom whoever is vouched for here belongs.
    fn introduced(&self, user: PublicKey, name: Option<Name>) -> Result<(Name, Option<Name>), Unvouched> {
        let organisation = self.organisation();
        if let Some(name) = organisation.as_ref().filter(|name| self.organisations().contains_key(*name)) {
            return Err(Unvouched::Organisation(name.clone()));
        }
        Ok((self.note_user(user, name)?, organisation))
    }

    fn sign(
        &self,
        user: PublicKey,
        name: Name,
        organisation: Option<Name>,
        expires: Time,
    ) -> (Statement, Pass) {
        let statement = Statement::new(self.grid.id(), user, name, organisation, expires);
        let pass = pass::by_member(self.grid.identity(), self.grid.chain(), &statement);
        (statement, pass)
    }

    /// The same job with a new pass, if its own is this node's and half of its time is over.
    pub fn renewed(&self, envelope: &Envelope, now: Time) -> Option<Envelope> {
        let pass = envelope.pass()?;
        let expires = pass::says(pass)?.expires;
        // Before its signatures are looked at: very many jobs may wait, and few need a new one.
        if expires > now + Span::from_micros(VOUCHED_FOR.as_micros() / 2) {
            return None;
        }
        // Also one that expired while nobody looked: it was sound when the job was taken.
        let sound = Time::from_micros(expires.as_micros().saturating_sub(1)).min(now);
        let bearer = pass::verify(pass, self.grid.id(), sound).ok()?;
        if bearer.issuer != self.grid.identity().public() || bearer.by_organisation {
            return None;
        }
        // Not for whom it would not vouch now: somebody was revoked, or the organisation has a key by now.
        self.check(&bearer).ok()?;
        let pass = self.vouch_for_job(bearer.key, Some(bearer.name), now).ok()?;
        Some(envelope.clone().with_pass(pass))
    }

    /// Which name a key has here, from its first job on.
    fn note_user(&self, user: PublicKey, name: Option<Name>) -> Result<Name, Unvouched> {
        let _one_at_a_time = self.desk.lock().expect(UNPOISONED);
        if let Some(known) = self.cabinet.get(USERS, &user.0)? {
            let known = String::from_utf8(known).ok().and_then(|known| known.parse::<Name>().ok());
            return match (known, name) {
                (Some(known), Some(name)) if known != name => Err(Unvouched::OtherName(known)),
                (Some(known), _) => Ok(known),
                (None, name) => Ok(name.unwrap_or_else(|| nameless(&user))),
            };
        }
        let name = name.unwrap_or_else(|| nameless(&user));
        let users = self.cabinet.list(USERS)?;
        if users.iter().any(|(_, other)| other == name.as_str().as_bytes()) {
            return Err(Unvouched::NameTaken(name));
        }
        if users.len() >= USERS_MAX {
            return Err(Unvouched::TooMany);
        }
        self.cabinet.put(USERS, &user.0, name.as_str().as_bytes())?;
        Ok(name)
    }

    /// Whether the word of this node counts for the whole grid.
    pub fn is_admitter(&self) -> bool {
        self.grid.admits(self.clock.now())
    }

    /// The key of this node.
    pub fn own_key(&self) -> PublicKey {
        self.grid.identity().public()
    }

    /// What this node is called as a user, of jobs that it signs itself.
    pub fn own_name(&self) -> Name {
        format!("node-{}", self.grid.identity().node()).parse().expect("an id is plain letters and digits")
    }

    /// What was revoked, by whom and when.
    pub fn revocations(&self) -> Vec<(Said, PublicKey, Time)> {
        let known = self.known();
        let said = known.notices.values().filter_map(|notice| {
            let (said, at) = notice.says()?;
            (!matches!(said, Said::Organisation(..))).then_some((said, *notice.signer(), at))
        });
        said.collect()
    }

    /// What this node demands for who has shown its token.
    pub fn demand(&self, job: JobId, verb: Verb, now: Time, nonce: [u8; 16]) -> Demand {
        Demand::by_node(&self.grid, job, verb, now, nonce)
    }

    /// When a job was made that a client has given this nonce: the first time that it came.
    pub fn made(&self, nonce: Nonce) -> Result<Time, CabinetError> {
        let _one_at_a_time = self.desk.lock().expect(UNPOISONED);
        let now = self.clock.now();
        let read =
            |bytes: Vec<u8>| bytes.try_into().ok().map(|bytes| Time::from_micros(u64::from_le_bytes(bytes)));
        if let Some(made) = self.cabinet.get(MADE, &nonce.0)?.and_then(read) {
            return Ok(made);
        }
        let keep = || self.cabinet.put(MADE, &nonce.0, &now.as_micros().to_le_bytes());
        if keep().is_err() {
            // The drawer is full: what is too old to be run again need not be known again.
            for (nonce, made) in self.cabinet.list(MADE)? {
                if read(made).is_none_or(|made| now.since(made) > JOB_AGE_MAX) {
                    self.cabinet.remove(MADE, &nonce)?;
                }
            }
            keep()?;
        }
        Ok(now)
    }

    /// Whether a job was signed for this grid, and lately enough.
    pub fn check_origin(&self, envelope: &Envelope, now: Time) -> Result<(), Denial> {
        let Origin { grid, made } = envelope.origin().ok_or(Denial::ForeignJob)?;
        if grid != self.grid.id().0 {
            return Err(Denial::ForeignJob);
        }
        let begin = envelope.job().begin.unwrap_or_default().max(made);
        if now.since(begin) > JOB_AGE_MAX || made.since(now) > JOB_AHEAD_MAX {
            return Err(Denial::Stale);
        }
        Ok(())
    }

    /// Signs a job with this node's key, for who has shown its token and has no key.
    pub fn seal(&self, envelope: Envelope, made: Time) -> Envelope {
        let identity = self.grid.identity();
        let envelope = envelope.made_for(Origin { grid: self.grid.id().0, made });
        envelope.sealed(identity.public(), |digest| identity.sign(digest))
    }
}

/// What a user without a name is called.
fn nameless(key: &PublicKey) -> Name {
    let letters: String = key.0.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("user-{letters}").parse().expect("plain letters are a name")
}

/// Whether the signer of a job has signed it as it is.
pub fn signature(envelope: &Envelope) -> Result<PublicKey, Denial> {
    let seal = envelope.seal().ok_or(Denial::Unsigned)?;
    if signed_by(&seal.signer, &envelope.digest(), &seal.signature) {
        Ok(seal.signer)
    } else {
        Err(Denial::Forged)
    }
}

#[cfg(test)]
mod tests;
