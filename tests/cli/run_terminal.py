#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
#
# What a shell and a terminal do to `strain run`: a pseudo-terminal, a session leader that starts the
# program in a process group of its own, keys, signals, sizes. One scenario a call:
#
#   run_terminal.py SCENARIO [OPTION OF strain run]...
#
# Prints what went wrong and exits with 1, or exits with 0.

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

STRAIN = os.environ["STRAIN"]
OPTIONS = sys.argv[2:]
PATIENCE = 30  # seconds; only ever reached by a failure

# Counts what it is sent, says so line by line, ends at a line on its standard input or after 60 s.
COUNTER = r"""
import os, select, signal, sys, time
# Each arrival is a byte in a pipe, written at once: handlers in Python come later, and two signals
# of a kind may by then be one.
arrivals, arrive = os.pipe()
os.set_blocking(arrivals, False)
os.set_blocking(arrive, False)
signal.set_wakeup_fd(arrive)
counted = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGCONT,
           signal.SIGRTMIN + 1)
for number in counted:
    signal.signal(number, lambda number, frame: None)
def resized(number, frame):
    size = os.get_terminal_size(1)
    os.write(1, b"size %d %d\n" % (size.columns, size.lines))  # print is not reentrant
signal.signal(signal.SIGWINCH, resized)
print("ready", os.getpid(), os.isatty(0), os.isatty(1), os.isatty(2), flush=True)
end = time.monotonic() + 60
while time.monotonic() < end:
    if os.path.exists(sys.argv[1]):
        break
    time.sleep(0.02)
try:
    arrived = os.read(arrivals, 65536)
except BlockingIOError:
    arrived = b""
print("counts", sorted((signal.Signals(n).name if n < 32 else "RT", arrived.count(n))
                       for n in map(int, counted) if n in arrived), flush=True)
"""


class Failed(Exception):
    pass


def expect(condition, text):
    if not condition:
        raise Failed(text)


class Terminal:
    """A pseudo-terminal whose session leader runs a job in the foreground, as a shell does."""

    def __init__(self, command, environment=None):
        self.output = b""
        self.stop_file = os.path.join(os.environ["BATS_TEST_TMPDIR"], "stop")
        if os.path.exists(self.stop_file):
            os.unlink(self.stop_file)
        report_read, report_write = os.pipe()
        self.leader, self.master = pty.fork()
        if self.leader == 0:
            os.close(report_read)
            self.lead(command, environment, report_write)
        os.close(report_write)
        self.report = report_read
        self.pid = int(self.read_report())

    def lead(self, command, environment, report):
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            os.tcsetpgrp(0, os.getpid())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
            os.close(report)
            os.environ.update(environment or {})
            os.execvp(command[0], command)
        os.write(report, b"%d\n" % pid)
        while True:
            _, status = os.waitpid(pid, os.WUNTRACED)
            if os.WIFSTOPPED(status):
                os.write(report, b"stopped %d\n" % os.WSTOPSIG(status))
                continue
            os.write(report, b"ended %d\n" % status)
            os._exit(0)

    def read_report(self):
        line = b""
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([self.report, self.master], [], [], PATIENCE)
            expect(ready, "nothing happened; output: %r" % self.output)
            if self.report in ready:
                byte = os.read(self.report, 1)
                expect(byte, "the session leader is gone; output: %r" % self.output)
                line += byte
            else:
                self.read_some()
        return line.decode().strip()

    def read_some(self):
        try:
            self.output += os.read(self.master, 65536)
        except OSError:
            time.sleep(0.01)

    def wait_for(self, text):
        end = time.monotonic() + PATIENCE
        while text not in self.output:
            expect(time.monotonic() < end, "no %r in %r" % (text, self.output))
            if select.select([self.master], [], [], 0.1)[0]:
                self.read_some()

    def press(self, key):
        os.write(self.master, key)

    def resize(self, columns, lines):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def end_job(self):
        with open(self.stop_file, "w"):
            pass

    def finish(self):
        """Waits for the end; returns the wait status."""
        word, status = self.read_report().split()
        expect(word == "ended", "%s %s instead of an end; output: %r" % (word, status, self.output))
        while select.select([self.master], [], [], 0.2)[0]:
            before = len(self.output)
            self.read_some()
            if len(self.output) == before:
                break
        return int(status)


