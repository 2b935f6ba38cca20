//! What went wrong, whose fault it was, and what to try.

use std::io;
use std::process::ExitCode;

use shoal_api::{ClientError, HomeError};
use shoal_daemon::assembly::StartError;
use shoal_daemon::trust::user::UserError;
use shoal_daemon::{home, store};
use shoal_simulator::report::FolderError;
use shoal_simulator::workload::{Fault, SaveError, WorkloadError};
use shoal_simulator::{reproduce, scenario, study};

/// Why a command did not do what was asked.
#[derive(Debug)]
pub struct Error {
    kind: Kind,
    message: String,
    hints: Vec<String>,
}

/// Whose fault it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The command line asks for what cannot be.
    User,
    /// A file that was given makes no sense.
    Config,
    /// Neither: the system, or this program.
    Internal,
}

impl Error {
    /// The command line asks for what cannot be.
    pub fn user(message: impl Into<String>) -> Error {
        Error { kind: Kind::User, message: message.into(), hints: Vec::new() }
    }

    /// A file that was given makes no sense.
    pub fn config(message: impl Into<String>) -> Error {
        Error { kind: Kind::Config, ..Error::user(message) }
    }

    /// Something else went wrong.
    pub fn internal(message: impl Into<String>) -> Error {
        Error { kind: Kind::Internal, ..Error::user(message) }
    }

    /// The same with something to try.
    pub fn hint(mut self, hint: impl Into<String>) -> Error {
        self.hints.push(hint.into());
        self
    }

    /// What went wrong.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Tells the user, and says how to end.
    pub fn tell(&self) -> ExitCode {
        eprintln!("error: {}", self.message);
        for hint in &self.hints {
            eprintln!("hint: {hint}");
        }
        match self.kind {
            Kind::User | Kind::Config => ExitCode::from(2),
            Kind::Internal => ExitCode::FAILURE,
        }
    }
}

impl From<UserError> for Error {
    fn from(error: UserError) -> Error {
        match error {
            UserError::Key(_) | UserError::Pass { .. } => Error::config(error.to_string()),
            UserError::Nowhere
            | UserError::Already(_)
            | UserError::NoOrganisation(_)
            | UserError::Name(_) => Error::user(error.to_string()),
        }
    }
}

impl From<scenario::Error> for Error {
    fn from(error: scenario::Error) -> Error {
        let told = Error::config(error.to_string());
        match error {
            scenario::Error::Unreadable { .. } => {
                told.hint("a scenario is a TOML file, such as scenarios/skeleton.toml")
            }
            scenario::Error::Workload(error) => Error::from(error),
            scenario::Error::Syntax { .. } | scenario::Error::Field { .. } | scenario::Error::Network(_) => {
                told
            }
        }
    }
}

impl From<study::Error> for Error {
    fn from(error: study::Error) -> Error {
        match error {
            study::Error::Scenario(error) => Error::from(error),
            study::Error::Broken(_) => Error::internal(error.to_string()).hint("nothing was written"),
            study::Error::Baseline(_)
            | study::Error::Setting(_)
            | study::Error::Scheduler { .. }
            | study::Error::Twice { .. }
            | study::Error::NotSwept { .. }
            | study::Error::TooMany { .. } => Error::user(error.to_string()),
        }
    }
}

impl From<WorkloadError> for Error {
    fn from(error: WorkloadError) -> Error {
        let told = Error::config(error.to_string());
        match error {
            WorkloadError::Open { .. } => told.hint("a trace is an SWF or GWF file, plain, .gz or .xz"),
            WorkloadError::Line { fault: Fault::OutOfOrder { .. } | Fault::TooWide { .. }, .. } => told,
            WorkloadError::Line { .. } => {
                told.hint("in a scenario, `bad_lines = \"drop\"` in [workload] passes over such lines")
            }
            WorkloadError::Read { .. }
            | WorkloadError::Truncated { .. }
            | WorkloadError::Packed { .. }
            | WorkloadError::Empty { .. }
            | WorkloadError::NothingLeft { .. }
            | WorkloadError::Setting { .. } => told,
        }
    }
}

