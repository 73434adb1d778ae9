//! Loaded objects and their relocations, as the dynamic linker has them in memory.

use super::enumeration::Looking;
use crate::start::text;
use core::ffi::{c_int, c_void};
use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};
use libc::{Elf64_Phdr, Elf64_Rela, Elf64_Sym, dl_phdr_info};

/// One entry of a dynamic section.
#[repr(C)]
struct Dynamic {
    tag: i64,
    value: u64,
}

const DT_NULL: i64 = 0;
const DT_PLTRELSZ: i64 = 2;
const DT_PLTGOT: i64 = 3;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_RPATH: i64 = 15;
const DT_JMPREL: i64 = 23;
const DT_RUNPATH: i64 = 29;
const SHN_UNDEF: u16 = 0;
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_TLS: u32 = 7;
const PT_GNU_RELRO: u32 = 0x6474_e552;

/// A loaded shared object or program.
pub(crate) struct Object<'a> {
    info: &'a dl_phdr_info,
}

/// A slot: where it is, and the name of the function it was filled for.
pub(super) struct Slot {
    pub(super) address: usize,
    pub(super) name: &'static [u8],
}

/// A part of an object that its code may write to.
pub(crate) struct Writable {
    /// All of it.
    pub(crate) memory: Range<usize>,
    /// What came from the file; the rest was zero.
    pub(crate) file: Range<usize>,
}

/// Where the object that holds an address was loaded; `None` when no object holds it.
fn base_of(address: *const c_void) -> Option<*mut c_void> {
    // SAFETY: all zero bytes are a valid `Dl_info`.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: any address may be asked about.
    let found = unsafe { libc::dladdr(address, &raw mut info) };
    (found != 0).then_some(info.dli_fbase)
}

/// An address inside this library that no other object can take the place of.
static INSIDE: u8 = 0;

/// Whether an address lies in this library.
pub(crate) fn is_own(address: *const c_void) -> bool {
    base_of(address) == base_of((&raw const INSIDE).cast())
}

/// What `f` says of the main program, which is the first object.
pub(crate) fn main_program<R>(f: impl FnOnce(&Object<'_>) -> R) -> Option<R> {
    let (mut f, mut said) = (Some(f), None);
    each_object(|object| {
        if let Some(f) = f.take() {
            said = Some(f(object));
        }
    });
    said
}

/// Whether an address is the main program's stub for a function that lies elsewhere. A program without
/// position-independent code has one for each function whose address it takes.
pub(crate) fn is_stub(address: *const c_void) -> bool {
    // SAFETY: all zero bytes are a valid `Dl_info`.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    let mut symbol: *const Elf64_Sym = core::ptr::null();
    const RTLD_DL_SYMENT: c_int = 1;
    // SAFETY: any address may be asked about, and with this flag the answer is a pointer to a symbol.
    let found =
        unsafe { libc::dladdr1(address.cast_mut(), &raw mut info, (&raw mut symbol).cast(), RTLD_DL_SYMENT) };
    // SAFETY: the dynamic linker's symbols live as long as their object, and the main program is never unloaded.
    found != 0 && unsafe { symbol.as_ref() }.is_some_and(|symbol| symbol.st_shndx == SHN_UNDEF)
}

/// Whether an address lies in the C library.
pub(crate) fn is_c_library(address: *const c_void) -> bool {
    file_of(address).is_some_and(|file| file.starts_with("libc.so"))
}

/// Whether the object that holds an address has a list of folders (RPATH or RUNPATH) in which the libraries that it
/// opens are searched.
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
    // SAFETY: all zero bytes are a valid `Dl_info`.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: any address may be asked about.
    let found = unsafe { libc::dladdr(address, &raw mut info) };
    let path = text(info.dli_fname);
    let file = path.rsplit(|&byte| byte == b'/').next()?;
    (found != 0).then(|| String::from_utf8_lossy(file).into_owned())
}

/// Whether this library stands before the C library in the order of loading: then its names win.
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

