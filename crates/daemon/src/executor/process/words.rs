//! What daemon and supervisor say to each other, and the frames that they say it in.
//!
//! ```text
//! daemon                            supervisor
//!   │── Hello(version) ───────────────▶│
//!   │◀────── Welcome(version, pid) ────│
//!   │── Start(order) ─────────────────▶│  on its disk, then forked; a second Start is an Adopt
//!   │── Adopt(task), Stop(task) ──────▶│
//!   │◀─────────────── Ended(task, …) ──│  on its disk first
//!
//! frame   kind u16  length u32  payload (CBOR)                         little-endian
//! ```
//!
//! The supervisor outlives the daemon, so one may be of another version than the other: a frame of an unknown kind is
//! skipped, and new fields get new numbers. What cannot be read ends the connection, and nothing else.

use std::io::{self, Read};

use minicbor::{Decode, Encode};
use shoal_model::job::{Environment, Work};
use shoal_model::{JobId, Size, Span, Thousandths, Time};
use shoal_protocols::Record;
use shoal_protocols::node::{Exit, Task, Usage};

use crate::cell::{Secret, Walls};

/// The language spoken here.
pub(super) const VERSION: u16 = 4;
/// The first that knows of cells: an older supervisor would run every task without.
pub(super) const VERSION_OF_CELLS: u16 = 2;
/// The first that has a task wait for another: an older supervisor would start it at once.
pub(super) const VERSION_OF_LINES: u16 = 3;
/// The first that looks for a task's files where they are now.
pub(super) const VERSION_OF_FILES: u16 = 4;
/// The oldest that is still understood: who speaks an older one is not spoken to.
pub(super) const VERSION_LEAST: u16 = 1;
/// The most bytes of a payload: a job's script, arguments and environment with the names of all its nodes are smaller.
pub(super) const PAYLOAD_MAX: usize = 8 << 20;
/// The most bytes of a node's name; the rest of a longer one is left out.
pub(super) const NAME_BYTES_MAX: usize = 64;

const HEAD: usize = 6;

/// What the daemon says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Hello(Hello),
    Start(Box<Order>),
    Adopt(Task),
    Stop(Task),
}

/// What the supervisor says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Welcome(Welcome),
    Ended(Ended),
}

/// The daemon's first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(super) struct Hello {
    #[n(0)]
    pub version: u16,
}

/// The supervisor's first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(super) struct Welcome {
    #[n(0)]
    pub version: u16,
    #[n(1)]
    pub pid: u32,
}

/// All that a supervisor must know to run a task.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(super) struct Order {
    #[n(0)]
    pub task: Task,
    #[n(1)]
    pub work: Work,
    #[n(2)]
    pub environment: Option<Box<Environment>>,
    /// How many nodes run the job.
    #[n(3)]
    pub nodes: u32,
    #[n(4)]
    pub cores: Thousandths,
    #[n(5)]
    pub memory: Size,
    /// How long it may run.
    #[n(6)]
    pub limit: Span,
    /// How long it may take to end once it is told to.
    #[n(7)]
    pub grace: Span,
    /// The most bytes of each of its two outputs.
    #[n(8)]
    pub output_max: u64,
    /// Whether its limit is before it has had its time.
    #[n(9)]
    pub short: bool,
    #[n(10)]
    pub gpus: Option<Thousandths>,
    /// What the nodes of the job are called, by rank.
    #[n(11)]
    pub peers: Option<Vec<String>>,
    /// Which of an array it is.
    #[n(12)]
    pub array_index: Option<u32>,
    /// How it is kept to what it was granted.
    #[n(13)]
    pub keep: Option<Keep>,
    /// Whether there is a folder with files for it.
    #[n(14)]
    #[cbor(default)]
    pub prepared: bool,
    /// The walls of its cell; without any it is trusted.
    #[n(15)]
    pub walls: Option<Box<Walls>>,
    /// The root of the file system that it is to find.
    #[n(16)]
    pub image: Option<String>,
    /// What it may know and nobody else.
    #[n(17)]
    pub secrets: Option<Vec<Secret>>,
    /// It starts when this task has ended, and has what that one had.
    #[n(18)]
    pub behind: Option<Task>,
    /// The array that it is of, if it is of one.
    #[n(19)]
    pub array: Option<JobId>,
}

