"""`migparity calibrate`: floors from reruns of one side."""

MESSAGES: dict[str, tuple[str, str]] = {
    "calibrate-title": (
        "{level}: {runs} runs, {pairs} pairs, {steps} steps ({first} to {last})",
        "{level}：{runs} 次运行，{pairs} 对，{steps} 步（{first} 至 {last}）",
    ),
    "calibrate-column-check": ("check", "检查项"),
    "calibrate-column-floor": ("floor", "本底"),
    "calibrate-column-runs": ("runs", "运行数"),
    "calibrate-column-pairs": ("pairs", "对数"),
    "calibrate-column-limit": ("limit in force", "生效限值"),
    "calibrate-least": (">= {limit}", ">= {limit}"),
    "calibrate-weighed": ("weighed in departure", "计入 departure"),
    "calibrate-confidence": (
        "with {runs} runs ({disjoint} disjoint pairs) a further good pair stays within the largest floor of a check "
        "with probability at least {share}, if it is made as these were; {factor}x the floor is what is allowed. Of "
        "another machine this says nothing",
        "{runs} 次运行（{disjoint} 对互不重叠）：同样条件下再跑一对，单个检查项不超出最大本底的概率至少为 {share}；判定允许 {factor} 倍本底。"
        "对另一台机器不作任何说明",
    ),
    "calibrate-equal": (
        "all {pairs} pairs are equal in every loss: this side repeats itself to the bit, or a log is a copy. A floor of "
        "0 is a floor: it makes no limit 0, and the published ones stay (with three runs or more step0 has its measured "
        "limit). late and noise have no logarithm of 0 and stay the model family's",
        "全部 {pairs} 对的 loss 逐位相同：该侧可逐位复现，或某份日志是拷贝。本底 0 有效：不会使限值变为 0，公布的限值不变"
        "（运行不少于三次时 step0 采用其实测限值）。late 与 noise 对 0 无对数，沿用模型族的参考值",
    ),
    "calibrate-some-equal": (
        "{equal} of {pairs} pairs are equal in every loss: make sure that no log is a copy of another",
        "{pairs} 对中有 {equal} 对的 loss 逐位相同：请确认没有日志是另一份的拷贝",
    ),
    "calibrate-digits": (
        "rounding to the printed digits alone moves |d| by up to {digits}: floors of that size are the digits', not the "
        "runs'; measure from full-precision logs where there are any",
        "仅打印位数的舍入就可使 |d| 变动 {digits}：该量级的本底来自打印位数而非运行本身；有全精度日志时请用其测量",
    ),
    "calibrate-refused": (
        "not written, beyond what any reason excuses: {floors}. Reruns of one side that are this far apart do not "
        "repeat the run: look for a seed, data order or dropout that was not fixed, or declare noise = \"device\"",
        "未写入，超出任何理由可允许的上限：{floors}。同一侧重跑相差如此之大，说明并未复现该运行：请检查未固定的随机种子、数据顺序或 dropout，"
        "或声明 noise = \"device\"",
    ),
    "calibrate-refused-figures": (
        "not written either: {names}. Weighed by such runs the departure would see nothing",
        "同样未写入：{names}。以此类运行加权，departure 将失去分辨力",
    ),
    "calibrate-written": ("{file}: [{table}.{level}] {checks} written", "{file}：已写入 [{table}.{level}] {checks}"),
    "calibrate-unchanged": (
        "{file}: nothing to write, it says the same already",
        "{file}：无需写入，内容已一致",
    ),
}
