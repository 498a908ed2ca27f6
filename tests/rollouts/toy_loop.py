"""A simulator and a policy whose episodes can be worked out by hand, and ways for them to die."""

import os

import numpy as np

GOAL = 1.0


class Line:
    """A point on a line starts at -(seed % 5) and is moved by the actions; it succeeds from GOAL on."""

    def __init__(self, task="line"):
        self.task, self.at = task, 0.0

    def reset(self, *, seed):
        if os.environ.get("TOY_BROKEN"):
            raise RuntimeError("the arm is not plugged in")
        if seed == int(os.environ.get("TOY_DEADLY", "-1")) and not _seen("TOY_ONCE"):
            os._exit(9)
        if seed == int(os.environ.get("TOY_ODD", "-1")):
            raise RuntimeError("the gripper fell off")
        self.at = -float(seed % 5)
        self.seed = seed
        return self.seen(), {"rejected": seed == int(os.environ.get("TOY_REJECTED", "-1"))}

    def seen(self):
        return {"place": np.array([self.at]), "seed": np.array([self.seed])}

    def step(self, action):
        print("noise on stdout")
        self.at += float(action[0])
        return self.seen(), 0.0, self.at >= GOAL, False, {
            "is_success": self.at >= GOAL, "goal_error": max(GOAL - self.at, 0.0), "collisions": ["arm-table"]}


class Forward:
    """Two actions at a time: .25 and the noise's size."""

    noise_shape = (2,)
    executed = 2

    def act(self, observations, noise):
        if os.environ.get("TOY_SERVER_DIES") and not _seen("TOY_SERVER_DIES"):
            os._exit(9)
        assert len(observations["place"]) == len(noise) == int(os.environ.get("TOY_ROWS", len(noise)))
        return np.stack([np.stack([np.full(2, 0.25), np.abs(noise[:, 1])[:, None].repeat(2, 1)[row]], 0)
                         for row in range(len(noise))])


def lazy():
    raise RuntimeError("no weights here")


def _seen(name):
    """Was the marker file that this variable names there before?"""
    path = os.environ.get(name)
    if not path:
        return False
    there = os.path.exists(path)
    open(path, "a").close()
    return there
