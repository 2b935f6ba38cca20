//! Asks the node that runs in a folder, and waits for its answer.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::OnceLock;
use std::time::Duration;

use serde::de::DeserializeOwned;
use shoal_model::units::SpanText;
use shoal_model::{Digest, Envelope, JobId, Span};
use ureq::http::Response;
use ureq::typestate::{WithBody, WithoutBody};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{Connector, TcpConnector};
use ureq::{Agent, Body, RequestBuilder};

use crate::certificate::{self, Fingerprint, Pinned};
use crate::files::{FileList, Held};
use crate::grid::{CalendarView, Doctor, Info, Leaving, NodeList, Ticket};
use crate::home::{Home, HomeError, Reached};
use crate::job::{JobPage, JobStatus, Until, Why};
use crate::logs::LogQuery;
use crate::problem::Problem;
use crate::trust::{OrganisationForm, Reach, RevokeForm, Text, TrustView, VouchForm};
use crate::usage::UsageView;
use crate::{DEMAND, ENVELOPE, PREFIX};

/// How long an answer may take, beyond what was asked to be waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// The most bytes of an answer that is read at once.
const ANSWER_MAX: u64 = 64 << 20;

/// Signs what a user wants done about a job of a grid: the grid's key, the job, and the verb as the path calls it. Nothing,
/// where there is no key to sign with.
pub type Signs = Box<dyn Fn(&str, JobId, &str) -> Result<Option<String>, String> + Send + Sync>;

/// A node to ask.
pub struct Client {
    agent: Agent,
    base: String,
    bearer: String,
    home: Home,
    certificate: Option<Fingerprint>,
    signs: Option<Signs>,
    /// Known after it was asked for once.
    grid: OnceLock<String>,
}

/// Why there is no answer, or not the one that was hoped for.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody is there to ask.
    #[error("no node runs in {}", home.path().display())]
    NotRunning {
        /// Where it should.
        home: Home,
    },
    /// The folder is of no use.
    #[error(transparent)]
    Home(HomeError),
    /// The node says no.
    #[error("{}", problem.error)]
    Refused {
        /// The number of the answer, as HTTP counts.
        status: u16,
        /// What it says.
        problem: Box<Problem>,
    },
    /// Somebody else is there, or the node has a new certificate.
    #[error("who answers there does not show the certificate {0}, so nothing was said to it")]
    OtherCertificate(Fingerprint),
    /// What must be signed cannot be.
    #[error("{0}")]
    Unsigned(String),
    /// The connection broke.
    #[error("the node does not answer: {0}")]
    Broken(String),
    /// It answers something else.
    #[error("the node's answer makes no sense: {0}")]
    Nonsense(String),
}

/// Which jobs to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobQuery {
    /// In these states only, by their names and with commas between; in any, if empty.
    pub state: String,
    /// With this in their names only.
    pub name: Option<String>,
    /// How many on a page.
    pub limit: Option<usize>,
    /// Where the page begins.
    pub cursor: Option<String>,
}

impl Client {
    /// The node that runs in a folder.
    pub fn of(home: &Home) -> Result<Client, ClientError> {
        let wrong = |error| match error {
            HomeError::NotRunning(_) => ClientError::NotRunning { home: home.clone() },
            error => ClientError::Home(error),
        };
        let Reached { address, certificate } = home.reached().map_err(wrong)?;
        let token = home.token().map_err(wrong)?;
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            // What the environment says of proxies is about other machines.
            .proxy(None)
            .build();
        let bearer = format!("Bearer {token}");
        let base = format!("http://{address}{PREFIX}");
        let agent = match certificate {
            None => Agent::new_with_config(config),
            Some(certificate) => {
                let connector = TcpConnector::default().chain(Pinned::new(certificate));
                Agent::with_parts(config, connector, DefaultResolver::default())
            }
        };
        let grid = home.grid().map_or_else(OnceLock::new, OnceLock::from);
        let home = home.clone();
        Ok(Client { agent, base, bearer, home, certificate, signs: None, grid })
    }

    /// The same, and what only a job's own user may is signed.
    pub fn signing(self, signs: Signs) -> Client {
        Client { signs: Some(signs), ..self }
    }

