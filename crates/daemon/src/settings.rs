//! What a node is told by its folder: `node.toml`, written when the grid is made and read at every start.
//!
//! ```toml
//! recipe = "aria"            # how jobs find their places, in a grid that is made here; it cannot be changed later
//! overlay = "blatant-s"      # how nodes come to know each other, the same way; as is usual for the recipe, where nobody says
//! queue = "sjf"              # the order of this node's queue, where the recipe is aria
//! time = "1h"                # the hard limit of a job that names none
//!
//! [network]
//! listen = "0.0.0.0:4433"    # where other nodes reach this one; drawn at the first start, and kept
//! advertise = ["192.0.2.7:4433"]   # where they find it, if that is not where it listens
//! relays = ["https://relay.example.org"]    # what carries what cannot be sent directly; none, where nobody says
//! lan = true                 # look on the LAN for nodes that are not where they were
//!
//! [http]
//! listen = "0.0.0.0:4434"    # where programs reach the node; on loopback where nobody says, and else in TLS only
//! names = ["node7.lab.example"]    # how it is called by programs on other machines, besides by its address
//! certificate = "/etc/ssl/node7.pem"    # what it shows them; one that it makes itself, where nobody says
//! key = "/etc/ssl/node7.key"
//! requests_per_second = 20000    # of all who show the token
//!
//! [jobs]
//! open_per_user = 250000     # jobs of one user that have not ended, of those accepted here: who has more adds none
//!
//! [tasks]                    # how tasks are kept to what they were granted
//! pin = true                 # processors of their own; as it stands, where the node has all of the machine's cores
//! group = false              # a control group for each, where the system lets us make one
//! cap = false                # no more memory than asked for, where control groups can see to that
//! isolate = "foreign"        # cells for jobs of other organisations; or "all", or "none"
//! read = ["/data"]           # what tasks in cells may read besides the system
//! write = ["/scratch"]       # and what they may change
//! processes = 4096           # of a task in a cell at once
//! files = 65536              # that each of its processes may have open
//! disk = "16GiB"             # for all files of one that asks for none
//!
//! [images]                   # file systems that jobs may ask to find instead of the machine's
//! debian = "/srv/images/debian"
//!
//! [machine]                  # instead of what is found
//! cores = 4
//! memory = "8GiB"
//! labels = { zone = "basement" }
//! ```

pub(crate) mod key;
mod planning;
mod tasks;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use shoal_model::machine::{Labels, MAX_LABELS};
use shoal_model::units::SpanText;
use shoal_model::{Machine, Name, Size, Span, Thousandths};
use shoal_protocols::node::config::Recipe;
use shoal_protocols::scheduling::aria::Order;

use crate::relay::{RELAYS_MAX, Relay};
pub use planning::{GridSettings, Planning, RECIPE_DEFAULT, Wish};
pub(crate) use tasks::check_path;
pub use tasks::{Isolate, TaskSettings};

/// The hard limit of a job that names none, in a grid whose maker does not say.
pub const LIMIT_DEFAULT: Span = Span::from_hours(1);

/// What a node is told by its folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// How jobs find their places.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipe: Option<String>,
    /// How nodes come to know each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlay: Option<String>,
    /// In which order the jobs of this node's queue run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Order>,
    /// The hard limit of a job that names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<SpanText>,
    /// How other nodes reach it.
    #[serde(skip_serializing_if = "is_default")]
    pub network: NetworkSettings,
    /// How programs reach it.
    #[serde(skip_serializing_if = "is_default")]
    pub http: HttpSettings,
    /// What users may have here.
    #[serde(skip_serializing_if = "is_default")]
    pub jobs: JobSettings,
    /// How tasks are kept to what they were granted.
    #[serde(skip_serializing_if = "is_default")]
    pub tasks: TaskSettings,
    /// Roots of file systems that jobs may ask for, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub images: BTreeMap<Name, PathBuf>,
    /// What the machine is, where that is not what is found.
    #[serde(skip_serializing_if = "is_default")]
    pub machine: MachineSettings,
}

/// How other nodes reach a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkSettings {
    /// Where it listens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<SocketAddr>,
    /// Where others find it, if that is not where it listens.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub advertise: Vec<SocketAddr>,
    /// Relays that carry what cannot be sent directly.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub relays: Vec<Relay>,
    /// Whether nodes that are not where they were are looked for on the LAN.
    #[serde(skip_serializing_if = "is_default")]
    pub lan: bool,
}

/// What users may have at a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JobSettings {
    /// Jobs of one user that have not ended, those of arrays included: who has so many adds none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_per_user: Option<u64>,
}

/// How programs reach a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpSettings {
    /// Where it listens; on any free port of loopback, where nobody says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<SocketAddr>,
    /// How it is called by programs on other machines, besides by its address.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// The certificate that it shows, in PEM; one that it makes itself, where nobody says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
    /// The key of that certificate, in PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// Requests with the token that are answered in a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<u32>,
}

impl HttpSettings {
    /// Whether what is said at an address is encrypted: always, where others could listen in.
    pub fn is_secure(&self, listen: SocketAddr) -> bool {
        !listen.ip().is_loopback() || self.certificate.is_some() || self.key.is_some()
    }
}

