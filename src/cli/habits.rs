//! Words that people know from other test tools: `--json` is read, and a subcommand of another name is answered with the command
//! that is meant.

use super::arguments::Arguments;
use clap::CommandFactory as _;
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

/// The words with `--json`, up to `--`, as the option of the subcommand that takes `json`: `--format=json` of most. A
/// subcommand without such an option is given `--json` as typed, and refuses it.
pub(super) fn read(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    let ours = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let (ours, _) = words.split_at_mut(ours);
    if let Some(option) = ours.iter().any(|word| word == "--json").then(|| option_of_json(ours)).flatten() {
        ours.iter_mut().filter(|word| *word == "--json").for_each(|word| *word = OsString::from(&option));
    }
    words
}

/// The option with which the subcommand prints JSON, and its value.
fn option_of_json(words: &[OsString]) -> Option<String> {
    let all = Arguments::command();
    let named = words.iter().skip(1).filter_map(|word| word.to_str());
    let command = named.fold(&all, |command, word| command.find_subcommand(word).unwrap_or(command));
    let takes_json = |value: &clap::builder::PossibleValue| value.get_name() == "json";
    let option = command.get_arguments().find(|option| option.get_possible_values().iter().any(takes_json))?;
    Some(format!("--{}=json", option.get_long()?))
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

    #[test]
    fn json_is_the_option_that_prints_json_and_is_refused_as_typed_where_there_is_none() {
        for (typed, option) in [
            ("ragcheck run --json", "--format=json"),
            ("ragcheck cassette scan --json", "--format=json"),
            ("ragcheck promote t.json --case a --json", "--output=json"),
            ("ragcheck report reports/latest --json", "--to=json"),
        ] {
            let read = read(words(typed).into_iter());
            assert_eq!(read.last().and_then(|word| word.to_str()), Some(option), "{typed}");
            assert!(Arguments::try_parse_from(&read).is_ok(), "{typed}");
        }
        let told = Arguments::try_parse_from(read(words("ragcheck completions bash --json").into_iter()));
        let told = told.expect_err("an option that it has not").to_string();
        assert!(told.contains("'--json'") && !told.contains("--format"), "{told}");
    }
}
