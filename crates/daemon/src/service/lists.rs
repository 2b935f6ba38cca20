//! Lists of jobs: those that this node accepted, and those of the whole grid, page by page in the same order.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use shoal_api::{JobPage, JobStatus, PAGE_DEFAULT, PAGE_MAX, Problem, State};
use shoal_model::{JobId, Time};

use super::history::Cursor;
use super::{Service, Wrong, view};
use crate::elsewhere::Question;

/// Jobs that are looked at for one page of those with a given name.
const SCAN_MAX: usize = 10_000;

/// Which jobs are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ListQuery {
    /// In these states only, with commas between.
    pub state: Option<String>,
    /// With this in their names only.
    pub name: Option<String>,
    /// How many on a page.
    pub limit: Option<usize>,
    /// Where the page begins: `next` of the page before.
    pub cursor: Option<String>,
}

/// The order of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The last accepted first, those that have ended included.
    Latest,
    /// Those that have not ended, by their start.
    Queue,
}

impl Order {
    /// Where a job stands in a list.
    fn place(self, job: &JobStatus) -> Cursor {
        let planned = || job.planned.as_ref().map_or(Time::NEVER, |planned| planned.start.0);
        let at = match (self, job.state) {
            (Order::Latest, _) => job.accepted.map_or(Time::ZERO, |accepted| accepted.0),
            (Order::Queue, State::Planned | State::Running) => planned(),
            (Order::Queue, _) => Time::NEVER,
        };
        Cursor(at, job.id)
    }

    fn compare(self, one: Cursor, other: Cursor) -> Ordering {
        match self {
            Order::Latest => other.cmp(&one),
            Order::Queue => one.cmp(&other),
        }
    }
}

impl Service {
    /// A page of the jobs that this node accepted.
    pub async fn list(&self, query: &ListQuery, order: Order) -> Result<JobPage, Wrong> {
        let states = read_states(query.state.as_deref())?;
        let limit = query.limit.unwrap_or(PAGE_DEFAULT);
        if !(1..=PAGE_MAX).contains(&limit) {
            let problem =
                Problem::new(format!("`limit` is {limit}: expected 1 to {PAGE_MAX}")).field("limit");
            return Err(Wrong { status: 400, problem });
        }
        let wrong_cursor = || {
            let problem = Problem::new("`cursor` is none that a page ended with").field("cursor");
            Wrong { status: 400, problem }
        };
        let mut cursor = match &query.cursor {
            Some(word) => Some(Cursor::read(word).ok_or_else(wrong_cursor)?),
            None => None,
        };
        let mut page = JobPage::default();
        let mut scanned = 0;
        // One more than fits, to know whether there is a next page.
        let most = limit + 1;
        loop {
            let some = match order {
                Order::Latest => self.history.latest(&states, cursor, most),
                Order::Queue => self.history.queue(&states, cursor, most),
            };
            let Some(last) = some.last().copied() else { return Ok(page) };
            let jobs: Vec<JobId> = some.iter().map(|cursor| cursor.1).collect();
            let seen = jobs.clone();
            let facts: Vec<_> =
                self.look(move |node| seen.iter().map(|job| view::facts(node, *job)).collect()).await?;
            for (place, (job, facts)) in some.iter().zip(jobs.into_iter().zip(facts)) {
                // A job that the node has forgotten is none.
                let Some(facts) = facts else { continue };
                let name = facts.envelope.job().name.as_ref();
                let wanted = query.name.as_ref();
                if wanted
                    .is_none_or(|wanted| name.is_some_and(|name| name.as_str().contains(wanted.as_str())))
                {
                    page.jobs.push(view::status(&facts, self.history.story(job).as_ref(), self.view()));
                    if page.jobs.len() == limit {
                        page.next = (*place != last || some.len() == most).then(|| place.word());
                        return Ok(page);
                    }
                }
            }
            cursor = Some(last);
            scanned += some.len();
            if some.len() < most {
                return Ok(page);
            }
            if scanned >= SCAN_MAX {
                page.next = Some(last.word());
                return Ok(page);
            }
        }
    }

    /// A page of the jobs of all nodes that answer.
    pub async fn list_of_grid(&self, query: &ListQuery, order: Order) -> Result<JobPage, Wrong> {
        let mut pages = vec![self.list(query, order).await?];
        let ListQuery { state, name, limit, cursor } = query.clone();
        let question = match order {
            Order::Latest => Question::Latest { state, name, limit, cursor },
            Order::Queue => Question::Queue { state, name, limit, cursor },
        };
        for (_, reply) in self.ask_all(&question).await {
            pages.extend(reply.read::<JobPage>().await);
        }
        Ok(merged(order, limit.unwrap_or(PAGE_DEFAULT), pages))
    }
}

/// One page out of those of several nodes, in the same order.
fn merged(order: Order, limit: usize, pages: Vec<JobPage>) -> JobPage {
    // Beyond the first place where a page ends and its list does not, nobody knows what comes next.
    let ends = pages.iter().filter_map(|page| Cursor::read(page.next.as_deref()?));
    let end = ends.min_by(|one, other| order.compare(*one, *other));
    let mut jobs: Vec<JobStatus> = pages.into_iter().flat_map(|page| page.jobs).collect();
    // A job that was handed over is told by who has it now, if that one answers.
    let kept = jobs.iter().filter(|job| job.state != State::HandedOver).map(|job| job.id);
    let kept: BTreeSet<JobId> = kept.collect();
    jobs.retain(|job| {
        let known = end.is_none_or(|end| order.compare(order.place(job), end).is_le());
        known && (job.state != State::HandedOver || !kept.contains(&job.id))
    });
    jobs.sort_by(|one, other| order.compare(order.place(one), order.place(other)));
    let cut = jobs.len() > limit;
    jobs.truncate(limit);
    let last = jobs.last().map(|job| order.place(job)).filter(|_| cut);
    JobPage { jobs, next: last.or(end).map(Cursor::word) }
}

