//! The program `largesse-bench`. Its code is in `lib.rs`, from whose options manual pages are made.

fn main() -> std::process::ExitCode {
    largesse_bench::main()
}
