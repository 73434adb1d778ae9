//! The program `largesse-lisp`. The library beside it has the code, so that manual pages are made from its options.

fn main() -> std::process::ExitCode {
    largesse_lisp_command::main()
}
