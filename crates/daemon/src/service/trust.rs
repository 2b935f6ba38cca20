//! What users can ask about users: passes, organisations, revocations; and how nodes tell each other of them.

use std::sync::Arc;
use std::time::Duration;

use data_encoding::HEXLOWER;
use serde::de::IgnoredAny;
use shoal_api::{OrganisationForm, Problem, Reach, RevokeForm, RevokedView, Text, TrustView, VouchForm};
use shoal_model::envelope::{Envelope, PublicKey};
use shoal_model::units::TimeText;
use shoal_model::{Name, NodeId, Span};
use shoal_protocols::node::Denial;

use super::{Service, Wrong, read_span};
use crate::elsewhere::{PATIENCE, Question, Reply};
use crate::trust::gate::Gatekeeper;
use crate::trust::notice::{Notice, NoticeError, Said};
use crate::trust::text::{read_key, write_key};
use crate::trust::{NOTICES_MAX, Trust, Unvouched, VOUCHED_FOR, pass, signature};

/// How often notices are compared with another node: for those who were away when they were told of them.
const COMPARE_EVERY: Duration = Duration::from_secs(30);
/// How many are asked in turn, where one does not answer.
const COMPARE_TRIES: u32 = 3;
/// Of so many comparisons one is with anybody, so that nobody hears only those who call; the first is, too.
const COMPARE_ANY: u64 = 8;
/// The longest pass that a node signs.
const VOUCHED_MOST: Span = Span::from_hours(366 * 24);

impl Service {
    pub(super) fn gatekeeper(&self) -> Result<&Arc<Gatekeeper>, Wrong> {
        self.gate.as_ref().ok_or_else(|| Wrong::unavailable("this node knows no users"))
    }

    fn trust(&self) -> Result<&Trust, Wrong> {
        Ok(self.gatekeeper()?.trust())
    }

    /// Signs a job with the node's key: who has shown its token and no key of their own acts in its name. A job whose
    /// client gave its nonce is the same when it comes again, so it was made when it came first.
    pub fn seal(&self, envelope: Envelope, given: bool) -> Result<Envelope, Wrong> {
        let Some(gate) = &self.gate else { return Ok(envelope) };
        let made = match given {
            true => gate.trust().made(envelope.nonce()).map_err(Unvouched::Cabinet)?,
            false => self.now(),
        };
        Ok(gate.trust().seal(envelope, made))
    }

    /// Whether a job is somebody's; adds a pass if it has none, for who has shown this node's token.
    pub(super) fn authorise(&self, envelope: Envelope) -> Result<Envelope, Wrong> {
        let Some(gate) = &self.gate else { return Ok(envelope) };
        let signer = signature(&envelope).map_err(|denial| refused(401, denial))?;
        let trust = gate.trust();
        // A pass for another grid says nothing here; its bearer has shown this node's token.
        let foreign = |statement: pass::Statement| statement.grid != trust.grid();
        let useless = envelope.pass().is_none_or(|pass| pass::says(pass).is_some_and(foreign));
        let envelope = if useless {
            let own = trust.own_key() == signer;
            let name = if own { Some(trust.own_name()) } else { envelope.job().user.clone() };
            envelope.with_pass(trust.vouch_for_job(signer, name, self.now())?)
        } else {
            envelope
        };
        match gate.bearer(&envelope, self.now()) {
            // Whom this node does not trust another may.
            Ok(_) | Err(Denial::Untrusted) => Ok(envelope),
            Err(denial) => Err(refused(403, denial)),
        }
    }

