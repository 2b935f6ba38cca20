//! `shoal connect`: commands on this machine ask a node on another one.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Serialize;
use shoal_api::{Client, Fingerprint, Home, Reached};

use crate::context::Context;
use crate::error::Error;

/// Bytes of a token or of a certificate's file that are read.
const FILE_MAX: u64 = 64 << 10;
/// What only a node's own folder has.
const NODE_FILES: [&str; 3] = ["node.key", "shoal.db", "cabinet.db"];

/// Which node.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Where the node is reached, as in node7.lab.example:4434
    #[arg(value_name = "HOST:PORT", requires = "certificate")]
    address: Option<String>,
    /// The fingerprint of its certificate (sha256:…), or a file with the certificate; its owner tells both
    #[arg(long, value_name = "FINGERPRINT|FILE", requires = "address")]
    certificate: Option<String>,
    /// A file with the node's token; else it is read from standard input
    #[arg(long, value_name = "FILE", requires = "address")]
    token_file: Option<PathBuf>,
}

#[derive(Serialize)]
struct Shown {
    address: String,
    certificate: Option<String>,
}

/// Connects this folder to a node, or tells how the node of this folder is reached.
pub fn run(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    let home = context.home()?;
    let (Some(address), Some(certificate)) = (&arguments.address, &arguments.certificate) else {
        return show(&home, context);
    };
    if let Some(file) = NODE_FILES.iter().find(|file| home.path().join(file).exists()) {
        let told = Error::user(format!("{} is a node's own folder: it has a {file}", home.path().display()));
        return Err(told.hint("--home DIR names another folder, for the node on the other machine"));
    }
    let certificate = fingerprint(certificate)?;
    let token = match &arguments.token_file {
        Some(path) => read(path)?,
        None => {
            let mut text = String::new();
            std::io::stdin().take(FILE_MAX).read_to_string(&mut text)?;
            text
        }
    };
    home.create()?;
    let reached = Reached { address: address.clone(), certificate: Some(certificate) };
    let wrong = |_| Error::user(format!("`{address}` is no host with a port, as in node7.lab.example:4434"));
    home.publish(&reached, None).map_err(wrong)?;
    home.keep_token(token.trim())?;
    // A wrong token or certificate is better known now than at the first job.
    let asked = Client::of(&home).and_then(|client| client.info());
    let info = match asked {
        Ok(info) => info,
        Err(error) => {
            home.withdraw();
            return Err(error.into());
        }
    };
    context.output.print(&info, || {
        format!("node {} at {address} answers commands in {}", info.node.id, home.path().display())
    })
}

fn show(home: &Home, context: &Context) -> Result<(), Error> {
    let Reached { address, certificate } = home.reached()?;
    let shown = Shown { address, certificate: certificate.map(|shown| shown.to_string()) };
    context.output.print(&shown, || match &shown.certificate {
        Some(certificate) => format!(
            "on another machine, with the token in {}:\nshoal --home DIR connect {} --certificate {certificate}",
            home.path().join("token").display(),
            shown.address
        ),
        None => format!(
            "{}, from this machine only; `listen` in [http] of node.toml opens it to others, in TLS",
            shown.address
        ),
    })
}

fn fingerprint(text: &str) -> Result<Fingerprint, Error> {
    if let Ok(fingerprint) = text.parse() {
        return Ok(fingerprint);
    }
    if text.starts_with("sha256:") {
        return Err(Error::user(format!("`{text}` is {}", shoal_api::certificate::NoFingerprint)));
    }
    let content = read(Path::new(text))?;
    let wrong = || Error::config(format!("{text} holds no certificate in PEM"));
    Fingerprint::of_pem(content.as_bytes()).ok_or_else(wrong)
}

fn read(path: &Path) -> Result<String, Error> {
    let mut text = String::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(FILE_MAX).read_to_string(&mut text));
    read.map_err(|error| Error::config(format!("cannot read {}: {error}", path.display())))?;
    Ok(text)
}
