//! A third set of mutants, by an author who had seen neither the defects of `ragcheck mutate`, nor the second set, nor
//! what scenarios expect and criteria ask: each breaks a sentence of a requirement in the events of a trial.

#![allow(clippy::ptr_arg, reason = "every edit has the type of the table")]

use serde_json::Value;

/// Makes a group of mutants: the name, the places (indices of events), and the edit at each place, from the last on.
macro_rules! mutants {
    ($($name:literal, $places:expr, $edit:expr;)*) => {
        /// The mutants.
        pub const MUTANTS: &[(&str, super::Edit)] = &[$(($name, |events| super::edit::on(events, $places, $edit))),*];
    };
}

mod edit;
mod harness;
mod managed;
mod react;
mod tool_answer;
mod tool_rag;
mod two_stage;

/// Changes the events of a trial as a defect would; returns whether it changed anything.
pub type Edit = fn(&mut Vec<Value>) -> bool;

/// The groups of mutants.
const GROUPS: &[&[(&str, Edit)]] =
    &[tool_rag::MUTANTS, tool_answer::MUTANTS, two_stage::MUTANTS, managed::MUTANTS, react::MUTANTS, harness::MUTANTS];

/// All mutants: `REQUIREMENT: what is broken`, and the edit.
pub const MUTANTS: &[(&str, Edit)] = &all();

/// Joins the groups; the array's length is the number of mutants.
const fn all() -> [(&'static str, Edit); 97] {
    let mut joined = [GROUPS[0][0]; 97];
    let (mut n, mut g) = (0, 0);
    while g < GROUPS.len() {
        let mut k = 0;
        while k < GROUPS[g].len() {
            joined[n] = GROUPS[g][k];
            n += 1;
            k += 1;
        }
        g += 1;
    }
    joined
}
