# SPDX-License-Identifier: GPL-3.0-or-later
# A thin front of Meson.
BUILD ?= build

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

$(BUILD)/build.ninja:
	@meson setup $(BUILD)

.PHONY: all
