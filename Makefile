# SPDX-License-Identifier: GPL-3.0-or-later
# A thin front of Meson; what takes more than a line is in tools/.

BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
export BUILD PREFIX DESTDIR

all: ## build/strain and build/strain-record
	@tools/build.sh

demo: ## install what is missing, build, record a training job, write report.html
	@tools/demo.sh

test: ## install what is missing, build, run every test that this machine can run
	@tools/test.sh

matrix: ## the suite under gcc, clang, sanitizers, valgrind, an ordinary user, a browser
	@tools/matrix.sh $(LEGS)

lint: ## clang-format, clang-tidy, cppcheck, shellcheck, tsc and the sources' own rules
	@tools/lint.sh

fuzz: ## each fuzz target under libFuzzer for FUZZ_SECONDS (60)
	@tools/fuzz.sh $(TARGETS)

fresh: ## make demo and make test on minimal Debian 12 and 13 in a folder (needs root)
	@tools/fresh.sh $(SYSTEMS)

bench: ## what recording costs, beside its floor or peer
	@tools/bench.sh

bundle: ## a tarball that runs without installation or root
	@tools/bundle.sh

frameworks: ## Debian's PyTorch; NVTX, Keras and JAX from PyPI in .frameworks (2 GB), for tests
	@tools/frameworks.sh

docs: all ## docs/metrics.md and docs/studies.md anew from the code
	@ninja -C $(BUILD) tools/strain-metrics tools/strain-studies
	@$(BUILD)/tools/strain-metrics >$(BUILD)/metrics.md
	@mv $(BUILD)/metrics.md docs/metrics.md
	@$(BUILD)/tools/strain-studies >$(BUILD)/studies.md
	@mv $(BUILD)/studies.md docs/studies.md

install: all ## into PREFIX (/usr/local), under DESTDIR
	@meson configure $(BUILD) --prefix $(PREFIX)
	@meson install -C $(BUILD) $(if $(DESTDIR),--destdir $(DESTDIR))

clean: ## remove what was built
	rm -rf $(BUILD) $(BUILD)-* dist report.html

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-11s %s\n", $$1, $$2}' Makefile

.PHONY: all demo test matrix lint fuzz fresh bench bundle frameworks docs install clean help
