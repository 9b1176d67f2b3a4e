"""``pgmult topics``: topic models of a corpus, and what covariates do."""

import argparse
import math
import shlex
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgmult.cli import shared
from pgmult.cli.actions import Options, Question, Room
from pgmult.cli.runs import Job, StoredRun
from pgmult.sampling.settled import SETTLED
from pgmult.topics.family import TOPICS

if TYPE_CHECKING:
    from pgmult.topics.data.corpus import Corpus

_MOST_COMPARED = 10**7  # words of texts that are looked at for repeats
_COLUMNS = ("column", "names", "count", "wide")
_TEXTS = ("stop_words", "ngrams", "keep_addresses")
_COVARIATES = ("prevalence", "content")
_AS_BEFORE = *shared.READING, *_TEXTS, "documents", "vocabulary", "weight", *_COVARIATES
_LARGE = ("topics", "group_topics", "theta")
_FEWEST_DRAWS, _MOST_DRAWS = 500, 4000  # a chain, unless settled before
_WORK = 3.5e8  # tokens, documents and words of all topics that its sweeps go over, about
_MOST_BYTES = 72_000_000  # of these, by default; states of chains come on top
_QUOTED = 200  # draws of documents' shares, at least, that are enough to quote documents


# --------------------------------------------------------------------------- options of fit


_FIT = """
CORPUS  Table, folder or file of text, LDA-C file, .npz or .mtx of counts, or folder made by pack
--topics K>=2  Number of topics (default: 50)
--keep-theta  Store shares of topics in documents (default: if these are few, and with covariates)
--keep N>=1  Number of draws to store of the topics and of --keep-theta, over all chains (default:
    as many as take 72 MB); all draws are stored of other variables
--starts independent|shared  Start of chains: each its own, to see which topics recur, or the same
    (default: independent)
"""
_PRIOR_WORDS = """
--word-concentration X  Dirichlet concentration of words; larger: broader topics (default: learned)
--keywords FILE  File of words that topics must have, a line for each topic (economy: tax, jobs)
"""
_CORPUS = """
--vocabulary FILE  File of the words, one a line, for files of counts
--column NAME  Column of the texts of a table
--names NAME  Column of the names of documents
--count NAME  Column of counts, where a row is a word (--column) of a document (--names)
--wide COLUMNS  Columns of counts, one for each word (FIRST:LAST, 'word*' or a,b,c)
--documents lines|paragraphs  Documents of a file of text (default: lines)
"""
_WORDS = """
--stop-words LANGUAGE  Language of stop words, such as de (default: the texts'), a file, or none
--keep-addresses  Keep web addresses and names of users (@name), which are removed otherwise
--ngrams N>=1  Count runs of up to N words, too
--min-count N>=1  Drop words that occur fewer than N times
--min-documents N>=1  Drop words that occur in fewer than N documents
--max-document-share X  Drop words that occur in more than this share of documents
--max-words V>=2  Use the V most frequent words
"""
_COVARIATES_PAGE = """
--prevalence FORMULA  Formula of what shares of topics depend on: "~ party * s(year) + (1 | author)"
--content FORMULA  Formula of what the words of topics depend on: "~ party"
"""
_WEIGHT = """
--weight COLUMN  Weight of documents in averages of page, effects and shares, not in likelihoods
"""
_YES_OR_NO = {"action": argparse.BooleanOptionalAction}


def _add_fit(fit: argparse.ArgumentParser) -> None:
    shared.add_options(fit, _FIT, keep_theta=_YES_OR_NO)
    _add_corpus(fit)
    shared.add_options(fit, _PRIOR_WORDS)
    shared.add_options(_add_covariates(fit, ", for a structural topic model"), _WEIGHT)


