//! Writes the manual pages and the completions of every command: `largesse-generate FOLDER`.
//!
//! Both are made from the options that the commands parse. The commands themselves do not contain this code.
#![expect(clippy::disallowed_macros, reason = "a front prints")]

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

/// The shells for which completions are written, each with the folder and the name of the file in which it looks for
/// them.
const SHELLS: [(Shell, &str, &str); 3] = [
    (Shell::Bash, "bash-completion/completions", "largesse"),
    (Shell::Zsh, "zsh/site-functions", "_largesse"),
    (Shell::Fish, "fish/vendor_completions.d", "largesse.fish"),
];

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1) else {
        eprintln!("largesse-generate FOLDER: writes manual pages and completions, as below PREFIX/share");
        return ExitCode::from(2);
    };
    match write(Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("largesse-generate: {}: {error}", Path::new(&folder).display());
            ExitCode::FAILURE
        }
    }
}

/// Writes all manual pages and completions below `share`.
fn write(share: &Path) -> io::Result<()> {
    let pages = share.join("man/man1");
    fs::create_dir_all(&pages)?;
    let mut documented = command().disable_help_subcommand(true);
    documented.build();
    page(&pages, &documented, "largesse")?;
    for verb in documented.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        page(&pages, verb, &format!("largesse-{}", verb.get_name()))?;
    }
    let mut completed = visible(&command());
    for (shell, folder, file) in SHELLS {
        let folder = share.join(folder);
        fs::create_dir_all(&folder)?;
        clap_complete::generate(shell, &mut completed, "largesse", &mut fs::File::create(folder.join(file))?);
    }
    Ok(())
}

/// Returns the command without the commands and options that `--help` does not list, since `clap_complete` would offer
/// them. Names live as long as this program, because `clap` takes no others.
fn visible(command: &Command) -> Command {
    let lasting = |text: &str| -> &'static str { text.to_owned().leak() };
    let arguments = command.get_arguments().filter(|argument| !argument.is_hide_set()).cloned();
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set()).map(visible);
    let copy = Command::new(lasting(command.get_name())).args(arguments).subcommands(verbs);
    let copy = copy.about(command.get_about().cloned().unwrap_or_default());
    let copy = copy.version(command.get_version().map(lasting));
    let copy = copy.propagate_version(command.is_propagate_version_set());
    match command.get_long_about() {
        Some(text) => copy.long_about(text.clone()),
        None => copy,
    }
}

/// Returns the whole command line interface. The programs that `largesse bench` and `largesse lisp` execute are part
/// of it.
fn command() -> Command {
    largesse_cli::command()
        .mut_subcommand("bench", |_| largesse_bench::command().name("bench").bin_name("largesse bench"))
        .mut_subcommand("lisp", |_| largesse_lisp_command::command().name("lisp").bin_name("largesse lisp"))
}

/// Writes the manual page `name`, in section 1, which documents `command`.
fn page(folder: &Path, command: &Command, name: &str) -> io::Result<()> {
    let version = concat!("Largesse ", env!("CARGO_PKG_VERSION"));
    let man =
        Man::new(command.clone().display_name(name.to_owned())).title(name.to_uppercase()).source(version);
    let mut file = fs::File::create(folder.join(format!("{name}.1")))?;
    man.manual("Largesse").render(&mut file)?;
    if name == "largesse" {
        return Ok(()); // it names the others under SUBCOMMANDS
    }
    writeln!(file, ".SH SEE ALSO\n\\fBlargesse\\fR(1)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page() {
        let share = std::env::temp_dir().join(format!("largesse-generate-{}", std::process::id()));
        write(&share).unwrap();
        let read = |name: &str| fs::read_to_string(share.join(name)).unwrap();
        let main = read("man/man1/largesse.1");
        for verb in command().get_subcommands().filter(|verb| !verb.is_hide_set()) {
            let name = verb.get_name();
            assert!(main.contains(&format!("largesse\\-{name}(1)")), "{name} is not in {main}");
            let page = read(&format!("man/man1/largesse-{name}.1"));
            for option in verb.get_opts().filter(|option| !option.is_hide_set()) {
                let long = option.get_long().unwrap().replace('-', "\\-");
                assert!(page.contains(&long), "{long} is not in {page}");
            }
        }
        for (_, folder, file) in SHELLS {
            let completion = read(&format!("{folder}/{file}"));
            for word in ["fault-engine", "gc-threads", "page-sizes"] {
                assert!(completion.contains(word), "{word} is not in {file}");
            }
        }
        fs::remove_dir_all(&share).unwrap();
    }

    // Seen to fail for the completions when these are made of the whole command.
    #[test]
    fn hidden_options_are_nowhere() {
        let share = std::env::temp_dir().join(format!("largesse-hidden-{}", std::process::id()));
        write(&share).unwrap();
        let pages = ["run", "lisp"].map(|verb| format!("man/man1/largesse-{verb}.1"));
        let completions = SHELLS.map(|(_, folder, file)| format!("{folder}/{file}"));
        for name in pages.iter().chain(&completions) {
            let text = fs::read_to_string(share.join(name)).unwrap().replace("\\-", "-");
            let words: Vec<_> = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').collect();
            for option in ["header", "align", "stress"] {
                let is_option = |word: &&str| word.trim_start_matches('-') == option;
                assert!(!words.iter().any(is_option), "{name} has the option {option}");
            }
            assert!(!words.contains(&"4k"), "{name} has the value 4k");
        }
        fs::remove_dir_all(&share).unwrap();
    }

    /// Options and values that are only for comparisons are in the chapter on settings, and in no guide.
    #[test]
    fn guides_have_no_hidden_options() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        for entry in fs::read_dir(&docs).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|it| it == "md") && !path.ends_with("settings.md") {
                let text = fs::read_to_string(&path).unwrap();
                for option in
                    ["--header", "--align", "--pages 4k", "\\|4k", "LARGESSE_HEADER", "LARGESSE_ALIGN"]
                {
                    assert!(!text.contains(option), "{} has {option}", path.display());
                }
            }
        }
    }
}
