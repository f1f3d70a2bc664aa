//! `ragcheck storage` against s3rver, a real server of the S3 protocol: what was pushed is pulled byte for byte, whenever the
//! connection is cut and whenever the process is killed.

#[cfg(not(feature = "s3"))]
#[test]
fn a_build_without_storage_says_how_to_get_it() {
    let project = super::project::Project::empty();
    for typed in
        [&["storage", "list", "s3://a/b"][..], &["storage", "push", "s3://a"], &["storage", "pull", "s3://a", "x"]]
    {
        let outcome = project.run(typed);
        outcome.expect_code(2);
        assert!(outcome.stderr.contains("--features s3") && outcome.stdout.is_empty(), "{}", outcome.stderr);
    }
}

#[cfg(feature = "s3")]
mod with_s3rver {
    use super::super::project::{Outcome, Project};
    use std::fs;
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::path::Path;
    use std::process::{Child, Command, Stdio};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::time::{Duration, Instant};

    /// A server with the bucket `evals`, and its data.
    struct Server {
        process: Child,
        port: u16,
        data: tempfile::TempDir,
    }

    impl Server {
        fn start() -> Self {
            let program = std::env::var_os("RAGCHECK_S3RVER").expect("RAGCHECK_S3RVER names no s3rver");
            let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
            let data = tempfile::tempdir().expect("a folder");
            let mut command = Command::new(program);
            command.arg("--directory").arg(data.path()).args(["--address", "127.0.0.1", "--port", &port.to_string()]);
            // Its lists of more than 1,000 objects use a cipher that OpenSSL 3 has among the old ones.
            command.args(["--silent", "--configure-bucket", "evals"]).env("NODE_OPTIONS", "--openssl-legacy-provider");
            let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("s3rver starts");
            until("s3rver listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
            Self { process, port, data }
        }
    }

    impl Drop for Server {
        fn drop(&mut self) {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }

    fn until(what: &str, reached: impl Fn() -> bool) {
        let start = Instant::now();
        while !reached() {
            assert!(start.elapsed() < Duration::from_mins(1), "{what}: not within a minute");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// What becomes of the connections when the bytes are used up.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Then {
        /// Those that there are break; new ones work.
        Recovers,
        /// Those that there are break, and new ones too.
        StaysAway,
        /// They stay open, and nothing comes any more.
        Stalls,
    }

    /// A way to the server on which the network fails after some bytes.
    struct Network {
        port: u16,
        passed: Arc<AtomicU64>,
        failed: Arc<AtomicBool>,
    }

    impl Network {
        fn to(server: u16, bytes: u64, then: Then) -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let port = listener.local_addr().expect("an address").port();
            let (passed, failed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
            let (counted, noted) = (Arc::clone(&passed), Arc::clone(&failed));
            std::thread::spawn(move || {
                for client in listener.incoming().map_while(Result::ok) {
                    if noted.load(Ordering::SeqCst) && then != Then::Recovers {
                        continue;
                    }
                    let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                    for (from, to) in [(&client, &server), (&server, &client)] {
                        let (mut from, mut to) =
                            (from.try_clone().expect("a socket"), to.try_clone().expect("a socket"));
                        let (counted, noted) = (Arc::clone(&counted), Arc::clone(&noted));
                        std::thread::spawn(move || pass(&mut from, &mut to, &counted, &noted, bytes, then));
                    }
                }
            });
            Self { port, passed, failed }
        }
    }

    fn pass(from: &mut TcpStream, to: &mut TcpStream, passed: &AtomicU64, failed: &AtomicBool, most: u64, then: Then) {
        let mut block = [0; 4096];
        while let Ok(read @ 1..) = from.read(&mut block) {
            let before = passed.fetch_add(read as u64, Ordering::SeqCst);
            let left = usize::try_from(most.saturating_sub(before)).unwrap_or(usize::MAX);
            let fails = left < read && (then != Then::Recovers || !failed.swap(true, Ordering::SeqCst));
            if to.write_all(&block[..if fails { left } else { read }]).is_err() {
                break;
            }
            if fails {
                failed.store(true, Ordering::SeqCst);
                if then == Then::Stalls {
                    std::thread::sleep(Duration::from_mins(10));
                }
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }

    fn storage(project: &Project, port: u16, typed: &[&str]) -> Command {
        let mut command = project.command(&[&["storage"], typed].concat());
        command.env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}"));
        command.env("AWS_ACCESS_KEY_ID", "S3RVER").env("AWS_SECRET_ACCESS_KEY", "S3RVER");
        command.stdin(Stdio::null());
        command
    }

    fn run(project: &Project, port: u16, typed: &[&str]) -> Outcome {
        Outcome::of(&mut storage(project, port, typed))
    }

    /// A project with a run, one file of which is sent in parts.
    fn project() -> (Project, String) {
        let project = Project::starter();
        project.run(&["run"]).expect_code(0);
        let folder = project.newest();
        project.write(&format!("{folder}/agent-output.jsonl"), &"a line of what an agent printed\n".repeat(300_000));
        (project, folder)
    }

    /// Every path below a folder, with its content.
    fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            let name = entry.file_name().expect("a name").to_string_lossy().into_owned();
            if entry.is_dir() {
                found.extend(files(&entry).into_iter().map(|(path, text)| (format!("{name}/{path}"), text)));
            } else {
                found.push((name, fs::read(entry).expect("a file")));
            }
        }
        found.sort();
        found
    }

