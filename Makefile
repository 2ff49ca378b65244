# `make help` lists the targets.  Variables: CC, CFLAGS, CPPFLAGS, LDFLAGS, BUILD (the folder of all
# that is built), SAN=address|undefined|thread, WERROR=1, VERBOSE=1, PREFIX, DESTDIR, CUDA_HOME;
# SUITES='tests/lua/*.lua' runs a part of the tests.

BUILD     ?= build
PREFIX    ?= /usr/local
CUDA_HOME ?= /usr/local/cuda
CFLAGS    ?= -O2 -g
WARNINGS  := -Wall -Wextra -Wshadow -Wpedantic $(if $(WERROR),-Werror)

B       := $(BUILD)$(if $(SAN),/san-$(SAN))
PROGRAM := $(B)/tensorlua
MODULE  := $(B)/tensor.so

MAKEFLAGS += -r --no-print-directory
ifeq ($(MAKELEVEL)$(filter clean,$(MAKECMDGOALS)),0)
MAKEFLAGS += -j$(shell nproc)
endif
.SUFFIXES:
.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all warmup bench install uninstall test check fuzz fuzz-readers docs layers deps deps-test \
        help clean FORCE

comma := ,
Q   := $(if $(VERBOSE),,@)
say  = $(if $(VERBOSE),:,printf '  %-6s %s\n')

# ---- flags ------------------------------------------------------------------------------------

COMPILER := $(shell $(CC) --version 2>/dev/null | head -n 1)
MACHINE  := $(shell $(CC) -dumpmachine 2>/dev/null)
pkg       = $(shell pkg-config $1 2>/dev/null)

SANITIZE_address   := -fsanitize=address -fno-omit-frame-pointer
SANITIZE_undefined := -fsanitize=undefined -fno-sanitize-recover=undefined
SANITIZE_thread    := -fsanitize=thread
SANITIZE_fuzzer    := -fsanitize=fuzzer-no-link,address -fno-omit-frame-pointer
SANITIZE := $(if $(SAN),$(or $(SANITIZE_$(SAN)),$(error SAN is address, undefined or thread)))

LUA_CFLAGS  := $(call pkg,--cflags lua5.4)
LUA_LIBS    := $(call pkg,--libs lua5.4)
BLAS_CFLAGS := $(call pkg,--cflags openblas lapacke)
BLAS_LIBS   := $(call pkg,--libs openblas)
ZLIB_CFLAGS := $(call pkg,--cflags zlib)
ZLIB_LIBS   := $(call pkg,--libs zlib)

# No contraction: an element's value depends neither on the compiler nor on its position.
COMMON := $(CPPFLAGS) -Isrc $(LUA_CFLAGS) $(BLAS_CFLAGS) $(ZLIB_CFLAGS) $(CFLAGS) -fPIC \
          -fvisibility=hidden -pthread -ffp-contract=off $(WARNINGS) $(SANITIZE)
LINK    = $(CC) $(CFLAGS) $(SANITIZE) -pthread $(LDFLAGS)
C11    := -std=c11 -D_POSIX_C_SOURCE=200809L

# The kernels are compiled once per instruction set; cpu.c chooses among them at start.
KERNEL := -std=gnu11 -O3 -fno-math-errno -fno-trapping-math -fwrapv
ISAS   := baseline
ifneq ($(filter x86_64-%,$(MACHINE)),)
ISAS   += avx2 avx512
KERNEL += $(if $(findstring clang,$(COMPILER)),-Wno-pass-failed)
# Not for the baseline: there clang 14 calls the AVX2 functions for four doubles, with SSE registers.
LIBMVEC := $(if $(findstring clang,$(COMPILER)),-fveclib=libmvec)
endif
# What is fuzzed are the readers of files: the kernels need no instruments.
KERNEL += $(if $(filter fuzzer,$(SAN)),-O1 -fno-sanitize=fuzzer-no-link$(comma)address)
ISA_avx2   := -mavx2 -mfma $(LIBMVEC)
ISA_avx512 := -mavx512f -mavx512dq -mavx512bw -mavx512vl -mprefer-vector-width=512 $(LIBMVEC)

# libm.so is a linker script that adds libmvec where the kernels use it.
LIBS := $(BLAS_LIBS) $(ZLIB_LIBS) -lm -ldl

# ---- what is built from what --------------------------------------------------------------------

