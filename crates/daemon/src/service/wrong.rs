//! Why the service does not do what was asked.

use shoal_api::Problem;
use shoal_model::JobId;

use crate::elsewhere::{Reply, Unreachable};
use crate::inbox::Refused;

/// Why not, with the number that HTTP has for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// As HTTP counts.
    pub status: u16,
    /// In plain words.
    pub problem: Problem,
}

impl Wrong {
    /// What was given makes no sense.
    pub fn nonsense(error: impl Into<String>) -> Wrong {
        Wrong { status: 400, problem: Problem::new(error) }
    }

    /// What was asked for cannot be.
    pub fn impossible(problem: Problem) -> Wrong {
        Wrong { status: 422, problem }
    }

    /// Not now.
    pub fn unavailable(error: impl Into<String>) -> Wrong {
        Wrong { status: 503, problem: Problem::new(error) }
    }

    /// No job has an id that begins so.
    pub fn unknown(prefix: &str) -> Wrong {
        let shown: String = prefix.chars().take(40).collect();
        let problem = Problem::new(format!("no job `{shown}` is known here"));
        Wrong { status: 404, problem: problem.hint("`shoal status` lists the jobs") }
    }

    /// Not to who asks.
    pub fn not_yours() -> Wrong {
        Wrong {
            status: 403,
            problem: Problem::new("no task of that job was placed on who asks for its secrets"),
        }
    }

    /// Several do.
    pub fn ambiguous(prefix: &str, candidates: &[JobId]) -> Wrong {
        let problem = Problem {
            candidates: candidates.iter().map(JobId::to_string).collect(),
            ..Problem::new(format!("`{prefix}` may be any of {} jobs", candidates.len()))
        };
        Wrong { status: 409, problem: problem.hint("give more of its digits") }
    }

    /// The same as an answer.
    pub fn reply(&self) -> Reply {
        Reply::problem(self.status, &self.problem)
    }
}

impl From<Refused> for Wrong {
    fn from(refused: Refused) -> Wrong {
        Wrong::unavailable(refused.to_string())
    }
}

impl From<Unreachable> for Wrong {
    fn from(unreachable: Unreachable) -> Wrong {
        Wrong { status: 502, problem: Problem::new(unreachable.to_string()) }
    }
}
