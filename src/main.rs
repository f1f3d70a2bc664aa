//! The binary: everything is in the library's `cli`.

fn main() -> std::process::ExitCode {
    ragcheck::cli::main()
}
