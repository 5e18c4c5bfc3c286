#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""make_data.py DIRECTORY: makes up data for the jobs in items.toml, some 100 MB. Existing files are kept.

Scripts look for data at different places relative to their working directory: the jobs run in
DIRECTORY/run/here, and `data`, `../data` and `../../data` are the same folder.
"""

import gzip
import random
import struct
import sys
from pathlib import Path


def idx(path, dimensions, content):
    """A file of the MNIST format."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        file.write(struct.pack(f">I{len(dimensions)}I", 0x800 + len(dimensions), *dimensions))
        file.write(content)


def mnist(folder, rng):
    """6,000 and 1,000 images of noise."""
    for part, count in (("train", 6000), ("t10k", 1000)):
        idx(folder / f"{part}-images-idx3-ubyte", (count, 28, 28), rng.randbytes(count * 784))
        idx(folder / f"{part}-labels-idx1-ubyte", (count,), bytes(i % 10 for i in range(count)))


def jax_data(raw):
    """The files of JAX's examples, at the expected paths."""
    folder = Path("/tmp/jax_example_data")
    folder.mkdir(exist_ok=True)
    for file in raw.iterdir():
        target = folder / (file.name + ".gz")
        if not target.exists():
            target.write_bytes(gzip.compress(file.read_bytes(), 1))


def words(path, rng, count):
    """A text of words with spaces and lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    known = ["".join(rng.choices("abcdefghij", k=rng.randint(2, 7))) for _ in range(2000)]
    with open(path, "w", encoding="ascii") as file:
        for _ in range(count // 20):
            file.write(" ".join(rng.choices(known, k=20)) + "\n")


def svm(path, rng):
    """A data set of libsvm: 6,000 rows of 60 features, classes that overlap."""
    with open(path, "w", encoding="ascii") as file:
        for i in range(6000):
            row = " ".join(f"{k}:{rng.random() + (i % 2) * 0.05:.4f}" for k in range(1, 61))
            file.write(f"{i % 2} {row}\n")


def labelled(path, rng):
    """A text with labels for fastText."""
    known = ["".join(rng.choices("abcdefghij", k=rng.randint(2, 7))) for _ in range(20000)]
    with open(path, "w", encoding="ascii") as file:
        for i in range(60000):
            file.write(f"__label__{i % 20} " + " ".join(rng.choices(known, k=25)) + "\n")


def characters(folder, rng):
    """The tokens of nanoGPT's character model, and its table."""
    import pickle

    folder.mkdir(parents=True, exist_ok=True)
    for part, count in (("train", 200000), ("val", 20000)):
        tokens = [rng.randrange(65) for _ in range(count)]
        (folder / f"{part}.bin").write_bytes(struct.pack(f"<{count}H", *tokens))
    with open(folder / "meta.pkl", "wb") as file:
        pickle.dump({"vocab_size": 65, "itos": {}, "stoi": {}}, file)


def cora(folder, rng):
    """A graph of 2,708 papers in Cora's format: the words of each, and citations."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "cora.content", "w", encoding="ascii") as file:
        for i in range(2708):
            row = ["1" if rng.random() < 0.0127 else "0" for _ in range(1433)]
            file.write(" ".join([str(i), *row, f"topic{i % 7}"]) + "\n")
    with open(folder / "cora.cites", "w", encoding="ascii") as file:
        for _ in range(5429):
            file.write(f"{rng.randrange(2708)} {rng.randrange(2708)}\n")


def photographs(folder, rng):
    """Two classes of 200 JPEG files of 256 x 256."""
    from PIL import Image

    for label in ("one", "two"):
        (folder / label).mkdir(parents=True, exist_ok=True)
        for i in range(200):
            small = Image.frombytes("RGB", (32, 32), rng.randbytes(3072))
            small.resize((256, 256)).save(folder / label / f"{i}.jpg")


def main():
    """The command line."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = Path(sys.argv[1])
    done = root / "made"
    if done.exists():
        return
    rng = random.Random(1)
    data = root / "data"
    here = root / "run" / "here"
    here.mkdir(parents=True, exist_ok=True)
    for link in (here / "data", root / "run" / "data"):
        if not link.is_symlink():
            link.symlink_to(data)
    mnist(data / "MNIST" / "raw", rng)
    (data / "mnist").mkdir(exist_ok=True)
    if not (data / "mnist" / "MNIST").is_symlink():
        (data / "mnist" / "MNIST").symlink_to(data / "MNIST")
    if not (here / "MNIST").is_symlink():
        (here / "MNIST").symlink_to(data / "MNIST")
    jax_data(data / "MNIST" / "raw")
    for part, count in (("train", 40000), ("valid", 4000), ("test", 4000)):
        words(data / "wikitext-2" / f"{part}.txt", rng, count)
    svm(data / "svm.txt", rng)
    labelled(data / "labelled.txt", rng)
    characters(data / "shakespeare_char", rng)
    cora(data / "cora", rng)
    words(data / "train.txt", rng, 40000)
    with open(data / "cold.bin", "wb") as file:
        for _ in range(64):
            file.write(rng.randbytes(1 << 20))
    try:
        import torch

        torch.manual_seed(1)
        waves = torch.sin(torch.arange(200)[None, :] / 20.0 + torch.randn(40, 1)).double()
        torch.save(waves.numpy(), here / "traindata.pt")
        photographs(data / "photographs", rng)
    except ImportError as error:
        print(f"make_data.py: some jobs have no data: {error}", file=sys.stderr)
    done.touch()


if __name__ == "__main__":
    main()
