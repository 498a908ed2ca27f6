"""L5: what the judge of losses says, and what it suggests."""

MESSAGES: dict[str, tuple[str, str]] = {
    # why a check has no value; no parameters
    "loss-check-no-evidence": ("no training log on one side", "一侧缺少训练日志"),
    "loss-check-no-common": ("no common step", "没有共同步"),
    "loss-check-head": ("the first step is missing", "缺少首步"),
    "loss-check-short": ("too few common steps", "共同步数不足"),
    "loss-check-constant": ("undefined for a constant loss", "loss 恒定，无定义"),
    "loss-check-undefined": ("undefined for these losses", "对这些 loss 无定义"),
    "loss-check-weak": ("these runs cannot decide it", "现有运行不足以判定"),
    # evidence
    "loss-no-evidence": ("{side}: no training log; fetch it", "{side}：没有训练日志，请获取"),
    "loss-empty": (
        "{side}: the training log has no row to judge; fetch it again",
        "{side}：训练日志没有可判定的行，请重新获取",
    ),
    "loss-several-runs": (
        'strict mode compares one run with one; the {side} has {runs}. Name one, or set mode = "weak" if noise or '
        "seed differ",
        '严格模式只做一对一比对，而 {side} 有 {runs} 次运行；请指定其一，若噪声或随机种子不同请设 mode = "weak"',
    ),
    "loss-same-file": (
        "both sides are the same file (sha256 {sha256}...): it agrees with itself whatever the port does; fetch the "
        "other side's own log",
        "两侧是同一个文件（sha256 {sha256}...）：自己与自己必然一致，不能说明迁移结果；请获取另一侧自己的日志",
    ),
    "loss-copied": (
        "both sides are equal in every digit of full precision at {count} of {steps} steps: two devices never are, so "
        "this is one run twice, or one device twice, and proves nothing; hand in the other device's own log, with its "
        "other columns (step times, grad_norm), which would show that two runs wrote them",
        "两侧在 {steps} 步中有 {count} 步的全精度 loss 逐位相同：不同设备不会如此，应是同一次运行的副本或同一设备的重复运行，"
        "不能说明迁移结果；请提供另一设备自己的日志，并保留其他列（单步耗时、grad_norm），以证明确有两次运行",
    ),
    "loss-channel-absent": (
        "only one side logs {columns} (not {side}): not compared",
        "{columns} 仅一侧有记录（{side} 没有），未参与比对",
    ),
    "loss-identical": ("both sides are equal in every digit over {steps} steps", "两侧 {steps} 步 loss 逐位相同"),
    "loss-missing": (
        "missing on {side}: {count} steps ({steps}); log and fetch them",
        "{side} 缺少 {count} 步（{steps}），请补齐日志",
    ),
    "loss-sparse": (
        "both sides log every {interval} steps of the recipe's {steps}, declared is every {declared}: log as often, or say "
        "interval = {interval} in the manifest's [series]",
        "两侧均每 {interval} 步打印一次（配方共 {steps} 步），而清单声明的间隔为 {declared}：请提高打印频率，"
        "或在清单的 [series] 中写明 interval = {interval}",
    ),
    "loss-beyond": (
        "{rows} rows beyond the recipe's {steps} steps were left out",
        "超出配方 {steps} 步的 {rows} 行未参与比对",
    ),
    "loss-no-common-steps": ("the two logs have no step in common", "两份日志没有共同的步"),
    "loss-head-missing": (
        "the first step is missing on one side or both (first common step: {first}): where training started cannot "
        "be compared; fetch the log from its beginning",
        "至少一侧缺少首步（首个共同步为 {first}），无法比对起点；请获取从头开始的日志",
    ),
    "loss-short": (
        "{steps} common steps; {needs} are needed: train {more} more",
        "共同步仅 {steps} 步，至少需要 {needs} 步：请再训练 {more} 步",
    ),
    "loss-intervals": (
        "the sides log at different intervals (baseline {baseline}, candidate {candidate} steps): a logged loss may "
        "be a mean since the last one; log both alike",
        "两侧日志间隔不同（基线每 {baseline} 步，迁移侧每 {candidate} 步），打印值可能是区间均值；请统一间"
        "隔后重跑",
    ),
    "loss-offset": (
        "the candidate's step numbers are the baseline's plus {offset} (they start at {candidate} and {baseline}); "
        "nothing was shifted: if both count the same steps, set step_offset for one side's log and judge again",
        "迁移侧的步号比基线整体多 {offset}（分别从 {candidate} 和 {baseline} 开始）；未自动平移：若确为同"
        "一批步，请为其中一侧日志设置 step_offset 后重新判定",
    ),
    # values
    "loss-non-finite": (
        "{side}: NaN or Inf at {count} steps where the other side is finite, first at step {step}",
        "{side}：有 {count} 步为 NaN/Inf 而另一侧正常，首次出现在第 {step} 步",
    ),
    "loss-not-positive": (
        "{side}: the loss is not positive at {count} steps where the other side's is, first at step {step}",
        "{side}：有 {count} 步 loss 不为正而另一侧为正，首次出现在第 {step} 步",
    ),
    "loss-channel-non-finite": (
        "{side}: {column} is NaN or Inf at {count} steps where the other side's is finite, first at step {step}",
        "{side}：{column} 有 {count} 步为 NaN/Inf 而另一侧正常，首次出现在第 {step} 步",
    ),
    "loss-lr-differs": (
        "{column} differs at {count} steps, first at step {step} (baseline {baseline}, candidate {candidate}): the two "
        "sides do not train by one schedule",
        "{column} 有 {count} 步不同，首次在第 {step} 步（基线 {baseline}，迁移侧 {candidate}）：两侧的学习率计划不一致",
    ),
    "loss-lr-one-late": (
        "{column} is the same on both sides one row apart, first at step {step} (baseline {baseline}, candidate "
        "{candidate}): reported before and after the scheduler's step, or applied a step late? log it alike",
        "两侧 {column} 相差一行后完全一致，首次不同在第 {step} 步（基线 {baseline}，迁移侧 {candidate}）："
        "是打印时机不同（scheduler 更新前/后），还是实际晚了一步？请统一打印",
    ),
    "loss-lr-digits": (
        "the printed digits of {column} cannot tell {baseline} from {candidate} (step {step}): print three digits or "
        "more",
        "{column} 的打印位数不足以区分 {baseline} 与 {candidate}（第 {step} 步）：请至少打印三位有效数字",
    ),
    "loss-norm-apart": (
        "the gradient norms are a factor of {ratio} apart: other gradients, whatever the losses say; compare them by "
        "group (L4)",
        "梯度范数相差 {ratio} 倍：无论 loss 如何，梯度已不同；请按参数组比较（L4）",
    ),
    "loss-norm-zero": (
        "the gradient norm is 0 on one side alone at {count} steps, first at step {step}",
        "有 {count} 步仅一侧梯度范数为 0，首次在第 {step} 步",
    ),
    "loss-skipped-differs": (
        "skipped steps differ at {count} steps, first at step {step} (baseline {baseline}, candidate {candidate})",
        "有 {count} 步的跳步计数不同，首次在第 {step} 步（基线 {baseline}，迁移侧 {candidate}）",
    ),
    "loss-both-non-finite": (
        "both sides are NaN or Inf at {count} steps ({steps}): agreement there proves nothing",
        "两侧在 {count} 步（{steps}）同为 NaN/Inf：此处一致不能说明任何问题",
    ),
    "loss-both-not-positive": (
        "the ratio of losses is undefined at {count} steps ({steps}): they are not positive on both sides",
        "有 {count} 步（{steps}）两侧 loss 均不为正，比值无定义",
    ),
    "loss-constant": (
        "the loss never changes on: {side}; agreement of constants proves nothing",
        "{side} 的 loss 恒定不变；常数一致不能说明任何问题",
    ),
    "loss-undefined": (
        "{check} has no value: the losses it needs are not finite and positive",
        "{check} 无法计算：所需的 loss 不是有限正数",
    ),
    "loss-digits-blind": (
        "the printed digits cannot resolve: {checks} (rounding alone moves them by up to {digits}); {more} more digits would, "
        "or full precision (loss.jsonl, TensorBoard)",
        "打印位数不足以分辨 {checks}（仅舍入误差即可达 {digits}）；再多打印 {more} 位即可，或提供全精度日志（loss.jsonl 或 TensorBoard）",
    ),
    "loss-digits-lifted": (
        "limits lifted to the printed digits: {checks} (rounding alone: up to {digits})",
        "因打印位数有限，已放宽 {checks} 的限值（舍入误差最大 {digits}）",
    ),
    "loss-check-doubt": ("between clear and beyond", "介于明确合格与明确超限之间"),
    "loss-check-late": ("as good pairs are over the first steps only", "仅在起始若干步内与正常对相当"),
    "loss-late": (
        "like a good pair over the first 100 steps and not over the whole run: {checks}. Good runs part in the long run "
        "too: rerun the baseline as long and hand the reruns in as floors, or judge the first steps alone",
        "前 100 步与正常对相当，但整程不是：{checks}。正常的两次运行在长程上也会分离：请将基线按同样步数重跑作为本底，或只判定起始若干步",
    ),
    "loss-intervals-agree": (
        "the sides log at different intervals (baseline {baseline}, candidate {candidate} steps); the steps that both log "
        "agree, so they hold the same quantity",
        "两侧日志间隔不同（基线每 {baseline} 步，迁移侧每 {candidate} 步），但共同打印的步一致，可认为是同一量",
    ),
    "loss-check-chaos": ("doubling like a rounding error", "如舍入误差般成倍增长"),
    "loss-chaos": (
        "the difference starts as a rounding error and doubles every {doubling} steps: two correct runs of an unstable "
        "training do the same, so its size ({departure} decades) says nothing; rerun the baseline twice for floors, or "
        "judge fewer steps",
        "差异从舍入误差量级起每 {doubling} 步翻倍：不稳定训练的两次正确运行也会如此，其大小（{departure}）不能说明问题；"
        "请将基线重跑两次作为本底，或只判定更少的步",
    ),
    "loss-one-clock": (
        "both logs have the same {column} to the last digit: one run wrote them; hand in the other side's own log",
        "两份日志的 {column} 逐位相同：出自同一次运行；请提供另一侧自己的日志",
    ),
    "loss-block-order": (
        "from step {step} on, for a hundred rows, the step-to-step changes correlate at {order} only: other data",
        "自第 {step} 步起的一百行内，逐步变化的相关仅 {order}：数据不同",
    ),
    "loss-block-apart": (
        "within a hundred rows from step {step} the sides are {apart} apart, which good long runs are not",
        "自第 {step} 步起的一百行内，两侧相差 {apart}，正常的长程运行不会如此",
    ),
    "loss-joint": (
        "after the {side} resumed at step {step} the sides are {after} apart, before it {before}: was all state restored "
        "(optimizer, loader, random streams)?",
        "{side} 在第 {step} 步续训后两侧相差 {after}，之前为 {before}：优化器、数据加载、随机流等状态是否完整恢复？",
    ),
    "loss-glued": (
        "{count} steps in a row ({steps}) are equal in every digit of full precision and others are not: part of one log "
        "was pasted into the other; fetch the logs again",
        "连续 {count} 步（{steps}）的全精度 loss 逐位相同而其余不同：一份日志中混入了另一份的内容；请重新获取日志",
    ),
    "loss-zeros-moved": (
        "num_zeros differs by {share} at the first step (baseline {baseline}, candidate {candidate}) while the losses agree: "
        "other gradients, which the loss does not show; compare gradient norms by group (L4)",
        "首步 num_zeros 相差 {share}（基线 {baseline}，迁移侧 {candidate}）而 loss 一致：梯度不同但 loss 未体现；"
        "请按参数组比较梯度范数（L4）",
    ),
    "loss-windows": (
        "a printed loss is a mean over {baseline} steps on the baseline and {candidate} on the candidate; log both alike",
        "打印的 loss 在基线为 {baseline} 步均值、迁移侧为 {candidate} 步均值；请统一打印方式",
    ),
    "loss-counter-jumps": (
        "{side}: {column} grows by another number per step from step {step} on: rows of another run, or another batch size",
        "{side}：自第 {step} 步起 {column} 每步增量改变：混入了另一次运行的行，或批大小被改动",
    ),
    "loss-batches-differ": (
        "the sides train on {baseline} and {candidate} samples per step: not the same training",
        "两侧每步样本数不同（基线 {baseline}，迁移侧 {candidate}）：不是同一训练",
    ),
    "loss-recipe-batch": (
        "{side}: {found} samples per step, the recipe says {expected}: a log of another run, or another recipe",
        "{side}：每步 {found} 个样本，配方为 {expected}：日志来自另一次运行，或配方不符",
    ),
    "loss-recipe-lr": (
        "{side}: learning rate {found} at step {step}, above the recipe's {expected}: a log of another run, or another "
        "recipe",
        "{side}：第 {step} 步学习率 {found} 高于配方的 {expected}：日志来自另一次运行，或配方不符",
    ),
    "loss-departure-digits": (
        "the printed digits hide steady differences of up to {hides}; give full precision (loss.jsonl, TensorBoard) to see "
        "smaller bugs",
        "打印位数会掩盖最大 {hides} 的稳定差异；要发现更小的缺陷，请提供全精度日志（loss.jsonl 或 TensorBoard）",
    ),
    "loss-departure-hidden": (
        "a few odd rows hide a steady difference: without their jumps the departure is {under} decades, not {departure}; "
        "look at those rows, or rerun both sides",
        "少数异常行掩盖了稳定的差异：去掉其跳变后偏离度为 {under}，而非 {departure}；请检查这些行，或两侧重跑",
    ),
    "loss-departure-doubt": (
        "the departure ({high} decades) lies between {clear}, up to which pairs are good, and {beyond}, beyond which they "
        "are bad: rerun the baseline twice and hand the reruns in as floors",
        "偏离度 {high}（十进对数）介于合格上限 {clear} 与超限下限 {beyond} 之间：请将基线重跑两次作为本底后再判定",
    ),
    "loss-departure-family": (
        "the departure is {low} to {high} decades, by the model's family (up to {clear} good, beyond {beyond} bad): say "
        'family = "dense", "moe" or "dropout" in the manifest\'s [model], or rerun the baseline twice for floors',
        "偏离度因模型类别而异，为 {low} 至 {high}（十进对数；不超过 {clear} 合格，超过 {beyond} 不合格）：请在清单的 [model] 中"
        '写明 family = "dense"、"moe" 或 "dropout"，或将基线重跑两次作为本底',
    ),
    # weak mode
    "loss-weak-needs": (
        "weak mode compares at least 5 runs a side; the {side} has {runs}: needs {more} more, each with another seed",
        "弱模式要求每侧至少 5 次运行，{side} 目前 {runs} 次：还需 {more} 次（不同随机种子）",
    ),
    "loss-weak-repeated": (
        "{side}: {name} holds the same run as {other}; it counts once",
        "{side}：{name} 与 {other} 是同一次运行，只计一次",
    ),
    "loss-weak-uneven": (
        "the runs do not cover the same steps; train all of them equally long",
        "各次运行覆盖的步不一致；请统一训练步数",
    ),
    "loss-weak-broken": (
        "{side} has runs with a loss that is not finite and positive, the other side has none",
        "仅 {side} 的运行出现 NaN/Inf 或非正 loss",
    ),
    "loss-weak-no-spread": (
        "the runs of a side do not differ at all: are the seeds different?",
        "各次运行之间毫无差异：随机种子是否真的不同？",
    ),
    "loss-weak-compatible": (
        "statistically compatible: the tails of ln loss differ by {difference}, 90 % interval {lower} to {upper}, "
        "within {limit}",
        "统计上相容：ln loss 尾段差 {difference}，90% 区间 {lower} 至 {upper}，在 {limit} 以内",
    ),
    "loss-weak-apart": (
        "the tails of ln loss differ by {difference}, 90 % interval {lower} to {upper}, all of it beyond {limit}",
        "ln loss 尾段差 {difference}，90% 区间 {lower} 至 {upper}，整体超出 {limit}",
    ),
    "loss-weak-wide": (
        "the 90 % interval of the tails' difference, {lower} to {upper}, reaches over {limit}: add runs",
        "尾段差的 90% 区间 {lower} 至 {upper} 跨过限值 {limit}：请增加运行次数",
    ),
    # likely causes
    "hint-data-order": (
        "data order: step-to-step changes hardly correlate ({order})",
        "数据顺序不同：逐步变化几乎不相关（{order}）",
    ),
    "hint-constant-ratio": (
        "loss reduction or gradient accumulation: a constant ratio of {ratio}",
        "loss 归约或梯度累积方式不同：比值恒为 {ratio}",
    ),
    "hint-forward": (
        "weights or forward: unequal from the first step ({step0})",
        "权重或前向不一致：首步即不同（{step0}）",
    ),
    "hint-optimizer": (
        "optimizer or gradient: equal at the first step, then up to {peak} apart by step {step} ({slope} per step)",
        "优化器或梯度问题：首步一致，之后逐步偏离，至第 {step} 步达 {peak}（平均每步 {slope}）",
    ),
    "hint-growth-constant": ("the difference keeps its size from the start on", "差异自起始起大小基本不变"),
    "hint-growth-linear": ("the difference grows linearly with the steps", "差异随步数线性增长"),
    "hint-growth-exponential": (
        "the difference grows exponentially, doubling every {doubling} steps",
        "差异呈指数增长，每 {doubling} 步翻倍",
    ),
    "hint-shift": (
        "one side is {shift} steps late: the step-to-step changes agree at that shift ({shifted}) and not without it "
        "({order}); the loader or the scheduler is off by so many steps",
        "一侧错位 {shift} 步：平移后逐步变化一致（相关 {shifted}），不平移则不一致（{order}）；数据加载或调度器错开了相应步数",
    ),
    "hint-resume": (
        "the sides part where the {side} resumed (step {step}): state not restored, or rows of another run",
        "分歧始于 {side} 断点续训处（第 {step} 步）：状态未完整恢复，或混入了另一次运行的行",
    ),
    "hint-lr-change": (
        "the sides part where the learning rate changes its course (step {step}): the scheduler",
        "分歧始于学习率变化处（第 {step} 步）：请检查学习率调度器",
    ),
    "hint-other-stream": (
        "or another random stream: runs of one model with other noise, initial weights or dropout masks start so far "
        "apart ({step0}); inject them on both sides, or declare noise = \"device\" and hand in five runs a side",
        "也可能是随机流不同：同一模型在噪声、初始化或 dropout 不同的情况下，首步差异就是这个量级（{step0}）；"
        "请在两侧注入相同随机量，或声明 noise = \"device\" 并为每侧提供五次运行",
    ),
    "hint-lr": (
        "learning-rate schedule: it differs from step {step} on; make it equal before anything else",
        "学习率计划：自第 {step} 步起不同；请先统一学习率再看其他差异",
    ),
    "hint-skipped": (
        "loss scale or overflow: one side skipped updates that the other made, from step {step}",
        "loss scale 或溢出：自第 {step} 步起，一侧跳过了另一侧执行的更新",
    ),
    "hint-non-finite": (
        "overflow on the {side}, from step {step}: loss scale, precision, an operator's overflow mode",
        "{side} 自第 {step} 步溢出：请检查 loss scale、精度以及算子溢出模式（饱和 / INF_NAN）",
    ),
    "hint-sign": (
        "the {side} logs another quantity or a broken loss from step {step}",
        "{side} 自第 {step} 步记录的可能不是同一个量，或 loss 计算有误",
    ),
}
