//! Carries out `ragcheck storage`.

use super::{Place, Storage, StorageCommand};
use crate::cassette::Redactor;
use crate::cli::exit::Exit;
use crate::cli::output::{self, Problem};
use crate::cli::{runs, select};
use crate::platform::files;
use crate::suite::recordings::{known_secrets, lock};
use crate::suite::storage::{Bucket, Kind, Outcome, RECORDINGS, StorageError, StoredSet, pull, push};
use crate::trace::text::{plural, quote};
use crate::trial::Variables;
use std::path::PathBuf;

impl From<StorageError> for Problem {
    fn from(error: StorageError) -> Self {
        match &error {
            StorageError::Outage { .. } | StorageError::Busy(_) => Self::Incomplete(error.to_string()),
            StorageError::Local { error: why, .. } if files::is_full_disk(why) => Self::Unwritten(error.to_string()),
            _ => Self::Words(error.to_string()),
        }
    }
}

/// Runs `ragcheck storage`. A secret in what would be pushed gives exit code 1, as in `cassette scan`.
///
/// # Errors
/// If the URL, a variable or a set is unusable, or the storage does not answer.
pub(in crate::cli) fn run(given: &Storage) -> Result<Exit, Problem> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|why| format!("the storage cannot be asked: {why}"))?;
    match &given.command {
        StorageCommand::List { place } => {
            let (sets, notes) = runtime.block_on(open(place)?.0.list())?;
            for note in notes {
                output::remark(&format!("note: {note}"));
            }
            print(place, &sets).map(|()| Exit::Passed)
        }
        StorageCommand::Push { place, runs, recordings, replace } => {
            let (bucket, variables) = open(place)?;
            let (root, project) = select::project()?;
            let redactor = Redactor::new(known_secrets(&project, variables));
            let _held = if *recordings { lock("storage push")? } else { None };
            let sets = if *recordings {
                vec![(Kind::Recordings, RECORDINGS.to_owned(), root.join(&project.cassettes))]
            } else {
                run_folders(runs)?
            };
            let pushing = async |(kind, name, folder): &(Kind, String, PathBuf)| {
                push(&bucket, (*kind, name), folder, *replace, &redactor).await
            };
            runtime.block_on(one_by_one(place, &sets, pushing))
        }
        StorageCommand::Pull { place, runs, recordings, to, replace } => {
            let bucket = open(place)?.0;
            let _held = if *recordings { lock("storage pull")? } else { None };
            let sets: Vec<(Kind, String)> = if *recordings {
                vec![(Kind::Recordings, RECORDINGS.to_owned())]
            } else if runs.is_empty() {
                let stored = runtime.block_on(bucket.list())?.0.into_iter();
                stored.filter(|set| set.kind == Kind::Run).map(|set| (set.kind, set.name)).collect()
            } else {
                runs.iter().map(|name| (Kind::Run, name.clone())).collect()
            };
            let folder = match to {
                Some(to) => to.clone(),
                None if *recordings => {
                    let (root, project) = select::project()?;
                    root.join(project.cassettes)
                }
                None => select::reports_folder(),
            };
            let pulling = async |(kind, name): &(Kind, String)| pull(&bucket, (*kind, name), &folder, *replace).await;
            let exit = runtime.block_on(one_by_one(place, &sets, pulling))?;
            if !*recordings {
                runs::renew_page(&folder.join("any"))?;
            }
            Ok(exit)
        }
    }
}

/// The storage, and the variables of `--env-file`.
fn open(place: &Place) -> Result<(Bucket, Variables), Problem> {
    let variables = select::variables(place.env_file.as_deref())?;
    let bucket = Bucket::open(&place.url, |name| variables.get(name).cloned().or_else(|| std::env::var(name).ok()))?;
    Ok((bucket, variables))
}

/// The run folders that were named, by the names that they have themselves: `latest` is a link.
fn run_folders(named: &[PathBuf]) -> Result<Vec<(Kind, String, PathBuf)>, Problem> {
    let newest = [runs::typed_or_newest(named.first().map(PathBuf::as_path))?];
    let named = if named.is_empty() { &newest } else { named };
    let run = |folder: &PathBuf| {
        runs::is_there(folder)?;
        let whole = files::resolved(folder).map_err(|why| format!("{}: {why}", folder.display()))?;
        let name = whole.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok((Kind::Run, name, whole))
    };
    named.iter().map(run).collect()
}

/// Moves set after set, and prints what became of them, also of those before one that failed.
async fn one_by_one<T>(
    place: &Place,
    sets: &[T],
    moving: impl AsyncFn(&T) -> Result<StoredSet, StorageError>,
) -> Result<Exit, Problem> {
    let mut moved = Vec::new();
    let mut failed = None;
    for set in sets {
        match moving(set).await {
            Ok(set) => moved.push(set),
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    if failed.is_none() || !moved.is_empty() {
        print(place, &moved)?;
    }
    match failed {
        None => Ok(Exit::Passed),
        Some(secrets @ StorageError::Secrets(_)) => {
            output::remark(&format!("error: {secrets}"));
            Ok(Exit::Failed)
        }
        Some(other) => Err(other.into()),
    }
}

fn print(place: &Place, sets: &[StoredSet]) -> Result<(), Problem> {
    output::data(place.format, &sets, |sets| {
        if sets.is_empty() {
            format!("nothing is stored at {}\n", quote(&place.url, 200))
        } else {
            sets.iter().map(text).collect()
        }
    })
}

fn text(set: &StoredSet) -> String {
    let name = match set.kind {
        Kind::Run => format!("run {}", quote(&set.name, 60)),
        Kind::Recordings => RECORDINGS.to_owned(),
    };
    let size = format!("{}, {:.1} MiB", plural(set.files, "file"), set.bytes as f64 / f64::from(1 << 20));
    match set.outcome {
        Outcome::Stored => format!("{name}: {size}\n"),
        Outcome::Pushed => format!("pushed {name}: {size}, {} sent\n", set.transferred),
        Outcome::Pulled => format!("pulled {name}: {size}, {} fetched\n", set.transferred),
        Outcome::Unchanged => format!("{name}: {size}, unchanged\n"),
        Outcome::Kept => {
            let differing: Vec<String> = set.differing.iter().map(|file| quote(file, 60)).collect();
            format!("{name}: the same run is there and stays as it is; other files differ: {}\n", differing.join(", "))
        }
    }
}
