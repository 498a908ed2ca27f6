"""Why evidence is missing or cannot be trusted, and how to get it."""

MESSAGES: dict[str, tuple[str, str]] = {
    "site-unreachable": (
        "{side} {kind}: {why}; check the site {site} in the manifest or in --migparity-site",
        "{side} {kind}：{why}；请检查模型清单或 --migparity-site 中的站点 {site}",
    ),
    "receipt-unreadable": (
        "{side} {kind}: the receipt artifacts.json at {site} cannot be used: {why}; fetch it again from the host",
        "{side} {kind}：{site} 的回执 artifacts.json 不可用：{why}；请从主机重新获取",
    ),
    "judge-refused": ("nothing was compared: {why}", "未进行任何比对：{why}"),
    "same-site": (
        "both sides were read from one and the same place ({site}): that proves nothing; name each side's own",
        "两侧证据取自同一位置（{site}），不能说明任何问题；请分别指定两侧的站点",
    ),
    "rerun-unusable": (
        "{file} is no rerun that measures a floor: {why}; leave it out",
        "{file} 不能作为测量本底的重复运行（{why}）；请去掉它",
    ),
    "rerun-apart": (
        "{file} is no rerun of the baseline: {check} is {value}, and good runs reach {most}; leave it out, or hand in reruns "
        "with the same seed and recipe",
        "{file} 不是基线的重复运行：{check} 为 {value}，而正常运行不超过 {most}；请去掉它，或提供同种子、同配方的重复运行",
    ),
    "rerun-is-run": (
        "the baseline's rerun {file} holds the candidate's run: it measures no floor; rerun the baseline",
        "基线的重复运行 {file} 与迁移侧的运行完全相同，不能作为本底噪声；请在基线侧重新运行",
    ),
    "evidence-one-for-all": (
        "{side} {kind}: the manifest declares several series and nothing says which one this file is; "
        'say it: [series.{series}] file = "..."',
        '{side} {kind}：清单声明了多个 series，无法确定该文件属于哪一个；请写明：[series.{series}] file = "..."',
    ),
    "cache-unusable": ("{side} {kind}: {why}", "{side} {kind}：{why}"),
    "receipt-lost": (
        "{side} {kind}: {site} was written with a receipt and artifacts.json is gone; fetch the whole folder again",
        "{side} {kind}：{site} 生成时带有回执，但 artifacts.json 已丢失；请重新获取整个目录",
    ),
    "recipe-differs": (
        "{side} {kind}: the receipt at {site} is of recipe {found}, the manifest's is {expected}: stale, or another "
        "run; run the recipe of this manifest there and fetch its artifacts",
        "{side} {kind}：{site} 的回执对应配方 {found}，而模型清单的配方是 {expected}：证据过期或来自另一次运行；"
        "请按本清单的配方重新运行并获取产物",
    ),
    "receipt-hash-differs": (
        "{side} {kind}: {file} at {site} has sha256 {found}, its receipt says {expected}: truncated or changed after "
        "the run; fetch it again",
        "{side} {kind}：{site} 的 {file} 的 sha256 为 {found}，回执记录为 {expected}：文件被截断或运行后被改动；请重新获取",
    ),
    "evidence-not-fetched": (
        "{side} {kind}: {file} at {site} could not be fetched: {why}",
        "{side} {kind}：无法获取 {site} 的 {file}：{why}",
    ),
    "evidence-missing": (
        "{side} {kind}: nothing at {site}; produce it there and fetch it, or name another site",
        "{side} {kind}：{site} 没有产物；请在该处生成后获取，或指定其他站点",
    ),
    "evidence-missing-names": (
        "{side} {kind}: no file there is one (found: {names}); for env run `migparity envlock --out env.json` on the "
        "host, for loss copy the training log (loss.jsonl, TensorBoard folder, CSV or .log), for weights run `migparity "
        "digest`, for inputs, forward and step record the run (*.record)",
        "{side} {kind}：没有找到对应文件（现有：{names}）；env 请在主机上运行 `migparity envlock --out env.json`，"
        "loss 请拷贝训练日志（loss.jsonl、TensorBoard 目录、CSV 或 .log），weights 请运行 `migparity digest`，"
        "inputs、forward、step 请录制运行（*.record）",
    ),
    "draws-unkeyed": (
        "{side} {kind}: the recipe injects its noise, and this run drew random numbers outside ({why}): name the functions "
        "with launch --draw, or declare noise = \"device\"",
        "{side} {kind}：配方要求注入噪声，而此次运行仍有未注入的随机数（{why}）：请用 launch --draw 指定函数，或声明 "
        "noise = \"device\"",
    ),
    "evidence-file-gone": (
        "{side} {kind}: {file} is named but not there; fetch it again",
        "{side} {kind}：缺少已登记的文件 {file}；请重新获取",
    ),
    "evidence-not-in-receipt": (
        "{side} {kind}: the receipt lists none of it {series}; run that part and fetch it with its receipt",
        "{side} {kind}：回执中没有该产物 {series}；请补跑并连同回执一起获取",
    ),
    "evidence-ambiguous": (
        '{side} {kind}: several files could be it ({files}); say which: [series.{series}] file = "..."',
        '{side} {kind}：有多个候选文件（{files}）；请在清单中指定：[series.{series}] file = "..."',
    ),
    "evidence-unreadable": ("{side} {kind}: {why}", "{side} {kind}：{why}"),
    "producers-mixed": (
        "the baseline's evidence is {baseline} and the candidate's is {candidate}: rehearsal evidence answers only "
        "rehearsal evidence; give both sides real evidence",
        "基线证据来源为 {baseline}，迁移侧为 {candidate}：演练证据只能与演练证据比对；请为两侧都提供真实证据",
    ),
}
