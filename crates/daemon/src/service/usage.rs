//! What users have used: summed by each host from its own records, signed by it, and checked by who asks.

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use shoal_api::{HostUsage, UsageView, Used};
use shoal_model::NodeId;
use shoal_model::envelope::Signature;

use super::{Service, Wrong};
use crate::audit::{self, Kind};
use crate::elsewhere::Question;
use crate::identity::{node_id, signed_by};
use crate::trust::text::{read_key, write_key};

const CONTEXT: &str = "shoal 2026-11-15 usage of a host v1";
/// Users in the answer of one host, at most: those who have used it most.
const USERS_MAX: usize = 10_000;

impl Service {
    /// What was used of this host, signed.
    pub fn own_usage(&self) -> Result<HostUsage, Wrong> {
        let mut sums: BTreeMap<(Option<String>, Option<String>), (u64, u64)> = BTreeMap::new();
        let read = audit::read(&self.setting.home, |record| {
            if record.kind == Kind::Ended {
                let sum = sums.entry((record.user, record.organisation)).or_default();
                sum.0 += 1;
                sum.1 = sum.1.saturating_add(record.core_milliseconds.unwrap_or_default());
            }
        });
        match read {
            Ok(Ok(_)) => {}
            Ok(Err(broken)) => return Err(Wrong::unavailable(format!("audit.log: {broken}"))),
            Err(error) => return Err(Wrong::unavailable(format!("audit.log: {error}"))),
        }
        let mut used: Vec<Used> = sums
            .into_iter()
            .map(|((user, organisation), (tasks, core_milliseconds))| Used {
                user,
                organisation,
                tasks,
                core_milliseconds,
            })
            .collect();
        used.sort_by_key(|used| std::cmp::Reverse(used.core_milliseconds));
        used.truncate(USERS_MAX);
        let identity = self.gatekeeper()?.trust().identity();
        let node = self.setting.me.to_string();
        let signature = HEXLOWER.encode(&identity.sign(&digest(&node, &used)).0);
        Ok(HostUsage { node, key: write_key(&identity.public()), used, signature })
    }

    /// What was used of all hosts that answer, each as far as it has signed it.
    pub async fn usage(&self) -> Result<UsageView, Wrong> {
        let mut hosts = vec![self.own_usage()?];
        let said = self.ask_all::<HostUsage>(&Question::Usage).await;
        hosts.extend(said.into_iter().filter(|(node, said)| is_signed(*node, said)).map(|(_, said)| said));
        Ok(UsageView { hosts })
    }
}

fn digest(node: &str, used: &[Used]) -> [u8; 32] {
    let said = serde_json::to_vec(&(node, used)).expect("sums are plain data");
    blake3::derive_key(CONTEXT, &said)
}

/// Whether this host has signed this itself.
fn is_signed(node: NodeId, said: &HostUsage) -> bool {
    let Ok(key) = read_key(&said.key) else { return false };
    let signature = HEXLOWER.decode(said.signature.as_bytes()).ok().and_then(|bytes| bytes.try_into().ok());
    let Some(signature) = signature.map(Signature) else { return false };
    said.node == node.to_string()
        && node_id(&key) == node
        && signed_by(&key, &digest(&said.node, &said.used), &signature)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Identity;

    #[test]
    fn sums_of_a_host_count_as_far_as_it_has_signed_them_itself() {
        let host = Identity::from_bytes(&[1; 32]);
        let used = vec![Used {
            user: Some("alice".to_owned()),
            organisation: None,
            tasks: 2,
            core_milliseconds: 3_000,
        }];
        let node = host.node().to_string();
        let signature = HEXLOWER.encode(&host.sign(&digest(&node, &used)).0);
        let said = HostUsage { node, key: write_key(&host.public()), used, signature };
        assert!(is_signed(host.node(), &said));
        let mut more = said.clone();
        more.used[0].core_milliseconds += 1;
        assert!(!is_signed(host.node(), &more));
        assert!(
            !is_signed(Identity::from_bytes(&[2; 32]).node(), &said),
            "another host passes it off as its own"
        );
    }
}
