//! Makes the machine code between the numbers of Lisp and the calling convention of C.
//!
//! A signature has one piece of code, which loads the arguments from words, calls, and stores the result. On x86-64 the
//! call passes through a few instructions made for each function: C expects the number of vector registers in `al` when
//! the function takes any number of arguments, and code that does not know the declaration passes the upper bound.

use crate::compile::{Effort, new_module};
use cranelift_codegen::ir::{
    AbiParam, InstBuilder as _, MemFlagsData, Signature, StackSlotData, StackSlotKind, Type, types,
};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::JITModule;
use cranelift_module::{FuncId, Linkage, Module as _};
use std::collections::HashMap;

/// Bytes of address space for this code, committed on use.
const ROOM: usize = 64 << 20;

/// How the calling convention passes a number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Passed {
    /// An integer or an address.
    Word,
    Double,
    Single,
}

impl Passed {
    fn of(self) -> Type {
        match self {
            Passed::Word => types::I64,
            Passed::Double => types::F64,
            Passed::Single => types::F32,
        }
    }
}

/// The arguments and the result of a function of C.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct CSignature {
    pub(super) arguments: Vec<Passed>,
    pub(super) result: Passed,
}

impl CSignature {
    fn ir(&self, module: &JITModule) -> Signature {
        let mut signature = module.make_signature();
        signature.params = self.arguments.iter().map(|passed| AbiParam::new(passed.of())).collect();
        signature.returns = vec![AbiParam::new(self.result.of())];
        signature
    }
}

/// Calls the function at `target` with `arguments`, a word each, and writes the word of the result.
pub(super) type CallCode = unsafe extern "C" fn(target: usize, arguments: *const u64, result: *mut u64);

/// A function of Rust that is called for one of Lisp: its first argument names the function; at the address are the
/// arguments, a word each, the first of which it overwrites by the result.
pub(super) type CallbackCode = unsafe extern "C" fn(function: u64, words: *mut u64);

/// All code of this kind. It is never freed, as C may keep its addresses.
pub(crate) struct Bridges {
    module: JITModule,
    calls: HashMap<CSignature, usize>,
    /// Addresses of the instructions that set `al`, by the function behind them.
    entries: HashMap<usize, usize>,
    functions: usize,
}

impl Bridges {
    /// Returns the code, which is created at its first use.
    pub(super) fn of(bridges: &mut Option<Bridges>) -> Result<&mut Bridges, String> {
        Ok(match bridges {
            Some(bridges) => bridges,
            none => none.insert(Bridges::new()?),
        })
    }

    fn new() -> Result<Bridges, String> {
        let module = new_module(ROOM, Effort::High, [])?;
        Ok(Bridges { module, calls: HashMap::new(), entries: HashMap::new(), functions: 0 })
    }

    /// Returns the code that calls functions of a signature.
    pub(super) fn call(&mut self, signature: &CSignature) -> Result<CallCode, String> {
        let code = match self.calls.get(signature) {
            Some(code) => *code,
            None => {
                let code = self.make_call(signature)?;
                self.calls.insert(signature.clone(), code);
                code
            }
        };
        let code = std::ptr::with_exposed_provenance::<()>(code);
        // SAFETY: `make_call` made the code for this type, and code is never freed.
        Ok(unsafe { std::mem::transmute::<*const (), CallCode>(code) })
    }

    /// Returns the address to call for the function at `target`.
    pub(super) fn entry(&mut self, target: usize) -> Result<usize, String> {
        if !cfg!(target_arch = "x86_64") {
            return Ok(target);
        }
        if let Some(entry) = self.entries.get(&target) {
            return Ok(*entry);
        }
        // mov eax, 8; movabs r11, target; jmp r11
        let mut code = vec![0xb8, 8, 0, 0, 0, 0x49, 0xbb];
        code.extend_from_slice(&(target as u64).to_le_bytes());
        code.extend_from_slice(&[0x41, 0xff, 0xe3]);
        let signature = self.module.make_signature();
        let id = self.declare(&signature)?;
        self.module.define_function_bytes(id, 16, &code, &[]).map_err(|cause| cause.to_string())?;
        let entry = self.finished(id)?;
        self.entries.insert(target, entry);
        Ok(entry)
    }

    /// Returns the address of code that C calls by a signature, and that calls `callback` for `function`.
    pub(super) fn callback(
        &mut self,
        signature: &CSignature,
        function: u64,
        callback: CallbackCode,
    ) -> Result<usize, String> {
        let id = self.declare(&signature.ir(&self.module))?;
        let mut inner = self.module.make_signature();
        inner.params = vec![AbiParam::new(types::I64); 2];
        self.define(id, |b| {
            let entry = b.create_block();
            b.append_block_params_for_function_params(entry);
            b.switch_to_block(entry);
            let given = b.block_params(entry).to_vec();
            let bytes = 8 * given.len().max(1) as u32;
            let slot = b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 3));
            let words = b.ins().stack_addr(types::I64, slot, 0);
            for (index, value) in given.into_iter().enumerate() {
                b.ins().store(MemFlagsData::trusted(), value, words, 8 * index as i32);
            }
            let inner = b.import_signature(inner);
            let target = b.ins().iconst(types::I64, callback as usize as i64);
            let function = b.ins().iconst(types::I64, function.cast_signed());
            b.ins().call_indirect(inner, target, &[function, words]);
            let result = b.ins().load(signature.result.of(), MemFlagsData::trusted(), words, 0);
            b.ins().return_(&[result]);
        })?;
        self.finished(id)
    }

    fn make_call(&mut self, signature: &CSignature) -> Result<usize, String> {
        let mut outer = self.module.make_signature();
        outer.params = vec![AbiParam::new(types::I64); 3];
        let id = self.declare(&outer)?;
        let inner = signature.ir(&self.module);
        self.define(id, |b| {
            let entry = b.create_block();
            b.append_block_params_for_function_params(entry);
            b.switch_to_block(entry);
            let given = b.block_params(entry).to_vec();
            let (target, words, result) = (given[0], given[1], given[2]);
            let mut arguments = Vec::new();
            for (index, passed) in signature.arguments.iter().enumerate() {
                let value = b.ins().load(passed.of(), MemFlagsData::trusted(), words, 8 * index as i32);
                arguments.push(value);
            }
            let inner = b.import_signature(inner);
            let call = b.ins().call_indirect(inner, target, &arguments);
            let value = b.inst_results(call)[0];
            b.ins().store(MemFlagsData::trusted(), value, result, 0);
            b.ins().return_(&[]);
        })?;
        self.finished(id)
    }

    fn declare(&mut self, signature: &Signature) -> Result<FuncId, String> {
        self.functions += 1;
        self.module
            .declare_function(&format!("bridge{}", self.functions), Linkage::Local, signature)
            .map_err(|cause| cause.to_string())
    }

    fn define(&mut self, id: FuncId, fill: impl FnOnce(&mut FunctionBuilder<'_>)) -> Result<(), String> {
        let mut context = self.module.make_context();
        context.func.signature = self.module.declarations().get_function_decl(id).signature.clone();
        let mut shared = FunctionBuilderContext::new();
        let mut b = FunctionBuilder::new(&mut context.func, &mut shared);
        fill(&mut b);
        b.seal_all_blocks();
        b.finalize(self.module.target_config());
        self.module.define_function(id, &mut context).map_err(|cause| format!("{cause:?}"))
    }

    fn finished(&mut self, id: FuncId) -> Result<usize, String> {
        self.module.finalize_definitions().map_err(|cause| cause.to_string())?;
        Ok(self.module.get_finalized_function(id).expose_provenance())
    }
}
