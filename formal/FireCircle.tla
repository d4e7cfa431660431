------------------------------ MODULE FireCircle ------------------------------
(***************************************************************************)
(* The dialogue of a circle, to be read beside circle/dialogue.py, with    *)
(* quorum.py, conclude.py and chair_of_round of config.py.                 *)
(*                                                                         *)
(* Figures are whole hundredths: falsehood 70 is 0.70, a share of a role   *)
(* likewise, coverage 500 is 5.0. All voices of a round are heard in one   *)
(* step, because nothing is decided before all of them are heard.          *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS Circles,  \* the circles that may be declared: models, reserves, what they bring, settings
          Levels    \* the falsehoods that a voice may state

VARIABLES circle,   \* the declaration of this circle; nothing may change it
          round,    \* the round that is being held
          stage,    \* "hear", then "weigh", round after round; at last "ended"
          seated,   \* who was convened or recruited, in order
          reserves, \* who has not been called yet, in order
          said,     \* said[voice][round]: its falsehood, or Silent
          lost,     \* lost[voice]: the round in which it failed, or 0
          chairs,   \* chairs[round]: who held the empty chair, or Nobody
          outcome,  \* how the circle ended, or "none"
          consensus \* the evaluation that decided, or NoConsensus

vars == <<circle, round, stage, seated, reserves, said, lost, chairs, outcome, consensus>>

Rounds == 1..4
Silent == -1
Failed == -2      \* the voice was asked and lost
Unheard == -3     \* the voice was asked and the circle did not wait for it
Nobody == "nobody"
NoConsensus == [voice |-> Nobody, round |-> 0, falsehood |-> Silent]
DivergentAbove == 30

Range(list) == {list[n] : n \in DOMAIN list}
Max(figures) == CHOOSE most \in figures : \A other \in figures : most >= other
Min(figures) == CHOOSE least \in figures : \A other \in figures : least <= other
Sum(terms) ==
    LET SumOf[keys \in SUBSET DOMAIN terms] ==
            IF keys = {} THEN 0 ELSE LET key == CHOOSE some \in keys : TRUE IN terms[key] + SumOf[keys \ {key}]
    IN  SumOf[DOMAIN terms]

Voices == Range(circle.models) \cup Range(circle.reserves)

\* ------------------------------------------------------------------ who sits

StillThere(voice) == lost[voice] = 0
ActiveInOrder == SelectSeq(seated, StillThere)
Active == Range(ActiveInOrder)

ChairOfRound(number) ==
    LET models == circle.models
        holder == IF circle.chair = "rotating" THEN models[((number - 1) % Len(models)) + 1] ELSE circle.chair
    IN  IF number > 1 /\ holder \in Active THEN holder ELSE Nobody

\* Who holds this round's chair and has spoken from it.
ChairIsOccupied == chairs[round] # Nobody /\ said[chairs[round]][round] # Silent

\* -------------------------------------------------------------------- quorum

Weight == [temporal_reasoning |-> 3, cross_layer_analysis |-> 3, pattern_recognition |-> 2,
           polite_extraction_masking |-> 2, educational_escalation |-> 1, future_impact |-> 2,
           system_maintenance |-> 1]
Roles == DOMAIN Weight
CriticalRoles == {role \in Roles : Weight[role] >= 3}
ChairRole == "future_impact"
PresentAbove == 50

Share(voice, role) == IF role \in DOMAIN circle.brings[voice] THEN circle.brings[voice][role] ELSE 0
BestShare(voices, role) == Max({0} \cup {Share(voice, role) : voice \in voices})

\* Each role counts once, at its best; an occupied chair covers the future.
RoleCoverage(voices, role, chaired) ==
    Weight[role] * (IF chaired /\ role = ChairRole THEN 100 ELSE BestShare(voices, role))
Coverage(voices, chaired) ==
    LET Covers(role) == RoleCoverage(voices, role, chaired)
    IN  Covers("temporal_reasoning") + Covers("cross_layer_analysis") + Covers("pattern_recognition")
        + Covers("polite_extraction_masking") + Covers("educational_escalation") + Covers("future_impact")
        + Covers("system_maintenance")
CoversEnough(voices, chaired) == Coverage(voices, chaired) >= circle.minCoverage
SeesAllThatIsCritical(voices) == \A role \in CriticalRoles : BestShare(voices, role) > PresentAbove
SpansLineages(voices) == Cardinality({circle.lineage[voice] : voice \in voices}) >= circle.minLineages

FormsQuorum(voices, chaired) ==
    /\ Cardinality(voices) >= 2
    /\ CoversEnough(voices, chaired)
    /\ SeesAllThatIsCritical(voices)
    /\ SpansLineages(voices)

IsViable(voices) == Cardinality(voices) >= circle.minViable
MayGoOn(voices) == IsViable(voices) /\ (circle.enforced => FormsQuorum(voices, ChairIsOccupied))

\* The groups of reserves, by their places, each of which would restore the quorum.
HelpfulGroups == {group \in SUBSET (DOMAIN reserves) : MayGoOn(Active \cup {reserves[n] : n \in group})}
\* The first reserve of the first, smallest group.
FirstOf(groups) == LET size == Min({Cardinality(group) : group \in groups})
                   IN  Min(UNION {group \in groups : Cardinality(group) = size})

\* ----------------------------------------------------------------- when to stop

\* The variance of what the active voices say in this round, times the square of their number.
Apart == LET number == Cardinality(Active)
             falsehoods == [voice \in Active |-> said[voice][round]]
             squares == [voice \in Active |-> falsehoods[voice] * falsehoods[voice]]
         IN  number * Sum(squares) - Sum(falsehoods) * Sum(falsehoods)
Square(figure) == figure * figure

HasConverged == round >= 2 /\ Apart < Square(Cardinality(Active) * circle.earlyStop)
IsDivided == Apart > Square(Cardinality(Active) * DivergentAbove)
EarnsExtraRound == circle.extraRound /\ circle.large /\ round = 3 /\ circle.maxRounds = 3 /\ IsDivided
AllRoundsAreHeld == round >= circle.maxRounds /\ ~EarnsExtraRound

\* ----------------------------------------------------------------- the verdict

Electorate == Active
CountingRounds == 1..round
Evaluation(voice, number) == [voice |-> voice, round |-> number, falsehood |-> said[voice][number]]
Votes == {vote \in {Evaluation(voice, number) : voice \in Electorate, number \in CountingRounds} :
             vote.falsehood # Silent}
Place(voice) == CHOOSE n \in DOMAIN seated : seated[n] = voice
Precedes(one, other) ==   \* the higher falsehood, then the earlier round, then the voice listed first
    \/ one.falsehood > other.falsehood
    \/ /\ one.falsehood = other.falsehood
       /\ \/ one.round < other.round
          \/ one.round = other.round /\ Place(one.voice) <= Place(other.voice)
Highest == CHOOSE vote \in Votes : \A other \in Votes : Precedes(vote, other)

\* -------------------------------------------------------------------- the steps

Begins ==
    /\ round = 1 /\ stage = "hear"
    /\ seated = circle.models /\ reserves = circle.reserves
    /\ said = [voice \in Voices |-> [number \in Rounds |-> Silent]]
    /\ lost = [voice \in Voices |-> 0]
    /\ chairs = [number \in Rounds |-> Nobody]
    /\ outcome = "none" /\ consensus = NoConsensus
Init == circle \in Circles /\ Begins

(* What voices may do. Whoever checks fewer circles, or a recorded one, narrows these two. *)
Answers == [Active -> Levels \cup {Failed} \cup (IF circle.strict THEN {Unheard} ELSE {})]
ReserveAnswers == (Levels \cup {Failed}) \X (Levels \cup {Failed})   \* its baseline, and its part in this round

End(reason) == stage' = "ended" /\ outcome' = reason

Kept(answer) == IF answer \in {Failed, Unheard} THEN Silent ELSE answer
AfterLosing(words) == words   \* what a lost voice said before stays on record
EndsAtOnce(failed) == circle.strict /\ failed # {}

Hears(answers) == \* answers[voice] for everybody who is asked
    LET failed == {voice \in Active : answers[voice] = Failed}
    IN  /\ DOMAIN answers = Active
        /\ (\E voice \in Active : answers[voice] = Unheard) => (circle.strict /\ failed # {})
        /\ said' = [voice \in Voices |->
                       IF voice \in failed THEN AfterLosing(said[voice])
                       ELSE IF voice \in Active THEN [said[voice] EXCEPT ![round] = Kept(answers[voice])]
                       ELSE said[voice]]
        /\ lost' = [voice \in Voices |-> IF voice \in failed THEN round ELSE lost[voice]]
        /\ IF EndsAtOnce(failed) THEN End("failed") ELSE stage' = "weigh" /\ outcome' = outcome

HearEverybody(answers) ==
    /\ stage = "hear"
    /\ Hears(answers)
    /\ UNCHANGED <<circle, round, seated, reserves, chairs, consensus>>

(* Afterwards the survivors are weighed. If they fall short, a reserve is called; *)
(* if none helps, the circle aborts.                                              *)

WordsOfReserve(words, baseline, answer) == [words EXCEPT ![1] = Kept(baseline), ![round] = Kept(answer)]
WithoutReserve(place) == [n \in 1..(Len(reserves) - 1) |-> IF n < place THEN reserves[n] ELSE reserves[n + 1]]

\* A reserve gives its baseline, then its part in this round; in round 1 these are the same.
SeatReserve(place, baseline, answer) ==
    LET reserve == reserves[place]
        failedIn == IF baseline = Failed THEN 1 ELSE IF answer = Failed THEN round ELSE 0
    IN  /\ round = 1 => answer = baseline
        /\ baseline = Failed => answer = Failed
        /\ said' = [said EXCEPT ![reserve] = WordsOfReserve(said[reserve], baseline, answer)]
        /\ lost' = [lost EXCEPT ![reserve] = failedIn]
        /\ reserves' = WithoutReserve(place)
        /\ seated' = IF failedIn = 0 THEN Append(seated, reserve) ELSE seated
        /\ UNCHANGED <<circle, round, stage, chairs, outcome, consensus>>

OpenNextRound ==
    /\ round' = round + 1 /\ stage' = "hear"
    /\ chairs' = [chairs EXCEPT ![round + 1] = ChairOfRound(round + 1)]
    /\ UNCHANGED <<circle, seated, reserves, said, lost, outcome, consensus>>

Conclude(reason) ==
    /\ End(reason)
    /\ consensus' = Highest
    /\ UNCHANGED <<circle, round, seated, reserves, said, lost, chairs>>

Abort ==
    /\ End("no_quorum")
    /\ UNCHANGED <<circle, round, seated, reserves, said, lost, chairs, consensus>>

Weigh ==
    /\ stage = "weigh"
    /\ IF MayGoOn(Active) THEN
          IF HasConverged THEN Conclude("converged")
          ELSE IF AllRoundsAreHeld THEN Conclude("all_rounds_held")
          ELSE OpenNextRound
       ELSE LET groups == HelpfulGroups
            IN  IF groups = {} THEN Abort
                ELSE \E two \in ReserveAnswers : SeatReserve(FirstOf(groups), two[1], two[2])

\* A cancellation, at any time, or a budget that is not enough for the next question.
CutShort ==
    /\ stage # "ended" /\ circle.mayBeCut
    /\ End("cut_short")
    /\ UNCHANGED <<circle, round, seated, reserves, said, lost, chairs, consensus>>

Hear == \E answers \in Answers : HearEverybody(answers)

Rest == stage = "ended" /\ UNCHANGED vars

Next == Hear \/ Weigh \/ CutShort \/ Rest
Spec == Init /\ [][Next]_vars /\ WF_vars(Hear \/ Weigh)

(***************************************************************************)
(* What must hold. These formulas are written in other words than the      *)
(* rules above, so that breaking a rule does not bend its own check.       *)
(***************************************************************************)

HasConsensus == consensus # NoConsensus
Survivors == {voice \in Range(seated) : lost[voice] = 0}
Spoke(voice, number) == said[voice][number] \in Levels

ChairSpokeIn(number) == \E voice \in Voices : chairs[number] = voice /\ Spoke(voice, number)
Covered(voices, role, chaired) ==
    IF role = "future_impact" /\ chaired THEN 100
    ELSE LET shares == {circle.brings[voice][role] : voice \in {v \in voices : role \in DOMAIN circle.brings[v]}}
         IN  IF shares = {} THEN 0 ELSE CHOOSE best \in shares : \A share \in shares : share <= best
AreDiverse(voices, chaired) ==
    /\ \E one, other \in voices : one # other
    /\ \A role \in {"temporal_reasoning", "cross_layer_analysis"} : Covered(voices, role, chaired) > 50
    /\ Sum([role \in Roles |-> Weight[role] * Covered(voices, role, chaired)]) >= circle.minCoverage
    /\ Cardinality({circle.lineage[voice] : voice \in voices}) >= circle.minLineages
Deserve(voices) == /\ Cardinality(voices) >= circle.minViable
                   /\ circle.enforced => AreDiverse(voices, ChairSpokeIn(round))

\* Consensus only with a valid quorum, of voices that were all heard to the end.
ConsensusNeedsQuorum ==
    HasConsensus => /\ outcome \in {"converged", "all_rounds_held"}
                    /\ Deserve(Survivors)
                    /\ \A voice \in Survivors : Spoke(voice, round)

ZombiesNeverVote == HasConsensus => consensus.voice \in Survivors /\ Spoke(consensus.voice, consensus.round)

NobodyRejoins ==
    \A voice \in Voices : lost[voice] > 0 => \A number \in Rounds : number >= lost[voice] => ~Spoke(voice, number)

ConsensusIsTheHighest ==
    HasConsensus => /\ consensus.falsehood = said[consensus.voice][consensus.round]
                    /\ \A voice \in Survivors, number \in Rounds : consensus.falsehood >= said[voice][number]

TheEarliestHighestDecides ==
    HasConsensus => \A voice \in Survivors, number \in 1..(consensus.round - 1) :
                        said[voice][number] < consensus.falsehood

\* The chair is never held twice running by the same voice while another can; nobody lost holds it.
TheChairMovesOn ==
    \A number \in 2..round :
        /\ (chairs[number] # Nobody /\ circle.chair = "rotating" /\ Cardinality(Survivors) > 1)
              => chairs[number] # chairs[number - 1]
        /\ \A voice \in Voices : chairs[number] = voice => lost[voice] \in {0} \cup (number..4)

NoConvergenceBeforeTalking == outcome = "converged" => round >= 2

ExtraRoundsAreEarned ==
    /\ round > circle.maxRounds => round = 4 /\ circle.maxRounds = 3 /\ circle.large /\ circle.extraRound
    /\ outcome = "all_rounds_held" => round >= circle.maxRounds

EverybodyHasABaseline ==
    (stage = "weigh" \/ HasConsensus) => \A voice \in Survivors : Spoke(voice, 1) /\ Spoke(voice, round)

AbortsOnlyWhenItMust == \* nobody who could still be called would have helped
    outcome = "no_quorum" => \A more \in SUBSET Range(reserves) : ~Deserve(Survivors \cup more)

StrictLosesNobodyQuietly == (circle.strict /\ \E voice \in Voices : lost[voice] > 0) => outcome \in {"failed", "cut_short"}

OnlyTheEndHasAnOutcome == (stage = "ended") <=> (outcome # "none")

\* Requirements never relax: the declaration stays, and no round opens upon less than it asks for.
KeepsRequirements == circle' = circle /\ (round' # round => Deserve(Survivors))
RequirementsNeverRelax == [][KeepsRequirements]_vars

KeepsWhatWasSaid ==
    /\ \A voice \in Voices, number \in Rounds :
         said[voice][number] # Silent => said'[voice][number] = said[voice][number]
    /\ \A voice \in Voices : lost[voice] > 0 => lost'[voice] = lost[voice]
NothingSaidIsLost == [][KeepsWhatWasSaid]_vars

\* Every circle ends in a result or in an abort that says which.
EveryCircleEnds == <>(/\ stage = "ended"
                      /\ outcome \in {"converged", "all_rounds_held", "no_quorum", "failed", "cut_short"})

\* The same as two cheaper checks: no step but a step forward, and TLC's own search for a step that is missing.
Remaining == CASE stage = "ended" -> 0
               [] stage = "weigh" -> 100 * (5 - round) + Len(reserves)
               [] stage = "hear"  -> 100 * (5 - round) + 50
LeadsOn == Remaining' < Remaining
EveryStepLeadsOn == [][LeadsOn]_vars
=============================================================================
