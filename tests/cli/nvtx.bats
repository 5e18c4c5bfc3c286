#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-3.0-or-later
#
# What a job says through NVTX: as the run has it, and that the job is as without it.

load run_helpers

RANGES="$BUILD_ROOT/tests/tools/nvtx_ranges"
FRAMEWORKS=${STRAIN_FRAMEWORKS:-$SOURCE_ROOT/.frameworks}

record() {
	unset NVTX_INJECTION64_PATH
	"$STRAIN" run -o run.strain --force "$@"
}

# The folder of NVTX's own headers, where this machine has them.
nvtx_headers() {
	local folder
	for folder in "${STRAIN_NVTX_INCLUDE:-}" \
		"$FRAMEWORKS"/python/lib/python*/site-packages/nvidia/nvtx/include \
		/usr/local/cuda/include /usr/include; do
		if [ -e "$folder/nvtx3/nvToolsExt.h" ]; then
			echo "$folder"
			return 0
		fi
	done
	return 1
}

# A Python that has the package nvtx.
nvtx_python() {
	local python
	for python in "$FRAMEWORKS/python/bin/python" /usr/bin/python3; do
		if "$python" -c 'import nvtx' 2>/dev/null; then
			echo "$python"
			return 0
		fi
	done
	return 1
}

@test "thousands of ranges take no room from phases and iterations, nor their names" {
	python=$(nvtx_python) || skip "no package nvtx for Python"
	cat >job.py <<-'EOF'
	import threading
	import time

	import nvtx
	import strain


	def flood(number):
	    for i in range(400):
	        with nvtx.annotate("%d-%d" % (number, i)):
	            time.sleep(0.0002)


	threads = [threading.Thread(target=flood, args=(number,)) for number in range(20)]
	for thread in threads:
	    thread.start()
	for thread in threads:
	    thread.join()
	for _ in strain.iterations(range(100)):
	    with strain.phase("step"):
	        for i in range(300):
	            with nvtx.annotate("inside"):
	                pass
	        time.sleep(0.005)
	EOF
	record "$python" job.py
	[ "$(python_sql run.strain "SELECT count(*) FROM span WHERE kind = 'iteration'")" = 100 ]
	[ "$(python_sql run.strain "SELECT count(*) FROM span WHERE kind = 'phase' AND name = 'step'")" = 100 ]
	[ "$(python_sql run.strain "SELECT count(*) > 1000 FROM span WHERE kind = 'user'")" = 1 ]
}

