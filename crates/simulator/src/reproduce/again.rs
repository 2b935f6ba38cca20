//! The commands that make single runs of a paper again.

use std::path::PathBuf;

use super::{Paper, Settings};
use crate::replay::Replay;

/// What was asked for, as far as runs depend on it.
pub(super) struct Again {
    paper: Paper,
    wanted: Vec<&'static str>,
    quick: bool,
    tiny: bool,
    trace: Option<PathBuf>,
    hosts: Option<PathBuf>,
}

impl Again {
    /// What was asked for of a paper.
    pub(super) fn new(paper: Paper, settings: &Settings, wanted: &[&'static str]) -> Again {
        let Settings { only: _, quick, seeds: _, trace, hosts, threads: _, keep: _, tiny } = settings;
        let (trace, hosts) = (trace.clone(), hosts.clone());
        Again { paper, wanted: wanted.to_vec(), quick: *quick, tiny: *tiny, trace, hosts }
    }

    /// The command that makes a run again, with those that belong to the same result: the first wanted one that needs it.
    pub(super) fn command(&self, seeds: u64, needs_it: impl Fn(&'static str) -> bool) -> String {
        let id = self.wanted.iter().copied().find(|id| needs_it(id));
        // Other results than this may refuse a trace that is not for them.
        let traced = self.paper != Paper::TriPronged || id.is_some_and(|id| id.contains("/beyond/trace/"));
        let trace = self.trace.as_ref().filter(|_| traced);
        Replay::sim("reproduce")
            .word(self.paper)
            .flag("--only", id)
            .flag("--seeds", Some(seeds))
            .switch("--quick", self.quick)
            .switch("--tiny", self.tiny)
            .flag("--trace", trace.map(|file| file.display()))
            .flag("--hosts", self.hosts.as_ref().map(|file| file.display()))
            .flag("--threads", Some(1))
            .to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt::Debug;

    use super::super::{aria, asap, proactive, tri_pronged, wanted};
    use super::*;
    use crate::replay::{assert_is_command, value};

    fn tiny() -> Settings {
        Settings {
            only: None,
            quick: false,
            seeds: None,
            trace: None,
            hosts: None,
            threads: 1,
            keep: None,
            tiny: true,
        }
    }

    /// Every run comes with a command that makes it again; `runs` plans what is wanted and gives the command of each run.
    fn is_made_again<C: PartialEq + Debug>(
        paper: Paper,
        runs: impl Fn(&Settings, &[&'static str]) -> Vec<(C, String)>,
    ) {
        let all: Vec<&'static str> = paper.known().iter().map(|known| known.id).collect();
        let mut plans: BTreeMap<String, Vec<C>> = BTreeMap::new();
        let all = runs(&tiny(), &all);
        assert!(all.len() > 10, "{paper}: {}", all.len());
        for (case, command) in all {
            let made = plans.entry(command.clone()).or_insert_with(|| {
                let words = assert_is_command(&command);
                assert!(!command.contains('('), "{command}");
                assert_eq!(words[2..4], ["reproduce", paper.name()], "{command}");
                let seeds = value(&words, "--seeds").and_then(|seeds| seeds.parse().ok());
                let settings = Settings { seeds, tiny: words.iter().any(|word| word == "--tiny"), ..tiny() };
                let wanted = wanted(paper, value(&words, "--only")).expect("a result");
                runs(&settings, &wanted).into_iter().map(|(case, _)| case).collect()
            });
            assert!(made.contains(&case), "{command}: {case:?}");
        }
    }

    #[test]
    fn every_run_of_a_paper_has_a_command_that_makes_it_again() {
        is_made_again(Paper::Asap, |settings, wanted| {
            let plan = asap::Plan::new(settings, wanted).expect("a plan");
            plan.cases.iter().map(|case| (*case, plan.replay(case))).collect()
        });
        is_made_again(Paper::Aria, |settings, wanted| {
            let plan = aria::Plan::new(settings, wanted).expect("a plan");
            plan.cases.iter().map(|case| (*case, plan.replay(case))).collect()
        });
        is_made_again(Paper::TriPronged, |settings, wanted| {
            let plan = tri_pronged::Plan::new(settings, wanted).expect("a plan");
            let beyond = plan.beyond.cases.iter().map(|case| (format!("{case:?}"), plan.beyond.replay(case)));
            plan.cases.iter().map(|case| (format!("{case:?}"), plan.replay(case))).chain(beyond).collect()
        });
        is_made_again(Paper::Proactive, |settings, wanted| {
            let plan = proactive::Plan::new(settings, wanted).expect("a plan");
            plan.cases.iter().map(|case| (*case, plan.replay(case))).collect()
        });
    }

    #[test]
    fn files_are_told_where_a_result_is_about_them() {
        let settings = Settings { trace: Some("a b.swf".into()), hosts: Some("h.csv".into()), ..tiny() };
        let again = |paper, id: &'static str| Again::new(paper, &settings, &[id]).command(3, |_| true);
        assert_eq!(
            again(Paper::TriPronged, "tri-pronged/beyond/trace/x"),
            "shoal sim reproduce tri-pronged --only tri-pronged/beyond/trace/x --seeds 3 --tiny --trace 'a b.swf' \
             --hosts h.csv --threads 1"
        );
        assert!(!again(Paper::TriPronged, "tri-pronged/fig3/x").contains("--trace"));
        assert!(again(Paper::Asap, "asap/fig4a/x").contains("--trace"));
    }
}
