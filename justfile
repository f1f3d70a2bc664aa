# What developers do, by name. `just` lists it.

default:
    @just --list

# format, lints, tests
check:
    .ci/run format lints tests

# all that continuous integration checks, and what takes hours
ci:
    .ci/run

slow:
    .ci/slow

# formats all files
fmt:
    cargo fmt

test:
    cargo test

bench:
    cargo bench

# a project of 10,000 recorded lanes, replayed, judged and reported; and 5,000 cases listed
scale:
    cargo build --profile dist --bin ragcheck --example scale
    rm -rf target/scale target/scale-list
    ./target/dist/examples/scale target/scale
    ./target/dist/examples/scale target/scale-list --cases 5000 --repeat 1 --no-recordings
    cd target/scale && time ../dist/ragcheck run
    cd target/scale-list && time ../dist/ragcheck list > ../scale-list.txt

# a run of a million small traces, scored again
million:
    cargo build --profile dist --bin ragcheck --example scale
    rm -rf target/million
    ./target/dist/examples/scale target/million --traces 1000000
    time ./target/dist/ragcheck score target/million/run

# record the shipped suites again, from the simulator (no key needed)
record:
    cargo build --release
    ./target/release/ragcheck simulate fixtures/simulator/fernlight.yaml --port 8091 & echo $! > target/simulator.pid; sleep 1; ./target/release/ragcheck run --mode record --jobs 24; code=$?; ./target/release/ragcheck judge reports/latest --mode record --jobs 8; kill $(cat target/simulator.pid); exit $code

# record scenarios/local-model again, from the chat server that `local` in ragcheck.yaml names: start it first
record-local:
    cargo build --release
    rm -rf fixtures/cassettes/local-model fixtures/cassettes/local-two-stage fixtures/cassettes/local-react fixtures/cassettes/local-prompts
    ./target/release/ragcheck simulate fixtures/simulator/fernlight.yaml --port 8091 & echo $! > target/simulator.pid; sleep 1; for name in local-model local-two-stage local-react local-prompts; do ./target/release/ragcheck run scenarios/$name --criteria scenarios/$name/criteria.yaml --mode record --jobs 1; echo $? > scenarios/$name/expected-exit-code; ./target/release/ragcheck report --to csv > scenarios/$name/expected-criteria.csv; done; kill $(cat target/simulator.pid)

# accept changed snapshots, broken-file messages and schemas
accept:
    INSTA_UPDATE=always UPDATE=1 cargo test

# renew the committed sample report
sample:
    UPDATE=1 cargo test --test suite sample

# record the project that `ragcheck init` makes again, from its own simulator
record-starter:
    cargo build
    rm -rf src/cli/starter/project/recordings
    cd src/cli/starter/project && ragcheck=../../../../target/debug/ragcheck && { $ragcheck simulate simulator/behaviour.yaml & pid=$!; sleep 1; $ragcheck run --mode record --no-history --jobs 8; code=$?; kill $pid; rm -rf reports .ragcheck; exit $code; }
    UPDATE=1 cargo test --test suite starter::the_table