@test "ranges and marks become spans and points" {
	record "$RANGES" >out
	[ "$(cat out)" = "a tool" ]
	[ "$(python_sql run.strain "SELECT name, kind, count(*), min(number), sum(attributes LIKE '%end%')
		FROM span GROUP BY name, kind ORDER BY name")" = 'child|user|1|4|0
crossing|user|1|None|0
forward|user|3|None|0
loss|point|3|None|0
mine/café|user|3|7|0
work|user|1|None|0' ]
	# The domain's ranges cross those of the default one.
	[ "$(python_sql run.strain "SELECT count(*) FROM span a JOIN span b ON a.name = 'forward'
		AND b.name = 'mine/café' AND b.start_ns > a.start_ns AND b.start_ns < a.end_ns
		AND b.end_ns > a.end_ns")" = 3 ]
	# The one that another thread ended, and whose ranges they are.
	[ "$(python_sql run.strain "SELECT count(*) FROM span a JOIN span b ON a.name = 'crossing'
		AND b.name = 'work' WHERE a.thread = b.thread AND a.end_ns BETWEEN b.start_ns AND b.end_ns")" = 1 ]
	[ "$(python_sql run.strain "SELECT DISTINCT e.name, s.attributes ->> 'from' FROM span s
		JOIN entity e ON e.id = s.attributes ->> 'process'")" = 'nvtx_ranges|nvtx' ]
	[ "$(python_sql run.strain "SELECT count(DISTINCT attributes ->> 'process') FROM span")" = 2 ]
	[ -z "$(run_key run.strain nvtx_missing)" ]
}

@test "another tool is left in peace, and the run says so" {
	# shellcheck disable=SC2016
	NVTX_INJECTION64_PATH=/opt/other.so "$STRAIN" run -o run.strain \
		sh -c 'echo "$NVTX_INJECTION64_PATH"' >out
	[ "$(cat out)" = /opt/other.so ]
	[ "$(run_key run.strain nvtx_missing)" = \
		"NVTX_INJECTION64_PATH was set already, to /opt/other.so" ]
	NVTX_INJECTION64_PATH=/opt/other.so "$STRAIN" doctor | grep -q '^nvtx .*missing .*/opt/other.so'
}

@test "a run within a run is no other tool" {
	record "$STRAIN" run -o inner.strain "$RANGES" >out
	[ "$(cat out)" = "a tool" ]
	[ -z "$(run_key inner.strain nvtx_missing)" ]
	[ "$(python_sql inner.strain "SELECT count(*) FROM span WHERE name = 'forward'")" = 3 ]
	[ "$(python_sql run.strain "SELECT count(*) FROM span")" = 0 ]
	record "$STRAIN" run --no-markers -o inner.strain --force "$RANGES" >out
	[ "$(cat out)" = "no tool" ]
	[ "$(python_sql run.strain "SELECT count(*) FROM span")" = 0 ]
}

@test "--no-markers, and nothing that records: NVTX does nothing" {
	# shellcheck disable=SC2016
	record --no-markers sh -c 'echo "${NVTX_INJECTION64_PATH-none}"; exec "$0"' "$RANGES" >out
	[ "$(cat out)" = $'none\nno tool' ]
	[ "$(run_key run.strain nvtx_missing)" = "--no-markers was given" ]
	unset STRAIN_MARKERS
	export NVTX_INJECTION64_PATH=$BUILD_ROOT/libstrain-nvtx.so
	[ "$("$RANGES")" = "no tool" ]
	[ "$(STRAIN_MARKERS=/nowhere "$RANGES")" = "a tool" ] # whose ranges go nowhere
}

@test "a program with NVTX's own headers" {
	include=$(nvtx_headers) || skip "NVTX's headers are not here (make frameworks)"
	cat >job.c <<'END'
#include <nvtx3/nvToolsExt.h>

int main(void)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateW(L"wide");
	nvtxEventAttributes_t event = {0};
	event.version = NVTX_VERSION;
	event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	event.message.registered = nvtxDomainRegisterStringA(domain, "kept 3");
	event.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
	event.payload.dValue = 0.5;
	nvtxRangeId_t id = nvtxRangeStartW(L"from start to end");
	for (int i = 0; i < 5; i++) {
		nvtxRangePushA("outer");
		nvtxDomainRangePushEx(domain, &event);
		nvtxDomainRangePop(domain);
		if (nvtxRangePop() != 0) {
			return 1;
		}
	}
	nvtxDomainMarkEx(domain, &event);
	nvtxMarkA("here");
	nvtxRangeEnd(id);
	nvtxNameOsThreadA(1, "nobody asks");
	nvtxNameCategoryA(1, "nor here");
	nvtxDomainDestroy(domain);
	return 0;
}
END
	cc -I "$include" -o job job.c -ldl
	record ./job
	[ "$(python_sql run.strain "SELECT name, kind, count(*), min(number), max(value) FROM span
		GROUP BY 1, 2 ORDER BY 1, 2")" = 'from start to end|user|1|None|None
here|point|1|None|None
outer|user|5|None|None
wide/kept|point|1|3|0.5
wide/kept|user|5|3|None' ]
}

@test "the Python package nvtx" {
	python=$(nvtx_python) || skip "no Python with the package nvtx is here (make frameworks)"
	cat >job.py <<'END'
import threading

import nvtx

with nvtx.annotate("outer"):
    for step in range(4):
        with nvtx.annotate(f"step {step}", domain="trainer"):
            nvtx.mark("here")

@nvtx.annotate()
def named():
    pass

named()
crossing = nvtx.start_range("crossing")
thread = threading.Thread(target=nvtx.end_range, args=(crossing,))
thread.start()
thread.join()
END
	record "$python" job.py
	[ "$(python_sql run.strain "SELECT name, kind, count(*), min(number), max(number) FROM span
		GROUP BY 1, 2 ORDER BY 1, 2")" = 'crossing|user|1|None|None
here|point|4|None|None
named|user|1|None|None
outer|user|1|None|None
trainer/step|user|4|0|3' ]
}

@test "the library needs nothing newer than glibc 2.17, and nothing else" {
	library=$BUILD_ROOT/libstrain-nvtx.so
	newest=$(objdump -T "$library" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
	[ "$(printf '%s\n' "$newest" GLIBC_2.17 | sort -V | tail -n 1)" = GLIBC_2.17 ]
	[ -z "$(objdump -p "$library" | awk '/NEEDED/ {print $2}' | grep -v -e '^libc\.so' -e '^ld-linux')" ]
	[ "$(objdump -T "$library" | awk '$4 == ".text" {print $NF}')" = InitializeInjectionNvtx2 ]
}
