//! Holds the machine code.

use super::passed::PassedForm;
use crate::value::Value;
use cranelift_codegen::ir::{AbiParam, Signature, types};
use cranelift_codegen::settings::{self, Configurable as _};
use cranelift_jit::{ArenaMemoryProvider, JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module as _};

/// Size in bytes of the address space for machine code, committed on use. Calls between functions reach 2 GiB, and
/// separate mappings may lie further apart, with a heap in between.
const ROOM: usize = 1 << 30;

/// A function that machine code calls: its name, its address, and its number of words besides the context.
pub(super) type HelperAddress = (&'static str, fn() -> *const u8, usize);

/// How much time the compiler spends on better code.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Compiles quickly: no optimization, and one pass to allocate registers.
    Low,
    /// Compiles to fast code: optimization, and register allocation with backtracking.
    High,
}

/// The compiler, with all machine code that it has made. The code is never freed.
pub(crate) struct Compiler {
    pub(super) module: JITModule,
    pub(super) effort: Effort,
    pub(super) helpers: Vec<FuncId>,
    functions: usize,
    /// Forms that code names in backtraces.
    #[expect(clippy::vec_box, reason = "code holds their addresses")]
    forms: Vec<Box<PassedForm>>,
}

/// The two entry points of a function.
#[derive(Clone, Copy)]
pub(super) struct EntryPoints {
    /// Entry for all callers, which pass the context, the function, and address and number of its arguments on the root
    /// stack.
    pub(super) entry: FuncId,
    /// Entry for callers of the same compilation and for `entry`, which pass the context, the closure if there are
    /// captured variables, and the arguments. `None` if the body reads the arguments from the root stack.
    pub(super) direct: Option<FuncId>,
}

pub(super) fn words(module: &JITModule, count: usize) -> Signature {
    let mut signature = module.make_signature();
    signature.params = vec![AbiParam::new(types::I64); count];
    signature.returns = vec![AbiParam::new(types::I64)];
    signature
}

/// Starts a module whose machine code has `room` bytes of address space and calls `symbols` by their names.
pub(crate) fn new_module(
    room: usize,
    effort: Effort,
    symbols: impl IntoIterator<Item = (&'static str, *const u8)>,
) -> Result<JITModule, String> {
    let mut flags = settings::builder();
    // The verifier looks for faults of the generator, which tests find.
    let verifies = if cfg!(debug_assertions) { "true" } else { "false" };
    let (optimization, registers) = match effort {
        Effort::Low => ("none", "single_pass"),
        Effort::High => ("speed", "backtracking"),
    };
    for (name, value) in [
        ("opt_level", optimization),
        ("regalloc_algorithm", registers),
        ("is_pic", "false"),
        ("use_colocated_libcalls", "false"),
        ("enable_verifier", verifies),
    ] {
        flags.set(name, value).map_err(|cause| cause.to_string())?;
    }
    let isa = cranelift_native::builder()
        .map_err(str::to_owned)?
        .finish(settings::Flags::new(flags))
        .map_err(|cause| cause.to_string())?;
    let mut builder = JITBuilder::with_isa(isa, cranelift_module::default_libcall_names());
    let memory = ArenaMemoryProvider::new_with_size(room)
        .map_err(|cause| format!("no address space for machine code: {cause}"))?;
    builder.memory_provider(Box::new(memory));
    for (name, address) in symbols {
        builder.symbol(name, address);
    }
    Ok(JITModule::new(builder))
}

impl Compiler {
    /// Starts a compiler whose code calls `helpers`.
    pub(super) fn new(helpers: &[HelperAddress], effort: Effort) -> Result<Compiler, String> {
        let mut module =
            new_module(ROOM, effort, helpers.iter().map(|(name, address, _)| (*name, address())))?;
        let mut declared = Vec::new();
        for (name, _, count) in helpers {
            let signature = words(&module, count + 1);
            let id = module
                .declare_function(name, Linkage::Import, &signature)
                .map_err(|cause| cause.to_string())?;
            declared.push(id);
        }
        Ok(Compiler { module, effort, helpers: declared, functions: 0, forms: Vec::new() })
    }

    /// Returns the address of a form with those around it.
    pub(super) fn passed_form(&mut self, form: Value, outer: *const PassedForm) -> *const PassedForm {
        self.forms.push(Box::new(PassedForm { form, outer }));
        self.forms.last().map_or(std::ptr::null(), |form| std::ptr::from_ref::<PassedForm>(form))
    }

    /// Declares a function of `count` words.
    pub(super) fn declare(&mut self, count: usize) -> Result<FuncId, String> {
        self.functions += 1;
        let signature = words(&self.module, count);
        self.module
            .declare_function(&format!("lisp{}", self.functions), Linkage::Local, &signature)
            .map_err(|cause| cause.to_string())
    }
}
