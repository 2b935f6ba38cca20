//! The story of one job in a storm: all that nodes said, saved and did about it, and which machines fell.

use shoal_model::{JobId, Time};

use super::storm::Weather;
use crate::grid::{Grid, NodeLike};
use crate::world::{Saw, Sight};

/// Lives through a storm again up to some time, and tells one line for each thing that happened to a job, or to a
/// machine as a whole.
pub fn story<P: NodeLike>(weather: Weather, job: JobId, until: Time) -> Vec<String> {
    let (mut grid, run): (Grid<P>, _) = weather.with_story().build(String::new());
    let name = format!("{job:?}");
    let mut lines = Vec::new();
    while grid.look().now() < until {
        let next = (grid.look().now() + run.step).min(until + run.step);
        grid.world().run_before(next);
        let sights = grid.world().sights();
        lines.extend(sights.iter().filter(|sight| sight.at <= until).filter_map(|sight| line(sight, &name)));
    }
    lines
}

fn line<P: NodeLike>(sight: &Sight<P>, name: &str) -> Option<String> {
    let Sight { at, node, saw } = sight;
    let told = match saw {
        Saw::Crash => "crashes".to_owned(),
        Saw::Restart => "is back".to_owned(),
        Saw::DiskLost => "has lost its disk".to_owned(),
        Saw::Send(to, message) => format!("to {to}: {message:?}"),
        Saw::Event(event) => format!("reports {event:?}"),
        Saw::Act(action) => format!("does {action:?}"),
        Saw::Done(outcome) => format!("sees the end of {outcome:?}"),
        Saw::Save(record) => format!("saves {record:?}"),
        Saw::Erase(key) => format!("erases {key:?}"),
    };
    let of_machine = matches!(saw, Saw::Crash | Saw::Restart | Saw::DiskLost);
    (of_machine || told.contains(name)).then(|| format!("{at} {node} {told}"))
}

#[cfg(test)]
mod tests {
    use shoal_protocols::node::Node;
    use shoal_protocols::node::config::Recipe;

    use super::*;

    #[test]
    fn story_tells_what_became_of_a_job_and_nothing_of_others() {
        let weather = Weather::draw_for(2_000, Recipe::named("sample").expect("a recipe"));
        let jobs: Vec<JobId> = weather.asks.iter().map(|ask| ask.envelope.id()).collect();
        let lines = story::<Node>(weather, jobs[0], Time::from_secs(600));
        assert!(lines.iter().any(|line| line.contains("reports Accepted")), "{lines:#?}");
        assert!(lines.iter().any(|line| line.contains("is back")), "{lines:#?}");
        for other in &jobs[1..] {
            let told = lines.iter().find(|line| line.contains(&format!("reports Accepted({other:?})")));
            assert_eq!(told, None);
        }
    }
}
