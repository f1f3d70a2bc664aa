//! The project that `ragcheck init` creates: questions, documents, two prompts, criteria, a simulator's behaviour,
//! recordings.
//!
//! `ragcheck demo` shows the same project with the files of `demo/` in place of its own: four questions, each recorded three times.
//!
//! The files are in `project/`, which is a runnable project and is embedded in the program. Names that begin with
//! `dot-` begin with a dot in the created project, so that these files do not affect this repository. `just
//! record-starter` re-records it; `tests/suite/starter.rs` checks the table against the folder.

mod table;

/// Relative path and text of each file in the new project.
pub(crate) fn files() -> impl Iterator<Item = (String, &'static str)> {
    table::FILES.iter().map(|(name, text)| (path(name), *text))
}

/// Relative path and text of each file of the demo: the starter project with other questions, recordings and behaviour.
pub(crate) fn demo_files() -> impl Iterator<Item = (String, &'static str)> {
    let own = |name: &str| table::DEMO.iter().any(|(known, _)| *known == name);
    let kept = table::FILES.iter().filter(move |(name, _)| {
        !name.starts_with("recordings/") && !name.starts_with("dot-github/") && !own(name) && *name != "README.md"
    });
    kept.chain(table::DEMO).map(|(name, text)| (path(name), *text))
}

/// Path in the new project of a file in `project/`.
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
