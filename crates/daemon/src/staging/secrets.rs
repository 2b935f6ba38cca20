//! Brings the secrets of a task from the owner of its job, into memory only.

use std::sync::Arc;
use std::time::Duration;

use shoal_model::{JobId, Name, NodeId};
use shoal_protocols::node::Task;

use super::{Inner, UNPOISONED, fetch};
use crate::elsewhere::Question;
use crate::secrets::BYTES_MAX;
use crate::trust::text::write_key;

/// How often the owner is asked: it may not know yet that the task was placed here.
const ROUNDS: u32 = 6;
/// The first pause between two rounds; doubles each time.
const PAUSE: Duration = Duration::from_millis(50);
/// What is around the values when they are sealed.
const AROUND_MAX: usize = 64 << 10;

impl Inner {
    pub(super) async fn bring_secrets(
        self: &Arc<Self>,
        task: Task,
        job: JobId,
        names: &[Name],
        owner: NodeId,
    ) -> Result<(), String> {
        let secrets = if owner == self.me {
            self.secrets.of(job, names).ok_or("its secrets are not here")?
        } else {
            let mut round = 0;
            let sealed = loop {
                match self.ask_for_secrets(task, owner).await {
                    Ok(sealed) => break sealed,
                    Err(why) if round == ROUNDS => return Err(format!("its secrets: {why}")),
                    Err(_) => tokio::time::sleep(PAUSE * 2_u32.pow(round)).await,
                }
                round += 1;
            };
            self.secrets.open(task, &sealed).ok_or("its secrets are sealed to somebody else")?
        };
        let all = names.iter().zip(&secrets).all(|(name, secret)| secret.name == name.as_str());
        if secrets.len() != names.len() || !all {
            return Err("its secrets are others than its job names".to_owned());
        }
        self.told.lock().expect(UNPOISONED).insert(task, secrets);
        Ok(())
    }

    async fn ask_for_secrets(self: &Arc<Self>, task: Task, owner: NodeId) -> Result<Vec<u8>, String> {
        let Task { job, epoch, rank } = task;
        let key = write_key(&self.secrets.key());
        let mut parts = self.ask(owner, Question::Secrets { job, epoch, rank, key }).await?;
        let mut sealed = Vec::new();
        while let Some(part) = fetch::next(&mut parts).await? {
            if sealed.len() + part.len() > BYTES_MAX + AROUND_MAX {
                return Err("the answer is too long".to_owned());
            }
            sealed.extend_from_slice(&part);
        }
        Ok(sealed)
    }
}