    /// What this node knows of users and organisations.
    pub fn trusted(&self) -> Result<TrustView, Wrong> {
        let trust = self.trust()?;
        let revoked = trust.revocations().into_iter().map(|(said, by, at)| {
            let (user, serial) = match said {
                Said::RevokedUser(key) => (Some(write_key(&key)), None),
                Said::RevokedPass(serial) => (None, Some(serial)),
                Said::Organisation(..) => (None, None),
            };
            RevokedView { user, serial, by: write_key(&by), at: TimeText(at) }
        });
        let organisations = trust.organisations().into_iter();
        Ok(TrustView {
            grid: write_key(&trust.grid().0),
            organisation: trust.organisation().map(|name| name.to_string()),
            admitter: trust.is_admitter(),
            organisations: organisations.map(|(name, key)| (name.to_string(), write_key(&key))).collect(),
            revoked: revoked.collect(),
        })
    }

    /// A pass for somebody whom a holder of this node's token vouches for.
    pub fn vouch(&self, form: &VouchForm) -> Result<Text, Wrong> {
        let lasts = read_span("lasts", form.lasts.as_deref(), VOUCHED_FOR)?.min(VOUCHED_MOST);
        let (key, name) = (key_of(&form.key)?, name_of(&form.name)?);
        Ok(Text { text: pass::write(&self.trust()?.vouch(key, Some(name), lasts)?) })
    }

    /// Trusts an organisation's key: in the whole grid where this node is an admitter, and else here.
    pub fn trust_organisation(self: &Arc<Self>, form: &OrganisationForm) -> Result<Reach, Wrong> {
        let (name, key) = (name_of(&form.name)?, key_of(&form.key)?);
        let reach = match self.trust()?.trust_organisation(name, key)? {
            Some(notice) => {
                self.spread(&notice);
                "all nodes of the grid trust it"
            }
            None => "this node trusts it; it is no admitter, so that others are not told",
        };
        Ok(Reach { reach: reach.to_owned() })
    }

    /// Revokes a user or a pass in this node's name.
    pub fn revoke(self: &Arc<Self>, form: &RevokeForm) -> Result<Reach, Wrong> {
        let said = match (&form.user, form.serial) {
            (Some(user), None) => Said::RevokedUser(key_of(user)?),
            (None, Some(serial)) => Said::RevokedPass(serial),
            (None, None) | (Some(_), Some(_)) => {
                return Err(Wrong::nonsense("name one of `user` and `serial`"));
            }
        };
        let trust = self.trust()?;
        self.spread(&trust.revoke(said)?);
        let reach = match trust.is_admitter() {
            true => "revoked in the whole grid",
            false => "revoked as far as this node has vouched; an admitter revokes in the whole grid",
        };
        Ok(Reach { reach: reach.to_owned() })
    }

    /// Takes a notice that somebody else has signed, and passes it on.
    pub fn take_notice(self: &Arc<Self>, text: &Text) -> Result<Reach, Wrong> {
        let notice = Notice::read(&text.text).map_err(|error| Wrong::nonsense(error.to_string()))?;
        if self.trust()?.add(notice.clone())? {
            self.spread(&notice);
        }
        Ok(Reach { reach: "the grid is being told".to_owned() })
    }

    /// Tells all nodes that are known of something new; who misses it hears it when notices are compared.
    fn spread(self: &Arc<Self>, notice: &Notice) {
        let (service, question) = (Arc::clone(self), Question::Notice { text: notice.write() });
        tokio::spawn(async move { service.ask_all::<IgnoredAny>(&question).await });
    }

    /// The notices here, unless who asks has the same.
    pub(super) fn notices(&self, digest: &str) -> Result<Vec<String>, Wrong> {
        let trust = self.trust()?;
        if HEXLOWER.encode(&trust.digest()) == digest {
            return Ok(Vec::new());
        }
        Ok(trust.notices().iter().map(Notice::write).collect())
    }

    /// Compares notices with a node at random, for ever.
    pub async fn compare_notices(self: Arc<Self>) {
        let mut every = tokio::time::interval(COMPARE_EVERY);
        for round in 0_u64.. {
            every.tick().await;
            for _ in 0..COMPARE_TRIES {
                let Ok(trust) = self.trust() else { return };
                let Some(node) = self.somebody(round.is_multiple_of(COMPARE_ANY)) else { break };
                if self.compare_with(node, trust).await {
                    break;
                }
            }
        }
    }