impl Order {
    /// Whether it runs in a cell: an image or secrets would be nothing without one.
    pub fn is_confined(&self) -> bool {
        self.walls.is_some() || self.image.is_some() || self.secrets.is_some()
    }

    /// Whether its processors are to be nobody else's.
    pub fn is_pinned(&self) -> bool {
        self.keep.is_some_and(|keep| keep.pinned) && self.cores > Thousandths::ZERO
    }

    /// Whether it is to have control groups, where there are any: memory is capped for who asks for some.
    pub fn is_grouped(&self) -> bool {
        self.keep.is_some_and(|keep| keep.grouped || keep.capped && self.memory > Size::ZERO)
    }
}

/// How tasks are kept to what they were granted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Keep {
    /// Each core is a processor that no other task of this node has. Not for several nodes on one machine, which
    /// would all begin with its first processor.
    #[n(0)]
    #[cbor(default)]
    pub pinned: bool,
    /// A control group for each task, where the system lets us make one: its whole tree is then ended at once.
    #[n(1)]
    #[cbor(default)]
    pub grouped: bool,
    /// No more memory than was asked for, where control groups can see to that.
    #[n(2)]
    #[cbor(default)]
    pub capped: bool,
}

/// How a task ended, and what it took.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Ended {
    /// Which task.
    #[n(0)]
    pub task: Task,
    /// How.
    #[n(1)]
    pub exit: Exit,
    /// When, by the machine's wall clock.
    #[n(2)]
    pub at: Time,
    /// What its first process took, with all those that it waited for.
    #[n(3)]
    pub usage: Usage,
    /// Bytes of its standard output that were dropped, as far as they were seen.
    #[n(4)]
    pub stdout_dropped: u64,
    /// The same of its standard error.
    #[n(5)]
    pub stderr_dropped: u64,
    /// Why it did not run, if it did not.
    #[n(6)]
    pub reason: Option<String>,
}

/// What a supervisor remembers of a task: that it was to be started, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(super) struct Entry {
    #[n(0)]
    pub task: Task,
    #[n(1)]
    pub ended: Option<Ended>,
}

impl Record for Entry {
    type Key = Task;

    fn key(&self) -> Task {
        self.task
    }
}

/// Why nothing more can be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
    #[error("the other side speaks version {0}, and none before {VERSION_LEAST} is understood here")]
    TooOld(u16),
    #[error("it said something else before it said who it is")]
    NoHello,
    #[error("a frame of {0} bytes, at most {PAYLOAD_MAX}")]
    TooLong(usize),
    #[error("a frame of kind {kind} that makes no sense: {what}")]
    Nonsense { kind: u16, what: minicbor::decode::Error },
}

/// Whether a language is understood.
pub(super) fn understood(version: u16) -> Result<(), Error> {
    if version < VERSION_LEAST { Err(Error::TooOld(version)) } else { Ok(()) }
}

/// What can be framed.
pub(super) trait Word: Sized {
    /// Appends the frame of this word.
    fn write(&self, out: &mut Vec<u8>);

    /// Reads a payload; `None` for a kind that is not known here.
    fn read(kind: u16, payload: &[u8]) -> Option<Result<Self, minicbor::decode::Error>>;
}

impl Word for Request {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Request::Hello(hello) => frame(1, hello, out),
            Request::Start(order) => frame(2, order, out),
            Request::Adopt(task) => frame(3, task, out),
            Request::Stop(task) => frame(4, task, out),
        }
    }

    fn read(kind: u16, payload: &[u8]) -> Option<Result<Request, minicbor::decode::Error>> {
        Some(match kind {
            1 => minicbor::decode(payload).map(Request::Hello),
            2 => minicbor::decode(payload).map(|order| Request::Start(Box::new(order))),
            3 => minicbor::decode(payload).map(Request::Adopt),
            4 => minicbor::decode(payload).map(Request::Stop),
            _ => return None,
        })
    }
}

