//! How ends, exits and what tasks took are said in plain words, and in the code that a program ends with.

use shoal_model::Span;
use shoal_model::units::{About, SpanText};
use shoal_protocols::node::{End, Exit, Usage};

/// What a program ends with whose job was stopped at its limit, as `timeout` does.
const OVERRAN: u8 = 124;
/// What it ends with where the job never had an exit of its own.
const NO_EXIT: u8 = 125;
/// What it ends with where its user took the job back, as a shell says of Ctrl-C.
const TAKEN_BACK: u8 = 130;
/// What is added to the number of a signal.
const SIGNAL: u8 = 128;

/// How a job ended, in plain words.
pub fn end(end: End) -> String {
    match end {
        End::Finished => "finished".to_owned(),
        End::Failed(rank, how) if rank.0 == 0 => format!("failed: {}", exit(how)),
        End::Failed(rank, how) => format!("failed: rank {} {}", rank.0, exit(how)),
        End::Lost => "failed: a node was lost, and it may have run there".to_owned(),
        End::Cancelled => "cancelled".to_owned(),
        End::Expired => "expired: it could no longer end by its deadline".to_owned(),
        End::NoPlace => "failed: no place was found for it".to_owned(),
        End::Unmet(other) => {
            format!("unmet: job {other}, after which it was to start, did not end as it must have")
        }
        End::HandedOver(heir) => format!("handed over: it is node {heir}'s now"),
    }
}

/// What tasks took, in plain words.
pub fn usage(tasks: u32, usage: &Usage) -> String {
    let millis = |span: Span| SpanText(Span::from_millis(span.as_micros() / 1_000));
    let (all, system) = (millis(usage.user + usage.system), millis(usage.system));
    let memory = match usage.memory_max.as_bytes() {
        0 => "little memory".to_owned(),
        _ => format!("{} of memory at most", About::Up(usage.memory_max)),
    };
    let who = if tasks == 1 { String::new() } else { format!("{tasks} tasks ") };
    format!("{who}took {all} of processor time ({system} of it the system), {memory}")
}

/// How a task ended, in plain words.
pub fn exit(exit: Exit) -> String {
    match exit {
        Exit::Code(0) => "ended well".to_owned(),
        Exit::Code(126) => "could not be run: see its stderr".to_owned(),
        Exit::Code(127) => "the program was not found: see its stderr".to_owned(),
        Exit::Code(code) => format!("ended with code {code}"),
        Exit::Signal(signal) => format!("was killed by signal {signal}"),
        Exit::Overran => "was stopped at its time limit".to_owned(),
        Exit::Stopped => "was stopped".to_owned(),
        Exit::Lost => "was lost with its machine".to_owned(),
        Exit::NotStarted => "could not be started there".to_owned(),
        Exit::CutShort => "was stopped before it had had its time".to_owned(),
        Exit::GivenBack => "was given back by a node that leaves".to_owned(),
        Exit::Unstaged => "could not get its input files in time; see the log of that node".to_owned(),
    }
}

/// What `shoal run` ends with for a job that has ended so.
pub fn code(end: End) -> u8 {
    match end {
        End::Finished => 0,
        End::Failed(_, Exit::Code(code)) => u8::try_from(code).ok().filter(|code| *code > 0).unwrap_or(1),
        End::Failed(_, Exit::Signal(signal)) => SIGNAL.saturating_add(u8::try_from(signal).unwrap_or(0)),
        End::Failed(_, Exit::Overran) => OVERRAN,
        End::Failed(
            _,
            Exit::Stopped | Exit::Lost | Exit::NotStarted | Exit::CutShort | Exit::Unstaged | Exit::GivenBack,
        )
        | End::Lost
        | End::Expired
        | End::NoPlace
        | End::Unmet(_)
        | End::HandedOver(_) => NO_EXIT,
        End::Cancelled => TAKEN_BACK,
    }
}

#[cfg(test)]
mod tests {
    use shoal_model::Rank;

    use super::*;

    #[test]
    fn code_is_the_jobs_own_where_it_has_one() {
        let failed = |exit| code(End::Failed(Rank(0), exit));
        assert_eq!(code(End::Finished), 0);
        assert_eq!(failed(Exit::Code(42)), 42);
        assert_eq!(failed(Exit::Code(300)), 1);
        assert_eq!(failed(Exit::Signal(9)), 137);
        assert_eq!(failed(Exit::Overran), 124);
        assert_eq!([End::Cancelled, End::Lost, End::Expired].map(code), [130, 125, 125]);
    }
}
