//! What the simulator reads: traces, scenarios, runs that were kept.

use std::num::NonZeroU32;

use shoal_simulator::network::latency;
use shoal_simulator::reproduce::Paper;
use shoal_simulator::scenario::{Library, Scenario};
use shoal_simulator::study::Setting;
use shoal_simulator::workload::{
    BadLines, Format, Length, Order, TooWide, Trace, Workload, write_gwf, write_swf,
};

use super::{choice, settles};

/// Traces in both formats, plain or packed, with each way to treat what is odd.
pub fn traces(bytes: &[u8]) {
    let Some((choice, rest)) = choice(bytes) else { return };
    let bit = |place: u8| choice & (1 << place) != 0;
    let format = if bit(0) { Format::Swf } else { Format::Gwf };
    let plain = Trace { format: Some(format), ..Trace::new("trace") };
    let trace = Trace {
        length: if bit(1) { Length::Run } else { Length::Requested },
        nodes: if bit(2) { NonZeroU32::new(16) } else { None },
        node_size: if bit(3) { NonZeroU32::new(4).expect("some") } else { NonZeroU32::MIN },
        too_wide: if bit(4) { TooWide::Cap } else { TooWide::Drop },
        bad_lines: if bit(5) { BadLines::Drop } else { BadLines::Refuse },
        order: if bit(6) { Order::Sort } else { Order::Refuse },
        ..plain.clone()
    };
    let workload = match trace.read_from(rest) {
        Ok(workload) => workload,
        Err(error) => {
            assert!(!error.to_string().contains('\n'), "{error}");
            return;
        }
    };
    // What was read and cleaned once is written, and read again as it is.
    let again = Trace { length: Length::Run, ..plain };
    let back = |workload: &Workload| {
        let mut written = Vec::new();
        match format {
            Format::Swf => write_swf(workload, &mut written),
            Format::Gwf => write_gwf(workload, &mut written),
        }
        .expect("memory takes what is written");
        match again.read_from(written.as_slice()) {
            Ok(workload) => workload,
            Err(error) => panic!("{error}\n{}", String::from_utf8_lossy(&written)),
        }
    };
    let once = back(&workload);
    let times = |workload: &Workload| -> Vec<_> {
        workload.jobs.iter().map(|job| (job.submit, job.run, job.requested, job.width, job.id)).collect()
    };
    assert_eq!(times(&once), times(&workload));
}

/// Nothing: all that a scenario says then comes from the text over it.
const EMPTY: Library = &[("empty", "")];

/// A scenario; what was read, with all that was left out, is a scenario again, and the same.
pub fn scenario(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let scenario = match Scenario::built_in(EMPTY, "empty", text) {
        Ok(scenario) => scenario,
        Err(error) => {
            assert!(!error.to_string().contains('\n'), "{error}");
            return;
        }
    };
    let again = match Scenario::built_in(EMPTY, "empty", &scenario.text) {
        Ok(again) => again,
        Err(error) => panic!("{error}\n{}", scenario.text),
    };
    let all = |scenario: &Scenario| {
        let Scenario {
            seed, nodes, machines, network, overlay, recipe, workload, slots, faults, length, ..
        } = scenario;
        format!(
            "{seed} {nodes} {machines:?} {network:?} {overlay:?} {recipe:?} {workload:?} {slots:?} {faults:?} {length:?}"
        )
    };
    assert_eq!(all(&again), all(&scenario), "{}", scenario.text);
}

/// Runs of a reproduction that were kept.
pub fn kept(bytes: &[u8]) {
    let Some((choice, rest)) = choice(bytes) else { return };
    let paper = Paper::ALL[usize::from(choice) % Paper::ALL.len()];
    settles(rest, |bytes| paper.reread(bytes));
}

/// Hosts with coordinates, a matrix of times, and settings that are swept.
pub fn hosts(bytes: &[u8]) {
    let Some((choice, rest)) = choice(bytes) else { return };
    let Ok(text) = str::from_utf8(rest) else { return };
    let wrong = match choice % 3 {
        0 => latency::read_coordinates(text).err().map(|error| error.to_string()),
        1 => latency::read_matrix(text).err().map(|error| error.to_string()),
        _ => text.parse::<Setting>().err().map(|error| error.to_string()),
    };
    drop(wrong);
}
