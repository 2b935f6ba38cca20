//! The jobs: each task says in a file of its job that it starts and that it ends.

use std::path::Path;
use std::sync::OnceLock;

use rand::RngExt;
use shoal_daemon::Identity;
use shoal_model::envelope::Origin;
use shoal_model::job::Mode;
use shoal_model::{Envelope, Job, Nonce, Span};
use shoal_protocols::Chance;

use crate::error::Error;

/// How long a task takes at most.
const TASK_MS: u64 = 800;
/// The largest gang.
const GANG_MOST: u32 = 3;
/// Of so many jobs, one is a gang, and one must not run twice.
const GANG_EVERY: u32 = 5;
const ONCE_EVERY: u32 = 4;

/// Whose jobs they are.
static SIGNER: OnceLock<Identity> = OnceLock::new();
/// For which grid.
static ORIGIN: OnceLock<Origin> = OnceLock::new();

/// From now on jobs are signed for this grid.
pub fn sign_for(origin: Origin) {
    let _ = ORIGIN.set(origin);
}

/// What a job is like.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// On how many nodes together.
    pub nodes: u32,
    /// It must not run twice.
    pub once: bool,
    /// How long each task takes.
    millis: u64,
}

impl Kind {
    /// Draws one.
    pub fn draw(chance: &mut Chance, nodes: u16) -> Kind {
        let gang = chance.random_range(0..GANG_EVERY) == 0;
        let most = GANG_MOST.min(u32::from(nodes) - 1);
        Kind {
            nodes: if gang { chance.random_range(2..=most) } else { 1 },
            once: chance.random_range(0..ONCE_EVERY) == 0,
            millis: chance.random_range(0..=TASK_MS),
        }
    }

    /// The job.
    pub fn envelope(self, number: u32, effects: &Path) -> Result<Envelope, Error> {
        let Kind { nodes, once, millis } = self;
        let file = format!("'{}'/$SHOAL_JOB_ID", effects.display());
        let seconds = millis as f64 / 1_000.0;
        let script = format!(
            "echo start $SHOAL_EPOCH $SHOAL_RANK >> {file}\nsleep {seconds}\necho end $SHOAL_EPOCH $SHOAL_RANK >> {file}"
        );
        let wrong = |_| Error::internal("a job that makes no sense");
        let job = Job {
            nodes: nodes.try_into().map_err(wrong)?,
            limit: Some(Span::from_secs(20)),
            mode: once.then_some(Mode::AtMostOnce),
            name: Some(format!("job-{number}").parse().map_err(|_| Error::internal("a name that is none"))?),
            ..Job::command(["sh", "-c", &script])
        };
        let nonce = Nonce(shoal_api::secret::draw()?);
        let envelope = Envelope::new(job, nonce).map_err(|error| Error::internal(error.to_string()))?;
        let signer = SIGNER.get_or_init(Identity::generate);
        let origin = *ORIGIN.get().ok_or_else(|| Error::internal("no grid to sign jobs for"))?;
        Ok(envelope.made_for(origin).sealed(signer.public(), |digest| signer.sign(digest)))
    }
}
