//! Reads loaded objects and their relocations from the dynamic linker's data in memory.

use super::enumeration::Enumeration;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ops::Range;
use libc::{Elf64_Phdr, Elf64_Rela, Elf64_Sym, dl_phdr_info};

/// An entry of an object's dynamic section (`Elf64_Dyn`).
#[repr(C)]
struct Dynamic {
    tag: i64,
    value: u64,
}

const DT_NULL: i64 = 0;
const DT_NEEDED: i64 = 1;
const DT_PLTRELSZ: i64 = 2;
const DT_PLTGOT: i64 = 3;
const DT_HASH: i64 = 4;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_SONAME: i64 = 14;
const DT_RPATH: i64 = 15;
const DT_JMPREL: i64 = 23;
const DT_RUNPATH: i64 = 29;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
const DT_VERSYM: i64 = 0x6fff_fff0;
const DT_VERDEF: i64 = 0x6fff_fffc;
const DT_VERNEED: i64 = 0x6fff_fffe;
/// Entries with the addresses of tables that the dynamic linker reads at any time, in any thread.
const TABLES: [i64; 9] =
    [DT_HASH, DT_STRTAB, DT_SYMTAB, DT_RELA, DT_JMPREL, DT_GNU_HASH, DT_VERSYM, DT_VERDEF, DT_VERNEED];
const SHN_UNDEF: u16 = 0;
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_TLS: u32 = 7;
const PT_GNU_RELRO: u32 = 0x6474_e552;

/// A loaded shared object or program.
pub(crate) struct Object<'a> {
    info: &'a dl_phdr_info,
}

/// The address of a slot, and the name of the function whose address the dynamic linker stored there.
pub(super) struct FunctionSlot {
    pub(super) address: usize,
    pub(super) name: &'static [u8],
}

/// An ELF segment of an object that is mapped writable.
pub(crate) struct Writable {
    /// Address range of the whole segment.
    pub(crate) memory: Range<usize>,
    /// Address range of the part that was loaded from the file; the rest was filled with zeros.
    pub(crate) file: Range<usize>,
}

/// Returns the address at which the object that holds `address` was loaded; `None` if no object holds it.
fn base_of(address: *const c_void) -> Option<*mut c_void> {
    // SAFETY: all zero bytes are a valid `Dl_info`.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: any address may be asked about.
    let found = unsafe { libc::dladdr(address, &raw mut info) };
    (found != 0).then_some(info.dli_fbase)
}

/// Marks an address inside this library that no symbol of another object can replace.
static INSIDE: u8 = 0;

/// Returns whether an address lies in this library.
pub(crate) fn is_own(address: *const c_void) -> bool {
    base_of(address) == base_of((&raw const INSIDE).cast())
}

