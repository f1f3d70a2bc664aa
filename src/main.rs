//! The binary: everything is in the library's `cli`.

/// A replay makes and drops many small values: the system's allocator took a fifth of its time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    ragcheck::cli::main()
}
