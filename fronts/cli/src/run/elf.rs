//! Reads the parts of an ELF file that decide whether a library can be preloaded into it. Any input gives an answer or
//! an error, never a panic.

use super::unserved::Unserved;
use object::elf::{self, FileHeader64};
use object::read::elf::{Dyn as _, FileHeader as _, ProgramHeader as _, Sym as _};
use object::read::{ReadCache, ReadRef};
use object::{Endianness, read};
use std::fs::File;

/// ELF machine number of the processor for which this command was built.
#[cfg(target_arch = "x86_64")]
const NATIVE: u16 = elf::EM_X86_64;
#[cfg(target_arch = "aarch64")]
const NATIVE: u16 = elf::EM_AARCH64;
#[cfg(target_arch = "riscv64")]
const NATIVE: u16 = elf::EM_RISCV;

/// Symbols that files are searched for: they identify Largesse's two libraries and built-in sanitizers.
const SYMBOLS: [&str; 6] =
    ["pthread_create", "largesse_version", "__asan_init", "__tsan_init", "__msan_init", "__hwasan_init"];

/// The parts of a 64-bit ELF file for this processor that decide whether a library can be preloaded into it.
#[derive(Debug, Default)]
pub(super) struct Elf {
    interpreter: Option<String>,
    /// File names of the needed shared libraries, or `None` without a dynamic section.
    needed: Option<Vec<String>>,
    defined: Vec<&'static str>,
}

/// The reason why an ELF file was not read.
#[derive(Debug)]
pub(super) enum Unreadable {
    /// The file is for another processor or word size.
    Unserved(Unserved),
    /// The file is not a sound ELF file, for the given reason.
    Damaged(String),
}

impl From<read::Error> for Unreadable {
    fn from(error: read::Error) -> Unreadable {
        Unreadable::Damaged(error.to_string())
    }
}

impl Elf {
    pub(super) fn read(file: &File) -> Result<Elf, Unreadable> {
        Elf::parse(&ReadCache::new(file))
    }

    fn parse<'data>(data: impl ReadRef<'data>) -> Result<Elf, Unreadable> {
        let len = data.len().unwrap_or(0).min(20);
        check_identity(data.read_bytes_at(0, len).unwrap_or_default())?;
        let header = FileHeader64::<Endianness>::parse(data)?;
        let endian = header.endian()?;
        let mut found = Elf::default();
        for segment in header.program_headers(endian, data)? {
            if let Some(name) = segment.interpreter(endian, data)? {
                found.interpreter = Some(text(name));
            }
        }
        // A file without section headers runs, too, but tells less.
        let sections = header.sections(endian, data)?;
        if let Some((entries, link)) = sections.dynamic(endian, data)? {
            let strings = sections.strings(endian, data, link)?;
            let needed = entries.iter().filter(|entry| entry.tag32(endian) == Some(elf::DT_NEEDED));
            let name = |entry: &elf::Dyn64<_>| strings.get(entry.val32(endian)?).ok().map(text);
            found.needed = needed.map(name).collect();
        }
        let symbols = sections.symbols(endian, data, elf::SHT_DYNSYM)?;
        for symbol in symbols.iter().filter(|symbol| symbol.is_definition(endian)) {
            let name = symbols.symbol_name(endian, symbol)?;
            found.defined.extend(SYMBOLS.iter().filter(|known| known.as_bytes() == name));
        }
        Ok(found)
    }

    /// Returns whether the file defines `symbol`, which must be one of `SYMBOLS`.
    pub(super) fn defines(&self, symbol: &str) -> bool {
        self.defined.contains(&symbol)
    }

    /// Checks that a library can be preloaded into this program.
    pub(super) fn served(&self) -> Result<(), Unserved> {
        let Some(interpreter) = &self.interpreter else { return Err(Unserved::Static) };
        if interpreter.rsplit('/').next().is_some_and(|name| name.starts_with("ld-musl")) {
            return Err(Unserved::Musl);
        }
        let Some(needed) = &self.needed else { return Ok(()) };
        if needed.is_empty() {
            return Err(Unserved::NoLibraries);
        }
        let linked = needed.iter().find_map(|name| super::preload::sanitizer(name));
        let built_in = self.defined.iter().find(|symbol| symbol.ends_with("san_init"));
        match linked.or(built_in.copied()) {
            Some(name) => Err(Unserved::Sanitizer { name: name.into() }),
            None => Ok(()),
        }
    }

    /// Returns the file name of the MPI library with which the program is linked, if any.
    pub(super) fn mpi(&self) -> Option<&str> {
        let needed = self.needed.as_deref().unwrap_or_default();
        needed.iter().map(String::as_str).find(|name| name.starts_with("libmpi"))
    }

    /// Returns the path of the dynamic loader that the file names, if any.
    pub(super) fn interpreter(&self) -> Option<&str> {
        self.interpreter.as_deref()
    }
}