def _add_corpus(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how a corpus is read."""
    group = parser.add_argument_group("corpus")
    shared.add_options(group, _CORPUS, documents={"default": None})
    shared.TABLE.add(group)
    shared.add_options(group, _WORDS, keep_addresses=_YES_OR_NO)


def _add_covariates(parser: argparse.ArgumentParser, of: str = "") -> argparse._ArgumentGroup:
    """Add the options that say what other columns of a table are for."""
    group = parser.add_argument_group(f"covariates of a table{of}")
    shared.add_options(group, _COVARIATES_PAGE)
    shared.GAPS.add(group)
    return group


def _job(options: Options) -> Job:
    has_covariates = options.prevalence or options.content
    shared.begin_compiling("StructuralTopics" if has_covariates else "CorrelatedTopics", options)
    from pgmult.topics.data.corpus import StructuredCorpus
    from pgmult.topics.models.correlated import CorrelatedTopics
    from pgmult.topics.models.structural import StructuralTopics
    from pgmult.topics.summaries.effects import document_weights

    if options.stop_words is not None and Path(options.stop_words).exists():  # it may not stay
        from pgmult.datasets.text import as_stop_words

        options.stop_words = sorted(as_stop_words(options.stop_words))
    if options.vocabulary is not None:
        options.vocabulary = str(Path(options.vocabulary).absolute())
    corpus, said = _read_documents(options)
    document_weights(corpus, options.weight)  # or say what is wrong with them now
    if not options.json:
        _print_corpus(corpus, said)
    keywords = None if options.keywords is None else _read_keywords(options.keywords)
    kind: Any = StructuralTopics if isinstance(corpus, StructuredCorpus) else CorrelatedTopics
    model = kind(options.topics, options.word_concentration, keywords=keywords)
    if options.until == SETTLED and options.draws == _MOST_DRAWS:
        options.draws = _most_draws(corpus, options.topics)
    keep_theta = options.keep_theta
    if keep_theta is None:  # no more than the topics take, or needed for checks
        size = 4 * corpus.num_documents * model.num_topics
        few = size <= max(4 * corpus.num_words * model.num_topics, _MOST_BYTES // _QUOTED)
        keep_theta = (few or bool(has_covariates)) and options.cluster is None
        if not keep_theta and not options.json:
            how = "" if options.cluster else " (--keep-theta does that)"
            what = f"Shares of topics in {corpus.num_documents:,} documents are not stored{how}"
            print(f"{what}; pgmult.topics.fold_in draws those of chosen documents afterwards")
    title = options.title or f"Topics in {Path(options.corpus).name}"
    notes = {"title": title, "source": str(options.corpus)}
    keep = (*model.default_keep, *(["theta"] if keep_theta else []))
    content = getattr(corpus, "content", None)
    sizes = {
        "document": corpus.num_documents, "word": corpus.num_words, "topic": model.num_topics,
        "group": 1 if content is None else len(content.labels),
    }  # fmt: skip
    stored = set(keep) & set(_LARGE) - set(model.absent(corpus))
    large = {of: math.prod(sizes[axis] for axis in model.dims[of]) for of in keep if of in stored}
    more = "--keep N for more"
    every = shared.kept_every(large, _MOST_BYTES, options, keep=options.keep, more=more)
    return Job(model, corpus, {name: every if name in large else 1 for name in keep}, notes)


def _read_keywords(path: str) -> dict[str, list[str]]:
    """Words of topics by name, out of a file with a line for each."""
    keywords: dict[str, list[str]] = {}
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        name, _, text = (piece.strip() for piece in line.partition(":"))
        words = [word.strip() for word in (text.split(",") if "," in text else text.split())]
        if line.strip() and (not name or not words or name in keywords):
            why = "another name than before" if name in keywords else "a name, a colon and words"
            raise ValueError(f"{path}, line {number}: must be {why}, got {line.strip()!r}")
        if line.strip():
            keywords[name] = words
    return keywords


def _most_draws(corpus: Any, num_topics: int) -> int:
    """Return the draws a chain at which a run ends that has not settled: more of small corpora."""
    documents = corpus.num_documents
    work = corpus.num_tokens + num_topics * (documents + corpus.num_words)
    work += documents * num_topics**3 / 200
    return int(min(max(_WORK / max(1.0, work), _FEWEST_DRAWS), _MOST_DRAWS))


def _read_documents(options: Options, needed: Sequence[str] = ()) -> tuple[Any, list[str]]:
    """The corpus that options describe, and what to say of it.

    Columns of formulas that the corpus needs, besides its covariates, are `needed`.
    """
    from pgmult.datasets.readers import read_corpus, recognise

    source = recognise(options.corpus)
    formulas = [getattr(options, name, None) for name in _COVARIATES]
    columns = {name: getattr(options, name) for name in _COLUMNS[1:]}
    said = ""
    if source.kind == "table":
        table = shared.read_table(options.corpus, options)
        table, said = shared.complete_for([*formulas, *needed], table, options)
        corpus = table.corpus(options.column, **columns, **_choices(options))
    else:
        for name, value in [*columns.items(), *zip(_COVARIATES, formulas, strict=True)]:
            if value is not None:
                raise ValueError(f"--{name} is for tables, and {options.corpus} is a {source.kind}")
        corpus = read_corpus(options.corpus, **_of_files(options))
    if any(formulas):
        prevalence, content = formulas
        try:
            corpus = corpus.with_covariates(prevalence or "~ 1", content=content)
        except TypeError as error:  # a column of the wrong kind is bad input, too
            raise ValueError(str(error)) from None
    beside = options.vocabulary or source.vocabulary
    words = f" with the words of {beside}" if beside else ""
    return corpus, [f"{options.corpus} ({source.kind}){words}: {corpus}", *([said] if said else [])]


def _choices(options: Options) -> dict[str, Any]:
    """How words are chosen."""
    names = ("min_count", "min_documents", "max_document_share", "max_words", *_TEXTS)
    choices = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    return choices | ({"stop_words": ()} if options.stop_words == "none" else {})


def _of_files(options: Options) -> dict[str, Any]:
    """How files that are no tables are read, and how words are chosen."""
    names = ("vocabulary", "column", "delimiter", "encoding")
    how = {name: getattr(options, name) for name in names}
    return how | {"documents": options.documents or "lines"} | _choices(options)


def _print_corpus(corpus: "Corpus", said: list[str]) -> None:
    """What was read, and what was lost on the way."""
    print("\n".join(said))
    if corpus.table is not None and corpus.table.losses is not None:
        print(f"\n{corpus.table.losses}", flush=True)
    if repeats := _repeats(corpus):
        have = "document has" if repeats == 1 else "documents have"
        advice = "the same words as another one: remove repeats if a text occurs twice"
        print(f"{repeats:,} {have} {advice}", flush=True)


def _repeats(corpus: "Corpus") -> int:
    """How many documents have the words of one before them, each as often, and more than one."""
    if corpus.num_tokens > _MOST_COMPARED:
        return 0
    rows = [slice(a, b) for a, b in pairwise(corpus.indptr.tolist()) if b - a > 1]
    parts = [(corpus.words[row].tobytes(), corpus.counts[row].tobytes()) for row in rows]
    return len(parts) - len(set(parts))


# --------------------------------------------------------------------------- what a run is asked


_NUM_WORDS = "--words N>=1  Words per topic (default: 8)"
_SHOW = f"""
{_NUM_WORDS}
--by probability|frex  Measure by which words are ranked (default: probability)
--topic K>=1  Show this topic only
--documents N>=0  Documents per topic
"""


def _report(run: StoredRun, options: Options | None) -> Any:
    asked: dict[str, Any] = {}
    if options is not None:
        if options.documents:
            run.must_answer("documents")
        asked = {"by": options.by, "num_words": options.words, "topic": options.topic}
        asked["num_documents"] = options.documents or 0
    facts = {} if run.data is None else {"corpus": str(run.data)}
    weight = run.notes.get("recipe", {}).get("weight")
    return run.report(facts=facts | run.facts, weight=weight, **asked)


_TOPIC = "--topic K>=1...  Show these topics only"
_CONTENT = f"""
GROUPS  Two groups to compare
{_TOPIC}
{_NUM_WORDS}
--figure FILE  Draw the answer to a file, such as x.svg
"""


def _effects(run: StoredRun, options: Options, arguments: dict[str, object]) -> object:
    shares = run.ask("effects", **arguments)
    if options.difference is not None:
        shares = shares.difference(options.column, *options.difference)
    return shares if options.topic is None else shares.take(options.topic)


def _content(run: StoredRun, options: Options, arguments: dict[str, object]) -> None:
    content = run.ask("content")
    groups = ", ".join(map(str, content.groups))
    if not options.groups:
        print(content.table(options.words))
        if options.figure is not None:
            raise ValueError(f"--figure needs the two groups to be compared: {groups}")
        return
    if len(options.groups) != 2:
        raise ValueError(f"two groups are compared, got {len(options.groups)}: {groups}")
    topics = options.topic or range(1, len(content.names) + 1)
    compared = content.compare(*options.groups, list(topics), options.words)
    print("\n\n".join(str(one) for one in compared))
    for one, topic in zip(compared, topics, strict=True):
        place = options.figure
        if place is not None and len(compared) > 1:
            place = place.with_name(f"{place.stem}-{topic}{place.suffix}")
        shared.draw(one, place)


def _read_others(run: StoredRun, options: Options) -> tuple["Corpus", str]:
    """Other documents, read as those of a run were, and what they are."""
    from pgmult.datasets.readers import COUNTED, recognise

    kind = recognise(options.corpus).kind
    if kind != "table":
        shared.unfollow(options, [*_COLUMNS, *_COVARIATES, *shared.READING[2:], "delimiter"])
    shared.unfollow(options, _TEXTS if kind in COUNTED else ["vocabulary"])
    table = getattr(run.data, "table", None)
    if kind not in COUNTED and options.ngrams is None:  # a corpus that was packed knows its own
        losses = None if table is None else table.losses
        options.ngrams = None if losses is None else losses.ngrams
    recipe = run.notes.get("recipe", {})
    needed = [recipe[name] for name in _COVARIATES if name in recipe]
    corpus, said = _read_documents(options, needed)
    return corpus, "\n".join(said)


def _refit(run: StoredRun, options: Options, arguments: dict[str, object]) -> None:
    run.must_answer("refit")
    if options.prevalence is None:
        raise ValueError("--prevalence must say what shares of topics depend on, such as '~ party'")
    corpus, said = _read_others(run, options)
    made = run.ask("refit", corpus, **arguments)
    made.save(options.out, with_data=True)
    print(f"{said}\nContinue with: pgmult topics effects {shlex.quote(str(options.out))} COLUMN")


def _predict(run: StoredRun, options: Options, arguments: dict[str, object]) -> object:
    from pgmult.topics.exports import document_columns
    from pgmult.topics.summaries.effects import topic_names

    run.must_answer("predict")
    corpus, said = _read_others(run, options)
    predicted = run.ask("predict", corpus, **arguments)
    print(said, predicted, sep="\n", file=sys.stdout if options.out else sys.stderr)
    return document_columns(predicted.topics, predicted.corpus, topic_names(run.posterior, None))


_NEW = "CORPUS  New documents, in the form that fit reads"
_OTHERS = "CORPUS  Documents, in the form that fit reads\n--out RUN!  New run directory"
_REFIT = shared.asides(_OTHERS)
_MERGE = """
GROUPS  Name and numbers of topics to unite, such as economy=3,7
--out RUN!  New run directory, with a page
"""


def _group(text: str) -> tuple[str, list[int]]:
    name, _, numbers = text.rpartition("=")
    try:
        topics = [int(number) for number in numbers.split(",")]
    except ValueError:
        topics = []
    if not name.strip() or not topics:
        raise argparse.ArgumentTypeError(f"must be a name and numbers, economy=3,7, got {text!r}")
    return name.strip(), topics


def _merge(run: StoredRun, options: Options, arguments: dict[str, object]) -> None:
    groups = dict(options.groups)
    if len(groups) < len(options.groups):
        raise ValueError("each name must occur once: economy=3,7 has all topics of a group")
    made = run.ask("merge", groups)
    from pgmult.topics.summaries.effects import topic_names

    made.save(options.out, with_data=True)
    _report(StoredRun(options.out, made, run.notes), None).save(options.out / shared.PAGE)
    names = "; ".join(topic_names(made, None)[: len(groups)])
    print(f"United topics: {names}\nPage: {options.out / shared.PAGE}")


def _export(run: StoredRun, options: Options, arguments: dict[str, object]) -> None:
    for path in run.ask("export", options.out):
        print(path)


def _compare(first: StoredRun, second: StoredRun, options: Options) -> object:
    compared = first.ask("compare", second.posterior, num_words=options.words)
    if not options.json:
        print(f"first   {first.path}\nsecond  {second.path}\n")
    return compared


# --------------------------------------------------------------------------- beside runs


_PACK = """
CORPUS  Corpus, in the form that fit reads
--out FOLDER!  Folder to write
--quiet  Show no progress line
"""


def _add_pack(pack: argparse.ArgumentParser) -> None:
    shared.add_options(pack, _PACK)
    _add_corpus(pack)


def _pack(options: Options) -> int:
    from pgmult.datasets.packing import pack_files
    from pgmult.topics.data.packed import losses_of

    for name in ("count", "wide"):
        if getattr(options, name) is not None:
            raise ValueError(f"--{name} is for fit: a table of counts is small enough")
    how = _of_files(options) | {"names": options.names, "progressbar": not options.quiet}
    print(f"{options.out}: {pack_files(options.corpus, options.out, **how)}")
    losses, out = losses_of(options.out), shlex.quote(str(options.out))
    if losses is not None:
        print(f"\n{losses}")
    print(f"\nContinue with: pgmult topics fit {out} --topics 50 --out run")
    return 0


_SEARCH = """
CORPUS  Corpus, in the form that fit reads
--topics K>=2...!  Numbers of topics to compare
--draws N>=1  Draws per chain (default: 200)
--tune N>=0  Sweeps before the first draw (default: 300)
--chains N>=1  Number of chains (default: 2)
"""


def _add_search(search: argparse.ArgumentParser) -> None:
    shared.add_options(search, _SEARCH)
    shared.SEED.add(search)
    shared.add_options(search, shared.RUNNING)
    shared.add_writing(search)
    _add_corpus(search)
    _add_covariates(search)


def _search(options: Options) -> int:
    from pgmult.topics.scores.selection import search_num_topics

    shared.silence_reported_warnings()
    corpus, said = _read_documents(options)
    _print_corpus(corpus, said)
    how = shared.running(options)
    del how["store"]
    shared.print_answer(search_num_topics(corpus, options.topics, **how), options)
    return 0


_ONE_OR_MORE = {"nargs": "+", "type": _group, "metavar": "NAME=K,K"}
ROOM = Room(
    TOPICS,
    "Topic models of a corpus",
    "  pgmult topics fit articles.csv --column text --topics 50 --out run\n"
    "  pgmult topics show run --topic 3 --documents 5\n"
    "  pgmult topics fit speeches.csv --column text --topics 15 --out run2 \\\n"
    "    --prevalence '~ party + year'",
    "the topics of a corpus",
    draws=_MOST_DRAWS, tune=200, add_fit=_add_fit, job=_job, report=_report, compare=_compare,
    add_show=lambda parser: shared.add_options(parser, _SHOW),
    add_compare=lambda parser: shared.add_options(parser, _NUM_WORDS),
    takes_cluster=True, recipe=shared.Recipe(_COLUMNS, _AS_BEFORE),
    questions=(
        Question("effects", "Show how shares of topics depend on a covariate",
                 [shared.DIFFERENCE, shared.asides(_TOPIC)], first=["variable"],
                 skip=["chain", "num_simulated"], names={"variable": "column"}, ask=_effects),
        Question("content", "Show the words that groups use for a topic",
                 [shared.asides(_CONTENT, groups={"nargs": "*", "metavar": "GROUP"})], only=[],
                 ask=_content, writes=False),
        Question("shares", "Show average shares of topics by a column of the documents",
                 first=["by"], skip=["chain"], names={"by": "column"}),
        Question("quotes", "Show texts of the documents with the largest share of a topic",
                 skip=["chain"], names={"num_quotes": "quotes", "max_characters": "characters"}),
        Question("check", "Compare the data with data that the model simulates", skip=["chain"],
                 names={"groups": "by"}),
        Question("predict", "Predict shares of topics in new documents",
                 [shared.asides(_NEW), shared.Option(_add_corpus), shared.GAPS],
                 only=["new_levels", "probability", "random_seed"], ask=_predict, tidy=True),
        Question("refit", "Sample effects of covariates in other documents, with a run's topics",
                 [_REFIT, shared.Option(_add_corpus), shared.Option(_add_covariates)],
                 only=["random_seed"], ask=_refit, writes=False),
        Question("merge", "Unite topics that belong together in a new run",
                 [shared.asides(_MERGE, groups=_ONE_OR_MORE)], only=[], ask=_merge, writes=False),
        Question("export", "Write a run as files for other programs",
                 [shared.asides("--out FOLDER!  Folder for the files")], only=[], ask=_export,
                 writes=False),
    ),
    more=(
        ("pack", "Write a corpus that may be larger than memory, for fit to read from disk",
         _add_pack, _pack),
        ("search", "Compare numbers of topics on held-out words", _add_search, _search),
    ),
)  # fmt: skip
