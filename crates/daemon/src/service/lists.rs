//! Lists of jobs: those that this node accepted, and those of the whole grid, page by page in the same order.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use shoal_api::{JobPage, JobStatus, PAGE_DEFAULT, PAGE_MAX, Problem, State};
use shoal_model::{JobId, NodeId};
use shoal_protocols::node::{End, Phase};
use utoipa::IntoParams;

use super::history::Cursor;
use super::{Service, Wrong, view};
use crate::elsewhere::Question;

/// Jobs that are looked at for one page of those with a given name.
const SCAN_MAX: usize = 10_000;
/// How long the others have for their pages: who lists jobs looks at the screen.
const WITHIN: Duration = Duration::from_secs(2);

/// Which jobs are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// In these states only, with commas between.
    pub state: Option<String>,
    /// With this in their names only.
    pub name: Option<String>,
    /// How many on a page, at most 1000.
    pub limit: Option<usize>,
    /// Where the page begins: `next` of the page before.
    pub cursor: Option<String>,
}

/// The order of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// The last accepted first, those that have ended included.
    Latest,
    /// Those that have not ended, by their start.
    Queue,
}

impl Order {
    /// Which of two places comes first in a list.
    fn compare(self, one: Cursor, other: Cursor) -> Ordering {
        match self {
            Order::Latest => other.cmp(&one),
            Order::Queue => one.cmp(&other),
        }
    }
}

/// A page of one node's list, as nodes tell it to each other.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Listing {
    jobs: Vec<Listed>,
    /// Where the next page begins; none if this is the last.
    next: Option<Cursor>,
}

/// A job of a list.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Listed {
    /// Where it stands. Not worked out again from its status, which may be newer than the list.
    place: Cursor,
    /// Of one that was handed over: who has it now.
    heir: Option<String>,
    job: JobStatus,
}

/// Which page of a list is wanted.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    order: Order,
    after: Option<Cursor>,
    limit: usize,
    /// Whether jobs are passed over, so that a page may end before it is full.
    sifted: bool,
}

impl From<Listing> for JobPage {
    fn from(listing: Listing) -> JobPage {
        let jobs = listing.jobs.into_iter().map(|listed| listed.job).collect();
        JobPage { jobs, next: listing.next.map(Cursor::word), silent: 0 }
    }
}

impl Service {
    /// A page of the jobs that this node accepted.
    pub async fn list(&self, query: &ListQuery, order: Order) -> Result<Listing, Wrong> {
        let states = read_states(query.state.as_deref())?;
        let Wanted { limit, after: mut cursor, .. } = query.wanted(order)?;
        let mut page = Listing::default();
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
                    let heir = match facts.phase {
                        Phase::Ended(End::HandedOver(heir)) => Some(heir.to_string()),
                        Phase::Ended(_) | Phase::Seeking | Phase::Placed { .. } => None,
                    };
                    let job = view::status(&facts, self.history.story(job).as_ref(), self.view());
                    page.jobs.push(Listed { place: *place, heir, job });
                    if page.jobs.len() == limit {
                        page.next = (*place != last || some.len() == most).then_some(*place);
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
                page.next = Some(last);
                return Ok(page);
            }
        }
    }

    /// A page of the jobs of all nodes that answer.
    pub async fn list_of_grid(&self, query: &ListQuery, order: Order) -> Result<JobPage, Wrong> {
        let wanted = query.wanted(order)?;
        let mut pages = vec![(self.setting.me, self.list(query, order).await?)];
        let question = Question::List { order, query: query.clone() };
        let asked = self.elsewhere.members().len();
        pages.extend(self.ask_all_within::<Listing>(&question, WITHIN).await);
        let silent = (asked + 1).saturating_sub(pages.len());
        Ok(JobPage { silent: silent as u32, ..merged(wanted, pages).into() })
    }
}

impl ListQuery {
    fn wanted(&self, order: Order) -> Result<Wanted, Wrong> {
        let wrong = |field: &str, why: String| Wrong { status: 400, problem: Problem::new(why).field(field) };
        let limit = self.limit.unwrap_or(PAGE_DEFAULT);
        if !(1..=PAGE_MAX).contains(&limit) {
            return Err(wrong("limit", format!("`limit` is {limit}: expected 1 to {PAGE_MAX}")));
        }
        let unknown = || wrong("cursor", "`cursor` is none that a page ended with".to_owned());
        let after = self.cursor.as_ref().map(|word| Cursor::read(word).ok_or_else(unknown)).transpose()?;
        Ok(Wanted { order, after, limit, sifted: self.name.is_some() })
    }
}

