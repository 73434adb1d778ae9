//! Lists the symbols known to the runtime.

use crate::error::{Answer, Exit};
use crate::value::Value;

macro_rules! names {
    ($($field:ident $name:literal,)*) => {
        /// Holds the symbols known to the runtime, which are pinned: a program may remove them from their packages.
        #[derive(Clone, Copy)]
        pub(crate) struct Names {
            /// The symbol object of nil.
            pub(crate) nil: Value,
            /// The errors for "out of memory" and "stack overflow", created in advance.
            pub(crate) spare_error: Value,
            pub(crate) spare_overflow: Value,
            /// The string for the message of the error for "out of memory".
            pub(crate) spare_message: Value,
            $(pub(crate) $field: Value,)*
        }

        impl Names {
            /// Returns the names before any symbol exists.
            pub(super) const fn unset() -> Names {
                Names {
                    nil: Value::NIL,
                    spare_error: Value::NIL,
                    spare_overflow: Value::NIL,
                    spare_message: Value::NIL,
                    $($field: Value::NIL,)*
                }
            }

            /// Returns the symbols with a name.
            pub(super) fn symbols(&self) -> impl Iterator<Item = Value> {
                [$(self.$field,)*].into_iter()
            }

            /// Returns the names whose symbols `symbol` finds or makes, but without symbol object and errors.
            pub(super) fn find(mut symbol: impl FnMut(&str) -> Answer) -> Result<Names, Exit> {
                Ok(Names { $($field: symbol($name)?,)* ..Names::unset() })
            }
        }
    };
}

names! {
    t "T",
    quote "QUOTE",
    function "FUNCTION",
    lambda "LAMBDA",
    lambda_closure "LAMBDA-CLOSURE",
    macro_ "MACRO",
    declare "DECLARE",
    special "SPECIAL",
    the "THE",
    optional "&OPTIONAL",
    rest "&REST",
    key "&KEY",
    aux "&AUX",
    body "&BODY",
    allow_other_keys "&ALLOW-OTHER-KEYS",
    self_ "SELF",
    class "CLASS",
    package "*PACKAGE*",
    standard_output "*STANDARD-OUTPUT*",
    standard_input "*STANDARD-INPUT*",
    error_output "*ERROR-OUTPUT*",
    terminal_io "*TERMINAL-IO*",
    error_handler "*ERROR-HANDLER*",
    gc_hook "*GC-HOOK*",
    evalhook "*EVALHOOK*",
    features "*FEATURES*",
    modules "*MODULES*",
    load_path "*LOAD-PATH*",
    loading "*LOADING*",
    loading_folder "*LOADER-CURRENT-DIRECTORY*",
    load_verbose "*LOAD-VERBOSE*",
    print_circle "*PRINT-CIRCLE*",
    print_length "*PRINT-LENGTH*",
    print_level "*PRINT-LEVEL*",
    print_case "*PRINT-CASE*",
    read_base "*READ-BASE*",
    readtable "*READTABLE*",
    random_state "*RANDOM-STATE*",
    keep_builtin "LARGESSE:KEEP-BUILTIN",
    load_library "LARGESSE:LOAD-LIBRARY",
    read_formula "LARGESSE:READ-FORMULA",
    signal_handlers "*SIGNAL-HANDLERS*",
    print_base "*PRINT-BASE*",
    debug "*DEBUG*",
    compile_after "SYSTEM:*COMPILE-AFTER*",
    otherwise "OTHERWISE",
    and "AND",
    or "OR",
    not "NOT",
    member "MEMBER",
    satisfies "SATISFIES",
    cons "CONS",
    append "APPEND",
    apply "APPLY",
    vector "VECTOR",
    adjoin "ADJOIN",
    plus "+",
    minus "-",
    block "BLOCK",
    send "SEND",
    slot "SLOT",
    unquote "LARGESSE:UNQUOTE",
    splice "LARGESSE:SPLICE",
    nomethod ":NOMETHOD",
    documentation ":DOCUMENTATION",
    function_documentation ":FUNCTION-DOCUMENTATION",
    variable_documentation ":VARIABLE-DOCUMENTATION",
    setf_method ":SETF-METHOD",
    setf_update ":SETF-UPDATE",
    prin1 ":PRIN1",
    test ":TEST",
    test_not ":TEST-NOT",
    key_key ":KEY",
    start ":START",
    end ":END",
    start1 ":START1",
    end1 ":END1",
    start2 ":START2",
    end2 ":END2",
    count ":COUNT",
    from_end ":FROM-END",
    initial_element ":INITIAL-ELEMENT",
    initial_contents ":INITIAL-CONTENTS",
    initial_value ":INITIAL-VALUE",
    element_type ":ELEMENT-TYPE",
    fill_pointer ":FILL-POINTER",
    displaced_to ":DISPLACED-TO",
    displaced_index_offset ":DISPLACED-INDEX-OFFSET",
    size ":SIZE",
    use_ ":USE",
    nicknames ":NICKNAMES",
    direction ":DIRECTION",
    input ":INPUT",
    output ":OUTPUT",
    io ":IO",
    if_exists ":IF-EXISTS",
    if_does_not_exist ":IF-DOES-NOT-EXIST",
    append_key ":APPEND",
    error_key ":ERROR",
    allow_other_keys_key ":ALLOW-OTHER-KEYS",
    float_key ":FLOAT",
    integer_key ":INTEGER",
    bit_key ":BIT",
    character_key ":CHARACTER",
    downcase ":DOWNCASE",
    upcase ":UPCASE",
    adjustable ":ADJUSTABLE",
    quit ":QUIT",
    interrupt ":INTERRUPT",
    overwrite ":OVERWRITE",
    radix ":RADIX",
    junk_allowed ":JUNK-ALLOWED",
    hash ":HASH",
    rehash_size ":REHASH-SIZE",
    not_found ":NOT-FOUND",
}
