// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Memory that a step gives back to the kernel and takes again: each page of it is a page fault, in
// which the kernel clears the page. glibc gives large blocks back as they are freed.

#include <math.h>

#include "analyze/cause_kinds.h"
#include "analyze/thresholds.h"
#include "analyze/words.h"

#define PAGE_BYTES 4096.0 // or more: then there are fewer faults

static double leader_in_kernel(const struct facts *f)
{
	return cause_code(&f->code, CODE_SYSTEM) * fmin(1, cause_known(f->code.cpus));
}

// What the kernel does for the training thread, as far as its page faults can take that long: those
// of memory that is kept are no part of it, and to start processes, which takes faults, too, has a
// row of its own. Computing has that time as well: it is where the faults are.
static struct judgement judge_allocation(const struct facts *f, const struct causes *found)
{
	const struct cause *children = causes_get(found, BOTTLENECK_CHILDREN);
	double kernel = leader_in_kernel(f) - (children ? children->share.value : 0);
	double grown = f->growth.leak ? cause_known(f->growth.bytes_per_s) / PAGE_BYTES : 0;
	double most = (cause_known(f->page_faults) - grown) * FAULT_MOST_S;
	// What a step saves while its batch is not ready is waited for.
	most -= f->workers.n > 0 ? input_waiting(f) : 0;
	bool near = f->memory.peak_bytes >= MEMORY_KEPT * f->memory.limit_bytes;
	return (struct judgement){near ? 0 : fmax(0, fmin(kernel, most)), PHASE_FORWARD};
}

// Samples in the kernel do not say what for.
static enum grounds grounds_allocation(const struct facts *f)
{
	(void)f;
	return GROUNDS_INDIRECT;
}

static void say_allocation(struct text *t, const struct facts *f, const struct cause *cause)
{
	(void)f;
	text_append_string(t, "gives memory back and takes it again: page faults take ");
	cause_append_share(t, cause);
}

// The thresholds are as large as glibc allows: 32 MiB for a block of its own, and no end for what
// is kept at the top of the heap.
static void advise_allocation(struct book *b, const struct cause *cause)
{
	static const char trim[] = "MALLOC_TRIM_THRESHOLD_=2000000000";
	static const char map[] = "MALLOC_MMAP_THRESHOLD_=33554432";
	struct text action = {0}, basis = {0};
	advice_set(b, 0, SETTING_ENVIRONMENT, "%s", trim);
	advice_set(b, 0, SETTING_ENVIRONMENT, "%s", map);
	text_format(&action, "%s %s (glibc keeps what is freed), or jemalloc", trim, map);
	words_append_number(&basis, b->f->page_faults);
	text_append_string(&basis, " page faults a second; the kernel takes ");
	words_append_percent(&basis, leader_in_kernel(b->f));
	text_append_string(&basis, " of the training thread's time");
	advice_suggest(b, advice_gain_of(cause->share, 1), &action, &basis);
}

const struct cause_kind cause_allocation = {
	.name = "allocation",
	.part = "page faults",
	.judge = judge_allocation,
	.grounds = grounds_allocation,
	.say = say_allocation,
	.advise = advise_allocation,
};