    #[track_caller]
    fn assert_pulls(project: &Project, port: u16, url: &str, folder: &str) {
        let here = tempfile::tempdir().expect("a folder");
        let to = here.path().to_string_lossy().into_owned();
        run(project, port, &["pull", url, "--to", &to]).expect_code(0);
        let name = folder.rsplit('/').next().expect("a name");
        assert!(files(&here.path().join(name)) == files(&project.path(folder)), "{url}: the run is another");
        assert_eq!(fs::read_dir(here.path()).expect("a folder").count(), 1, "{url}: nothing else is there");
    }

    fn is_listed(project: &Project, port: u16, url: &str) -> bool {
        let listed = run(project, port, &["list", url]);
        listed.expect_code(0);
        !listed.stdout.contains("nothing is stored")
    }

    #[test]
    #[ignore = "needs RAGCHECK_S3RVER: the executable s3rver, from npm: .ci/slow"]
    fn needs_s3rver_a_connection_that_is_cut_at_any_byte_loses_nothing() {
        let server = Server::start();
        let (project, folder) = project();
        let whole = |typed: &[&str]| {
            let network = Network::to(server.port, u64::MAX, Then::StaysAway);
            run(&project, network.port, typed).expect_code(0);
            network.passed.load(Ordering::SeqCst)
        };
        let (pushed, pulled) =
            (whole(&["push", "s3://evals/whole"]), whole(&["pull", "s3://evals/whole", "--to", "pulled"]));
        assert!(pushed > 9 << 20 && pulled > 9 << 20, "{pushed} {pulled}");
        assert_pulls(&project, server.port, "s3://evals/whole", &folder);
        let places =
            |bytes: u64| [0, 1, 300, 2_000, 20_000, bytes / 3, bytes / 2, bytes - 3_000, bytes - 600, bytes - 20];
        for (number, place) in places(pushed).into_iter().enumerate() {
            for then in [Then::StaysAway, Then::Recovers] {
                let url = format!("s3://evals/push-{number}-{then:?}");
                let network = Network::to(server.port, place, then);
                let cut = run(&project, network.port, &["push", &url]);
                assert!(network.failed.load(Ordering::SeqCst), "{url}: it was cut");
                if then == Then::Recovers {
                    cut.expect_code(0);
                } else if cut.code != 0 {
                    // The reply to the manifest may have been lost: then the run is whole.
                    cut.expect_code(3);
                    assert!(cut.stderr.contains("no usable reply"), "{}", cut.stderr);
                    if is_listed(&project, server.port, &url) {
                        assert_pulls(&project, server.port, &url, &folder);
                    }
                    run(&project, server.port, &["push", &url]).expect_code(0);
                }
                assert_pulls(&project, server.port, &url, &folder);
            }
        }
        for (number, place) in places(pulled).into_iter().enumerate() {
            for then in [Then::StaysAway, Then::Recovers] {
                let to = format!("pulled-{number}-{then:?}");
                let network = Network::to(server.port, place, then);
                let cut = run(&project, network.port, &["pull", "s3://evals/whole", "--to", &to]);
                assert!(network.failed.load(Ordering::SeqCst), "{to}: it was cut");
                if cut.code != 0 {
                    assert_eq!((cut.code, then), (3, Then::StaysAway), "{to}: {}", cut.stderr);
                    let left = fs::read_dir(project.path(&to)).map_or(0, Iterator::count);
                    assert_eq!(left, 0, "{to}: something is half-written");
                    run(&project, server.port, &["pull", "s3://evals/whole", "--to", &to]).expect_code(0);
                }
                let name = folder.rsplit('/').next().expect("a name");
                assert!(files(&project.path(&format!("{to}/{name}"))) == files(&project.path(&folder)), "{to}");
            }
        }
    }