def start(extra=(), environment=None):
    stop = os.path.join(os.environ["BATS_TEST_TMPDIR"], "stop")
    terminal = Terminal([STRAIN, "run", *OPTIONS, *extra, "--", sys.executable, "-c", COUNTER, stop],
                        environment)
    terminal.wait_for(b"ready")
    terminal.wait_for(b"\n")
    terminal.job = int(terminal.output.split(b"ready ")[1].split()[0])
    return terminal


def state_of(pid):
    with open("/proc/%d/stat" % pid) as stat:
        return stat.read().rsplit(")", 1)[1].split()[0]


def wait_state(pid, states):
    end = time.monotonic() + PATIENCE
    while state_of(pid) not in states:
        expect(time.monotonic() < end, "process %d is %s, not %s" % (pid, state_of(pid), states))
        time.sleep(0.01)


def counts_after(terminal, pause=0.3):
    time.sleep(pause)  # a signal that is passed on twice needs a moment for the second time
    terminal.end_job()
    terminal.wait_for(b"counts")
    status = terminal.finish()
    expect(status == 0, "status %d; output: %r" % (status, terminal.output))
    return terminal.output.split(b"counts ")[1].split(b"\r\n")[0].decode()


def expect_counts(terminal, wanted, pause=0.3):
    found = counts_after(terminal, pause)
    expect(found == wanted, "the job counted %s, expected %s" % (found, wanted))


def ctrl_c():
    terminal = start()
    terminal.press(b"\x03")
    terminal.wait_for(b"^C")
    expect_counts(terminal, "[('SIGINT', 1)]")


def ctrl_c_ends():
    """Ctrl-C on a job that does nothing about it: the shell sees a death by SIGINT."""
    terminal = Terminal([STRAIN, "run", *OPTIONS, "--", "sh", "-c", "echo ready; exec sleep 60"])
    terminal.wait_for(b"ready")
    terminal.press(b"\x03")
    status = terminal.finish()
    expect(os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGINT, "status %d" % status)


def ctrl_z():
    terminal = start()
    for _ in range(3):
        terminal.press(b"\x1a")
        word = terminal.read_report()
        expect(word.startswith("stopped"), "%s instead of a stop" % word)
        wait_state(terminal.job, "T")
        os.killpg(terminal.pid, signal.SIGCONT)
        wait_state(terminal.job, "SR")
        time.sleep(0.2)  # a SIGCONT that is not handled yet is taken back by the next Ctrl-Z
    expect_counts(terminal, "[('SIGCONT', 3)]")


def wait_taken(pid):
    """Waits until no signal is pending: a stop would take a SIGCONT with it that is."""
    def pending():
        with open("/proc/%d/status" % pid, encoding="ascii", errors="replace") as status:
            return any(int(line.split()[1], 16) for line in status
                       if line.startswith(("SigPnd", "ShdPnd")))
    deadline = time.monotonic() + 10
    while pending():
        expect(time.monotonic() < deadline, "a signal stays pending")
        time.sleep(0.01)


def self_stop():
    """A job that stops itself stops the launcher; either of the two continues both."""
    terminal = start()
    os.kill(terminal.job, signal.SIGSTOP)
    expect(terminal.read_report().startswith("stopped"), "no stop")
    os.kill(terminal.pid, signal.SIGCONT)
    wait_state(terminal.job, "SR")
    wait_taken(terminal.job)
    time.sleep(0.5)  # Python counts a signal only some instructions after it has taken it
    os.kill(terminal.job, signal.SIGSTOP)
    expect(terminal.read_report().startswith("stopped"), "no second stop")
    os.kill(terminal.job, signal.SIGCONT)
    wait_state(terminal.pid, "SR")
    expect_counts(terminal, "[('SIGCONT', 2)]")


