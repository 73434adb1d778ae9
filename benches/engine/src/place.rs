//! Finds the definitions and the programs.

use super::error::Error;
use std::path::{Path, PathBuf};

/// Returns the folder with `definitions` and `programs`: the named one, else the one installed with the command, else
/// the one of the checkout that the command was built in.
pub(super) fn find(named: Option<&Path>) -> Result<PathBuf, Error> {
    let looked = match named {
        Some(named) => vec![named.to_owned()],
        None => around(&largesse_terminal::own::path().unwrap_or_default()),
    };
    let found =
        looked.iter().find(|root| root.join("definitions").is_dir() && root.join("programs").is_dir());
    found.cloned().ok_or(Error::NoBenches { looked })
}

fn around(command: &Path) -> Vec<PathBuf> {
    let mut places = Vec::new();
    if let Some(prefix) = command.parent().and_then(Path::parent) {
        places.push(prefix.join("share/largesse/benches"));
    }
    // The command may be `target/release/largesse` of a checkout.
    places.extend(command.ancestors().skip(3).take(2).map(|above| above.join("benches")));
    places.push(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches"));
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_search_share_then_their_checkout() {
        let places = around(Path::new("/usr/bin/largesse"));
        assert_eq!(places[0], Path::new("/usr/share/largesse/benches"));
        let places = around(Path::new("/x/target/release/largesse"));
        assert!(places.contains(&PathBuf::from("/x/benches")), "{places:?}");
    }

    #[test]
    fn named_folders_are_the_only_ones_searched() {
        let message = find(Some(Path::new("/nowhere"))).unwrap_err().to_string();
        assert!(message.contains("/nowhere") && message.contains("--programs"), "{message}");
    }
}
