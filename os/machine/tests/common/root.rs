//! Makes a folder that takes the place of `/`, for the unit tests of several crates.

use std::path::PathBuf;

/// A root folder with some files. It is removed when this is dropped.
pub(crate) struct Root(pub(crate) PathBuf);

impl Root {
    /// Makes the folder. `name` must be used by no other test of the process.
    pub(crate) fn with(name: &str, files: &[(&str, &str)]) -> Root {
        let root = std::env::temp_dir().join(format!("largesse-root-{name}-{}", std::process::id()));
        for (file, text) in files {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Root(root)
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
