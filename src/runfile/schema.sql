-- SPDX-License-Identifier: GPL-3.0-or-later
-- The run file, schema 1.4: described for readers in docs/format.md. Embedded into the binary.
-- Times in columns are nanoseconds of CLOCK_MONOTONIC since the run's start unless the name says else.

CREATE TABLE run (
	key TEXT PRIMARY KEY,
	value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE label (
	name TEXT PRIMARY KEY,
	value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE entity (
	id INTEGER PRIMARY KEY,
	kind TEXT NOT NULL,            -- host, job, process, gpu, disk, network, recorder
	key TEXT NOT NULL,             -- unique within its kind: pid:start, GPU uuid, device name
	name TEXT NOT NULL,
	parent INTEGER REFERENCES entity(id),
	first_ns INTEGER NOT NULL,
	last_ns INTEGER,               -- NULL while it is there
	attributes TEXT NOT NULL DEFAULT '{}',
	UNIQUE (kind, key)
) STRICT;

CREATE TABLE metric (
	id INTEGER PRIMARY KEY,
	name TEXT NOT NULL,            -- unique for each kind of entity (no index: the table is short)
	entity_kind TEXT NOT NULL,
	kind TEXT NOT NULL,            -- counter, gauge, state
	unit TEXT NOT NULL,            -- UCUM, as OpenTelemetry writes it: s, By, 1, {process}
	scale REAL NOT NULL,           -- value in that unit = stored integer * scale
	source TEXT NOT NULL,
	help TEXT NOT NULL             -- '' where docs/metrics.md has it: 15 kB in every file else
) STRICT;

CREATE TABLE missing (
	entity INTEGER REFERENCES entity(id),  -- NULL: for every entity of the metric's kind
	metric INTEGER NOT NULL REFERENCES metric(id),
	from_ns INTEGER NOT NULL,
	to_ns INTEGER,                 -- NULL: to the end of the run
	reason TEXT NOT NULL
) STRICT;

-- Times that several blocks share: all that was read at the same ticks.
CREATE TABLE clock (
	id INTEGER PRIMARY KEY,
	t_first INTEGER NOT NULL,
	t_last INTEGER NOT NULL,
	rows INTEGER NOT NULL,
	codec INTEGER NOT NULL,
	payload BLOB NOT NULL          -- a block without metrics
) STRICT;

CREATE TABLE block (
	id INTEGER PRIMARY KEY,
	entity INTEGER NOT NULL REFERENCES entity(id),
	source TEXT NOT NULL,
	clock INTEGER REFERENCES clock(id),  -- NULL: the payload has times of its own
	t_first INTEGER NOT NULL,
	t_last INTEGER NOT NULL,
	rows INTEGER NOT NULL,
	codec INTEGER NOT NULL,
	payload BLOB NOT NULL
) STRICT;
CREATE INDEX block_by_entity ON block (entity, t_first);
CREATE INDEX block_by_clock ON block (clock) WHERE clock IS NOT NULL;

CREATE TABLE span (
	id INTEGER PRIMARY KEY,
	name TEXT NOT NULL,
	kind TEXT NOT NULL,            -- epoch, iteration, phase, user, point
	start_ns INTEGER NOT NULL,
	end_ns INTEGER,                -- NULL: still open; equal to start_ns: a point
	thread INTEGER,
	parent INTEGER,
	number INTEGER,                -- of the epoch or iteration
	samples INTEGER,
	value REAL,                    -- of a point
	attributes TEXT NOT NULL DEFAULT '{}'
) STRICT;
CREATE INDEX span_by_kind ON span (kind, start_ns);

-- Spans that have ended, many in a row of it: all but epochs and points.
CREATE TABLE span_block (
	id INTEGER PRIMARY KEY,
	first_ns INTEGER NOT NULL,     -- the first start
	last_ns INTEGER NOT NULL,      -- the last end
	first_id INTEGER NOT NULL,     -- of its spans, the lowest and the highest
	last_id INTEGER NOT NULL,
	rows INTEGER NOT NULL,
	codec INTEGER NOT NULL,
	words BLOB NOT NULL,           -- name, kind, thread, attributes: what many of them share
	payload BLOB NOT NULL          -- a block: starts, lengths, ids, ...
) STRICT;

CREATE TABLE event (
	id INTEGER PRIMARY KEY,
	t_ns INTEGER NOT NULL,
	kind TEXT NOT NULL,
	entity INTEGER REFERENCES entity(id),
	text TEXT NOT NULL,
	attributes TEXT NOT NULL DEFAULT '{}'
) STRICT;

-- Samples of CPU time: of a process, by the address that ran.
CREATE TABLE profile_object (
	id INTEGER PRIMARY KEY,
	path TEXT NOT NULL             -- of a mapped file; [jit], [kernel], [vdso]
) STRICT;

CREATE TABLE profile_sample (
	entity INTEGER NOT NULL REFERENCES entity(id),
	leader INTEGER NOT NULL,       -- 1: of the first thread of the process; 0: of its others
	from_ns INTEGER NOT NULL,
	to_ns INTEGER NOT NULL,
	object INTEGER NOT NULL REFERENCES profile_object(id),
	address INTEGER NOT NULL,      -- offset in the file; -1: of many addresses
	samples INTEGER NOT NULL       -- 49 a second of CPU time
) STRICT;

-- Added when the run has ended, where the file of the object still has its symbols.
CREATE TABLE profile_symbol (
	object INTEGER NOT NULL REFERENCES profile_object(id),
	address INTEGER NOT NULL,
	name TEXT NOT NULL
) STRICT;

-- Samples of CPU time by what the thread that trains was doing, over the whole run: several rows of
-- one key are to be added up.
CREATE TABLE phase_sample (
	entity INTEGER NOT NULL REFERENCES entity(id),
	phase TEXT,                    -- data, forward, ...; '': outside of any; NULL: not known
	leader INTEGER NOT NULL,       -- as in profile_sample
	object INTEGER NOT NULL REFERENCES profile_object(id),
	address INTEGER NOT NULL,
	samples INTEGER NOT NULL
) STRICT;

-- Samples of the line that the thread that trains was in (strain run --lines), likewise.
CREATE TABLE line_sample (
	entity INTEGER NOT NULL REFERENCES entity(id),
	phase TEXT,                    -- as in phase_sample, and 'recomputed', 'own backward',
	                               -- 'own optimizer', 'thread', 'pipeline'
	file TEXT NOT NULL,
	line INTEGER NOT NULL,
	function TEXT NOT NULL,
	samples INTEGER NOT NULL
) STRICT;

-- Figures are thousandths of the metric's scale, which are short integers; NULL: there is none.
CREATE TABLE summary (
	entity INTEGER NOT NULL REFERENCES entity(id),
	metric INTEGER NOT NULL REFERENCES metric(id),
	epoch INTEGER,                 -- NULL: the whole run
	total INTEGER,
	mean INTEGER,
	p50 INTEGER,
	p95 INTEGER,
	max INTEGER
) STRICT;

-- Figures and words that `strain finish` found, by the rules of the row 'rules'; a reader with other
-- rules computes them from the rest of the file.
CREATE TABLE finding (
	name TEXT PRIMARY KEY,         -- a measure, 'outcome', 'verdict', 'headline', ...
	number REAL,
	text TEXT                      -- a word or a line; of a measure without number, the reason
) STRICT, WITHOUT ROWID;

CREATE VIEW summary_by_name AS
WITH figure (entity, metric, epoch, aggregate, stored) AS (
	SELECT entity, metric, epoch, 'total', total FROM summary
	UNION ALL SELECT entity, metric, epoch, 'mean', mean FROM summary
	UNION ALL SELECT entity, metric, epoch, 'p50', p50 FROM summary
	UNION ALL SELECT entity, metric, epoch, 'p95', p95 FROM summary
	UNION ALL SELECT entity, metric, epoch, 'max', max FROM summary)
SELECT e.kind AS entity_kind, e.key AS entity_key, e.name AS entity_name, m.name AS metric,
	m.unit AS unit, f.epoch AS epoch, f.aggregate AS aggregate,
	f.stored * m.scale / 1000 AS value
FROM figure f JOIN entity e ON e.id = f.entity JOIN metric m ON m.id = f.metric
WHERE f.stored IS NOT NULL;
