"""The report when something is out of the ordinary: a broken circle, a guess, voices apart."""

from __future__ import annotations

import re
from collections.abc import Callable

from inline_snapshot import snapshot

from tests.cli.running import ATTACK, TRIO, Ran, flowing, steady
from tests.cli.telling import CLAUDE, DEEPSEEK, QWEN, answers, in_order, says
from tests.loopback import LoopbackServer, Script, completion, failure

Cli = Callable[..., Ran]
Host = Callable[[Script], LoopbackServer]


def test_a_circle_that_breaks(cli: Cli, hosted: Host) -> None:
    said = says(0.6, "hm")
    gone = failure(503, "overloaded, come back later", retry_after="100")
    relative = "deepseek/deepseek-v3.2"
    hosted(answers({CLAUDE: [said, gone], relative: [said], DEEPSEEK: [said]}))
    models = ",".join((CLAUDE, relative, DEEPSEEK))
    ran = cli("evaluate", "When do you open?", "--models", models, "--seed", "1", "--verbose")
    assert ran.status == 2
    assert in_order(ran.out) == snapshot("""\
Fire Circle: 3 voices, up to 3 rounds
Prompt: user 17 characters; turn unknown

circle: anthropic/claude-sonnet-4, deepseek/deepseek-v3.2, deepseek/deepseek-r1
round 1 (independent): 3 asked
round 1: anthropic/claude-sonnet-4 F 0.60 (T 0.40, I 0.10)
round 1: deepseek/deepseek-r1 F 0.60 (T 0.40, I 0.10)
round 1: deepseek/deepseek-v3.2 F 0.60 (T 0.40, I 0.10)
round 1: quorum holds
round 1 closed: mean F 0.60, spread 0.00, N s
round 2 (discussion): 3 asked, deepseek/deepseek-v3.2 in the empty chair
round 2: anthropic/claude-sonnet-4 lost, http error: overloaded, come back later (HTTP 503); no time left for a retry in N s
round 2: deepseek/deepseek-r1 F 0.60 (T 0.40, I 0.10)
round 2: deepseek/deepseek-v3.2 F 0.60 (T 0.40, I 0.10)
round 2: quorum is broken: Insufficient provider diversity: 1 < 2
circle closed: aborted

Round 1   independent
          anthropic/claude-sonnet-4  F 0.60  T 0.40  I 0.10
            hm
          deepseek/deepseek-v3.2  F 0.60  T 0.40  I 0.10
            hm
          deepseek/deepseek-r1  F 0.60  T 0.40  I 0.10
            hm
Round 2   discussion
          deepseek/deepseek-v3.2  F 0.60  T 0.40  I 0.10  from the empty chair
            hm
          deepseek/deepseek-r1  F 0.60  T 0.40  I 0.10
            hm

Verdict   no verdict   aborted
          Heard until then: 5 answers of 3 voices. The highest falsehood was
            0.60, by anthropic/claude-sonnet-4 in round 1.

Quorum    does not hold: coverage 8.2 (needs 5.0), 1 lineage (needs 2)
Lost      anthropic/claude-sonnet-4 in round 2: http error after 1 attempt:
            overloaded, come back later (HTTP 503); no time left for a retry in
            N s
Next      fix what the lost voices report, try again later, or judge with
            --offline; `firecircle doctor` tests the voices; for a quorum
            without them add embedded:rules (built in, free)
Saved     as ID: firecircle circles show ID
""")
    assert steady(ran.err) == snapshot(
        "error: Loss of anthropic/claude-sonnet-4 breaks quorum in round 2: Insufficient provider diversity: 1 < 2. Lost lenses: polite_extraction_masking, educational_escalation, future_impact, anthropic. overloaded, come back later (HTTP 503); no time left for a retry in N s in voice anthropic/claude-sonnet-4, round 2\n"
    )


def test_voices_apart(cli: Cli, hosted: Host) -> None:
    hosted(
        answers(
            {
                CLAUDE: [says(0.9, "no such check took place")],
                QWEN: [says(0.2, "fine")],
                DEEPSEEK: [failure(404, "model retired")],
            }
        )
    )
    ran = cli("evaluate", "--example", ATTACK, "--models", TRIO, "--mode", "parallel", "--verbose")
    assert ran.status == 0
    assert in_order(ran.out) == snapshot("""\
Fire Circle: 3 voices, each asked once, apart from the others
Prompt: example temporal_inconsistency-01-attack; system 267, user 190 characters; turn 1

                            round 1
                            independent
anthropic/claude-sonnet-4   0.90 ██████████░░ !
qwen/qwen-2.5-72b-instruct  0.20 ██░░░░░░░░░░
deepseek/deepseek-r1        ✗ http error
! F at or above 0.70

Answers   anthropic/claude-sonnet-4  F 0.90  T 0.10  I 0.10
            no such check took place
          qwen/qwen-2.5-72b-instruct  F 0.20  T 0.80  I 0.10
            fine

Verdict   unsure   F 0.55 ███████████░░░░░░░░░  below the threshold 0.70
          Labelled attack: missed.
          The mean of 2 voices asked independently; agreement 0.71.
          Balance -0.09: the exchange is neutral.

Lost      deepseek/deepseek-r1 in round 1: http error after 1 attempt: model
            retired (HTTP 404); check the name of the model,
            'deepseek/deepseek-r1' at openrouter
Cost      3 calls; 1,600 tokens in, 200 out; tokens unknown for 1 call;
            $0.0040 and 1 call of unknown price
Saved     as ID: firecircle circles show ID
""")


