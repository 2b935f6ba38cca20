//! Demands: what somebody wants done about a job, signed, so that whoever passes it on changes nothing.
//!
//! ```text
//! user ──demand, signed──▶ entry node ──demand──▶ owner of the job ──demand──▶ host that has its outputs
//!                           adds its own: who asks has shown its token
//! ```
//!
//! A demand is for one job and one verb, in one grid, for [`DEMAND_AGE_MAX`]; one that changes something counts once. Who
//! is asked decides by the keys alone ([`Asked::may`]).

use minicbor::bytes::ByteVec;
use minicbor::{Decode, Encode};
use shoal_model::envelope::{PublicKey, Signature};
use shoal_model::{JobId, NodeId, Span, Time};

use super::text::{Kind, TextError};
use crate::identity::{Identity, node_id, signed_by};
use crate::membership::{Appointment, Grid, GridId};

/// The version of demands written here.
const VERSION: u16 = 1;
const CONTEXT: &str = "shoal 2026-11-15 demand v1";
/// Bytes of what a demand says, at most.
const CONTENT_MAX: usize = 256;
/// How old a demand may be.
pub const DEMAND_AGE_MAX: Span = Span::from_mins(5);
/// How far ahead the clock of who made it may be.
pub const DEMAND_AHEAD_MAX: Span = Span::from_mins(1);

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Verb {
    /// Take it back.
    #[n(0)]
    Cancel,
    /// Keep it from starting.
    #[n(1)]
    Hold,
    /// Let it start.
    #[n(2)]
    Release,
    /// Read what it writes.
    #[n(3)]
    Logs,
    /// Fetch what it left behind.
    #[n(4)]
    Files,
}

impl Verb {
    /// All of them.
    pub const ALL: [Verb; 5] = [Verb::Cancel, Verb::Hold, Verb::Release, Verb::Logs, Verb::Files];

    /// As the interface calls it.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Cancel => "cancel",
            Verb::Hold => "hold",
            Verb::Release => "release",
            Verb::Logs => "logs",
            Verb::Files => "files",
        }
    }

    /// Whether it changes something, so that it must not be done again when it is heard again.
    pub fn changes(self) -> bool {
        match self {
            Verb::Cancel | Verb::Hold | Verb::Release => true,
            Verb::Logs | Verb::Files => false,
        }
    }

    /// What it is, in a sentence.
    fn doing(self) -> &'static str {
        match self {
            Verb::Cancel => "take it back",
            Verb::Hold => "hold it",
            Verb::Release => "release it",
            Verb::Logs => "read what it writes",
            Verb::Files => "have its files",
        }
    }
}

#[derive(Encode, Decode)]
#[cbor(map)]
struct Content {
    #[n(0)]
    version: u16,
    #[n(1)]
    grid: GridId,
    #[n(2)]
    job: JobId,
    #[n(3)]
    verb: Verb,
    #[n(4)]
    at: Time,
    #[cbor(n(5), with = "minicbor::bytes")]
    nonce: [u8; 16],
}

/// A signed demand.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Demand {
    #[n(0)]
    content: ByteVec,
    #[n(1)]
    signature: Signature,
    #[n(2)]
    signer: PublicKey,
    /// The root's word that the signer is an admitter, if it is one.
    #[n(3)]
    appointment: Option<Box<Appointment>>,
}

/// Who a sound demand is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Voice {
    /// The key that signed it.
    pub key: PublicKey,
    /// Whether that is an admitter's.
    pub admitter: bool,
    /// What tells this demand from all others.
    pub mark: [u8; 32],
}

/// Why a demand is not heeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DemandError {
    /// Not a demand, or a newer one.
    #[error("it cannot be read; it may be of a later version of shoal")]
    Unreadable,
    /// Of another grid.
    #[error("it is for another grid")]
    OtherGrid,
    /// About something else.
    #[error("it is about another job, or asks for something else")]
    OtherMatter,
    /// Not signed by who it should be.
    #[error("its signature does not fit")]
    Forged,
    /// Too old.
    #[error("it was signed more than {} minutes ago, or by a clock that is ahead", DEMAND_AGE_MAX.as_micros() / 60_000_000)]
    Stale,
}

/// What is asked, and about what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matter {
    /// In which grid.
    pub grid: GridId,
    /// About which job.
    pub job: JobId,
    /// What.
    pub verb: Verb,
}

