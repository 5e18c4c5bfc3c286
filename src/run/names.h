// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The names of the metrics that the analysis reads, so that each is written once here. The tables
// of the sources declare them, and docs/metrics.md explains them.

#pragma once

// job, process, recorder
#define NAME_CPU_TIME "process.cpu.time"
#define NAME_CPU_WAIT "strain.cpu.wait"
#define NAME_CPU_LEADER "strain.cpu.time.leader"
#define NAME_CHILDREN_STARTED "strain.process.children.started"
#define NAME_CPU_CHILDREN "strain.cpu.time.children"
#define NAME_WAIT "strain.wait." // followed by a kind: "sleep", ..., or "looks"
#define NAME_THREADS_OF "strain.threads." // followed by a group and a figure: "openmp.cpu_time"
#define NAME_CPUS_ALLOWED "strain.cpu.allowed"
#define NAME_THREADS "process.thread.count"
#define NAME_RESIDENT "process.memory.usage"
#define NAME_RESIDENT_SHARED "strain.memory.shared"
#define NAME_PEAK "strain.memory.peak"
#define NAME_PSS "strain.memory.pss"
#define NAME_STOPPED "strain.stopped_time" // of the job
#define NAME_PROCESS_STOPPED "strain.process.stopped_time"
#define NAME_RESIDENT_SUM "strain.memory.rss_sum"
#define NAME_OWN_SUM "strain.memory.own_sum"
#define NAME_PEAK_BOUND "strain.memory.peak.bound"
#define NAME_PROCESSES "strain.process.count"
#define NAME_PSS_ANONYMOUS "strain.memory.pss.anonymous"
#define NAME_PSS_FILE "strain.memory.pss.file"
#define NAME_PSS_SHMEM "strain.memory.pss.shmem"
#define NAME_RSS "strain.memory.rss"
#define NAME_USS "strain.memory.uss"
#define NAME_READ_ASKED "strain.io.read"
#define NAME_READ_STORAGE "process.disk.io.read"
#define NAME_WRITE_STORAGE "process.disk.io.write"
#define NAME_MINOR_FAULTS "process.paging.faults.minor"
#define NAME_MAJOR_FAULTS "process.paging.faults.major"

// job, from its cgroup
#define NAME_ANONYMOUS "strain.memory.anonymous"
#define NAME_SHMEM "strain.memory.shmem"
#define NAME_CGROUP_PEAK "strain.cgroup.memory.peak"
#define NAME_FILE "strain.memory.file"
#define NAME_PERIODS "strain.cgroup.cpu.periods"
#define NAME_PERIODS_THROTTLED "strain.cgroup.cpu.periods.throttled"
#define NAME_THROTTLED_TIME "strain.cgroup.cpu.throttled_time"
#define NAME_CPU_LIMIT "strain.cgroup.cpu.limit"
#define NAME_CPU_LIMIT_INSIDE "strain.cgroup.cpu.limit.inside"
#define NAME_MEMORY_LIMIT "strain.cgroup.memory.limit"
#define NAME_MEMORY_LIMIT_HITS "strain.cgroup.memory.limit.hits"
#define NAME_REFAULTS "strain.memory.refaults"
#define NAME_OOM_KILLS "strain.cgroup.oom_kills"
#define NAME_JOB_PRESSURE "strain.cgroup.pressure." // followed by "cpu.some", "io.full", ...

// host
#define NAME_HOST_CPU "system.cpu.time." // followed by a mode: "idle", ...
#define NAME_HOST_MEMORY_AVAILABLE "system.linux.memory.available"
#define NAME_HOST_MEMORY_LIMIT "system.memory.limit"
#define NAME_HOST_MAJOR_FAULTS "strain.system.paging.faults.major"
#define NAME_HOST_OOM_KILLS "strain.system.oom_kills"
#define NAME_HOST_REFAULTS "strain.system.paging.refaults"
#define NAME_HOST_SWAP_IN "strain.system.paging.in"
#define NAME_HOST_ENERGY "strain.host.energy"
#define NAME_PLATFORM_ENERGY "strain.host.energy.platform"
#define NAME_PRESSURE "strain.pressure." // followed by "cpu.some", "io.full", ...

