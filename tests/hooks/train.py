# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""A training job for the tests of the hooks, with what real ones do; train.py CASE.

Each case prints its losses to the last bit.
"""

import gc
import os
import signal
import sys
import tempfile
import threading
import time

import torch
from torch.nn import functional
from torch.utils.data import DataLoader, IterableDataset, TensorDataset


class Stream(IterableDataset):
    """40 samples without a length, each worker a part."""

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        for i in range(first, 40, step):
            yield torch.full((8,), float(i)), i % 2


class Job:
    """A model, its optimizer, and two sets of samples."""

    def __init__(self):
        torch.manual_seed(0)
        torch.set_num_threads(1)
        self.model = torch.nn.Linear(8, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.samples = TensorDataset(torch.randn(100, 8), torch.randint(2, (100,)))
        self.others = TensorDataset(torch.randn(50, 8), torch.randint(2, (50,)))

    def loss(self, inputs, classes):
        """Of one batch."""
        return functional.cross_entropy(self.model(inputs), classes)

    def step(self, inputs, classes):
        """An ordinary step, with its loss printed to the last bit."""
        self.optimizer.zero_grad()
        loss = self.loss(inputs, classes)
        loss.backward()
        self.optimizer.step()
        print(loss.item().hex())


def accumulation(job):
    """An iteration of two backwards; validation with and without gradients; a checkpoint."""
    train = DataLoader(job.samples, batch_size=25, shuffle=True)
    validate = DataLoader(job.others, batch_size=10)
    next(iter(train))  # only to look at it
    for _ in range(2):
        for i, batch in enumerate(train):
            job.loss(*batch).backward()
            if i % 2:
                job.optimizer.step()
                job.optimizer.zero_grad()
        for batch in validate:
            job.loss(*batch)
        with torch.no_grad():
            for batch in train:
                print(job.loss(*batch).item().hex())
        torch.save(job.model.state_dict(), "checkpoint.pt")


def live(_):
    """Lets a process live long enough for the recorder to see it, which looks every 20 ms."""
    time.sleep(0.1)


def workers(job):
    """Persistent workers, an early break, and a stream of unknown length."""
    kept = DataLoader(job.samples, batch_size=10, num_workers=2, persistent_workers=True)
    for epoch in range(3):
        for i, batch in enumerate(kept):
            job.step(*batch)
            if epoch == 1 and i == 4:
                break
    for batch in DataLoader(Stream(), batch_size=5, num_workers=2, worker_init_fn=live):
        job.step(*batch)


def collected(samples):
    """A batch, after a garbage collection of 2 ms or more."""
    gc.collect()
    return torch.utils.data.default_collate(samples)


def collections(job):
    """Collects garbage in each step, and before each batch of a worker."""
    job.objects = [[i] for i in range(200000)]
    gc.collect()
    for batch in DataLoader(job.samples, batch_size=10, num_workers=1, collate_fn=collected):
        job.step(*batch)
        gc.collect()


def anew(job):
    """Loaders that are made anew: when the second is, the first is gone."""
    for _ in range(2):
        for batch in DataLoader(job.samples, batch_size=30):
            job.step(*batch)
        with torch.no_grad():
            for batch in DataLoader(job.others, batch_size=25):
                job.loss(*batch)


def omitted(job):
    """A backbone that was to be frozen, and a teacher without gradients: parameters that no optimizer has."""
    backbone, teacher = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
    for inputs, classes in DataLoader(job.samples, batch_size=10):
        job.optimizer.zero_grad()
        with torch.no_grad():
            inputs = teacher(inputs)
        loss = job.loss(backbone(inputs), classes)
        loss.backward()
        job.optimizer.step()
        print(loss.item().hex())


def penalty(job):
    """Each loss has a penalty on gradients, and backward goes through it; one more iteration outside of loaders."""
    def step(inputs, classes):
        job.optimizer.zero_grad()
        inputs = inputs.clone().requires_grad_()
        loss = job.loss(inputs, classes)
        (gradient,) = torch.autograd.grad(loss, inputs, create_graph=True)
        (loss + gradient.square().sum()).backward()
        job.optimizer.step()
        print(loss.item().hex())

    for batch in DataLoader(job.samples, batch_size=10):
        step(*batch)
    step(*job.others[:20])


def adversaries(job, attached=False, frozen=False):
    """A generator and a discriminator, which learn by turns."""
    maker, judge = torch.nn.Linear(4, 8), job.model
    of_maker = torch.optim.SGD(maker.parameters(), lr=0.01)
    ones, zeros = torch.ones(5, 2), torch.zeros(5, 2)
    loss_of = torch.nn.BCEWithLogitsLoss()
    for inputs, _ in DataLoader(job.samples, batch_size=5):
        job.optimizer.zero_grad()
        made = maker(torch.randn(5, 4))
        loss = loss_of(judge(inputs), ones) + loss_of(judge(made if attached else made.detach()), zeros)
        loss.backward(retain_graph=attached)
        job.optimizer.step()
        maker.zero_grad()
        if frozen:
            judge.requires_grad_(False)
        loss_of(judge(maker(torch.randn(5, 4))), ones).backward()
        of_maker.step()
        judge.requires_grad_(True)
        print(loss.item().hex())


def attached(job):
    """The same, where the discriminator's loss goes through the generator."""
    adversaries(job, attached=True)


