//! Jobs in all their forms, and the words and expressions in them.

use shoal_model::criterion::{Cost, FIXED_MAX, Facts, Fixed, Measure};
use shoal_model::job::{After, Array, Content, Ended, Pattern, Staged};
use shoal_model::units::{SpanText, TimeText};
use shoal_model::{
    Architecture, Constraint, Criterion, Digest, Envelope, Expression, Job, JobId, Line, Machine, Name,
    NodeId, Nonce, Resources, Size, System, Thousandths,
};

use super::{choice, text};

/// A job file.
pub fn toml(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let Ok(job) = toml::from_str::<Job>(text) else { return };
    let written = toml::to_string(&job).expect("a job can be written");
    assert_eq!(toml::from_str::<Job>(&written).as_ref(), Ok(&job), "{written}");
    travels(job);
}

/// A job as the interface takes it.
pub fn json(bytes: &[u8]) {
    let Ok(job) = serde_json::from_slice::<Job>(bytes) else { return };
    let written = serde_json::to_string(&job).expect("a job can be written");
    assert_eq!(serde_json::from_str::<Job>(&written).ok().as_ref(), Some(&job), "{written}");
    travels(job);
}

/// A job that makes sense travels, unless it is too large.
fn travels(job: Job) {
    if let Ok(envelope) = Envelope::new(job, Nonce([7; 16])) {
        let again = Envelope::from_bytes(&envelope.to_bytes()).expect("what was written can be read");
        assert_eq!(again, envelope);
    }
}

/// A job as it travels: there is one encoding of each.
pub fn envelope(bytes: &[u8]) {
    let Ok(envelope) = Envelope::from_bytes(bytes) else { return };
    assert_eq!(envelope.to_bytes(), bytes);
    let json = serde_json::to_string(envelope.job()).expect("a job can be written");
    assert_eq!(serde_json::from_str::<Job>(&json).ok().as_ref(), Some(envelope.job()), "{json}");
}

/// What is best, and what it says of sets whose facts are the same number for everything.
pub fn criterion(bytes: &[u8]) {
    let Ok(line) = str::from_utf8(bytes) else { return };
    text::<Criterion>(line);
    let Ok(criterion) = line.parse::<Criterion>() else { return };
    for number in [None, Some(0), Some(1), Some(-1), Some(FIXED_MAX), Some(-FIXED_MAX)] {
        let cost = criterion.cost(&Same(number));
        assert!(cost.missed >= 0 && cost <= Cost::IMPOSSIBLE, "{cost:?}");
    }
}

/// A set of which everything measures the same.
struct Same(Option<Fixed>);

impl Facts for Same {
    fn measure(&self, _: &Measure) -> Option<Fixed> {
        self.0
    }
}

/// Which nodes will do.
pub fn constraint(bytes: &[u8]) {
    let Ok(line) = str::from_utf8(bytes) else { return };
    let Ok(constraint) = line.parse::<Constraint>() else { return };
    let machine = Machine::with_capacity(Resources::cores(4));
    let refusal = constraint.refusal(&machine);
    assert_eq!(constraint.admits(&machine), refusal.is_none());
    assert!(refusal.is_none_or(|clause| constraint.column(clause).is_some()));
}

/// Small words that people write.
pub fn texts(bytes: &[u8]) {
    let Some((choice, rest)) = choice(bytes) else { return };
    let Ok(word) = str::from_utf8(rest) else { return };
    match choice % 18 {
        0 => text::<SpanText>(word),
        1 => text::<TimeText>(word),
        2 => text::<Size>(word),
        3 => text::<Thousandths>(word),
        4 => text::<Array>(word),
        5 => {
            if let Ok(after) = After::parse(word.split(' ')) {
                assert_eq!(After::parse(after.texts()), Ok(after));
            }
        }
        6 => text::<Ended>(word),
        7 => text::<Pattern>(word),
        8 => {
            if let Ok(staged) = Staged::parse_input(word) {
                assert_eq!(Staged::parse_input(&staged.input_text()), Ok(staged));
            }
        }
        9 => text::<Content>(word),
        10 => text::<Digest>(word),
        11 => text::<NodeId>(word),
        12 => text::<JobId>(word),
        13 => text::<Name>(word),
        14 => text::<Line>(word),
        15 => text::<Expression>(word),
        16 => text::<Architecture>(word),
        _ => text::<System>(word),
    }
}
