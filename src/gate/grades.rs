//! Grades of a run by rubric item: shown beside the verdicts, without a verdict.

use crate::trace::{GradeValue, Grades};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The grades of one item by one model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ItemGrades {
    /// The item of the rubric.
    pub item: String,
    /// The model that graded.
    pub model: String,
    /// Number of answers that pass.
    pub passed: u64,
    /// Number of answers with a verdict.
    pub n: u64,
    /// Number of answers whose verdict depends on the order of the items.
    pub inconsistent: u64,
    /// Number of answers whose grading reply could not be parsed.
    pub errors: u64,
    /// Number of answers whose requested grade is missing.
    pub not_graded: u64,
}

/// Counts grades by item, in the order in which items first occur.
pub(super) fn item_grades(grades: &Grades) -> Vec<ItemGrades> {
    let mut places: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut rows: Vec<ItemGrades> = Vec::new();
    let mut not_graded = 0;
    for grade in grades.iter() {
        if grade.value == GradeValue::NotGraded {
            not_graded += 1;
            continue;
        }
        let place = *places.entry((&grade.model, &grade.item)).or_insert_with(|| {
            rows.push(ItemGrades { item: grade.item.clone(), model: grade.model.clone(), ..ItemGrades::default() });
            rows.len() - 1
        });
        let row = &mut rows[place];
        match grade.value {
            GradeValue::Pass => (row.passed, row.n) = (row.passed + 1, row.n + 1),
            GradeValue::Fail => row.n += 1,
            GradeValue::Inconsistent => row.inconsistent += 1,
            GradeValue::Error => row.errors += 1,
            GradeValue::NotGraded => {}
        }
    }
    for row in &mut rows {
        row.not_graded = not_graded;
    }
    rows
}