// disk, network
#define NAME_DISK_READ "system.disk.io.read"
#define NAME_DISK_WRITE "system.disk.io.write"
#define NAME_DISK_BUSY "strain.disk.busy_time"
#define NAME_NETWORK_RECEIVED "system.network.io.receive"
#define NAME_NETWORK_SENT "system.network.io.transmit"

// network: another machine that the job has TCP connections to; its attribute `peer` is true
#define NAME_TCP_SENT "strain.tcp.sent"
#define NAME_TCP_RETRANSMITTED "strain.tcp.retransmitted"
#define NAME_TCP_BUSY "strain.tcp.busy_time"
#define NAME_TCP_ROUND_TRIP "strain.tcp.round_trip"
#define NAME_TCP_ROUND_TRIP_LEAST "strain.tcp.round_trip.least"

// gpu
#define NAME_GPU_BUSY "hw.gpu.utilization"
#define NAME_GPU_MEMORY "hw.gpu.memory.usage"
#define NAME_GPU_MEMORY_LIMIT "hw.gpu.memory.limit"
#define NAME_GPU_POWER "hw.power"
#define NAME_GPU_ENERGY "hw.energy"
#define NAME_GPU_RECEIVED "strain.gpu.pcie.host_to_device"
#define NAME_GPU_SENT "strain.gpu.pcie.device_to_host"
#define NAME_GPU_NVLINK_IN "strain.gpu.nvlink.receive"
#define NAME_GPU_NVLINK_OUT "strain.gpu.nvlink.transmit"
#define NAME_GPU_JOB_MEMORY "strain.gpu.job.memory.usage"
#define NAME_GPU_JOB_PROCESSES "strain.gpu.job.processes"
#define NAME_GPU_JOB_BUSY "strain.gpu.job.utilization"
#define NAME_GPU_OTHERS "strain.gpu.others.processes"
#define NAME_GPU_OTHERS_MEMORY "strain.gpu.others.memory.usage"
#define NAME_GPU_OTHERS_BUSY "strain.gpu.others.utilization"
#define NAME_GPU_CLOCK "strain.gpu.clock.sm"
#define NAME_GPU_TEMPERATURE "hw.temperature"
#define NAME_GPU_POWER_LIMIT "strain.gpu.power.limit"
#define NAME_GPU_LINK_GENERATION "strain.gpu.pcie.generation"
#define NAME_GPU_LINK_WIDTH "strain.gpu.pcie.width"
#define NAME_GPU_UNCORRECTED "hw.errors"
#define NAME_GPU_CORRECTED "strain.gpu.errors.corrected"
#define NAME_GPU_PAGES "strain.gpu.pages.retired"
#define NAME_GPU_ROWS "strain.gpu.rows.remapped"
#define NAME_GPU_XIDS "strain.gpu.xids"
#define NAME_GPU_REPLAYS "strain.gpu.pcie.replays"
#define NAME_GPU_THROTTLE "strain.gpu.throttle"
#define NAME_GPU_SM "strain.gpu.sm.activity"
#define NAME_GPU_OCCUPANCY "strain.gpu.sm.occupancy"
#define NAME_GPU_TENSOR "strain.gpu.tensor.activity"
#define NAME_GPU_DRAM "strain.gpu.dram.activity"
#define NAME_GPU_FP32 "strain.gpu.fp32.activity"
#define NAME_GPU_FP64 "strain.gpu.fp64.activity"

// recorder
#define NAME_TICKS "strain.recorder.ticks.due"
#define NAME_TICKS_LATE "strain.recorder.ticks.late"
#define NAME_TICKS_MISSED "strain.recorder.ticks.missed"
