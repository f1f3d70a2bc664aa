//! The corpus suite: real third-party traffic, trajectories and questions, from the folder that `RAGCHECK_CORPUS` names.
//!
//! Without the variable every test says that it was skipped; with a folder that is not there they fail.

mod exchanges;
mod hostile;
mod published;
mod retrieval;
mod trajectories;
mod vcr;
mod wire;
