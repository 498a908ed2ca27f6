"""`migparity readlog`: what a reader made of a training log."""

MESSAGES: dict[str, tuple[str, str]] = {
    "readlog-rows": (
        "rows: {kept} kept, {dropped} dropped, {repaired} repaired, {merged} merged",
        "行数：保留 {kept}，丢弃 {dropped}，修复 {repaired}，合并 {merged}",
    ),
    "readlog-steps": (
        "steps: {first} to {last}, as a rule every {interval}",
        "步号：{first} 至 {last}，通常间隔 {interval}",
    ),
    "readlog-window": (
        "window: a printed loss is the mean over {window} steps",
        "窗口：打印的 loss 是 {window} 步的均值",
    ),
    "readlog-joints": ("resumed at: {joints}", "续训起点：{joints}"),
    "readlog-series": ("series: {series}", "判定序列：{series}"),
    "readlog-among": (
        "could be meant as well (--column): {among}",
        "其他候选序列（--column）：{among}",
    ),
    "readlog-resolution": ("last printed place: {resolution}", "打印末位：{resolution}"),
}
