// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// What the sources' groups of metrics are, in words that people know.

#pragma once

struct source;
struct group;

// "waits, page faults and threads"; the group's own name where it has no words yet. Lives for ever.
const char *doctor_group_words(const struct source *source, const struct group *group);