    /// The key of the node's grid.
    pub fn grid(&self) -> Result<&str, ClientError> {
        if let Some(grid) = self.grid.get() {
            return Ok(grid);
        }
        let grid = self.trusted()?.grid;
        Ok(self.grid.get_or_init(|| grid))
    }

    /// The same request with what the user has signed, if there is a key to sign with.
    fn demand<B>(
        &self,
        request: RequestBuilder<B>,
        job: &str,
        verb: &str,
    ) -> Result<RequestBuilder<B>, ClientError> {
        let Some(signs) = &self.signs else { return Ok(request) };
        // A shortened id is no id: what is signed names the job.
        let id = match job.parse::<JobId>() {
            Ok(id) => id,
            Err(_) => self.job(job)?.id,
        };
        match signs(self.grid()?, id, verb).map_err(ClientError::Unsigned)? {
            Some(demand) => Ok(request.header(DEMAND, demand)),
            None => Ok(request),
        }
    }

    /// The folder of the node.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Submits a job, and waits up to `wait` for its plan.
    pub fn submit(&self, envelope: &Envelope, wait: Span) -> Result<JobStatus, ClientError> {
        let request = self.post("/jobs").query("wait", SpanText(wait).to_string()).content_type(ENVELOPE);
        self.read(patiently(request, wait).send(&envelope.to_bytes()[..]))
    }

    /// What is known of a job.
    pub fn job(&self, job: &str) -> Result<JobStatus, ClientError> {
        self.read(self.get(&self.of_job(job, "")).call())
    }

    /// A page of the jobs that the node accepted, the last one first.
    pub fn jobs(&self, query: &JobQuery) -> Result<JobPage, ClientError> {
        self.page("/jobs", query)
    }

    /// The same of all nodes that answer.
    pub fn jobs_of_grid(&self, query: &JobQuery) -> Result<JobPage, ClientError> {
        self.page("/grid/jobs", query)
    }

    /// A page of the jobs that have not ended, those that start first first.
    pub fn queue(&self, query: &JobQuery) -> Result<JobPage, ClientError> {
        self.page("/queue", query)
    }

    /// The same of all nodes that answer.
    pub fn queue_of_grid(&self, query: &JobQuery) -> Result<JobPage, ClientError> {
        self.page("/grid/queue", query)
    }

    /// Takes a job back.
    pub fn cancel(&self, job: &str) -> Result<JobStatus, ClientError> {
        self.read(self.demand(self.post(&self.of_job(job, "/cancel")), job, "cancel")?.send_empty())
    }

    /// Holds a job back.
    pub fn hold(&self, job: &str) -> Result<JobStatus, ClientError> {
        self.read(self.demand(self.post(&self.of_job(job, "/hold")), job, "hold")?.send_empty())
    }

    /// Lets a job go on that was held back.
    pub fn release(&self, job: &str) -> Result<JobStatus, ClientError> {
        self.read(self.demand(self.post(&self.of_job(job, "/release")), job, "release")?.send_empty())
    }

    /// Why a job is where it is.
    pub fn why(&self, job: &str) -> Result<Why, ClientError> {
        self.read(self.get(&self.of_job(job, "/why")).call())
    }

    /// Waits for something, at most so long, and says how far the job is then.
    pub fn wait(&self, job: &str, until: Until, most: Span) -> Result<JobStatus, ClientError> {
        let word = match until {
            Until::Planned => "planned",
            Until::Started => "started",
            Until::Ended => "ended",
        };
        let request = self.get(&self.of_job(job, "/wait")).query("until", word);
        let request = request.query("most", SpanText(most).to_string());
        self.read(patiently(request, most).call())
    }

    /// An output of a job, to be read to its end; with `follow`, that is the job's.
    pub fn logs(&self, job: &str, query: &LogQuery) -> Result<impl Read + use<>, ClientError> {
        let request = self.demand(self.get(&self.of_job(job, "/logs")), job, "logs")?;
        let mut request = request.query("stream", query.stream.name());
        request = request.query("rank", query.rank.to_string()).query("offset", query.offset.to_string());
        if let Some(epoch) = query.epoch {
            request = request.query("epoch", epoch.to_string());
        }
        if let Some(tail) = query.tail {
            request = request.query("tail", tail.to_string());
        }
        if query.follow {
            request = request.query("follow", "true");
        }
        let response = self.answer(request.call())?;
        Ok(response.into_body().into_with_config().limit(u64::MAX).reader())
    }

