// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// Every table and figure of the four documents. docs/studies.md is made of this (`make docs`).

#include "cmd/layout.h"

#include <string.h>

#include "base/cleanup.h"

enum { TORRES, DUBE, TRIPATHI, JAYARAJAN };

const struct document documents[] = {
	[TORRES] = {"torres2021", "Torres, Barrios and Denneulin 2021", "examples/torres2021.yaml"},
	[DUBE] = {"dube-sura", "Dube and Sura", "examples/dube-sura.yaml"},
	[TRIPATHI] = {"tripathi2019", "Tripathi 2019", "examples/tripathi2019.yaml"},
	[JAYARAJAN] = {"jayarajan", "Jayarajan and Fedorova", NULL},
};
const size_t n_documents = ARRAY_LENGTH(documents);

#define MB 1e6

#define EPOCH_TIME                                                          \
	{                                                                   \
		"epoch_seconds", NULL, "time per epoch", "epoch_seconds", 1 \
	}
#define THROUGHPUT                                                       \
	{                                                                \
		"samples_per_second", NULL, "images per second", NULL, 1 \
	}
#define GPU_USE                                                          \
	{                                                                \
		"gpu_utilization", "cpu_utilization", "GPU utilisation", \
			"gpu_utilization_percent", 1                     \
	}
#define GPU_MEMORY                                                                              \
	{                                                                                       \
		"gpu_memory_utilization", "host_memory_peak", "GPU memory utilisation", NULL, 1 \
	}

#define OF(framework, dataset)                                                    \
	{                                                                         \
		{"framework", framework}, {"dataset", dataset}, {"model", "cnn"}, \
	}
#define RUN_OF(framework, dataset, batch)                                              \
	{                                                                              \
		{"framework", framework}, {"dataset", dataset}, {"batch_size", batch}, \
			{"model", "cnn"},                                              \
	}

#define TRIPATHI_GPUS "a line for each GPU, where jobs used several; else for each number of GPUs"

