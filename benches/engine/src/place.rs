//! Where definitions and programs are.

use super::trouble::Trouble;
use std::path::{Path, PathBuf};

/// The folder that holds `definitions` and `programs`: the one that was named, the one installed
/// with the command, the one of the checkout that the command was built in.
pub(super) fn find(named: Option<&Path>) -> Result<PathBuf, Trouble> {
    let looked = match named {
        Some(named) => vec![named.to_owned()],
        None => around(&largesse_terminal::own::path().unwrap_or_default()),
    };
    let found =
        looked.iter().find(|root| root.join("definitions").is_dir() && root.join("programs").is_dir());
    found.cloned().ok_or(Trouble::NoBenches { looked })
}

fn around(command: &Path) -> Vec<PathBuf> {
    let mut places = Vec::new();
    if let Some(prefix) = command.parent().and_then(Path::parent) {
        places.push(prefix.join("share/largesse/benches"));
    }
    // `target/release/largesse` and the like.
    places.extend(command.ancestors().skip(3).take(2).map(|above| above.join("benches")));
    places.push(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches"));
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installed_command_looks_in_share_and_a_built_one_in_its_checkout() {
        let places = around(Path::new("/usr/bin/largesse"));
        assert_eq!(places[0], Path::new("/usr/share/largesse/benches"));
        let places = around(Path::new("/x/target/release/largesse"));
        assert!(places.contains(&PathBuf::from("/x/benches")), "{places:?}");
    }

    #[test]
    fn a_named_folder_is_the_only_one_looked_in() {
        let message = find(Some(Path::new("/nowhere"))).unwrap_err().to_string();
        assert!(message.contains("/nowhere") && message.contains("--programs"), "{message}");
    }
}