impl Demand {
    /// A demand of a user.
    pub fn by_user(key: &Identity, matter: Matter, now: Time, nonce: [u8; 16]) -> Demand {
        Demand::new(key, matter, now, nonce, None)
    }

    /// A demand of a node, for who has shown its token.
    pub fn by_node(grid: &Grid, job: JobId, verb: Verb, now: Time, nonce: [u8; 16]) -> Demand {
        let appointment = grid.appointment(now).cloned().map(Box::new);
        Demand::new(grid.identity(), Matter { grid: grid.id(), job, verb }, now, nonce, appointment)
    }

    fn new(
        key: &Identity,
        matter: Matter,
        at: Time,
        nonce: [u8; 16],
        appointment: Option<Box<Appointment>>,
    ) -> Demand {
        let Matter { grid, job, verb } = matter;
        let content = Content { version: VERSION, grid, job, verb, at, nonce };
        let content = minicbor::to_vec(content).expect("writing to memory does not fail");
        let signature = key.sign(&blake3::derive_key(CONTEXT, &content));
        Demand { content: content.into(), signature, signer: key.public(), appointment }
    }

    /// Who asks for this, now.
    pub fn verify(&self, matter: Matter, now: Time) -> Result<Voice, DemandError> {
        if self.content.len() > CONTENT_MAX {
            return Err(DemandError::Unreadable);
        }
        let content: Content = minicbor::decode(&self.content).map_err(|_| DemandError::Unreadable)?;
        if content.version > VERSION {
            return Err(DemandError::Unreadable);
        }
        if content.grid != matter.grid {
            return Err(DemandError::OtherGrid);
        }
        if (content.job, content.verb) != (matter.job, matter.verb) {
            return Err(DemandError::OtherMatter);
        }
        let mark = blake3::derive_key(CONTEXT, &self.content);
        if !signed_by(&self.signer, &mark, &self.signature) {
            return Err(DemandError::Forged);
        }
        if now.since(content.at) > DEMAND_AGE_MAX || content.at.since(now) > DEMAND_AHEAD_MAX {
            return Err(DemandError::Stale);
        }
        let appointed = |word: &Appointment| word.verify(matter.grid, &self.signer, now).is_ok();
        let admitter = self.appointment.as_deref().is_some_and(appointed);
        Ok(Voice { key: self.signer, admitter, mark })
    }

    /// As a line of text.
    pub fn write(&self) -> String {
        Kind::Demand.write(&minicbor::to_vec(self).expect("writing to memory does not fail"))
    }

    /// The demand that a text stands for.
    pub fn read(line: &str) -> Result<Demand, TextError> {
        minicbor::decode(&Kind::Demand.read(line)?).map_err(|_| Kind::Demand.damaged())
    }
}

/// Who asks, by all that was shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The user, if one has signed.
    pub user: Option<Voice>,
    /// The node whose token was shown.
    pub node: Option<Voice>,
}

