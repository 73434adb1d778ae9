# Largesse. Two commands: `make demo` runs the main comparison, `make test` passes every test.
# Both install what they need and say so.

R_PACKAGES    = r-base-core r-cran-matrix libopenblas0-pthread
PEERS         = libjemalloc2 libmimalloc2.0 libtcmalloc-minimal4
TEST_PACKAGES = $(R_PACKAGES) $(PEERS) r-cran-data.table python3 python3-numpy python3-venv sqlite3 gfortran g++ binutils redis-tools openssl openmpi-bin libopenmpi-dev mpich libmpich-dev hwloc-nox euslisp euslisp-dev libgc-dev sbcl pkg-config cmake
EMULATORS     = qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross
PREFIX       ?= /usr/local
LIBRARY       = target/preload/liblargesse.so
COMMAND       = target/release/largesse

.PHONY: all library command plugins demo test test-quick docs test-numa check-deep soak lisp-compat install uninstall dist test-dist clean cargo

all: library command plugins

# What every build needs, before it begins.
cargo:
	@ci/cargo.sh
	@ci/linker.sh

library: cargo
	cargo build --profile preload -p largesse-preload -p largesse-pin

# The commands, and their manual pages and completions.
command: cargo
	cargo build --release -p largesse-cli -p largesse-lisp-command -p largesse-bench -p largesse-generate
	$(COMMAND)-generate target/generated

# For `--far mpi:`, one for each MPI library whose compiler is here.
plugins:
	regions/mpi/plugin/build.sh $(dir $(LIBRARY))

# Stock R, R under Largesse and the allocators beside it, and R with a part of its memory: about a minute after the build.
# Exit 0 only if every answer agrees.
demo: cargo
	@ci/need.sh gcc $(R_PACKAGES) $(PEERS)
	@$(MAKE) --no-print-directory all
	@ci/demo.sh

test: cargo
	@ci/need.sh gcc $(TEST_PACKAGES)
	@$(MAKE) --no-print-directory all
	ci/all.sh quick

# Before each commit: the tests that need neither root, a network nor an installed package.
test-quick: cargo
	ci/test-quick.sh

# The guides (target/book) and the crates (target/doc) as web pages; fetches mdbook into target/tools if it is not in PATH.
docs: cargo
	ci/docs.sh

# Placement on four NUMA nodes and whole programs on an older kernel, in an emulated machine; the kernel is fetched, not
# installed. From then on `make test` does it too.
test-numa: cargo
	@$(MAKE) --no-print-directory library command
	ci/numa.sh

# The files that a fault passes, Miri, sanitizers, fuzzing (nightly), all fault engines as root, and test suites of
# other projects: an hour and more.
check-deep: cargo
	@ci/need.sh gcc gdb $(TEST_PACKAGES) $(EMULATORS)
	@$(MAKE) --no-print-directory all
	ci/fault-path.sh
	ci/isa.sh
	ci/hwloc.sh
	ci/miri.sh
	ci/san.sh
	ci/lisp.sh
	ci/fuzz.sh
	LARGESSE_DEEP=1 ci/cargo-test.sh -p largesse-tests --test 'far_*' --test last_thread --test debug_guard
	ci/foreign.sh
	@$(MAKE) --no-print-directory dist test-dist
	ci/containers.sh

# EusLisp's and jskeus' own files beside eusgl; writes docs/lisp-compat.md. Fetches both repositories unless EUSLISP and
# JSKEUS name folders with them.
lisp-compat: cargo
	@$(MAKE) --no-print-directory command
	ci/lisp-compat.py

# Far memory under many threads, a minute on each store; a thousand starts of Lisp threads; random Lisp programs, two
# hours; random forms beside EusLisp; random calls, an hour for each target.
soak: cargo
	@ci/need.sh gcc
	@$(MAKE) --no-print-directory all
	ci/stress.sh
	ci/start.sh
	ci/lisp.sh 7200
	ci/euslisp.py 100000
	ci/fuzz.sh 3600

# Installs what is built; needs no cargo. DESTDIR=FOLDER and PREFIX=FOLDER as usual.
install:
	@tree=$$(mktemp -d) && trap 'rm -rf "$$tree"' EXIT && packaging/tree.sh "$$tree" && \
	    DESTDIR="$(DESTDIR)" "$$tree/install.sh" "$(PREFIX)"
	@echo "The R package: make -C fronts/r install"

uninstall:
	@if [ -e "$(DESTDIR)$(PREFIX)/share/largesse/uninstall" ]; then "$(DESTDIR)$(PREFIX)/share/largesse/uninstall"; \
	    else echo "largesse is not installed below $(DESTDIR)$(PREFIX)"; fi

# Every package, in dist/, for glibc 2.28 and later; tools come from PyPI and crates.io. packaging/README.md
dist: cargo
	@ci/need.sh gcc binutils python3-venv r-base-core openmpi-bin libopenmpi-dev mpich libmpich-dev
	packaging/build.sh target/dist
	packaging/dist.sh target/dist dist

# Makes the packages once more, which must give the same bytes, then installs each into bare Debian 12 and 13 trees and
# uses it there. Needs root, and the files that `make dist` built. The table is that of packaging/README.md.
test-dist:
	packaging/dist.sh target/dist target/dist-again > /dev/null
	diff dist/SHA256SUMS target/dist-again/SHA256SUMS
	packaging/test.sh dist

clean:
	cargo clean
	$(MAKE) -C fronts/r clean
