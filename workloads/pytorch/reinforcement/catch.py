# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""A game with the interface of Atari's as agents see it: frames of 84x84 grey pixels, the last four together, an action
for every four frames of the game, lives, and rewards.

A ball falls, and drifts to a side. A paddle at the bottom that catches it is rewarded by 1; a ball that is missed costs a
life and 1. A game ends without lives, or after 20 balls. (An agent that acts at random catches about three balls in ten.)
"""

import numpy

EDGE, STACK = 84, 4
ACTIONS = 3  # stay, left, right
LIVES, BALLS = 5, 20
SKIP = 4  # frames of the game for each action
FALL, MOVE = 4, 4  # pixels per frame
BALL, PADDLE, HEIGHT = 4, 20, 3  # sizes in pixels


class Catch:
    """A game; the seed determines all balls."""

    def __init__(self, seed):
        self.random = numpy.random.Generator(numpy.random.PCG64(seed))
        self.frames = numpy.zeros((STACK, EDGE, EDGE), numpy.uint8)

    def reset(self):
        """Begins a game. Returns frames: uint8 [4, 84, 84]."""
        self.lives, self.balls = LIVES, 0
        self.paddle = (EDGE - PADDLE) // 2
        self.frames[:] = 0
        self.drop()
        self.draw()
        return self.frames.copy()

    def drop(self):
        """The next ball."""
        self.row, self.column = 0, int(self.random.integers(EDGE - BALL + 1))
        self.drift = int(self.random.integers(-1, 2))

    def draw(self):
        """Adds a frame to the last three."""
        self.frames[:-1] = self.frames[1:]
        frame = self.frames[-1]
        frame[:] = 0
        frame[self.row : self.row + BALL, self.column : self.column + BALL] = 255
        frame[EDGE - HEIGHT :, self.paddle : self.paddle + PADDLE] = 160

    def step(self, action):
        """Plays four frames. Returns frames, the reward, whether the game is over, and the number of lives."""
        reward = 0.0
        for _ in range(SKIP):
            self.paddle = min(max(self.paddle + (0, -MOVE, MOVE)[action], 0), EDGE - PADDLE)
            self.row += FALL
            self.column = min(max(self.column + self.drift, 0), EDGE - BALL)
            if self.row + BALL > EDGE - HEIGHT:
                reward = 1.0 if self.paddle - BALL < self.column < self.paddle + PADDLE else -1.0
                self.lives -= reward < 0
                self.balls += 1
                self.drop()
                break
        self.draw()
        return self.frames.copy(), reward, self.lives == 0 or self.balls == BALLS, {"lives": self.lives}
