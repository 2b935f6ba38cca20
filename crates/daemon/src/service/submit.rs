//! Submission: what is given is read, judged by its fields, and answered once it is durable.

use std::io;
use std::str::FromStr;

use shoal_api::{JobStatus, Problem, State, Until};
use shoal_model::job::Work;
use shoal_model::matching::{Mismatch, Needs, mismatches, nearest};
use shoal_model::units::TimeText;
use shoal_model::{Envelope, Job, JobId, Machine, NodeId, Nonce, Span};
use shoal_protocols::Shared;
use shoal_protocols::node::{Command, Refusal};

use super::{Service, Wrong, view};
use crate::executor::process;

/// A job as it comes in.
#[derive(Clone, Debug)]
pub enum Submission {
    /// The one encoding of an envelope.
    Envelope(Vec<u8>),
    /// A job in JSON; with the client's nonce, if it gives one.
    Json(Vec<u8>, Option<Nonce>),
    /// A job in TOML; with the client's nonce, if it gives one.
    Toml(String, Option<Nonce>),
}

impl Submission {
    /// Reads the envelope, or makes it.
    pub fn read(self, draw: impl FnOnce() -> Nonce) -> Result<Envelope, Wrong> {
        let (job, nonce) = match self {
            Submission::Envelope(bytes) => {
                return Envelope::from_bytes(&bytes).map_err(|error| wrong_job(&error.to_string()));
            }
            Submission::Json(bytes, nonce) => {
                let job = serde_json::from_slice::<Job>(&bytes);
                (job.map_err(|error| wrong_job(&error.to_string()))?, nonce)
            }
            Submission::Toml(text, nonce) => {
                let job = toml::from_str::<Job>(&text);
                (job.map_err(|error| wrong_job(error.message()))?, nonce)
            }
        };
        Envelope::new(job, nonce.unwrap_or_else(draw)).map_err(|error| wrong_job(&error.to_string()))
    }
}

/// Reads a nonce: 32 hexadecimal digits.
pub fn read_nonce(text: &str) -> Result<Nonce, Wrong> {
    let wrong = || {
        let problem = Problem::new("a nonce is 32 hexadecimal digits").field(shoal_api::NONCE);
        Wrong { status: 400, problem }
    };
    JobId::from_str(text).map(|id| Nonce(id.0)).map_err(|_| wrong())
}

/// What is wrong with a job, and with which field of it: errors of the model name it between backticks.
fn wrong_job(error: &str) -> Wrong {
    let field = error.split('`').nth(1).map(str::to_owned);
    let fields = || shoal_model::Field::ALL.iter().map(|field| field.name());
    let known = |name: &String| ["command", "script"].into_iter().chain(fields()).any(|known| known == name);
    let unknown = error.starts_with("unknown field");
    let hint = field.as_deref().filter(|_| unknown).and_then(|name| {
        let known = ["command", "script"].into_iter().chain(fields()).filter(|known| !known.contains(' '));
        let close = known.map(|known| (strsim::jaro_winkler(name, known), known));
        let (likeness, nearest) = close.max_by(|a, b| a.0.total_cmp(&b.0))?;
        (likeness > 0.7).then(|| format!("did you mean `{nearest}`?"))
    });
    let field = field.filter(|name| unknown || known(name));
    // serde lists every field there is, which nobody reads.
    let error = error.split(", expected one of").next().unwrap_or(error);
    Wrong::impossible(Problem { field, hint, ..Problem::new(error) })
}

