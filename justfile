# What developers do, by name. `just` lists it.

default:
    @just --list

# format, lints, tests
check:
    cargo fmt --check
    cargo clippy --all-targets -- -D warnings
    cargo test

test:
    cargo test

bench:
    cargo bench

# record the shipped suites again, from the simulator (no key needed)
record:
    cargo build --release
    ./target/release/ragcheck simulate fixtures/simulator/fernlight.yaml --port 8091 & echo $! > target/simulator.pid; sleep 1; ./target/release/ragcheck run --mode record --jobs 24; code=$?; kill $(cat target/simulator.pid); exit $code

# accept changed snapshots, broken-file messages and schemas
accept:
    INSTA_UPDATE=always UPDATE=1 cargo test

# renew the committed sample report
sample:
    UPDATE=1 cargo test --test suite sample