/// Call `f` for each object in the order of loading.
pub(crate) fn each_object(mut f: impl FnMut(&Object<'_>)) {
    unsafe extern "C" fn one<F: FnMut(&Object<'_>)>(
        info: *mut dl_phdr_info,
        _: usize,
        f: *mut c_void,
    ) -> c_int {
        // SAFETY: the C library passes a valid description, and our own closure back.
        let (info, f) = unsafe { (&*info, &mut *f.cast::<F>()) };
        f(&Object { info });
        0
    }
    fn visit<F: FnMut(&Object<'_>)>(f: &mut F) {
        // SAFETY: the callback gets `f` back while it is borrowed here.
        unsafe { libc::dl_iterate_phdr(Some(one::<F>), (&raw mut *f).cast()) };
    }
    let _looking = Looking::begin();
    visit(&mut f);
}

/// Where R's own allocator is, 0 when there is none.
#[derive(Clone, Copy)]
pub(super) struct RAllocator(usize);

impl RAllocator {
    /// Asked for once, and before looking: the linker's answer that there is none takes memory, perhaps from an allocator
    /// that a thread which forks has locked, and that thread waits until nobody looks. The main program, the only
    /// object that this is asked for, stays what it is.
    pub(super) fn find() -> RAllocator {
        static FOUND: AtomicUsize = AtomicUsize::new(usize::MAX);
        // Relaxed, here and below: a number that is the same whoever found it.
        let mut at = FOUND.load(Ordering::Relaxed);
        if at == usize::MAX {
            at = crate::next::symbol(c"Rf_allocVector3").addr();
            FOUND.store(at, Ordering::Relaxed);
        }
        RAllocator(at)
    }
}

impl Object<'_> {
    /// Where it was loaded.
    pub(super) fn base(&self) -> usize {
        self.info.dlpi_addr as usize
    }

    fn name(&self) -> &'static [u8] {
        text(self.info.dlpi_name)
    }

    pub(super) fn name_contains(&self, part: &[u8]) -> bool {
        self.name().windows(part.len()).any(|window| window == part)
    }

    fn file_name_starts_with(&self, start: &[u8]) -> bool {
        self.name().rsplit(|&byte| byte == b'/').next().is_some_and(|file| file.starts_with(start))
    }

    /// libR.so, or the main program of an R that was built without it.
    pub(super) fn is_r(&self, allocator: RAllocator) -> bool {
        let RAllocator(at) = allocator;
        self.file_name_starts_with(b"libR.so") || (self.name().is_empty() && at != 0 && self.holds(at))
    }

    fn holds(&self, address: usize) -> bool {
        let loaded = |header: &&Elf64_Phdr| header.p_type == PT_LOAD;
        self.headers().iter().filter(loaded).any(|header| self.range_of(header).contains(&address))
    }

    /// The dynamic linker, the kernel's page of code, and ourselves are left alone.
    pub(super) fn may_be_patched(&self) -> bool {
        !self.holds((&raw const INSIDE).addr())
            && !self.file_name_starts_with(b"ld-linux")
            && !self.file_name_starts_with(b"linux-vdso")
    }

    /// The part that was made read-only after relocation.
    pub(super) fn relro(&self) -> Range<usize> {
        self.headers()
            .iter()
            .find(|header| header.p_type == PT_GNU_RELRO)
            .map_or(0..0, |header| self.range_of(header))
    }

    /// The part with the code at an address.
    pub(crate) fn code_around(&self, address: usize) -> Option<Range<usize>> {
        const PF_X: u32 = 1;
        let mut headers = self.headers().iter();
        headers.find_map(|header| {
            let range = self.range_of(header);
            let code = header.p_type == PT_LOAD && header.p_flags & PF_X != 0 && range.contains(&address);
            code.then_some(range)
        })
    }

    /// The parts that are mapped writable.
    pub(crate) fn writable(&self) -> impl Iterator<Item = Writable> {
        const PF_W: u32 = 2;
        let headers = self.headers().iter();
        headers.filter(|header| header.p_type == PT_LOAD && header.p_flags & PF_W != 0).map(|header| {
            let memory = self.range_of(header);
            Writable { file: memory.start..memory.start + header.p_filesz as usize, memory }
        })
    }

    /// What the dynamic linker and the C library go on using inside the writable parts.
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
            // SAFETY: the dynamic section says that so many relocations lie there.
            unsafe { core::slice::from_raw_parts(first, count) }.iter().for_each(&mut f);
        }
    }

    /// Every slot that the dynamic linker filled with the address of a named function.
    pub(super) fn each_slot(&self, mut f: impl FnMut(Slot)) {
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
            f(Slot { address, name: text(core::ptr::with_exposed_provenance(tables.strings + name)) });
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

    fn tables(&self) -> Option<Tables> {
        let dynamic = self.headers().iter().find(|header| header.p_type == PT_DYNAMIC)?;
        let mut tables = Tables::default();
        let mut at = core::ptr::with_exposed_provenance::<Dynamic>(self.range_of(dynamic).start);
        loop {
            // SAFETY: a dynamic section ends with DT_NULL, where the loop ends.
            let entry = unsafe { &*at };
            // glibc writes addresses over the offsets of the file; other linkers may not.
            let value = entry.value as usize;
            let address = if value < self.base() { value + self.base() } else { value };
            match entry.tag {
                DT_NULL => break,
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
            // SAFETY: not the last entry.
            at = unsafe { at.add(1) };
        }
        (tables.strings != 0 && tables.symbols != 0).then_some(tables)
    }
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

/// Relocations that store the plain address of a symbol: JUMP_SLOT, GLOB_DAT and the absolute one.
fn is_address_of_symbol(kind: u32) -> bool {
    if cfg!(target_arch = "x86_64") { matches!(kind, 1 | 6 | 7) } else { matches!(kind, 257 | 1025 | 1026) }
}

/// Relocations that copy an object of a library into the program: both use it there.
fn is_copy(kind: u32) -> bool {
    kind == if cfg!(target_arch = "x86_64") { 5 } else { 1024 }
}

/// Relocations of the tables of addresses, which lazy binding goes on filling.
fn is_table_slot(kind: u32) -> bool {
    if cfg!(target_arch = "x86_64") { matches!(kind, 6 | 7) } else { matches!(kind, 1025 | 1026) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_c_library_is_loaded_and_has_a_slot_for_free() {
        let mut seen = false;
        each_object(|object| {
            if object.file_name_starts_with(b"libc.so") {
                object.each_slot(|slot| seen |= slot.name == b"free");
            }
        });
        assert!(seen);
    }
}