impl Service {
    /// Takes a job, once it is judged, and answers once it is durable and planned, or the time is up.
    pub async fn submit(&self, envelope: Envelope, wait: Span) -> Result<(bool, JobStatus), Wrong> {
        if self.is_leaving() {
            return Err(Wrong::unavailable("this node is about to leave, and takes no more jobs"));
        }
        // A full disk refuses new work, so that what was promised still fits.
        self.setting
            .room
            .check()
            .map_err(|little| Wrong { status: 507, problem: Problem::new(little.to_string()) })?;
        let envelope = self.authorise(envelope)?;
        let id = envelope.id();
        let known = self.history.story(id).is_some();
        // What was taken before is answered, and not counted again.
        let _under_way = if known { None } else { self.share(&envelope).await? };
        self.judge(&envelope).await?;
        self.judge_files(envelope.job()).await?;
        self.judge_secrets(id, envelope.job())?;
        let watch = self.history.watch(id);
        let after = self.owners_of(envelope.job()).await?;
        self.mailbox.command(Command::SubmitAfter(Shared::new(envelope), after.into()))?;
        let seen = self.look(move |node| view::facts(node, id)).await?;
        let Some(facts) = seen else {
            let why = self.history.take_refusal(id);
            return Err(refused(why));
        };
        let status = view::status(&facts, self.history.story(id).as_ref(), self.view());
        let decided = status.state != State::Waiting || status.reason.is_some();
        if decided || wait == Span::ZERO {
            return Ok((!known, status));
        }
        drop(watch);
        self.wait(id, Until::Planned, wait).await.map(|status| (!known, status))
    }

    /// Whose the jobs are that a job is to start after.
    async fn owners_of(&self, job: &Job) -> Result<Vec<(JobId, NodeId)>, Wrong> {
        let mut owners = Vec::new();
        for other in job.after.iter().flat_map(|after| after.0.keys()) {
            let found = self.find(&other.to_string()).await;
            owners.push(found.map_err(|wrong| Wrong { problem: wrong.problem.field("after"), ..wrong })?);
        }
        Ok(owners)
    }

    /// Refuses what can never be done here.
    async fn judge(&self, envelope: &Envelope) -> Result<(), Wrong> {
        let job = envelope.job();
        let now = self.now();
        if let Some(deadline) = job.deadline
            && deadline <= now
        {
            let error = format!("`deadline` ({}) has passed: it is {}", TimeText(deadline), TimeText(now));
            return Err(Wrong::impossible(Problem::new(error).field("deadline")));
        }
        let needs = Needs::of(job, self.setting.limit_default);
        if let Some(deadline) = job.deadline
            && now.max(job.begin.unwrap_or_default()) + needs.limit > deadline
        {
            let limit = shoal_model::units::SpanText(needs.limit);
            let error =
                format!("the job may take {limit} (`time`), which is more than is left to its deadline");
            let problem = Problem::new(error).field("deadline");
            return Err(Wrong::impossible(problem.hint("give a shorter `time` or a later `deadline`")));
        }
        let alone = self.elsewhere.members().is_empty();
        if mismatches(&needs, &self.setting.machine).next().is_some() {
            let machines = if alone { Some(Vec::new()) } else { self.machines().await };
            // Of a node that did not answer nothing is known: it may be the one.
            if let Some(others) = machines {
                none_will_do(&needs, &self.setting.machine, &others)?;
            }
        }
        if let Some(name) = stays_behind(job) {
            let why = "a path that is not absolute is seen from the task's own folder, and the job brings no file along";
            let problem = Problem::new(format!("cannot run `{name}`: {why}")).field("command");
            let hint = "`shoal submit FILE` sends a script, `--in FILE` brings a program along; or give its whole path";
            return Err(Wrong::impossible(problem.hint(hint)));
        }
        if alone && let Err(error) = process::can_run(job) {
            return Err(Wrong::impossible(cannot_run(job, &error)));
        }
        Ok(())
    }
}

/// The program of a job that is not where it will be looked for: it lies on its user's machine.
fn stays_behind(job: &Job) -> Option<&str> {
    let Work::Command(argv) = &job.work else { return None };
    let name = argv.first().filter(|name| name.contains('/') && !name.starts_with('/'))?;
    let brings = job.files.as_ref().is_some_and(|files| !files.inputs.is_empty());
    (!brings && job.image().is_none()).then_some(name)
}

