#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small training job with a bottleneck, or without it (VARIED=off): varied.py KIND MODEL SECONDS

Prints `iterations N` and `rate R`, for the last four fifths of the time. The kinds are the arguments of
is_on(). Each is added where scripts have it: in a dataset, a loader, a collate function, a loop.
"""

import gc
import io
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset

KIND, MODEL, SECONDS = sys.argv[1], sys.argv[2], float(sys.argv[3])
ON = os.environ.get("VARIED") != "off"
BATCH = 32


def is_on(kind):
    """Whether this bottleneck is switched on."""
    return ON and kind == KIND


class Lstm(nn.Module):
    """Classes of sequences."""

    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.LSTM(28, 64, batch_first=True), nn.Linear(64, 10)

    def forward(self, x):
        """(batch, 1, 28, 28) to (batch, 10)."""
        return self.out(self.cell(x.reshape(len(x), 28, 28))[0][:, -1])


MODELS = {
    "mlp": lambda: nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)),
    "cnn": lambda: nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3),
                                 nn.ReLU(), nn.Flatten(), nn.Linear(3872, 10)),
    "lstm": Lstm,
}  # fmt: skip


class Server(BaseHTTPRequestHandler):
    """Answers slowly."""

    def do_GET(self):
        """A sample."""
        time.sleep(0.003)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(bytes(784))

    def log_message(self, *_words):
        """Nothing."""


SHARED = multiprocessing.Lock()
BLOB = zlib.compress(os.urandom(60_000) + bytes(200_000))
TEXT = json.dumps({"words": [f"word{i % 50}" for i in range(600)]})
FOLDER = tempfile.mkdtemp(prefix="varied")
TINY = 3000
OUTLINES = [[(k, k + 0.5) for k in range(2000)] for _ in range(64)] if KIND == "objects" else []


def prepare():
    """Prepares a kind, before the workers start."""
    if KIND == "files":
        for i in range(TINY):
            with open(f"{FOLDER}/{i}.pt", "wb") as file:
                torch.save(torch.zeros(1, 28, 28), file)
    if KIND == "fetch":
        server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
        os.environ["VARIED_PORT"] = str(server.server_port)
        child = os.fork()
        if child == 0:
            threading.Timer(SECONDS + 60, os._exit, (0,)).start()
            server.serve_forever()
        return child
    return None


def busy(ms):
    """Python that computes."""
    end = time.perf_counter() + ms / 1000
    while time.perf_counter() < end:
        sum(range(50))


class Samples(Dataset):
    """Images of noise."""

    def __init__(self, n):
        self.images = torch.randn(256, 1, 28, 28)
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        x = self.images[i % 256]
        if is_on("sleep-main"):
            time.sleep(0.0005)
        if is_on("python-main") or is_on("few-workers"):
            busy(0.4)
        if is_on("inflate"):
            zlib.decompress(BLOB)
        if is_on("mutex"):
            with SHARED:
                time.sleep(0.0015)
        if is_on("fetch"):
            urllib.request.urlopen(f"http://127.0.0.1:{os.environ['VARIED_PORT']}/").read()
        if is_on("files"):
            x = torch.load(f"{FOLDER}/{i % TINY}.pt")
        if KIND == "objects":
            return x, i % 10, OUTLINES[i % 64] if ON else 0
        if is_on("large"):
            return torch.zeros(3, 224, 224), x, i % 10
        return x, i % 10


class Stream(IterableDataset):
    """Samples without an index."""

    def __iter__(self):
        image = torch.randn(1, 28, 28)
        while True:
            if is_on("stream"):
                json.loads(TEXT)
            yield image, 3


def collate(samples):
    """Pads and joins in Python."""
    if is_on("collate"):
        for _ in samples:
            [len(word) for word in json.loads(TEXT)["words"]]
    if KIND == "objects":
        return [sample[2] for sample in samples], *torch.utils.data.default_collate([sample[:2] for sample in samples])
    return torch.utils.data.default_collate(samples)


def make_loader():
    """The loader of this kind."""
    options = {"batch_size": BATCH, "collate_fn": collate}
    workers = {"mutex": 4, "fetch": 4, "large": 2, "few-workers": 1, "restarts": 2, "objects": 2, "many-workers": 2}
    options["num_workers"] = workers.get(KIND, 0)
    if is_on("many-workers"):
        options["num_workers"] = 8
    if KIND == "restarts":
        options["persistent_workers"] = not ON
        return DataLoader(Samples(BATCH * 8), **options)
    if KIND == "stream":
        return DataLoader(Stream(), **options)
    return DataLoader(Samples(6400), **options)


def hold_interpreter():
    """A thread that logs continuously."""
    lines = []
    while True:
        lines.append(json.dumps({"step": len(lines), "text": TEXT}))
        del lines[:-10]


class Loop:
    """Work in steps besides training."""

    def __init__(self, model, optimizer):
        self.model, self.optimizer, self.n = model, optimizer, 0
        self.average = [p.detach().clone() for p in model.parameters()]
        self.objects = [{"i": i} for i in range(300_000)] if KIND == "collect" else []
        self.validation = DataLoader(Samples(1600), batch_size=BATCH)

    def before(self):
        """Of a step."""
        if is_on("pace"):
            time.sleep(0.01)
        if is_on("script"):
            busy(10)

    def after(self, y, labels, loss):
        """Of a step."""
        self.n += 1
        if is_on("metrics"):
            right = [int(a.argmax().item() == b.item()) for a, b in zip(y, labels)]
            for k in range(10):
                sum(1 for a, b in zip(right, labels.tolist()) if a and b == k)
        if is_on("print"):
            for name, p in self.model.named_parameters():
                print(name, self.n, p.detach().flatten()[:200].tolist(), file=sys.stderr, flush=True)
        if is_on("collect"):
            gc.collect()
        if is_on("programs"):
            subprocess.run(["git", "--version"], stdout=subprocess.DEVNULL, check=False)
        if is_on("output"):
            subprocess.run("df / | tail -1 | awk '{print $4}'", shell=True, capture_output=True, check=False)
        if is_on("save") and self.n % 4 == 0:
            state = {"model": self.model.state_dict(), "more": torch.zeros(3_000_000)}
            torch.save(state, f"{FOLDER}/checkpoint.pt")
        if is_on("sync") and self.n % 4 == 0:
            with open(f"{FOLDER}/checkpoint.pt", "wb") as file:
                torch.save({"model": self.model.state_dict(), "more": torch.zeros(1_000_000)}, file)
                file.flush()
                os.fsync(file.fileno())
        if is_on("validate") and self.n % 20 == 0:
            self.model.eval()
            with torch.no_grad():
                for x, _ in self.validation:
                    self.model(x)
            self.model.train()
        if is_on("pickle"):
            buffer = io.BytesIO()
            torch.save([self.model.state_dict()] * 4, buffer)
            torch.load(io.BytesIO(buffer.getvalue()))
        if is_on("churn"):
            kept = [torch.zeros(2_000_000) for _ in range(4)]
            del kept


def main():
    """Trains for the given time."""
    torch.manual_seed(1)
    if KIND == "one-thread":
        torch.set_num_threads(1 if ON else 2)
    if KIND == "crowd":
        torch.set_num_threads(2 * len(os.sched_getaffinity(0)) if ON else 1)
    server = prepare()
    model = MODELS[MODEL]()
    if KIND == "tiny-tensors":
        model = nn.ModuleDict({"net": model})
        for i in range(600 if ON else 1):
            model[f"p{i}"] = nn.ParameterList([nn.Parameter(torch.zeros(4))])
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    if is_on("thread"):
        threading.Thread(target=hold_interpreter, daemon=True).start()
    call = model["net"] if KIND == "tiny-tensors" else model
    loop, loader = Loop(call, optimizer), make_loader()
    extra = [p for n, p in model.named_parameters() if n.startswith("p")] if KIND == "tiny-tensors" else []
    begun, times = time.monotonic(), []
    while time.monotonic() < begun + SECONDS:
        for batch in loader:
            x, labels = batch[-2], batch[-1]
            loop.before()
            optimizer.zero_grad(set_to_none=False)
            y = call(x)
            loss = nn.functional.cross_entropy(y, labels)
            loss = loss + sum(p.sum() for p in extra)
            loss.backward()
            optimizer.step()
            loop.after(y, labels, loss)
            times.append(time.monotonic())
            if times[-1] > begun + SECONDS:
                break
    late = [t for t in times if t > begun + SECONDS / 5]
    print(f"iterations {len(times)}")
    print(f"rate {(len(late) - 1) / (late[-1] - late[0]):.6f}")
    if server:
        os.kill(server, 9)
    subprocess.run(["rm", "-r", FOLDER], check=False)


if __name__ == "__main__":
    main()
