"""Find near-duplicate documents, Chinese first and every language after.

>>> import nearsift as ns
>>> texts = ["今天下午，市图书馆举办了一场面向儿童的绘本阅读活动。", "本报讯：昨天的大雨使两条地铁线路停运了三个小时。",
...          "今天下午，市图书馆举办了一场儿童绘本阅读活动。"]
>>> r = ns.dedup(texts)
>>> r.keep_mask
[True, True, False]
"""

from nearsift._decontaminate import decontaminate
from nearsift._dedup import Deduplicated, Run, Why, add_runs, dedup, dedup_files
from nearsift._errors import (
    FileError,
    IndexFileError,
    InputError,
    InputTypeError,
    MemoryLimitError,
    NearsiftError,
    RecipeError,
    SettingError,
)
from nearsift._index import Answer, Index, Near
from nearsift._jobs import evaluate, pairs, tune
from nearsift._memory import FingerprintIndex, SketchIndex
from nearsift._native import VERSION as __version__
from nearsift._native import Column, Recipe, Table
from nearsift._parts import apply_part, join_parts, sketch_part
from nearsift._texts import (
    Comparison,
    Difference,
    Keyword,
    RecipeInfo,
    compare,
    distance,
    fingerprint,
    keywords,
    recipe,
    recipes,
    score,
    segment_words,
    sketch,
)
from nearsift._trim import trim_substrings

__all__ = [
    "Answer",
    "Column",
    "Comparison",
    "Deduplicated",
    "Difference",
    "FileError",
    "FingerprintIndex",
    "Index",
    "IndexFileError",
    "InputError",
    "InputTypeError",
    "Keyword",
    "MemoryLimitError",
    "Near",
    "NearsiftError",
    "Recipe",
    "RecipeError",
    "RecipeInfo",
    "Run",
    "SettingError",
    "SketchIndex",
    "Table",
    "Why",
    "__version__",
    "add_runs",
    "apply_part",
    "compare",
    "decontaminate",
    "dedup",
    "dedup_files",
    "distance",
    "evaluate",
    "fingerprint",
    "join_parts",
    "keywords",
    "pairs",
    "recipe",
    "recipes",
    "score",
    "segment_words",
    "sketch",
    "sketch_part",
    "trim_substrings",
    "tune",
]