/// Calls `f` for the main program, which is the first object, and returns its result.
pub(crate) fn main_program<R>(f: impl FnOnce(&Object<'_>) -> R) -> Option<R> {
    let (mut f, mut said) = (Some(f), None);
    each_object(|object| {
        if let Some(f) = f.take() {
            said = Some(f(object));
        }
    });
    said
}

/// Calls `f` with the symbol that begins at an address, as the dynamic linker knows it; returns `None` if it knows none.
fn symbol_at<R>(address: *const c_void, f: impl FnOnce(&Elf64_Sym) -> R) -> Option<R> {
    // SAFETY: all zero bytes are a valid `Dl_info`.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    let mut symbol: *const Elf64_Sym = core::ptr::null();
    const RTLD_DL_SYMENT: c_int = 1;
    // SAFETY: any address may be asked about, and with this flag the result is a pointer to a symbol.
    let found =
        unsafe { libc::dladdr1(address.cast_mut(), &raw mut info, (&raw mut symbol).cast(), RTLD_DL_SYMENT) };
    // SAFETY: the dynamic linker's symbols live as long as their object, which is not unloaded in between.
    (found != 0).then(|| unsafe { symbol.as_ref() }.map(f)).flatten()
}

/// Returns whether an address is the main program's stub for a function of another object. A program without
/// position-independent code has one for each function whose address it takes.
pub(crate) fn is_stub(address: *const c_void) -> bool {
    symbol_at(address, |symbol| symbol.st_shndx == SHN_UNDEF).unwrap_or(false)
}

/// Returns the addresses of all functions of other objects that this library calls, as far as they are bound.
pub(crate) fn called_by_own() -> Vec<usize> {
    let mut called = Vec::new();
    each_object(|object| {
        if object.is_own() {
            object.each_slot(|slot| {
                let cell = core::ptr::with_exposed_provenance::<usize>(slot.address);
                // SAFETY: a relocation of a loaded object names a word of its data, aligned and readable.
                called.push(unsafe { cell.read() });
            });
        }
    });
    called
}

/// Returns the address range of the function that starts at an address; `None` for a null pointer.
pub(crate) fn extent_of(start: *const c_void) -> Option<Range<usize>> {
    symbol_at(start, |symbol| start.addr()..start.addr() + symbol.st_size as usize)
}

/// Returns the function of another object to which the main program's stub for `name` jumps; `None` if the dynamic
/// linker has not bound it yet.
pub(crate) fn behind_stub(name: &CStr) -> Option<*mut c_void> {
    main_program(|program| {
        let mut found = None;
        program.each_slot(|slot| {
            if slot.name == name.to_bytes() {
                let cell = core::ptr::with_exposed_provenance::<*mut c_void>(slot.address);
                // SAFETY: a relocation of a loaded object names a word of its data, aligned and readable.
                let bound = unsafe { cell.read() };
                if !program.holds(bound.addr()) {
                    found = Some(bound);
                }
            }
        });
        found
    })
    .flatten()
    // Outside the enumeration, since the question takes another lock of the dynamic linker.
    .filter(|bound| base_of(*bound).is_some())
}

/// Returns whether an address lies in the C library.
pub(crate) fn is_c_library(address: *const c_void) -> bool {
    file_of(address).is_some_and(|file| file.starts_with("libc.so"))
}

/// Returns whether the object that holds an address has a list of folders (RPATH or RUNPATH) in which the libraries
/// that it opens are searched.
pub(super) fn has_search_path(address: *const c_void) -> bool {
    let mut has = false;
    each_object(|object| {
        if object.holds(address.addr()) {
            has |= object.tables().is_some_and(|tables| tables.search_path);
        }
    });
    has
}

/// Returns the name, without folders, of the file that an address was loaded from.
pub(crate) fn file_of(address: *const c_void) -> Option<String> {
    file_name(address).map(|file| String::from_utf8_lossy(file).into_owned())
}

/// Returns whether an address lies in another copy of this library, from another file. Does not allocate.
pub(crate) fn is_another_copy(address: *const c_void) -> bool {
    !is_own(address) && file_name(address).is_some_and(|file| file.starts_with(b"liblargesse.so"))
}

fn file_name(address: *const c_void) -> Option<&'static [u8]> {
    // SAFETY: all zero bytes are a valid `Dl_info`.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: any address may be asked about.
    let found = unsafe { libc::dladdr(address, &raw mut info) };
    if found == 0 { None } else { text(info.dli_fname).rsplit(|&byte| byte == b'/').next() }
}

/// Returns whether this library precedes the C library in the order of loading, so that its symbols take precedence.
pub(crate) fn is_preloaded() -> bool {
    let own = (&raw const INSIDE).addr();
    let c_library = libc::getpid as *const () as usize;
    let mut ours_first = None;
    each_object(|object| {
        if ours_first.is_none() && object.holds(own) {
            ours_first = Some(true);
        } else if ours_first.is_none() && object.holds(c_library) && object.file_name_starts_with(b"libc.") {
            ours_first = Some(false);
        }
    });
    ours_first == Some(true)
}

/// Returns the size in bytes of the thread-local data of all objects, with room to align them.
pub(crate) fn thread_local_bytes() -> usize {
    let mut bytes = 0;
    each_object(|object| bytes += object.thread_local_bytes());
    bytes
}

