// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Every threshold of the verdict, with its reason. An effect below its threshold may exist, but is
// not worth reporting. docs/how-to-read.md repeats those that users ask about.

#pragma once

// Shares of time ----------------------------------------------------------------------------------

// A cause with a smaller share is not reported: removing it would not be noticed.
#define WORTH 0.05
// A smaller share is not reported if its interval begins at 0.
#define SMALL 0.10
// Below this part of one rank's validation, that of another is none: they do not share it.
#define ALONE_MOST 0.1
// A wait for data below this share of an iteration is jitter of the queue (1 to 3 % seen in jobs
// whose loader was always ahead).
#define JITTER 0.04
// A second cause with this part of the first cause's weight makes their order uncertain.
#define RIVAL 0.6
// Factor for causes that cannot be removed (computing) when causes are ranked.
#define NOT_FIRST 0.4
// A second cause with a smaller share is not in the headline: removing it hardly shows.
#define SECOND 0.10
// If the host's own time is below this share, it is ranked like computing: Python's time around a
// framework's calls of 20 ms (21 % seen in a small Transformer, 29 % in a PPO's small network)
// disappears with these calls.
#define HOST_FIRST 0.30
// A first cause with a smaller share is never certain.
#define CERTAIN 0.15
// An interval wider than this makes the share uncertain.
#define WIDE 0.1
// Share of the run before the first iteration, to report start-up.
#define STARTUP 0.20
// Iterations that compile: from this number on, code is compiled for several shapes, not once.
// Least share of training, because a longer run has less of it.
#define COMPILING_ANEW 4
#define COMPILING 0.15
// Share of training of validation or of checkpoints from which on half as often is little advice.
#define FAR_TOO_OFTEN 0.3
// Share of an iteration that CPU time counted in ticks can miss.
#define UNSEEN 0.05

// Share of the time in which data are on their way to another rank, from which on the network is
// the limit although the rank is not known to wait for it.
#define NETWORK_FULL 0.8

// CPUs --------------------------------------------------------------------------------------------

