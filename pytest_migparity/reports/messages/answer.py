"""The answer and its remarks."""

MESSAGES: dict[str, tuple[str, str]] = {
    "answer-no": ("{model}: accuracy lost? no: {remarks}", "{model}：精度是否有损失？否。{remarks}"),
    "answer-yes": ("{model}: accuracy lost? YES, {remarks}", "{model}：精度是否有损失？是，{remarks}"),
    "answer-cannot tell": ("{model}: accuracy lost? CANNOT TELL: {remarks}", "{model}：精度是否有损失？无法判定。{remarks}"),
    "answer-agree": ("{levels} pass", "{levels} 通过"),
    "answer-first-at": ("first at {level} ({case})", "最早出现在 {level}（{case}）"),
    "answer-first-at-where": ("first at {level} ({case}), {kind} {at}", "最早出现在 {level}（{case}），{kind} {at}"),
    "answer-cause-not-separated": ("the stacks differ too ({names}): their part is not separated",
                                   "软件栈也不一致（{names}），无法区分其影响"),
    "answer-task-unaffected": ("numbers differ from {level} on; task success is unaffected within the margin",
                               "自 {level} 起数值有差异，但任务成功率在容差内未受影响"),
    "answer-stacks-differ": ("the stacks differ: {names}", "软件栈不一致：{names}"),
    "answer-level-cannot-tell": ("{level} cannot tell (its section says what is missing)", "{level} 无法判定（缺什么见该级说明）"),
    "answer-only-environment": ("only the environment was compared", "只比对了环境"),
    "answer-not-checked": ("{levels} not checked", "{levels} 未检查"),
    "answer-loosened": ("{count} limits were loosened", "{count} 个限值被放宽"),
    "answer-rehearsal": ("rehearsal evidence: says nothing about the real model", "演练证据，不代表真实模型"),
    "answer-manual": ("manual evidence took part", "含手工提供的证据"),
}