/// One page out of those of several nodes, in the same order.
fn merged(wanted: Wanted, pages: Vec<(NodeId, Listing)>) -> Listing {
    let Wanted { order, limit, .. } = wanted;
    let answered: BTreeSet<String> = pages.iter().map(|(node, _)| node.to_string()).collect();
    let pages: Vec<Listing> = pages.into_iter().map(|(_, page)| page.sound(wanted)).collect();
    // Beyond the first place where a page ends and its list does not, nobody knows what comes next.
    let ends = pages.iter().filter_map(|page| page.next);
    let end = ends.min_by(|one, other| order.compare(*one, *other));
    let mut jobs: Vec<Listed> = pages.into_iter().flat_map(|page| page.jobs).collect();
    jobs.retain(|listed| {
        let known = end.is_none_or(|end| order.compare(listed.place, end).is_le());
        // A job that was handed over is told by who has it now, if that one answers.
        known && listed.heir.as_ref().is_none_or(|heir| !answered.contains(heir))
    });
    jobs.sort_by(|one, other| order.compare(one.place, other.place));
    let cut = jobs.len() > limit;
    jobs.truncate(limit);
    let last = jobs.last().map(|listed| listed.place).filter(|_| cut);
    Listing { jobs, next: last.or(end) }
}

impl Listing {
    /// What of another node's page can be meant: else one that says nonsense could empty everybody's list, or have it go
    /// on for ever.
    fn sound(mut self, wanted: Wanted) -> Listing {
        let Wanted { order, after, limit, sifted } = wanted;
        let is_after = |place| after.is_none_or(|after| order.compare(place, after).is_gt());
        self.jobs.retain(|listed| is_after(listed.place));
        self.jobs.truncate(limit);
        let full = self.jobs.len() == limit;
        let goes_on = |next: &Cursor| {
            is_after(*next) && self.jobs.iter().all(|listed| order.compare(listed.place, *next).is_le())
        };
        let next = self.next.filter(goes_on).filter(|_| full || sifted);
        Listing { next, ..self }
    }
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
    use shoal_model::units::{SpanText, TimeText};
    use shoal_model::{Span, Time};

    use super::*;

