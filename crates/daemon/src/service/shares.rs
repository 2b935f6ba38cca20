//! Fair intake: what one user may have in a node's queue, and under way at once, so that others still get in.
//!
//! Jobs are counted when it matters, and not more often than [`RECOUNT_EVERY`]: between two counts only what came is
//! added, and what ended is not yet taken away. What is under way while jobs are counted is not in the count, so that a user
//! may have as many more as may be under way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use shoal_api::Problem;
use shoal_model::Envelope;
use shoal_model::envelope::PublicKey;
use shoal_protocols::node::{Node, Phase};

use super::{Service, Wrong};

/// Jobs of one user that have not ended, those of arrays included: who has so many adds no more, where nobody says
/// otherwise. It is a quarter of all that a node keeps.
pub const OPEN_PER_USER: u64 = 250_000;
/// Submissions of one user that are under way at once.
pub const SUBMITS_AT_ONCE_MAX: usize = 256;
/// How often jobs are counted at most.
pub const RECOUNT_EVERY: Duration = Duration::from_secs(1);
/// Users that are counted between two counts.
const USERS_MAX: usize = 10_000;

const UNPOISONED: &str = "nothing panics while it counts";

/// What each user has here.
#[derive(Default)]
pub(super) struct Shares {
    open: Mutex<Open>,
    under_way: Mutex<BTreeMap<PublicKey, usize>>,
}

#[derive(Default)]
struct Open {
    counted: Option<Instant>,
    jobs: BTreeMap<PublicKey, u64>,
}

/// A submission under way.
pub(super) struct UnderWay {
    shares: Arc<Shares>,
    user: PublicKey,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut under_way = self.shares.under_way.lock().expect(UNPOISONED);
        if let Some(number) = under_way.get_mut(&self.user) {
            *number -= 1;
            if *number == 0 {
                under_way.remove(&self.user);
            }
        }
    }
}

/// How many jobs an envelope makes.
fn jobs_of(envelope: &Envelope) -> u64 {
    1 + envelope.job().array.as_ref().map_or(0, |array| u64::from(array.tasks()))
}

/// The jobs of each user that have not ended.
fn count(node: &Node) -> BTreeMap<PublicKey, u64> {
    let mut jobs = BTreeMap::new();
    for (_, owned) in node.owned() {
        // Those of an array are counted with it.
        if matches!(owned.phase(), Phase::Ended(_)) || owned.of_array_at().is_some() {
            continue;
        }
        if let Some(seal) = owned.envelope().seal() {
            *jobs.entry(seal.signer).or_default() += jobs_of(owned.envelope());
        }
    }
    jobs
}

impl Shares {
    /// Notes a submission; refuses it if too many of this user are under way.
    pub fn enter(self: &Arc<Shares>, user: PublicKey) -> Result<UnderWay, Wrong> {
        let mut under_way = self.under_way.lock().expect(UNPOISONED);
        let number = under_way.entry(user).or_default();
        if *number >= SUBMITS_AT_ONCE_MAX {
            let error = format!(
                "{SUBMITS_AT_ONCE_MAX} submissions of this user are under way, and no more are taken"
            );
            let problem = Problem::new(error).hint("wait for the answers, or submit an array");
            return Err(Wrong { status: 429, problem });
        }
        *number += 1;
        Ok(UnderWay { shares: Arc::clone(self), user })
    }

    /// Whether there is room for more jobs of a user, by the last count; notes them then. `None` if it is time to count.
    fn take(&self, user: PublicKey, jobs: u64, most: u64, now: Instant) -> Option<bool> {
        let mut open = self.open.lock().expect(UNPOISONED);
        let fresh = open.counted.is_some_and(|at| now.saturating_duration_since(at) < RECOUNT_EVERY);
        let known = open.jobs.contains_key(&user) || open.jobs.len() < USERS_MAX;
        let has = open.jobs.get(&user).copied().unwrap_or_default();
        if open.counted.is_some() && known && has < most {
            open.jobs.insert(user, has + jobs);
            return Some(true);
        }
        fresh.then_some(false)
    }

    fn counted(&self, jobs: BTreeMap<PublicKey, u64>, now: Instant) {
        *self.open.lock().expect(UNPOISONED) = Open { counted: Some(now), jobs };
    }
}

impl Service {
    /// Refuses a job of a user who has too many here already.
    pub(super) async fn share(&self, envelope: &Envelope) -> Result<Option<UnderWay>, Wrong> {
        let Some(user) = envelope.seal().map(|seal| seal.signer) else { return Ok(None) };
        let under_way = self.shares.enter(user)?;
        let most = self.setting.open_per_user;
        let jobs = jobs_of(envelope);
        let mut room = self.shares.take(user, jobs, most, Instant::now());
        if room.is_none() {
            let counted = self.look(count).await?;
            self.shares.counted(counted, Instant::now());
            room = self.shares.take(user, jobs, most, Instant::now());
        }
        if room == Some(true) {
            return Ok(Some(under_way));
        }
        let error = format!("this user has {most} jobs here that have not ended, and may have no more");
        let hint =
            "wait until some have ended; the node's owner sets `open_per_user` in [jobs] of its node.toml";
        Err(Wrong { status: 429, problem: Problem::new(error).hint(hint) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: PublicKey = PublicKey([1; 32]);
    const BOB: PublicKey = PublicKey([2; 32]);

    #[test]
    fn who_has_too_many_jobs_waits_for_the_next_count_and_others_get_in() {
        let (shares, now) = (Shares::default(), Instant::now());
        assert_eq!(shares.take(ALICE, 1, 3, now), None, "nothing was counted yet");
        shares.counted(BTreeMap::from([(ALICE, 2)]), now);
        assert_eq!(shares.take(ALICE, 1, 3, now), Some(true));
        assert_eq!(shares.take(ALICE, 1, 3, now), Some(false));
        assert_eq!(shares.take(BOB, 3, 3, now), Some(true));
        assert_eq!(shares.take(BOB, 1, 3, now + RECOUNT_EVERY), None, "some may have ended");
        shares.counted(BTreeMap::new(), now + RECOUNT_EVERY);
        assert_eq!(shares.take(ALICE, 3, 3, now + RECOUNT_EVERY), Some(true));
    }

    #[test]
    fn submissions_under_way_are_bounded_for_each_user() {
        let shares = Arc::new(Shares::default());
        let all: Vec<_> = (0..SUBMITS_AT_ONCE_MAX).map(|_| shares.enter(ALICE).unwrap()).collect();
        assert_eq!(shares.enter(ALICE).err().unwrap().status, 429);
        assert!(shares.enter(BOB).is_ok());
        drop(all);
        assert!(shares.enter(ALICE).is_ok());
        assert!(shares.under_way.lock().unwrap().is_empty());
    }
}