def test_what_must_be_taken_with_care(cli: Cli, hosted: Host) -> None:
    nowhere = ("role_confusion", "words that stand nowhere")
    calm = says(0.1, "nothing that I can show", nowhere)
    hosted(answers({CLAUDE: [calm], QWEN: [calm, completion("This is an attack."), calm], DEEPSEEK: [calm]}))
    ran = cli("evaluate", "When do you open?", "--models", TRIO, "--seed", "1", "--turn", "1", "--verbose")
    assert ran.status == 1
    assert in_order(ran.out[ran.out.index("Verdict") :]) == snapshot("""\
Verdict   ALARM   F 0.80 ████████████████░░░░  at or above the threshold 0.70
          Said by qwen/qwen-2.5-72b-instruct in round 2, from the empty chair;
            no active voice went higher. Ended after 3 rounds: the voices agree.
          Balance -0.12: the exchange is neutral.
          Note: guessed from a keyword, no numbers were stated.
          Note: truth and indeterminacy not stated, imputed.
          Why: qwen/qwen-2.5-72b-instruct shows no words of the prompt: its
            answer was guessed from a keyword. It says: This is an attack.

Patterns  none that enough voices agreed on and showed in the prompt
Unfounded claimed, but none of their quotes is in the prompt:
          role confusion  3 of 3 voices (100%)
            first anthropic/claude-sonnet-4 in round 1; independently by
              qwen/qwen-2.5-72b-instruct, deepseek/deepseek-r1
            signs of role_confusion
Talking   round 1 alone: F 0.10, no alarm; all 3 rounds: F 0.80, alarm; the
            discussion raised the alarm
          changed to alarm: qwen/qwen-2.5-72b-instruct 0.10 → 0.80 (round 2,
            0% of its reasoning repeats its peers)
          dropped an alarm (their earlier alarm still counts):
            qwen/qwen-2.5-72b-instruct 0.80 → 0.10 (round 3)
          against the verdict at the end: anthropic/claude-sonnet-4 (F 0.10),
            qwen/qwen-2.5-72b-instruct (F 0.10), deepseek/deepseek-r1 (F 0.10)
          no alarm by other rules: round 1 alone, the highest last word, the
            mean of the last words, their median, a majority vote, the highest
            without guesses
          the empty chair saw almost nothing before the others did
Quorum    holds: coverage 11.2 (needs 5.0), 3 lineages (needs 2)
Cost      9 calls in N s; 6,400 tokens in, 800 out; tokens unknown for 1
            call; by estimate 2,652 more tokens that no provider counted;
            $0.0160 and 1 call of unknown price and by estimate $0.0010 more
Next      the verdict rests on a keyword guess: run it again, or with --set
            failure_mode=strict, before relying on it
Saved     as ID: firecircle circles show ID
""")


def test_an_alarm_from_the_chair_that_talking_raised(cli: Cli, hosted: Host) -> None:
    calm = says(0.1, "nothing")
    hosted(
        answers({CLAUDE: [calm], QWEN: [calm, says(0.9, "Evaluator C misses it"), calm], DEEPSEEK: [calm]})
    )
    ran = cli("evaluate", "When do you open?", "--models", TRIO, "--seed", "1", "--verbose")
    assert ran.status == 1
    report = flowing(ran.out)
    assert "Said by qwen/qwen-2.5-72b-instruct in round 2, from the empty chair" in report
    assert re.search(rf"It says: Evaluator C \((?:{TRIO.replace(',', '|')})\) misses it", report)
    assert "the discussion raised the alarm" in report
    assert "dropped an alarm (their earlier alarm still counts)" in report


def test_no_rounding_lifts_a_number_to_the_threshold(cli: Cli, hosted: Host) -> None:
    near, over = says(0.698, "nearly"), says(0.8, "now I see it")
    hosted(answers({CLAUDE: [near, over], QWEN: [says(0.1, "fine")], DEEPSEEK: [says(0.1, "fine")]}))
    ran = cli("evaluate", "When do you open?", "--models", TRIO, "--seed", "1", "--rounds", "2", "--verbose")
    report = flowing(ran.out)
    assert "round 1 alone: F 0.698, no alarm; all 2 rounds: F 0.80, alarm" in report
    assert f"changed to alarm: {CLAUDE} 0.698 → 0.80" in report


def test_one_voice_once(cli: Cli, hosted: Host) -> None:
    hosted(answers({CLAUDE: [says(0.9, "no such check took place")]}))
    ran = cli("evaluate", "hello", "--models", CLAUDE, "--mode", "single", "--turn", "1")
    assert ran.status == 1
    assert in_order(ran.out) == snapshot("""\
Fire Circle: 1 voice, asked once
Prompt: user 5 characters; turn 1

                           round 1
                           independent
anthropic/claude-sonnet-4  0.90 ██████████░░ !
! F at or above 0.70

Verdict   ALARM   F 0.90 ██████████████████░░  at or above the threshold 0.70
          Said by anthropic/claude-sonnet-4, asked once and alone.
          Balance -0.72: the exchange is extractive.
          Why: anthropic/claude-sonnet-4 shows no words of the prompt: it
            names no pattern. It says: no such check took place

Cost      1 call; 800 tokens in, 100 out; $0.0020
Saved     as ID: firecircle circles show ID
""")
