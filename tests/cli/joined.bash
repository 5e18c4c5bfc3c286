# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
#
# What tests of ranks that are joined (strain show DIR) have in common.

has_torch() {
	/usr/bin/python3 -c 'import torch.distributed as d; assert d.is_gloo_available()' 2>/dev/null ||
		skip "no PyTorch with gloo"
}

# An expression over the document j.
field() { # EXPRESSION FILE
	python3 -c 'import json, sys
j = json.load(open(sys.argv[2]))
print(eval(sys.argv[1], {"j": j, "slowest": j["slowest"], "ranks": j["ranks"]}))' "$1" "$2"
}

# A port for the ranks of a job that nobody listens on. Not one of those that the kernel gives to connections: one of
# another test could have it when the first rank wants to listen, and the second would ask that one, and wait.
free_port() {
	python3 - <<-'END'
		import random, socket
		while True:
		    with socket.socket() as s:
		        port = random.randrange(10000, 32000)
		        try:
		            s.bind(("127.0.0.1", port))
		        except OSError:
		            continue
		        print(port)
		        break
	END
}
