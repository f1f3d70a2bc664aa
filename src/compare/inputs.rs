//! What the cases of a run ask: digests that tell whether it is the same, and cases that repeat an earlier one.

use crate::plan::{Plan, ResolvedCase};
use crate::scenario::criteria::Estimand;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

/// The cases that repeat an earlier one, `scenario/case` by scenario and case; none if the criteria are about the suite
/// alone, for which they are separate.
pub(super) fn copies(plan: &Plan) -> BTreeMap<(usize, usize), String> {
    if plan.criteria.estimand == Estimand::FixedSuite {
        return BTreeMap::new();
    }
    let first = plan.first_alike();
    let places: Vec<&(usize, usize)> = first.keys().collect();
    let name = |(scenario, case): &(usize, usize)| {
        let scenario = &plan.scenarios[*scenario];
        format!("{}/{}", scenario.name, scenario.cases[*case].case.case)
    };
    let copies = first.iter().enumerate().filter(|(own, (_, first))| own != *first);
    copies.map(|(_, (place, first))| (*place, name(places[*first]))).collect()
}

/// Digests of a case's input, and of its expectations.
pub(super) fn digests(case: &ResolvedCase) -> (String, String) {
    const LABELS: [&str; 4] = ["about", "tags", "covers", "repeat"];
    const EXPECTED: [&str; 3] = ["expect", "excluded_from", "related"];
    let whole = serde_json::to_value(case).unwrap_or_default();
    let text = without(&whole, &|key| LABELS.contains(&key) || EXPECTED.contains(&key));
    let expected = without(&whole, &|key| LABELS.contains(&key) || key == "ask");
    (digest(&text), digest(&expected))
}

/// The value without the members that `left_out` names, at any depth.
fn without(value: &serde_json::Value, left_out: &dyn Fn(&str) -> bool) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Array(all) => Value::Array(all.iter().map(|one| without(one, left_out)).collect()),
        Value::Object(members) => {
            let kept = members.iter().filter(|(key, value)| !left_out(key) && !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), without(value, left_out))).collect())
        }
        other => other.clone(),
    }
}

pub(super) fn digest(value: &serde_json::Value) -> String {
    hex::encode(&Sha256::digest(value.to_string())[..8])
}

#[cfg(test)]
mod tests {
    use crate::compare::compare;
    use crate::compare::sample::summary;
    use crate::compare::summary::Summary;

    fn run(label: &str, passed: u64) -> Summary {
        let names: Vec<String> = (0..8).map(|case| format!("c{case:02}")).collect();
        summary(label, &names.iter().map(|name| (name.as_str(), passed, 1)).collect::<Vec<_>>())
    }

    #[test]
    fn one_question_under_eight_names_is_one_case_of_a_population() {
        let (mut a, mut b) = (run("a", 1), run("b", 0));
        let apart = compare(&a, &b, 0.0).expect("comparable");
        assert_eq!((apart.rows[0].cases, apart.regression), (8, true));
        for case in [&mut a, &mut b].into_iter().flat_map(|side| &mut side.cases[1..]) {
            case.copy_of = "s/c00".into();
        }
        let together = compare(&a, &b, 0.0).expect("comparable");
        assert_eq!((together.rows[0].cases, together.regression), (1, false));
        assert_eq!(together.flips.len(), 8, "each name is still seen to fail");
        b.cases.remove(0);
        b.cases[0].copy_of.clear();
        b.cases[1..].iter_mut().for_each(|case| case.copy_of = "s/c01".into());
        assert_eq!(compare(&a, &b, 0.0).expect("comparable").rows[0].cases, 1, "one side lacks the first");
    }
}
