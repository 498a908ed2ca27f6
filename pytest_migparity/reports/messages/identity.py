"""L1: were the intended weights really loaded?"""

MESSAGES: dict[str, tuple[str, str]] = {
    "provenance-no-asked": (
        "{side}: no configuration says which checkpoint the loader was to read: hand in the one that the run used",
        "{side}：没有配置说明加载器应读取哪个检查点：请提供该次运行所用的配置",
    ),
    "provenance-ambiguous": (
        "{side}: the configurations contradict each other, so it is open which checkpoint was asked for: {fields}",
        "{side}：配置相互矛盾，无法确定要求加载哪个检查点：{fields}",
    ),
    "provenance-no-restored": (
        "{side}: the log does not say which checkpoint was restored: hand in the log from its first line, at level INFO",
        "{side}：日志未说明恢复了哪个检查点：请提供自首行起、INFO 级别的完整日志",
    ),
    "provenance-no-file": (
        "{side}: the weights in the file were not digested",
        "{side}：未对文件中的权重生成摘要",
    ),
    "provenance-no-memory": (
        "{side}: the weights in memory after loading were not digested: what the loader made of the file is open",
        "{side}：未对加载后内存中的权重生成摘要：加载器对文件做了什么尚不可知",
    ),
    "provenance-other-checkpoint": (
        "{side}: {field} asks for {value}, and {restored} was restored (log line {line})",
        "{side}：{field} 要求 {value}，实际恢复的是 {restored}（日志第 {line} 行）",
    ),
    "provenance-path-unseen": (
        "{side}: {field} asks for {value}, and the log names no path that was restored",
        "{side}：{field} 要求 {value}，日志未给出所恢复的路径",
    ),
    "provenance-path-untold": (
        "{side}: {field} asks for {value} and {restored} was restored: the names cannot tell whether these are the same",
        "{side}：{field} 要求 {value}，恢复的是 {restored}：仅凭名称无法判断是否为同一检查点",
    ),
    "provenance-asked-other": (
        "{side}: {field} asks for {value}, the manifest for {checkpoint}",
        "{side}：{field} 要求 {value}，清单要求 {checkpoint}",
    ),
    "provenance-asked-nothing": (
        "{side}: the configuration asks for no checkpoint, the manifest for {checkpoint}",
        "{side}：配置未要求任何检查点，清单要求 {checkpoint}",
    ),
    "provenance-init-unasked": (
        "{side}: the configuration asks for no checkpoint, and one was loaded (log line {line}): {text}",
        "{side}：配置未要求任何检查点，却加载了一个（日志第 {line} 行）：{text}",
    ),
    "provenance-fallback": (
        "{side}: a checkpoint could not be loaded and the run went on without it (log line {line}): {text}",
        "{side}：有检查点加载失败，运行在没有它的情况下继续（日志第 {line} 行）：{text}",
    ),
    "provenance-not-resumed": (
        "{side}: {field} = {value} asks to resume, and the run started afresh",
        "{side}：{field} = {value} 要求续训，实际却从头开始",
    ),
    "provenance-resume-unseen": (
        "{side}: {field} = {value} asks to resume, and the log does not say that it did",
        "{side}：{field} = {value} 要求续训，日志未显示已续训",
    ),
    "provenance-resumed-unasked": (
        "{side}: the configuration does not ask to resume, and the run did (log line {line}): {text}",
        "{side}：配置未要求续训，运行却续训了（日志第 {line} 行）：{text}",
    ),
    "provenance-restarted": (
        "{side}: the log says at line {line} that base weights were loaded after a resume: by another rank, or by a "
        "restart; hand in one rank's log of one start",
        "{side}：日志第 {line} 行显示续训之后又加载了基础权重：可能来自其他 rank 或重新启动；请提供单个 rank、单次启动的日志",
    ),
    "provenance-start-resume": (
        "{side}: the manifest expects a resumed run, and this one started afresh",
        "{side}：清单要求续训，该次运行却从头开始",
    ),
    "provenance-start-fresh": (
        "{side}: the manifest expects a fresh start, and this run resumed an earlier one",
        "{side}：清单要求从头开始，该次运行却续训了先前的运行",
    ),
    "provenance-new-tensors": (
        "{side}: {count} tensors were not in the checkpoint and began newly initialised: {names}",
        "{side}：{count} 个张量不在检查点中，被重新初始化：{names}",
    ),
    "provenance-partial": (
        "{side}: the checkpoint did not fill the whole model (log line {line}): {text}",
        "{side}：检查点未能填满整个模型（日志第 {line} 行）：{text}",
    ),
    "provenance-replaced": (
        "{side}: the loader replaced {count} tensors: in memory they are not what the file holds: {names}",
        "{side}：加载器替换了 {count} 个张量，内存中的内容与文件不符：{names}",
    ),
    "provenance-starts-differ": (
        "the {side} resumed an earlier run, and the other side started afresh",
        "{side} 续训了先前的运行，另一侧从头开始",
    ),
    "provenance-steps-differ": (
        "the baseline resumed at step {baseline}, the candidate at step {candidate}",
        "基线自第 {baseline} 步续训，候选自第 {candidate} 步续训",
    ),
    "provenance-new-differ": (
        "other tensors began newly initialised on one side than on the other: {names}",
        "两侧重新初始化的张量不同：{names}",
    ),
}
