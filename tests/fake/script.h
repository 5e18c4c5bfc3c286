// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The script that the fake NVML plays: what each GPU shows, from which time on. README.md beside
// this file describes the lines.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FAKE_MAX_GPUS 16
#define FAKE_TEXT 256

// Reads the file that STRAIN_FAKE_NVML names and starts its clock. False, with a line on stderr,
// where it cannot be understood.
bool script_load(void);

// Milliseconds of the script's clock; it moves by itself unless the script says `clock manual`.
uint64_t script_now_ms(void);
void script_advance_ms(uint64_t ms);
// The same moment on the machine's clocks.
uint64_t script_realtime_us(uint64_t at_ms);
uint64_t script_monotonic_us(uint64_t at_ms);

// A general line: "driver 550.54", "gpus 2", "init 9". fallback where there is none.
double script_setting(const char *key, double fallback);
const char *script_setting_text(const char *key, const char *fallback);

// What `gpu` shows for a key at a time. Results are NVML's: 0, the error of the script's line, or 3
// (not supported) where no line names the key.
int script_number(unsigned gpu, const char *key, uint64_t at_ms, double *ret);
int script_text(unsigned gpu, const char *key, uint64_t at_ms, const char **ret);

// Called at the beginning of each function: counts it, waits as the script says, and returns the
// error that it says, or 0.
int script_enter(unsigned gpu, const char *function);
unsigned script_calls(const char *function);

// For jobs that wait for what they are to be seen with: makes the file SCRIPT.what.
void script_say(const char *what);
// The number in SCRIPT.what; 0 where there is none.
long script_beside(const char *what);
