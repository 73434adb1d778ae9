//! Starts the program `largesse-bench`. Its code is in `lib.rs`, because the manual pages are made from the options
//! there.

fn main() -> std::process::ExitCode {
    largesse_bench::main()
}