fn read_states(text: Option<&str>) -> Result<Vec<State>, Wrong> {
    let words = text.unwrap_or_default().split(',').map(str::trim).filter(|word| !word.is_empty());
    let read = |word: &str| {
        word.parse().map_err(|error: shoal_api::UnknownState| {
            let problem = Problem::new(error.to_string()).field("state");
            Wrong { status: 400, problem }
        })
    };
    words.map(read).collect()
}

#[cfg(test)]
mod tests {
    use shoal_api::Planned;
    use shoal_model::Span;
    use shoal_model::units::{SpanText, TimeText};

    use super::*;

    /// A job that was accepted at a time and starts a minute later, or waits if that is given.
    fn job(number: u64, accepted: u64, state: State) -> JobStatus {
        let at = |secs| TimeText(Time::from_secs(secs));
        let planned = Planned { epoch: 1, start: at(accepted + 60), end: at(accepted + 70), nodes: vec![] };
        JobStatus {
            id: JobId::from_number(number),
            name: None,
            user: None,
            state,
            reason: None,
            command: String::new(),
            nodes: 1,
            resources: String::new(),
            limit: SpanText(Span::from_secs(10)),
            owner: String::new(),
            durability: 1,
            array: None,
            index: None,
            counts: Default::default(),
            accepted: Some(at(accepted)),
            promised: None,
            planned: (state != State::Waiting).then_some(planned),
            started: None,
            skew: None,
            ended: None,
            code: None,
            usage: None,
            tasks: vec![],
            outputs: None,
        }
    }

    /// All jobs of some nodes, read page by page as a node would give them.
    fn paged(order: Order, limit: usize, nodes: &[Vec<JobStatus>]) -> Vec<JobId> {
        let (mut cursor, mut seen): (Option<Cursor>, Vec<JobId>) = (None, vec![]);
        loop {
            let page = |jobs: &Vec<JobStatus>| {
                let after =
                    |job: &&JobStatus| cursor.is_none_or(|at| order.compare(order.place(job), at).is_gt());
                let mut jobs: Vec<JobStatus> = jobs.iter().filter(after).cloned().collect();
                jobs.sort_by(|one, other| order.compare(order.place(one), order.place(other)));
                let next = jobs.get(limit - 1).map(|job| order.place(job).word());
                jobs.truncate(limit);
                JobPage { jobs, next }
            };
            let all = merged(order, limit, nodes.iter().map(page).collect());
            assert!(all.jobs.len() <= limit);
            seen.extend(all.jobs.iter().map(|job| job.id));
            match all.next {
                Some(next) => cursor = Cursor::read(&next),
                None => return seen,
            }
        }
    }

    #[test]
    fn pages_of_the_grid_have_each_job_once_and_in_order() {
        let nodes: Vec<Vec<JobStatus>> = (0..4_u64)
            .map(|node| {
                let count = [0, 3, 7, 20][node as usize];
                let state = |number| if number % 5 == 4 { State::Waiting } else { State::Planned };
                (0..count)
                    .map(|number| job(node * 100 + number, number * 7 % 20 + node, state(number)))
                    .collect()
            })
            .collect();
        for order in [Order::Latest, Order::Queue] {
            let mut all: Vec<Cursor> = nodes.iter().flatten().map(|job| order.place(job)).collect();
            all.sort_by(|one, other| order.compare(*one, *other));
            let all: Vec<JobId> = all.into_iter().map(|place| place.1).collect();
            for limit in [1, 2, 5, 100] {
                assert_eq!(paged(order, limit, &nodes), all, "{order:?} with {limit} on a page");
            }
        }
    }

    #[test]
    fn page_that_ends_early_holds_the_others_back() {
        // The first node has looked at many jobs of other names, and not yet at its older ones.
        let next = Some(Cursor(Time::from_secs(50), JobId::from_number(9)).word());
        let first = JobPage { jobs: vec![job(1, 60, State::Planned)], next: next.clone() };
        let second =
            JobPage { jobs: vec![job(2, 55, State::Planned), job(3, 40, State::Planned)], next: None };
        let page = merged(Order::Latest, 10, vec![first, second]);
        assert_eq!(page.jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [1, 2].map(JobId::from_number));
        assert_eq!(page.next, next);
    }

    #[test]
    fn job_that_was_handed_over_is_listed_once() {
        let page = |state| JobPage { jobs: vec![job(1, 5, state)], next: None };
        let both = merged(Order::Latest, 9, vec![page(State::HandedOver), page(State::Planned)]);
        assert_eq!(both.jobs.iter().map(|job| job.state).collect::<Vec<_>>(), [State::Planned]);
        let alone = merged(Order::Latest, 9, vec![page(State::HandedOver)]);
        assert_eq!(alone.jobs.len(), 1, "its heir does not answer");
    }
}
