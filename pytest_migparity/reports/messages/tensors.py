"""L1 to L4: weights, inputs, module outputs, optimizer steps."""

MESSAGES: dict[str, tuple[str, str]] = {
    "identity-absent": (
        "neither side has a digest of its {what}: make {what}.digest on both with migparity digest",
        "两侧均无 {what} 的摘要：请在两侧用 migparity digest 生成 {what}.digest",
    ),
    "identity-one-sided": (
        "only the {side} has a digest of its {what}: it was not compared",
        "仅 {side} 侧有 {what} 的摘要：未作比较",
    ),
    "identity-mapped": (
        "the {side}'s tensors were compared as the layout map {layout} brings them to the other side's; left out: {dropped}",
        "{side} 侧的张量按布局映射 {layout} 转换后比较；略去：{dropped}",
    ),
    "identity-other-map": (
        "{side}: the digest of its {what} was made through the layout map {found}, and the manifest's [weights] layout "
        "declares {declared}: digest again with --layout and the declared map",
        "{side}：其 {what} 的摘要经由布局映射 {found} 生成，而清单 [weights] layout 声明的是 {declared}：请以声明的映射和 --layout 重新生成",
    ),
    "identity-loaded-open": (
        "{side}: whether memory held what the file holds is not known: the digests of the two have other content hashes; "
        "digest both with --hash sha256",
        "{side}：无法判断内存与文件内容是否一致：两份摘要的内容哈希算法不同；请均以 --hash sha256 生成",
    ),
    "identity-loaded-differs": (
        "{side}: {count} tensors in memory after loading are not what the file holds, the first is {first}",
        "{side}：加载后内存中有 {count} 个张量与文件内容不符，首个为 {first}",
    ),
    "identity-cast-unproved": (
        "{count} tensors look rounded to {dtype}, as declared, by their statistics alone: prove it on the wider side with "
        "migparity digest --cast {dtype} --level 0 --out weights.{dtype}.digest",
        "有 {count} 个张量从统计量看如声明那样舍入为 {dtype}，但尚无证明：请在精度较高的一侧运行 migparity digest --cast "
        "{dtype} --level 0 --out weights.{dtype}.digest",
    ),
    "identity-start-unknown": (
        "neither side says which checkpoint was asked for and restored (provenance.json)",
        "两侧均未说明要求加载与实际恢复的检查点（provenance.json）",
    ),
    "identity-value-equal": (
        "{what}: {count} tensors hold the same values in another dtype",
        "{what}：{count} 个张量数值相同、数据类型不同",
    ),
    "identity-more": ("{what}: {count} more tensors differ", "{what}：另有 {count} 个张量不同"),
    "record-several-runs": (
        "{side}: {runs} runs were recorded, expected one",
        "{side}：录制了 {runs} 次运行，应为一次",
    ),
    "record-ranks": (
        "{side}: ranks {ranks} of a run of {world} were recorded, expected all {expected}",
        "{side}：只录制了 rank {ranks}（运行规模 {world}），应有全部 {expected} 个",
    ),
    "record-same-file": (
        "both sides handed in the same file ({sha256}): it agrees with itself whatever the devices do",
        "两侧提交的是同一文件（{sha256}）：无论设备如何，它总与自身一致",
    ),
    "record-unrecorded": (
        "{side}: the recorder could not record {names}",
        "{side}：录制器未能录制 {names}",
    ),
    "record-two-hashes": (
        "the baseline was recorded with {baseline}, the candidate with {candidate}: record both with the same hash",
        "基线以 {baseline} 录制，候选以 {candidate} 录制：请两侧使用同一哈希重新录制",
    ),
    "record-one-sided": (
        "{count} tensors were recorded on the {side} only and not compared: {names}; if one side cannot have them, say "
        "why under [record] one_sided",
        "有 {count} 个张量仅 {side} 侧录制，未比较：{names}；若另一侧本就没有，请在 [record] one_sided 中写明原因",
    ),
    "record-broken-alike": (
        "NaN or Inf on both sides prove nothing: {names}",
        "两侧均含 NaN 或 Inf，不能说明任何问题：{names}",
    ),
    "record-apart": (
        "{where}: relative L2 distance {relative} (95 % {low} to {high}), cosine {cosine}, best "
        "fit {scale} times the baseline, norms {baseline} and {candidate}",
        "{where}：相对 L2 距离 {relative}（95 % 区间 {low} 至 {high}），余弦 {cosine}，最佳拟合为基线的 {scale} 倍，范数 {baseline} 与 {candidate}",
    ),
    "record-shape": ("{where}: {baseline} has become {candidate}", "{where}：{baseline} 变为 {candidate}"),
    "record-permuted": (
        "{where}: the same elements in another order ({baseline})",
        "{where}：元素相同，顺序不同（{baseline}）",
    ),
    "record-non-finite": (
        "{where}: NaN or Inf on one side: {baseline} in the baseline, {candidate} in the candidate",
        "{where}：仅一侧出现 NaN 或 Inf：基线 {baseline} 个，候选 {candidate} 个",
    ),
    "record-zeroed": (
        "{where}: all zero on one side: norms {baseline} and {candidate}",
        "{where}：一侧全为零：范数 {baseline} 与 {candidate}",
    ),
    "record-unmeasured": (
        "{where}: other content, of which nothing could be measured: {baseline}, {candidate}",
        "{where}：内容不同，但无可度量：{baseline}，{candidate}",
    ),
    "record-ids": (
        "{where}: {baseline} is not the same to the bit; ids and masks must be",
        "{where}：{baseline} 逐位不一致；token id 与掩码必须逐位一致",
    ),
    "inputs-nothing": (
        "no input was recorded on both sides",
        "两侧没有共同录制的输入",
    ),
    "inputs-vacuous": (
        "every recorded input is all zero or empty on both sides: agreement proves nothing",
        "录制的输入在两侧均全为零或为空：一致不能说明任何问题",
    ),
    "inputs-unmeasured": ("differs, and nothing could be measured", "不同，且无可度量"),
    "inputs-pixels-doubtful": (
        "{where}: pixels are {relative} of their norm apart, more than another decoder explains ({below}); the spread "
        "of one machine's own frames would tell",
        "{where}：像素相差范数的 {relative}，超出解码器差异的范围（{below}）；需要同一机器自身的离散程度方可判断",
    ),
    "inputs-noise-stream": (
        "{where}: another draw of the same distribution ({count} tensors): the sides do not share their noise; inject it "
        "with migparity-host launch",
        "{where}：同一分布的另一次抽样（{count} 个张量）：两侧未共用噪声；请用 migparity-host launch 注入",
    ),
    "inputs-seed-equal-stream-not": (
        "{where}: both sides have seed {seed}, and yet other random numbers ({count} tensors): a seed gives another stream "
        "on another device; inject the noise with migparity-host launch",
        "{where}：两侧种子均为 {seed}，随机数却不同（{count} 个张量）：不同设备上同一种子的随机流不同；请用 migparity-host "
        "launch 注入噪声",
    ),
    "inputs-affine": (
        "{where}: the candidate is {slope} times the baseline plus {offset}: a normalisation done twice, left out or "
        "with other constants",
        "{where}：候选约为基线的 {slope} 倍加 {offset}：归一化重复、缺失或常数不同",
    ),
    "forward-nothing": ("no module output of the first step was recorded on both sides", "两侧没有共同录制首步的模块输出"),
    "forward-unmeasured": ("an output differs, and nothing of it could be measured", "有输出不同，且无可度量"),
    "forward-vacuous": (
        "every recorded output is all zero or empty on both sides: agreement proves nothing",
        "录制的输出在两侧均全为零或为空：一致不能说明任何问题",
    ),
    "forward-vacuous-output": (
        "{where}: the last output is all zero on both sides: agreement proves nothing",
        "{where}：最后的输出两侧均全为零：一致不能说明任何问题",
    ),
    "forward-inputs-differ": (
        "the inputs already differ, at {where}: what follows from them is not told apart from what the code does; see L2",
        "输入已经不同（{where}）：无法区分输入所致与代码所致；见 L2",
    ),
    "forward-other-update": (
        "the first recorded step that updates the weights is {baseline} in the baseline and {candidate} in the candidate: "
        "record the same steps of the same kind on both sides",
        "首个更新权重的录制步：基线为 {baseline}，候选为 {candidate}：请两侧录制相同且同类的步",
    ),
    "step-nothing": ("no gradient of the first step was recorded on both sides", "两侧没有共同录制首步的梯度"),
    "step-no-loss": ("no loss of step {step} was recorded on both sides", "两侧没有共同录制第 {step} 步的损失"),
    "step-no-update": (
        "no update that moved a weight was recorded on either side: where a warm-up starts from 0, record more steps",
        "两侧均未录制到改变权重的更新：若预热从 0 开始，请多录制几步",
    ),
    "step-other-start": (
        "the first recorded step is {baseline} in the baseline and {candidate} in the candidate: their weights are not the "
        "same there",
        "首个录制步：基线为 {baseline}，候选为 {candidate}：此处两侧权重并不相同",
    ),
    "step-facts-one-sided": (
        "{count} steps have numbers on the {side} only, from step {step} on: they were not compared",
        "有 {count} 步仅 {side} 侧有数值（自第 {step} 步起）：未作比较",
    ),
    "step-parameters": (
        "step {step}: the baseline trains {baseline} elements, the candidate {candidate}",
        "第 {step} 步：基线训练 {baseline} 个元素，候选训练 {candidate} 个",
    ),
    "step-loss-vacuous": (
        "step {step}: losses {baseline} and {candidate} prove nothing",
        "第 {step} 步：损失 {baseline} 与 {candidate} 不能说明任何问题",
    ),
    "step-loss-broken": (
        "step {step}: the loss is {baseline} in the baseline and {candidate} in the candidate: zero, NaN or Inf on one side",
        "第 {step} 步：基线损失 {baseline}，候选损失 {candidate}：仅一侧为零、NaN 或 Inf",
    ),
    "step-one-sided": ("only one side states {name}: it was not compared", "仅一侧给出 {name}：未作比较"),
    "step-fact-differs": (
        "step {step}: {name} is {baseline} in the baseline and {candidate} in the candidate",
        "第 {step} 步：{name} 基线为 {baseline}，候选为 {candidate}",
    ),
    "step-state-dtype": (
        "{where}: the optimizer keeps it as {baseline} in the baseline and as {candidate} in the candidate",
        "{where}：优化器状态在基线为 {baseline}，在候选为 {candidate}",
    ),
    "step-ranks-differ": (
        "{side}: after the reduction rank {rank} has another gradient of {name} than rank 0, at step {step} "
        "({relative}): it was not reduced across the ranks",
        "{side}：归约后 rank {rank} 的 {name} 梯度与 rank 0 不同，第 {step} 步（{relative}）：未跨 rank 归约",
    ),
    "record-instrumented": (
        "the recordings were made with other instruments ({baseline}; {candidate}): a dump can change results by itself",
        "两侧录制方式不同（{baseline}；{candidate}）：转储本身可能改变结果",
    ),
    "kind-tensor": ("tensor", "张量"),
    "unit-tensors": ("tensors", "个张量"),
    "unit-modules": ("modules", "个模块"),
}