def frozen(job):
    """The same, where the discriminator gets no gradients for nothing."""
    adversaries(job, frozen=True)


def denormal(job, scale=1e-30):
    """A filter whose state dies away: numbers below 1e-38. 48 steps."""
    for inputs, classes in list(DataLoader(job.samples, batch_size=25)) * 12:
        state = torch.full((25, 2000), scale)
        for _ in range(12):
            state = state * 0.2
        job.optimizer.zero_grad()
        loss = job.loss(inputs, classes) + state.mean()
        loss.backward()
        job.optimizer.step()
        print(loss.item().hex())


def ordinary(job):
    """The same with larger numbers."""
    denormal(job, 1.0)


def debugging(job, steps=40):
    """Anomaly detection that was left on; or ends after so many steps."""
    with torch.autograd.set_detect_anomaly(True):
        for inputs, classes in list(DataLoader(job.samples, batch_size=25)) * 10:
            torch.autograd.set_detect_anomaly(steps > 0)
            steps -= 1
            job.step(inputs, classes)


def debugged(job):
    """The same for four steps."""
    debugging(job, 4)


def restarts(job):
    """Workers of both loaders that start for each pass."""
    options = {"batch_size": 25, "num_workers": 1, "worker_init_fn": live}
    train, validate = DataLoader(job.samples, **options), DataLoader(job.others, **options)
    for _ in range(3):
        for batch in train:
            job.step(*batch)
        with torch.no_grad():
            for batch in validate:
                job.loss(*batch)


def resetting(job):
    """Each turn zeroes all gradients, and limits the norm of all, old ones too; nothing is computed for nothing."""
    maker, judge = torch.nn.Linear(4, 8), job.model
    of_maker = torch.optim.SGD(maker.parameters(), lr=0.01)
    both = [*maker.parameters(), *judge.parameters()]

    def turn(loss, optimizer):
        for one in (of_maker, job.optimizer):
            one.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(both, 1.0)
        optimizer.step()
        print(loss.item().hex())

    for inputs, _ in DataLoader(job.samples, batch_size=5):
        turn(judge(inputs).mean() - judge(maker(torch.randn(5, 4)).detach()).mean(), job.optimizer)
        judge.requires_grad_(False)
        turn(judge(maker(torch.randn(5, 4))).mean(), of_maker)
        judge.requires_grad_(True)


def copied(job):
    """Gradients of two losses that are copied, zeroed and put together, for two optimizers (PCGrad)."""
    other = torch.nn.Linear(8, 2)
    of_other = torch.optim.SGD(other.parameters(), lr=0.01)
    parameters = [*job.model.parameters(), *other.parameters()]
    for inputs, classes in DataLoader(job.samples, batch_size=5):
        sums = [torch.zeros_like(parameter) for parameter in parameters]
        for _ in range(2):
            job.optimizer.zero_grad()
            of_other.zero_grad()
            (job.loss(inputs, classes) + functional.cross_entropy(other(inputs), classes)).backward()
            for total, parameter in zip(sums, parameters):
                total += parameter.grad
        for total, parameter in zip(sums, parameters):
            parameter.grad = total
        job.optimizer.step()
        of_other.step()
        print(sums[0].sum().item().hex())


