//! Nothing that comes from outside makes a node panic, or promise what it does not have.

mod subject;
mod words;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use shoal_protocols::node::config::Recipe;

use subject::Subject;
use words::{Word, word, word_of_queues};

/// The same cases in every run; `PROPTEST_RNG_SEED=2` tries others, `PROPTEST_CASES=10000` more.
fn cases(count: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let rng_seed = match default.rng_seed {
        RngSeed::Random => RngSeed::Fixed(1),
        RngSeed::Fixed(seed) => RngSeed::Fixed(seed),
    };
    ProptestConfig { cases: default.cases.max(count), rng_seed, failure_persistence: None, ..default }
}

fn survives(recipe: &str, words: Vec<Word>) -> Result<Subject, TestCaseError> {
    let recipe = match recipe {
        "sample" => Recipe::Sample(Default::default()),
        named => Recipe::named(named).expect("a recipe"),
    };
    let mut subject = Subject::new(recipe);
    for word in words {
        let said = format!("{word:?}");
        subject.hear(word);
        if let Err(broken) = subject.check() {
            return Err(TestCaseError::fail(format!("{broken} after {said}")));
        }
    }
    Ok(subject)
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn node_survives_whatever_it_hears(words in vec(word(), 100..200)) {
        survives("sample", words)?;
    }

    #[test]
    fn node_whose_jobs_wait_in_queues_survives_whatever_it_hears(
        words in vec(word_of_queues(), 100..200),
    ) {
        survives("aria", words)?;
    }
}

#[test]
fn nonsense_gets_as_far_as_jobs_that_run() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::new(cases(1));
    let (mut placed, mut started) = (0, 0);
    for _ in 0..60 {
        let words = vec(word(), 150).new_tree(&mut runner).expect("words").current();
        let subject = survives("sample", words).expect("the node survives");
        placed += subject.placed();
        started += subject.started();
    }
    assert!(placed > 20 && started > 20, "{placed} placed, {started} started");
}

#[test]
fn nonsense_gets_as_far_as_jobs_that_wait_and_are_handed_over() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::new(cases(1));
    let (mut placed, mut started, mut handed) = (0, 0, 0);
    for _ in 0..60 {
        let words = vec(word_of_queues(), 150).new_tree(&mut runner).expect("words").current();
        let subject = survives("aria", words).expect("the node survives");
        placed += subject.placed();
        started += subject.started();
        handed += subject.handed_over();
    }
    assert!(
        placed > 20 && started > 20 && handed > 5,
        "{placed} placed, {started} started, {handed} handed over"
    );
}