// Share of the CPUs that the job may use, to count as used up. Means are never higher: iterations
// have gaps.
#define SATURATED 0.85
// CPUs. A smaller difference is the granularity of the scheduler.
#define SLACK 0.05
// Share of the time ready without a CPU. Less is the granularity of the scheduler while CPUs are
// full; twice that, while some seem idle.
#define QUEUED 0.05
#define QUEUED_LONG 0.10
// Share of the CPUs used by other programs.
#define OTHERS 0.25
// CPUs used by other programs, for each second in which the training thread waited for a CPU: with
// less, it waited for other threads of the job.
#define THEIRS 0.5
// Pressure: share of the time in which tasks of the host waited for a CPU.
#define HELPER_CPUS 0.05 // of the run: less is no load
#define CPU_STALLED 0.20
// CPUs that all threads of a training process but the first use, if they are idle.
#define THREADS_IDLE 0.10
// CPUs: a pool of the framework computes.
#define POOL_COMPUTES 0.5
// Idle CPUs that one more thread needs.
#define IDLE_CPUS 0.5
// Number of computing threads; below, a second one helps only now and then.
#define PARALLEL 1.3
// Length of a step relative to an undisturbed one: disturbed by other programs; by threads that
// wait for other threads.
#define USUAL 1.3
#define DILATED 2.0
// CPU time of a step relative to that of an undisturbed one: a thread that waits asleep uses no
// more.
#define BURNT 1.4
// Share of the periods of a CPU quota in which it was used up.
#define THROTTLED 0.10
// CPUs that threads spend spinning. Less is the end of each parallel region (2 to 8 % seen with two
// threads on two idle CPUs).
#define SPINNING_CPUS 0.15
// Runs of a thread of an OpenMP team per second: each is a sleep between two parallel regions. A
// team that computes large layers sleeps some hundred times (resnet50, 16 images, 1.8 s: 600).
#define TEAM_WAKES 1500
// Threads of a team for each CPU from which on they can only run in turns: 16 on 2 CPUs were seen
// to run 900 times a second each, 13,500 times together.
#define MANY_THREADS 2.5
// Upper bound on the time in the kernel of waking a thread and sleeping for it: seen 23 us in a
// virtual machine.
#define WAKE_MOST_S 25e-6
// CPUs of processes that were started and have ended. A run has a few; steps that start processes
// have them all the time.
#define CHILDREN_CPUS 0.02
// Processes started per iteration, from which on steps start them.
#define CHILDREN_EACH 0.5
// Upper bound on the time of a page fault without storage, including clearing the page: 0.3 us on
// bare metal, 2.6 us seen in a virtual machine.
#define FAULT_MOST_S 4e-6
// Results read from a GPU in each step: with fewer, waiting for them costs little.
#define READS_MANY 5
// Requests of PyTorch for memory of the GPU, per iteration: its cache avoids all of them.
#define ALLOCATIONS_MANY 1
// CPU samples of a group of threads: with fewer, the standard error exceeds 7 percentage points.
#define SAMPLES_ENOUGH 50
// With fewer, a group of threads hardly ran.
#define SAMPLES_SHOWN 10
// A GPU that is busy for less of the time is idle.
#define GPU_IDLE 0.005
// A function is named in the evidence with this share of the training thread's samples, if there
// are so many; the first three.
#define FUNCTION_WORTH 0.04
#define FUNCTIONS_OF 200
#define FUNCTIONS_SHOWN 3
// Looks at what a thread waits for: with this number, the largest kind is known, and its share
// within 11 points.
#define LOOKS_ENOUGH 20
// Computing outside of the phases of a step from which on it is named.
#define BESIDE_MODEL 0.2
// By how much more the stacks may show backward passes than their marks.
#define BACKWARD_UNMARKED 0.15
// Steps in which denormal numbers were looked for (hooks/python/strain_torch.py).
#define DENORMAL_STEPS 8
// Of the time of the training thread: arithmetic outside of matrix kernels, which denormal numbers
// may make slow. Below it, little can be gained.
#define DENORMAL_ARITHMETIC 0.3
// Least part of an iteration in which the training thread sorts: a sampler's or a top-k takes less.
#define SORTING 0.15
// glibc's own thresholds of malloc follow what is freed up to this size.
#define GLIBC_RAISES_TO (32 << 20)
// Share of the samples of lines from which on a second line is worth naming.
#define LINE_WORTH 0.1
// Forward has this share of an iteration or more, so that a line in it is worth naming.
#define FORWARD_WORTH 0.15
// Part of the waits for fsync that cannot be elsewhere than in a function that is named for them.
#define SYNCED_THERE 0.25
// The same from which on a function outside of all phases is worth a suggestion by itself.
#define OUTSIDE_WORTH 0.1
// The same from which on a function is named with a cause that is not known to be in it.
#define LINE_MAIN 0.4
// Share of a group's samples that is most of them.
#define MOST 0.5
// Forward and backward passes consist of short operations if these have this share of the samples
// there: 44 % and more seen in loops over time steps and in networks of a few inputs, 37 % and less
// where tensors are computed.
#define MOST_CALLS 0.42
// A batch of so many tensors or more is handed over piece by piece.
#define MANY_TENSORS 16
#define COUNTED_TENSORS 1000 // the hooks count no more
// Optimizers take less of a step where all parameters are used.
#define UPDATES_HEAVY 0.15
// Backward takes one to two times as long as a forward pass with gradients: if it takes less than
// this part of forward, most of forward is without.
#define BACKWARD_FEW 0.2
// A model that is called so often for each backward pass, for so short a time, is called for single
// samples or steps of time.
#define MODEL_CALLS_MANY 16
#define MODEL_CALL_BRIEF_S 0.002
// Slices of samples that are less within iterations than this mix what is beside them in.
#define SLICES_WITHIN 0.75
// Other threads with less than this part of the samples do not change a phase's.
#define THREADS_FEW 0.1
// So many calls of predict() between epochs, and so short on average, are of few samples each.
#define PREDICTS_MANY 30
#define PREDICTS_BRIEF_S 0.25
// A share of padding that is worth another order of samples.
#define PADDED 0.15
// Attention takes time in proportion to the square of the length of sequences, and at most as long
// as the rest of its layer at this length, for widths from 85 on. (By operations: 4 L^2 d of
// 24 L d^2 + 4 L^2 d for width d, as long at L = 6 d.)
#define ATTENTION_LENGTH 512
// More than half of the tokens is worth a word beside the cause.
#define PADDED_MOSTLY 0.5
// Share of the waits that were looked at, so that those missed are of the same kind.
#define NEARLY_ALL 0.8
// Garbage collections of 2 ms per iteration: the script calls gc.collect(). By itself Python makes
// one of all objects after some 70,000 new ones.
#define COLLECTS_ITSELF 0.5