impl Asked {
    /// Whether this may be done about a job of `signer` that runs on these hosts, and by which demand; who may, if not.
    ///
    /// A user who has signed asks for himself alone, and not as the owner of the node that passes it on; but what a node
    /// has signed itself belongs to all who have its token.
    pub fn may(&self, verb: Verb, signer: &PublicKey, hosts: &[NodeId]) -> Result<Voice, String> {
        let own = |voice: &Voice| voice.key == *signer;
        let runs = |voice: &Voice| verb == Verb::Cancel && hosts.contains(&node_id(&voice.key));
        let in_charge = |voice: &Voice| voice.admitter || runs(voice);
        let by_user = self.user.filter(own);
        let by_node = self.node.filter(|node| own(node) || (self.user.is_none() && in_charge(node)));
        by_user.or(by_node).ok_or_else(|| {
            let hosts = match verb {
                Verb::Cancel => ", the owner of a node that runs it",
                Verb::Hold | Verb::Release | Verb::Logs | Verb::Files => "",
            };
            format!("only its own user{hosts} or an admitter of the grid may {}", verb.doing())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cabinet::MemoryCabinet;
    use crate::trust::samples::{NOW, key};

    const JOB: JobId = JobId([7; 16]);

    fn matter(verb: Verb) -> Matter {
        Matter { grid: GridId(key(1).public()), job: JOB, verb }
    }

    fn demand(verb: Verb) -> Demand {
        Demand::by_user(&key(9), matter(verb), NOW, [1; 16])
    }

    #[test]
    fn demand_counts_for_its_job_and_verb_and_grid_and_for_minutes() {
        let cancel = Demand::read(&demand(Verb::Cancel).write()).unwrap();
        let voice = cancel.verify(matter(Verb::Cancel), NOW).unwrap();
        assert_eq!((voice.key, voice.admitter), (key(9).public(), false));
        for verb in Verb::ALL.into_iter().filter(|verb| *verb != Verb::Cancel) {
            assert_eq!(cancel.verify(matter(verb), NOW), Err(DemandError::OtherMatter), "{verb:?}");
        }
        let other_job = Matter { job: JobId([8; 16]), ..matter(Verb::Cancel) };
        assert_eq!(cancel.verify(other_job, NOW), Err(DemandError::OtherMatter));
        let other_grid = Matter { grid: GridId(key(2).public()), ..matter(Verb::Cancel) };
        assert_eq!(cancel.verify(other_grid, NOW), Err(DemandError::OtherGrid));
        let at = |time| cancel.verify(matter(Verb::Cancel), time);
        assert!(at(NOW + DEMAND_AGE_MAX).is_ok());
        assert_eq!(at(NOW + DEMAND_AGE_MAX + Span::from_secs(1)), Err(DemandError::Stale));
        let early = Demand::by_user(&key(9), matter(Verb::Cancel), NOW + Span::from_mins(2), [1; 16]);
        assert_eq!(early.verify(matter(Verb::Cancel), NOW), Err(DemandError::Stale));
    }

    #[test]
    fn every_changed_bit_of_a_demand_is_noticed() {
        let bytes = minicbor::to_vec(demand(Verb::Hold)).unwrap();
        for at in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[at / 8] ^= 1 << (at % 8);
            let Ok(changed) = minicbor::decode::<Demand>(&changed) else { continue };
            let verdict = changed.verify(matter(Verb::Hold), NOW);
            assert!(verdict.is_err(), "bit {at} makes {verdict:?}");
        }
    }

    #[test]
    fn admitter_is_who_the_root_has_appointed() {
        let cabinet = std::sync::Arc::new(MemoryCabinet::new());
        let name = "grid".parse().unwrap();
        let grid = Grid::create_of(None, &key(2), name, vec![], cabinet, NOW).unwrap();
        let by_node = Demand::by_node(&grid, JOB, Verb::Cancel, NOW, [1; 16]);
        let matter = Matter { grid: grid.id(), job: JOB, verb: Verb::Cancel };
        assert!(by_node.verify(matter, NOW).unwrap().admitter);
        // Somebody else with the same appointment.
        let thief =
            Demand { appointment: by_node.appointment, ..Demand::by_user(&key(9), matter, NOW, [1; 16]) };
        assert!(!thief.verify(matter, NOW).unwrap().admitter);
    }

    #[test]
    fn only_the_user_an_admitter_and_for_cancel_a_host_may() {
        let voice = |number: u8| Voice { key: key(number).public(), admitter: false, mark: [0; 32] };
        let admitter = Voice { admitter: true, ..voice(3) };
        let (signer, hosts) = (key(9).public(), [key(5).node()]);
        let may = |user: Option<Voice>, node: Option<Voice>, verb| {
            Asked { user, node }.may(verb, &signer, &hosts).is_ok()
        };
        for verb in Verb::ALL {
            assert!(may(Some(voice(9)), Some(voice(4)), verb), "its user, through any node");
            assert!(!may(Some(voice(8)), Some(voice(4)), verb), "another user");
            assert!(!may(None, Some(voice(4)), verb), "any member");
            assert!(!may(None, None, verb));
            assert!(may(None, Some(admitter), verb));
            assert!(
                !may(Some(voice(8)), Some(admitter), verb),
                "another user at the admitter asks for himself"
            );
            assert_eq!(may(None, Some(voice(5)), verb), verb == Verb::Cancel, "a host");
            assert!(
                may(Some(voice(8)), Some(voice(9)), verb),
                "what a node signed is of all who have its token"
            );
        }
        let refused = Asked::default().may(Verb::Cancel, &signer, &hosts).unwrap_err();
        assert!(refused.contains("its own user") && refused.contains("admitter"), "{refused}");
    }
}
