"""Dumps of statistics that another tool made."""

MESSAGES: dict[str, tuple[str, str]] = {
    "dump-skipped": (
        "{file}: {count} items are neither tensors nor numbers and were left out",
        "{file}：有 {count} 项既非张量也非数值，已略去",
    ),
    "dump-apart": (
        "{where}: statistics {distance} apart: {baseline} in the baseline; {candidate} in the candidate",
        "{where}：统计量相差 {distance}：基线 {baseline}；候选 {candidate}",
    ),
    "dump-shape": ("{where}: {baseline} has become {candidate}", "{where}：{baseline} 变为 {candidate}"),
    "dump-non-finite": (
        "{where}: NaN or Inf on one side: {baseline} in the baseline; {candidate} in the candidate",
        "{where}：仅一侧出现 NaN 或 Inf：基线 {baseline}；候选 {candidate}",
    ),
    "dump-scaled": ("{where}: scaled by {factor}", "{where}：缩放了 {factor} 倍"),
    "dump-statistics": (
        "judged by extremes, means and norms of {count} tensors: a reordering inside one tensor is seen only by what it "
        "does to the next",
        "依据 {count} 个张量的极值、均值与范数判断：单个张量内部的重排只能由其后续影响看出",
    ),
    "dump-weights-statistics": (
        "statistics of {count} weights can show that they differ, never that they are the same: digest the checkpoints "
        "with migparity digest",
        "{count} 个权重的统计量只能说明不同，不能说明相同：请用 migparity digest 对权重文件生成摘要",
    ),
    "dump-unknown": (
        "the dump holds no statistics of {names}",
        "转储中没有 {names} 的统计量",
    ),
    "dump-not-judged": (
        "{level} is not judged from a dump of statistics: record it with migparity-host",
        "无法依据统计量转储判断 {level}：请用 migparity-host 录制",
    ),
    "dump-one-sided": (
        "one side is a dump of statistics and the other a recording: they were not compared",
        "一侧为统计量转储，另一侧为录制：未作比较",
    ),
}