def lone_signals():
    """What is sent to the launcher alone reaches the job once."""
    terminal = start()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT,
                   signal.SIGRTMIN + 1):
        os.kill(terminal.pid, number)
        time.sleep(0.1)
    expect_counts(terminal,
                  "[('RT', 1), ('SIGHUP', 1), ('SIGINT', 1), ('SIGTERM', 1), ('SIGUSR1', 1)]")


def group_signals():
    """What is sent to the group reaches the job once, however often."""
    terminal = start()
    for _ in range(20):
        os.killpg(terminal.pid, signal.SIGTERM)
        wait_taken(terminal.job)  # a second one would be one with the first
        time.sleep(0.05)
    os.killpg(terminal.pid, signal.SIGUSR1)
    os.kill(terminal.pid, signal.SIGHUP)
    expect_counts(terminal, "[('SIGHUP', 1), ('SIGTERM', 20), ('SIGUSR1', 1)]")


def child_of(parent, wanted):
    """The pid of the child with a name, or None. A child may end while it is looked at."""
    with open("/proc/%d/task/%d/children" % (parent, parent), encoding="ascii") as children:
        for child in map(int, children.read().split()):
            try:
                with open("/proc/%d/comm" % child, encoding="ascii") as name:
                    if name.read().strip() == wanted:
                        return child
            except (FileNotFoundError, ProcessLookupError):
                pass
    return None


def wait_witnessed(terminal):
    """Waits until the launcher has dealt with all signals: the next ones are others."""
    wait_taken(terminal.job)
    wait_taken(terminal.pid)
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            witness = child_of(terminal.pid, "strain-witness")
            if witness:
                wait_taken(witness)
                return
        except (FileNotFoundError, ProcessLookupError):
            pass
        expect(time.monotonic() < deadline, "there is no witness")


def close_group_signals():
    """Signals to the group that follow each other closely reach the job once each."""
    terminal = start()
    rounds = 60
    for turn in range(rounds):
        os.killpg(terminal.pid, signal.SIGTERM)
        until = time.monotonic() + turn * 25e-6
        while time.monotonic() < until:
            pass
        os.killpg(terminal.pid, signal.SIGUSR1)
        wait_witnessed(terminal)
    expect_counts(terminal, "[('SIGTERM', %d), ('SIGUSR1', %d)]" % (rounds, rounds))


def descendants(pid):
    """Of a process, the oldest first, and itself."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % name, encoding="utf-8", errors="replace") as stat:
                parents[int(name)] = int(stat.read().rpartition(")")[2].split()[1])
        except OSError:
            pass
    found = [pid]
    for one in found:
        found += sorted(child for child, parent in parents.items() if parent == one)
    return found


def slurm_signals():
    """Slurm signals a step's task alone, or each of its processes: the job has the signal once."""
    terminal = start(environment={"SLURM_JOB_ID": "1", "SLURM_STEP_ID": "0"})
    os.kill(terminal.pid, signal.SIGTERM)
    wait_witnessed(terminal)
    for pid in descendants(terminal.pid):
        os.kill(pid, signal.SIGUSR1)
        time.sleep(0.005)
    # Before it passes the first on, the launcher waits for Slurm to signal the others, too.
    expect_counts(terminal, "[('SIGTERM', 1), ('SIGUSR1', 1)]", pause=2)


def resized():
    terminal = start()
    terminal.resize(101, 37)
    terminal.wait_for(b"size 101 37")
    terminal.resize(55, 11)
    terminal.wait_for(b"size 55 11")
    counts_after(terminal)