const struct layout layouts[] = {
	// Torres, Barrios and Denneulin 2021
	{"torres2021-table1", TORRES, "Table 1", "layers of the network", LAYOUT_PUBLISHED,
		.published = "torres2021_cnn",
		.note = "the model `cnn` of every workload; its 89,450 parameters are checked "
			"there"},
	{"torres2021-table2", TORRES, "Table 2", "the two GPUs", LAYOUT_PUBLISHED,
		.published = "torres2021_gpus", .note = "of a machine of one's own: strain doctor"},
	{"torres2021-table3", TORRES, "Table 3", "training time", LAYOUT_TABLE,
		.filters = {{"model", "cnn"}}, .rows = {"machine", "framework", "dataset"},
		.columns = {"batch_size"},
		.values = {{"training_seconds", NULL, "training time", "seconds", 1}},
		.published = "torres2021_training_time"},
	{"torres2021-table4", TORRES, "Table 4", "peak memory of host and device", LAYOUT_TABLE,
		.filters = {{"batch_size", "32"}, {"model", "cnn"}},
		.rows = {"machine", "framework", "dataset"},
		.values = {{"host_memory_peak", NULL, "host", "host_mb", MB},
			{"device_memory_peak", NULL, "device", "device_mb", MB}},
		.published = "torres2021_peak_memory"},
	{"torres2021-fig1", TORRES, "Figure 1", "a run over time: TensorFlow, DT1, batch size 32",
		LAYOUT_RUNS, .filters = RUN_OF("tensorflow", "dt1", "32")},
	{"torres2021-fig2", TORRES, "Figure 2", "memory by batch size: TensorFlow, DT1",
		LAYOUT_MEMORY, .filters = OF("tensorflow", "dt1"), .rows = {"batch_size"}},
	{"torres2021-fig3", TORRES, "Figure 3", "a run over time: PyTorch, DT1, batch size 32",
		LAYOUT_RUNS, .filters = RUN_OF("pytorch", "dt1", "32")},
	{"torres2021-fig4", TORRES, "Figure 4", "memory by batch size: PyTorch, DT1", LAYOUT_MEMORY,
		.filters = OF("pytorch", "dt1"), .rows = {"batch_size"}},
	{"torres2021-fig5", TORRES, "Figure 5", "GPU utilisation of the frameworks: DT1",
		LAYOUT_GPU, .filters = {{"dataset", "dt1"}, {"model", "cnn"}},
		.rows = {"framework"}},
	{"torres2021-fig6", TORRES, "Figure 6", "memory by batch size: TensorFlow, DT2",
		LAYOUT_MEMORY, .filters = OF("tensorflow", "dt2"), .rows = {"batch_size"}},
	{"torres2021-fig7", TORRES, "Figure 7", "memory by batch size: PyTorch, DT2", LAYOUT_MEMORY,
		.filters = OF("pytorch", "dt2"), .rows = {"batch_size"}},
	{"torres2021-fig8", TORRES, "Figure 8", "a run over time: TensorFlow, DT2, batch size 512",
		LAYOUT_RUNS, .filters = RUN_OF("tensorflow", "dt2", "512")},
	{"torres2021-fig9", TORRES, "Figure 9", "a run over time: PyTorch, DT2, batch size 512",
		LAYOUT_RUNS, .filters = RUN_OF("pytorch", "dt2", "512")},
	{"torres2021-fig10", TORRES, "Figure 10",
		"a run over time: AlexNet, TensorFlow, batch size 32", LAYOUT_RUNS,
		.filters = {{"framework", "tensorflow"}, {"model", "alexnet"},
			{"batch_size", "32"}}},
	// Dube and Sura
	{"dube-sura-table1", DUBE, "Table 1", "what was varied", LAYOUT_PUBLISHED,
		.published = "dube_sura_parameters", .note = "the plan of the same name varies it"},
	{"dube-sura-fig1", DUBE, "Figure 1", "throughput by CPU threads, one and two GPUs",
		LAYOUT_SERIES, .filters = {{"framework", "onednn"}}, .rows = {"threads"},
		.row_instead = "cpus", .columns = {"gpus", "model"}, .values = {THROUGHPUT},
		.said = "it saturates at 4 threads with one GPU and at 8 with two",
		.note = "the document's is Caffe with VGG16; here it is oneDNN, on CPUs"},
	{"dube-sura-fig2", DUBE, "Figure 2", "throughput by CPUs, relative to the fewest",
		LAYOUT_SERIES, .filters = {{"batch_size", "64"}}, .rows = {"cpus"},
		.row_instead = "threads", .columns = {"model", "framework"}, .values = {THROUGHPUT},
		.change = CHANGE_BY_FIRST,
		.said = "from 8 to 30 threads AlexNet gains 1.28 times, VGG16 1.03 times",
		.note = "the document's framework is TensorFlow"},
	{"dube-sura-fig3", DUBE, "Figure 3", "gain of batch size 128 over 64 by CPUs",
		LAYOUT_SERIES, .rows = {"cpus"}, .row_instead = "threads",
		.columns = {"model", "framework"}, .values = {THROUGHPUT}, .change = CHANGE_RATIO,
		.ratio = {"batch_size", "64", "128"},
		.said = "AlexNet gains up to 1.2 times, Inception3 1.05 times at 30 threads",
		.note = "the document's framework is TensorFlow"},
	// Tripathi 2019
	{"tripathi2019-table3.1", TRIPATHI, "Table 3.1", "workers for the shortest epoch by DRAM",
		LAYOUT_BEST, .rows = {"model", "memory"}, .columns = {"batch_size"},
		.values = {{"epoch_seconds", NULL, "workers", "workers", 1}}, .best = "workers",
		.published = "tripathi2019_dram", .published_only = {"table", "3.1"}},
	{"tripathi2019-table5.1", TRIPATHI, "Table 5.1", "largest batch size, GPUs of 16 GB",
		LAYOUT_WAITS, .published = "tripathi2019_max_batch",
		.waits = "the estimator of the batch size"},
	{"tripathi2019-table5.2", TRIPATHI, "Table 5.2", "largest batch size, GPUs of 11 GB",
		LAYOUT_WAITS, .published = "tripathi2019_max_batch",
		.waits = "the estimator of the batch size"},
	{"tripathi2019-table5.3", TRIPATHI, "Table 5.3", "workers and batch size: ResNet50",
		LAYOUT_TABLE, .filters = {{"model", "resnet50"}}, .rows = {"workers", "batch_size"},
		.values = {EPOCH_TIME, GPU_USE}, .published = "tripathi2019_workers",
		.published_only = {"model", "resnet50"}},
	{"tripathi2019-table5.4", TRIPATHI, "Table 5.4", "workers and batch size: 3D convolution",
		LAYOUT_TABLE, .filters = {{"model", "conv3d"}}, .rows = {"workers", "batch_size"},
		.values = {EPOCH_TIME, GPU_USE}, .published = "tripathi2019_workers",
		.published_only = {"model", "conv3d"},
		.note = "no workload here has 3D convolutions yet; runs of one's own that are "
			"labelled "
			"model=conv3d fill it"},
	{"tripathi2019-table5.5", TRIPATHI, "Table 5.5", "workers and batch size: ResNet34",
		LAYOUT_TABLE, .filters = {{"model", "resnet34"}}, .rows = {"workers", "batch_size"},
		.values = {EPOCH_TIME, GPU_USE}, .published = "tripathi2019_workers",
		.published_only = {"model", "resnet34"}},
	{"tripathi2019-table5.6", TRIPATHI, "Table 5.6", "workers that fit by DRAM", LAYOUT_WAITS,
		.published = "tripathi2019_dram", .waits = "the estimator of the batch size"},
	{"tripathi2019-table5.7", TRIPATHI, "Table 5.7",
		"loss and accuracy with the advised batch size", LAYOUT_WAITS,
		.published = "tripathi2019_convergence",
		.waits = "the estimator of the batch size"},
	{"tripathi2019-table5.8", TRIPATHI, "Table 5.8", "time to find a batch size", LAYOUT_WAITS,
		.published = "tripathi2019_search_time",
		.waits = "the estimator of the batch size"},
	{"tripathi2019-fig3.1", TRIPATHI, "Figure 3.1", "time of each epoch", LAYOUT_EPOCHS,
		.rows = {"batch_size"}, .said = "flat after the first epoch"},
	{"tripathi2019-fig3.2", TRIPATHI, "Figure 3.2", "time, utilisation, memory by batch size",
		LAYOUT_SERIES, .rows = {"batch_size"}, .columns = {"workers"},
		.values = {EPOCH_TIME, GPU_USE, GPU_MEMORY},
		.said = "with 16 workers and 2 GPUs 95 % of the GPU memory at 256; 512 does not "
			"fit"},
	{"tripathi2019-fig3.3", TRIPATHI, "Figure 3.3", "GPU utilisation by batch size and workers",
		LAYOUT_SERIES, .rows = {"batch_size"}, .columns = {"gpus", "workers"},
		.values = {GPU_USE}, .bars = true, .each_gpu = true,
		.said = "the best batch size grows with the workers: 128 with 4, 512 with 32",
		.note = TRIPATHI_GPUS},
	{"tripathi2019-fig3.4", TRIPATHI, "Figure 3.4", "GPU memory by batch size and workers",
		LAYOUT_SERIES, .rows = {"batch_size"}, .columns = {"gpus", "workers"},
		.values = {GPU_MEMORY}, .bars = true, .each_gpu = true, .note = TRIPATHI_GPUS},
	{"tripathi2019-fig3.5", TRIPATHI, "Figure 3.5", "time, utilisation, memory by workers",
		LAYOUT_SERIES, .rows = {"workers"}, .columns = {"batch_size"},
		.values = {EPOCH_TIME, GPU_USE, GPU_MEMORY}},
	{"tripathi2019-fig3.6", TRIPATHI, "Figure 3.6", "GPU utilisation by workers", LAYOUT_SERIES,
		.rows = {"workers"}, .columns = {"batch_size"}, .values = {GPU_USE},
		.said = "17 to 83 % at batch size 32, 13 to 97 % at 256"},
	{"tripathi2019-fig3.7", TRIPATHI, "Figure 3.7", "time, utilisation, memory by GPUs",
		LAYOUT_SERIES, .rows = {"processes"}, .row_instead = "gpus",
		.columns = {"batch_size"}, .values = {EPOCH_TIME, GPU_USE, GPU_MEMORY},
		.said = "all three fall from 1 to 4 GPUs"},
	{"tripathi2019-fig3.8", TRIPATHI, "Figure 3.8", "time per epoch by DRAM and batch size",
		LAYOUT_SERIES, .rows = {"batch_size"}, .columns = {"memory"},
		.values = {EPOCH_TIME}, .bars = true,
		.said = "20 and 128 GB are similar, with 32 workers"},
	// Jayarajan and Fedorova
	{"jayarajan-gpus", JAYARAJAN, "table of GPUs", "the GPUs", LAYOUT_PUBLISHED,
		.published = "jayarajan_gpus"},
	{"jayarajan-workloads", JAYARAJAN, "table of workloads", "applications and models",
		LAYOUT_PUBLISHED, .published = "jayarajan_workloads"},
	{"jayarajan-throughput", JAYARAJAN, "figure of throughput",
		"throughput by GPU for each application", LAYOUT_WAITS,
		.waits = "more applications (recurrent networks, reinforcement learning)"},
	{"jayarajan-cost", JAYARAJAN, "figure of cost", "throughput per cost by GPU", LAYOUT_WAITS,
		.waits = "prices of machines, and more applications"},
	{"jayarajan-utilization", JAYARAJAN, "figure of utilisation",
		"CPU and GPU utilisation by application", LAYOUT_WAITS,
		.waits = "more applications"},
	{"jayarajan-stalls", JAYARAJAN, "figure of stall reasons",
		"share of stall reasons by application", LAYOUT_WAITS,
		.waits = "stall reasons of GPU kernels, and more applications"},
};
const size_t n_layouts = ARRAY_LENGTH(layouts);

const struct layout *layout_by_name(const char *name)
{
	for (size_t i = 0; i < n_layouts; i++) {
		if (strcmp(layouts[i].name, name) == 0) {
			return &layouts[i];
		}
	}
	return NULL;
}
