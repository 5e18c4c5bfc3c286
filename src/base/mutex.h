// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A mutex between threads of different priority.

#pragma once

#include <pthread.h>

// The holder inherits the priority of its waiters. Otherwise a real-time tick waits for a thread
// that the job keeps off its CPU (4 ms were seen). Where the system has no priority inheritance,
// this is a plain mutex.
static inline void mutex_init_inheriting(pthread_mutex_t *mutex)
{
	pthread_mutexattr_t attributes;
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	if (pthread_mutex_init(mutex, &attributes) != 0) {
		pthread_mutex_init(mutex, NULL);
	}
	pthread_mutexattr_destroy(&attributes);
}