    /// Tells the node the secrets of a job that is about to be submitted: each in base64, by name.
    pub fn tell_secrets(&self, job: JobId, secrets: &BTreeMap<String, String>) -> Result<(), ClientError> {
        let request = self.agent.put(format!("{}/jobs/{job}/secrets", self.base));
        let request = patiently(request.header("authorization", &self.bearer), Span::ZERO);
        self.read(request.send_json(secrets))
    }

    /// How much of these files the node has.
    pub fn held(&self, files: &[Held]) -> Result<Vec<Held>, ClientError> {
        self.read(self.post("/files/held").send_json(files))
    }

    /// Brings a piece of a file, which begins at `piece.here`; says how much is there then.
    pub fn bring_piece(&self, piece: &Held, bytes: &[u8]) -> Result<Held, ClientError> {
        let request = self.agent.put(format!("{}/files/{}", self.base, piece.digest));
        let request = request.header("authorization", &self.bearer).query("size", piece.size.to_string());
        let request = request.query("offset", piece.here.to_string());
        self.read(patiently(request, Span::ZERO).content_type("application/octet-stream").send(bytes))
    }

    /// Brings many small files, packed as [`crate::files::MANY_BYTES_MAX`] says.
    pub fn bring_many(&self, packed: &[u8]) -> Result<u64, ClientError> {
        self.read(self.post("/files").content_type("application/octet-stream").send(packed))
    }

    /// The outputs of a job.
    pub fn files(&self, job: &str) -> Result<FileList, ClientError> {
        self.read(self.demand(self.get(&self.of_job(job, "/files")), job, "files")?.call())
    }

    /// The bytes of a file from one on; `holders` should have it.
    pub fn file(
        &self,
        digest: &Digest,
        offset: u64,
        holders: &[String],
    ) -> Result<impl Read + use<>, ClientError> {
        let request = self.get(&format!("/files/{digest}")).query("offset", offset.to_string());
        let response = self.answer(request.query("at", holders.join(",")).call())?;
        Ok(response.into_body().into_with_config().limit(u64::MAX).reader())
    }

    /// The node's figures, as Prometheus reads them.
    pub fn metrics(&self) -> Result<String, ClientError> {
        let base = self.base.strip_suffix(PREFIX).unwrap_or(&self.base);
        let request = self.agent.get(format!("{base}/metrics")).header("authorization", &self.bearer);
        let mut response = self.answer(patiently(request, Span::ZERO).call())?;
        let body = response.body_mut().with_config().limit(ANSWER_MAX);
        body.read_to_string().map_err(|error| ClientError::Nonsense(error.to_string()))
    }

    /// The nodes of the grid.
    pub fn nodes(&self) -> Result<NodeList, ClientError> {
        self.read(self.get("/nodes").call())
    }

    /// What is reserved on a node, or on this one, from now on.
    pub fn calendar(&self, node: Option<&str>, span: Span) -> Result<CalendarView, ClientError> {
        let mut request = self.get("/calendar").query("span", SpanText(span).to_string());
        if let Some(node) = node {
            request = request.query("node", node);
        }
        self.read(request.call())
    }

    /// The node itself.
    pub fn info(&self) -> Result<Info, ClientError> {
        self.read(self.get("").call())
    }

    /// How the node feels.
    pub fn doctor(&self) -> Result<Doctor, ClientError> {
        self.read(self.get("/doctor").call())
    }

    /// A ticket for another machine, which will be this organisation's, if one is named.
    pub fn ticket(
        &self,
        lasts: Span,
        organisation: Option<&str>,
        admitter: bool,
    ) -> Result<Ticket, ClientError> {
        let mut request = self.post("/tickets").query("lasts", SpanText(lasts).to_string());
        if admitter {
            request = request.query("admitter", "true");
        }
        if let Some(organisation) = organisation {
            request = request.query("organisation", organisation);
        }
        self.read(request.send_empty())
    }

