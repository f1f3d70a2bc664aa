//! The command line: arguments, one file per subcommand, exit codes.
//!
//! Results go to stdout, everything else to stderr. A subcommand returns an [`Exit`]; `main` converts it into the
//! process's exit code and prints nothing itself.

mod amount;
mod arguments;
mod base_commit;
mod cassette;
pub mod check;
mod compare;
mod completions;
mod csv_page;
mod decidable;
mod demo;
pub(crate) mod diagnostic;
mod estimate;
mod exec;
mod exit;
mod explain;
mod faults;
mod first_contact;
mod habits;
mod history;
mod import;
mod init;
mod judge;
mod keywords;
mod knowledge;
pub mod list;
mod long_cases;
mod mcp_record;
mod mcp_server;
mod merge;
mod mutate;
mod output;
mod payloads;
mod progress;
mod promote;
mod recording_age;
mod reference;
mod report;
mod review;
mod run;
mod runs;
pub mod schema;
mod score;
mod select;
mod serve;
mod show;
mod simulate;
pub(crate) mod starter;
mod storage;
mod touched;
mod watch;
mod workflow_commands;
mod workflow_file;

pub(crate) use exit::Exit;
pub use output::look_at_stdout;

use crate::{platform::bounds, platform::files, platform::secrets, scenario, trial};
use arguments::{Arguments, Command};
use clap::Parser;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Printed without arguments: two ways to begin.
const FIRST_COMMANDS: &str = "\
ragcheck tests assistants that retrieve documents and answer with tools.

  ragcheck demo                             look: a finished project, a flake and a real break told apart
  ragcheck init --agent 'python agent.py'   my agent: a project that tests an agent of yours, by its command or URL

In a project, `ragcheck run` replays its recordings. `ragcheck --help` lists all commands.";

/// Registers likely keys of the environment, by variable name and value, for redaction of all output. Called first,
/// because any argument may be a key by mistake.
fn register_secrets() {
    secrets::declare(variables().filter(|(name, value)| secrets::looks_secret(name, value)));
}

/// Environment variables that are valid text.
fn variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// Variables of every file that `--env-file` names. Unreadable files are ignored here; the subcommand that needs them
/// reports the error.
fn typed_variables() -> Vec<(String, String)> {
    let typed: Vec<_> = std::env::args_os().skip(1).collect();
    let files =
        typed.iter().enumerate().filter_map(|(place, word)| match word.to_str()?.strip_prefix("--env-file")? {
            "" => typed.get(place + 1).map(PathBuf::from),
            file => file.strip_prefix('=').map(PathBuf::from),
        });
    let texts = files.filter_map(|file| files::read_to_string(file).ok());
    texts.filter_map(|text| trial::read_variables(&text).ok()).flatten().collect()
}

/// Registers the keys that the project names, of any length, and those in variable files on the command line. Also
/// applies the limits that the project lowers.
fn apply_project() {
    let root = crate::scenario::find_root(&std::env::current_dir().unwrap_or_default());
    let project = crate::scenario::load_project(&root, &crate::catalogues()).ok();
    for (bound, amount) in project.iter().flat_map(|project| &project.bounds) {
        bound.lower(*amount);
    }
    let named = |name: &str| {
        project.as_ref().is_some_and(|project| {
            let providers = project.providers.values().map(|provider| &provider.key);
            let bases = project.knowledge_bases.values().map(|base| &base.key);
            providers.chain(bases).any(|key| key.as_deref() == Some(name))
        })
    };
    secrets::declare(variables().filter(|(name, _)| named(name)));
    let of_files = typed_variables().into_iter();
    secrets::declare(of_files.filter(|(name, value)| named(name) || secrets::looks_secret(name, value)));
}

/// Restricts file access from here on to the project's files, paths named by `--allow-path`, and paths on the command
/// line: any argument may be a path.
fn confine(arguments: &Arguments) -> Result<(), output::Problem> {
    let here = select::current_folder()?;
    let value = |typed: std::ffi::OsString| match typed.to_str().filter(|text| text.starts_with("--")) {
        Some(option) => PathBuf::from(option.split_once('=').map_or("", |(_, value)| value)),
        None => PathBuf::from(typed),
    };
    // What a test runner or a server is started with names no file of ours.
    let starts = matches!(arguments.command, Command::Exec(_) | Command::McpRecord(_));
    let ours = |word: &std::ffi::OsString| !starts || word != "--";
    let mut named: Vec<PathBuf> = std::env::args_os().skip(1).take_while(ours).map(value).collect();
    // `--report FORMAT=FILE` is one word.
    let reports = match &arguments.command {
        Command::Run(given) => &given.report[..],
        Command::Exec(given) => &given.report[..],
        Command::Cassette(given) => given.command.reports(),
        _ => &[],
    };
    named.extend(reports.iter().map(|report| report.file.clone()));
    // Access is granted to existing folders, so this one is created first.
    if let Command::Init(given) = &arguments.command {
        let made = files::create_dir_all(&given.folder);
        made.map_err(|why| format!("{} cannot be made: {why}", given.folder.display()))?;
        // GitHub reads workflows of a repository's root.
        named.extend(workflow_file::Below::of(&given.folder).map(|below| below.repository));
    }
    let mut root = scenario::find_root(&here);
    // The demo is a project of its own, whatever the current folder is.
    if let Command::Demo(_) = &arguments.command {
        root = demo::folder()?;
        std::env::set_current_dir(&root).map_err(|why| format!("{}: {why}", root.display()))?;
    }
    for limit in &arguments.limit {
        bounds::set(limit).map_err(|why| output::Problem::Words(format!("--limit: {why}")))?;
    }
    trust(arguments, &root)?;
    let confined = files::confine(&root, &arguments.allow_path, &named);
    confined.map_err(|why| output::Problem::Words(why.to_string()))
}

