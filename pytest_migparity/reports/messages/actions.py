"""L6: are the outputs the same, as far as the task can tell?"""

MESSAGES: dict[str, tuple[str, str]] = {
    "unit-samples": ("samples", "个样本"),
    "kind-dimension": ("dimension", "维度"),
    "action-ask-L7": (
        "too far to call the same, too near to call lost: only the task can tell, ask L7",
        "差异大到不能算相同，又小到不能判定有损：只有任务本身能回答，请看 L7",
    ),
    "action-rare": (
        "single values are far apart while 99 % are not: only the task can tell what they cost, ask L7",
        "个别值相差很大而 99% 的值并非如此：其代价只有任务本身能回答，请看 L7",
    ),
    "action-no-logits": (
        "texts part and no logits say by how much: hand in logits, or ask L7",
        "文本出现分歧，但没有 logits 说明差距大小：请提供 logits，或看 L7",
    ),
    "action-kinds": (
        "the baseline's outputs are {baseline}, the candidate's {candidate}: nothing was compared",
        "基线的输出是 {baseline}，迁移侧的是 {candidate}：未做任何比较",
    ),
    "action-replayed": (
        "{side}: these are recorded actions replayed, which measure the simulator, not the policy: hand in what the "
        "policy gives",
        "{side}：这是回放的已录制动作，衡量的是仿真器而非策略：请提供策略的输出",
    ),
    "action-shapes": (
        "a sample's outputs have shape {baseline} on the baseline and {candidate} on the candidate: nothing was compared",
        "每个样本的输出形状：基线 {baseline}，迁移侧 {candidate}：未做任何比较",
    ),
    "action-names": (
        "the {what} of the dimensions differ (baseline / candidate: {other}): nothing was compared",
        "两侧维度的 {what} 不同（基线 / 迁移侧：{other}）：未做任何比较",
    ),
    "action-steps": (
        "the sampler took {baseline} steps on the baseline and {candidate} on the candidate: set the same number, or let "
        "L7 decide; nothing was compared",
        "采样器步数：基线 {baseline}，迁移侧 {candidate}：请设为一致，或由 L7 判定；未做任何比较",
    ),
    "action-normalisation": (
        "outputs were un-normalised by other numbers (baseline: {baseline}; candidate: {candidate}): nothing was compared",
        "两侧反归一化所用的数值不同（基线：{baseline}；迁移侧：{candidate}）：未做任何比较",
    ),
    "action-nothing": ("there is no sample with outputs to compare", "没有可比较输出的样本"),
    "action-samples": (
        "{count} samples are on the {side} only ({names}): ask both sides about the same ones; nothing was compared",
        "{count} 个样本仅存在于 {side}（{names}）：请让两侧使用相同样本；未做任何比较",
    ),
    "action-labels": (
        "the labels of the samples differ between the sides: nothing was compared",
        "两侧样本的标签不同：未做任何比较",
    ),
    "action-noise-unsaid": (
        "{side}: no digest of the starting noise, and other noise alone moves a policy by 1.6 std: record it with "
        "host.actions.noise_digests; nothing was compared",
        "{side}：没有起始噪声的摘要，而仅噪声不同就会使策略偏移 1.6 倍标准差：请用 host.actions.noise_digests 记录；未做任何比较",
    ),
    "action-noise": (
        "{count} of {of} samples started from other noise ({names}): give both sides the same; nothing was compared",
        "{of} 个样本中有 {count} 个起始噪声不同（{names}）：请让两侧使用相同噪声；未做任何比较",
    ),
    "action-whole-stack": (
        "answers for the whole stack: weights trained on / outputs computed on {baseline} against {candidate}",
        "回答的是整个软硬件栈：权重训练于 / 输出计算于 {baseline}，对比 {candidate}",
    ),
    "action-weights-only": (
        "answers for the trained weights only: both sides ran on one machine (trained on / ran on: {baseline} against "
        "{candidate})",
        "仅回答训练所得的权重：两侧在同一机器上运行（训练于 / 运行于：{baseline}，对比 {candidate}）",
    ),
    "action-inference-only": (
        "answers for inference only: the weights of both sides were trained on one machine (trained on / ran on: "
        "{baseline} against {candidate})",
        "仅回答推理：两侧权重训练于同一机器（训练于 / 运行于：{baseline}，对比 {candidate}）",
    ),
    "action-one-site": (
        "both sides name one machine for training and for running: {baseline} against {candidate}",
        "两侧的训练与运行均为同一机器：{baseline}，对比 {candidate}",
    ),
    "action-one-machine": (
        "both sides were trained and ran on {site}: that compares no migration; name what the sites really are",
        "两侧的训练与运行都在 {site}：这不是迁移前后的对比；请写明真实的站点",
    ),
    "action-identical": (
        "the outputs of two machines are equal in every bit, which two accelerators never are: was one file handed in "
        "twice?",
        "两台机器的输出逐位相同，而两种加速器不可能如此：是否把同一文件提交了两次？",
    ),
    "action-few": (
        "{count} samples, fewer than the {fewest} that a difference in one sample of five does not escape: hand in more",
        "仅 {count} 个样本，少于 {fewest} 个（五个样本中出现一次的差异才不致漏掉）：请提供更多样本",
    ),
    "action-broken": (
        "{side}: NaN or Inf in {count} samples where the other side has numbers: {names}",
        "{side}：{count} 个样本含 NaN 或 Inf，而另一侧为正常数值：{names}",
    ),
    "action-broken-alike": (
        "NaN or Inf on both sides in {count} samples, which proves nothing: {names}",
        "两侧在 {count} 个样本中均为 NaN 或 Inf，不能证明任何事：{names}",
    ),
    "action-collapsed": (
        "{side}: the outputs are the same whatever the input: agreement there proves nothing",
        "{side}：无论输入如何输出都相同：此时的一致不能证明任何事",
    ),
    "action-constant": (
        "{count} dimensions are constant on the baseline and were held against their own size: {names}",
        "{count} 个维度在基线上为常数，按其自身大小比较：{names}",
    ),
    "action-no-scale": (
        "the baseline never moves in {names} and the candidate differs there: nothing says how large that is",
        "基线在 {names} 上始终不动，而迁移侧在此有差异：无从判断该差异的大小",
    ),
    "action-flat": (
        "the candidate never moves in {names}, where the baseline does",
        "迁移侧在 {names} 上始终不动，而基线会动",
    ),
    "action-undeclared": (
        "the manifest's {what} names the dimension {name}, which the outputs do not have",
        "清单中的 {what} 提到维度 {name}，而输出中没有该维度",
    ),
    "action-no-rotation": (
        "the dimensions {name} hold what is no {kind}, such as zeros",
        "维度 {name} 中的数值不是有效的 {kind}（例如全零）",
    ),
    "action-no-state": (
        "the kinematics adds actions to the joints' state, and no state was recorded: write it beside the actions",
        "运动学需要在关节状态上累加动作，但没有记录状态：请与动作一并写出",
    ),
    "action-tokens-one-sided": (
        "only one side recorded the tokens it decoded: it is open where the contexts part",
        "仅一侧记录了解码出的 token：无法得知上下文从何处分歧",
    ),
    "action-texts-part": (
        "{count} texts part; {positions} positions after that have other contexts and were not compared",
        "{count} 段文本出现分歧；其后 {positions} 个位置的上下文不同，未做比较",
    ),
    "action-text-parts": (
        "{count} of {of} texts part, the first (sample {name}) at position {position}",
        "{of} 段文本中有 {count} 段出现分歧，首个（样本 {name}）在位置 {position}",
    ),
    "action-choices": (
        "{count} of {of} first choices turned; the one with the largest margin is sample {name} at position {position}: "
        "{margin}, {scaled} std",
        "{of} 个首选中有 {count} 个改变；其中裕度最大的是样本 {name} 的位置 {position}：{margin}，即 {scaled} 倍标准差",
    ),
    "action-subset": (
        "neighbours were looked at among the first {count} vectors",
        "近邻关系仅在前 {count} 个向量中考察",
    ),
    "action-part": (
        "{name} ({unit}): p99 {p99} std, largest {worst} std, RMSE {rmse}, std {scale}",
        "{name}（{unit}）：p99 {p99} 倍标准差，最大 {worst} 倍，RMSE {rmse}，标准差 {scale}",
    ),
    "action-more": ("and {count} more dimensions that are not close", "另有 {count} 个维度不够接近"),
    "action-affine": (
        "{name} of the candidate is {slope} x the baseline's + {offset}: a normalisation or sign that was lost",
        "迁移侧的 {name} 等于基线的 {slope} 倍加 {offset}：可能丢失了归一化或符号",
    ),
    "actions-task-unsaid": (
        "{side}: the file does not say which samples are of the task {task}: write a task for each sample",
        "{side}：文件未说明哪些样本属于任务 {task}：请为每个样本写明任务",
    ),
    "actions-task-absent": (
        "{side}: the file has no sample of the task {task}; it has: {names}",
        "{side}：文件中没有任务 {task} 的样本；现有：{names}",
    ),
}