    #[test]
    #[ignore = "needs RAGCHECK_S3RVER: the executable s3rver, from npm: .ci/slow"]
    fn needs_s3rver_a_process_that_is_killed_leaves_nothing_half_written() {
        let server = Server::start();
        let (project, folder) = project();
        let killed = |place: u64, typed: &[&str]| {
            let network = Network::to(server.port, place, Then::Stalls);
            let mut process = storage(&project, network.port, typed).stderr(Stdio::null()).spawn().expect("it starts");
            until("the network stalls", || network.failed.load(Ordering::SeqCst));
            process.kill().expect("killed");
            assert!(!process.wait().expect("it has ended").success());
        };
        for place in [100, 3_000, 50_000, 1 << 20, 8 << 20, 9 << 20] {
            let url = format!("s3://evals/killed-{place}");
            killed(place, &["push", &url]);
            assert!(!is_listed(&project, server.port, &url), "{url}");
            run(&project, server.port, &["push", &url]).expect_code(0);
            assert_pulls(&project, server.port, &url, &folder);
            let to = format!("pulled-{place}");
            killed(place, &["pull", &url, "--to", &to]);
            assert_eq!(
                fs::read_dir(project.path(&to)).map_or(0, Iterator::count),
                0,
                "{to}: something is half-written"
            );
            run(&project, server.port, &["pull", &url, "--to", &to]).expect_code(0);
            let name = folder.rsplit('/').next().expect("a name");
            assert!(files(&project.path(&format!("{to}/{name}"))) == files(&project.path(&folder)), "{to}");
            assert!(files(&project.path(".ragcheck/tmp")).is_empty(), "what a killed pull left is removed");
        }
    }

    #[test]
    #[ignore = "needs RAGCHECK_S3RVER: the executable s3rver, from npm: .ci/slow"]
    fn needs_s3rver_a_damaged_object_is_refused_and_names_itself() {
        let server = Server::start();
        let (project, folder) = project();
        run(&project, server.port, &["push", "s3://evals/team"]).expect_code(0);
        let name = folder.rsplit('/').next().expect("a name");
        let contents = server.data.path().join(format!("evals/team/runs/{name}/files"));
        let objects = fs::read_dir(&contents).expect("contents").map(|entry| entry.expect("an entry").path());
        let objects: Vec<_> = objects.filter(|path| path.to_string_lossy().ends_with("_object")).collect();
        assert_eq!(objects.len(), files(&project.path(&folder)).len());
        for object in objects {
            let sound = fs::read(&object).expect("an object");
            let changed: Vec<u8> = sound.iter().rev().copied().chain([b'x']).skip(1).collect();
            for (bytes, words) in [(&changed[..], "SHA-256"), (&sound[..sound.len() / 2], "bytes instead of")] {
                fs::write(&object, bytes).expect("damaged");
                let refused = run(&project, server.port, &["pull", "s3://evals/team", "--to", "pulled"]);
                refused.expect_code(2);
                assert!(refused.stderr.contains(words) && refused.stderr.contains("/files/"), "{}", refused.stderr);
                assert_eq!(fs::read_dir(project.path("pulled")).expect("a folder").count(), 0);
            }
            fs::write(&object, sound).expect("mended");
        }
        assert_pulls(&project, server.port, "s3://evals/team", &folder);
    }

    #[test]
    #[ignore = "needs RAGCHECK_S3RVER: the executable s3rver, from npm: .ci/slow"]
    fn needs_s3rver_partitions_that_meet_in_a_bucket_are_merged_to_the_run_of_one_machine() {
        let server = Server::start();
        let one = Project::starter();
        one.run(&["run"]).expect_code(0);
        for number in 1..=3 {
            let machine = Project::starter();
            machine.run(&["run", "--partition", &format!("hash:{number}/3")]);
            let part = machine.newest();
            run(&machine, server.port, &["push", "s3://evals/commit", &part]).expect_code(0);
        }
        let merging = Project::starter();
        run(&merging, server.port, &["pull", "s3://evals/commit", "--to", "parts"]).expect_code(0);
        let parts = fs::read_dir(merging.path("parts")).expect("parts").map(|entry| entry.expect("an entry").path());
        let parts: Vec<String> = parts.map(|part| part.to_string_lossy().into_owned()).collect();
        assert_eq!(parts.len(), 3);
        let typed: Vec<&str> = ["merge"].into_iter().chain(parts.iter().map(String::as_str)).collect();
        merging.run(&typed).expect_code(0);
        assert_eq!(merging.newest(), one.newest());
        assert!(merging.report(&merging.newest()) == one.report(&one.newest()));
    }

    #[test]
    #[ignore = "needs RAGCHECK_S3RVER: the executable s3rver, from npm: .ci/slow"]
    fn needs_s3rver_a_thousand_recordings_are_pulled_as_they_were_pushed_and_sent_once() {
        let server = Server::start();
        let project = Project::shipped();
        let (url, count) = ("s3://evals/team", files(&project.path("fixtures/cassettes")).len());
        assert!(count > 1_000, "more than a list has on a page: {count}");
        run(&project, server.port, &["push", url, "--recordings"]).expect_code(0);
        let again = run(&project, server.port, &["push", url, "--recordings"]);
        assert!(again.stdout.contains("unchanged"), "{}{}", again.stdout, again.stderr);
        let network = Network::to(server.port, 1 << 20, Then::StaysAway);
        run(&project, network.port, &["pull", url, "--recordings", "--to", "pulled"]).expect_code(3);
        assert!(files(&project.path("pulled")).is_empty());
        run(&project, server.port, &["pull", url, "--recordings", "--to", "pulled"]).expect_code(0);
        assert!(files(&project.path("pulled")) == files(&project.path("fixtures/cassettes")));
    }
}