    fn job(number: u64, state: State) -> JobStatus {
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
            accepted: Some(TimeText(Time::ZERO)),
            promised: None,
            planned: None,
            started: None,
            skew: None,
            ended: None,
            code: None,
            usage: None,
            tasks: vec![],
            outputs: None,
        }
    }

    fn at(secs: u64, number: u64) -> Cursor {
        Cursor(Time::from_secs(secs), JobId::from_number(number))
    }

    fn listed(number: u64, secs: u64) -> Listed {
        Listed { place: at(secs, number), heir: None, job: job(number, State::Planned) }
    }

    fn wanted(order: Order, limit: usize) -> Wanted {
        Wanted { order, after: None, limit, sifted: false }
    }

    fn numbers(page: &Listing) -> Vec<JobId> {
        page.jobs.iter().map(|listed| listed.job.id).collect()
    }

    /// All jobs of some nodes, read page by page as a node would give them; `spoil` changes what the first one says.
    fn paged(
        mut wanted: Wanted,
        nodes: &[Vec<Listed>],
        spoil: impl Fn(&mut Listing, Option<Cursor>),
    ) -> Vec<JobId> {
        let mut seen: Vec<JobId> = vec![];
        for _ in 0..1_000 {
            let Wanted { order, after, limit, .. } = wanted;
            let page = |(node, jobs): (u64, &Vec<Listed>)| {
                let mut jobs: Vec<Listed> = jobs.clone();
                jobs.retain(|job| after.is_none_or(|after| order.compare(job.place, after).is_gt()));
                jobs.sort_by(|one, other| order.compare(one.place, other.place));
                let next = jobs.get(limit).and_then(|_| jobs.get(limit - 1)).map(|job| job.place);
                jobs.truncate(limit);
                let mut page = Listing { jobs, next };
                if node == 0 {
                    spoil(&mut page, after);
                }
                (NodeId(node), page)
            };
            let all = merged(wanted, (0..).zip(nodes).map(page).collect());
            assert!(all.jobs.len() <= limit);
            seen.extend(numbers(&all));
            match all.next {
                Some(next) => wanted.after = Some(next),
                None => return seen,
            }
        }
        panic!("there is no end of it");
    }

    fn nodes() -> Vec<Vec<Listed>> {
        let jobs = |node: u64| {
            let count = [0, 3, 7, 20][node as usize];
            (0..count).map(|number| listed(node * 100 + number, number * 7 % 20 + node)).collect()
        };
        (0..4).map(jobs).collect()
    }

    fn sorted(order: Order, nodes: &[Vec<Listed>]) -> Vec<JobId> {
        let mut all: Vec<Cursor> = nodes.iter().flatten().map(|listed| listed.place).collect();
        all.sort_by(|one, other| order.compare(*one, *other));
        all.into_iter().map(|place| place.1).collect()
    }

    #[test]
    fn pages_of_the_grid_have_each_job_once_and_in_order() {
        let nodes = nodes();
        for order in [Order::Latest, Order::Queue] {
            for limit in [1, 2, 5, 100] {
                let read = paged(wanted(order, limit), &nodes, |_, _| ());
                assert_eq!(read, sorted(order, &nodes), "{order:?} with {limit} on a page");
            }
        }
    }

    #[test]
    fn node_that_says_nonsense_neither_hides_the_jobs_of_others_nor_has_them_listed_for_ever() {
        let nodes = nodes();
        let first = |order| match order {
            Order::Latest => Cursor(Time::NEVER, JobId([u8::MAX; 16])),
            Order::Queue => Cursor(Time::ZERO, JobId([0; 16])),
        };
        for order in [Order::Latest, Order::Queue] {
            let wanted = wanted(order, 4);
            let read = paged(wanted, &nodes, |page, _| page.next = Some(first(order)));
            assert_eq!(read, sorted(order, &nodes), "its list goes on before it begins");
            let read = paged(wanted, &nodes, |page, after| page.next = after);
            assert_eq!(read, sorted(order, &nodes), "it goes on where it began");
            // It is asked for what comes after a place, and tells all again.
            let again = |page: &mut Listing, _| {
                page.jobs = (900..904).map(|number| listed(number, 10)).collect();
                page.next = page.jobs.last().map(|listed| listed.place);
            };
            let read = paged(wanted, &nodes, again);
            assert_eq!(read.len(), sorted(order, &nodes).len() + 4, "what it tells again is told once");
        }
    }

    #[test]
    fn page_that_ends_early_holds_the_others_back() {
        // The first node has looked at many jobs of other names, and not yet at its older ones.
        let first = Listing { jobs: vec![listed(1, 60)], next: Some(at(50, 9)) };
        let second = Listing { jobs: vec![listed(2, 55), listed(3, 40)], next: None };
        let sifted = Wanted { sifted: true, ..wanted(Order::Latest, 10) };
        let page = merged(sifted, vec![(NodeId(1), first), (NodeId(2), second)]);
        assert_eq!(numbers(&page), [1, 2].map(JobId::from_number));
        assert_eq!(page.next, Some(at(50, 9)));
    }

    #[test]
    fn job_that_was_handed_over_is_listed_once() {
        let gone =
            Listed { heir: Some(NodeId(2).to_string()), job: job(1, State::HandedOver), ..listed(1, 5) };
        // The heir has accepted it later.
        let heirs = (NodeId(2), Listing { jobs: vec![listed(1, 8)], next: None });
        let old = (NodeId(1), Listing { jobs: vec![gone], next: None });
        let wanted = wanted(Order::Latest, 9);
        let both = merged(wanted, vec![old.clone(), heirs]);
        assert_eq!(both.jobs.iter().map(|listed| listed.job.state).collect::<Vec<_>>(), [State::Planned]);
        assert_eq!(merged(wanted, vec![old]).jobs.len(), 1, "its heir does not answer");
    }
}