LUA_FILES := $(sort $(wildcard lua/tensor/*.lua))
SOURCES   := $(wildcard $(addprefix src/,tensor/*.c engine/*.c backend/cpu/*.c frontend/*.c))
KERNELS   := $(wildcard src/backend/cpu/kernels/*.c)

MAIN_OBJ := $(B)/src/main.o
LIB_OBJ  := $(SOURCES:%.c=$(B)/%.o) $(B)/embedded.o \
            $(foreach isa,$(ISAS),$(KERNELS:%.c=$(B)/%.$(isa).o))
# The host's own files (allocator, signals, reading loop) have no place in a stock interpreter.
MODULE_OBJ := $(filter-out $(B)/src/frontend/host%,$(LIB_OBJ))

all: $(PROGRAM) $(MODULE) ## build the program and the shared module (the default)

$(PROGRAM): $(MAIN_OBJ) $(LIB_OBJ) $(B)/link.stamp
	@$(say) LINK $@
	$(Q)$(LINK) -Wl,-E -o $@ $(MAIN_OBJ) $(LIB_OBJ) $(LUA_LIBS) $(LIBS)

# Without liblua: a module takes Lua's functions from the interpreter that loads it.
$(MODULE): $(MODULE_OBJ) $(B)/link.stamp
	@$(say) LINK $@
	$(Q)$(LINK) -shared -o $@ $(MODULE_OBJ) $(LIBS)

compile = $(CC) $(COMMON) $1 $(EXTRA) -MMD -MP -c -o $@ $<

$(B)/%.o: %.c $(B)/compile.stamp
	@mkdir -p $(@D); $(say) CC $<
	$(Q)$(call compile,$(C11))

define kernel_rule
$(B)/src/backend/cpu/kernels/%.$1.o: src/backend/cpu/kernels/%.c $(B)/compile.stamp
	@mkdir -p $$(@D); $$(say) CC '$$< ($1)'
	$$(Q)$$(call compile,$$(KERNEL) $$(ISA_$1) -DTL_ISA=$1)
endef
$(foreach isa,$(ISAS),$(eval $(call kernel_rule,$(isa))))

# A stamp changes only when its text does, so that changed flags, compilers and file lists rebuild.
text_compile := $(COMPILER) $(MACHINE) $(COMMON) $(C11) $(KERNEL) $(ISA_avx2) $(ISA_avx512)
text_link    := $(LDFLAGS) $(LUA_LIBS) $(LIBS) $(LIB_OBJ)
text_lua     := $(LUA_FILES)

$(B)/%.stamp: FORCE
	@mkdir -p $(@D); text='$(subst ','\'',$(text_$*))'; \
	 printf '%s\n' "$$text" | cmp -s - $@ || printf '%s\n' "$$text" > $@

# The Lua files go into the program as text, under their own names, for the tracebacks.
$(B)/embedded.c: $(LUA_FILES) $(B)/lua.stamp
	@$(say) EMBED 'lua/tensor/*.lua'
	$(Q){ echo '#include "frontend/embedded.h"'; n=0; \
	for f in $(LUA_FILES); do n=$$((n + 1)); \
	  echo "static const unsigned char text$$n[] = {"; \
	  od -An -v -tu1 $$f | sed 's/ *\([0-9]\{1,\}\)/\1,/g'; echo '0};'; \
	done; n=0; \
	echo 'const tl_embedded tl_embedded_files[] = {'; \
	for f in $(LUA_FILES); do n=$$((n + 1)); module=$${f#lua/}; module=$${module%.lua}; \
	  echo "{\"$$(echo $$module | tr / .)\", \"$$f\", text$$n, sizeof text$$n - 1},"; \
	done; echo '{0}};'; } > $@

$(B)/embedded.o: $(B)/embedded.c $(B)/compile.stamp
	$(Q)$(call compile,$(C11))

-include $(patsubst %.o,%.d,$(MAIN_OBJ) $(LIB_OBJ)) $(wildcard $(B)/tests/*/*.d)

# ---- running ------------------------------------------------------------------------------------

# `deps` may install what the variables above ask pkg-config for, so the build is a second make.
warmup: deps ## install what is missing, build, and run the tutorial's first experiment
	@$(MAKE) all
	$(Q)$(PROGRAM) scripts/warmup.lua

BENCH := $(patsubst tests/bench/%.c,$(B)/bench/%,$(wildcard tests/bench/*.c))

bench: all $(BENCH) ## measure, against baselines built or run beside the program
	$(Q)TENSORLUA=$(PROGRAM) BENCH_BUILD=$(B)/bench $(PROGRAM) tests/bench/run.lua

# The limits are given their best: this machine's instructions and any order of the arithmetic.
$(B)/tests/bench/%.o: private EXTRA := -Ofast -march=native \
  $(if $(filter x86_64-%,$(MACHINE)),-mprefer-vector-width=512)

$(B)/bench/%: $(B)/tests/bench/%.o $(B)/link.stamp
	@mkdir -p $(@D); $(say) LINK $@
	$(Q)$(LINK) -o $@ $< $(LIBS)

# ---- tests --------------------------------------------------------------------------------------

SUITES ?= tests/c/test_*.c tests/lua/test_*.lua
suites := $(sort $(wildcard $(SUITES)))

# cuRAND's host generator needs the toolkit, though no GPU.
curand := test_random_curand
ifeq ($(wildcard $(CUDA_HOME)/include/curand.h),)
skipped := $(filter tests/c/$(curand).c,$(suites))
suites  := $(filter-out $(skipped),$(suites))
endif
$(B)/tests/c/$(curand).o: private EXTRA := -isystem $(CUDA_HOME)/include
$(B)/tests/$(curand): private EXTRA := -L$(CUDA_HOME)/lib64 -Wl,-rpath,$(CUDA_HOME)/lib64 -lcurand

$(B)/tests/c/test_math.o: private EXTRA := $(KERNEL)

# The test that fails allocations gets the program's own through the linker.
$(B)/tests/test_memory: private EXTRA := $(addprefix -Wl$(comma)--wrap=,malloc calloc realloc aligned_alloc free)

C_TESTS   := $(patsubst tests/c/%.c,$(B)/tests/%,$(filter %.c,$(suites)))
LUA_TESTS := $(filter %.lua,$(suites))

# Absurd sizes are part of the tests, so a sanitizer's allocator must refuse them, not stop.
SAN_ENV_address   := ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1
SAN_ENV_undefined := UBSAN_OPTIONS=print_stacktrace=1
SAN_ENV_thread    := TSAN_OPTIONS='halt_on_error=1 exitcode=66 allocator_may_return_null=1 \
                     $(addprefix suppressions=,$(wildcard tests/tsan.supp))'

test: deps-test ## install what is missing for the tests, build, and run them all
	@$(MAKE) check

check: all $(C_TESTS) ## build and run the tests without looking for dependencies
	$(if $(skipped),@echo '  skipped $(skipped): no curand.h in $(CUDA_HOME)')
	$(Q)TENSORLUA=$(PROGRAM) TENSORLUA_TEST_SAN=$(SAN) $(SAN_ENV_$(SAN)) .ci/suites $(B)/tests $(C_TESTS) $(LUA_TESTS)

$(B)/tests/%: $(B)/tests/c/%.o $(LIB_OBJ) $(B)/link.stamp
	@$(say) LINK $@
	$(Q)$(LINK) -o $@ $< $(LIB_OBJ) $(LUA_LIBS) $(LIBS) -lcmocka $(EXTRA)

# Each reader of files on damaged input, from the seeds in tests/fuzz/corpus; what it finds on the
# way is kept in the build's folder.  An input that fails is printed, and kept there too.  Leaks are
# looked for at the end of each: after every input, which leaves garbage to Lua, it costs the most.
FUZZ_SECONDS ?= 20
FUZZ_FORMATS ?= npy npz safetensors csv

fuzz: ## run libFuzzer on the file readers, FUZZ_SECONDS=20 for each format (with clang)
	$(Q)CC=clang .ci/deps build fuzz
	$(Q)$(MAKE) CC=clang SAN=fuzzer fuzz-readers

fuzz-readers: $(B)/fuzz-readers
	$(Q)for format in $(FUZZ_FORMATS); do \
	  echo "== $$format"; mkdir -p $(B)/corpus/$$format; \
	  TENSORLUA_FUZZ=$$format ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1 $< \
	    -max_total_time=$(FUZZ_SECONDS) -timeout=10 -detect_leaks=0 -max_len=2048 -verbosity=0 \
	    -print_final_stats=1 -dict=tests/fuzz/readers.dict -artifact_prefix=$(B)/ \
	    $(B)/corpus/$$format tests/fuzz/corpus/$$format || exit 1; \
	done

$(B)/fuzz-readers: $(B)/tests/fuzz/readers.o $(LIB_OBJ) $(B)/link.stamp
	@$(say) LINK $@
	$(Q)$(LINK) -fsanitize=fuzzer -o $@ $< $(LIB_OBJ) $(LUA_LIBS) $(LIBS)

docs: all ## write docs/reference.md anew, from the table of operators and the rows in Lua
	$(Q)$(PROGRAM) -e 'io.write(require "tensor.reference"())' > $(B)/reference.md
	$(Q)mv $(B)/reference.md docs/reference.md

layers: ## prove from the #include lines who includes whom
	$(Q).ci/layers

# ---- dependencies, installing, housekeeping -----------------------------------------------------

deps: ## look for what the build needs and install what is absent
	$(Q)CC='$(CC)' .ci/deps build

deps-test: ## the same for the build and the tests
	$(Q)CC='$(CC)' .ci/deps build test

BIN_DIR   := $(DESTDIR)$(PREFIX)/bin
LUA_DIR   := $(DESTDIR)$(PREFIX)/lib/lua/5.4
SHARE_DIR := $(DESTDIR)$(PREFIX)/share/tensorlua
DOC_DIR   := $(DESTDIR)$(PREFIX)/share/doc/tensorlua

install: all ## install under PREFIX (and DESTDIR)
	install -d $(BIN_DIR) $(LUA_DIR) $(SHARE_DIR)/scripts $(DOC_DIR)
	install -m 755 $(PROGRAM) $(BIN_DIR)/tensorlua
	install -m 755 $(MODULE) $(LUA_DIR)/tensor.so
	install -m 644 $(wildcard scripts/*.lua) $(SHARE_DIR)/scripts
	install -m 644 $(wildcard docs/*.*) README.md CHANGELOG.md LICENSE $(DOC_DIR)

uninstall: ## remove what install put there
	rm -f $(BIN_DIR)/tensorlua $(LUA_DIR)/tensor.so
	rm -rf $(SHARE_DIR) $(DOC_DIR)

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1~\2/p' Makefile | \
	 while IFS='~' read -r target text; do printf '%-17s %s\n' "$$target" "$$text"; done

clean: ## remove everything built
	rm -rf $(BUILD)