/// Calls `f` for each object in the order of loading.
pub(crate) fn each_object(mut f: impl FnMut(&Object<'_>)) {
    unsafe extern "C" fn one<F: FnMut(&Object<'_>)>(
        info: *mut dl_phdr_info,
        _: usize,
        f: *mut c_void,
    ) -> c_int {
        // SAFETY: the C library passes a valid description, and our own closure.
        let (info, f) = unsafe { (&*info, &mut *f.cast::<F>()) };
        f(&Object { info });
        0
    }
    fn visit<F: FnMut(&Object<'_>)>(f: &mut F) {
        // SAFETY: the callback receives `f` while it is borrowed here.
        unsafe { libc::dl_iterate_phdr(Some(one::<F>), (&raw mut *f).cast()) };
    }
    let _enumeration = Enumeration::begin();
    visit(&mut f);
}

impl Object<'_> {
    /// Returns the address at which the object was loaded.
    pub(super) fn base(&self) -> usize {
        self.info.dlpi_addr as usize
    }

    pub(super) fn name(&self) -> &'static [u8] {
        text(self.info.dlpi_name)
    }

    pub(super) fn name_contains(&self, part: &[u8]) -> bool {
        self.name().windows(part.len()).any(|window| window == part)
    }

    pub(super) fn file_name_starts_with(&self, start: &[u8]) -> bool {
        self.name().rsplit(|&byte| byte == b'/').next().is_some_and(|file| file.starts_with(start))
    }

    /// Returns whether the object is this library.
    pub(crate) fn is_own(&self) -> bool {
        self.holds((&raw const INSIDE).addr())
    }

    pub(crate) fn holds(&self, address: usize) -> bool {
        let loaded = |header: &&Elf64_Phdr| header.p_type == PT_LOAD;
        self.headers().iter().filter(loaded).any(|header| self.range_of(header).contains(&address))
    }

    /// Returns whether the object is neither the dynamic linker, nor the kernel's vDSO, nor this library.
    pub(super) fn may_be_patched(&self) -> bool {
        !self.is_own()
            && !self.file_name_starts_with(b"ld-linux")
            && !self.file_name_starts_with(b"linux-vdso")
    }

    /// Returns the address range that was made read-only after relocation; empty if there is none.
    pub(super) fn relro(&self) -> Range<usize> {
        self.headers()
            .iter()
            .find(|header| header.p_type == PT_GNU_RELRO)
            .map_or(0..0, |header| self.range_of(header))
    }

    /// Returns the address range of the executable segment that contains `address`.
    pub(crate) fn code_around(&self, address: usize) -> Option<Range<usize>> {
        const PF_X: u32 = 1;
        let mut headers = self.headers().iter();
        headers.find_map(|header| {
            let range = self.range_of(header);
            let code = header.p_type == PT_LOAD && header.p_flags & PF_X != 0 && range.contains(&address);
            code.then_some(range)
        })
    }

    /// Returns the size in bytes of each thread's copy of the object's thread-local data, with room to align it.
    fn thread_local_bytes(&self) -> usize {
        let data = self.headers().iter().find(|header| header.p_type == PT_TLS);
        data.map_or(0, |header| (header.p_memsz + header.p_align) as usize)
    }

    /// Returns the segments that are mapped writable, without those that are executable, too.
    pub(crate) fn writable(&self) -> impl Iterator<Item = Writable> {
        const PF_X: u32 = 1;
        const PF_W: u32 = 2;
        let is_writable =
            |header: &&Elf64_Phdr| header.p_type == PT_LOAD && header.p_flags & (PF_W | PF_X) == PF_W;
        self.headers().iter().filter(is_writable).map(|header| {
            let memory = self.range_of(header);
            Writable { file: memory.start..memory.start + header.p_filesz as usize, memory }
        })
    }

    /// Returns the address ranges in writable segments that the dynamic linker and the C library continue to use.
    pub(crate) fn kept_in_place(&self) -> Vec<Range<usize>> {
        let kept = |header: &&Elf64_Phdr| matches!(header.p_type, PT_GNU_RELRO | PT_DYNAMIC | PT_TLS);
        let mut ranges: Vec<_> =
            self.headers().iter().filter(kept).map(|header| self.range_of(header)).collect();
        let Some(tables) = self.tables() else { return ranges };
        if tables.got != 0 {
            let slots = tables.plt_bytes / size_of::<Elf64_Rela>() + 3;
            ranges.push(tables.got..tables.got + slots * size_of::<usize>());
        }
        self.each_relocation(&tables, |relocation| {
            if is_table_slot(relocation.r_info as u32) {
                let at = self.base() + relocation.r_offset as usize;
                ranges.push(at..at + size_of::<usize>());
            }
            if is_copy(relocation.r_info as u32) {
                let symbols = core::ptr::with_exposed_provenance::<Elf64_Sym>(tables.symbols);
                // SAFETY: the relocation's symbol number is an index into this object's table.
                let size = unsafe { (*symbols.add((relocation.r_info >> 32) as usize)).st_size } as usize;
                let at = self.base() + relocation.r_offset as usize;
                ranges.push(at..at + size);
            }
        });
        ranges
    }

    fn each_relocation(&self, tables: &Tables, mut f: impl FnMut(&Elf64_Rela)) {
        for (start, bytes) in [(tables.plt, tables.plt_bytes), (tables.rela, tables.rela_bytes)] {
            if start == 0 {
                continue;
            }
            let count = bytes / size_of::<Elf64_Rela>();
            let first = core::ptr::with_exposed_provenance::<Elf64_Rela>(start);
            // SAFETY: the dynamic section says that `count` relocations begin at `start`.
            unsafe { core::slice::from_raw_parts(first, count) }.iter().for_each(&mut f);
        }
    }

    /// Calls `f` for every slot that the dynamic linker filled with the address of a named function.
    pub(super) fn each_slot(&self, mut f: impl FnMut(FunctionSlot)) {
        let Some(tables) = self.tables() else { return };
        self.each_relocation(&tables, |relocation| {
            let symbol = (relocation.r_info >> 32) as usize;
            if symbol == 0 || !is_address_of_symbol(relocation.r_info as u32) {
                return;
            }
            let symbols = core::ptr::with_exposed_provenance::<Elf64_Sym>(tables.symbols);
            // SAFETY: the relocation's symbol number is an index into this object's table.
            let name = unsafe { (*symbols.add(symbol)).st_name } as usize;
            let address = self.base() + relocation.r_offset as usize;
            f(FunctionSlot {
                address,
                name: text(core::ptr::with_exposed_provenance(tables.strings + name)),
            });
        });
    }

    fn headers(&self) -> &[Elf64_Phdr] {
        // SAFETY: the C library describes the object's own program headers.
        unsafe { core::slice::from_raw_parts(self.info.dlpi_phdr, usize::from(self.info.dlpi_phnum)) }
    }

    fn range_of(&self, header: &Elf64_Phdr) -> Range<usize> {
        let start = self.base() + header.p_vaddr as usize;
        start..start + header.p_memsz as usize
    }

    /// Returns whether a range has a table that the dynamic linker continues to read. Tools that change a finished
    /// library (patchelf) put its symbols into a writable segment.
    pub(crate) fn has_tables_in(&self, at: &Range<usize>) -> bool {
        self.dynamic().any(|entry| TABLES.contains(&entry.tag) && at.contains(&self.address_of(entry)))
    }

    /// Returns the name by which other objects need this one, and the names of those that it needs, without folders.
    pub(crate) fn names(&self) -> (&'static [u8], Vec<&'static [u8]>) {
        let Some(tables) = self.tables() else { return (b"", Vec::new()) };
        let string =
            |entry: &Dynamic| text(core::ptr::with_exposed_provenance(tables.strings + entry.value as usize));
        let named = |tag| self.dynamic().filter(move |entry| entry.tag == tag).map(string);
        let file = |path: &'static [u8]| path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
        let name = named(DT_SONAME).next().unwrap_or_else(|| self.name());
        (file(name), named(DT_NEEDED).map(file).collect())
    }

    /// Returns the entries of the object's dynamic section; none if it has no such section.
    fn dynamic(&self) -> impl Iterator<Item = &Dynamic> {
        let section = self.headers().iter().find(|header| header.p_type == PT_DYNAMIC);
        let mut next = section.map(|header| self.range_of(header).start);
        core::iter::from_fn(move || {
            let at = core::ptr::with_exposed_provenance::<Dynamic>(next?);
            // SAFETY: a dynamic section ends with DT_NULL, after which no entry is read.
            let entry = unsafe { &*at };
            next = (entry.tag != DT_NULL).then_some(at.addr() + size_of::<Dynamic>());
            next.map(|_| entry)
        })
    }

    /// Returns the address that an entry of the dynamic section has. glibc writes addresses over the offsets of the
    /// file; other linkers may not.
    fn address_of(&self, entry: &Dynamic) -> usize {
        let value = entry.value as usize;
        if value < self.base() { value + self.base() } else { value }
    }

    fn tables(&self) -> Option<Tables> {
        let mut tables = Tables::default();
        for entry in self.dynamic() {
            let (value, address) = (entry.value as usize, self.address_of(entry));
            match entry.tag {
                DT_PLTGOT => tables.got = address,
                DT_STRTAB => tables.strings = address,
                DT_SYMTAB => tables.symbols = address,
                DT_JMPREL => tables.plt = address,
                DT_PLTRELSZ => tables.plt_bytes = value,
                DT_RELA => tables.rela = address,
                DT_RELASZ => tables.rela_bytes = value,
                DT_RPATH | DT_RUNPATH => tables.search_path = true,
                _ => {}
            }
        }
        (tables.strings != 0 && tables.symbols != 0).then_some(tables)
    }
}

