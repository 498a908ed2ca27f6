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
    "dump-data": (
        "the {side}'s digest of its data ({file}) was not compared: a dump of statistics stands for its weights; bring "
        "weights.digest",
        "{side} 侧的数据摘要（{file}）未作比较：其权重仅有统计量转储；请提供 weights.digest",
    ),
    "dump-argument": (
        "{where}: the operation was given {baseline} in the baseline and {candidate} in the candidate",
        "{where}：该算子的参数，基线为 {baseline}，候选为 {candidate}",
    ),
    "dump-between": (
        "{where}: the first difference is in what goes into a module, while every output before it agrees: look at what "
        "lies between, or at an input of the model that enters there",
        "{where}：最先出现差异的是模块的输入，而此前的输出均一致：请检查两者之间的运算，或在此处进入的模型输入",
    ),
    "dump-checksums": (
        "{count} tensors are equal by CRC-32 (32 bits, no proof against intent)",
        "{count} 个张量的 CRC-32 相同（仅 32 位，不能防范有意篡改）",
    ),
    "dump-dtypes": (
        "{count} tensors have another dtype, first {where}: {baseline}, {candidate}; they were held against each other by "
        "their numbers",
        "{count} 个张量的数据类型不同，首个为 {where}：{baseline}、{candidate}；已按数值比较",
    ),
    "dump-later": (
        "{count} steps after step {step} begin with updated weights and were not compared",
        "步骤 {step} 之后的 {count} 步以更新后的权重开始，未作比较",
    ),
    "dump-step-statistics": (
        "statistics of {count} gradients can show that a step differs, never that it is the same: clipping, updates and "
        "the loss are not in a dump; record it with migparity-host",
        "{count} 个梯度的统计量只能说明该步不同，不能说明相同：转储中没有裁剪、更新与损失；请用 migparity-host 录制",
    ),
    "dump-comparison": (
        "judged anew from the {rows} rows of a comparison table; its own results were not used. The table is taken at its "
        "word for whose tensors it compared, and msprobe leaves out of it what only the bench run has",
        "依据比对表的 {rows} 行重新判断，未采用其自带结论。其所比较的张量来源无从核实，且 msprobe 不列出仅标杆侧存在的项",
    ),
    "dump-torn": (
        "{file}: {count} tensors have no shape and could not be read",
        "{file}：有 {count} 个张量缺少形状，无法读取",
    ),
}