/// Refuses a job for which no machine is large enough, or the right one.
fn none_will_do(needs: &Needs, here: &Machine, others: &[Machine]) -> Result<(), Wrong> {
    let machines = || std::iter::once(here).chain(others);
    let Some(best) = nearest(needs, machines()) else { return Ok(()) };
    let lacks = |mismatch: &Mismatch<'_>, machine| {
        mismatches(needs, machine).any(|other| subject(&other) == subject(mismatch))
    };
    let everywhere =
        mismatches(needs, best).find(|mismatch| machines().all(|machine| lacks(mismatch, machine)));
    let problem = match everywhere {
        Some(mismatch) => lacking_everywhere(needs, mismatch, machines()),
        // Each has something of it, none has all.
        None => {
            let reasons: Vec<String> = mismatches(needs, best).map(|mismatch| mismatch.to_string()).collect();
            Problem::new(format!(
                "no node has all that the job needs: for the nearest it {}",
                reasons.join(", ")
            ))
        }
    };
    Err(Wrong::impossible(problem.hint("`shoal nodes` shows what each node has")))
}

/// What a mismatch is about.
fn subject<'a>(mismatch: &Mismatch<'a>) -> (&'static str, &'a str) {
    match *mismatch {
        Mismatch::Count { resource, .. } => ("count", resource),
        Mismatch::Size { resource, .. } => ("size", resource),
        Mismatch::Architecture { .. } => ("architecture", ""),
        Mismatch::System { .. } => ("system", ""),
        Mismatch::Label { label, .. } => ("label", label.as_str()),
        Mismatch::Organisation { .. } => ("within", ""),
        Mismatch::Refused { .. } => ("organisation", ""),
    }
}

/// What to say of something that every machine has too little of, or not at all.
fn lacking_everywhere<'a>(
    needs: &Needs,
    mismatch: Mismatch<'_>,
    machines: impl Iterator<Item = &'a Machine>,
) -> Problem {
    match mismatch {
        Mismatch::Count { resource, needs, .. } => {
            let has = |machine: &Machine| match resource {
                "cores" => machine.capacity.cores,
                "gpus" => machine.capacity.gpus,
                name => machine.capacity.get(name),
            };
            let most = machines.map(has).max().unwrap_or_default();
            let error =
                format!("the job needs {needs} {resource} on a node, and no node has more than {most}");
            Problem::new(error).field(resource)
        }
        Mismatch::Size { resource, .. } => {
            let size = |machine: &Machine| match resource {
                "memory" => machine.capacity.memory,
                _ => machine.capacity.disk,
            };
            let most = machines.map(size).max().unwrap_or_default();
            let most = shoal_model::units::About::Down(most);
            let wanted = match resource {
                "memory" => needs.resources.memory,
                _ => needs.resources.disk,
            };
            let wanted = shoal_model::units::About::Up(wanted);
            let error =
                format!("the job needs {wanted} of {resource} on a node, and no node has more than {most}");
            Problem::new(error).field(resource)
        }
        Mismatch::Architecture { .. } => Problem::new(none(&mismatch)).field("architecture"),
        Mismatch::System { .. } => Problem::new(none(&mismatch)).field("system"),
        Mismatch::Label { .. } => Problem::new(none(&mismatch)).field("labels"),
        Mismatch::Organisation { .. } => Problem::new(none(&mismatch)).field("within"),
        Mismatch::Refused { organisation } => {
            Problem::new(format!("no node serves the organisation `{organisation}`")).field("organisation")
        }
    }
}

fn none(mismatch: &Mismatch<'_>) -> String {
    format!("no node will do for the job: it {mismatch}")
}

fn cannot_run(job: &Job, error: &io::Error) -> Problem {
    let name = match &job.work {
        Work::Command(argv) => argv.first().map(String::as_str).unwrap_or_default(),
        Work::Script(_) => "script",
    };
    let why = match error.kind() {
        io::ErrorKind::NotFound => "there is no such program on this machine".to_owned(),
        io::ErrorKind::PermissionDenied => "it is no program that this user may run".to_owned(),
        _ => error.to_string(),
    };
    let problem = Problem::new(format!("cannot run `{name}`: {why}")).field("command");
    problem.hint("give its whole path, or set PATH with --env")
}

