# SPDX-License-Identifier: GPL-3.0-or-later
# A thin front end of Meson; longer commands are scripts in tools/.

BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
export BUILD PREFIX DESTDIR

all: ## build build/strain and build/strain-record
	@tools/build.sh

demo: ## install missing packages, build, record a training job, write report.html
	@tools/demo.sh

test: ## install missing packages, build, run every test that this machine can run
	@tools/test.sh

matrix: ## run the suite under gcc, clang, sanitizers, valgrind, an ordinary user, a browser
	@tools/matrix.sh $(LEGS)

lint: ## run clang-format, clang-tidy, cppcheck, shellcheck, tsc and the project's own rules
	@tools/lint.sh

fuzz: ## run each fuzz target under libFuzzer for FUZZ_SECONDS (60)
	@tools/fuzz.sh $(TARGETS)

fresh: ## run make demo and make test on minimal Debian 12 and 13 in a folder (needs root)
	@tools/fresh.sh $(SYSTEMS)

bench: ## measure the cost of recording, next to a floor or a peer
	@tools/bench.sh

bundle: ## build a tarball that runs without installation or root
	@tools/bundle.sh

frameworks: ## install Debian's PyTorch, and NVTX, Keras and JAX from PyPI in .frameworks (2 GB), for tests
	@tools/frameworks.sh

docs: all ## regenerate docs/metrics.md and docs/studies.md
	@ninja -C $(BUILD) tools/strain-metrics tools/strain-studies
	@$(BUILD)/tools/strain-metrics >$(BUILD)/metrics.md
	@mv $(BUILD)/metrics.md docs/metrics.md
	@$(BUILD)/tools/strain-studies >$(BUILD)/studies.md
	@mv $(BUILD)/studies.md docs/studies.md

install: all ## install into PREFIX (/usr/local), below DESTDIR
	@meson configure $(BUILD) --prefix $(PREFIX)
	@meson install -C $(BUILD) $(if $(DESTDIR),--destdir $(DESTDIR))

clean: ## remove build outputs
	rm -rf $(BUILD) $(BUILD)-* dist report.html

help: ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-11s %s\n", $$1, $$2}' Makefile

.PHONY: all demo test matrix lint fuzz fresh bench bundle frameworks docs install clean help
