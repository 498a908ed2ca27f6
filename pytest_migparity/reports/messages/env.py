"""What L0 says about two environments."""

MESSAGES: dict[str, tuple[str, str]] = {
    # the sides differ
    "env-version": (
        "package {name} must match: {baseline} on the baseline, {candidate} on the candidate; install one version",
        "依赖 {name} 要求版本一致：基线为 {baseline}，迁移侧为 {candidate}；请安装同一版本",
    ),
    "env-outside": (
        "package {name} must be {wanted}: the {side} does not have that (baseline {baseline}, candidate {candidate})",
        "依赖 {name} 的版本要求为 {wanted}：{side}不满足（基线 {baseline}，迁移侧 {candidate}）",
    ),
    "env-one-sided": (
        "package {name} must match and only the {side} has it (baseline {baseline}, candidate {candidate})",
        "依赖 {name} 要求一致，但只有 {side}已安装（基线 {baseline}，迁移侧 {candidate}）",
    ),
    "env-origin": (
        "package {name} {version} is the same version from another origin: {what} {baseline} on the baseline, "
        "{candidate} on the candidate; install both from one source",
        "依赖 {name} {version} 版本号相同但来源不同（{what}）：基线为 {baseline}，迁移侧为 {candidate}；"
        "请从同一来源安装",
    ),
    "env-ranks": (
        "{side}: {rank} runs with another environment than {first}: {what} is {candidate} there, {baseline} on "
        "{first} "
        "({count} differences); check which installation the child processes import",
        "{side}：{rank} 与 {first} 的运行环境不一致：{what} 在 {rank} 上为 {candidate}，在 {first} 上为 {baseline}"
        "（共 {count} 处）；请确认子进程实际导入的安装路径",
    ),
    "env-world": (
        "the sides ran with {baseline} and {candidate} processes (WORLD_SIZE): another batch or another order of "
        "summation; run both with the recipe's number, or declare env:WORLD_SIZE in the candidate's overrides",
        "两侧进程数（WORLD_SIZE）不同：基线为 {baseline}，迁移侧为 {candidate}，批大小或求和顺序随之改变；"
        "请按配方统一，或在迁移侧 overrides 中声明 env:WORLD_SIZE",
    ),
    "env-config": (
        "effective configuration differs: {name} is {baseline} on the baseline, {candidate} on the candidate; "
        "align it, "
        "or declare it in [env] may_differ or the candidate's overrides",
        "生效配置不一致：{name} 基线为 {baseline}，迁移侧为 {candidate}；请对齐，或在 [env] may_differ 或迁移侧 "
        "overrides 中声明",
    ),
    "env-requested": (
        "{name} was asked to be {wanted} and is {found} on the {side}: the option did not take effect "
        "(baseline {baseline}, candidate {candidate}); follow where it is passed on",
        "配置项 {name} 要求为 {wanted}，但 {side}实际为 {found}：该选项未生效（基线 {baseline}，迁移侧 "
        "{candidate}）；"
        "请检查参数是否真正传递到位",
    ),
    "env-tree-commit": (
        "the baseline's tree {tree} is at {baseline}, the manifest says {wanted} ({candidate}); check it out",
        "基线源码 {tree} 位于 {baseline}，而模型清单要求 {wanted}（{candidate}）；请切换到该提交",
    ),
    "env-tree-dirty": (
        "the baseline's tree {tree} has {files} changed files ({baseline}; {candidate}): the official code must run "
        "unpatched",
        "基线源码 {tree} 有 {files} 个文件被修改（{baseline}；{candidate}）：基线必须运行未经修改的官方代码",
    ),
    "env-regime": (
        "numeric switch {name} has another effect: {baseline} on the baseline, {candidate} on the candidate "
        "(overflow "
        "mode and TF32/HF32 change every number); align it",
        "数值相关开关 {name} 的实际效果不一致：基线为 {baseline}，迁移侧为 {candidate}（溢出检测模式、TF32/HF32 "
        "会影响全部"
        "数值）；请对齐",
    ),
    "env-arch": (
        "{side}: {name} was built for {built} and the device is {present} ({baseline}{candidate}); rebuild it there",
        "{side}：{name} 的编译架构为 {built}，而实际设备为 {present}（{baseline}{candidate}）；请在该环境重新编译",
    ),
    "env-extension": (
        "compiled extension {name} was built for {baseline} on the baseline and {candidate} on the candidate, "
        "for the "
        "same devices; do a clean rebuild",
        "编译扩展 {name} 的目标架构不一致：基线 {baseline}，迁移侧 {candidate}，而设备相同；请清理后重新编译",
    ),
    "env-imported": (
        "{side}: {name} {installed} is installed and {imported} is what gets imported ({baseline}{candidate}); "
        "look for "
        "a second copy on the path",
        "{side}：已安装 {name} {installed}，实际导入的却是 {imported}（{baseline}{candidate}）；"
        "请检查路径中是否存在另一份安装",
    ),
    # what is needed is not known
    "env-missing": (
        "no environment lock of the {side}; run `migparity envlock --out env.json` there (one file, Python 3.9+)",
        "缺少 {side}的环境快照；请在该环境运行 `migparity envlock --out env.json`（单文件，Python 3.9+）",
    ),
    "env-same-file": (
        "both sides handed in one and the same lock (sha256 {sha256}): that proves nothing; record each host's own",
        "两侧提交的是同一份环境快照（sha256 {sha256}），不能说明任何问题；请在各自主机上采集",
    ),
    "env-nothing": (
        "nothing was compared: no must-match package, shared configuration, requested option or upstream tree",
        "没有任何可比对的内容：未声明必须一致的依赖，也没有共同的配置、指定选项或上游源码",
    ),
    "env-absent": (
        "{name} must match and neither side has it: that proves nothing; record the environment the model runs in",
        "{name} 要求一致，但两侧均不存在，无法证明任何结论；请在模型实际运行的环境中采集",
    ),
    "env-unrecorded": (
        "{side}: {name} is not in the environment lock; record it again with what the manifest names",
        "{side}：环境快照中没有 {name} 的记录；请按模型清单重新采集",
    ),
    "env-bad-rule": (
        'the rule for {name} cannot be read: {wanted} is neither "*", a version nor a PEP 440 specifier',
        "{name} 的规则无法解析：{wanted} 既不是 \"*\"、版本号，也不是 PEP 440 版本约束",
    ),
    "env-bad-version": (
        "{side}: {name} {version} is no PEP 440 version, so the rule cannot be checked",
        "{side}：{name} 的版本号 {version} 不符合 PEP 440，无法按规则检查",
    ),
    "env-shadowed": (
        "{side}: {name} is installed more than once ({version} first, also {others}): which one a process imports "
        "depends on its path",
        "{side}：{name} 存在多份安装（优先 {version}，另有 {others}），进程实际导入哪一份取决于其搜索路径",
    ),
    "env-origin-unknown": (
        "{name} {version} was installed from a source folder whose git commit and changes were not recorded: its code "
        "cannot be compared",
        "{name} {version} 从源码目录安装，但未记录其 git 提交号与改动，无法比对其代码",
    ),
    "env-modified-unverified": (
        "{name} {version} has modified or missing files on both sides; run envlock with --package {name} to compare them",
        "{name} {version} 在两侧均有文件被修改或缺失；请用 envlock --package {name} 采集后比对",
    ),
    "env-config-missing": (
        "configuration {name} was recorded on the other side only, not on the {side}; record it there "
        "(envlock --config {name}=PATH)",
        "配置 {name} 只在另一侧采集，{side}缺失；请补采（envlock --config {name}=PATH）",
    ),
    "env-config-one-sided": (
        "{name} is stated on the {side} only (baseline {baseline}, candidate {candidate}): the other side's "
        "value is not "
        "known; state it on both, or declare it",
        "配置项 {name} 仅在 {side}给出（基线 {baseline}，迁移侧 {candidate}），另一侧的实际取值未知；"
        "请两侧都明确给出，或加以声明",
    ),
    "env-protocol": (
        "{name} is {baseline} on the baseline and {candidate} on the candidate: the two sides measured different "
        "things; "
        "run both with one value",
        "{name} 基线为 {baseline}，迁移侧为 {candidate}：两侧度量的对象或定义不同，不可直接比对；请统一后重跑",
    ),
    "env-config-unread": (
        "configuration file {name} differs (sha256 {baseline}, {candidate}) and its values were not read on both "
        "hosts; "
        "save it as JSON, or install PyYAML there",
        "配置文件 {name} 不一致（sha256 {baseline}、{candidate}），且未能在两侧读出取值；请另存为 JSON，"
        "或在该环境安装 PyYAML",
    ),
    "env-config-truncated": (
        "{name} has {dropped} more values than the lock holds; name the effective file that matters",
        "{name} 另有 {dropped} 个取值未收入快照；请指定真正生效的配置文件",
    ),
    "env-tree-missing": (
        "{side}: the source tree {tree} was not recorded; run envlock with --tree {tree}=PATH",
        "{side}：未采集源码 {tree}；请运行 envlock --tree {tree}=PATH",
    ),
    "env-tree-unknown": (
        "{side}: whether files of the source tree {tree} were changed was not recorded; run envlock there again",
        "{side}：未记录源码 {tree} 是否有改动；请在该环境重新运行 envlock",
    ),
    "env-package-unread": (
        "{side}: the installation of {name} could not be read ({error}): its version is not known; reinstall it or "
        "record the environment again",
        "{side}：无法读取 {name} 的安装信息（{error}），版本未知；请重新安装或重新采集环境快照",
    ),
    "env-ranks-unsure": (
        "{side}: whether {rank} runs what {first} runs is not recorded: {what} is {candidate} there, {baseline} on "
        "{first} ({count} such)",
        "{side}：无法确认 {rank} 与 {first} 的环境是否一致：{what} 在 {rank} 上为 {candidate}，在 {first} 上为 "
        "{baseline}（共 {count} 处）",
    ),
    "env-world-recipe": (
        "{side}: the lock says {found} processes, the recipe says world_size = {wanted}: this is no lock of that run; "
        "record it there, or correct the manifest",
        "{side}：快照记录的进程数为 {found}，而配方中 world_size = {wanted}：不是该次运行的快照；请在该次运行中重新采集，"
        "或更正模型清单",
    ),
    "env-world-unrecorded": (
        "{side}: the number of processes was not recorded and should be {wanted}; run envlock under the launcher "
        "(WORLD_SIZE, envlock --per-rank)",
        "{side}：未记录进程数（应为 {wanted}）；请通过启动器运行 envlock（WORLD_SIZE，envlock --per-rank）",
    ),
    "env-flags-unseen": (
        "{side}: torch flags of the running program were not recorded, and the other side's were; call "
        "envlock.collect() in the program, or declare torch:flags in the candidate's overrides",
        "{side}：未记录训练进程内的 torch 开关，而另一侧已记录；请在程序内调用 envlock.collect()，"
        "或在迁移侧 overrides 中声明 torch:flags",
    ),
    "env-flag-one-sided": (
        "torch flag {name} was recorded on one side only (baseline {baseline}, candidate {candidate}); record it on "
        "both, or declare it",
        "torch 开关 {name} 仅在一侧有记录（基线 {baseline}，迁移侧 {candidate}）；请两侧都采集，或加以声明",
    ),
    "env-ranks-missing": (
        "{side}: {found} of {world} processes left an environment lock; collect env.rankN.json from each "
        "(envlock --per-rank)",
        "{side}：{world} 个进程中只有 {found} 个生成了环境快照；请收集每个进程的 env.rankN.json（envlock "
        "--per-rank）",
    ),
    # for the reader
    "env-waived": (
        "{name} differs as declared: {baseline} -> {candidate}, because {reason}",
        "{name} 的差异已声明：{baseline} -> {candidate}，原因：{reason}",
    ),
    "env-may-differ": ("{count} differ as declared: {listed}", "{count} 项差异已声明：{listed}"),
    "env-undeclared": (
        "{count} other packages differ, undeclared: {listed}",
        "另有 {count} 个未声明的依赖版本差异：{listed}",
    ),
    "env-variables": ("{count} environment variables differ: {listed}", "{count} 个环境变量不一致：{listed}"),
    "env-flags-apart": (
        "torch flags were read beside one program only (baseline {baseline}, candidate {candidate}): not compared",
        "torch 开关仅在一侧采集（基线 {baseline}，迁移侧 {candidate}），未比对",
    ),
    "env-flags-probed": (
        "torch flags were read beside the programs on both sides: defaults, not what the runs had set",
        "两侧的 torch 开关均由探测进程读取：是默认值，不代表运行时的实际设置",
    ),
    "env-extension-differs": (
        "compiled extension {name} is another build ({baseline}, {candidate})",
        "编译扩展 {name} 不是同一次编译的产物（{baseline}、{candidate}）",
    ),
    "env-patched-alike": (
        "package {name} has {files} patched files, the same on both sides",
        "依赖 {name} 有 {files} 个文件被打补丁，两侧一致",
    ),
    "env-unverified": (
        "{side}: files were not all compared with their recorded hashes: {names} (envlock --package NAME does it)",
        "{side}：以下依赖的文件哈希未全部校验：{names}（可用 envlock --package NAME 校验）",
    ),
    "env-redacted": ("{name}: {count} redacted values were not compared", "{name}：{count} 个脱敏取值未比对"),
    "env-tree-untracked": (
        "the baseline's tree {tree} has {files} untracked files",
        "基线源码 {tree} 有 {files} 个未纳入版本管理的文件",
    ),
    "env-tree-dirty-candidate": (
        "the candidate's tree {tree} has {files} uncommitted files",
        "迁移侧源码 {tree} 有 {files} 个未提交的文件",
    ),
    "env-port": (
        "the port changes {files} files of {tree} (+{added} -{deleted} lines since {base}); migration notes: {notes}",
        "迁移改动：{tree} 共 {files} 个文件（相对 {base} 新增 {added} 行、删除 {deleted} 行）；迁移说明：{notes}",
    ),
    "env-part-error": ("{side}: {part} was not recorded: {error}", "{side}：{part} 采集失败：{error}"),
}
