"""FetchPickAndPlace-v4 with a scripted expert, a small flow-matching policy that learns from it, and ways to spoil it.

    python fetch.py policy.npz      collects 25 demonstrations and trains, in well under a minute

FETCH_POLICY names the file, FETCH_VARIANT what is wrong with this side (`fault`, below).
"""

import os
import sys

os.environ.setdefault("MUJOCO_GL", "disabled")
import numpy as np

EPISODE, CHUNK, EXECUTED, DIMENSIONS = 50, 8, 4, 4
SEEN, HIDDEN, STEPS = 28, 256, 3000
OUT = CHUNK * DIMENSIONS
FREQUENCIES = np.exp(np.linspace(0, np.log(100), 8)).astype(np.float32) * np.float32(2 * np.pi / 10)
SHAPES = [(SEEN + OUT + 16, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, OUT)]


class Fetch:
    """The environment as gymnasium makes it; `info` also tells contacts of the gripper and the distance to the goal."""

    def __init__(self):
        import warnings

        warnings.filterwarnings("ignore")
        import gymnasium
        import gymnasium_robotics

        gymnasium.register_envs(gymnasium_robotics)
        self._env = gymnasium.make("FetchPickAndPlace-v4")
        self._first, self._steps, self._nearest = None, 0, np.inf

    def reset(self, *, seed):
        seen, info = self._env.reset(seed=seed)
        self._first, self._steps, self._nearest = None, 0, np.inf
        return flat(seen), info

    def step(self, action):
        seen, reward, terminated, truncated, info = self._env.step(np.clip(action, -1, 1).astype(np.float32))
        self._steps += 1
        touched = self._touched()
        if touched and self._first is None:
            self._first = self._steps
        self._nearest = min(self._nearest, float(np.linalg.norm(seen["achieved_goal"] - seen["desired_goal"])))
        return flat(seen), reward, terminated, truncated, {
            **info, "goal_error": self._nearest, "first_collision": self._first, "collisions": sorted(touched)}

    def _touched(self):
        import mujoco

        model, data = self._env.unwrapped.model, self._env.unwrapped.data
        pairs = set()
        for index in range(data.ncon):
            bodies = sorted(mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_BODY, model.geom_bodyid[geom]) or "?"
                            for geom in (data.contact[index].geom1, data.contact[index].geom2))
            if sum("finger" in body or "gripper" in body for body in bodies) == 1 and "table0" in bodies:
                pairs.add("-".join(bodies))
        return pairs


def flat(seen):
    return np.concatenate([seen["observation"], seen["desired_goal"]]).astype(np.float32)


def expert(seen, state):
    """Above the block, down, close, to the goal; `state` holds the phase."""
    gripper, block, goal = seen[:3], seen[3:6], seen[25:28]
    offset = block - gripper
    phase = state.setdefault("phase", 0)
    if phase == 0:
        move = np.r_[(offset + np.array([0, 0, 0.08])) * 10, 1.0]
        if np.linalg.norm(offset[:2]) < 0.012:
            state["phase"] = 1
    elif phase == 1:
        move = np.r_[offset * 10, 1.0]
        if np.linalg.norm(offset) < 0.012:
            state.update(phase=2, closing=0)
    elif phase == 2:
        move = np.r_[offset * 5, -1.0]
        state["closing"] += 1
        if state["closing"] >= 3:
            state["phase"] = 3
    else:
        move = np.r_[(goal - block) * 8, -1.0]
        if np.linalg.norm(offset) > 0.05:
            state["phase"] = 0
    return np.clip(move, -1, 1).astype(np.float32)


def demonstrations(count):
    """(observations (n, 28), chunks (n, 32)) of episodes that the expert solved, some with perturbed actions."""
    env, random = Fetch(), np.random.default_rng(0)
    rows, chunks, seed = [], [], 100000
    while len(rows) < count * EPISODE:
        seen, _ = env.reset(seed=seed)
        seed += 1
        state, path, actions, solved = {}, [], [], False
        spread = random.choice([0, 0.1, 0.25])
        for _ in range(EPISODE):
            action = expert(seen.astype(np.float64), state)
            path.append(seen)
            actions.append(action)
            seen, _, _, _, info = env.step(action + np.r_[random.normal(0, spread, 3), 0])
            solved = bool(info["is_success"])
        if solved:
            padded = np.concatenate([actions, np.repeat([actions[-1]], CHUNK, 0)])
            rows += path
            chunks += [padded[step:step + CHUNK].ravel() for step in range(EPISODE)]
    return np.float32(rows), np.float32(chunks)


def gelu(z):
    """GELU in its tanh form, and its derivative."""
    tanh = np.tanh(np.float32(0.7978845608) * (z + np.float32(0.044715) * z**3))
    slope = np.float32(0.7978845608) * (1 + np.float32(3 * 0.044715) * z * z)
    return z * (1 + tanh) / 2, (1 + tanh) / 2 + z * (1 - tanh * tanh) * slope / 2


