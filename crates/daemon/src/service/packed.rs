//! A story as it is kept: a few bytes, since very many jobs wait and few of their stories are ever asked for.

use minicbor::decode::{self, Decoder};
use minicbor::encode::{self, Encoder, Write};
use shoal_api::State;
use shoal_model::{JobId, Time};

use super::story::Story;

/// The story of a job, without the job's name, which it is kept under.
#[derive(Debug)]
pub(super) struct Packed {
    /// The place of its state in [`State::ALL`], whether it has ended, and the events: each time as the distance from the one
    /// before, which takes half the room.
    bytes: Box<[u8]>,
}

/// Room for most stories, until it is known how long this one is.
const ROOM: usize = 512;
/// Set in the first byte of stories that have ended.
const ENDED: u8 = 1 << 7;

impl Packed {
    pub fn new(story: &Story) -> Packed {
        let state = story.state();
        let place = State::ALL.iter().position(|&other| other == state).unwrap_or_default() as u8;
        let ended = if story.ended().is_some() { ENDED } else { 0 };
        let mut bytes = Vec::with_capacity(ROOM);
        bytes.push(place | ended);
        write(story, &mut Encoder::new(&mut bytes)).expect("memory takes all that is written to it");
        Packed { bytes: bytes.as_slice().into() }
    }

    /// How far the job has come.
    pub fn state(&self) -> State {
        let place = self.bytes.first().map_or(0, |first| first & !ENDED);
        State::ALL.get(usize::from(place)).copied().unwrap_or(State::Waiting)
    }

    /// Whether the job has not ended.
    pub fn is_open(&self) -> bool {
        self.bytes.first().is_none_or(|first| first & ENDED == 0)
    }

    /// All of it.
    pub fn story(&self, job: JobId) -> Story {
        let bytes = self.bytes.get(1..).unwrap_or_default();
        read(job, &mut Decoder::new(bytes)).expect("it was written above, and nobody has changed it")
    }
}

fn write<W: Write>(story: &Story, encoder: &mut Encoder<W>) -> Result<(), encode::Error<W::Error>> {
    encoder.u32(story.left_out)?.array(story.events.len() as u64)?;
    let mut before = 0;
    for (at, what) in &story.events {
        // Clocks are set back now and then: a distance has a sign.
        encoder.i64(at.as_micros().wrapping_sub(before) as i64)?.encode(what)?;
        before = at.as_micros();
    }
    Ok(())
}

fn read(job: JobId, decoder: &mut Decoder<'_>) -> Result<Story, decode::Error> {
    let left_out = decoder.u32()?;
    let count = decoder.array()?.unwrap_or_default();
    let mut events = Vec::with_capacity(count as usize);
    let mut before = 0_u64;
    for _ in 0..count {
        before = before.wrapping_add(decoder.i64()? as u64);
        events.push((Time::from_micros(before), decoder.decode()?));
    }
    Ok(Story { job, events, left_out })
}

#[cfg(test)]
mod tests {
    use shoal_model::{Epoch, NodeId, Span};
    use shoal_protocols::node::End;

    use super::super::story::What;
    use super::*;

    const JOB: JobId = JobId([7; 16]);

    fn placed() -> What {
        let (start, nodes) = (Time::from_secs(1_790_000_060), [NodeId(u64::MAX)].into());
        What::Placed { epoch: Epoch(1), start, span: Span::from_mins(1), nodes }
    }

    #[test]
    fn packed_story_is_the_same_whatever_has_happened_and_whenever() {
        let mut story = Story { left_out: 3, ..Story::new(JOB) };
        let told = [
            (1_790_000_000, What::Accepted),
            // The clock was set back, and then to its end.
            (1_789_999_000, What::Waiting("no room".into())),
            (u64::MAX / 1_000_000, placed()),
            (0, What::Started { epoch: Epoch(1), tasks: 1, first: Time::ZERO, last: Time::NEVER }),
            (5, What::Ended(End::Cancelled)),
        ];
        for (at, what) in told {
            let packed = Packed::new(&story);
            assert_eq!((packed.story(JOB), packed.state()), (story.clone(), story.state()));
            assert_eq!(packed.is_open(), story.ended().is_none());
            assert!(story.add(Time::from_secs(at), what));
        }
        let packed = Packed::new(&story);
        assert_eq!((packed.story(JOB), packed.state()), (story, State::Cancelled));
        assert!(!packed.is_open());
    }

    #[test]
    fn story_of_a_job_that_waits_takes_few_bytes() {
        let mut story = Story::new(JOB);
        story.add(Time::from_secs(1_790_000_000), What::Accepted);
        story.add(Time::from_secs(1_790_000_001), placed());
        let bytes = Packed::new(&story).bytes.len();
        assert!(bytes <= 56, "{bytes}");
    }
}