/// What a machine is, where that is not what is found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MachineSettings {
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Cores for jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores: Option<Thousandths>,
    /// Memory for jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Size>,
    /// Disk for jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<Size>,
    /// GPUs for jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<Thousandths>,
    /// Whose it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organisation: Option<Name>,
    /// What its owner says of it.
    #[serde(skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// Organisations whose jobs its owner does not want here.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub refuses: BTreeSet<Name>,
}

/// Why settings are of no use.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The system refused.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file makes no sense.
    #[error("{}: {what}", path.display())]
    Nonsense {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        what: String,
    },
    /// A recipe that nobody knows.
    #[error("`{found}` is not a recipe: expected {}", Recipe::NAMES.join(" or "))]
    Recipe {
        /// What was asked for.
        found: String,
    },
    /// An overlay that does not carry the recipe, or that nobody knows.
    #[error("the recipe {recipe} does not stand on the overlay `{found}`: expected {known}")]
    Overlay {
        /// What was asked for.
        found: String,
        /// The recipe.
        recipe: &'static str,
        /// The overlays that carry it.
        known: String,
    },
    /// An order for queues that there are none of.
    #[error(
        "queue = `{order}`: nodes have queues of their own order with the recipe aria, not with {recipe}"
    )]
    Queue {
        /// What was asked for.
        order: Order,
        /// The recipe.
        recipe: &'static str,
    },
    /// Something other than what the grid was made with.
    #[error("this grid was made with the {what} `{made}`, which cannot be changed to `{found}`")]
    Other {
        /// What is other.
        what: &'static str,
        /// The grid's.
        made: String,
        /// What was asked for.
        found: String,
    },
    /// A path that cannot be given to tasks.
    #[error("`{field}`: {}: {what}", path.display())]
    Path {
        /// Which setting.
        field: String,
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// No time at all.
    #[error("`time`: 0 s: a job that names no limit would never run")]
    NoTime,
    /// More relays than are told to others.
    #[error("`network.relays`: {0} relays, at most {RELAYS_MAX}")]
    Relays(usize),
    /// A setting that no machine can have.
    #[error("`machine.{field}`: {what}")]
    Machine {
        /// Which.
        field: &'static str,
        /// What is wrong.
        what: String,
    },
}

impl Settings {
    /// The settings in a folder; none if there are none.
    pub fn load(home: &Path) -> Result<Option<Settings>, SettingsError> {
        let path = home.join("node.toml");
        match fs::read_to_string(&path) {
            Ok(text) => toml::from_str(&text)
                .map(Some)
                .map_err(|error| SettingsError::Nonsense { path, what: key::suggest(&error.to_string()) }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(SettingsError::Io { doing: "read", path, source }),
        }
    }

    /// Writes them, in one step.
    pub fn save(&self, home: &Path) -> Result<(), SettingsError> {
        let (path, new) = (home.join("node.toml"), home.join("node.toml.new"));
        let text = toml::to_string(self)
            .map_err(|error| SettingsError::Nonsense { path: path.clone(), what: error.to_string() })?;
        let write = || {
            let mut file = fs::File::create(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_data()?;
            fs::rename(&new, &path)
        };
        write().map_err(|source| SettingsError::Io { doing: "write", path, source })
    }

    /// Whether what tasks are to be given is there, and the rest makes sense.
    pub fn check(&self) -> Result<(), SettingsError> {
        self.tasks.check()?;
        if self.limit_default() == Span::ZERO {
            return Err(SettingsError::NoTime);
        }
        if self.network.relays.len() > RELAYS_MAX {
            return Err(SettingsError::Relays(self.network.relays.len()));
        }
        for (name, path) in &self.images {
            let what = match path.is_absolute() {
                false => "expected an absolute path",
                true if !path.is_dir() => "there is no such folder",
                true if path.parent().is_none() => "the machine's own root is no image",
                true => match path.to_str().map(check_path) {
                    Some(None) => continue,
                    Some(Some(what)) => what,
                    None => "expected a path that is text",
                },
            };
            return Err(SettingsError::Path { field: format!("images.{name}"), path: path.clone(), what });
        }
        Ok(())
    }

    /// The hard limit of a job that names none.
    pub fn limit_default(&self) -> Span {
        self.time.map_or(LIMIT_DEFAULT, |time| time.0)
    }
}

impl MachineSettings {
    /// The same with another's where it says something.
    pub fn with(self, over: MachineSettings) -> MachineSettings {
        MachineSettings {
            name: over.name.or(self.name),
            cores: over.cores.or(self.cores),
            memory: over.memory.or(self.memory),
            disk: over.disk.or(self.disk),
            gpus: over.gpus.or(self.gpus),
            organisation: over.organisation.or(self.organisation),
            labels: self.labels.into_iter().chain(over.labels).collect(),
            refuses: self.refuses.into_iter().chain(over.refuses).collect(),
        }
    }

    /// The machine with what the settings say of it.
    pub fn apply(&self, mut machine: Machine) -> Result<Machine, SettingsError> {
        let wrong = |field, what: &str| SettingsError::Machine { field, what: what.to_owned() };
        if self.cores == Some(Thousandths::ZERO) {
            return Err(wrong("cores", "0 cores: a node without any can run nothing"));
        }
        if self.memory == Some(Size::ZERO) {
            return Err(wrong("memory", "no memory: a node without any can run nothing"));
        }
        if self.labels.len() > MAX_LABELS {
            return Err(wrong("labels", &format!("{} labels, at most {MAX_LABELS}", self.labels.len())));
        }
        let capacity = &mut machine.capacity;
        capacity.cores = self.cores.unwrap_or(capacity.cores);
        capacity.memory = self.memory.unwrap_or(capacity.memory);
        capacity.disk = self.disk.unwrap_or(capacity.disk);
        capacity.gpus = self.gpus.unwrap_or(capacity.gpus);
        capacity.check().map_err(|error| wrong("cores", &error.to_string()))?;
        machine.organisation = self.organisation.clone().or(machine.organisation);
        machine.labels.extend(self.labels.clone());
        machine.refuses.extend(self.refuses.clone());
        Ok(machine)
    }
}

fn is_default<T: Default + PartialEq>(settings: &T) -> bool {
    *settings == T::default()
}

#[cfg(test)]
mod tests {
    use shoal_model::Resources;

    use super::*;

    #[test]
    fn settings_read_back_what_they_write_and_name_what_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Settings::load(folder.path()).unwrap().is_none());
        let machine = MachineSettings { cores: Some(Thousandths::whole(3)), ..MachineSettings::default() };
        let network = NetworkSettings { listen: "127.0.0.1:7".parse().ok(), ..NetworkSettings::default() };
        let tasks = TaskSettings { pin: Some(false), ..TaskSettings::default() };
        let http = HttpSettings { listen: "192.0.2.7:4434".parse().ok(), ..HttpSettings::default() };
        let recipe = Some("asap".to_owned());
        let settings = Settings { recipe, network, http, tasks, machine, ..Settings::default() };
        settings.save(folder.path()).unwrap();
        assert_eq!(Settings::load(folder.path()).unwrap(), Some(settings));
        fs::write(folder.path().join("node.toml"), "recipe = 'asap'\ncroes = 3\n").unwrap();
        let error = Settings::load(folder.path()).unwrap_err().to_string();
        assert!(error.contains("croes") && error.contains("line 2"), "{error}");
        fs::write(folder.path().join("node.toml"), "[machine]\ncroes = 3\n").unwrap();
        let error = Settings::load(folder.path()).unwrap_err().to_string();
        assert!(error.ends_with("unknown field `croes`; did you mean `cores`?"), "{error}");
    }

