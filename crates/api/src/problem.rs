//! What the interface says when it does not do what was asked.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What is wrong, with which field, and what to try.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// What is wrong, in plain words.
    pub error: String,
    /// The field of the job or of the question that is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// What to try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The jobs that a shortened id may mean, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<String>,
}

impl Problem {
    /// A problem with nothing but its words.
    pub fn new(error: impl Into<String>) -> Problem {
        Problem { error: error.into(), ..Problem::default() }
    }

    /// The same with the field that is wrong.
    pub fn field(self, field: impl Into<String>) -> Problem {
        Problem { field: Some(field.into()), ..self }
    }

    /// The same with what to try.
    pub fn hint(self, hint: impl Into<String>) -> Problem {
        Problem { hint: Some(hint.into()), ..self }
    }
}
