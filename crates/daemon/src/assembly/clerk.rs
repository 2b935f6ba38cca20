//! Looks after the policy's file, and has written down what concerns who may do what.

use std::sync::Arc;
use std::time::Duration;

use shoal_model::{NodeId, Time};
use shoal_protocols::Shared;
use shoal_protocols::node::{self, Event, Node, Phase};

use crate::audit::{Audit, Kind, Record};
use crate::clock::Clock;
use crate::inbox::Mailbox;
use crate::trust::gate::{Gatekeeper, Reload};
use crate::trust::notice::Said;
use crate::trust::text::write_key;

/// How often the policy's file is looked at.
const POLICY_EVERY: Duration = Duration::from_secs(2);
/// How often passes of jobs that wait are looked at.
const RENEW_EVERY: Duration = Duration::from_mins(10);
/// Passes that are looked at without a pause.
const RENEWED_AT_ONCE: usize = 64;

/// Takes a new policy over as soon as it is there, and says so.
pub(super) async fn watch_policy(gate: Arc<Gatekeeper>, audit: Arc<Audit>, clock: Clock) {
    let mut every = tokio::time::interval(POLICY_EVERY);
    loop {
        every.tick().await;
        let text = match gate.reload() {
            Reload::Same => continue,
            Reload::New(rules) => {
                let text = format!("a new policy counts, with {rules} rules");
                tracing::info!("{text}");
                text
            }
            Reload::Broken(error) => {
                let text = format!("policy.toml: {error}; the policy before it stays");
                tracing::error!("{text}");
                text
            }
        };
        audit.note(clock.now(), Record::new(Kind::Policy, text));
    }
}

/// Renews the passes of jobs that wait, as long as this node may vouch for their users.
pub(super) async fn renew_passes(gate: Arc<Gatekeeper>, mailbox: Mailbox<Node>, clock: Clock) {
    let mut every = tokio::time::interval(RENEW_EVERY);
    loop {
        every.tick().await;
        let (found, seen) = tokio::sync::oneshot::channel();
        let waiting = |node: &Node| {
            let open = node.owned().filter(|(_, owned)| !matches!(owned.phase(), Phase::Ended(_)));
            // Those of an array share one envelope.
            let open = open.filter(|(_, owned)| owned.of_array_at().is_none() && !owned.is_pending());
            open.map(|(_, owned)| owned.envelope().clone()).collect::<Vec<_>>()
        };
        if mailbox.look_then(waiting, move |waiting| drop(found.send(waiting))).is_err() {
            continue;
        }
        for (number, envelope) in seen.await.unwrap_or_default().into_iter().enumerate() {
            // All of a user's jobs of a day come up at once; others have work to do too.
            if number % RENEWED_AT_ONCE == 0 {
                tokio::task::yield_now().await;
            }
            if let Some(renewed) = gate.trust().renewed(&envelope, clock.now())
                && let Err(refused) = mailbox.command(node::Command::Submit(Shared::new(renewed)))
            {
                tracing::debug!("the pass of job {} is renewed later: {refused}", envelope.id());
            }
        }
    }
}

/// Has revocations written down as they are heard of.
pub(super) fn write_revocations(gate: &Gatekeeper, audit: &Arc<Audit>, clock: Clock) {
    let audit = Arc::clone(audit);
    gate.trust().tell(move |said| {
        let text = match said {
            Said::RevokedUser(key) => write_key(key),
            Said::RevokedPass(serial) => format!("pass {serial}"),
            Said::Organisation(..) => return,
        };
        audit.note(clock.now(), Record::new(Kind::Revoked, text));
    });
}

/// Writes down what a node tells, as far as it concerns who may do what.
pub(super) fn write_event(audit: &Audit, me: NodeId, at: Time, event: &Event) {
    let (kind, job, text) = match event {
        Event::Accepted(job) => (Kind::Submitted, job, "accepted here".to_owned()),
        Event::Refused(job, why) => (Kind::Refused, job, why.to_string()),
        Event::Denied { job, by, why } if *by == me => (Kind::Refused, job, why.to_string()),
        Event::Denied { .. }
        | Event::Waiting(..)
        | Event::Placed(..)
        | Event::Unplaced { .. }
        | Event::Started(..)
        | Event::Took(..)
        | Event::Ended(..)
        | Event::Held(..)
        | Event::Suspected(_)
        | Event::Back(_)
        | Event::Silent(_)
        | Event::Unwatched(_)
        | Event::Slept(_)
        | Event::Left => return,
    };
    audit.note(at, Record { job: Some(job.to_string()), ..Record::new(kind, text) });
}