/// Allows keys for hosts beyond the well-known pairs: from the command line, the environment, and a user file outside
/// the project.
fn trust(arguments: &Arguments, root: &Path) -> Result<(), output::Problem> {
    for pair in &arguments.trust {
        trial::trust::trust(pair).map_err(|why| format!("--trust: {why}"))?;
    }
    let starts = |agent: &&String| matches!(arguments.command, Command::Init(_)) && !first_contact::is_url(agent);
    for url in arguments.agent.iter().filter(|agent| !starts(agent)) {
        trial::trust::name_agents(url).map_err(|why| format!("--agent: {why}"))?;
    }
    if let Ok(urls) = std::env::var("RAGCHECK_AGENT") {
        trial::trust::name_agents(&urls).map_err(|why| format!("RAGCHECK_AGENT: {why}"))?;
    }
    if let Ok(pairs) = std::env::var("RAGCHECK_TRUST") {
        trial::trust::trust(&pairs).map_err(|why| format!("RAGCHECK_TRUST: {why}"))?;
    }
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let Some(settings) = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config"))) else { return Ok(()) };
    let file = settings.join("ragcheck/trust");
    if file.starts_with(root) || !file.is_file() {
        return Ok(());
    }
    let text = files::read_to_string(&file).map_err(|why| format!("{}: {why}", file.display()))?;
    Ok(trial::trust::trust(&text).map_err(|why| format!("{}: {why}", file.display()))?)
}

/// Parses the process's arguments, runs the subcommand, and returns the exit code.
pub fn main() -> ExitCode {
    output::heed_colour();
    register_secrets();
    let words = habits::read(std::env::args_os());
    if words.len() < 2 {
        output::remark(FIRST_COMMANDS);
        return Exit::Usage.into();
    }
    let arguments = match Arguments::try_parse_from(&words) {
        Ok(arguments) => arguments,
        Err(told) => {
            let exit = help(&told);
            if let Some(meant) = habits::meant(&words).filter(|_| told.use_stderr()) {
                output::remark(&format!("meant: {meant}"));
            }
            return exit.into();
        }
    };
    // First: files that declare secrets are read under the restriction too.
    let confined = confine(&arguments);
    if confined.is_ok() {
        apply_project();
    }
    std::panic::set_hook(Box::new(|panic| output::remark(&panic.to_string())));
    let granted = arguments.granted();
    let exit = confined.and_then(|()| match arguments.command {
        Command::Init(given) => init::run(&given),
        Command::Demo(given) => demo::run(&given),
        Command::Run(given) => run::run(&given),
        Command::Exec(given) => exec::run(&given),
        Command::McpRecord(given) => mcp_record::run(&given),
        Command::McpServer(given) => mcp_server::run(&given, granted),
        Command::Check(given) => check::run(&given),
        Command::List(given) => list::run(&given),
        Command::Merge(given) => merge::run(&given),
        Command::Score(given) => score::run(&given),
        Command::Mutate(given) => mutate::run(&given),
        Command::Promote(given) => promote::run(&given),
        Command::Judge(given) => judge::run(&given),
        Command::Review(given) => review::run(&given),
        Command::Compare(given) => compare::run(&given),
        Command::History(given) => history::run(&given),
        Command::Report(given) => report::run(&given),
        Command::Show(given) => show::run(&given),
        Command::Explain(given) => explain::run(&given),
        Command::Faults(given) => faults::run(&given),
        Command::Serve(given) => serve::run(&given),
        Command::Simulate(given) => simulate::run(&given),
        Command::Knowledge(given) => knowledge::run(&given),
        Command::Keywords(given) => keywords::run(&given),
        Command::Cassette(given) => cassette::run(&given),
        Command::Storage(given) => storage::run(&given),
        Command::Runs(given) => runs::run(&given),
        Command::Schema(given) => schema::run(&given),
        Command::Completions(given) => Ok(completions::run(&given)),
    });
    let exit = exit.unwrap_or_else(|problem| {
        output::problem(&problem);
        problem.exit()
    });
    exit.worse(output::printed()).into()
}

/// Prints help, the version, or a mistake in the arguments.
fn help(told: &clap::Error) -> Exit {
    let exit = if told.use_stderr() { Exit::Usage } else { Exit::Passed };
    let rendered = told.render().ansi().to_string();
    let text = secrets::clean(&rendered);
    let text = output::heeded(&text);
    let printed = if told.use_stderr() {
        anstream::stderr().write_all(text.as_bytes())
    } else {
        let mut out = anstream::stdout();
        out.write_all(text.as_bytes()).and_then(|()| out.flush())
    };
    if printed.is_ok() { exit } else { exit.worse(Exit::Unwritten) }
}