// Input -------------------------------------------------------------------------------------------

// Time per batch of a slow worker, as a multiple of the median of the others.
#define SLOW_WORKER 1.5
// Share of preparation in which a worker neither ran nor was ready.
#define BLOCKED 0.15
// Share of its time in which the busiest worker prepares: below this, no worker is waited for.
#define WORKERS_IDLE 0.5
// A wait for a batch, in usual iterations: from here on the batch was late.
#define LONG_WAIT 3
// Share of the iterations with such waits: with more, batches are always late.
#define FEW_LATE 0.1
// CPUs that a pipeline uses while an epoch starts: with as many, it prepares samples.
#define PIPELINE_FILLS 0.5
// Batches that workers can be told to prepare ahead, each.
#define AHEAD_MOST 64
// Those that they prepare ahead by default.
#define PREFETCH_DEFAULT 2
// Bytes per second from storage for which a task may have to wait: a rotating disk reads 4 kB a
// hundred times a second.
#define READS_WAITED_FOR 3e5
// Share of the bytes read that come from storage; and of those, the share that had just been
// dropped from the page cache.
#define FROM_STORAGE 0.05
#define REFAULTS 0.3
// Largest advised number of workers if they are blocked: each is a process.
#define WORKERS_MOST 32
// Pressure: share of the time in which all tasks waited for memory; in which some waited for
// storage.
#define MEMORY_STALLED 0.10
// Bytes a second from storage of which the requests themselves take time.
#define READS_MUCH 1e6
#define STORAGE_STALLED 0.20
#define STORAGE_SEEN 0.10
// For a batch that is prepared faster, handing it over from a worker costs as much.
#define QUICK_BATCH_S 0.002
// Extra time of a batch that a worker prepares: in the worker (a copy into new pages of shared
// memory, a thread that sends it) and in the training process. Seen: 2.5 ms together, for 300 kB.
#define HAND_OVER_S QUICK_BATCH_S
#define TAKE_OVER_S 0.0005
// Time per epoch to fork workers, wait for their first batch and end them: seen 0.15 s for two.
#define WORKERS_START_S 0.03
#define WORKER_START_S 0.03

// Device ------------------------------------------------------------------------------------------

