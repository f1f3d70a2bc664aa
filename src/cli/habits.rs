//! Words that people know from other test tools: `--json` is read, and a subcommand of another name is answered with the command
//! that is meant.

use std::ffi::OsString;

/// Subcommands of other tools, and what is meant here.
const MEANT: [(&str, &str); 9] = [
    ("test", "run"),
    ("eval", "run"),
    ("replay", "run"),
    ("record", "run --mode record"),
    ("live", "run --mode live"),
    ("view", "report --to html > report.html"),
    ("diff", "compare"),
    ("validate", "check"),
    ("ls", "list"),
];

/// The words with `--json` as `--format=json`, up to `--`.
pub(super) fn read(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut ours = true;
    let word = |word: OsString| {
        ours &= word != "--";
        if ours && word == "--json" { OsString::from("--format=json") } else { word }
    };
    words.map(word).collect()
}

/// The command that is meant by a subcommand that ragcheck does not have, with the other words as typed.
pub(super) fn meant(words: &[OsString]) -> Option<String> {
    let (_, meant) = MEANT.iter().find(|(other, _)| words.get(1).is_some_and(|word| word == other))?;
    let rest = words.iter().skip(2).map(|word| crate::trace::text::shell_word(&word.to_string_lossy()));
    Some(std::iter::once(format!("ragcheck {meant}")).chain(rest).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::arguments::Arguments;
    use clap::Parser;

    fn words(typed: &str) -> Vec<OsString> {
        typed.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn subcommands_of_other_tools_are_answered_with_the_command_meant() {
        assert_eq!(meant(&words("ragcheck test a.yaml")).as_deref(), Some("ragcheck run a.yaml"));
        assert_eq!(meant(&words("ragcheck record")).as_deref(), Some("ragcheck run --mode record"));
        assert_eq!(meant(&words("ragcheck run")), None);
        for (other, meant) in MEANT {
            assert!(Arguments::try_parse_from(["ragcheck", other]).is_err(), "{other} is a subcommand");
            let typed = format!("ragcheck {}", meant.split(" >").next().unwrap_or_default());
            let parsed = Arguments::try_parse_from(words(&typed)).map(|_| ()).map_err(|told| told.kind());
            let incomplete = clap::error::ErrorKind::MissingRequiredArgument;
            assert!(parsed.is_ok() || parsed == Err(incomplete), "{typed}: {parsed:?}");
        }
    }

    #[test]
    fn options_of_other_tools_are_read_and_words_of_a_test_runner_are_not_touched() {
        let parsed = |typed: &str| Arguments::try_parse_from(read(words(typed).into_iter()));
        for typed in [
            "ragcheck run --json",
            "ragcheck list --json --filter a*",
            "ragcheck run -k a* -j 2 -o report.html -o junit.xml",
        ] {
            assert!(parsed(typed).is_ok(), "{typed}: {:?}", parsed(typed).err());
        }
        assert_eq!(read(words("ragcheck exec -- pytest --json").into_iter())[4], "--json");
    }
}