class Force(torch.nn.Module):
    """The derivative of an energy, as of models of molecules."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """[n, 8] to [n, 8]"""
        energy = self.layer(inputs).pow(2).sum()
        gradient = torch.autograd.grad([energy], [inputs], create_graph=True)[0]
        assert gradient is not None
        return gradient


def scripted(job):
    """TorchScript compiles torch.autograd.grad()."""
    model = torch.jit.script(Force())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for inputs, _ in DataLoader(job.samples, batch_size=10):
        optimizer.zero_grad()
        loss = model(inputs.clone().requires_grad_()).square().mean()
        loss.backward()
        optimizer.step()
        print(loss.item().hex())


def repeated(job):
    """Each of two losses goes back through the part that they share."""
    other = torch.nn.Linear(2, 2)
    for inputs, classes in DataLoader(job.samples, batch_size=10):
        job.optimizer.zero_grad()
        outputs = job.model(inputs)
        functional.cross_entropy(outputs, classes).backward(retain_graph=True)
        functional.cross_entropy(other(outputs), classes).backward()
        job.optimizer.step()
        print(outputs.sum().item().hex())


def exchanging(job, together=False):
    """Two batches for each step, whose gradients ranks exchange each time, or once."""
    import contextlib
    import torch.distributed as dist

    with tempfile.TemporaryDirectory() as folder:
        dist.init_process_group("gloo", init_method="file://" + folder + "/meet", rank=0, world_size=1)
        model = torch.nn.parallel.DistributedDataParallel(job.model)
        for i, (inputs, classes) in enumerate(DataLoader(job.samples, batch_size=5)):
            with model.no_sync() if together and i % 2 == 0 else contextlib.nullcontext():
                loss = functional.cross_entropy(model(inputs), classes)
                loss.backward()
            if i % 2 == 1:
                job.optimizer.step()
                job.optimizer.zero_grad()
            print(loss.item().hex())
        dist.destroy_process_group()


def exchanging_once(job):
    """The same with no_sync()."""
    exchanging(job, True)


def padded(job, least=0, before=False):
    """Sequences of different lengths, padded to the longest of their batch or to `least`, at the end or before the start."""
    sequences = [torch.randint(1, 100, (8 * (1 + i % 4),)) for i in range(100)]
    embedding = torch.nn.Embedding(100, 8)

    def together(batch):
        tokens = torch.nn.utils.rnn.pad_sequence(batch, batch_first=True)
        tokens = functional.pad(tokens, (0, max(0, least - tokens.shape[1])))
        return tokens.flip(1) if before else tokens

    for tokens in DataLoader(sequences, batch_size=20, collate_fn=together):
        job.optimizer.zero_grad()
        loss = job.model(embedding(tokens)).mean()
        loss.backward()
        job.optimizer.step()
        print(loss.item().hex())


def _train_tables(job, last):
    """A large embedding with dense gradients, and a last layer."""
    model = torch.nn.Sequential(torch.nn.Embedding(1000, 8), last)
    if last.out_features == 1000:
        last.weight = model[0].weight
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _, classes in DataLoader(job.samples, batch_size=10):
        optimizer.zero_grad()
        loss = model(classes).mean()
        loss.backward()
        optimizer.step()
        print(loss.item().hex())


def watched(job):
    """Functions of the script watch a layer and a parameter."""
    job.model.register_forward_hook(lambda *_: None)
    job.model.weight.register_hook(lambda gradient: None)
    for batch in DataLoader(job.samples, batch_size=10):
        job.step(*batch)


def tables(job):
    """Each step updates all of an embedding for the rows of a batch."""
    _train_tables(job, torch.nn.Linear(8, 2))


class Graph(torch.nn.Module):
    """A layer of a graph whose neighbours are a dense matrix: an argument, or a buffer."""

    def __init__(self, neighbours=None):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)
        self.register_buffer("neighbours", neighbours)

    def forward(self, inputs, neighbours=None):
        """Sums of the neighbours' outputs."""
        return (self.neighbours if neighbours is None else neighbours) @ self.layer(inputs)


def _train_graph(model, *arguments):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = torch.randn(1100, 4)
    for _ in range(5):
        optimizer.zero_grad()
        loss = model(inputs, *arguments).mean()
        loss.backward()
        optimizer.step()
        print(loss.item().hex())


def graph(_):
    """Nearly all of the matrix is 0."""
    _train_graph(Graph(), torch.eye(1100))


def graph_buffer(_):
    """The same, held by the model."""
    _train_graph(Graph(torch.eye(1100)))


def attention(_):
    """A matrix that is full."""
    _train_graph(Graph(), torch.rand(1100, 1100))


def tied(job):
    """The last layer uses the whole embedding."""
    _train_tables(job, torch.nn.Linear(8, 1000))


def spawn(job):
    """Workers that begin as new Pythons."""
    for batch in DataLoader(job.samples, batch_size=25, num_workers=1,
                            multiprocessing_context="spawn"):  # fmt: skip
        job.step(*batch)


