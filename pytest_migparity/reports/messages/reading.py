"""What the log readers repaired, dropped, chose or doubt."""

MESSAGES: dict[str, tuple[str, str]] = {
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
    "read-resume-differs": (
        "{file}: after a resume the steps have other losses than before ({apart} apart): it did not go on from that run; "
        "fetch the log of one run, or make the resume repeat its steps",
        "{file}：断点续训后同一步的 loss 与之前不同（相差 {apart}）：并非接着同一次运行；请提供同一次运行的日志，或使续训可复现",
    ),
    "read-two-formats": (
        "{file} is read as {format} and holds {rows} rows as {other} as well, which say something else: give each log a "
        "file of its own, or name the format",
        "{file} 按 {format} 读取，但其中还有 {rows} 行 {other} 格式的记录且内容不同：请将两份日志分开，或指明格式",
    ),
    "read-replaced-non-finite": (
        "{file}: {rows} rows that a resume replaced were NaN or Inf, first at step {step}: the run broke there before",
        "{file}：被续训覆盖的行中有 {rows} 行为 NaN/Inf，首次在第 {step} 步：该运行曾在此处中断",
    ),
}
