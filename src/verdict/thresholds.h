// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Every threshold of the verdict, with its reason. An effect below its threshold may exist, but is
// not worth reporting. docs/how-to-read.md repeats those that users ask about.

#pragma once

// Shares of time ----------------------------------------------------------------------------------

// A cause with a smaller share is not reported: removing it would not be noticed.
#define WORTH 0.05
// A wait for data shorter than this share of an iteration: queues jitter by as much (1 to 3 % seen
// in jobs whose loader was always ahead).
#define JITTER 0.04
// A rival with this part of the first cause's claim makes the order of the two uncertain.
#define RIVAL 0.6
// How much of a cause that cannot be removed (computing) counts when causes are ranked.
#define NOT_FIRST 0.4
// A smaller second cause is not in the headline: what it gains hardly shows.
#define SECOND 0.10
// The host's own time below this does not come before computing as other causes do: what Python
// takes around a framework's calls of 20 ms (21 % seen in a small Transformer) goes with them.
#define HOST_FIRST 0.25
// A cause with a smaller share is never certain to be the first.
#define CERTAIN 0.15
// An interval wider than this makes the share uncertain.
#define WIDE 0.1
// Of the run, before the first iteration.
#define STARTUP 0.20
// Of an iteration: what counting CPU time in ticks can miss.
#define UNSEEN 0.05

// CPUs --------------------------------------------------------------------------------------------

// Of the CPUs that the job may use. More never shows in means: iterations have gaps.
#define SATURATED 0.85
// Fewer CPUs are the scheduler's grain.
#define SLACK 0.05
// Share of the time ready without a CPU: less is the scheduler's grain while CPUs are full, and
// twice that while some seem idle.
#define QUEUED 0.05
#define QUEUED_LONG 0.10
// Of the CPUs, used by other programs.
#define OTHERS 0.25
// Of the time, pressure: tasks of the host waited for a CPU.
#define CPU_STALLED 0.20
// CPUs: one more thread would have this much to run on.
#define IDLE_CPUS 0.5
// Threads that compute: below, a second one helps now and then.
#define PARALLEL 1.3
// A step against one that nothing disturbed: by others beside it; by threads that wait for others.
#define USUAL 1.3
#define DILATED 2.0
// CPU time of a step against that of an undisturbed one: whoever sleeps while he waits uses no
// more.
#define BURNT 1.4
// Share of the periods of a CPU quota in which it was used up.
#define THROTTLED 0.10
// CPUs that threads spend spinning: less is the end of each parallel region (2 to 8 % seen with two
// threads on two idle CPUs).
#define SPINNING_CPUS 0.15
// CPUs of processes that were started and have ended: a run has a few, a step that starts some has
// them all the time.
#define CHILDREN_CPUS 0.02
// The most that a page fault without storage takes, clearing the page included: 0.3 us on bare
// metal, 2.6 us seen in a virtual machine.
#define FAULT_MOST_S 4e-6
// CPU samples of a group of threads: fewer have a standard error above 7 percentage points.
#define SAMPLES_ENOUGH 50
// Looks at what a thread waits for: of as few the largest kind is known, its share within 11
// points.
#define LOOKS_ENOUGH 20
// Most of a group's samples.
#define MOST 0.5

// Input -------------------------------------------------------------------------------------------

// A worker that takes so many times the median of the others is slow.
#define SLOW_WORKER 1.5
// Share of preparing in which a worker neither ran nor was ready.
#define BLOCKED 0.15
// Share of its time that the busiest worker prepares: below, no worker is waited for.
#define WORKERS_IDLE 0.5
// Bytes a second from storage that can keep somebody waiting: a disk that turns gives 4 kB a
// hundred times a second.
#define READS_WAITED_FOR 3e5
// Of bytes read: from storage; and of those, dropped from the page cache just before.
#define FROM_STORAGE 0.05
#define REFAULTS 0.3
// Workers that are advised at most where they are blocked: each is a process of its own.
#define WORKERS_MOST 32
// Pressure: share of the time that all tasks waited for memory; that some waited for storage.
#define MEMORY_STALLED 0.10
#define STORAGE_STALLED 0.20
#define STORAGE_SEEN 0.10
// A batch that is prepared faster: handing it over from a worker costs as much.
#define QUICK_BATCH_S 0.002
// What a batch takes more where a worker prepares it: there (a copy into shared memory, whose pages
// are new, a thread that sends it) and in the training process. Seen 2.5 ms together, of 300 kB.
#define HAND_OVER_S QUICK_BATCH_S
#define TAKE_OVER_S 0.0005
// To fork workers, wait for their first batch and end them, with each epoch: seen 0.15 s of two.
#define WORKERS_START_S 0.03
#define WORKER_START_S 0.03

// Device ------------------------------------------------------------------------------------------

// Steps shorter than this are mostly calls: one call of a framework costs 2 to 20 us, and a small
// step makes some hundred.
#define SHORT_STEP_S 0.002
#define GPU_BUSY 0.70
#define DRAM_BOUND 0.6
// Multiprocessors of a busy GPU that had work: with fewer, kernels are too small for it. One that
// computes a large matrix product has nearly all of them at work.
#define SM_FEW 0.5
// Time in which tensor cores worked: no product used them.
#define TENSOR_IDLE 0.01
// Of a GPU's busy time at its power limit, and the clock lost then, to be reported. It is normal.
#define CAPPED 0.5
#define CAPPED_WORTH 0.05
// Difference between the waits of ranks.
#define IMBALANCE 0.10
// Of an iteration, in the optimizer: SGD and Adam in one fused loop stay below 0.15 of a step that
// reads each weight three times.
#define OPTIMIZER_HEAVY 0.30

// Memory ------------------------------------------------------------------------------------------

#define MEMORY_NEAR 0.95 // of the limit
#define MEMORY_KEPT 0.9 // of the limit: what advice may fill

// Gains -------------------------------------------------------------------------------------------

// A smaller gain is not worth a change of the job.
#define LITTLE 1.03
// Within this of the best: fewer workers are advised.
#define WITHIN 1.01
// A larger gain is promised only with direct evidence: those that were wrong most (docs/truth.md)
// were inferred.
#define LARGE 1.5
// Above this share the bound of a gain says nothing: no change takes a cause away altogether.
#define BOUND_SAYS 0.9

// Iterations --------------------------------------------------------------------------------------

#define FEW 10 // no confidence above low
#define ENOUGH 30 // for high confidence