def terminal_stays():
    terminal = start()
    expect(b"True True True" in terminal.output, "no terminal: %r" % terminal.output)
    counts_after(terminal)


def newlines():
    """The terminal's own treatment of newlines happens once."""
    terminal = Terminal([STRAIN, "run", *OPTIONS, "--", "printf", "one\\ntwo\\r\\n\\ttab\\n"])
    expect(terminal.finish() == 0, "failed")
    expect(terminal.output.startswith(b"one\r\ntwo\r\r\n\ttab\r\n"), "%r" % terminal.output)


def launcher_killed():
    """The job and what passes its output on live on."""
    terminal = start()
    os.kill(terminal.pid, signal.SIGKILL)
    status = terminal.finish()
    expect(os.WIFSIGNALED(status), "status %d" % status)
    terminal.end_job()
    time.sleep(0.2)
    end = time.monotonic() + PATIENCE
    while os.path.exists("/proc/%d" % terminal.job) and state_of(terminal.job) != "Z":
        expect(time.monotonic() < end, "the job did not end")
        time.sleep(0.02)


def forwarder_of(launcher):
    """The pid of what passes the output on, once there is one."""
    deadline = time.monotonic() + PATIENCE
    while not child_of(launcher, "strain-forward"):
        expect(time.monotonic() < deadline, "there is no forwarder")
        time.sleep(0.01)
    return child_of(launcher, "strain-forward")


def forwarder_killed():
    """Another one goes on: what the job prints, and what it is told of the terminal's size."""
    terminal = start()
    killed = forwarder_of(terminal.pid)
    os.kill(killed, signal.SIGKILL)
    terminal.resize(101, 37)
    terminal.wait_for(b"size 101 37")
    expect(forwarder_of(terminal.pid) != killed, "the killed forwarder is still there")
    counts_after(terminal)


# Says who it is, waits; to be hung up, or to end by itself with status 3 where it takes no notice.
HUNG_UP = r"""
import os, signal, sys, time
if sys.argv[1] == "ignores":
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
if sys.argv[1] == "handles":
    signal.signal(signal.SIGHUP, lambda *_: os._exit(5))
os.write(1, b"ready %d\n" % os.getpid())
time.sleep(2 if sys.argv[1] == "ignores" else 60)
os._exit(3)
"""


def hung_up(command):
    """Runs it as its session's leader and closes the terminal. How it ended, whether its job has."""
    pid, master = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup make test ignores it
        os.execvp(command[0], command)
    output = b""
    while b"\n" not in output.partition(b"ready ")[2]:
        expect(select.select([master], [], [], PATIENCE)[0], "no %r" % "ready")
        output += os.read(master, 65536)
    job = int(output.partition(b"ready ")[2].split()[0])
    os.close(master)
    end = time.monotonic() + PATIENCE
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status, os.path.exists("/proc/%d" % job)
        if time.monotonic() > end:
            os.kill(job, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise Failed("it lives on after the hang-up")
        time.sleep(0.02)


def hang_up():
    """Where the terminal goes (ssh -t, tmux new-window), the job ends as it would without strain."""
    for how in ("does nothing", "handles", "ignores"):
        job = [sys.executable, "-c", HUNG_UP, how]
        bare = hung_up(job)
        ours = hung_up([STRAIN, "run", *OPTIONS, "--", *job])
        expect(bare == ours, "%s: bare %s, recorded %s" % (how, bare, ours))


SCENARIOS = (ctrl_c, ctrl_c_ends, ctrl_z, self_stop, lone_signals, group_signals,
             close_group_signals, slurm_signals, resized, terminal_stays, newlines, launcher_killed, forwarder_killed,
             hang_up)

if __name__ == "__main__":
    scenario = {function.__name__: function for function in SCENARIOS}[sys.argv[1]]
    try:
        scenario()
    except Failed as failure:
        sys.exit("%s: %s" % (sys.argv[1], failure))
