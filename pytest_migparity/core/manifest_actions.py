"""The manifest's `[actions]`: how L6 reads a model's actions. It needs pydantic; only the manifest imports it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, field_validator, model_validator

from .outputs import ROTATIONS, ActionRules, Chain, Pose

_Triple = Annotated[list[FiniteFloat], Field(min_length=3, max_length=3)]


class Table(BaseModel):
    """As every table of a manifest: unknown keys and other types are mistakes."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class PoseTable(Table):
    """Dimensions that are one rotation together."""

    kind: Literal["axis-angle", "quaternion", "quaternion-wxyz", "rotation-6d"]
    dimensions: list[str]

    @model_validator(mode="after")
    def _whole(self) -> PoseTable:
        if len(set(self.dimensions)) != ROTATIONS[self.kind]:
            raise ValueError(f"{self.kind} takes {ROTATIONS[self.kind]} different dimensions")
        return self


class LinkTable(Table):
    """One joint: its offset in m from the one before, and the axis it turns about."""

    offset: _Triple = [0.0, 0.0, 0.0]
    axis: _Triple

    @field_validator("axis")
    @classmethod
    def _pointing(cls, value: _Triple) -> _Triple:
        if not any(value):
            raise ValueError("an axis of zeros points nowhere")
        return value


class KinematicsTable(Table):
    """A serial arm, by `links` or by Denavit-Hartenberg rows `dh` (a, alpha, d, theta); lengths in m, angles in rad."""

    joints: list[str]
    links: list[LinkTable] = []
    dh: list[Annotated[list[FiniteFloat], Field(min_length=4, max_length=4)]] = []
    tool: _Triple = [0.0, 0.0, 0.0]
    mode: Literal["absolute", "delta"] = "absolute"
    scale: list[FiniteFloat] = []

    @model_validator(mode="after")
    def _whole(self) -> KinematicsTable:
        if sorted((len(self.links), len(self.dh))) != [0, len(self.joints)] or not self.joints:
            raise ValueError(f"{len(self.joints)} joints need as many links, or as many rows of dh, and not both")
        if self.scale and len(self.scale) != len(self.joints):
            raise ValueError(f"{len(self.joints)} joints need as many numbers in scale, or none")
        return self


class ActionsTable(Table):
    """L6: which dimensions of an action are grippers and rotations, and what arm the joints move."""

    gripper: list[str] = []
    threshold: FiniteFloat = 0.0
    poses: list[PoseTable] = []
    kinematics: KinematicsTable | None = None

    def rules(self) -> ActionRules:
        """As the judge takes them."""
        arm = self.kinematics
        chain = None if arm is None else Chain(
            tuple(arm.joints), tuple((_triple(link.offset), _triple(link.axis)) for link in arm.links),
            tuple((a, alpha, d, theta) for a, alpha, d, theta in arm.dh), _triple(arm.tool), arm.mode, tuple(arm.scale))
        return ActionRules(tuple(self.gripper), self.threshold,
                           tuple(Pose(pose.kind, tuple(pose.dimensions)) for pose in self.poses), chain)


def _triple(values: list[float]) -> tuple[float, float, float]:
    x, y, z = values
    return x, y, z
