// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// The names of metrics and of attributes that the analysis asks for; the sources' tables declare
// them, docs/metrics.md explains them. One place, so that a name is written once here.

#pragma once

// job, process, recorder
#define NAME_CPU_TIME "process.cpu.time"
#define NAME_CPU_USER "strain.cpu.time.user"
#define NAME_CPU_SYSTEM "strain.cpu.time.system"
#define NAME_RESIDENT "process.memory.usage"
#define NAME_PSS "strain.memory.pss"
#define NAME_RESIDENT_SUM "strain.memory.resident_sum"
#define NAME_ANONYMOUS "strain.memory.anonymous"
#define NAME_SHARED "strain.memory.shared"
#define NAME_FILE "strain.memory.file"
#define NAME_READ_ASKED "strain.io.read.asked"
#define NAME_WRITE_ASKED "strain.io.write.asked"
#define NAME_READ_STORAGE "strain.io.read.storage"
#define NAME_WRITE_STORAGE "strain.io.write.storage"
#define NAME_THROTTLED "strain.cpu.time.throttled"

// host
#define NAME_HOST_CPU_TIME "system.cpu.time"
#define NAME_HOST_MEMORY "system.memory.usage"
#define NAME_PRESSURE "strain.pressure." // cpu.some, cpu.full, memory.some ...

// disk, network
#define NAME_DISK_READ "strain.disk.read"
#define NAME_DISK_WRITE "strain.disk.write"
#define NAME_DISK_BUSY "strain.disk.time.busy"
#define NAME_NETWORK_RECEIVED "strain.network.received"
#define NAME_NETWORK_SENT "strain.network.sent"

// gpu
#define NAME_GPU_BUSY "hw.gpu.utilization"
#define NAME_GPU_MEMORY "hw.gpu.memory.usage"
#define NAME_GPU_POWER "hw.power"
#define NAME_GPU_ENERGY "hw.energy"
#define NAME_GPU_RECEIVED "strain.gpu.pcie.host_to_device"
#define NAME_GPU_SENT "strain.gpu.pcie.device_to_host"

// recorder
#define NAME_TICKS "strain.recorder.ticks"
#define NAME_TICKS_LATE "strain.recorder.ticks.late"
#define NAME_TICKS_MISSED "strain.recorder.ticks.missed"