    /// What the node knows of users and organisations.
    pub fn trusted(&self) -> Result<TrustView, ClientError> {
        self.read(self.get("/trust").call())
    }

    /// What users have used of the grid.
    pub fn usage(&self) -> Result<UsageView, ClientError> {
        self.read(self.get("/usage").call())
    }

    /// A pass for a user whom the node vouches for.
    pub fn vouch(&self, form: &VouchForm) -> Result<Text, ClientError> {
        self.read(self.post("/passes").send_json(form))
    }

    /// Has the node trust an organisation's key.
    pub fn trust_organisation(&self, form: &OrganisationForm) -> Result<Reach, ClientError> {
        self.read(self.post("/organisations").send_json(form))
    }

    /// Revokes a user or a pass in the node's name.
    pub fn revoke(&self, form: &RevokeForm) -> Result<Reach, ClientError> {
        self.read(self.post("/revocations").send_json(form))
    }

    /// Gives the grid a notice that somebody has signed.
    pub fn notice(&self, text: String) -> Result<Reach, ClientError> {
        self.read(self.post("/notices").send_json(&Text { text }))
    }

    /// Has the node leave the grid once it has nothing left to do, or at once.
    pub fn leave(&self, now: bool) -> Result<Leaving, ClientError> {
        self.read(self.post("/leave").query("now", now.to_string()).send_empty())
    }

    fn page(&self, path: &str, query: &JobQuery) -> Result<JobPage, ClientError> {
        let mut request = self.get(path);
        if !query.state.is_empty() {
            request = request.query("state", &query.state);
        }
        if let Some(name) = &query.name {
            request = request.query("name", name);
        }
        if let Some(limit) = query.limit {
            request = request.query("limit", limit.to_string());
        }
        if let Some(cursor) = &query.cursor {
            request = request.query("cursor", cursor);
        }
        self.read(request.call())
    }

    /// The path of a job. What could be taken for another path is no id, and is sent as one that nobody knows.
    fn of_job(&self, job: &str, more: &str) -> String {
        let plain = !job.is_empty() && job.bytes().all(|byte| byte.is_ascii_alphanumeric());
        format!("/jobs/{}{more}", if plain { job } else { "-" })
    }

    fn get(&self, path: &str) -> RequestBuilder<WithoutBody> {
        let request = self.agent.get(format!("{}{path}", self.base));
        patiently(request.header("authorization", &self.bearer), Span::ZERO)
    }

    fn post(&self, path: &str) -> RequestBuilder<WithBody> {
        let request = self.agent.post(format!("{}{path}", self.base));
        patiently(request.header("authorization", &self.bearer), Span::ZERO)
    }

    fn answer(&self, answer: Result<Response<Body>, ureq::Error>) -> Result<Response<Body>, ClientError> {
        let mut response = answer.map_err(|error| match error {
            // A file that a killed node left behind.
            ureq::Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                ClientError::NotRunning { home: self.home.clone() }
            }
            ureq::Error::Io(ref io) if certificate::is_other(io) && self.certificate.is_some() => {
                self.certificate.map_or(ClientError::Broken(error.to_string()), ClientError::OtherCertificate)
            }
            error => ClientError::Broken(error.to_string()),
        })?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = response.body_mut().with_config().limit(ANSWER_MAX);
        let problem = body.read_json().unwrap_or_else(|_| Problem::new(format!("the node says {status}")));
        Err(ClientError::Refused { status: status.as_u16(), problem: Box::new(problem) })
    }

    fn read<T: DeserializeOwned>(
        &self,
        answer: Result<Response<Body>, ureq::Error>,
    ) -> Result<T, ClientError> {
        let mut response = self.answer(answer)?;
        let body = response.body_mut().with_config().limit(ANSWER_MAX);
        body.read_json().map_err(|error| ClientError::Nonsense(error.to_string()))
    }
}

/// Waits for the answer as long as it may take.
fn patiently<B>(request: RequestBuilder<B>, wait: Span) -> RequestBuilder<B> {
    let most = Duration::from_micros(wait.as_micros()).saturating_add(PATIENCE);
    request.config().timeout_recv_response(Some(most)).build()
}