    /// One of the others: of those that are connected, if any is, unless it may be anybody. A connection costs a hundred
    /// times what is said here, and gossip connects one node after the other.
    fn somebody(&self, anybody: bool) -> Option<NodeId> {
        let mut members = if anybody { Vec::new() } else { self.elsewhere.connected() };
        if members.is_empty() {
            members = self.elsewhere.members();
        }
        let drawn = shoal_api::secret::draw().map(u64::from_le_bytes).unwrap_or_default();
        let place = drawn.checked_rem(members.len() as u64)?;
        members.get(place as usize).copied()
    }

    /// Takes over what a node knows more; whether it has answered.
    async fn compare_with(&self, node: NodeId, trust: &Trust) -> bool {
        let question = Question::Notices { digest: HEXLOWER.encode(&trust.digest()) };
        let asked = tokio::time::timeout(PATIENCE * 2, async {
            let reply: Reply = self.ask_node(node, &question).await.ok()?;
            reply.read::<Vec<String>>().await
        });
        let Ok(Some(texts)) = asked.await else { return false };
        for text in texts.iter().take(NOTICES_MAX) {
            match Notice::read(text).map(|notice| trust.add(notice)) {
                Ok(Ok(_)) => {}
                // It may be signed by an organisation that is heard of later.
                Ok(Err(why)) => tracing::debug!("node {node} tells of {why}"),
                Err(why) => tracing::debug!("node {node} tells nonsense: {why}"),
            }
        }
        true
    }
}

fn refused(status: u16, denial: Denial) -> Wrong {
    let problem = Problem::new(format!("the job is not taken: {denial}"));
    let hint = match denial {
        Denial::Unsigned | Denial::Forged => {
            "`shoal submit` signs jobs; so does the node, for jobs in JSON or TOML"
        }
        Denial::Expired => "ask for a new pass, and keep it with `shoal user keep`",
        Denial::OtherUser => "leave `user` and `organisation` out of the job, or give those of your pass",
        Denial::ForeignJob => "submit it anew: a job is signed for one grid",
        Denial::Stale => "submit it anew; if you just did, the clock of your machine is wrong",
        Denial::NoPass
        | Denial::BadPass
        | Denial::OtherGrid
        | Denial::Untrusted
        | Denial::Revoked
        | Denial::NotAsSigned
        | Denial::NoCell
        | Denial::CannotStart
        | Denial::ClocksApart
        | Denial::Leaves
        | Denial::Rule(_)
        | Denial::NoRule => "`shoal user show` tells who you are",
    };
    Wrong { status, problem: problem.hint(hint) }
}

fn key_of(text: &str) -> Result<PublicKey, Wrong> {
    let wrong = |error: String| Wrong { status: 400, problem: Problem::new(error).field("key") };
    read_key(text).map_err(|error| wrong(error.to_string()))
}

fn name_of(text: &str) -> Result<Name, Wrong> {
    let wrong = |error: String| Wrong { status: 400, problem: Problem::new(error).field("name") };
    text.parse::<Name>().map_err(|error| wrong(error.to_string()))
}

impl From<Unvouched> for Wrong {
    fn from(error: Unvouched) -> Wrong {
        let status = match error {
            Unvouched::NameTaken(_) | Unvouched::OtherName(_) | Unvouched::Organisation(_) => 403,
            Unvouched::TooMany | Unvouched::Cabinet(_) => 507,
        };
        Wrong { status, problem: Problem::new(error.to_string()) }
    }
}

impl From<NoticeError> for Wrong {
    fn from(error: NoticeError) -> Wrong {
        let status = match error {
            NoticeError::Unreadable => 400,
            NoticeError::OtherGrid | NoticeError::Forged | NoticeError::NoSay => 403,
            NoticeError::TooMany(_) | NoticeError::Unkept(_) => 507,
        };
        Wrong { status, problem: Problem::new(error.to_string()) }
    }
}