impl From<reproduce::Error> for Error {
    fn from(error: reproduce::Error) -> Error {
        match error {
            reproduce::Error::Workload(error) => error.into(),
            reproduce::Error::Scenario(error) => error.into(),
            reproduce::Error::Broken(_) => Error::internal(error.to_string()).hint("nothing was written"),
            reproduce::Error::UnknownPaper { .. }
            | reproduce::Error::UnknownId { .. }
            | reproduce::Error::Keep { .. }
            | reproduce::Error::Network(_)
            | reproduce::Error::Baseline(_) => Error::user(error.to_string()),
        }
    }
}

impl From<FolderError> for Error {
    fn from(error: FolderError) -> Error {
        let told = Error::user(error.to_string());
        match error {
            FolderError::Unfinished(_) => Error::internal(error.to_string()),
            FolderError::NotEmpty(_) => told.hint("--force replaces what is there"),
            FolderError::NotAFolder(_) => told,
            FolderError::Unwritable { .. } => told.hint("--out names the folder for the results"),
        }
    }
}

impl From<SaveError> for Error {
    fn from(error: SaveError) -> Error {
        let told = Error::user(error.to_string());
        match error {
            SaveError::Exists(_) => told.hint("--force replaces what is there"),
            SaveError::Name(_) | SaveError::Unwritable { .. } => told,
        }
    }
}

impl From<ClientError> for Error {
    fn from(error: ClientError) -> Error {
        match error {
            ClientError::NotRunning { ref home } => {
                let told = Error::internal(error.to_string());
                told.hint(
                    "start one with `shoal node --background`, or in another terminal with `shoal node`",
                )
                .hint(format!("another folder than {}: --home, or SHOAL_HOME", home.path().display()))
            }
            ClientError::Home(error) => Error::from(error),
            ClientError::Refused { status, problem } => {
                // What was asked for, or the node's own trouble.
                let told = match status {
                    400..=499 => Error::user(problem.error),
                    _ => Error::internal(problem.error),
                };
                let told = problem.candidates.iter().fold(told, |told, job| told.hint(format!("job {job}")));
                match problem.hint {
                    Some(hint) => told.hint(hint),
                    None => told,
                }
            }
            ClientError::OtherCertificate(_) => Error::internal(error.to_string())
                .hint("somebody may have put another machine in its place: ask the node's owner")
                .hint("if it has a new certificate, tell this folder with `shoal connect`"),
            ClientError::Unsigned(_) => Error::config(error.to_string()),
            ClientError::Broken(_) => Error::internal(error.to_string())
                .hint("what was accepted goes on; ask again once the node is back"),
            ClientError::Nonsense(_) => Error::internal(error.to_string()),
        }
    }
}

impl From<HomeError> for Error {
    fn from(error: HomeError) -> Error {
        let told = Error::config(error.to_string());
        match error {
            HomeError::Nowhere | HomeError::Io { .. } => told.hint("--home DIR names a folder for the node"),
            HomeError::Open(_) | HomeError::Nonsense { .. } | HomeError::NotRunning(_) => told,
        }
    }
}

impl From<StartError> for Error {
    fn from(error: StartError) -> Error {
        let config = Error::config(error.to_string());
        let internal = Error::internal(error.to_string());
        match error {
            StartError::Home(error) => Error::from(error),
            StartError::Folder(home::Error::Locked { .. }) | StartError::Store(store::Error::Locked(_)) => {
                config.hint("`shoal status` with the same --home asks the node that runs there")
            }
            StartError::Settings(_)
            | StartError::Policy { .. }
            | StartError::Tls(_)
            | StartError::Folder(_)
            | StartError::Identity(_)
            | StartError::KeyGone(_)
            | StartError::RecordsGone(_)
            | StartError::Grid(_)
            | StartError::Ticket(_)
            | StartError::Join(_)
            | StartError::OtherGrid
            | StartError::GridSettings
            | StartError::Machine(_)
            | StartError::Network(_) => config,
            StartError::Store(_)
            | StartError::Cabinet(_)
            | StartError::Depot(_)
            | StartError::Executor(_)
            | StartError::Fault(_)
            | StartError::Io { .. } => internal,
            StartError::Listen { .. } => config.hint("--http 127.0.0.1:0 takes any port that is free"),
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::internal(error.to_string())
    }
}