def plain(job):
    """No loader at all, and two optimizers in one of the loops."""
    for _ in range(5):
        job.step(*job.samples[:20])
    second = torch.optim.Adam(job.model.parameters(), lr=0.001)
    for batch in DataLoader(job.samples, batch_size=25):
        job.step(*batch)
        job.loss(*batch).backward()
        second.step()


def closure(job):
    """An optimizer that calls forward and backward itself."""
    for batch in DataLoader(job.samples, batch_size=25):

        def again(batch=batch):
            job.optimizer.zero_grad()
            loss = job.loss(*batch)
            loss.backward()
            return loss

        print(job.optimizer.step(again).item().hex())


def prefetch(job):
    """A wrapped loader that asks for the next batch before it gives one out."""

    def ahead(loader):
        batches = iter(loader)
        batch = next(batches)
        for following in batches:
            yield batch
            batch = following
        yield batch

    loader = DataLoader(job.samples, batch_size=25)
    for _ in range(2):
        for batch in ahead(loader):
            job.step(*batch)


def counted(job):
    """Asks for as many batches as there are, and never in vain, as Lightning does."""
    loader = DataLoader(job.samples, batch_size=25)
    for _ in range(2):
        batches = iter(loader)
        for _ in range(len(loader)):
            job.step(*next(batches))
        with torch.no_grad():
            batches = iter(loader)
            for _ in range(len(loader)):
                print(job.loss(*next(batches)).item().hex())
        time.sleep(0.05)
        torch.save(job.model.state_dict(), "checkpoint.pt")
    time.sleep(0.2)


def patched(job):
    """A script that patches what the hooks patch."""
    backward = torch.autograd.backward
    calls = []

    def counted(*arguments, **options):
        calls.append(1)
        return backward(*arguments, **options)

    torch.autograd.backward = counted
    for batch in DataLoader(job.samples, batch_size=25):
        job.step(*batch)
    print(len(calls))


def threads(job):
    """Two threads that train, each with a loader of its own."""

    def run():
        own = Job()
        for batch in DataLoader(own.samples, batch_size=20):
            own.loss(*batch).backward()
            own.optimizer.step()

    both = [threading.Thread(target=run) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    print(job.loss(*job.samples[:20]).item().hex())


class Deadly(torch.utils.data.Dataset):
    """Kills whoever fetches its 31st sample."""

    def __len__(self):
        return 100

    def __getitem__(self, index):
        if index == 30:
            time.sleep(0.2)  # the recorder has seen the process
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.full((8,), float(index)), index % 2


def killed(job):
    """A worker dies in the middle of a batch."""
    try:
        for batch in DataLoader(Deadly(), batch_size=20, num_workers=1):
            job.step(*batch)
    except RuntimeError as error:
        print("DataLoader worker (pid" in str(error))  # "exited unexpectedly", "is killed by signal"


def rank(number, folder):
    """One of two, which wait for each other; spawned."""
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method="file://" + folder + "/meet", rank=number,
                            world_size=2)  # fmt: skip
    job = Job()
    sampler = torch.utils.data.DistributedSampler(job.samples, 2, number)
    for batch in DataLoader(job.samples, batch_size=10, sampler=sampler):
        job.loss(*batch).backward()
        for parameter in job.model.parameters():
            dist.all_reduce(parameter.grad)
        job.optimizer.step()
        job.optimizer.zero_grad()
    dist.barrier()
    if number == 0:
        print(job.model.bias.sum().item().hex(), flush=True)


class Late(torch.utils.data.Dataset):
    """Of one of two ranks each batch comes late."""

    def __init__(self, number):
        self.number = number

    def __len__(self):
        return 200

    def __getitem__(self, index):
        if self.number == 1 and index % 10 == 0:
            time.sleep(0.04)
        return torch.full((8,), float(index)), index % 2


def parallel_rank(number, folder):
    """One of two in DistributedDataParallel; the one that comes late begins its epoch last."""
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method="file://" + folder + "/meet", rank=number,
                            world_size=2)  # fmt: skip
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    time.sleep(0.5 * number)
    for features, target in DataLoader(Late(number), batch_size=10, shuffle=False):
        functional.cross_entropy(model(features), target).backward()
        optimizer.step()
        optimizer.zero_grad()
    if number == 0:
        print(model.module.bias.sum().item().hex(), flush=True)


def parallel(_):
    """Two of them, that wait for each other in backward."""
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(parallel_rank, (folder,), nprocs=2)