// Share of a step in the interpreter, between operations of a framework. Seen with two threads
// instead of one: 0.6 times as fast at 14 % and at 6 %, 0.8 at 9 %; below 5 %: 0.8 to 1.7 times.
#define SHORT_OPERATIONS 0.05
// Steps shorter than this consist mostly of calls: one call of a framework costs 2 to 20 us, and a
// small step makes some hundred.
#define SHORT_STEP_S 0.002
// Iterations that become longer. Of 194 recorded runs, only those of a job that computes a metric
// over all outputs so far pass.
#define TREND_LEAST 40 // iterations of an epoch
#define TREND_WHOLE 0.8 // of the longest epoch: shorter ones were cut off
#define TREND 1.5 // the last quarter over the first
#define TREND_EACH 1.3 // the same in each epoch
#define TREND_RISE 1.1 // a quarter over the one before, in a single epoch
#define TREND_PAUSE 0.97 // the same of the mean of several
#define TREND_SECOND_HALF (1 / 3.0) // least part of the rise after the second quarter
#define TREND_SAMPLES 0.05 // by which the samples of a batch may differ meanwhile
// For epochs without numbers:
#define TREND_BLOCK 5 // iterations at least whose median is compared with that of the next ones
#define TREND_BLOCKS 512.0 // at most
#define TREND_RESET 0.7 // of the block before: an epoch begins
#define TREND_BACKWARD 1.1 // the last quarter over the first
#define TREND_MOST 0.7 // of all iterations are in epochs that rise
#define TREND_EPOCHS 5u // at least, of a trend from epoch to epoch
#define TREND_EPOCH_LEAST 5u // iterations of each
#define TREND_BACKWARD_PART 0.5 // of the relative growth: that of backward passes
// A call of Keras' predict took 53 ms (TensorFlow 2.21) where predict_on_batch took 1 ms, and 94 to
// 140 ms beside other load. In a loop that calls it in every second iteration, it is no evaluation.
#define PREDICT_OVERHEAD_S 0.1
#define PREDICTS_OFTEN 0.5
// A call of an environment that is shorter gains nothing from another process: sending its results
// through a pipe takes as long.
#define ENVIRONMENT_BRIEF_S 0.5e-3
// An idle CPU is one of which so much is idle.
#define IDLE_WHOLE 0.7
#define LATE_PART 0.1 // of the iterations, the last ones: without a compilation, none may follow
#define GPU_BUSY 0.70
#define DRAM_BOUND 0.6
// Share of the multiprocessors of a busy GPU that had work: below this, kernels are too small for
// it. A large matrix product uses nearly all of them.
#define SM_FEW 0.5
// Share of the time in which tensor cores worked: below this, no product used them.
#define TENSOR_IDLE 0.01
// Activity of tensor cores, and of arithmetic without them, in jobs on an H100: 0.44 to 0.48 and
// 0.03 in well-written ones of bfloat16, 0.02 and 0.6 of single precision, and 0.02 to 0.24 and at
// most 0.03 where kernels are many and small.
#define TENSOR_BUSY 0.25
#define TENSOR_FEW 0.05
#define ARITHMETIC 0.2
#define DOUBLES 0.1
// Share of a GPU's busy time at its power limit, and clock lost then, to be reported. This is
// normal.
#define CAPPED 0.5
#define CAPPED_WORTH 0.05
// A clock set below the highest: a smaller loss is not worth a word.
#define SET_WORTH 0.10
// Share of a GPU's memory in use with which a larger batch does not fit.
#define MEMORY_FULL 0.9
// Share of a link's rate from which it may be what a job waits for.
#define LINK_BUSY 0.5
// Share of a training thread's samples in the GPU's driver, which shows that it uses a GPU.
#define DRIVER_CALLS 0.01
// Difference between the ranks' shares of waiting.
#define IMBALANCE 0.10
// Share of an iteration by which a wait or a phase of the slowest rank is longer than that of all
// others, to be its reason.
#define SLOWER 0.10
// Share of an iteration in the optimizer: SGD and Adam in one fused loop stay below 0.15 of a step
// that reads each weight three times.
#define OPTIMIZER_HEAVY 0.30
#define PRODUCTS_HEAVY 0.30 // matrix products
#define ZEROS 0.95 // of a dense matrix: nearly all

// Memory ------------------------------------------------------------------------------------------

#define MEMORY_NEAR 0.95 // of the limit
#define LIMIT_REACHED 0.9 // of the rate that --disk-read allows
#define MEMORY_KEPT 0.9 // of the limit: the most that advice may fill

// Gains -------------------------------------------------------------------------------------------

// A smaller gain is not worth a change of the job.
#define LITTLE 1.03
// The fewest workers within this factor of the best are advised.
#define WITHIN 1.01
// A larger gain is promised only with direct evidence: the most wrong ones (docs/truth.md) were
// inferred.
#define LARGE 1.5
// Above this share the bound of a gain says nothing: no change removes a cause completely.
#define BOUND_SAYS 0.9

// Iterations --------------------------------------------------------------------------------------

#define FEW 10 // no confidence above low
#define ENOUGH 30 // for high confidence
