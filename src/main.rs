//! The binary: everything is in the library's `cli`.

/// A replay makes and drops many small values: the system's allocator took a fifth of its time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Looks at stdout before Rust's runtime does, which opens `/dev/null` for a closed one: then `ragcheck run >&-` would seem to
/// have printed its result.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the section of functions that run before the runtime; the function itself is safe")]
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

#[cfg(target_os = "linux")]
extern "C" fn look() {
    ragcheck::look_at_stdout();
}

fn main() -> std::process::ExitCode {
    ragcheck::command_line()
}