/// Returns the bytes of a C string that the dynamic linker owns; an empty slice for a null pointer.
pub(crate) fn text(string: *const c_char) -> &'static [u8] {
    if string.is_null() {
        return b"";
    }
    // SAFETY: names of loaded objects and symbols are C strings that live as long as the object.
    unsafe { CStr::from_ptr(string) }.to_bytes()
}

#[derive(Default)]
struct Tables {
    got: usize,
    strings: usize,
    symbols: usize,
    plt: usize,
    plt_bytes: usize,
    rela: usize,
    rela_bytes: usize,
    search_path: bool,
}

/// Returns whether a relocation stores the plain address of a symbol: JUMP_SLOT, GLOB_DAT and the absolute one do.
fn is_address_of_symbol(kind: u32) -> bool {
    if cfg!(target_arch = "x86_64") { matches!(kind, 1 | 6 | 7) } else { matches!(kind, 257 | 1025 | 1026) }
}

/// Returns whether a relocation copies a variable of a library into the program, where both use it.
fn is_copy(kind: u32) -> bool {
    kind == if cfg!(target_arch = "x86_64") { 5 } else { 1024 }
}

/// Returns whether a relocation belongs to the global offset table, which lazy binding continues to fill.
fn is_table_slot(kind: u32) -> bool {
    if cfg!(target_arch = "x86_64") { matches!(kind, 6 | 7) } else { matches!(kind, 1025 | 1026) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_library_is_needed_and_called() {
        let called = called_by_own();
        let mut found = false;
        each_object(|object| {
            let (name, needed) = object.names();
            if name.starts_with(b"libc.so") {
                found = called.iter().any(|&at| object.holds(at));
                assert!(needed.iter().any(|name| name.starts_with(b"ld-linux")), "the C library's linker");
            }
        });
        assert!(found, "this program calls the C library");
    }

    #[test]
    fn linker_tables_are_found() {
        main_program(|program| {
            assert!(program.has_tables_in(&(0..usize::MAX)));
            assert!(!program.has_tables_in(&(0..0)));
            assert!(program.writable().all(|part| !program.has_tables_in(&part.memory)));
        });
    }

    #[test]
    fn c_library_slot_of_free_is_found() {
        let mut seen = false;
        each_object(|object| {
            if object.file_name_starts_with(b"libc.so") {
                object.each_slot(|slot| seen |= slot.name == b"free");
            }
        });
        assert!(seen);
    }
}