    #[test]
    fn relays_are_servers_and_few() {
        let folder = tempfile::tempdir().unwrap();
        let load = |relays: &str| {
            let text = format!("time = '1h'\n[network]\nlan = true\nrelays = {relays}\n");
            fs::write(folder.path().join("node.toml"), text).unwrap();
            Settings::load(folder.path())
        };
        let settings = load("['http://192.0.2.1:3340', 'https://relay.example.org']").unwrap().unwrap();
        assert!(settings.network.lan && settings.check().is_ok());
        settings.save(folder.path()).unwrap();
        assert_eq!(Settings::load(folder.path()).unwrap(), Some(settings));
        let error = load("['relay.example.org']").unwrap_err().to_string();
        assert!(error.contains("line 4") && error.contains("write it as https://"), "{error}");
        let error = load("['http://a', 'http://b', 'http://c']").unwrap().unwrap().check().unwrap_err();
        assert_eq!(error.to_string(), "`network.relays`: 3 relays, at most 2");
    }

    #[test]
    fn default_limit_of_nothing_is_refused() {
        let of = |time| Settings { time: Some(SpanText(time)), ..Settings::default() };
        assert!(of(Span::from_secs(1)).check().is_ok());
        assert!(matches!(of(Span::ZERO).check(), Err(SettingsError::NoTime)));
    }

    #[test]
    fn image_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let images = |path: &Path| Settings {
            images: [("debian".parse().unwrap(), path.to_owned())].into(),
            ..Settings::default()
        };
        assert!(images(Path::new("/usr")).check().is_ok());
        let error = images(folder.path()).check().unwrap_err().to_string();
        assert!(error.ends_with("have a folder of their own there"), "{error}");
        let error = images(Path::new("debian")).check().unwrap_err().to_string();
        assert_eq!(error, "`images.debian`: debian: expected an absolute path");
        let error = images(&folder.path().join("gone")).check().unwrap_err().to_string();
        assert!(error.ends_with("there is no such folder"), "{error}");
    }

    #[test]
    fn machine_that_can_run_nothing_is_refused() {
        let machine = || Machine::with_capacity(Resources::cores(2));
        let none = MachineSettings { cores: Some(Thousandths::ZERO), ..MachineSettings::default() };
        assert!(none.apply(machine()).is_err());
        let four = MachineSettings { cores: Some(Thousandths::whole(4)), ..MachineSettings::default() };
        assert_eq!(four.apply(machine()).unwrap().capacity.cores, Thousandths::whole(4));
    }
}
