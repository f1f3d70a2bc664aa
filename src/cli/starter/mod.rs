//! The project that `ragcheck init` makes: questions, documents, two prompts, criteria, a simulator's behaviour, recordings.
//!
//! The files stand in `project/`, which is a project itself and can be run and recorded in its place, and are part of the
//! program. A name that begins with `dot-` there begins with a dot in the project that is made of it, so that the file has no effect on
//! this repository. `just record-starter` records it again, and `tests/suite/starter.rs` keeps the table to the folder.

mod table;

/// Where a file of the new project goes, relative to its folder, and its text.
pub(crate) fn files() -> impl Iterator<Item = (String, &'static str)> {
    table::FILES.iter().map(|(name, text)| (path(name), *text))
}

/// The path in the new project of a file of `project/`.
fn path(name: &str) -> String {
    name.strip_prefix("dot-").map_or_else(|| name.to_owned(), |rest| format!(".{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_files_get_their_dot_back() {
        assert_eq!(path("dot-github/workflows/ragcheck.yml"), ".github/workflows/ragcheck.yml");
        assert_eq!(path("README.md"), "README.md");
    }
}
