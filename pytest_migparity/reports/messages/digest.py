"""`migparity diffdigest`: what has become of each tensor."""

MESSAGES: dict[str, tuple[str, str]] = {
    "digest-title": (
        "{outcome}: {tensors} tensors, {equal} equal, {value_equal} value-equal, {other} not",
        "{outcome}：{tensors} 个张量，{equal} 个相同，{value_equal} 个数值相同，{other} 个不同",
    ),
    "digest-two-hashes": (
        "the baseline's content hash is {baseline}, the candidate's {candidate}: digest both with --hash sha256",
        "基线的内容哈希为 {baseline}，候选为 {candidate}：请两侧均以 --hash sha256 重新生成摘要",
    ),
    "digest-no-tensors": (
        "nothing to compare: the baseline has {baseline} tensors, the candidate {candidate}",
        "无可比较内容：基线有 {baseline} 个张量，候选有 {candidate} 个",
    ),
    "digest-mapped": (
        "the {side}'s tensors are as the layout map {layout} brings them to the other side's; for a closer look give the "
        "same --layout again",
        "{side} 侧的张量已按布局映射 {layout} 转换；若需进一步查看，请再次给出相同的 --layout",
    ),
    "digest-part": (
        "only a shard: baseline {baseline}, candidate {candidate}; `migparity merge` all shards of each side first",
        "仅为分片：基线 {baseline}，候选 {candidate}；请先对每侧的全部分片执行 `migparity merge`",
    ),
    "digest-parts": ("{count} of {total} parts differ", "{total} 个部分中有 {count} 个不同"),
    "digest-where": (
        "{name}: differs between elements {first} and {last}",
        "{name}：差异位于第 {first} 至 {last} 个元素之间",
    ),
    "digest-element": (
        "{name}: element {place} (in C order) is {baseline} in the baseline and {candidate} in the candidate",
        "{name}：第 {place} 个元素（C 顺序）基线为 {baseline}，候选为 {candidate}",
    ),
    "digest-named": ("nothing is left to ask", "已无可进一步询问的内容"),
    "digest-next": ("next, {side}: migparity digest CHECKPOINT {options} --out FILE",
                    "下一步，{side}执行：migparity digest CHECKPOINT {options} --out FILE"),
    "digest-then-both": ("  then compare the two: migparity refine BASELINE CANDIDATE{cast}",
                         "  然后比较两者：migparity refine BASELINE CANDIDATE{cast}"),
    "digest-then-one": (
        "  then compare it with the digest of the other side: migparity refine BASELINE CANDIDATE{cast}",
        "  然后与另一侧的摘要比较：migparity refine BASELINE CANDIDATE{cast}",
    ),
    "digest-equal-rounded": (
        "all tensors are equal once rounded to {dtype}, to the bit; before, they may differ",
        "舍入至 {dtype} 后全部张量逐位相同；舍入前可能不同",
    ),
    "digest-value-equal": (
        "{name}: value-equal, {baseline} and {candidate}",
        "{name}：数值相同，{baseline} 与 {candidate}",
    ),
    "digest-missing": ("{name}: missing in the candidate ({baseline})", "{name}：候选中缺失（{baseline}）"),
    "digest-extra": ("{name}: only in the candidate ({candidate})", "{name}：仅候选中有（{candidate}）"),
    "digest-renamed": ("{name}: renamed, the candidate calls it {other}", "{name}：已改名，候选中名为 {other}"),
    "digest-tied": (
        "{name}: on one side only; {other} has the same content on both (tied)",
        "{name}：仅一侧有；{other} 在两侧均为相同内容（权重绑定）",
    ),
    "digest-swapped": ("{name}: swapped with {other}", "{name}：与 {other} 互换"),
    "digest-copied": ("{name}: holds the content of the baseline's {other}", "{name}：内容为基线的 {other}"),
    "digest-shape": ("{name}: {baseline} has become {candidate}", "{name}：{baseline} 变为 {candidate}"),
    "digest-reshaped": (
        "{name}: reshaped, the same elements in the same order: {baseline}, {candidate}",
        "{name}：形状改变，元素及顺序相同：{baseline}，{candidate}",
    ),
    "digest-non-finite": (
        "{name}: {baseline_nans} NaN and {baseline_infs} Inf have become {candidate_nans} and {candidate_infs}",
        "{name}：NaN {baseline_nans} 个、Inf {baseline_infs} 个，变为 {candidate_nans} 个、{candidate_infs} 个",
    ),
    "digest-zeroed": (
        "{name}: one side is all zero (norm {baseline_l2} in the baseline, {candidate_l2} in the candidate)",
        "{name}：一侧全为零（基线范数 {baseline_l2}，候选范数 {candidate_l2}）",
    ),
    "digest-transposed": (
        "{name}: transposed, the same elements: {baseline}, {candidate}",
        "{name}：被转置，元素相同：{baseline}，{candidate}",
    ),
    "digest-permuted": (
        "{name}: the same elements in another order: rows, heads or a layout permuted, or a square transposed",
        "{name}：元素相同而顺序不同：行、注意力头或布局被置换，或方阵被转置",
    ),
    "digest-permuted-noisy": (
        "{name}: likely permuted and changed a little: same norm, extremes and sum, cosine {cosine}",
        "{name}：可能被置换且略有改变：范数、极值与总和相同，余弦 {cosine}",
    ),
    "digest-negated": ("{name}: the sign is flipped", "{name}：符号反转"),
    "digest-scaled": ("{name}: scaled by {scale}", "{name}：被缩放，系数 {scale}"),
    "digest-rounded": (
        "{name}: like a rounding, {baseline_narrow} to {candidate_narrow}: relative L2 {relative} [{low}, {high}]",
        "{name}：符合舍入特征，{baseline_narrow} 至 {candidate_narrow}：相对 L2 {relative} [{low}, {high}]",
    ),
    "digest-truncated": (
        "{name}: like bits cut off, {baseline_narrow} to {candidate_narrow}: relative L2 {relative} [{low}, {high}], "
        "norm {baseline_l2} to {candidate_l2}",
        "{name}：符合截断特征，{baseline_narrow} 至 {candidate_narrow}：相对 L2 {relative} [{low}, {high}]，"
        "范数 {baseline_l2} 至 {candidate_l2}",
    ),
    "digest-below-floor": (
        "{name}: differs, by less than this digest resolves: relative L2 below {high}",
        "{name}：有差异，但低于摘要的分辨力：相对 L2 小于 {high}",
    ),
    "digest-different": (
        "{name}: differs, relative L2 {relative} [{low}, {high}], cosine {cosine}",
        "{name}：有差异，相对 L2 {relative} [{low}, {high}]，余弦 {cosine}",
    ),
    "digest-unmeasured": (
        "{name}: differs, by how much these digests do not say: {baseline}, {candidate}",
        "{name}：有差异，摘要未给出大小：{baseline}，{candidate}",
    ),
    "digest-written": (
        "{file}: {tensors} tensors, level {level}, {algorithm}, {size} bytes",
        "{file}：{tensors} 个张量，级别 {level}，{algorithm}，{size} 字节",
    ),
}