/// Checks the word size and the processor, which are at the same offsets in every ELF file.
fn check_identity(start: &[u8]) -> Result<(), Unreadable> {
    let (Some(class), Some(order)) = (start.get(4), start.get(5)) else {
        return Err(Unreadable::Damaged("the file ends within its ELF header".into()));
    };
    if start[..4] != elf::ELFMAG {
        return Err(Unreadable::Damaged("not an ELF file".into()));
    }
    if *class == elf::ELFCLASS32 {
        return Err(Unreadable::Unserved(Unserved::Bits32));
    }
    let machine = start.get(18..20).and_then(|bytes| bytes.try_into().ok()).map(|bytes: [u8; 2]| {
        if *order == elf::ELFDATA2MSB { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
    });
    match machine {
        Some(NATIVE) => Ok(()),
        Some(number) => Err(Unreadable::Unserved(Unserved::Machine { number })),
        None => Err(Unreadable::Damaged("the file ends within its ELF header".into())),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Vec<u8> {
        std::fs::read("/proc/self/exe").unwrap()
    }

    #[test]
    fn test_program_can_be_served() {
        let elf = Elf::parse(own().as_slice()).unwrap();
        assert_eq!(elf.served(), Ok(()));
        assert!(elf.needed.unwrap().iter().any(|name| name.starts_with("libc.so")));
    }

    #[track_caller]
    fn check(elf: Elf, want: Result<(), Unserved>) {
        assert_eq!(elf.served(), want);
    }

    fn dynamic(interpreter: &str, needed: &[&str]) -> Elf {
        Elf {
            interpreter: Some(interpreter.into()),
            needed: Some(needed.iter().map(|name| (*name).into()).collect()),
            ..Elf::default()
        }
    }

    #[test]
    fn unserved_programs_give_their_reason() {
        let glibc = "/lib64/ld-linux-x86-64.so.2";
        check(dynamic(glibc, &["libc.so.6"]), Ok(()));
        check(Elf::default(), Err(Unserved::Static));
        check(dynamic(glibc, &[]), Err(Unserved::NoLibraries));
        assert_eq!(dynamic(glibc, &["libm.so.6", "libmpi.so.40"]).mpi(), Some("libmpi.so.40"));
        assert_eq!(dynamic(glibc, &["libm.so.6"]).mpi(), None);
        check(dynamic("/lib/ld-musl-x86_64.so.1", &["libc.so"]), Err(Unserved::Musl));
        let sanitizer = |name: &str| Err(Unserved::Sanitizer { name: name.into() });
        check(dynamic(glibc, &["libasan.so.8", "libc.so.6"]), sanitizer("libasan.so"));
        let built_in = Elf { defined: vec!["__tsan_init"], ..dynamic(glibc, &["libc.so.6"]) };
        check(built_in, sanitizer("__tsan_init"));
    }

    #[test]
    fn short_files_tell_word_size_and_processor() {
        let mut start = own()[..20].to_vec();
        start[4] = elf::ELFCLASS32;
        assert!(matches!(Elf::parse(&start[..6]), Err(Unreadable::Unserved(Unserved::Bits32))));
        start[4] = elf::ELFCLASS64;
        start[18] = 0xf7;
        assert!(matches!(
            Elf::parse(start.as_slice()),
            Err(Unreadable::Unserved(Unserved::Machine { number: 0xf7 }))
        ));
    }

    #[test]
    fn damaged_files_are_errors() {
        let mut whole = own();
        for len in [0, 3, 4, 6, 19, 20, 63, 64, 100, 1000] {
            assert!(Elf::parse(&whole[..len]).is_err(), "len {len}");
        }
        // Inverts each byte of the ELF header and the program headers in turn.
        for place in 20..0x300 {
            whole[place] ^= 0xff;
            let _ = Elf::parse(whole.as_slice()).map(|elf| elf.served());
            whole[place] ^= 0xff;
        }
    }
}
