// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Tables of thread names and libraries, each row with its reason.

#include "machine/thread_kind.h"

#include <string.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "machine/doing.h"
#include "machine/procfs.h"

struct row {
	const char *text;
	enum thread_kind kind;
};

// Prefixes of names; the kernel keeps 15 bytes. "python" and "pt_main_thread" are not listed: every
// thread that sets no name has them.
static const struct row names[] = {
	{"pt_autograd", THREAD_DEVICE}, // PyTorch: one for each device, and for the host
	{"pt_data_pin", THREAD_PYTHON}, // PyTorch: copies batches into pinned memory
	{"pt_data_worker", THREAD_PYTHON},
	{"pt_nccl", THREAD_DEVICE}, // PyTorch: the watchdog of collective calls
	{"pt_gloo", THREAD_DEVICE},
	{"pt_intra", THREAD_POOL}, // PyTorch built without OpenMP
	{"pt_inter", THREAD_POOL},
	{"cuda", THREAD_DEVICE}, // the driver: cuda-EvtHandlr, cuda00001400006
	{"nccl", THREAD_DEVICE}, // "NCCL Service"
	{"NCCL", THREAD_DEVICE},
	{"gloo", THREAD_DEVICE},
	{"tf_XLAEigen", THREAD_POOL}, // JAX on CPUs
	{"tf_", THREAD_POOL}, // TensorFlow: tf_Compute, tf_data_*, tf_inter_op
	{"XLA", THREAD_POOL},
	{"xla", THREAD_POOL},
	{"pjrt", THREAD_DEVICE}, // JAX: runs dispatched work
	{"py_xla", THREAD_DEVICE},
	{"Eigen", THREAD_POOL},
	{"tbb", THREAD_POOL},
	{"llvm-worker", THREAD_POOL}, // XLA's compilers
	{"grpc", THREAD_OTHER},
	{"jemalloc", THREAD_OTHER}, // returns memory to the system
	{"iou-", THREAD_OTHER}, // a kernel thread that works for the process
	{"Thread-", THREAD_PYTHON}, // threading, since Python 3.14
	{"ThreadPoolExec", THREAD_PYTHON},
	{"QueueFeeder", THREAD_PYTHON}, // multiprocessing
	{"QueueManager", THREAD_PYTHON},
};

// Prefixes of file names. BLAS precedes OpenMP: a library of either kind may have the other's name
// in it ("libopenblas64_p-r0.so", "libgomp-a34b3233.so.1" as wheels rename them).
static const struct row objects[] = {
	{"libopenblas", THREAD_BLAS}, // waits at its own variables (thread_status)
	{"libscipy_openblas", THREAD_BLAS},
	{"libcblas", THREAD_BLAS}, // a link to OpenBLAS in Debian
	{"libblas", THREAD_BLAS},
	{"libblis", THREAD_BLAS},
	{"libgomp", THREAD_OPENMP}, // calls futex directly: its own code waits
	{"libomp", THREAD_OPENMP},
	{"libiomp5", THREAD_OPENMP},
	{"libtbb", THREAD_POOL},
	{"libtensorflow", THREAD_POOL},
	{"libcuda.so", THREAD_DEVICE},
	{"libnccl", THREAD_DEVICE},
	{"libpython3", THREAD_PYTHON}, // waits for the GIL, one of its variables
	{"python3", THREAD_PYTHON},
};

static enum thread_kind find(const struct row *rows, size_t n, struct cursor text)
{
	for (size_t i = 0; i < n; i++) {
		struct cursor at = text;
		if (cursor_literal(&at, rows[i].text)) {
			return rows[i].kind;
		}
	}
	return THREAD_UNNAMED;
}

enum thread_kind thread_kind_of_name(struct cursor name)
{
	return find(names, ARRAY_LENGTH(names), name);
}

enum thread_kind thread_kind_of_object(struct cursor path)
{
	struct cursor name = path;
	for (const char *at = path.at; at < path.end; at++) {
		if (*at == '/') {
			name.at = at + 1;
		}
	}
	return find(objects, ARRAY_LENGTH(objects), name);
}

// Mappings ----------------------------------------------------------------------------------------

static void add_range(struct thread_ranges *ranges, const struct mapping *m, enum thread_kind kind)
{
	struct thread_range *last = ranges->n > 0 ? &ranges->items[ranges->n - 1] : NULL;
	if (last && last->to == m->from && last->kind == kind) {
		last->to = m->to;
	} else if (ranges->n < ARRAY_LENGTH(ranges->items)) {
		ranges->items[ranges->n++] = (struct thread_range){m->from, m->to, kind};
	}
	ranges->python = ranges->python || kind == THREAD_PYTHON;
}

void thread_ranges_read(struct cursor maps, struct thread_ranges *ret)
{
	struct cursor line;
	*ret = (struct thread_ranges){0};
	while (cursor_line(&maps, &line)) {
		struct mapping m;
		if (!procfs_take_maps_line(line, &m)) {
			continue;
		}
		enum thread_kind kind = thread_kind_of_object(m.path);
		const struct thread_range *last = ret->n > 0 ? &ret->items[ret->n - 1] : NULL;
		if (m.path.at == m.path.end && last && last->to == m.from) {
			kind = last->kind; // .bss
		}
		if (kind != THREAD_UNNAMED) {
			add_range(ret, &m, kind);
		}
	}
}

static enum thread_kind kind_at(const struct thread_ranges *ranges, uint64_t address)
{
	for (size_t i = 0; i < ranges->n; i++) {
		if (address >= ranges->items[i].from && address < ranges->items[i].to) {
			return ranges->items[i].kind;
		}
	}
	return THREAD_UNNAMED;
}

// Calls -------------------------------------------------------------------------------------------

// The arguments are followed by the stack pointer and the address of the calling code.
static bool take_code_address(struct cursor line, uint64_t *ret)
{
	int64_t number;
	uint64_t address = 0;
	bool whole = cursor_i64(&line, &number);
	for (unsigned i = 0; whole && i < 6 + 2; i++) {
		whole = procfs_take_hex(&line, &address);
	}
	*ret = address;
	return whole;
}

enum thread_kind thread_kind_of_call(struct cursor line, const struct thread_ranges *ranges)
{
	struct doing_call call;
	uint64_t code;
	if (!doing_parse_call(line, &call) || call.runs || call.number < 0) {
		return THREAD_UNNAMED;
	}
	enum thread_kind kind = take_code_address(line, &code) ? kind_at(ranges, code)
	                                                       : THREAD_UNNAMED;
	if (call.number == SYS_futex) {
		enum thread_kind waited = kind_at(ranges, call.arguments[0]);
		return waited != THREAD_UNNAMED ? waited : kind;
	}
	const struct doing_rule *rule = doing_rule_of(&call);
	if (kind == THREAD_UNNAMED && rule) {
		return ranges->python ? THREAD_PYTHON : THREAD_OTHER;
	}
	return kind;
}
