"""L7: what the success rates say, and what stands against comparing them."""

MESSAGES: dict[str, tuple[str, str]] = {
    "loop-undecided": (
        "these episodes decide neither way",
        "现有回合数不足以作出任一结论",
    ),
    "loop-passed": (
        "certified after {at} of {pairs} pairs, at an error rate of {alpha}: no loss beyond the margin; the question is the "
        "success rate on episodes like these",
        "在 {pairs} 对回合中的第 {at} 对即可认定（错误率 {alpha}）：成功率损失不超过裕度；结论针对同类回合的总体成功率",
    ),
    "loop-failed": (
        "certified after {at} of {pairs} pairs, at an error rate of {alpha}: success was lost, {loss} as measured",
        "在 {pairs} 对回合中的第 {at} 对即可认定（错误率 {alpha}）：成功率下降，实测下降 {loss}",
    ),
    "loop-real-loss": (
        "a real loss, smaller than the margin: {loss} as measured",
        "确有下降，但小于裕度：实测 {loss}",
    ),
    "loop-later-disagree": (
        "decided after {at} pairs, but over all of them the loss is {loss} against a margin of {margin}: look at what changed "
        "on the way, or run more",
        "第 {at} 对时已可判定，但全部回合的下降为 {loss}（裕度 {margin}），前后矛盾：请检查运行过程，或补充更多回合",
    ),
    "loop-undecided-pairs": (
        "{pairs} pairs cannot decide a margin of {margin}: where nothing was lost it takes about {needed} pairs, as {discordant} "
        "of the pairs differ",
        "{pairs} 对回合不足以判定裕度 {margin}：按现有的不一致比例 {discordant}，若无损失约需 {needed} 对",
    ),
    "loop-registered": (
        "of these {pairs} episodes alone, a narrower question: no loss beyond the margin, certain after {at} pairs",
        "若只问这 {pairs} 个回合本身（更窄的问题）：第 {at} 对后即可认定损失不超过裕度",
    ),
    "loop-unpaired": (
        "not paired: {why}; judged as two independent counts, which takes several times as many episodes",
        "未配对：{why}；按两组独立计数判定，所需回合数为配对的数倍",
    ),
    "loop-mixed": (
        "{side}: its episodes were run in several ways ({what}: {values}); run all of them in one",
        "{side}：各回合的运行方式不一致（{what}：{values}）；请统一后重跑",
    ),
    "loop-protocol": (
        "the sides were evaluated differently: {what} is {baseline} on the baseline and {candidate} on the candidate; run both "
        "the same way",
        "两侧评测方式不同：{what} 基线为 {baseline}，迁移侧为 {candidate}；请以同样方式运行",
    ),
    "loop-harness-unsaid": (
        "which harness ran the episodes is not recorded on both sides: that it was the same is not checked",
        "未记录两侧所用的评测程序，无法核对是否相同",
    ),
    "loop-other-tasks": (
        "the sides ran other tasks: baseline alone {baseline}; candidate alone {candidate}; run the same list",
        "两侧任务不同：仅基线 {baseline}；仅迁移侧 {candidate}；请使用同一任务列表",
    ),
    "loop-undeclared-tasks": (
        "the tasks are not those of the manifest: not run {missing}; not declared {more}",
        "任务与模型清单不符：未运行 {missing}；未声明 {more}",
    ),
    "loop-other-seeds": (
        "the sides have no seed of a task in common: run the candidate on the baseline's seeds",
        "两侧没有任何相同的（任务，种子）：请让迁移侧使用基线的种子",
    ),
    "loop-missing": (
        "{baseline} episodes are missing on the baseline and {candidate} on the candidate ({names}); each counts against either "
        "certificate: run them, from the recorded initial state where the planner refuses the seed",
        "基线缺少 {baseline} 个回合，迁移侧缺少 {candidate} 个（{names}）；每个都计为对任一结论不利：请补跑，规划器拒绝的种子请重放已记录的初始状态",
    ),
    "loop-not-same": (
        "{pairs} pairs did not start from the same {what} ({names}): replay the baseline's",
        "{pairs} 对回合的 {what} 不同（{names}）：请重放基线的设置",
    ),
    "loop-errors": (
        "{side}: {count} episodes have no outcome ({error}); each counts against either certificate",
        "{side}：{count} 个回合没有结果（{error}）；每个都计为对任一结论不利",
    ),
    "loop-repeated": (
        "{side}: {rows} episodes repeat a seed or an initial state of another and are no new evidence: {left} are left",
        "{side}：{rows} 个回合重复了已有的种子或初始状态，不构成新证据：余 {left} 个",
    ),
    "loop-vacuous": (
        "the baseline succeeds in {successes} of {episodes} episodes, surely more than {bound} only: there is no success to lose "
        "beyond a margin of {margin}",
        "基线 {episodes} 个回合仅成功 {successes} 个（可确信的下界 {bound}）：没有足够的成功率可供损失 {margin}",
    ),
    "loop-evaluated-wrongly": (
        "its own training logged a success rate of {rate}: it was evaluated wrongly here, or another checkpoint was",
        "其训练日志的成功率为 {rate}：此处评测有误，或评测的不是该检查点",
    ),
    "loop-trained-to-nothing": (
        "its own training logged a success rate of {rate} too: the baseline learned nothing that could be lost",
        "其训练日志的成功率同样只有 {rate}：基线没有学到可供比较的能力",
    ),
    "loop-published": (
        "the baseline's rate is {rate} of {episodes} episodes, and {published} was published: find out why before anything is "
        "compared with it",
        "基线成功率为 {rate}（{episodes} 个回合），而公布值为 {published}：请先查明原因再作比较",
    ),
    "loop-runs-spread": (
        "{side}: {runs} runs of one checkpoint differ by more than chance ({least} to {most}): one run of a side does not say "
        "what it is; find what varies, and rerun both sides",
        "{side}：同一检查点的 {runs} 次运行差异超出随机误差（{least} 至 {most}）：单次运行不足以代表该侧；请查明原因并两侧重跑",
    ),
    "loop-task-lost": (
        "task {task} lost success: baseline {baseline}, candidate {candidate} (p {p}, corrected for the number of tasks)",
        "任务 {task} 成功率下降：基线 {baseline}，迁移侧 {candidate}（p {p}，已按任务数校正）",
    ),
    "loop-copied": (
        "both sides handed in one and the same file ({file}): that proves nothing",
        "两侧提供的是同一个文件（{file}），不能说明任何问题",
    ),
    "loop-question-unsaid": (
        "what the policies computed on is not recorded: whether this is of the whole stack or of the weights alone is open",
        "未记录策略在何种设备上运行：无法确定结论针对整个软件栈还是仅针对权重",
    ),
    "loop-question-weights": (
        "question answered: trained weights only; both policies computed on {device}",
        "回答的问题：仅训练所得权重；两侧策略均在 {device} 上运行",
    ),
    "loop-question-stack": (
        "question answered: the whole stack; baseline on {baseline}, candidate on {candidate}",
        "回答的问题：整个软件栈；基线在 {baseline} 上，迁移侧在 {candidate} 上",
    ),
    "plan-head": (
        "L7: mean pairs to a PASS where nothing was lost, at a success rate of {rate} and an error rate of {alpha}",
        "L7：无损失时得出通过结论平均所需的回合对数（成功率 {rate}，错误率 {alpha}）",
    ),
    "plan-columns": (
        "margin, pairs by how outcomes correlate ({correlations}), episodes of each side where they cannot be paired",
        "裕度；按结果相关性（{correlations}）所需的对数；无法配对时每侧所需回合数",
    ),
    "plan-foot": (
        "* the margin in force. Same seed, initial state, instruction and noise on both sides correlate outcomes by .5 to .9; "
        "rerun the baseline to see by how much",
        "* 当前生效的裕度。两侧使用相同的种子、初始状态、指令和噪声时，结果相关性约为 .5 至 .9；可重跑基线以实测",
    ),
    "loop-mode-collision-time": (
        "collisions come at another time: the median first one at step {baseline} on the baseline, {candidate} on the candidate (p {p})",
        "碰撞时刻不同：首次碰撞的中位步数基线 {baseline}，迁移侧 {candidate}（p {p}）",
    ),
    "loop-mode-collided": (
        "{candidate} of the episodes collide, {baseline} on the baseline (p {p})",
        "发生碰撞的回合占 {candidate}，基线为 {baseline}（p {p}）",
    ),
    "loop-mode-timeout": (
        "{candidate} of the episodes run out of time, {baseline} on the baseline (p {p})",
        "超时的回合占 {candidate}，基线为 {baseline}（p {p}）",
    ),
    "loop-mode-goal-error": (
        "the median distance to the goal is {candidate}, {baseline} on the baseline (p {p})",
        "与目标的最小距离中位数为 {candidate}，基线为 {baseline}（p {p}）",
    ),
    "loop-mode-intervened": (
        "the safety layer steps in in {candidate} of the episodes, {baseline} on the baseline (p {p})",
        "安全层介入的回合占 {candidate}，基线为 {baseline}（p {p}）",
    ),
    "loop-mode-success-safe": (
        "with the safety layer on, success is {candidate}, {baseline} on the baseline (p {p})",
        "启用安全层时成功率为 {candidate}，基线为 {baseline}（p {p}）",
    ),
    "loop-mode-failed-after": (
        "failed episodes end after {candidate} steps in the median, {baseline} on the baseline (p {p})",
        "失败回合的步数中位数为 {candidate}，基线为 {baseline}（p {p}）",
    ),
    "loop-mode-contact": (
        "{what} touch in {candidate} of the episodes, {baseline} on the baseline (p {p})",
        "{what} 接触的回合占 {candidate}，基线为 {baseline}（p {p}）",
    ),
}
