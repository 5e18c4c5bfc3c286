#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""Trains an agent by A3C (Mnih et al. 2016) with PyTorch, to play a game (catch.py).

An ordinary training script. Its only code for measurements names the unit of its samples, for rates. Actors are processes, each with its own game. They share
the weights and the optimizer's statistics, and change them without locks. As published, they use CPUs only. With one
process, a seed determines everything. See ../../README.md.
"""

import contextlib
import multiprocessing.connection
import os
import sys
import time

workloads = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path += [os.path.join(workloads, "pytorch"), workloads, os.path.join(workloads, "datasets")]

import catch
import common
import jobs
import networks
import torch

try:
    import strain  # under `strain run`: rates of the run are in steps
except ImportError:
    strain = None

SAMPLES = {"small": 10_000, "published": 1_000_000}  # steps of the environment in an epoch
LEARNING_RATE = {"small": 1e-3, "published": 7e-4}
DISCOUNT = {"small": 0.9, "published": 0.99}
ENTROPY, VALUE = 0.01, 0.5  # weights in the loss
MOST_GRADIENT = 1.0


class Actor:
    """Plays a game, and trains the shared agent on what happened."""

    def __init__(self, options, shared, optimizer, rank):
        self.options, self.shared, self.optimizer = options, shared, optimizer
        torch.manual_seed(options.seed * 1000 + rank)
        self.agent = networks.Agent(catch.ACTIONS, *networks.WIDTHS[options.size])
        self.game = catch.Catch(options.seed * 1000 + rank)
        self.frames = self.game.reset()
        self.score, self.finished = 0.0, []

    def play(self):
        """So many steps as a batch has. Returns frames [steps, 4, 84, 84], actions [steps] and returns [steps]."""
        seen, actions, rewards, overs = [], [], [], []
        with torch.no_grad():
            for _ in range(self.options.batch_size):
                seen.append(torch.from_numpy(self.frames))
                logits, _ = self.agent(seen[-1][None])
                actions.append(torch.multinomial(logits.softmax(-1), 1)[0])
                self.frames, reward, over, _ = self.game.step(int(actions[-1]))
                rewards.append(reward)
                overs.append(over)
                self.score += reward
                if over:
                    self.finished.append(self.score)
                    self.score, self.frames = 0.0, self.game.reset()
            value = float(self.agent(torch.from_numpy(self.frames)[None])[1])
        returns = []
        for reward, over in zip(reversed(rewards), reversed(overs)):
            value = reward + (0.0 if over else DISCOUNT[self.options.size] * value)
            returns.append(value)
        return torch.stack(seen), torch.cat(actions), torch.tensor(returns[::-1])

    def train(self):
        """A step with the weights as they are now, for the shared ones. Returns its loss."""
        self.agent.load_state_dict(self.shared.state_dict())
        frames, actions, returns = self.play()
        logits, values = self.agent(frames)
        logs = logits.log_softmax(-1)
        advantages = returns - values
        entropy = -(logs.exp() * logs).sum(-1).mean()
        policy = -(logs.gather(1, actions[:, None])[:, 0] * advantages.detach()).mean()
        loss = policy + VALUE * (advantages**2).mean() - ENTROPY * entropy
        self.agent.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.agent.parameters(), MOST_GRADIENT)
        for mine, theirs in zip(self.agent.parameters(), self.shared.parameters()):
            theirs.grad = mine.grad  # the gradients are this process's own
        self.optimizer.step()
        return float(loss)


def act(options, shared, optimizer, rank, batches, pipe):
    """The work of an actor: sends the loss of each batch, and the scores of the games that ended."""
    torch.set_num_threads(options.threads or 1)
    actor = Actor(options, shared, optimizer, rank)
    for _ in range(batches):
        loss = actor.train()
        pipe.send((loss, actor.finished))
        actor.finished.clear()
    pipe.send(None)


@contextlib.contextmanager
def actors(options, shared, optimizer, batches):
    """Starts the actors, of which each trains on so many batches; gives a pipe for each. All end together."""
    context = torch.multiprocessing.get_context("fork")
    pipes, started = [], []
    try:
        for rank in range(options.processes):
            mine, theirs = context.Pipe(False)
            process = context.Process(target=act, args=(options, shared, optimizer, rank, batches, theirs))
            process.start()
            theirs.close()  # so that its end is seen
            pipes.append(mine)
            started.append(process)
        yield pipes
        for process in started:
            process.join()
    finally:
        for process in started:
            process.terminate()


def results(pipes):
    """What the actors send, until all have done their work. One that ends before is an error."""
    while pipes:
        for pipe in multiprocessing.connection.wait(pipes):
            try:
                result = pipe.recv()
            except EOFError:
                raise jobs.Problem("an actor did not end well") from None
            if result is None:
                pipes.remove(pipe)
            else:
                yield result


def follow(options, pipes, batches):
    """Prints a line for each epoch of so many batches, of all actors. The reward is that of a game, on average."""
    start = time.perf_counter()
    losses, games, epoch = [], [], 1
    for loss, finished in results(pipes):
        losses.append(loss)
        games += finished
        if len(losses) == batches:
            scores = {"loss": sum(losses) / batches, "reward": sum(games) / len(games) if games else float("nan")}
            now = time.perf_counter()
            jobs.say_scores("epoch", epoch, options, scores, batches * options.batch_size, "steps", now - start)
            losses, games, start = [], [], now
            epoch += 1


def main():
    """Trains in several processes; this one only prints."""
    parser = jobs.new_parser("Train an agent by A3C with PyTorch.", "steps", loader=False, batch_size=20)
    parser.add_argument("--model", choices=("a3c",), default="a3c")
    parser.add_argument("--processes", type=jobs.at_least(1), default=2, help="so many actors train together")
    jobs.add_size(parser)
    jobs.add_training(parser, ("rmsprop", "adam"))
    options = parser.parse_args()
    samples = options.samples or SAMPLES[options.size]
    batches = min(samples // options.batch_size, options.steps or samples) // options.processes
    if batches == 0:
        raise jobs.Problem(f"{samples} steps do not fill a batch of {options.batch_size} of each process")
    torch.set_num_threads(1)  # no thread may be started before the fork
    torch.manual_seed(options.seed)
    shared = networks.Agent(catch.ACTIONS, *networks.WIDTHS[options.size]).share_memory()
    optimizer = networks.shared_optimizer(options, shared.parameters(), LEARNING_RATE[options.size])
    if strain:
        strain.unit("steps")
    jobs.announce(options, common.count_parameters(shared), samples, "cpu", what="steps")
    with actors(options, shared, optimizer, batches * options.epochs) as pipes:
        follow(options, pipes, batches * options.processes)


if __name__ == "__main__":
    jobs.run(main)
