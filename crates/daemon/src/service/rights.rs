//! Who may touch a job: decided where the job is, from what was signed where it was asked.

use std::collections::BTreeMap;
use std::sync::Mutex;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use shoal_api::Problem;
use shoal_model::envelope::{Authorship, PublicKey};
use shoal_model::{JobId, NodeId, Time};
use shoal_protocols::node::Task;

use super::{Service, Wrong};
use crate::trust::demand::{Asked, DEMAND_AGE_MAX, DEMAND_AHEAD_MAX, Demand, Matter, Verb, Voice};
use crate::trust::gate::Gatekeeper;
use crate::trust::text::write_key;

/// Demands that are remembered, so that none is carried out twice.
const DONE_MAX: usize = 100_000;

const UNPOISONED: &str = "nothing panics while it holds this";

/// Who asks, as it travels between nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct By {
    /// The demand of a user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The demand of the node whose token the user has shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// What shows whose the job is, where who is asked does not know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
}

/// What was done lately because somebody demanded it.
#[derive(Default)]
pub(super) struct Done(Mutex<BTreeMap<[u8; 32], Time>>);

impl Done {
    /// Notes a demand; false if it was noted before, or if there are too many.
    fn note(&self, mark: [u8; 32], now: Time) -> bool {
        let mut done = self.0.lock().expect(UNPOISONED);
        if done.len() >= DONE_MAX {
            let kept = DEMAND_AGE_MAX + DEMAND_AHEAD_MAX;
            done.retain(|_, at| now.since(*at) <= kept);
        }
        done.len() < DONE_MAX && done.insert(mark, now).is_none()
    }
}

impl Service {
    /// What is asked in the name of who has shown this node's token, and of the user who has signed, if one has.
    pub(super) fn by(&self, job: JobId, verb: Verb, user: Option<String>) -> Result<By, Wrong> {
        let Some(gate) = &self.gate else { return Ok(By::default()) };
        let nonce =
            shoal_api::secret::draw().map_err(|error| Wrong::unavailable(format!("no chance: {error}")))?;
        let node = gate.trust().demand(job, verb, self.now(), nonce).write();
        Ok(By { user, node: Some(node), author: None })
    }

    /// Whether this may be done about a job that this node accepted. Says what shows whose the job is.
    pub(super) async fn may(&self, job: JobId, verb: Verb, by: By) -> Result<By, Wrong> {
        let Some(gate) = &self.gate else { return Ok(by) };
        let seen = self.look(move |node| {
            let owned = node.job(job)?;
            let envelope = owned.envelope();
            let signer = envelope.seal().map(|seal| seal.signer);
            let index = owned.of_array_at().map(|(_, index)| index);
            let author = envelope.authorship().map(|author| author.of_index(index));
            Some((signer, author))
        });
        let (signer, author) = seen.await?.ok_or_else(|| Wrong::unknown(&job.to_string()))?;
        // A job that nobody has signed is nobody's, and runs nowhere.
        let signer = signer.ok_or_else(|| Wrong::unknown(&job.to_string()))?;
        let hosts = match verb {
            Verb::Cancel => self.status(job).await?.planned.map(|planned| planned.nodes).unwrap_or_default(),
            Verb::Hold | Verb::Release | Verb::Logs | Verb::Files => Vec::new(),
        };
        let hosts: Vec<NodeId> = hosts.iter().filter_map(|node| node.parse().ok()).collect();
        let voice = judge(gate, job, verb, &by, &signer, &hosts, self.now())?;
        if verb.changes() && !self.done.note(voice.mark, self.now()) {
            let problem = Problem::new("this was demanded before, and is not done again");
            return Err(Wrong { status: 409, problem: problem.hint("give the command again") });
        }
        let bytes = author.and_then(|author| minicbor::to_vec(author).ok());
        Ok(By { author: bytes.map(|bytes| HEXLOWER.encode(&bytes)), ..by })
    }

    /// Whether another node may have what a task of a job left here: the one that placed it while it is known here, and
    /// else whoever shows for whom it asks, and that the job is theirs.
    pub(super) async fn may_have(&self, task: Task, verb: Verb, by: &By, from: NodeId) -> Result<(), Wrong> {
        let Some(gate) = &self.gate else { return Ok(()) };
        if from == self.setting.me || self.look(move |node| node.owner_of(task)).await? == Some(from) {
            return Ok(());
        }
        let author = by.author.as_deref().and_then(|text| HEXLOWER.decode(text.as_bytes()).ok());
        let author = author.and_then(|bytes| minicbor::decode::<Authorship>(&bytes).ok());
        let unknown = || Wrong {
            status: 403,
            problem: Problem::new(format!("nothing shows whose job {} is", task.job))
                .hint("ask the node that accepted it"),
        };
        let signer = author.and_then(|author| author.signer_of(task.job)).ok_or_else(unknown)?;
        judge(gate, task.job, verb, by, &signer, &[self.setting.me], self.now()).map(|_| ())
    }
}

fn judge(
    gate: &Gatekeeper,
    job: JobId,
    verb: Verb,
    by: &By,
    signer: &PublicKey,
    hosts: &[NodeId],
    now: Time,
) -> Result<Voice, Wrong> {
    let matter = Matter { grid: gate.trust().grid(), job, verb };
    let voice = |text: &Option<String>| -> Result<Option<Voice>, Wrong> {
        let Some(text) = text else { return Ok(None) };
        let demand = Demand::read(text).map_err(|error| unheeded(&error.to_string()))?;
        demand.verify(matter, now).map(Some).map_err(|error| unheeded(&error.to_string()))
    };
    let asked = Asked { user: voice(&by.user)?, node: voice(&by.node)? };
    asked.may(verb, signer, hosts).map_err(|who| {
        let problem = Problem::new(format!("job {job} is not yours: {who}"));
        let hint = format!(
            "it was signed with the key {}; `shoal user show` shows yours, --as-node asks as the owner of this node",
            write_key(signer)
        );
        Wrong { status: 403, problem: problem.hint(hint) }
    })
}

fn unheeded(why: &str) -> Wrong {
    let problem = Problem::new(format!("the demand is not heeded: {why}"));
    Wrong { status: 403, problem: problem.hint("give the command again; clocks of a grid must agree") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demand_is_carried_out_once_and_forgotten_when_it_is_too_old_to_count() {
        let (done, now) = (Done::default(), Time::from_secs(1_000));
        assert!(done.note([1; 32], now) && !done.note([1; 32], now));
        for number in 0..DONE_MAX as u64 - 1 {
            let mut mark = [2; 32];
            mark[..8].copy_from_slice(&number.to_le_bytes());
            assert!(done.note(mark, now));
        }
        assert!(!done.note([3; 32], now), "there is no room");
        let later = now + DEMAND_AGE_MAX + DEMAND_AHEAD_MAX + shoal_model::Span::from_secs(1);
        assert!(done.note([3; 32], later));
    }
}