impl Word for Answer {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Answer::Welcome(welcome) => frame(101, welcome, out),
            Answer::Ended(ended) => frame(102, ended, out),
        }
    }

    fn read(kind: u16, payload: &[u8]) -> Option<Result<Answer, minicbor::decode::Error>> {
        Some(match kind {
            101 => minicbor::decode(payload).map(Answer::Welcome),
            102 => minicbor::decode(payload).map(Answer::Ended),
            _ => return None,
        })
    }
}

/// Waits for the next word; `None` once the other side has nothing more to say.
pub(super) fn next<W: Word>(from: &mut impl Read) -> Result<Option<W>, Error> {
    loop {
        let mut head = [0; HEAD];
        match from.read_exact(&mut head) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            done => done?,
        }
        let [kind @ .., _, _, _, _] = head;
        let [_, _, length @ ..] = head;
        let (kind, length) = (u16::from_le_bytes(kind), u32::from_le_bytes(length) as usize);
        if length > PAYLOAD_MAX {
            return Err(Error::TooLong(length));
        }
        let mut payload = vec![0; length];
        from.read_exact(&mut payload)?;
        match W::read(kind, &payload) {
            None => {}
            Some(Ok(word)) => return Ok(Some(word)),
            Some(Err(what)) => return Err(Error::Nonsense { kind, what }),
        }
    }
}

fn frame(kind: u16, content: &impl Encode<()>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&kind.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    minicbor::encode(content, &mut *out).expect("memory takes what is written");
    let length = u32::try_from(out.len() - start - HEAD).expect("a word is far shorter");
    out[start + 2..start + HEAD].copy_from_slice(&length.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use shoal_model::{Epoch, JobId, Rank};

    use super::*;

    const TASK: Task = Task { job: JobId([7; 16]), epoch: Epoch(1), rank: Rank(0) };

    fn words() -> [Request; 4] {
        let order = Order {
            task: TASK,
            work: Work::Command(["echo".to_owned(), "hi".to_owned()].into()),
            environment: Some(Box::new([("A".to_owned(), "1".to_owned())].into())),
            nodes: 3,
            cores: Thousandths::ONE,
            memory: Size::ZERO,
            limit: Span::from_secs(9),
            grace: Span::from_secs(1),
            output_max: 100,
            short: true,
            gpus: Some(Thousandths::ONE),
            peers: Some(vec!["n1".to_owned()]),
            array_index: Some(4),
            keep: Some(Keep { pinned: true, ..Keep::default() }),
            prepared: true,
            walls: Some(Box::new(Walls { read: vec!["/data".to_owned()], ..Walls::default() })),
            image: Some("/srv/image".to_owned()),
            secrets: Some(vec![Secret { name: "token".to_owned(), value: vec![0, 255] }]),
            behind: Some(Task { epoch: Epoch(2), ..TASK }),
            array: Some(JobId([8; 16])),
        };
        let hello = Hello { version: VERSION };
        [Request::Hello(hello), Request::Start(Box::new(order)), Request::Adopt(TASK), Request::Stop(TASK)]
    }

    #[test]
    fn words_come_as_they_were_said_and_unknown_kinds_are_skipped() {
        let mut bytes = Vec::new();
        for word in words() {
            word.write(&mut bytes);
            frame(999, &"a word of a later version", &mut bytes);
        }
        let mut from = bytes.as_slice();
        for word in words() {
            assert_eq!(next::<Request>(&mut from).unwrap(), Some(word));
        }
        assert_eq!(next::<Request>(&mut from).unwrap(), None);
    }

    #[test]
    fn frame_that_is_too_long_is_refused_before_it_is_read() {
        let bytes = [2, 0, 0, 0, 0, 255];
        assert!(matches!(next::<Request>(&mut bytes.as_slice()), Err(Error::TooLong(_))));
    }

    proptest! {
        #[test]
        fn damaged_words_are_words_or_errors_but_never_panics(
            flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)
        ) {
            let mut bytes = Vec::new();
            words().iter().for_each(|word| word.write(&mut bytes));
            for (place, value) in flips {
                let place = place.index(bytes.len());
                bytes[place] = value;
            }
            let mut from = bytes.as_slice();
            while let Ok(Some(_)) = next::<Request>(&mut from) {}
        }
    }
}
