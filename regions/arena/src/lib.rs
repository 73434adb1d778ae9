//! Pages.
#![no_std]