def ranks(_):
    """Two of them, as torch.multiprocessing starts them."""
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(rank, (folder,), nprocs=2)


def forked(_):
    """Forks with a loop in the midst of its pass; both go on."""
    job = Job()
    batches = iter(DataLoader(job.samples, batch_size=10))
    for _ in range(2):
        job.step(*next(batches))
    sys.stdout.flush()
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    for batch in DataLoader(job.samples, batch_size=50) if child == 0 else batches:
        job.step(*batch)
    if child == 0:
        live(child)
        sys.stdout.flush()
        os._exit(0)


class Event:
    """A fake of torch.cuda.Event: the device passes it at the second question."""

    def __init__(self, enable_timing=False):
        assert enable_timing
        self.asked = 0

    def record(self):
        """Into the stream."""
        self.at, self.asked = time.monotonic(), 0

    def query(self):
        """Whether the device has passed it."""
        self.asked += 1
        return self.asked > 1

    def elapsed_time(self, later):
        """Milliseconds."""
        assert later.asked > 1 or self.asked == 0
        return (later.at - self.at) * 1000

    def synchronize(self):
        """What the hooks must never do."""
        os._exit(9)


def device(job):
    """A GPU that is not there: its events, and a capture in the third step."""
    step = [0]
    torch.cuda.is_initialized = lambda: True
    torch.cuda.is_current_stream_capturing = lambda: step[0] == 3
    torch.cuda.Event = Event
    torch.cuda.synchronize = lambda *_: os._exit(9)
    torch.cuda.current_device = lambda: 0
    torch.cuda.get_device_properties = lambda _: type("Properties", (), {"total_memory": 1000})
    torch.cuda.get_per_process_memory_fraction = lambda: 0.25
    torch.cuda.memory_stats_as_nested_dict = lambda: {
        "reserved_bytes": {"all": {"peak": 200}}, "allocated_bytes": {"all": {"peak": 150}},
        "num_alloc_retries": 1, "num_device_alloc": 5 + 2 * step[0]}
    for batch in DataLoader(job.samples, batch_size=10):
        step[0] += 1
        job.step(*(each.to(torch.float64).to(each.dtype) for each in batch))
        time.sleep(0.06)


def carried(job):
    """Batches without a loader, which are copied to the GPU that is not there."""
    torch.cuda.is_initialized = lambda: True
    torch.cuda.is_current_stream_capturing = lambda: True
    torch.cuda.memory_stats_as_nested_dict = lambda: {}
    plain = torch.Tensor.to

    def to(tensor, *arguments):
        time.sleep(0.02)
        moved = plain(tensor, *arguments)
        moved.carried = True
        return moved

    torch.Tensor.to = to
    torch.Tensor.is_cuda = property(lambda tensor: hasattr(tensor, "carried"))
    inputs, outputs = job.samples.tensors
    known, seen = (torch.Tensor.item, torch.Tensor.to), []

    class Box(torch.Tensor):
        """Looks which of PyTorch's functions is called, as libraries do."""

        @classmethod
        def __torch_function__(cls, function, types, arguments=(), options=None):
            seen.append(function)
            return super().__torch_function__(function, types, arguments, options or {})

    box = torch.ones(1).as_subclass(Box)
    for _ in range(10):
        time.sleep(0.01)
        del seen[:]
        box.item()
        assert seen[0] == known[0] and type(box.to(torch.float64)) is Box and known[1] in seen, seen
        job.step(inputs[:10].to(torch.float64).float(), outputs[:10])
        for _ in range(3):
            moved = plain(outputs, torch.float64)
            moved.carried = True
            moved.sum().item()
            moved.tolist()


def compiled(job):
    """A graph for each size of a batch, more than PyTorch keeps."""

    def shaped(inputs):
        return job.model(inputs) * 1

    call = torch.compile(shaped, backend="eager", dynamic=False)
    inputs, outputs = job.samples.tensors
    for size in range(2, 14):
        loss = functional.cross_entropy(call(inputs[:size]), outputs[:size])
        job.optimizer.zero_grad()
        loss.backward()
        job.optimizer.step()
        print(loss.item().hex())


def fixed_length(job):
    """Sequences of different lengths, padded to one."""
    padded(job, 48)


def padded_before(job):
    """The same, before the start."""
    padded(job, 48, True)


def exits(job):
    """Ends without ceremony."""
    plain(job)
    sys.stdout.flush()
    os._exit(3)


if __name__ == "__main__":
    for case in sys.argv[1:]:
        globals()[case](Job())