def timed(time):
    angle = time[:, None] * FREQUENCIES
    return np.concatenate([np.sin(angle), np.cos(angle)], 1).astype(np.float32)


def velocity(weights, rows, activation=gelu, rounded=lambda x: x):
    """(output, what the backward pass needs)."""
    kept = [rows]
    slopes = []
    for layer in range(3):
        z = rounded(kept[-1] @ weights[2 * layer] + weights[2 * layer + 1])
        value, slope = activation(z)
        kept.append(rounded(value))
        slopes.append(slope)
    return rounded(kept[-1] @ weights[6] + weights[7]), kept, slopes


def train(path):
    rows, chunks = demonstrations(25)
    scale = [rows.mean(0), rows.std(0) + 1e-3, chunks.mean(0), chunks.std(0) + 1e-3]
    rows, chunks = ((rows - scale[0]) / scale[1]).astype(np.float32), ((chunks - scale[2]) / scale[3]).astype(np.float32)
    random = np.random.default_rng(1)
    weights = []
    for layer, shape in enumerate(SHAPES):
        weights += [random.normal(0, np.sqrt(2 / shape[0]) * (0.3 if layer == 3 else 1), shape).astype(np.float32),
                    np.zeros(shape[1], np.float32)]
    first, second = ([np.zeros_like(each) for each in weights] for _ in range(2))
    mean = [each.copy() for each in weights]
    for step in range(STEPS):
        index = random.integers(0, len(rows), 256)
        noise = random.standard_normal((256, OUT), np.float32)
        time = random.beta(1.5, 1, 256).astype(np.float32)
        between = time[:, None] * noise + (1 - time[:, None]) * chunks[index]
        seen = rows[index] + random.normal(0, 0.02, (256, SEEN)).astype(np.float32)
        out, kept, slopes = velocity(weights, np.concatenate([seen, between, timed(time)], 1))
        slope = 2 * (out - (noise - chunks[index])) / out.size
        rate = np.float32(1e-3 * 0.5 * (1 + np.cos(np.pi * step / STEPS)) + 1e-6)
        for layer in (3, 2, 1, 0):
            gradients = kept[layer].T @ slope, slope.sum(0)
            if layer:
                slope = (slope @ weights[2 * layer].T) * slopes[layer - 1]
            for place, gradient in zip((2 * layer, 2 * layer + 1), gradients, strict=True):
                first[place] += np.float32(0.1) * (gradient - first[place])
                second[place] += np.float32(0.001) * (gradient * gradient - second[place])
                move = first[place] / np.float32(1 - 0.9 ** (step + 1))
                weights[place] -= rate * move / (np.sqrt(second[place] / np.float32(1 - 0.999 ** (step + 1))) + 1e-8)
        keep = 0.999 if step > 300 else 0.0
        for place, each in enumerate(weights):
            mean[place] += np.float32(1 - keep) * (each - mean[place])
    np.savez(path, *mean, **{f"scale{index}": each.astype(np.float32) for index, each in enumerate(scale)})


def to_bfloat16(array):
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)).view(np.float32)


def to_int4(weight):
    unit = np.abs(weight).max(0) / np.float32(7)
    return (np.round(weight / unit) * unit).astype(np.float32)


class Policy:
    """Ten Euler steps from noise to a chunk, as the variant runs them."""

    noise_shape = (OUT,)
    executed = EXECUTED

    def __init__(self):
        with np.load(os.environ["FETCH_POLICY"], allow_pickle=False) as arrays:
            self._weights = [arrays[f"arr_{index}"] for index in range(8)]
            self._scale = [arrays[f"scale{index}"] for index in range(4)]
        self._variant = os.environ.get("FETCH_VARIANT", "")
        if self._variant == "int4-weights":
            self._weights = [to_int4(each) if each.ndim == 2 else each for each in self._weights]
        if self._variant == "stale-normalisation":
            self._scale[1] = self._scale[1] * np.float32(1.3)

    def act(self, observations, noise):
        variant = self._variant
        seen = ((observations["observation"] - self._scale[0]) / self._scale[1]).astype(np.float32)
        chunk, steps = noise.copy(), 11 if variant == "euler-11" else 10
        activation = (lambda z: (np.maximum(z, 0), None)) if variant == "relu-for-gelu" else gelu
        rounded = to_bfloat16 if variant == "bf16" else lambda x: x
        for step in range(steps):
            time = np.full(len(chunk), 1 - step / steps, np.float32)
            rows = np.concatenate([seen, chunk, timed(time)], 1)
            chunk = chunk - velocity(self._weights, rounded(rows), activation, rounded)[0] / np.float32(steps)
        if variant == "axis-scaled":
            chunk = np.where(np.arange(OUT) % DIMENSIONS == 2, np.float32(0.4), np.float32(1)) * chunk
        return (chunk * self._scale[3] + self._scale[2]).reshape(-1, CHUNK, DIMENSIONS)


if __name__ == "__main__":
    train(sys.argv[1])