fn refused(why: Option<Refusal>) -> Wrong {
    match why {
        Some(why @ Refusal::Full(_)) => Wrong { status: 507, problem: Problem::new(why.to_string()) },
        Some(why @ Refusal::Unhonoured(_)) => {
            wrong_job(&why.to_string().replacen("recipe `", "recipe ", 1).replacen('`', "", 1))
        }
        Some(why @ Refusal::Unknown(_)) => {
            Wrong { status: 404, problem: Problem::new(why.to_string()).field("after") }
        }
        Some(why @ (Refusal::Started | Refusal::HandedOver(_))) => {
            Wrong { status: 409, problem: Problem::new(why.to_string()) }
        }
        Some(why @ Refusal::NoWork) => Wrong::unavailable(why.to_string()),
        None => Wrong::unavailable("the node did not take the job, and does not say why"),
    }
}

#[cfg(test)]
mod tests {
    use shoal_model::{Resources, Thousandths};

    use super::*;

    #[test]
    fn wrong_job_is_refused_by_its_field() {
        let read = |text: &str| {
            let submission = Submission::Toml(text.to_owned(), None);
            submission.read(|| Nonce([0; 16])).unwrap_err().problem
        };
        let unknown = read("command = ['a']\nmemroy = '8GiB'");
        assert_eq!(unknown.field.as_deref(), Some("memroy"));
        assert_eq!(unknown.hint.as_deref(), Some("did you mean `memory`?"));
        assert_eq!(unknown.error, "unknown field `memroy`");
        assert_eq!(read("command = ['a']\ntime = '0s'").field.as_deref(), Some("time"));
        assert_eq!(read("command = []").field.as_deref(), Some("command"));
        let json = Submission::Json(b"{\"command\":[\"a\"],\"nodes\":0}".to_vec(), None);
        assert!(json.read(|| Nonce([0; 16])).is_err());
    }

    #[test]
    fn job_too_large_for_every_machine_is_told_the_most_there_is() {
        let machine = |cores| Machine::with_capacity(Resources::cores(cores));
        let needs = |cores| Needs::new(Resources::cores(cores), Span::from_secs(1));
        assert!(none_will_do(&needs(8), &machine(2), &[machine(8)]).is_ok());
        let wrong = none_will_do(&needs(64), &machine(2), &[machine(8), machine(4)]).unwrap_err();
        assert_eq!(wrong.problem.field.as_deref(), Some("cores"));
        assert!(wrong.problem.error.ends_with("no node has more than 8"), "{:?}", wrong.problem);
        assert_eq!(Thousandths::whole(8).to_string(), "8");
    }

    #[test]
    fn job_that_no_machine_has_all_for_is_told_what_the_nearest_lacks() {
        let size = |gib: u64| shoal_model::units::Size::from_bytes(gib << 30);
        let machine = |cores, gib| Machine::with_capacity(Resources::cores(cores).with_memory(size(gib)));
        let needs = Needs::new(Resources::cores(8).with_memory(size(8)), Span::from_secs(1));
        let told = |here, others: &[Machine]| none_will_do(&needs, &here, others).unwrap_err().problem.error;
        let each_something = told(machine(8, 1), &[machine(1, 8)]);
        assert!(
            each_something.starts_with("no node has all that the job needs: for the nearest it "),
            "{each_something}"
        );
        assert!(each_something.contains("memory") && !each_something.contains("cores"), "{each_something}");
        // What all lack is named, also where the nearest lacks something else too.
        let all_lack = told(machine(4, 1), &[machine(8, 4), machine(16, 2)]);
        assert_eq!(all_lack, "the job needs 8 GiB of memory on a node, and no node has more than 4 GiB");
    }

    #[test]
    fn nonces_are_sixteen_bytes_in_hexadecimal() {
        assert_eq!(read_nonce(&"0a".repeat(16)).unwrap(), Nonce([10; 16]));
        assert_eq!(read_nonce("0a").unwrap_err().status, 400);
    }
}
