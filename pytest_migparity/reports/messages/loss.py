"""L5: what the judge of losses says, what it suggests, and what the log readers repaired or dropped."""

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
        "the printed digits cannot resolve: {checks} (rounding alone moves them by up to {digits}); give full "
        "precision (loss.jsonl, TensorBoard)",
        "打印位数不足以分辨 {checks}（仅舍入误差即可达 {digits}）；请提供全精度日志（loss.jsonl 或 TensorBoard）",
    ),
    "loss-digits-lifted": (
        "limits lifted to the printed digits: {checks} (rounding alone: up to {digits})",
        "因打印位数有限，已放宽 {checks} 的限值（舍入误差最大 {digits}）",
    ),
    "loss-check-doubt": ("between clear and beyond", "介于明确合格与明确超限之间"),
    "loss-check-late": ("within its limit over the first steps only", "仅在起始若干步内未超限"),
    "loss-late": (
        "clear over the first 100 steps and beyond the limit over the whole run: {checks}. Good runs part in the long run "
        "too: rerun the baseline as long and hand the reruns in as floors, or judge the first steps alone",
        "前 100 步合格，但整程超限：{checks}。正常的两次运行在长程上也会分离：请将基线按同样步数重跑作为本底，或只判定起始若干步",
    ),
    "loss-intervals-agree": (
        "the sides log at different intervals (baseline {baseline}, candidate {candidate} steps); the steps that both log "
        "agree, so they hold the same quantity",
        "两侧日志间隔不同（基线每 {baseline} 步，迁移侧每 {candidate} 步），但共同打印的步一致，可认为是同一量",
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
    # what the readers did
    "read-ansi": ("{file}: terminal colour codes were removed", "{file}：已去除终端颜色控制符"),
    "read-bom": ("{file}: a byte order mark was removed", "{file}：已去除 BOM"),
    "read-encoding": ("{file}: read as {encoding}, not UTF-8", "{file}：不是 UTF-8，已按 {encoding} 解码"),
    "read-wide-digits": (
        "{file}: {digits} digits of another script (full-width) were read as plain ones",
        "{file}：{digits} 个全角（或其他文字的）数字已按半角读取",
    ),
    "read-torn-text": ("{file}: ends inside a character; it was dropped", "{file}：结尾字符不完整，已丢弃"),
    "read-torn-line": (
        "{file}: line {line}, the last, is torn; it was dropped",
        "{file}：最后一行（第 {line} 行）不完整，已丢弃",
    ),
    "read-open-end": (
        "{file}: ends in line {line} without a line end, so its last value may be cut; the row was dropped",
        "{file}：在第 {line} 行结束且无换行符，末尾数值可能被截断，该行已丢弃",
    ),
    "read-no-value": (
        "{file}: {rows} rows have no value in {column}, first in line {line}; they were dropped",
        "{file}：{rows} 行的 {column} 为空（首处在第 {line} 行），已丢弃",
    ),
    "read-no-step": (
        "{file}: {rows} records have no step; they were dropped",
        "{file}：{rows} 条记录没有步号，已丢弃",
    ),
    "read-unsorted": (
        "{file}: the rows were not in step order; they were sorted",
        "{file}：各行未按步号排列，已排序",
    ),
    "read-resumed": (
        "{file}: the log goes back {restarts} times, first to step {step}; of {rows} repeated rows the last was kept",
        "{file}：日志有 {restarts} 次回退（首次回到第 {step} 步，断点续训），{rows} 行重复记录以最后一次为准",
    ),
    "read-stale-rows": (
        "{file}: {rows} rows beyond step {step} belong to a run that was given up; they were dropped",
        "{file}：第 {step} 步之后的 {rows} 行属于已放弃的那次运行，已丢弃",
    ),
    "read-repeated": (
        "{file}: {rows} rows repeat the step before them, first step {step}; the last was kept",
        "{file}：{rows} 行与前一行步号相同（首处为第 {step} 步），以最后一次为准",
    ),
    "read-repeat-differs": (
        "{file}: {rows} rows repeat a step with another loss, first step {step}, and nothing says which counts (the "
        "steps come twice in a row, or the whole log does): several ranks or runs in one log? hand in one of them",
        "{file}：{rows} 行重复步的 loss 不同（首处为第 {step} 步），无法判断以哪个为准（同一步连续出现，或整份日志重复）："
        "是否混入了多个 rank 或多次运行？请只保留其一",
    ),
    "read-value-twice": (
        "{file}: line {line} gives {column} twice with different values, and nothing says which counts: hand in a log "
        "with one",
        "{file}：第 {line} 行出现两个不同的 {column}，无法判断以哪个为准；请提供只含一个值的日志",
    ),
    "read-loose-json": (
        "{file}: {rows} records are no strict JSON (curly quotes, bare nan), first in line {line}; they were read as meant",
        "{file}：{rows} 条记录不是严格的 JSON（弯引号或裸 nan，首处在第 {line} 行），已按原意读取",
    ),
    "read-thousands": (
        "{file}: {column} has thousands separators in {rows} cells; they were removed",
        "{file}：{column} 有 {rows} 处千位分隔符，已去除",
    ),
    "read-decimal-comma": (
        "{file}: {column} has decimal commas in {rows} cells; they were read as points",
        "{file}：{column} 有 {rows} 处以逗号作小数点，已按小数点读取",
    ),
    "read-other-rows": (
        "{file}: {evals} records of evaluations and {others} other records without a training loss were left out",
        "{file}：{evals} 条评估记录和 {others} 条其他无训练 loss 的记录未计入",
    ),
    "read-steps-are-positions": (
        "{file}: no step is printed and nothing in the log tells it: its {rows} records are numbered from 1, so that a "
        "step here is a position; hand in trainer_state.json, which has the steps",
        "{file}：日志没有打印步号，也无从推断：{rows} 条记录按出现顺序从 1 编号，此处的步号只是位置；请提供带步号的 trainer_state.json",
    ),
    "read-steps-from-bar": (
        "{file}: no step is printed; the steps of {rows} records are those of the progress bar beside them",
        "{file}：日志没有打印步号，{rows} 条记录的步号取自相邻的进度条",
    ),
    "read-steps-from-logging": (
        "{file}: no step is printed; the {rows} records were taken for every {every}th step, by the logging_steps that "
        "the log holds",
        "{file}：日志没有打印步号，按日志中的 logging_steps 将 {rows} 条记录视为每 {every} 步一条",
    ),
    "read-steps-from-engine": (
        "{file}: the losses are printed without a step; {rows} of them have the steps of the engine's lines between "
        "which they stand",
        "{file}：loss 没有打印步号，其中 {rows} 条按其前后引擎日志行的步号确定",
    ),
    "read-steps-rebuilt": (
        "{file}: {rows} steps are abbreviated (1K); they were rebuilt by counting on in steps of {every}, and every "
        "abbreviation agrees",
        "{file}：{rows} 个步号为缩写（如 1K），已按每 {every} 步递推还原，且与每处缩写一致",
    ),
    "read-step-is": ("{file}: the steps are the records' {key}", "{file}：步号取自记录的 {key}"),
    "read-overflow": (
        "{file}: {rows} lines report an overflow and a skipped step, first in line {line}",
        "{file}：{rows} 行报告溢出并跳过更新，首处在第 {line} 行",
    ),
    "read-chart-grouped": (
        "{file}: in {rows} rows, first in line {line}, {column} lies apart from its own minimum or maximum ({columns} such "
        "columns): the chart shows means of several runs or steps; export it ungrouped, without smoothing",
        "{file}：{column} 有 {rows} 行（首处在第 {line} 行）与其自身的最小值或最大值不同（此类列共 {columns} 个）：图表显示的是"
        "多次运行或多步的均值；请取消分组和平滑后重新导出",
    ),
    "read-chart-sampled": (
        "{file}: the steps of {column} are not evenly spaced ({columns} such columns): the chart has a sample of the "
        "logged steps, another one in each export; export the whole history",
        "{file}：{column} 的步号间隔不均匀（此类列共 {columns} 个）：图表只含部分采样步，且每次导出可能不同；请导出完整历史",
    ),
}
