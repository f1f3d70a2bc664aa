//! `ragcheck completions`: prints the completions of a shell.

use super::arguments::{Arguments, Completions};
use super::exit::Exit;
use super::output;
use clap::CommandFactory as _;
use clap_complete::Shell;

pub(super) fn run(given: &Completions) -> Exit {
    output::result(&script(given.shell));
    Exit::Passed
}

/// The script that a shell reads.
fn script(shell: Shell) -> String {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "ragcheck", &mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_of_every_shell_completes_every_subcommand() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell, Shell::Elvish] {
            let script = script(shell);
            for command in Arguments::command().get_subcommands() {
                assert!(script.contains(command.get_name()), "{shell}: {}", command.get_name());
            }
        }
    }
}
