// SPDX-License-Identifier: GPL-3.0-or-later
// SPDX-FileCopyrightText: the strain authors
//
// A price list (YAML): what machines cost, rented by the hour or bought, and the measures of a run
// that follow from it. They are computed each time a run is shown, because prices change.
//
//   currency: USD
//   machines:              # the first entry that matches a run counts
//     - gpu: "*H100*"      # glob of the GPU's name; host: glob of the host's name
//       gpu_hour: 3        # rented: hour (the whole machine), cpu_hour, gpu_hour, gb_hour
//     - host: "*"
//       price: 2000        # bought: price, years, utilisation; watts, kwh (price of 1 kWh)
//       years: 4

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "run/measures.h"
#include "study/digest.h"
#include "study/yaml.h"

struct text;

enum { PRICES_ENTRIES_MAX = 1000, PRICES_CURRENCY_MAX = 16 };

// What a price of the whole machine is charged for.
enum price_charge {
	CHARGE_MACHINE, // all of it
	CHARGE_ALLOCATED, // the job's share: the largest of those of CPUs, memory and GPUs
};

// Prices are in the currency of the list, at least 0; NAN: not given.
struct price_entry {
	unsigned line; // in the file, from 1
	const char *host; // glob, without regard to case; NULL: any
	const char *gpu; // the same of the GPU's name; "none": no GPU; NULL: any, also none
	enum price_charge charge;
	double hour; // of the whole machine
	double cpu_hour; // of one CPU that the job was allocated
	double gpu_hour;
	double gb_hour; // of 10^9 bytes of memory
	double price; // to buy the machine
	double years; // for which it is used
	double utilisation; // share of the years in which it is used, above 0 to 1; default 1
	double watts; // drawn by the machine; NAN: the measured energy counts
	double kwh; // price of a kWh
};

struct prices {
	char *path; // owned
	const char *currency; // "USD"
	struct price_entry *entries; // [n] owned
	size_t n;
	struct yaml yaml; // owns the texts
};

// Errors: the file cannot be read; -EINVAL with one line "PATH:LINE:COLUMN: what is wrong";
// -ENOMEM.
int prices_open(const char *path, struct prices *ret, struct error *e);
// The same of the contents of a file.
int prices_parse(
	const char *path, const char *data, size_t size, struct prices *ret, struct error *e);
void prices_done(struct prices *p);

// The entry for a run: the first whose host and GPU match. NULL: none does.
const struct price_entry *prices_entry(const struct prices *p, const struct digest *d);

// Sets the measures with prices of a run (measure_is_priced), or why they are missing, and its
// currency. p NULL: there is no price list. The digest must not outlive the list. -ENOMEM.
int prices_tell(const struct prices *p, struct digest *d);

// What a second of the run cost, after prices_tell; NAN: not known.
double prices_per_second(const struct digest *d);

// Appends "1.20 USD, of which 0.60 USD idle (prices.yaml:12)", or why the cost is not known;
// nothing without a price list.
void prices_append(struct text *t, const struct prices *p, const struct digest *d);
// Appends an amount: "1.20 USD", "0.0031 USD".
void prices_append_amount(struct text *t, double amount, const char *currency);
