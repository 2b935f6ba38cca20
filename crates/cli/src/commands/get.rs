//! `shoal get`: the files that a job left behind, through any node.

use std::path::{Path, PathBuf};

use shoal_api::{FileList, FileView};
use shoal_model::Size;
use shoal_model::job::check_inside;
use shoal_model::units::About;

use crate::context::Context;
use crate::error::Error;
use crate::files::fetch;
use crate::output::Table;
use crate::progress::Transfer;

/// Which files, and where to.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The job: its id, which may be shortened
    #[arg(value_name = "JOB")]
    job: String,
    /// One file, or all in one folder; else all
    #[arg(value_name = "FILE")]
    file: Option<String>,
    /// Where to put them; files of a job on several nodes go into a folder for each rank
    #[arg(long, value_name = "DIR", default_value = ".")]
    to: PathBuf,
    /// List them, and fetch nothing
    #[arg(long)]
    list: bool,
    /// Put them over files that are there
    #[arg(long)]
    force: bool,
}

/// Fetches the outputs of a job.
pub fn run(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    let client = context.client()?;
    let mut list = client.files(&arguments.job)?;
    let gang = list.files.iter().any(|file| file.rank > 0);
    if let Some(wanted) = &arguments.file {
        list.files.retain(|file| is_meant(file, wanted, gang));
        if list.files.is_empty() {
            return Err(Error::user(format!("job {} left no file `{wanted}` behind", arguments.job))
                .hint(format!("`shoal get {} --list` shows what there is", arguments.job)));
        }
    }
    for unmatched in &list.unmatched {
        eprintln!("nothing matched `{}` of rank {}", unmatched.pattern, unmatched.rank);
    }
    for left in &list.left_out {
        eprintln!("`{}` of rank {} was left out: {}", left.path, left.rank, left.why);
    }
    if !list.unknown.is_empty() {
        eprintln!(
            "of {} task(s) nothing is known: they have not ended, or left nothing to keep",
            list.unknown.len()
        );
    }
    if !arguments.list {
        let bar = Transfer::new("gets");
        bar.of(list.files.iter().map(|file| file.size).sum());
        for file in &list.files {
            // Whatever another node says, nothing is written outside the folder.
            check_inside(&file.path)
                .map_err(|error| Error::internal(format!("the node's list of files: {error}")))?;
            fetch(&client, file, &place(&arguments.to, file, gang), arguments.force, &bar)?;
        }
        bar.clear();
    }
    context.output.print(&list, || table(&list, &arguments.to, gang, arguments.list))
}

/// Whether a file is the one that is wanted, or lies in the folder that is.
fn is_meant(file: &FileView, wanted: &str, gang: bool) -> bool {
    let name = if gang { format!("{}/{}", file.rank, file.path) } else { file.path.clone() };
    let wanted = wanted.trim_end_matches('/');
    [&name, &file.path]
        .into_iter()
        .any(|name| name == wanted || name.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('/')))
}

fn place(to: &Path, file: &FileView, gang: bool) -> PathBuf {
    if gang { to.join(file.rank.to_string()).join(&file.path) } else { to.join(&file.path) }
}

fn table(list: &FileList, to: &Path, gang: bool, only: bool) -> Table {
    let mut table = Table::texts(["file", "size"]);
    for file in &list.files {
        let to = if only { Path::new("") } else { to };
        let place = place(to, file, gang);
        table.row([place.display().to_string(), About::Up(Size::from_bytes(file.size)).to_string()]);
    }
    table
}
